"""LLVM IR to an object file or assembly."""

from __future__ import annotations

from ..._C import libtriton
from .capabilities import Processor

PASSES = "always-inline,function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)"
"""The loops are already as they should be: what is left is to share and to simplify."""


_BF16_CONVERSIONS = frozenset({"+avx512bf16", "+avxneconvert"})
"""LLVM keeps bf16 scalars from block to block as f32 where these are, and their way back takes denormals for zeros."""

_BF16_PRODUCTS = "@llvm.x86.avx512bf16."


def _features(text: str, cpu: Processor) -> str:
    if _BF16_PRODUCTS in text:
        return cpu.features
    return ",".join("-" + f[1:] if f in _BF16_CONVERSIONS else f for f in cpu.features.split(","))


def compile(text: str, cpu: Processor, emit: tuple[str, ...] = ("obj",)) -> libtriton.CompileResult:
    """Optimised machine code. ``emit``: ``obj`` (bytes), ``asm``, ``ll`` (text). Also ``timings``. Raises LLVMError."""
    return libtriton.compile_ir(
        text, triple=cpu.triple, cpu=cpu.cpu, features=_features(text, cpu), passes=PASSES, emit=emit, opt_level=2
    )
