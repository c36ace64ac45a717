"""The few numbers of a target that loop lowering asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """``vector_bits`` is the width of a vector register, ``registers`` how many there are.

    ``may_alias``: two pointer arguments may point to overlapping memory.
    """

    vector_bits: int = 256
    registers: int = 16
    may_alias: bool = True
