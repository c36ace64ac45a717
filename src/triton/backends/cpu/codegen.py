"""LLVM IR to an object file or assembly."""

from __future__ import annotations

from ..._C import libtriton
from .capabilities import Processor

PASSES = "always-inline,function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)"
"""The loops are already as they should be: what is left is to share and to simplify."""


def compile(text: str, cpu: Processor, emit: tuple[str, ...] = ("obj",)) -> libtriton.CompileResult:
    """Optimised machine code. ``emit``: ``obj`` (bytes), ``asm``, ``ll`` (text). Also ``timings``. Raises LLVMError."""
    return libtriton.compile_ir(
        text, triple=cpu.triple, cpu=cpu.cpu, features=cpu.features, passes=PASSES, emit=emit, opt_level=2
    )
