"""LLVM IR to PTX, and PTX to a cubin by ``ptxas``; where there is no ptxas the driver compiles the PTX itself."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path

from ..._C import libtriton
from ..tools import find_program
from .capabilities import ptx_version, target_name

TRIPLE = "nvptx64-nvidia-cuda"
PASSES = (
    "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm<allowspeculation>),early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,sink)"
)
"""The lowering writes what is needed and little else: what remains is to share, simplify and move out of loops."""
_PTXAS_PACKAGES = ("nvidia/cu1*/bin", "nvidia/cuda_nvcc/bin", "nvidia/cuda_nvcc_cu12/bin")


class PTXASError(RuntimeError):
    """ptxas refused the PTX; the message is its own."""


def make_ptx(text: str, arch: int, version: int | None) -> str:
    """PTX text for compute capability ``arch``. Raises LLVMError."""
    features = f"+ptx{version or ptx_version(arch)}"
    made = libtriton.compile_ir(text, triple=TRIPLE, cpu=target_name(arch), features=features, passes=PASSES, emit=("asm",))
    return str(made["asm"])


def find_ptxas() -> Path | None:
    return find_program("ptxas", "TRITON_PTXAS_PATH", _PTXAS_PACKAGES)


@functools.lru_cache
def ptxas_release(path: str) -> str:
    """Such as ``13.0``; empty when the program does not say."""
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+\.\d+)", shown)
    return found.group(1) if found else ""


def make_cubin(ptx: str, arch: int, extra: str | None) -> tuple[bytes, str]:
    """The cubin and what ptxas said of registers and spills; the PTX itself, as bytes, where no ptxas is found."""
    ptxas = find_ptxas()
    if ptxas is None:
        return ptx.encode(), ""
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [str(ptxas), f"-arch={target_name(arch)}", "-v", *(extra or "").split(), str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            shown = "\n".join(line.replace(str(source), "kernel.ptx") for line in (done.stderr or done.stdout).splitlines())
            raise PTXASError(f"ptxas {ptxas_release(str(ptxas))} ended with {done.returncode}: {shown}")
        return target.read_bytes(), done.stderr


def disassemble(cubin: bytes) -> str | None:
    """SASS, by ``nvdisasm`` or ``cuobjdump`` where one is found."""
    for name, variable, flags in (("nvdisasm", "TRITON_NVDISASM_PATH", ["-c"]), ("cuobjdump", "TRITON_CUOBJDUMP_PATH", ["-sass"])):
        program = find_program(name, variable, _PTXAS_PACKAGES)
        if program is not None:
            with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
                file.write(cubin)
                file.flush()
                shown = subprocess.run([str(program), *flags, file.name], capture_output=True, text=True, check=False)
            if shown.returncode == 0:
                return shown.stdout
    return None
