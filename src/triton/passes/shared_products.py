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

from ..ir.builder import Builder
from ..ir.core import Block, Module, Op, Value
from ..ir.types import SharedType, TensorType, i32
from .assign_layouts import layouts_of

Uses = Callable[[Op], bool]
_Place = tuple[Value, Value, bool]


def shared_products(module: Module, from_shared: Uses, k_inside: Uses) -> Module:
    """Rewrites every dot for which ``from_shared`` holds; ``k_inside`` says which need operands with K as the inner
    axis."""
    for function in module.functions.values():
        rewriter = _Rewriter(module, from_shared, k_inside)
        rewriter.block(function.body)
        function.body.ops = rewriter.head + function.body.ops
    return module


class _Rewriter:
    def __init__(self, module: Module, from_shared: Uses, k_inside: Uses) -> None:
        self.from_shared, self.k_inside = from_shared, k_inside
        self.layouts = layouts_of(module)
        self.head: list[Op] = []  # buffers, made first of all

    def block(self, block: Block, running: Op | None = None) -> None:
        old, block.ops = block.ops, []
        b = Builder(block)
        replaced: dict[Value, Value] = {}
        for op in old:
            op.operands = [replaced.get(v, v) for v in op.operands]
            b.loc = op.loc
            inside = self.left_running(op)
            for region in op.regions:
                _substitute(region, replaced)
                self.block(region, inside)
            if op.kind != "dot" or not self.from_shared(op):
                block.ops.append(op)
                if inside is not None:
                    index = inside.operands[2].index - 1
                    replaced[op.results[index]] = b.dot_wait(op.results[index])
                continue
            # What reads its left operand from registers made in this trip must be done before they are made anew.
            left = op.operands[0]
            here = left.owner is block or left.op in old
            stays = op is running and (not here or self.place(op, 0) is not None)
            replaced[op.results[0]] = self.product(b, op, 1 if stays else 0)

    def left_running(self, op: Op) -> Op | None:
        """The product of a loop that may go on while the next trip begins."""
        if op.kind != "for" or not op.attrs.get("in_flight"):
            return None
        products = [inner for inner in op.regions[0].ops if inner.kind == "dot"]
        return products[0] if len(products) == 1 and self.from_shared(products[0]) else None

    def room(self, op: Op, type: object, inner: int) -> Value:
        """A buffer of one slot."""
        assert isinstance(type, TensorType)
        held = SharedType(1, TensorType(type.shape, type.element))
        block = self.layouts[str(type.layout)].block
        attrs = {"inner": inner, "block": block} if any(block) else {"inner": inner}
        self.head.append(Op("alloc_shared", (), [held], attrs, (), op.loc))
        return self.head[-1].results[0]

    def product(self, b: Builder, op: Op, pending: int) -> Value:
        left, right, acc = op.operands[:3]
        a, a_slot, a_turned = self.place(op, 0) or (left, b.const(0, i32), False)
        held = self.place(op, 1)
        if held is None:
            room = self.room(op, right.type, 0 if self.k_inside(op) else 1)
            if pending:
                acc = b.dot_wait(acc)  # the product before may be reading what is to be overwritten
            first = b.const(0, i32)
            b.shared_store(room, first, right)
            held = room, first, False
        turned = {}
        if a_turned:
            turned["a_transposed"] = True
        if held[2]:
            turned["b_transposed"] = True
        begun = b.dot_shared(a, a_slot, held[0], held[1], acc, **turned)
        result: Value = b.dot_wait(begun, pending=pending)
        return result

    def place(self, op: Op, which: int) -> _Place | None:
        """Buffer, slot and whether it is read transposed, when an operand of ``op`` lies in shared memory as it can be
        read."""
        value = op.operands[which]
        turned = False
        made = value.op
        while made is not None and made.kind == "permute" and made.attrs["order"] == (1, 0):
            turned = not turned
            made = made.operands[0].op
        if made is None or made.kind != "shared_load":
            return None
        room, inner = made.operands[0].op, 1 - which
        assert room is not None
        if self.k_inside(op) and room.attrs["inner"] != (1 - inner if turned else inner):
            return None
        return made.operands[0], made.operands[1], turned


def _substitute(block: Block, replaced: dict[Value, Value]) -> None:
    if replaced:
        for op in block.walk():
            op.operands = [replaced.get(v, v) for v in op.operands]
