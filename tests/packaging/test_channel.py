"""A channel of what was built: indexed, served over HTTP on loopback, installed from by an environment file."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

pytest.importorskip("rattler", reason="py-rattler installs from the channel")
zstandard = pytest.importorskip("zstandard")
yaml = pytest.importorskip("yaml")

import dev  # noqa: E402
from devtools import publish  # noqa: E402
from devtools.condapkg import Spec, write_package  # noqa: E402

VARIANTS = {"cuda130": 300, "cuda129": 200, "cpu": 0, "hip": 0}


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small packages with the names, build strings and dependencies of the real ones' variants."""
    folder = tmp_path_factory.mktemp("channel")
    for number, (variant, build) in enumerate(VARIANTS.items()):
        tree = folder / f"tree-{number}"
        (tree / "share").mkdir(parents=True)
        (tree / "share/variant.txt").write_text(variant)
        needs = (f"__cuda >={variant[4:6]}",) if variant.startswith("cuda") else ()
        features = "triton-p-0" if variant == "hip" else ""
        spec = Spec(
            name="triton", version=dev.project_version(), build=f"{variant}_h0_{build}", build_number=build,
            track_features=features, depends=needs,
        )  # fmt: skip
        package = write_package(spec, tree, folder / "made")
        assert package.is_file()
    # Build numbers and track features as the recipe has them (test_recipes.py).
    publish.index(folder / "made")
    return folder / "made"


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))


def test_index_is_there_plain_and_compressed(channel):
    plain = (channel / "linux-64/repodata.json").read_bytes()
    packed = (channel / "linux-64/repodata.json.zst").read_bytes()
    unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    assert json.loads(unpacked) == json.loads(plain)
    records = json.loads(plain)["packages.conda"]
    assert {name.split("-")[2].split("_")[0] for name in records} == set(VARIANTS)
    assert all(record["size"] == (channel / "linux-64" / name).stat().st_size for name, record in records.items())
    assert (channel / "noarch/repodata.json").is_file()


@pytest.mark.parametrize(
    "variant, driver, expected", [("cpu", "", "cpu"), ("cuda", "12.9", "cuda129"), ("hip", "", "hip")]
)
def test_environment_file_installs_its_variant_over_http(channel, tmp_path, monkeypatch, variant, driver, expected):
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", driver)
    file = ROOT / "examples" / f"environment-{variant}.yml"
    found = publish.install(tmp_path / "env", file, channel, [], ["python", "numpy", "pytorch"])
    assert len(found) == 1 and found[0].startswith(f"triton {dev.project_version()} {expected}_")
    assert (tmp_path / "env/share/variant.txt").read_text() == expected


def test_cuda_variant_is_refused_without_a_driver(channel, tmp_path, monkeypatch):
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    file = ROOT / "examples/environment-cuda.yml"
    with pytest.raises(publish.SolverError, match="__cuda"):
        publish.install(tmp_path / "env", file, channel, [], ["python", "numpy", "pytorch"])


@pytest.mark.parametrize("driver", publish.PREFERRED)
def test_plain_name_is_the_best_variant_that_the_driver_allows(channel, monkeypatch, driver):
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", driver)
    build = asyncio.run(publish.plain_choice([channel.as_uri()], driver))
    assert build.split("_")[0] == publish.PREFERRED[driver]


@pytest.mark.parametrize("variant", ["cpu", "cuda", "hip"])
def test_environment_files_pin_this_version(variant):
    document = yaml.safe_load((ROOT / f"examples/environment-{variant}.yml").read_text())
    assert f"triton={dev.project_version()}={variant}*" in document["dependencies"]
    assert document["channels"][-1] == "conda-forge"
    assert any(re.match("pytorch", need) for need in document["dependencies"]) is (variant != "hip")


def test_specs_of_an_environment_file(tmp_path):
    file = tmp_path / "environment.yml"
    file.write_text("dependencies: [python>=3.10, triton=3.9.0=cuda*, numpy, pytorch=*=cpu*, cmake=4]\n")
    expected = ["python>=3.10", "triton 3.9.0.* cuda*", "numpy", "pytorch * cpu*", "cmake 4.*"]
    assert publish.environment_specs(file) == expected
    assert publish.environment_specs(file, ["pytorch", "python"]) == expected[1:3] + expected[4:]


def test_environment_file_with_a_part_for_pip_is_refused(tmp_path):
    file = tmp_path / "environment.yml"
    file.write_text("dependencies:\n  - python\n  - pip:\n    - triton\n")
    with pytest.raises(SystemExit, match="nothing for pip"):
        publish.environment_specs(file)
