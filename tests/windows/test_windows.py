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
    folder: Path, sources: Path | None, python: Path = Path(sys.executable), code: str = KERNEL, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs `code` from a file in `folder` with the package below `sources`."""
    script = folder / "kernel.py"
    script.write_text(code, encoding="utf-8")
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


@pytest.mark.parametrize(
    ("other", "advice"),
    [
        ("LLVM-X.dll", ("libllvm-c", "TRITON_LLVM_PATH")),
        # The name of a part of Visual C++'s runtime: this build of the extension needs none.
        ("MSVCP9.dll", ("the Microsoft Visual C++ runtime", "vc14_runtime", "vc_redist.x64.exe")),
    ],
)
def test_a_missing_dll_is_named(tmp_path: Path, other: str, advice: tuple[str, ...]) -> None:
    copy_package(tmp_path)
    extension = tmp_path / "triton/_C/libtriton.pyd"
    data = extension.read_bytes()
    assert data.count(b"LLVM-C.dll") == 1
    extension.write_bytes(data.replace(b"LLVM-C.dll", other.encode()))
    done = run(tmp_path, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    for part in (f"triton needs {other}", "looked in", "Library\\bin", *advice):
        assert part in last


def test_an_extension_that_is_none_is_named(tmp_path: Path) -> None:
    copy_package(tmp_path)
    (tmp_path / "triton/_C/libtriton.pyd").write_bytes(b"not a library")
    done = run(tmp_path, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert "libtriton.pyd cannot be loaded: " in last and str(tmp_path) in last


def test_a_user_with_spaces_and_other_letters(tmp_path: Path) -> None:
    """Home, temporary and application folders of such a user; without an answer of LOCALAPPDATA the home folder has the
    cache."""
    home = tmp_path / ODD
    (home / "Temp").mkdir(parents=True)
    folders = {"USERPROFILE": str(home), "TEMP": str(home / "Temp"), "TMP": str(home / "Temp"), "LOCALAPPDATA": ""}
    done = run(tmp_path, package().parent, **folders)
    assert done.returncode == 0, done.stderr
    assert list((home / ".triton" / "cache").glob("*/*.obj"))


CUBIN = """
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def root(x, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(x + at, tl.extra.libdevice.cbrt(tl.load(x + at)))

made = triton.compile(ASTSource(root, {"x": "*fp32", "n": "constexpr"}, {(1,): 64}), target=GPUTarget("cuda", 90, 32))
print(made.asm["cubin"][:4], "sm_90" in made.asm["ptx"])
"""


def test_ptxas_and_libdevice_with_an_odd_temporary_folder(tmp_path: Path) -> None:
    from triton.backends.cuda.codegen import find_ptxas

    if find_ptxas(90) is None:
        pytest.skip("no ptxas.exe is found")
    temporary = tmp_path / ODD
    temporary.mkdir()
    done = run(
        tmp_path, package().parent, code=CUBIN, TEMP=str(temporary), TMP=str(temporary),
        TRITON_CACHE_DIR=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == r"b'\x7fELF' True"  # text instead where ptxas did not run
    assert os.listdir(temporary) == []


WATCHED = (
    """
import os, sys
opened = []
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        writes = "w" in (arguments[1] or "") or arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        opened.append((arguments[0], bool(writes)))
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir"):
        opened.append((str(arguments[0]), True))
sys.addaudithook(note)
"""
    + KERNEL
    + """
home = os.path.dirname(triton.__file__).lower()
inside = [(path, writes) for path, writes in opened if os.path.abspath(path).lower().startswith(home)]
print(sum(not writes for _, writes in inside), [path for path, writes in inside if writes])
"""
)


def test_nothing_is_written_into_the_package(tmp_path: Path) -> None:
    """So that it may lie in a read-only folder; its files are made read-only too."""
    copy_package(tmp_path)
    for file in (tmp_path / "triton").rglob("*"):
        os.chmod(file, 0o555)
    done = run(tmp_path, tmp_path, code=WATCHED, TRITON_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    read, written = done.stdout.strip().splitlines()[-1].split(" ", 1)
    assert int(read) > 50 and written == "[]"


def cache_files(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.obj")}


def test_two_pythons_share_a_cache(tmp_path: Path) -> None:
    """The oldest supported Python loads the same extension, and takes what the other one has compiled."""
    old = os.environ.get("OLD_PYTHON")
    if not old:
        pytest.skip("OLD_PYTHON names no other Python")
    cache = tmp_path / "cache"
    code = KERNEL + "\nimport sys; print(sys.version_info[:2])"
    variables = {"TRITON_CACHE_DIR": str(cache), "CONDA_PREFIX": str(Path(sys.executable).parent)}
    first = run(tmp_path, package().parent, code=code, **variables)
    assert first.returncode == 0, first.stderr
    made = cache_files(cache)
    assert made
    second = run(tmp_path, package().parent, Path(old), code=code, **variables)
    assert second.returncode == 0, second.stderr
    assert second.stdout.splitlines()[-1] == "(3, 10)" != first.stdout.splitlines()[-1]
    assert cache_files(cache) == made


HELD = """
import sys, time
file = open(sys.argv[1], "rb")
print("open", flush=True)
sys.stdin.readline()
print(file.read() == b"same")
"""


def test_an_entry_that_another_process_holds_open(tmp_path: Path) -> None:
    from triton.runtime.cache import read_file, write_atomically

    path, script = str(tmp_path / "entry"), tmp_path / "hold.py"
    script.write_text(HELD)
    write_atomically(path, b"same")
    words = [sys.executable, str(script), path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin and holder.stdout and holder.stdout.readline() == "open\n"
        write_atomically(path, b"same")
        assert read_file(path) == b"same"
        holder.stdin.write("\n")
        holder.stdin.close()
        assert holder.stdout.readline() == "True\n"
    assert sorted(os.listdir(tmp_path)) == ["entry", "hold.py"]


def ordinary_python(home: Path) -> Path:
    """This Python laid out as an installed one: its library in folders, where this one may have it in a .zip."""
    old = Path(sys.executable).parent
    (home / "DLLs").mkdir(parents=True)
    for file in old.iterdir():
        if file.suffix in (".exe", ".dll"):
            shutil.copyfile(file, home / file.name)
        elif file.suffix == ".pyd":
            shutil.copyfile(file, home / "DLLs" / file.name)
    for archive in old.glob("python3*.zip"):
        shutil.unpack_archive(archive, home / "Lib")
    shutil.copytree(
        old / "Lib", home / "Lib", ignore=shutil.ignore_patterns("__pycache__", "tests", "nvidia"),
        copy_function=shutil.copyfile, dirs_exist_ok=True,
    )  # fmt: skip
    (home / "Library/bin").mkdir(parents=True)
    shutil.copyfile(old / "Library/bin/LLVM-C.dll", home / "Library/bin/LLVM-C.dll")
    return home


def test_a_virtual_environment(tmp_path: Path) -> None:
    """LLVM-C.dll lies in the environment that the virtual one was made of."""
    home, venv = ordinary_python(tmp_path / "home"), tmp_path / "venv"
    (venv / "Scripts").mkdir(parents=True)
    for file in home.iterdir():
        if file.suffix in (".exe", ".dll"):
            shutil.copyfile(file, venv / "Scripts" / file.name)
    (venv / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = true\n", encoding="utf-8")
    code = KERNEL + "\nimport sys; print(sys.prefix, sys.base_prefix)"
    done = run(tmp_path, package().parent, venv / "Scripts/python.exe", code=code, CONDA_PREFIX="",
               TRITON_CACHE_DIR=str(tmp_path / "cache"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{venv} {home}"


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
