"""Tile IR to LLVM IR for one processor."""

from __future__ import annotations

from typing import Any

from ...ir.core import Module
from ...lowering import loops
from .capabilities import Processor, features, machine


def lower(module: Module, cpu: Processor, options: Any) -> loops.Lowered:
    """The module as loops. Raises ``loops.Unsupported`` with the user's source position."""
    wide = f'"prefer-vector-width"="{cpu.vector_bits}" "min-legal-vector-width"="{cpu.vector_bits}"'
    attributes = wide if cpu.vector_bits == 512 else ""
    return loops.lower(module, machine(cpu, options.may_alias), features(cpu, options.enable_fp_fusion), attributes)
