"""The few numbers of a target that loop lowering asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """``vector_bits`` is the width of a vector register, ``registers`` how many there are.

    ``masked_access``   masked vector loads and stores of 32- and 64-bit elements are single instructions.
    ``masked_small``    the same for 8- and 16-bit elements.
    ``may_alias``       two pointer arguments may point to overlapping memory.
    """

    vector_bits: int = 256
    registers: int = 16
    masked_access: bool = True
    masked_small: bool = False
    may_alias: bool = True
