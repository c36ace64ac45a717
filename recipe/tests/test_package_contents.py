"""What the installed package holds, and that nothing ships that should not. Skipped outside a conda environment."""

import json
import pathlib
import sys

import pytest

RECORDS = sorted(pathlib.Path(sys.prefix, "conda-meta").glob("triton-3*.json"))
pytestmark = pytest.mark.skipif(not RECORDS, reason="triton is not installed as a conda package here")

UNWANTED_SUFFIXES = {
    ".a",
    ".bc",
    ".c",
    ".cmake",
    ".cpp",
    ".cu",
    ".h",
    ".hpp",
    ".in",
    ".la",
    ".ll",
    ".map",
    ".o",
    ".orig",
    ".rej",
}
UNWANTED_FOLDERS = {".git", ".dev", "build", "include", "native", "tests", "CMakeFiles", "lib64"}


@pytest.fixture(scope="module")
def files() -> list[pathlib.PurePosixPath]:
    assert len(RECORDS) == 1, f"one triton package is installed: {RECORDS}"
    return [pathlib.PurePosixPath(name) for name in json.loads(RECORDS[0].read_text())["files"]]


def test_file_count_is_that_of_a_whole_package(files):
    # An empty package would pass every other test of this file; a build tree shipped by mistake has thousands of files.
    sources = [f for f in files if f.suffix == ".py" and "site-packages" in f.parts]
    assert 40 <= len(sources) <= 400, f"{len(sources)} Python files"
    assert len(files) <= 2 * len(sources) + 40, f"{len(files)} files"


def test_every_file_has_its_place(files):
    def expected(path: pathlib.PurePosixPath) -> bool:
        if "site-packages" in path.parts:
            inside = path.parts[path.parts.index("site-packages") + 1 :]
            return inside[0] == "triton" or (inside[0].startswith("triton-") and inside[0].endswith(".dist-info"))
        return path.parts[:3] == ("etc", "conda", "test-files") or path.parts[:2] == ("share", "doc")

    assert [str(path) for path in files if not expected(path)] == []


def test_no_build_products_or_sources_of_the_core(files):
    mine = [path for path in files if path.parts[0] != "etc"]
    assert [str(p) for p in mine if p.suffix in UNWANTED_SUFFIXES or UNWANTED_FOLDERS & set(p.parts[:-1])] == []


def test_the_only_binary_is_the_stable_abi_extension(files):
    binaries = [path.name for path in files if ".so" in path.suffixes or path.suffix in {".pyd", ".dll"}]
    assert binaries == ["libtriton.pyd" if sys.platform == "win32" else "libtriton.abi3.so"]


def test_no_file_embeds_the_environment(files):
    # Rewritten at installation, such a path costs a copy of the file and breaks when the environment is moved.
    root = pathlib.Path(sys.prefix)
    mine = [path for path in files if path.parts[0] != "etc" and path.suffix != ".pyc"]
    assert [str(path) for path in mine if str(root).encode() in (root / path).read_bytes()] == []


def test_metadata_agrees_with_the_package():
    import importlib.metadata

    import triton

    record = json.loads(RECORDS[0].read_text())
    assert triton.__version__ == record["version"] == importlib.metadata.version("triton")
    assert record["build"].startswith(("cpu_", "cuda", "hip_"))
    assert any(need.split()[0] == "numpy" for need in record["depends"])
    assert any(need.startswith("python ") and ">=3.10" in need for need in record["depends"])
