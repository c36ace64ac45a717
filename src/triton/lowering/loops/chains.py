"""Products of small K that are added up one after another, as one product.

    r = dot a0, b0, c              a = cat a0, a1 {axis = 1}       [a0 a1] x [b0] + c
    s = dot a1, b1, r        =>    b = cat b0, b1 {axis = 0}                 [b1]
                                   s = dot a, b, c

Sums stay in registers instead of going to memory and back for each few products, and there is one kernel to compile.
Here, and nowhere else, a ``cat`` may have more than two operands.
"""

from __future__ import annotations

from ...ir.core import Block, Function, Op, Value
from ...ir.types import TensorType, element_of, shape_of

_SMALL = 32
_TOTAL = 96
"""Sizes of K: of one product that is worth joining to others, and of the whole."""


def join(function: Function) -> None:
    """Joins what can be joined in each block of ``function``."""
    uses: dict[Value, int] = {}
    for op in function.body.walk():
        for operand in op.operands:
            uses[operand] = uses.get(operand, 0) + 1
    for block in [function.body, *(region for op in function.body.walk() for region in op.regions)]:
        if sum(op.kind == "dot" for op in block.ops) > 1:
            _join_in(block, uses)


def _join_in(block: Block, uses: dict[Value, int]) -> None:
    chains: dict[Value, list[Op]] = {}  # by the result of the last product so far
    for op in block.ops:
        if op.kind != "dot" or len(shape_of(op.results[0].type)) != 2 or _k(op) > _SMALL:
            continue
        before = chains.get(op.operands[2], [])
        fits = before and uses[op.operands[2]] == 1 and sum(map(_k, before)) + _k(op) <= _TOTAL
        if fits and _alike(before[0], op):
            del chains[op.operands[2]]
            chains[op.results[0]] = [*before, op]
        else:
            chains[op.results[0]] = [op]
    for chain in chains.values():
        if len(chain) > 1:
            _replace(block, chain)


def _k(op: Op) -> int:
    return shape_of(op.operands[0].type)[1]


def _alike(a: Op, b: Op) -> bool:
    same = all(element_of(x.type) == element_of(y.type) for x, y in zip(a.operands, b.operands, strict=True))
    return same and a.attrs == b.attrs


def _replace(block: Block, chain: list[Op]) -> None:
    first, last = chain[0], chain[-1]
    total = sum(map(_k, chain))
    m, n = shape_of(last.results[0].type)
    left, right = (element_of(v.type) for v in first.operands[:2])
    a = Op("cat", [op.operands[0] for op in chain], [TensorType((m, total), left)], {"axis": 1}, loc=last.loc)
    b = Op("cat", [op.operands[1] for op in chain], [TensorType((total, n), right)], {"axis": 0}, loc=last.loc)
    last.operands = [a.results[0], b.results[0], first.operands[2]]
    gone = set(chain[:-1])
    ops: list[Op] = []
    for op in block.ops:
        if op is last:
            ops += [a, b]
        if op not in gone:
            ops.append(op)
    block.ops = ops
