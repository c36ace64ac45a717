"""meta.yaml and recipe.yaml are two spellings of one recipe: rendered over every variant and compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

pytest.importorskip("jinja2")
pytest.importorskip("yaml")
rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build renders recipe.yaml")

import render_meta  # noqa: E402
import yaml  # noqa: E402

import dev  # noqa: E402
from devtools.package import render as render_recipe  # noqa: E402
from devtools.patches import series  # noqa: E402

META, RECIPE, CONFIG = ROOT / "recipe/meta.yaml", ROOT / "recipe/recipe.yaml", ROOT / "conda_build_config.yaml"
OVERRIDES = [{}, {"llvm_link": "static"}, {"llvm_version": "23", "c_stdlib_version": "2.36"}]


def both(overrides: dict[str, str], platform: str = "linux-64") -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(meta.yaml, recipe.yaml) rendered for every variant, in one order."""
    metas = {
        tuple(sorted(variant.items())): render_meta.render(META, variant, platform)
        for variant in render_meta.variants(CONFIG, platform, overrides)
    }
    pairs = []
    rendered = render_recipe(ROOT, overrides, platform)
    assert len(rendered) == len(metas)
    for variant in rendered:
        used = {
            key: str(value) for key, value in variant.variant.items() if key != "target_platform" and key[:2] != "__"
        }
        matching = [meta for key, meta in metas.items() if used.items() <= dict(key).items()]
        assert len(matching) == 1, f"one variant of meta.yaml for {used}"
        pairs.append((matching[0], variant.recipe.to_dict()))
    return pairs


CASES = [("linux-64", overrides) for overrides in OVERRIDES] + [("win-64", {}), ("linux-aarch64", {})]


def case_name(case: tuple[str, dict[str, str]]) -> str:
    return f"{case[0]}: " + (",".join(f"{key}={value}" for key, value in case[1].items()) or "as is")


@pytest.fixture(params=CASES, ids=case_name)
def pairs(request: pytest.FixtureRequest) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    platform, overrides = request.param
    found = both(overrides, platform)
    assert found
    return found


def test_name_version_and_build(pairs):
    for meta, recipe in pairs:
        assert meta["package"] == recipe["package"]
        assert meta["build"]["number"] == recipe["build"]["number"]
        assert meta["build"]["string"] == re.sub(r"_h[0-9a-f]{7}_", "_hHASH_", recipe["build"]["string"])
        assert meta["build"]["python_version_independent"] == recipe["build"]["python"]["version_independent"]
        assert meta["build"]["binary_relocation"] is False
        assert recipe["build"]["dynamic_linking"]["binary_relocation"] is False
        assert meta["build"]["error_overlinking"]
        assert recipe["build"]["dynamic_linking"]["overlinking_behavior"] == "error"


def test_version_is_the_package_version(pairs):
    for meta, recipe in pairs:
        assert meta["package"]["version"] == recipe["package"]["version"] == dev.project_version()


def test_requirements(pairs):
    for meta, recipe in pairs:
        theirs = {key: needs for key, needs in recipe["requirements"].items() if needs}
        constraints = theirs.pop("run_constraints", None)
        assert meta["requirements"].pop("run_constrained", None) == constraints
        assert set(meta["requirements"]) == set(theirs) == {"build", "host", "run"}
        for section, needs in meta["requirements"].items():
            assert needs == theirs[section], section


def test_build_string_starts_with_the_backend(pairs):
    backends = sorted(recipe["build"]["string"].split("_")[0] for _, recipe in pairs)
    assert backends == ["cpu", "cuda129", "cuda130", "hip"]
    config = yaml.safe_load(CONFIG.read_text())
    assert [len(config[key]) for key in config["zip_keys"][0]] == [4, 4]


def test_preference_among_variants(pairs):
    # Fewer track features come first, then the higher build number: cuda where it may be, else cpu, never hip unasked.
    def rank(document: dict[str, Any]) -> tuple[bool, int]:
        features = document["build"].get("track_features") or document["build"].get("variant", {}).get(
            "down_prioritize_variant"
        )
        return not features, document["build"]["number"]

    for spelling in (0, 1):
        order = sorted((pair[spelling] for pair in pairs), key=rank, reverse=True)
        assert [d["build"]["string"].split("_")[0] for d in order] == ["cuda130", "cuda129", "cpu", "hip"]
        for document in order:
            needs_driver = any(need.startswith("__cuda ") for need in document["requirements"]["run"])
            assert needs_driver is document["build"]["string"].startswith("cuda")


def test_vendor_tools_are_dependencies_of_their_variant_only():
    expected = {
        "linux-64": {"cuda-nvcc-tools", "cuda-nvvm-tools", "lld", "rocm-device-libs"},
        "linux-aarch64": {"cuda-nvcc-tools", "cuda-nvvm-tools", "lld"},
        "win-64": {"cuda-nvcc-dev_win-64", "cuda-nvvm-tools", "lld"},
    }
    for platform, tools in expected.items():
        needs = {
            m["build"]["string"].split("_")[0]: {n.split()[0] for n in m["requirements"]["run"]}
            for m, _ in both({}, platform)
        }
        common = needs["cpu"]
        assert needs["cuda129"] == needs["cuda130"]
        assert (needs["cuda129"] | needs["hip"]) - common == tools | {"__cuda", "cuda-version"}
        assert not (needs["cuda129"] & needs["hip"]) - common


