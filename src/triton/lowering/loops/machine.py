"""What loop lowering asks of a target: a few numbers, and its instructions for products of narrow numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.types import ElementType, ScalarType
from ..writer import FunctionWriter


@dataclass(frozen=True, slots=True)
class GroupedProduct:
    """An instruction that adds to each 32-bit lane of ``acc`` the products of ``group`` neighbours in that lane.

        acc[lane] += a[lane][0] * b[lane][0] + ... + a[lane][group - 1] * b[lane][group - 1]

    ``left`` and ``right`` are the types that the operands are converted to; ``emit(w, acc, a, b, lanes)`` writes it
    for operands that are vectors of ``lanes`` 32-bit integers.

    ``shifted``: the instruction takes ``left`` as unsigned numbers. It gets a + 2^(bits - 1), so that sums come out
    too large by that much times the sum of the b.
    """

    left: ScalarType
    right: ScalarType
    group: int
    emit: Callable[[FunctionWriter, str, str, str, int], str]
    shifted: bool = False


def _no_grouped(left: ElementType, right: ElementType, acc: ElementType, lanes: int) -> GroupedProduct | None:
    return None


@dataclass(frozen=True, slots=True)
class Machine:
    """``vector_bits`` is the width of a vector register, ``registers`` how many there are.

    ``may_alias``: two pointer arguments may point to overlapping memory. ``grouped``: the instruction for products of
    two types that are summed up in a third, in vectors of so many lanes.
    """

    vector_bits: int = 256
    registers: int = 16
    may_alias: bool = True
    grouped: Callable[[ElementType, ElementType, ElementType, int], GroupedProduct | None] = _no_grouped
