"""Tiles in shared memory: slots, asynchronous copies into them, reading and writing them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...analysis.rooms import BARRIER_BYTES, slot_bytes
from ...ir.core import Op, Value
from ...ir.types import PointerType, SharedType, element_of
from ...layouts.boxes import boxes
from ...layouts.linear import LinearLayout
from ...layouts.placement import access_plan
from ...layouts.shared import SharedPlan
from .context import SHARED, SHARED_POINTER, Context, memory_bytes
from .machine import SHARED_SPACE, Pieces
from .memory import access_width


def slot_address(c: Context, buffer: Value, slot: Value) -> str:
    """Byte offset of a slot from the start of shared memory, an i32 operand."""
    assert buffer.op is not None
    size = slot_bytes(buffer.op)
    start = c.rooms.offsets[buffer]
    number = c.scalar(slot)
    if number.value is not None:
        return str(start + int(number.value) * size)
    scaled = c.w.emit(f"mul nuw nsw i32 {number.text}, {size}")
    return c.w.emit(f"add nuw nsw i32 {scaled}, {start}") if start else scaled


def inner_axis(buffer: Value) -> int:
    op = buffer.op
    assert op is not None and op.kind == "alloc_shared"
    inner: int = op.attrs["inner"]
    return inner


def shared_pointer(c: Context, base: str, layout: LinearLayout, plan: SharedPlan, width: int, register: int) -> str:
    """The shared pointer of the element in ``register`` of a tile at byte offset ``base``."""
    lane = [plan.address(v) * width for v in layout.lane]
    outer = [plan.address(v) * width for v in layout.outer]
    thread = c.thread_part(lane, outer)
    mine = plan.address(layout(register)) * width
    if mine:
        thread = str(mine) if thread == "0" else c.w.emit(f"xor i32 {thread}, {mine}")
    at = thread if base == "0" else base if thread == "0" else c.w.emit(f"add nuw nsw i32 {base}, {thread}")
    return c.w.emit(f"getelementptr inbounds i8, {SHARED_POINTER} {SHARED}, i32 {at}")


def alloc_shared(c: Context, op: Op) -> None:
    """Its place is dealt already, see ``analysis/rooms.py``."""
    c.set(op.results[0], [])


def async_copy(c: Context, op: Op) -> None:
    buffer, slot, pointer = op.operands[:3]
    mask = c.tile(op.operands[3]) if len(op.operands) > 3 else None
    layout = c.layout(pointer)
    pointee = element_of(pointer.type)
    assert isinstance(pointee, PointerType)
    width = memory_bytes(pointee.pointee)
    count = access_width(c, pointer, op.operands[3] if mask is not None else None)
    own = c.own(layout)
    plan = access_plan(own, inner_axis(buffer), width)
    count = min(count, plan.vector)
    base = slot_address(c, buffer, slot)
    owner = c.is_first_replica(own)
    in_order = all(plan.address(v) == count << i for i, v in enumerate(own.lane))
    pointers = c.tile(pointer)
    for r in range(0, len(pointers), count):
        inside = c.in_range(layout, r)
        if mask is not None and mask[r].text != "true":
            inside = c.both(inside, mask[r].text)
        target = shared_pointer(c, base, own, plan, width, r)
        c.machine.async_copy(c.w, target, pointers[r], count * width, inside, owner, in_order)


def async_commit(c: Context, op: Op) -> None:
    c.machine.async_commit(c.w)


def async_wait(c: Context, op: Op) -> None:
    c.machine.async_wait(c.w, op.attrs["pending"])
    c.block_barrier()


def shared_load(c: Context, op: Op) -> None:
    buffer, slot = op.operands
    layout, element = c.own(c.layout(op.results[0])), element_of(op.results[0].type)
    width = memory_bytes(element)
    plan = access_plan(layout, inner_axis(buffer), width)
    base = slot_address(c, buffer, slot)
    cells = []
    for r in range(0, layout.registers, plan.vector):
        cells += c.get_shared(
            SHARED_POINTER + " " + shared_pointer(c, base, layout, plan, width, r), element, plan.vector
        )
    c.set(op.results[0], cells)


def shared_store(c: Context, op: Op) -> None:
    """A barrier before, for readers of what was there; one after, for readers of what is now."""
    buffer, slot, value = op.operands
    layout, element = c.own(c.layout(value)), element_of(value.type)
    width = memory_bytes(element)
    plan = access_plan(layout, inner_axis(buffer), width)
    base = slot_address(c, buffer, slot)
    cells = c.tile(value)
    c.block_barrier()
    for r in range(0, layout.registers, plan.vector):
        pointer = shared_pointer(c, base, layout, plan, width, r)
        c.put_shared(f"{SHARED_POINTER} {pointer}", cells[r : r + plan.vector])
    c.machine.shared_written(c.w)
    c.block_barrier()


# Boxes ---------------------------------------------------------------------------------------------------------------


def box_map(c: Context, op: Op) -> None:
    c.set(op.results[0], c.tile(c.function.args[op.attrs["argument"]]))


def _address(c: Context, offset: str) -> str:
    """An i32 address in shared memory."""
    start = c.w.emit(f"ptrtoint ptr addrspace({SHARED_SPACE}) {SHARED} to i32")
    return start if offset == "0" else c.w.emit(f"add nuw nsw i32 {start}, {offset}")


def alloc_barriers(c: Context, op: Op) -> None:
    """Beside the barriers, each thread counts their phases: bit i is the parity of the next one of barrier i."""
    (barriers,) = op.results
    type = barriers.type
    assert isinstance(type, SharedType)
    phases = c.phases[barriers] = c.w.alloca("i32")
    c.w.line(f"store i32 0, ptr {phases}")
    address = _address(c, str(c.rooms.offsets[barriers]))
    c.machine.boxes.make_barriers(c.w, address, type.slots, op.attrs["copies"], c.first_thread())
    c.barrier()
    c.set(barriers, [])


def _barrier(c: Context, barriers: Value, index: Value) -> str:
    start, number = c.rooms.offsets[barriers], c.scalar(index)
    if number.value is not None:
        return _address(c, str(start + BARRIER_BYTES * int(number.value)))
    return _address(c, c.w.emit(f"add nuw nsw i32 {c.w.emit(f'shl nuw nsw i32 {number.text}, 3')}, {start}"))


def barrier_wait(c: Context, op: Op) -> None:
    w, (barriers, index) = c.w, op.operands
    number = c.scalar(index).text
    before = w.emit(f"load i32, ptr {c.phases[barriers]}")
    parity = w.emit(f"and i32 {w.emit(f'lshr i32 {before}, {number}')}, 1")
    c.machine.boxes.wait(w, _barrier(c, barriers, index), parity)
    after = w.emit(f"xor i32 {before}, {w.emit(f'shl i32 1, {number}')}")
    w.line(f"store i32 {after}, ptr {c.phases[barriers]}")


def _pieces(c: Context, buffer: Value, offsets: Sequence[Value]) -> tuple[Pieces, int]:
    """The copies of a box, and how many bytes they move."""
    type = buffer.type
    assert isinstance(type, SharedType)
    width = memory_bytes(type.block.element)
    cut = boxes(type.block.shape, width)
    assert cut is not None
    starts = [c.scalar(v).text for v in offsets]
    moved = {(d, 0): text for d, text in enumerate(starts)}
    for at, _ in cut.copies:
        for d, step in enumerate(at):
            if (d, step) not in moved:
                moved[d, step] = c.w.emit(f"add i32 {starts[d]}, {step}")
    pieces = [(place, [moved[d, step] for d, step in enumerate(at)][::-1]) for at, place in cut.copies]
    return pieces, prod(cut.piece) * len(cut.copies) * width


def box_load(c: Context, op: Op) -> None:
    buffer, slot, barriers, index, _, map, wanted, *offsets = op.operands
    pieces, bytes = _pieces(c, buffer, offsets)
    condition = c.both(c.first_warp(), None if c.scalar(wanted).text == "true" else c.scalar(wanted).text)
    address = _address(c, slot_address(c, buffer, slot))
    c.machine.boxes.load(
        c.w, c.scalar(map).text, pieces, address, _barrier(c, barriers, index), bytes, condition or "true"
    )


def box_store(c: Context, op: Op) -> None:
    buffer, slot, _, map, *offsets = op.operands
    pieces, _ = _pieces(c, buffer, offsets)
    address = _address(c, slot_address(c, buffer, slot))
    update = op.attrs.get("op", "store")
    c.machine.boxes.store(c.w, c.scalar(map).text, pieces, address, update, c.first_thread())


def dot_shared(c: Context, op: Op) -> None:
    c.set(op.results[0], c.machine.dot_shared(c, c.within_block(op)))


def dot_wait(c: Context, op: Op) -> None:
    waited = c.machine.dot_wait(c.w, [c.tile(v) for v in op.operands], op.attrs.get("pending", 0))
    for result, cells in zip(op.results, waited, strict=True):
        c.set(result, cells)