def test_sources(pairs):
    for meta, recipe in pairs:
        mine = [(source["path"], source.get("folder")) for source in meta["source"]]
        assert mine == [(source["path"], source.get("target_directory")) for source in recipe["source"]]
        for path, _ in mine:
            assert (ROOT / "recipe" / path).exists(), path


def test_windows_and_only_windows_is_patched():
    for platform, names in (("linux-64", []), ("win-64", [path.name for path in series(ROOT)])):
        for pair in both({}, platform):
            for document in pair:
                patches = [Path(name) for source in document["source"] for name in source.get("patches") or []]
                assert [path.name for path in patches] == names
                assert all((ROOT / "recipe" / path).is_file() for path in patches)


def test_build_script(pairs):
    for meta, recipe in pairs:
        # conda-build takes the one of these two beside meta.yaml by itself; rattler-build is told.
        windows = any("win-64" in need for need in meta["requirements"]["build"])
        assert recipe["build"]["script"]["file"] == ("bld.bat" if windows else "build.sh")
        assert (ROOT / "recipe" / recipe["build"]["script"]["file"]).is_file()


def test_package_tests(pairs):
    for meta, recipe in pairs:
        python, commands = recipe["tests"]
        assert meta["test"]["imports"] == python["python"]["imports"]
        # recipe.yaml's `pip_check: true` is the default, which rendering leaves out.
        assert python["python"].get("pip_check", True) is True
        assert "pip check" in meta["test"]["commands"]
        assert meta["test"]["files"] == commands["files"]["recipe"]
        assert set(meta["test"]["requires"]) - {"pip"} == set(commands["requirements"]["run"])
        script = commands["script"] if isinstance(commands["script"], list) else [commands["script"]]
        assert [line for line in meta["test"]["commands"] if line != "pip check"] == script


def test_about(pairs):
    for meta, recipe in pairs:
        about = dict(recipe["about"])
        files = about.pop("license_file")
        mine = dict(meta["about"])
        assert mine.pop("home") == about.pop("homepage").rstrip("/")
        assert [mine.pop("license_file")] == (files if isinstance(files, list) else [files])
        assert {key: text.strip() for key, text in mine.items()} == {key: text.strip() for key, text in about.items()}


def test_static_link_needs_no_shared_library():
    for pair in both({"llvm_link": "static"}):
        for document in pair:
            assert not [need for need in document["requirements"]["host"] if need.startswith("libllvm")]
    for pair in both({"llvm_version": "23"}):
        for document in pair:
            assert "libllvm23" in document["requirements"]["host"]


def test_both_skip_the_same_platforms():
    # rattler-build's Python API renders a skipped variant and does not say that it is one: compare the conditions.
    conditions = yaml.safe_load(RECIPE.read_text())["build"]["skip"]
    assert conditions == render_meta.skip_conditions(META) == ["not (linux or win)"]
    for platform, skipped in (("linux-64", False), ("win-64", False), ("osx-arm64", True)):
        assert all(render_meta.skipped(META, v, platform) is skipped for v in render_meta.variants(CONFIG, platform))


@pytest.mark.parametrize("path", [META, RECIPE], ids=lambda path: path.name)
def test_read_in_one_sitting_with_a_reason_for_each_selector(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 200
    for number, line in enumerate(lines):
        if re.search(r"\S.*#\s*\[", line) or line.strip().startswith(("- if:", "skip:")):
            assert lines[number - 1].strip().startswith("#"), f"{path.name}:{number + 1} has no comment that says why"


def test_every_variant_key_has_a_comment_or_a_selector():
    text = CONFIG.read_text()
    keys = set(re.findall(r"^(\w+):", text, re.M)) - {"zip_keys"}
    used = META.read_text() + (ROOT / "recipe/build.sh").read_text()
    for key in keys:
        implied = {"cxx_compiler": "compiler('cxx')", "c_stdlib": "stdlib('c')", "c_stdlib_version": "stdlib('c')"}
        assert implied.get(key, key) in used, f"{key} is used by no recipe"


def test_every_command_of_the_windows_script_is_checked_for_crashes():
    # A crash's exit status is negative there, which `if errorlevel 1` lets pass.
    text = (ROOT / "recipe/bld.bat").read_text().replace("^\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("rem ")]
    commands = [at for at, line in enumerate(lines) if line.startswith("cmake ")]
    assert len(commands) == 3
    assert {lines[at + 1] for at in commands} == {"if %ERRORLEVEL% neq 0 exit /b 1"}


def test_checkouts_on_windows_have_the_same_bytes():
    names = ("recipe/build.sh", "recipe/bld.bat", "patches/windows/0001-Windows-paths.patch", "src/CMakeLists.txt")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    told = subprocess.run(
        ["git", "check-attr", "eol", "--", *names], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert told.splitlines() == [f"{name}: eol: lf" for name in names]
