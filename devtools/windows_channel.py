"""Makes a win-64 channel of our package's build, run and test dependencies, from what the Wine kit is made of.

The counterpart of devtools/channel.py and gpu_tools.py: same purpose, conda-forge's names, files where conda has them
on Windows. The compiler is clang with Debian's MinGW libraries, under the name of the Visual Studio package that the
recipe asks for.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from devtools import channel, gpu_tools, windows_tools
from devtools.condapkg import Spec, write_index, write_package
from devtools.wheels import Target, stage_wheel
from devtools.wine import COMPILER, LLVM, Kit, minor, python_version, unpack_python, windows_wheels
from devtools.wine import PYTHON as PYTHON_SOURCE

SHORT = minor(PYTHON_SOURCE)
TAG = f"cp{SHORT.replace('.', '')}"
SITE_PACKAGES = "Lib/site-packages"
MARKERS = {
    "sys_platform": "win32", "os_name": "nt", "platform_system": "Windows", "platform_machine": "AMD64",
    "python_version": SHORT, "python_full_version": f"{SHORT}.0",
}  # fmt: skip
TARGET = Target(SHORT, TAG, SITE_PACKAGES, "Scripts", "win-64", MARKERS)
# NumPy is the one that this Wine can run, see devtools/wine.py.
WHEELS = ("numpy==2.2.0", "pip", "pytest", "colorama")
VERSION = ".".join(LLVM.partition("==")[2].split(".")[:3])
MAJOR, MINOR = VERSION.split(".")[:2]
PIN = f"libllvm-c{MAJOR} >={VERSION},<{MAJOR}.{int(MINOR) + 1}.0a0"

Stage = Callable[[Path], Spec]

# The MinGW libraries were made by GCC, which keeps thread_local variables its own way.
_ACTIVATE = """@echo off
set "CC=clang.exe"
set "CXX=clang++.exe"
set "CFLAGS=--target=x86_64-w64-mingw32 -femulated-tls -isystem Z:{sysroot}/include"
set "CXXFLAGS=--target=x86_64-w64-mingw32 -femulated-tls -isystem Z:{gcc}/include/c++ -isystem Z:{gcc}/include/c++/x86_64-w64-mingw32 -isystem Z:{sysroot}/include"
set "LDFLAGS=--target=x86_64-w64-mingw32 -fuse-ld=lld -BZ:{gcc} -BZ:{sysroot}/lib -LZ:{gcc} -LZ:{sysroot}/lib"
"""  # noqa: E501


def _state_version(header: Path, version: str) -> None:
    """The headers are those of the Python that runs this. The stable ABI does not depend on the release, but
    CMake compares what it says with the program's."""
    text = re.sub(r"(#define PY_VERSION\s+).*", rf'\g<1>"{version}"', header.read_text())
    for name, value in zip(("MAJOR", "MINOR", "MICRO"), version.split("."), strict=True):
        text = re.sub(rf"(#define PY_{name}_VERSION\s+).*", rf"\g<1>{value}", text)
    header.write_text(text)


def _python(kit: Kit, cache: Path) -> Stage:
    def stage(tree: Path) -> Spec:
        unpack_python(PYTHON_SOURCE, cache, tree)
        shutil.copytree(kit.sdk / "python/include", tree / "include")
        _state_version(tree / "include/patchlevel.h", python_version(kit))
        shutil.copytree(kit.sdk / "python/libs", tree / "libs", ignore=shutil.ignore_patterns("*.def"))
        return Spec(
            name="python",
            version=python_version(kit),
            build="0_cpython",
            constrains=(f"python_abi {SHORT}.* *_{TAG}",),
            run_exports={"noarch": ["python"], "weak": [f"python_abi {SHORT}.* *_{TAG}"]},
            license="PSF-2.0",
            site_packages=SITE_PACKAGES,
            platform="win-64",
        )

    return stage


def _llvm(kit: Kit) -> list[Stage]:
    def library(tree: Path) -> Spec:
        (tree / "Library/bin").mkdir(parents=True)
        shutil.copy2(kit.python / "Library/bin/LLVM-C.dll", tree / "Library/bin")
        return Spec(name=f"libllvm-c{MAJOR}", version=VERSION, run_exports={"weak": [PIN]}, platform="win-64")

    def development(tree: Path) -> Spec:
        shutil.copytree(kit.sdk / "llvm", tree / "Library", ignore=shutil.ignore_patterns("LLVM-C.def"))
        return Spec(name="llvmdev", version=VERSION, platform="win-64")

    return [library, development]


