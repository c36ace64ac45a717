"""LLVM IR to an AMD code object: an object file by LLVM, linked by ``ld.lld`` into what the HIP runtime loads (an
``hsaco``)."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..._C import libtriton
from ..tools import find_bitcode, find_programs
from .capabilities import chip_of, isa_version
from .codeobject import Note, read_note

TRIPLE = "amdgcn-amd-amdhsa"
PASSES = (
    "always-inline,globaldce,infer-address-spaces,function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm<allowspeculation>),early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,sink),"
    "amdgpu-attributor"
)
"""Pointers that come from kernel arguments are found to be global; the rest shares, simplifies and moves out of
loops. The last one finds out which of the runtime's hidden arguments and registers a kernel does without."""
CODE_OBJECT_VERSION = 500
_LLD_PACKAGES = ("_rocm_sdk_core/lib/llvm/bin", "_rocm_sdk_devel/lib/llvm/bin")
_ROCM_FOLDERS = ("llvm/bin", "lib/llvm/bin")


class LinkError(RuntimeError):
    """ld.lld refused the object (the message is its own), or a library to link is not there."""


def compile_object(text: str, arch: str, features: str, emit: str = "obj") -> Any:
    """An object file (``obj``) or assembly (``asm``) for ``arch``. Raises LLVMError, LinkError (no device library)."""
    library = libraries(text)
    if library:
        text += device_constants(arch)
    made = libtriton.compile_ir(
        text,
        triple=TRIPLE,
        cpu=arch.split(":")[0],
        features=features,
        passes=PASSES,
        emit=(emit,),
        bitcode=tuple(path.read_bytes() for path in library),
    )
    return dict(made)[emit]


def libraries(text: str) -> list[Path]:
    """The device libraries that the calls in ``text`` need, in the order in which they are linked."""
    needed = [name for name in ("ocml", "ockl") if f"@__{name}_" in text]
    try:
        return [find_bitcode(name) for name in needed]
    except FileNotFoundError as error:
        raise LinkError(str(error)) from error


def device_constants(arch: str) -> str:
    """The constants by which the device libraries choose their code: full precision, denormals kept, this processor."""
    values = {
        "__oclc_finite_only_opt": "i8 0",
        "__oclc_unsafe_math_opt": "i8 0",
        "__oclc_daz_opt": "i8 0",
        "__oclc_correctly_rounded_sqrt32": "i8 1",
        "__oclc_wavefrontsize64": f"i8 {int(chip_of(arch).lanes == 64)}",
        "__oclc_ISA_version": f"i32 {isa_version(arch)}",
        "__oclc_ABI_version": f"i32 {CODE_OBJECT_VERSION}",
    }
    lines = (f"@{name} = linkonce_odr hidden addrspace(4) constant {value}" for name, value in values.items())
    return "\n".join(lines) + "\n"


def find_linker() -> list[str] | None:
    """The command that links code objects; None when there is none."""
    places = find_programs("ld.lld", "TRITON_HIP_LLD_PATH", _LLD_PACKAGES)
    if not places:
        roots = filter(None, (os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), "/opt/rocm"))
        suffix = ".exe" if os.name == "nt" else ""
        candidates = [Path(root) / folder / f"ld.lld{suffix}" for root in roots for folder in _ROCM_FOLDERS]
        places = [place for place in candidates if place.is_file()]
    for place in places:
        if linker_release(str(place)) >= 15:  # older ones do not know code object version 5
            return [str(place)]
    zig = find_programs("zig", "TRITON_ZIG_PATH", ("ziglang",))  # has LLD inside
    return [str(zig[0]), "ld.lld"] if zig else None


@functools.lru_cache
def linker_release(path: str) -> int:
    """Such as 22; 0 when the program does not say."""
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    words = shown.partition("LLD ")[2].split(".")
    return int(words[0]) if words[0].isdigit() else 0


def link(obj: bytes, command: Sequence[str]) -> bytes:
    """The code object. Raises LinkError with the linker's message."""
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:
        source, target = Path(folder) / "kernel.o", Path(folder) / "kernel.hsaco"
        source.write_bytes(obj)
        flags = ["-shared", "--no-undefined", "--build-id=none", source.name, "-o", target.name]
        done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            raise LinkError(f"ld.lld ended with {done.returncode}: {done.stderr}")
        return target.read_bytes()


def is_linked(binary: bytes) -> bool:
    """Whether an ELF file is a shared object (type 3), not an object file still to be linked (type 1)."""
    return binary[:4] == b"\x7fELF" and int.from_bytes(binary[16:18], "little") == 3


def kernel_note(binary: bytes, name: str) -> Note:
    """What the code object's metadata says of the kernel."""
    return read_note(binary, name)


def tools_hash() -> str:
    """Changes with the linker and the device libraries."""
    parts = [" ".join(find_linker() or ["none"])]
    for name in ("ocml", "ockl"):
        try:
            path = find_bitcode(name)
            parts.append(f"{path}{path.stat().st_size}")
        except FileNotFoundError:
            parts.append("none")
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
