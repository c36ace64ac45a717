"""Gives descriptors whose parts a launch knows the form by which the machine copies boxes.

Requires: stage ``layout``; a target that copies boxes.
Ensures: for each ``make_desc`` of the kernel's arguments and constants that is as machines want it (see ``regular`` in
the op table) and whose boxes the target can copy, the kernel has one more argument, which the launch makes of the
others, and a ``box_map`` follows. The argument's attributes say of what: ``map_of`` the numbers of the arguments that
are base, sizes and strides, -1 for one that is the constant beside it in ``map_values``; ``map_box`` and
``map_padding``. Where a size may be 0, boxes are looked for far outside: no machine has tensors without elements.

    @k(%p, %m, %n, %s, %t) {                               @k(%p, %m, %n, %s, %t, %p_map: ptr<u8>) {
      %d = make_desc %p, %m, %n, %s, %t {regular}   =>       %d = make_desc %p, %m, %n, %s, %t {regular}
      %x = desc_load %d, %i, %j                              %q = box_map %d {argument = 5}
                                                             %x = desc_load %d, %i, %j
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.axis import AxisInfo
from ..ir.builder import Builder
from ..ir.core import Block, Function, Module, Op, Value
from ..ir.types import DescriptorType, PointerType, ScalarType, TensorType, i32, u8

ALIGNMENT = 16
"""Bytes that base and strides are multiples of."""
FAR = 1 << 30


@dataclass(frozen=True, slots=True)
class BoxOptions:
    """``can_load(block, padding)`` and ``can_store(block, update)`` say what the target copies; the place of a box
    along its last axis is a multiple of ``alignment`` bytes, and with ``stores_from_zero`` none that is written begins
    before the tensor; ``shared_bytes`` is what buffers may take."""

    can_load: Callable[[TensorType, str], bool]
    can_store: Callable[[TensorType, str], bool]
    shared_bytes: int
    alignment: int = 1
    stores_from_zero: bool = False


def is_aligned(offset: Value, block: TensorType, facts: dict[Value, AxisInfo], alignment: int) -> bool:
    """Whether a box at this place along the last axis is certain to lie as the machine wants it."""
    info = facts.get(offset)
    return (1 if info is None else info.divisibility[0]) * max(1, block.element.bits // 8) % alignment == 0


def box_maps(module: Module, options: BoxOptions) -> Module:
    """Rewrites the kernel; see the head of this file."""
    kernel = module.kernel
    users: dict[Value, list[Op]] = {}
    for op in kernel.body.walk():
        for value in op.operands:
            users.setdefault(value, []).append(op)
    made = Block()
    aways: dict[Value, Value] = {}
    for op in kernel.body.ops:
        made.ops.append(op)
        if op.kind == "make_desc":
            parts = _parts(kernel, op)
            uses = users.get(op.results[0], [])
            if parts is not None and _copies(op, uses, options):
                b = Builder(made, op.loc)
                b.box_map(op.results[0], argument=_add_argument(kernel, op, parts))
                away = None if op.attrs.get("regular") else _away(b, op)
                if away is not None:
                    aways[op.results[0]] = away
    kernel.body.ops = made.ops
    if aways:
        _move_offsets(kernel.body, aways)
    return module


def maps_of(function: Function) -> dict[Value, Value]:
    """The descriptors that have such a form, and it."""
    return {op.operands[0]: op.results[0] for op in function.body.walk() if op.kind == "box_map"}


def _block(op: Op) -> TensorType:
    type = op.results[0].type
    assert isinstance(type, DescriptorType)
    return type.block


Part = tuple[int, int]
"""Number of an argument and 0, or -1 and a constant."""


def _part(kernel: Function, value: Value) -> Part | None:
    """What a launch knows of a scalar: that it is an argument, perhaps of a narrower type, or a constant."""
    op = value.op
    while op is not None and op.kind == "cast":
        value, wide = op.operands[0], value
        source, result = value.type, wide.type
        if not isinstance(source, ScalarType) or not isinstance(result, ScalarType):
            return None
        if not (source.kind == result.kind == "int" and source.bits <= result.bits):
            return None
        op = value.op
    if op is not None:
        return (-1, op.attrs["value"]) if op.kind == "constant" else None
    return (value.index, 0) if value.owner is kernel.body else None


def _parts(kernel: Function, op: Op) -> list[Part] | None:
    """Base, sizes and strides, if a launch knows them all and the machine's rules hold for them."""
    parts = [_part(kernel, value) for value in op.operands]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts) or known[0][0] < 0:
        return None
    if op.attrs.get("regular"):
        return known
    rank = len(_block(op).shape)
    element = _block(op).element
    base_fits = kernel.arg_attrs[known[0][0]].get("divisible", 1) % ALIGNMENT == 0
    if not base_fits or known[-1] != (-1, 1):
        return None
    if any(number < 0 and value < 1 for number, value in known[1 : 1 + rank]):
        return None
    for number, value in known[1 + rank : -1]:
        if number < 0 and (value < 0 or value * max(1, element.bits // 8) % ALIGNMENT):
            return None  # others are multiples too: the kernel asserts it
    return known


def _copies(op: Op, users: list[Op], options: BoxOptions) -> bool:
    """Whether some box of the descriptor is copied."""
    block, padding = _block(op), op.attrs.get("padding", "zero")
    if any(user.kind == "desc_load" for user in users):
        return options.can_load(block, padding)
    stores = [user.attrs.get("op", "store") for user in users if user.kind == "desc_store"]
    return any(options.can_store(block, update) for update in stores)


def _add_argument(kernel: Function, op: Op, parts: list[Part]) -> int:
    base, number = kernel.args[parts[0][0]], len(kernel.args)
    kernel.args.append(Value(PointerType(u8), kernel.body, number, f"{base.name or 'arg'}_map"))
    attrs = {"map_of": tuple(p[0] for p in parts), "map_values": tuple(p[1] for p in parts)}
    padding = op.attrs.get("padding", "zero")
    kernel.arg_attrs.append({**attrs, "map_box": _block(op).shape, "map_padding": padding})
    return number


def _away(b: Builder, op: Op) -> Value | None:
    """What to add to an offset so that a tensor without elements has none there; None if it is known to have some."""
    smallest: Value | None = None
    for size in op.operands[1 : 1 + len(_block(op).shape)]:
        if size.op is None or size.op.kind != "constant":
            smallest = size if smallest is None else b.min(smallest, size)
    if smallest is None:
        return None
    empty = b.cmp(smallest, b.const(1, smallest.type), pred="lt")
    away: Value = b.select(empty, b.const(FAR, i32), b.const(0, i32))
    return away


def _move_offsets(block: Block, away: dict[Value, Value]) -> None:
    """Adds to the first offset of every box of these descriptors."""
    made: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _move_offsets(region, away)
        if op.kind in ("desc_load", "desc_store") and op.operands[0] in away:
            place = 1 if op.kind == "desc_load" else 2
            offset = op.operands[place]
            made.append(Op("add", [offset, away[op.operands[0]]], [offset.type], {}, (), op.loc))
            op.operands[place] = made[-1].results[0]
        made.append(op)
    block.ops = made
