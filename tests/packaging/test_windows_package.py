"""The win-64 package's pieces: metadata of a package for one platform and every Python, markers, what is compared."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

pytest.importorskip("rattler", reason="py-rattler reads and installs packages")
pytest.importorskip("zstandard")

from devtools import package, windows_channel, windows_package  # noqa: E402
from devtools.condapkg import Spec, write_index, write_package  # noqa: E402
from devtools.wheels import conda_spec  # noqa: E402


def made(folder: Path, name: str, text: str, **fields: object) -> Path:
    tree = folder / f"tree-{name}"
    (tree / "site-packages/triton").mkdir(parents=True)
    (tree / "site-packages/triton/__init__.py").write_text(text)
    spec = Spec(name=name, version="3.9.0", noarch="python", stable_abi=True, platform="win-64", **fields)  # type: ignore[arg-type]
    path = write_package(spec, tree, folder / "channel", {"info/licenses/LICENSE": b"as you like"})
    write_index([spec], folder / "channel")
    return path


def test_a_package_for_one_platform_and_every_python(tmp_path: Path) -> None:
    path = made(tmp_path, "triton", "one", depends=("python >=3.10",))
    assert path.parent.name == "win-64"
    record = json.loads((tmp_path / "channel/win-64/repodata.json").read_text())["packages.conda"][path.name]
    assert (record["noarch"], record["subdir"], record["arch"], record["platform"]) == (
        "python", "win-64", "x86_64", "win",
    )  # fmt: skip
    assert not (tmp_path / "channel/linux-64").exists()
    read = pytest.importorskip("rattler_build.package").Package.from_file(path)
    assert read.files == ["site-packages/triton/__init__.py"]


def test_the_same_files_make_the_same_package(tmp_path: Path) -> None:
    first, second = (made(tmp_path / name, "triton", "one") for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert len(archive.namelist()) == 3


def test_builds_are_compared_byte_for_byte(tmp_path: Path) -> None:
    one, same, other = (
        package.contents(made(tmp_path / name, "triton", text)) for name, text in (("1", "x"), ("2", "x"), ("3", "y"))
    )
    assert "2 builds, the same 1 files" in package.compare_contents({"cpu": one, "hip": same})
    with pytest.raises(SystemExit, match=r"cpu and hip are not the same: site-packages/triton/__init__\.py"):
        package.compare_contents({"cpu": one, "hip": other})


def test_limits_are_enforced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = made(tmp_path, "triton", "one")
    package.check_limits(file, 10)
    with pytest.raises(SystemExit, match="took 301 s to build"):
        package.check_limits(file, 301)
    monkeypatch.setattr(package, "MAX_BYTES", 100)
    with pytest.raises(SystemExit, match="more than 100"):
        package.check_limits(file, 10)


def test_markers_of_windows() -> None:
    assert conda_spec('colorama>=0.4; sys_platform == "win32"', windows_channel.TARGET) == "colorama >=0.4"
    assert conda_spec('colorama>=0.4; sys_platform == "win32"') is None
    assert conda_spec('tomli; python_version < "3.11"', windows_channel.TARGET) is None


def test_a_dll_that_no_dependency_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["KERNEL32.dll", "api-ms-win-core-synch-l1-2-0.dll", "LLVM-C.dll", "python3.dll", "libstdc++-6.dll"]
    monkeypatch.setattr(windows_package.wine, "dll_imports", lambda extension: needed)
    assert windows_package.foreign_dlls(Path("libtriton.pyd")) == ["libstdc++-6.dll"]


def test_both_windows_packages_of_the_environment_are_the_recipes() -> None:
    """The stand-ins have every package that the recipe asks for on win-64."""
    rendered = package.render(ROOT, {"llvm_version": windows_channel.MAJOR}, "win-64")
    recipes = [variant.recipe.to_dict() for variant in rendered]
    wanted = {need.split()[0] for recipe in recipes for section in recipe["requirements"].values() for need in section}
    source = (ROOT / "devtools/windows_channel.py").read_text()
    names = {f"libllvm-c{windows_channel.MAJOR}": "libllvm-c{MAJOR}", "cuda-version": "gpu_tools.cuda_version"}
    missing = [name for name in wanted - {"__cuda", "hip-runtime-amd"} if names.get(name, name) not in source]
    assert missing == []
