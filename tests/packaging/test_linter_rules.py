"""What conda-forge's linter asks of a recipe (the numbers are its own), checked on both spellings.

Two rules are not followed. R-003 wants maintainers, who are whoever submits the recipe. R-024 wants `python` without a
version in `run`: with one, no build tool pins it to the Python of the build environment.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

pytest.importorskip("jinja2")
pytest.importorskip("yaml")
pytest.importorskip("rattler_build", reason="py-rattler-build renders recipe.yaml")

import render_meta  # noqa: E402
import yaml  # noqa: E402

from devtools.package import render as render_recipe  # noqa: E402

META, RECIPE, CONFIG = ROOT / "recipe/meta.yaml", ROOT / "recipe/recipe.yaml", ROOT / "conda_build_config.yaml"
FILES = pytest.mark.parametrize("path", [META, RECIPE], ids=lambda path: path.name)
ORDER = {
    META: ("package", "source", "build", "requirements", "test", "app", "outputs", "about", "extra"),
    RECIPE: ("schema_version", "context", "package", "source", "build", "requirements", "tests", "about", "extra"),
}
# conda-build's names of what may stand in a section, as far as this recipe uses it.
KNOWN = {
    "package": {"name", "version"},
    "source": {"path", "folder", "patches", "url", "sha256", "git_url", "git_rev", "fn"},
    "build": {
        "number", "string", "script", "skip", "track_features", "python_version_independent", "binary_relocation",
        "error_overlinking", "ignore_run_exports", "run_exports", "noarch",
    },
    "requirements": {"build", "host", "run", "run_constrained"},
    "test": {"imports", "files", "requires", "commands", "source_files"},
    "about": {"home", "summary", "description", "license", "license_file", "license_family", "doc_url", "dev_url"},
}  # fmt: skip


def documents(platform: str = "linux-64") -> list[tuple[Path, dict[str, Any]]]:
    metas = [render_meta.render(META, v, platform) for v in render_meta.variants(CONFIG, platform)]
    recipes = [variant.recipe.to_dict() for variant in render_recipe(ROOT, {}, platform)]
    return [(META, document) for document in metas] + [(RECIPE, document) for document in recipes]


ALL = [pair for platform in ("linux-64", "linux-aarch64", "win-64") for pair in documents(platform)]


def top_level(path: Path) -> list[str]:
    return re.findall(r"^(\w+):", path.read_text(), re.M)


@FILES
def test_sections_are_known_and_in_order(path: Path) -> None:
    found = top_level(path)
    assert found == [name for name in ORDER[path] if name in found]


def test_sections_have_only_what_conda_build_knows() -> None:
    for path, document in ALL:
        for section, allowed in KNOWN.items() if path == META else ():
            for part in document[section] if isinstance(document[section], list) else [document[section]]:
                assert set(part) <= allowed, section


def test_about() -> None:
    for path, document in ALL:
        about = document["about"]
        assert about["home" if path == META else "homepage"] and about["summary"]
        assert about["license"] == "MIT"
        files = about["license_file"]
        for name in files if isinstance(files, list) else [files]:
            sources = [ROOT / "recipe" / source["path"] for source in document["source"]]
            assert any(source.name == name and source.is_file() for source in sources)


def test_there_are_tests_and_a_build_number() -> None:
    for path, document in ALL:
        assert document["test" if path == META else "tests"]
        assert isinstance(document["build"]["number"], int)
        assert re.fullmatch(r"[a-z0-9_.-]+", document["package"]["name"])
        assert isinstance(document["package"]["version"], str)


@FILES
def test_order_of_requirements(path: Path) -> None:
    text = path.read_text().split("\nrequirements:\n")[1]
    found = re.findall(r"^  (build|host|run|run_constrained|run_constraints):", text.split("\ntest")[0], re.M)
    assert found == ["build", "host", "run", "run_constrained" if path == META else "run_constraints"]


@FILES
def test_one_newline_at_the_end_and_no_trailing_spaces(path: Path) -> None:
    text = path.read_text()
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert not re.search(r"[ \t]$", text, re.M) and "\t" not in text


def test_specs_are_name_version_build() -> None:
    for _, document in ALL:
        for section, needs in document["requirements"].items():
            for need in needs:
                assert re.fullmatch(r"[a-z0-9_.-]+( [<>=!0-9.,*a-z]+( [\w*]+)?)?", need), f"{section}: {need}"


def test_python_is_in_host_and_run() -> None:
    for _, document in ALL:
        needs = document["requirements"]
        assert "python" in needs["host"] and any(re.fullmatch(r"python >=3\.\d+", need) for need in needs["run"])


def test_compilers_come_with_their_c_library() -> None:  # R0-006
    for path in (META, RECIPE):
        text = path.read_text()
        assert re.search(r"\{\{ compiler\('cxx'\) \}\}", text) and re.search(r"\{\{ stdlib\('c'\) \}\}", text)
        assert "sysroot_" not in text and "toolchain" not in text


@FILES
def test_jinja_has_spaces_inside_of_its_braces(path: Path) -> None:  # R-025, R0-005
    text = path.read_text()
    assert re.findall(r"\{\{", text) and not re.search(r"\{\{\S|\S\}\}", text)
    for line in re.findall(r"\{%.*", text):
        assert re.fullmatch(r"\{% set \w+ = \S.* %\}", line), line


def test_form_of_selectors() -> None:  # R0-001, R0-002, R0-003
    for path in (META, CONFIG):
        for line in path.read_text().splitlines():
            if re.search(r"#\s*\[.+\]\s*$", line) and not line.lstrip().startswith("#"):
                # Aligned in lists of the variants' file; two spaces at least.
                assert re.search(r"\S {2,}# \[\S(.*\S)?\]$", line), line
                assert path == CONFIG or re.search(r"\S  # \[", line), line
                assert not re.search(r"\bpy\d\d", line), line


def test_v1_has_no_comment_selectors() -> None:  # R1-001
    assert not re.search(r"# \[", RECIPE.read_text())


def test_conda_build_finds_the_variant_keys() -> None:
    """It reads which keys a recipe uses off the text, line by line: a key in a selector counts only where neither `#`
    nor `[` stands before the selector, one in braces only as the first word there."""
    config = yaml.safe_load(CONFIG.read_text().replace("# [", "#["))
    text = META.read_text()
    found = set()
    for key in config:
        selector = rf"^[^#\[]*?#?\s\[[^\]]*?(?<!\w){key}[=\s<>!\]]"
        braces = rf"\{{\s*{key}[^'\"]*?\}}\}}"
        if any(re.search(f"{selector}|{braces}", line) for line in text.splitlines()):
            found.add(key)
    scripts = (ROOT / "recipe/build.sh").read_text(), (ROOT / "recipe/bld.bat").read_text()
    assert "$llvm_link" in scripts[0] and "%llvm_link%" in scripts[1]
    # The last three by compiler() and stdlib().
    assert found | {"cxx_compiler", "c_stdlib", "c_stdlib_version"} == set(config) - {"zip_keys"}


def test_one_file_of_variants() -> None:  # RC-002, CF-004
    assert CONFIG.stat().st_size and not (ROOT / "recipe/variants.yaml").exists()
