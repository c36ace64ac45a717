"""Machine code as text."""

from __future__ import annotations

from .. import knobs


def path_to_cuobjdump() -> tuple[str, str]:
    """Path and version of ``cuobjdump``. Raises RuntimeError when it is not there."""
    tool = knobs.nvidia.cuobjdump
    return tool.path, tool.version


def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The SASS of a CUDA code object, optionally of one function."""
    path_to_cuobjdump()
    raise NotImplementedError("get_sass: disassembling CUDA code objects comes with the CUDA back end")
