"""LLVM IR to PTX, and PTX to a cubin by ``ptxas``; where there is no ptxas the driver compiles the PTX itself."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ..._C import libtriton
from ..tools import find_file, find_programs
from .capabilities import ptx_version, target_name

TRIPLE = "nvptx64-nvidia-cuda"
PASSES = (
    "nvvm-reflect,always-inline,globaldce,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm<allowspeculation>),early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,sink)"
)
"""The lowering writes what is needed and little else: what remains is to share, simplify and move out of loops."""
_PTXAS_PACKAGES = ("nvidia/cu1*/bin", "nvidia/cuda_nvcc/bin", "nvidia/cuda_nvcc_cu12/bin")


class PTXASError(RuntimeError):
    """ptxas refused the PTX; the message is its own."""


def make_ptx(text: str, arch: int, version: int | None) -> str:
    """PTX text for compute capability ``arch``. Raises LLVMError."""
    features = f"+ptx{version or ptx_version(arch)}"
    library = (find_libdevice(arch).read_bytes(),) if "@__nv_" in text else ()
    made = libtriton.compile_ir(
        text, triple=TRIPLE, cpu=target_name(arch), features=features, passes=PASSES, emit=("asm",), bitcode=library
    )
    return str(made["asm"])


@functools.lru_cache
def find_libdevice(arch: int) -> Path:
    """NVIDIA's bitcode library of mathematical functions. Raises FileNotFoundError with the places looked at."""
    name = "libdevice.10.bc"
    given = os.environ.get("TRITON_LIBDEVICE_PATH")
    places = [Path(given) if given.endswith(".bc") else Path(given) / name] if given else []
    ptxas = find_ptxas(arch)
    prefixes = [os.environ.get("CONDA_PREFIX"), sys.prefix, os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    if ptxas is not None:
        prefixes.append(str(ptxas.resolve().parents[1]))
    places += [Path(p) / "nvvm" / "libdevice" / name for p in dict.fromkeys(filter(None, prefixes))]
    for place in places:
        if place.is_file():
            return place
    found = find_file([f"nvidia/{p}/nvvm/libdevice/{name}" for p in ("cu1*", "cuda_nvcc", "cuda_nvvm")])
    if found is None:
        shown = ", ".join(map(str, places))
        raise FileNotFoundError(
            f"this kernel needs {name} of the CUDA toolkit (set TRITON_LIBDEVICE_PATH); looked at {shown}"
        )
    return found


def find_ptxas(arch: int) -> Path | None:
    """The first ptxas that knows ``arch``: releases from 13.0 on have dropped compute capabilities below 7.5, and each
    new one came with a release (CUDA Toolkit release notes, "ptxas")."""
    oldest = 12.9 if arch >= 103 and arch != 120 else 12.8 if arch >= 100 else 11.8 if arch >= 89 else 11.1
    for ptxas in find_programs("ptxas", "TRITON_PTXAS_PATH", _PTXAS_PACKAGES):
        release = float(ptxas_release(str(ptxas)) or 0)
        if release >= oldest and not (release >= 13.0 and arch < 75):
            return ptxas
    return None


@functools.lru_cache
def ptxas_release(path: str) -> str:
    """Such as ``13.0``; empty when the program does not say."""
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+\.\d+)", shown)
    return found.group(1) if found else ""


def make_cubin(ptx: str, arch: int, extra: str | None) -> tuple[bytes, str]:
    """The cubin and what ptxas said of registers and spills; the PTX itself, as bytes, where no ptxas is found."""
    ptxas = find_ptxas(arch)
    if ptxas is None:
        return ptx.encode(), ""
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(ptx.encode())
        # Names without their folder: its letters need not be ones that ptxas can read.
        command = [
            str(ptxas),
            f"-arch={target_name(arch)}",
            "-v",
            *(extra or "").split(),
            source.name,
            "-o",
            target.name,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            shown = "\n".join((done.stderr or done.stdout).splitlines())
            raise PTXASError(f"ptxas {ptxas_release(str(ptxas))} ended with {done.returncode}: {shown}")
        return target.read_bytes(), done.stdout + done.stderr  # Windows' ptxas uses the first


def disassemble(cubin: bytes) -> str | None:
    """SASS, by ``nvdisasm`` or ``cuobjdump`` where one is found."""
    for name, variable, flags in (
        ("nvdisasm", "TRITON_NVDISASM_PATH", ["-c"]),
        ("cuobjdump", "TRITON_CUOBJDUMP_PATH", ["-sass"]),
    ):
        for program in find_programs(name, variable, _PTXAS_PACKAGES)[:1]:
            with tempfile.TemporaryDirectory(prefix="triton-") as folder:
                Path(folder, "kernel.cubin").write_bytes(cubin)
                command = [str(program), *flags, "kernel.cubin"]
                shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
            if shown.returncode == 0:
                return shown.stdout
    return None
