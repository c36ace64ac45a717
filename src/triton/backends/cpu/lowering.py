"""Tile IR to LLVM IR for one processor."""

from __future__ import annotations

from typing import Any

from ...ir.core import Module
from ...lowering import loops
from ...lowering.loops import Machine, Unsupported
from ...lowering.writer import Features
from .capabilities import Processor
from .products import grouped
from .scalef import scale

__all__ = ["Unsupported", "features", "lower", "machine"]


def features(cpu: Processor, fusion: bool) -> Features:
    """What element-wise lowering may count on."""
    fma = cpu.has("fma") or cpu.has("avx512f")
    return Features(
        fma=fma,
        half_convert=cpu.has("f16c"),
        half_arith=False,
        contract=fusion and fma,
        scale=scale if cpu.vector_bits == 512 and cpu.has("avx512dq") else None,
    )


def machine(cpu: Processor, may_alias: bool, fusion: bool = True) -> Machine:
    """What loop lowering may count on."""
    wide = cpu.vector_bits == 512
    return Machine(
        vector_bits=cpu.vector_bits,
        registers=32 if wide else 16,
        may_alias=may_alias,
        grouped=grouped(cpu, fusion),
    )


def lower(module: Module, cpu: Processor, options: Any) -> loops.Lowered:
    """The module as loops. Raises ``loops.Unsupported`` with the user's source position."""
    wide = f'"prefer-vector-width"="{cpu.vector_bits}" "min-legal-vector-width"="{cpu.vector_bits}"'
    attributes = wide if cpu.vector_bits == 512 else ""
    fusion = options.enable_fp_fusion
    return loops.lower(module, machine(cpu, options.may_alias, fusion), features(cpu, fusion), attributes)
