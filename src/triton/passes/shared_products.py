"""Turns products whose operands are to be read from shared memory into asynchronous ones.

Requires: stage ``layout``, after ``pipeline_loads``; a target whose hook says which products its instructions read from
memory.
Ensures: each such ``dot`` is a ``dot_shared`` and a ``dot_wait``. An operand that ``pipeline_loads`` put into slots is
read where it lies, transposed or not; b otherwise is stored to a slot of its own first, a stays in registers. In a loop
marked ``in_flight`` a product is awaited one trip later, the last one after the loop.

    %x = shared_load %p, %slot
    %y = shared_load %q, %slot         =>      %s = dot_shared %p, %slot, %q, %slot, %acc
    %r = dot %x, %y, %acc                      %r = dot_wait %s
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..ir.builder import Builder
from ..ir.core import Block, Module, Op, Value
from ..ir.types import SharedType, TensorType, i32
from ..layouts.linear import LinearLayout
from .assign_layouts import layouts_of

Uses = Callable[[Op], bool]


@dataclass(slots=True)
class _Head:
    """What goes to the function's head."""

    layouts: dict[str, LinearLayout]
    rooms: list[Op] = field(default_factory=list)


def shared_products(module: Module, from_shared: Uses) -> Module:
    """Rewrites every dot for which ``from_shared`` holds."""
    for function in module.functions.values():
        head = _Head(layouts_of(module))
        _block(function.body, from_shared, head)
        function.body.ops = head.rooms + function.body.ops
    return module


def _left_running(op: Op, from_shared: Uses) -> Op | None:
    """The product of a loop that may go on while the next trip begins."""
    if op.kind != "for" or not op.attrs.get("in_flight"):
        return None
    (product,) = (inner for inner in op.regions[0].ops if inner.kind == "dot")
    return product if from_shared(product) else None


def _block(block: Block, from_shared: Uses, head: _Head, running: Op | None = None) -> None:
    old, block.ops = block.ops, []
    b = Builder(block)
    replaced: dict[Value, Value] = {}
    for op in old:
        op.operands = [replaced.get(v, v) for v in op.operands]
        inside = _left_running(op, from_shared)
        for region in op.regions:
            _substitute(region, replaced)
            _block(region, from_shared, head, inside)
        if inside is not None:
            block.ops.append(op)
            index = inside.operands[2].index - 1
            b.loc = op.loc
            replaced[op.results[index]] = b.dot_wait(op.results[index])
            continue
        if op.kind != "dot" or not from_shared(op):
            block.ops.append(op)
            continue
        b.loc = op.loc
        replaced[op.results[0]] = _product(b, op, head, 1 if op is running else 0)


def _substitute(block: Block, replaced: dict[Value, Value]) -> None:
    if replaced:
        for op in block.walk():
            op.operands = [replaced.get(v, v) for v in op.operands]


def _product(b: Builder, op: Op, head: _Head, pending: int) -> Value:
    left, right, acc = op.operands[:3]
    found = _in_slots(left)
    a, a_slot, a_turned = found or (left, b.const(0, i32), False)
    held = _in_slots(right)
    if held is None:
        type = right.type
        assert isinstance(type, TensorType)
        attrs = {"inner": 1, "block": block} if any(block := head.layouts[str(type.layout)].block) else {"inner": 1}
        room = Op("alloc_shared", (), [SharedType(1, TensorType(type.shape, type.element))], attrs, (), op.loc)
        head.rooms.append(room)
        first = b.const(0, i32)
        b.shared_store(room.results[0], first, right)
        held = room.results[0], first, False
    turned = {}
    if a_turned:
        turned["a_transposed"] = True
    if held[2]:
        turned["b_transposed"] = True
    begun = b.dot_shared(a, a_slot, held[0], held[1], acc, **turned)
    result: Value = b.dot_wait(begun, pending=pending)
    return result


def _in_slots(value: Value) -> tuple[Value, Value, bool] | None:
    """Buffer, slot and whether it is read transposed, when the value is a tile in shared memory."""
    turned = False
    op = value.op
    while op is not None and op.kind == "permute" and op.attrs["order"] == (1, 0):
        turned = not turned
        op = op.operands[0].op
    if op is None or op.kind != "shared_load":
        return None
    return op.operands[0], op.operands[1], turned
