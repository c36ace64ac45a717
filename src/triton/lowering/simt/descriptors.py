"""Boxes of descriptors by ordinary accesses: base, sizes and strides are scalars.

A box that lies inside its tensor as a whole, at aligned addresses, is accessed several elements at a time and without
masks; that is known when the program runs. Others are accessed element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.core import Op, Value
from ...ir.types import PointerType, SharedType, element_of, i64
from ...layouts.linear import LinearLayout, bit_positions, distribute
from ...layouts.placement import access_plan
from ..writer import Cell, llvm_type
from .context import Context, memory_bytes
from .shared_tiles import shared_pointer, slot_address

MAX_ACCESS_BYTES = 16


def make_desc(c: Context, op: Op) -> None:
    cells = [c.scalar(v) for v in op.operands]
    c.set(op.results[0], [cells[0], *(_to_i64(c, cell) for cell in cells[1:])])
    c.descriptors[op.results[0]] = op.attrs.get("padding", "zero")


def _to_i64(c: Context, cell: Cell) -> Cell:
    if cell.element.bits == 64:
        return Cell(cell.text, i64)
    extend = "sext" if cell.element.is_signed else "zext"
    return Cell(c.w.emit(f"{extend} {cell.type} {cell.text} to i64"), i64)


class _Box:
    """One box of a descriptor, held in ``layout``."""

    def __init__(self, c: Context, descriptor: Value, offsets: Sequence[Value], layout: LinearLayout) -> None:
        self.c, self.w, self.layout = c, c.w, layout
        base, *rest = c.tile(descriptor)
        rank = len(layout.shape)
        assert isinstance(base.element, PointerType)
        self.base, self.pointer, self.width = base, base.element, memory_bytes(base.element.pointee)
        self.sizes, self.strides = [v.text for v in rest[:rank]], [v.text for v in rest[rank:]]
        self.starts = [_to_i64(c, c.scalar(v)).text for v in offsets]

    def run(self) -> int:
        """How many neighbouring registers lie side by side along the last axis, as far as one access reaches."""
        bits, bases = bit_positions(self.layout.shape)[-1], self.layout.register
        count = 0
        while (
            count < min(len(bits), len(bases))
            and bases[count] == 1 << bits[count]
            and self.width << count + 1 <= MAX_ACCESS_BYTES
        ):
            count += 1
        size = self.layout.shape[-1]
        return min(1 << count, size & -size)

    def whole(self, run: int) -> str:
        """An i1 operand: the box is inside the tensor, and accesses of ``run`` elements are aligned."""
        w = self.w
        found = w.emit(f"icmp eq i64 {self.strides[-1]}, 1")
        for start, size, n in zip(self.starts, self.sizes, self.layout.shape, strict=True):
            end = w.emit(f"add nsw i64 {start}, {n}")
            inside = w.emit(f"and i1 {w.emit(f'icmp sge i64 {start}, 0')}, {w.emit(f'icmp sle i64 {end}, {size}')}")
            found = w.emit(f"and i1 {found}, {inside}")
        bits = self.starts[-1]
        for stride in self.strides[:-1]:
            bits = w.emit(f"or i64 {bits}, {stride}")
        scaled = w.emit(f"mul i64 {bits}, {self.width}")
        address = w.emit(f"ptrtoint {self.base.type} {self.base.text} to i64")
        low = w.emit(f"and i64 {w.emit(f'or i64 {scaled}, {address}')}, {run * self.width - 1}")
        return w.emit(f"and i1 {found}, {w.emit(f'icmp eq i64 {low}, 0')}")

    def element(self, register: int, checked: bool) -> tuple[Cell, str | None]:
        """Address of the element in ``register``, and its bounds predicate if that is to be ``checked``."""
        c, w = self.c, self.w
        inside = c.in_range(self.layout, register)
        total = "0"
        for d, start in enumerate(self.starts):
            at = w.emit(f"zext i32 {c.coordinate(self.layout, d, register)} to i64")
            at = w.emit(f"add nsw i64 {start}, {at}")
            if checked:
                inside = c.both(inside, w.emit(f"icmp ult i64 {at}, {self.sizes[d]}"))
            step = w.emit(f"mul nsw i64 {at}, {self.strides[d]}")
            total = step if d == 0 else w.emit(f"add nsw i64 {total}, {step}")
        scaled = w.emit(f"mul nsw i64 {total}, {self.width}")
        return Cell(w.emit(f"getelementptr i8, {self.base.type} {self.base.text}, i64 {scaled}"), self.pointer), inside


def desc_load(c: Context, op: Op) -> None:
    descriptor, *offsets = op.operands
    result = op.results[0]
    layout, kind = c.layout(result), element_of(result.type)
    padding = [c.constant(kind, float("nan"))] if c.descriptors.get(descriptor) == "nan" and kind.is_float else None
    box = _Box(c, descriptor, offsets, layout)

    def read(run: int) -> list[str]:
        texts: list[str] = []
        for r in range(0, layout.registers, run):
            pointer, inside = box.element(r, run == 1)
            texts += c.machine.load(c.w, pointer, kind, run, inside, padding if run == 1 else None, op)
        return texts

    run = box.run()
    texts = read(1) if run == 1 else _either(c, box.whole(run), read, run, llvm_type(kind, memory=True))
    c.set(result, [c.from_memory(text, kind) for text in texts])


def _either(c: Context, whole: str, act: Callable[[int], list[str]], run: int, type: str) -> list[str]:
    """What one way or the other gives."""
    w = c.w
    wide, narrow, done = w.new_label("box"), w.new_label("box.edge"), w.new_label("box.end")
    w.cond_br(whole, wide, narrow)
    ways: list[tuple[list[str], str]] = []
    for label, count in ((wide, run), (narrow, 1)):
        w.label(label)
        ways.append((act(count), w.block))
        w.br(done)
    w.label(done)
    (first, a), (second, b) = ways
    return [w.emit(f"phi {type} [ {x}, %{a} ], [ {y}, %{b} ]") for x, y in zip(first, second, strict=True)]


def desc_store(c: Context, op: Op) -> None:
    descriptor, value, *offsets = op.operands
    layout, cells = c.layout(value), c.tile(value)
    owner = c.is_first_replica(layout)
    kind = op.attrs.get("op", "store")
    box = _Box(c, descriptor, offsets, layout)
    update = Op("atomic_rmw", [], [], {"op": kind, "sem": "relaxed", "scope": "gpu"}, (), op.loc)

    def write(run: int) -> list[str]:
        for r in range(0, layout.registers, run):
            pointer, inside = box.element(r, run == 1)
            predicate = c.both(owner, inside)
            if kind == "store":
                c.machine.store(c.w, pointer, cells[r : r + run], predicate, op)
            else:
                c.machine.atomic(c.w, update, pointer, [cells[r]], predicate)
        return []

    run = box.run() if kind == "store" else 1
    if run == 1:
        write(1)
    else:
        _either(c, box.whole(run), write, run, "")


def box_copy(c: Context, op: Op) -> None:
    """Each thread copies pieces of rows; a piece at the tensor's edge is shorter."""
    buffer, slot, descriptor, wanted, *offsets = op.operands
    type = buffer.type
    assert isinstance(type, SharedType)
    w, shape = c.w, type.block.shape
    width = memory_bytes(type.block.element)
    per_thread = [1] * len(shape)
    per_thread[-1] = min(MAX_ACCESS_BYTES // width, shape[-1])
    layout = distribute(shape, tuple(reversed(range(len(shape)))), per_thread, c.machine.lanes, c.machine.warps)
    box = _Box(c, descriptor, offsets, layout)
    plan = access_plan(layout, len(shape) - 1, width)
    base, owner, run = slot_address(c, buffer, slot), c.is_first_replica(layout), box.run()
    condition = c.scalar(wanted).text
    for r in range(0, layout.registers, run):
        pointer, _ = box.element(r, False)
        inside: str | None = condition
        for d in range(len(shape) - 1):
            at = w.emit(f"add nsw i64 {box.starts[d]}, {w.emit(f'zext i32 {c.coordinate(layout, d, r)} to i64')}")
            inside = c.both(inside, w.emit(f"icmp ult i64 {at}, {box.sizes[d]}"))
        at = w.emit(f"zext i32 {c.coordinate(layout, len(shape) - 1, r)} to i64")
        at = w.emit(f"add nsw i64 {box.starts[-1]}, {at}")
        left = w.intrinsic("smin", "i64", 0, w.emit(f"sub nsw i64 {box.sizes[-1]}, {at}"), str(run))
        inside = c.both(inside, w.emit(f"icmp sge i64 {at}, 0"))
        left = w.intrinsic("smax", "i64", 0, w.emit(f"select i1 {inside}, i64 {left}, i64 0"), "0")
        size = w.emit(f"trunc i64 {w.emit(f'mul i64 {left}, {width}')} to i32")
        target = shared_pointer(c, base, layout, plan, width, r)
        c.machine.boxes.copy(w, target, pointer, run * width, size, owner)
