"""Sums over the same data as one reduction of several values, so that their loops are one.

    a = sum(x * y)        a, b = sum(x * y, x)
    b = sum(x)

Only sums that do not need each other and that read some of the same memory; ``x`` above is then read once.
"""

from __future__ import annotations

from ...ir.core import Block, Function, Op, Value
from ...ir.ops import OPS
from ...ir.types import TensorType, element_of, shape_of
from .regions import single_op

_MOST = 4
"""Sums in one loop: each takes registers for its partial results."""


def merge(function: Function) -> None:
    """Merges what can be merged in each block of ``function``."""
    blocks = [function.body, *(region for op in function.body.walk() for region in op.regions)]
    for block in blocks:
        if sum(op.kind == "reduce" for op in block.ops) > 1:
            _merge_in(block, function)


def _merge_in(block: Block, function: Function) -> None:
    at = {op: i for i, op in enumerate(block.ops)}
    groups: list[list[Op]] = []
    sources: dict[Op, set[Value]] = {}
    for op in block.ops:
        if op.kind != "reduce" or not _is_sum(op):
            continue
        sources[op] = _reads(op)
        for group in groups:
            first = group[0]
            same = first.attrs == op.attrs and shape_of(first.operands[0].type) == shape_of(op.operands[0].type)
            ready = op.operands[0].op is None or at.get(op.operands[0].op, -1) < at[first]
            if same and ready and len(group) < _MOST and sources[first] & sources[op]:
                group.append(op)
                break
        else:
            groups.append([op])
    replaced: dict[Value, Value] = {}
    for group in groups:
        if len(group) > 1:
            joined = _joined(group)
            replaced.update(zip([op.result for op in group], joined.results, strict=True))
            gone = set(group[1:])
            block.ops = [joined if op is group[0] else op for op in block.ops if op not in gone]
    if replaced:
        for user in function.body.walk():
            user.operands = [replaced.get(v, v) for v in user.operands]


def _is_sum(op: Op) -> bool:
    combine = single_op(op.regions[0])
    element = element_of(op.operands[0].type)
    return len(op.operands) == 1 and combine is not None and combine.kind == "add" and element.bits >= 32


def _reads(op: Op) -> set[Value]:
    """The loads below a reduction that are computed in its loop."""
    found: set[Value] = set()
    seen: set[Value] = set()
    work = list(op.operands)
    while work:
        value = work.pop()
        maker = value.op
        if value in seen or maker is None or not isinstance(value.type, TensorType):
            continue
        seen.add(value)
        if maker.kind == "load":
            found.add(value)
        elif OPS[maker.kind].elementwise or maker.kind == "broadcast":
            work += maker.operands
    return found


def _joined(group: list[Op]) -> Op:
    types = [element_of(op.operands[0].type) for op in group]
    combine = Block(types * 2)
    half = len(group)
    for i, op in enumerate(group):
        inner = single_op(op.regions[0])
        assert inner is not None
        add = Op("add", [combine.args[i], combine.args[half + i]], [types[i]], dict(inner.attrs), loc=inner.loc)
        combine.ops.append(add)
    combine.ops.append(Op("yield", [op.result for op in combine.ops]))
    operands = [op.operands[0] for op in group]
    return Op("reduce", operands, [op.result.type for op in group], dict(group[0].attrs), [combine], group[0].loc)
