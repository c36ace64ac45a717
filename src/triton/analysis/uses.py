"""Who uses each value: one walk over the function, terminators included."""

from __future__ import annotations

from ..ir.core import Block, Function, Op, Value


def count_uses(function: Function) -> dict[Value, int]:
    """How often each value stands as an operand; unused values are absent."""
    counts: dict[Value, int] = {}
    for op in function.body.walk():
        for value in op.operands:
            counts[value] = counts.get(value, 0) + 1
    return counts


def find_uses(function: Function) -> dict[Value, list[tuple[Op, int]]]:
    """For each used value the (op, operand index) pairs, in program order."""
    uses: dict[Value, list[tuple[Op, int]]] = {}
    for op in function.body.walk():
        for index, value in enumerate(op.operands):
            uses.setdefault(value, []).append((op, index))
    return uses


def parents(function: Function) -> dict[Block, Op]:
    """For each region the op it belongs to; the function's own body is absent."""
    return {region: op for op in function.body.walk() for region in op.regions}