def _program(name: str, unpack: Callable[[Path], str], **fields: object) -> Stage:
    """A package of what `unpack` puts below the prefix' Library; it returns the version."""

    def stage(tree: Path) -> Spec:
        version = unpack(tree / "Library")
        return Spec(name=name, version=version, platform="win-64", **fields)  # type: ignore[arg-type]

    return stage


def _compiler_folder(program: str) -> Path:
    """Where GCC for Windows has its own libraries."""
    shown = subprocess.run([program, "-print-libgcc-file-name"], check=True, capture_output=True, text=True).stdout
    return Path(shown.strip()).resolve().parent


def _compiler(clang: Path) -> Stage:
    def stage(tree: Path) -> Spec:
        shutil.copytree(clang, tree / "Library", ignore=shutil.ignore_patterns("*-cl.exe", "lld*.exe"))
        folder = tree / "etc/conda/activate.d"
        folder.mkdir(parents=True)
        places = {"sysroot": "/usr/x86_64-w64-mingw32", "gcc": str(_compiler_folder(COMPILER))}
        (folder / "vs2022_compiler_vars.bat").write_text(_ACTIVATE.format(**places).replace("\n", "\r\n"))
        summary = "clang and Debian's MinGW libraries, in place of Visual Studio"
        return Spec(
            name="vs2022_win-64", version=windows_tools.clang_version(clang), summary=summary, platform="win-64"
        )

    return stage


def _linker(clang: Path) -> Stage:
    def unpack(library: Path) -> str:
        (library / "bin").mkdir(parents=True)
        shutil.copy2(clang / "bin/lld.exe", library / "bin/ld.lld.exe")
        return windows_tools.clang_version(clang)

    return _program("lld", unpack)


def _cuda(cache: Path, release: str) -> list[Stage]:
    def part(inside: str) -> Callable[[Path], str]:
        return lambda library: windows_tools.cuda(cache, release, inside, library)

    with tempfile.TemporaryDirectory() as folder:
        version = part("bin/ptxas.exe")(Path(folder))
    _, needs = gpu_tools.release_of(version)
    return [
        gpu_tools.cuda_version(version),
        _program("cuda-nvcc-dev_win-64", part("bin/ptxas.exe"), depends=(needs,), license=gpu_tools.NVIDIA),
        _program("cuda-nvvm-tools", part("nvvm/libdevice/libdevice.10.bc"), depends=(needs,), license=gpu_tools.NVIDIA),
    ]


def _stages(kit: Kit, cache: Path) -> list[Stage]:
    version = python_version(kit)
    clang = windows_tools.clang(cache, kit.root / "clang")
    wheels = {wheel.name: wheel for wheel in windows_wheels(WHEELS, cache, SHORT)}
    return [
        _python(kit, cache),
        channel.meta("python_abi", SHORT, f"0_{TAG}", constrains=(f"python {SHORT}.* *_cpython",)),
        channel.meta("cpython", version, f"{TAG}_0", depends=(f"python {SHORT}.* *_cpython",)),
        channel.meta("_python_abi3_support", "1.0", depends=("cpython",)),
        channel.meta("python-abi3", "3.10", run_exports=channel.abi3_exports("3.10")),
        channel.meta("vs_win-64", "2022.14"),
        *_llvm(kit),
        _program("cmake", lambda library: windows_tools.cmake(cache, library)),
        _program("ninja", lambda library: windows_tools.ninja(cache, library)),
        _compiler(clang),
        _linker(clang),
        *(stage for release in windows_tools.CUDA for stage in _cuda(cache, release)),
        *((lambda tree, wheel=wheel: stage_wheel(wheel, tree, TARGET)) for wheel in wheels.values()),
    ]


def fingerprint(kit: Kit) -> str:
    modules = ("channel", "condapkg", "gpu_tools", "wheels", "windows_channel", "windows_tools", "wine")
    sources = "".join((Path(__file__).parent / f"{name}.py").read_text() for name in modules)
    return hashlib.sha256(f"{sources}{kit.made}".encode()).hexdigest()


def make_channel(kit: Kit, target: Path, cache: Path) -> None:
    """Writes the channel below `target`; does nothing when it was made by the same sources before."""
    stamp, wanted = target / "made-from.txt", fingerprint(kit)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    specs: list[Spec] = []
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        for number, stage in enumerate(_stages(kit, cache)):
            tree = Path(scratch) / f"tree-{number}"
            tree.mkdir()
            spec = stage(tree)
            if spec.noarch is None:
                spec = replace(spec, platform="win-64")
            write_package(spec, tree, target)
            shutil.rmtree(tree)
            specs.append(spec)
    write_index([replace(spec, platform="win-64") for spec in specs], target)
    stamp.write_text(wanted)
