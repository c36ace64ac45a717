"""What differs on Windows: folders, long paths, open files, DLLs that are not there. Run there or under Wine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "win32", reason="runs on Windows, and under Wine by devtools/wine_tests.py"
)

ODD = "Ordner mit Leerzeichen äöü Ω"
KERNEL = """
from triton._C import libtriton
import numpy as np
import triton, triton.language as tl

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

x = np.arange(1000, dtype="f4")
double[(8,)](x, 1000, BLOCK=128)
assert (x == 2 * np.arange(1000)).all()
print("doubled", triton.knobs.cache.dir)
"""


def package() -> Path:
    import triton

    return Path(triton.__file__).parent


def copy_package(folder: Path, *unwanted: str) -> None:
    ignore = shutil.ignore_patterns("__pycache__", *unwanted)
    # Not copy2: the Windows function that it calls is not in every Wine.
    shutil.copytree(package(), folder / "triton", ignore=ignore, copy_function=shutil.copyfile)


def run(
    folder: Path, sources: Path | None, python: Path = Path(sys.executable), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs KERNEL from a file in `folder` with the package below `sources`."""
    script = folder / "kernel.py"
    script.write_text(KERNEL, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON", "PYTHON"))}
    path = {} if sources is None else {"PYTHONPATH": str(sources)}
    environment = {**kept, **path, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run(
        [str(python), str(script)], env=environment, capture_output=True, text=True, encoding="utf-8", timeout=200
    )


def test_the_cache_lies_below_local_app_data(tmp_path: Path) -> None:
    done = run(tmp_path, package().parent, LOCALAPPDATA=str(tmp_path / ODD))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / ODD / "triton" / "cache") in done.stdout
    assert list((tmp_path / ODD / "triton" / "cache").glob("*/*.obj"))


def test_a_cache_folder_beyond_260_characters(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 60] * 5)
    assert len(str(deep)) > 300
    for _ in range(2):
        done = run(tmp_path, package().parent, TRITON_CACHE_DIR=str(deep))
        assert done.returncode == 0, done.stderr
        assert "cannot write" not in done.stderr
    assert list(Path("\\\\?\\" + str(deep)).glob("*/*.obj"))


def test_a_package_in_a_folder_with_spaces_and_other_letters(tmp_path: Path) -> None:
    sources = tmp_path / ODD
    copy_package(sources)
    done = run(sources, sources, TRITON_CACHE_DIR=str(sources / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("doubled")


def test_a_read_only_cache_folder_is_said_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("where a folder should be")
    done = run(tmp_path, package().parent, TRITON_CACHE_DIR=str(blocked / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning: triton: cannot write the cache folder") == 1


@pytest.mark.parametrize(("name", "other", "package_name"), [("LLVM-C.dll", "LLVM-X.dll", "libllvm-c")])
def test_a_missing_dll_is_named(tmp_path: Path, name: str, other: str, package_name: str) -> None:
    copy_package(tmp_path)
    extension = tmp_path / "triton/_C/libtriton.pyd"
    data = extension.read_bytes()
    assert name.encode() in data
    extension.write_bytes(data.replace(name.encode(), other.encode()))
    done = run(tmp_path, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    for part in (f"triton needs {other}", "looked in", "Library\\bin", package_name, "TRITON_LLVM_PATH"):
        assert part in last


def test_a_missing_extension_is_named(tmp_path: Path) -> None:
    copy_package(tmp_path, "*.pyd")
    done = run(tmp_path, tmp_path)
    assert "triton's native extension is not there" in done.stderr.strip().splitlines()[-1]


def test_an_entry_held_open_is_not_lost(tmp_path: Path) -> None:
    from triton.runtime.cache import read_file, write_atomically

    path = str(tmp_path / "entry")
    write_atomically(path, b"same")
    with open(path, "rb") as held:  # without permission to replace, as Python opens files there
        write_atomically(path, b"same")
        assert held.read() == b"same"
    assert read_file(path) == b"same"
    assert os.listdir(tmp_path) == ["entry"]


def test_an_embedded_python(tmp_path: Path) -> None:
    """A Python with a `._pth` file: isolated from the environment, no site-packages of its own."""
    home, old = tmp_path / "embedded", Path(sys.executable).parent
    home.mkdir()
    for file in old.iterdir():
        if file.suffix in (".exe", ".dll", ".pyd", ".zip"):
            shutil.copyfile(file, home / file.name)
    site = old / "Lib/site-packages"
    (archive,) = home.glob("python3*.zip")
    lines = (archive.name, ".", str(package().parent), str(site))
    archive.with_suffix("._pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run(tmp_path, None, home / "python.exe", CONDA_PREFIX=str(old), TRITON_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("doubled")
