"""Moving tiles between layouts, and reordering elements through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.core import Op
from ...ir.types import ElementType, i8
from ...layouts.linear import LinearLayout, plan_conversion, register_changes, register_sources
from ...layouts.shared import SharedPlan, plan_shared
from ...layouts.shuffles import Choice, ShufflePlan, plan_shuffle, shared_cost
from ..writer import Cell
from . import words
from .context import Context, element, memory_bytes


def convert_layout(c: Context, op: Op) -> None:
    source, target = op.operands[0], op.results[0]
    c.set(target, converted(c, c.tile(source), c.layout(source), c.layout(target)))


def converted(c: Context, cells: Sequence[Cell], source: LinearLayout, target: LinearLayout) -> list[Cell]:
    """The same tile, held in ``target``: by renaming registers where that suffices, by shuffles where these suffice and
    cost less, else through shared memory, that of the own block where that suffices."""
    kind = plan_conversion(source, target).kind
    if kind == "none":
        return list(cells)
    if kind == "registers":
        return [cells[r] for r in register_sources(source, target)]
    if kind == "select":
        return _selected(c, cells, source, target)
    if kind != "cluster" and source.block == target.block:
        mine, wanted = source.within_block(), target.within_block()
        if mine is not None and wanted is not None:
            source, target = mine, wanted
    width = memory_bytes(cells[0].element)
    plan = plan_shared(source, target, width)
    if kind == "shuffle" and len(source.lane) == len(target.lane):
        moves = plan_shuffle(source, target)
        if moves.cost(8 * width) < shared_cost(source, target, plan, width, c.machine.warps == 1):
            return _shuffled(c, cells, moves)
    store_tile(c, cells, source, plan, wide=kind == "cluster")
    return load_tile(c, cells[0].element, target, plan)


def _selected(c: Context, cells: Sequence[Cell], source: LinearLayout, target: LinearLayout) -> list[Cell]:
    """Each thread picks among its registers, by bits of its lane and warp number."""
    found = list(cells)
    for name, number in (("lane", c.lane), ("outer", c.warp)):
        for bit, change in enumerate(register_changes(source, target, name)):
            if change:
                test = c.w.emit(f"icmp ne i32 {c.w.emit(f'and i32 {number}, {1 << bit}')}, 0")
                found = [c.choose(test, found[r ^ change], cell) for r, cell in enumerate(found)]
    return [found[r] for r in register_sources(source, target)]


def _shuffled(c: Context, cells: Sequence[Cell], plan: ShufflePlan) -> list[Cell]:
    """By shuffles of 32 bits. Booleans travel as bytes, and narrow elements from the same lane share a word."""
    kind = cells[0].element
    sent = _chosen(c, cells, plan.send)
    if kind.is_bool:
        sent = [Cell(c.to_memory(cell), i8) for cell in sent]
    received = list(sent)
    bits = 8 * memory_bytes(kind)
    for offset, steps in plan.words(bits):
        if plan.exchanges and not offset:
            continue
        together = [sent[s] for s in steps]
        if len(steps) > 1:  # to fill the word
            together += together[-1:] * (32 // bits - len(steps))
        packed = words.pack(c.w, together)
        if plan.exchanges:
            moved = [c.shuffle("xor", word, str(offset)) for word in packed]
        else:
            lane = c.thread_part(plan.lane, plan.outer)
            if offset:
                lane = c.w.emit(f"xor i32 {lane}, {offset}")
            moved = [c.shuffle("index", word, lane) for word in packed]
        for s, cell in zip(steps, words.unpack(c.w, moved, together), strict=False):
            received[s] = cell
    if kind.is_bool:
        received = [c.from_memory(cell.text, kind) for cell in received]
    return _chosen(c, received, plan.receive)


def _chosen(c: Context, cells: Sequence[Cell], choice: Choice) -> list[Cell]:
    """Each thread's own registers; what is not needed on the way is not made."""
    found = dict(enumerate(cells))
    bits = c.thread_part(choice.lane, choice.outer)
    for k, (change, needed) in enumerate(zip(choice.changes, choice.needed()[1:], strict=True)):
        test = c.w.emit(f"icmp ne i32 {c.w.emit(f'and i32 {bits}, {1 << k}')}, 0")
        found = {r: c.choose(test, found[r ^ change], found[r]) for r in needed}
    return [found[r] for r in choice.wanted]


def store_tile(c: Context, cells: Sequence[Cell], layout: LinearLayout, plan: SharedPlan, wide: bool = True) -> None:
    """Writes a tile to scratch by ``plan``. Replicas write the same values to the same places."""
    width = memory_bytes(cells[0].element)
    c.scratch_write(plan.elements * width, wide)
    for r in range(0, layout.registers, plan.vector):
        c.put_shared(place(c, layout, r, plan, width), cells[r : r + plan.vector])


def load_tile(c: Context, element: ElementType, layout: LinearLayout, plan: SharedPlan) -> list[Cell]:
    """Reads a tile that ``store_tile`` wrote (by any layout of the same plan)."""
    c.scratch_ready()
    width = memory_bytes(element)
    cells: list[Cell] = []
    for r in range(0, layout.registers, plan.vector):
        cells += c.get_shared(place(c, layout, r, plan, width), element, plan.vector)
    return cells


def place(c: Context, layout: LinearLayout, register: int, plan: SharedPlan, width: int, base: int = 0) -> str:
    """The shared pointer of the element in ``register``."""
    lane = [plan.address(v) * width for v in layout.lane]
    outer = [plan.address(v) * width for v in layout.outer]
    thread = c.thread_part(lane, outer)
    mine = plan.address(layout(register)) * width
    if thread != "0" and mine:
        overlap = any(v & mine for v in (*lane, *outer))
        if overlap:
            return c.shared_at(c.w.emit(f"xor i32 {thread}, {mine}"), base)
        return c.shared_at(thread, base + mine)
    return c.shared_at(str(mine) if thread == "0" else thread, base)


def reordered(
    c: Context,
    cells: Sequence[Cell],
    source: LinearLayout,
    target: LinearLayout,
    where: Callable[[int], str],
    elements: int,
    write_at: Callable[[int], str],
) -> list[Cell]:
    """Any rearrangement: register r is written at element ``write_at(r)`` and the result's register r read at
    ``where(r)``.

    Padding elements are not written; both functions give i32 operands below ``elements``, in any order of their own.
    """
    w, kind = c.w, cells[0].element
    width = memory_bytes(kind)
    c.scratch_write(elements * width)
    for r, cell in enumerate(cells):
        predicate = c.in_range(source, r)
        at = write_at(r)

        def put(cell: Cell = cell, at: str = at) -> None:
            c.put_shared(c.shared_at(_scaled(c, at, width)), [cell])

        if predicate is None:
            put()
        else:
            with w.branch(predicate, "real"):
                put()
    c.scratch_ready()
    return [c.get_shared(c.shared_at(_scaled(c, where(r), width)), kind, 1)[0] for r in range(target.registers)]


def _scaled(c: Context, index: str, width: int) -> str:
    return c.w.emit(f"mul nuw nsw i32 {index}, {width}") if width > 1 else index


def row_major(c: Context, layout: LinearLayout, register: int, shape: Sequence[int] | None = None) -> str:
    """The element's index in the real (not padded) shape; padding is clamped into range."""
    index = "0"
    for axis, size in enumerate(shape or layout.shape):
        at = c.coordinate(layout, axis, register)
        if size & size - 1:
            at = c.w.intrinsic("umin", "i32", 0, at, str(size - 1))
        if index == "0":
            index = at
        else:
            index = c.w.emit(f"add nuw nsw i32 {c.w.emit(f'mul nuw nsw i32 {index}, {size}')}, {at}")
    return index


def reshape(c: Context, op: Op) -> None:
    """In place when both shapes are powers of two, else through shared memory in row-major order."""
    source, result = op.operands[0], op.results[0]
    a, b = c.layout(source), c.layout(result)
    cells = c.tile(source)
    if a.total_bits == b.total_bits and all(n & n - 1 == 0 for n in (*a.shape, *b.shape)):
        c.set(result, converted(c, cells, a.reshaped(b.shape), b))
        return
    total = 1
    for n in a.shape:
        total *= n
    read = lambda r: row_major(c, b, r)  # noqa: E731
    c.set(result, reordered(c, cells, a, b, read, total, lambda r: row_major(c, a, r)))


def flip(c: Context, op: Op) -> None:
    source, result = op.operands[0], op.results[0]
    layout, axis = c.layout(source), op.attrs["axis"]
    total = 1
    for n in layout.shape:
        total *= n
    stride = 1
    for n in layout.shape[axis + 1 :]:
        stride *= n

    def mirrored(r: int) -> str:
        at = c.coordinate(c.layout(result), axis, r)
        size = layout.shape[axis]
        at = c.w.intrinsic("umin", "i32", 0, at, str(size - 1))
        # index + (size - 1 - 2 * at) * stride
        change = c.w.emit(f"sub i32 {size - 1}, {c.w.emit(f'shl i32 {at}, 1')}")
        change = c.w.emit(f"mul i32 {change}, {stride}")
        return c.w.emit(f"add i32 {row_major(c, c.layout(result), r)}, {change}")

    c.set(
        result,
        reordered(c, c.tile(source), layout, c.layout(result), mirrored, total, lambda r: row_major(c, layout, r)),
    )


def cat(c: Context, op: Op) -> None:
    """Both operands side by side in shared memory, each in its place of the result."""
    w = c.w
    first, second = op.operands
    result, axis = op.results[0], op.attrs["axis"]
    layout = c.layout(result)
    shape = layout.shape
    width = memory_bytes(element(first))
    total = 1
    for n in shape:
        total *= n
    c.scratch_write(total * width)
    for value, shift in ((first, 0), (second, c.layout(first).shape[axis])):
        own = c.layout(value)
        for r, cell in enumerate(c.tile(value)):
            index = "0"
            for d, size in enumerate(shape):
                at = c.coordinate(own, d, r)
                if d == axis and shift:
                    at = w.emit(f"add nuw nsw i32 {at}, {shift}")
                index = at if d == 0 else w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {index}, {size}')}, {at}")
            predicate = c.in_range(own, r) or "true"
            with w.branch(predicate, "real"):
                c.put_shared(c.shared_at(_scaled(c, index, width)), [cell])
    c.scratch_ready()
    places = [c.shared_at(_scaled(c, row_major(c, layout, r), width)) for r in range(layout.registers)]
    c.set(result, [c.get_shared(p, element(first), 1)[0] for p in places])


def gather(c: Context, op: Op) -> None:
    """The source lies in shared memory row-major; each thread reads where its indices point."""
    w = c.w
    source, index = op.operands
    result, axis = op.results[0], op.attrs["axis"]
    a, layout = c.layout(source), c.layout(result)
    from_index = converted(c, c.tile(index), c.layout(index), layout)
    total = 1
    for n in a.shape:
        total *= n

    def where(r: int) -> str:
        cell = from_index[r]
        at = cell.text
        if cell.element.bits != 32:
            at = w.emit(f"{'trunc' if cell.element.bits > 32 else 'zext'} {cell.type} {at} to i32")
        at = w.intrinsic("umin", "i32", 0, at, str(a.shape[axis] - 1))  # padding and wrong indices stay inside
        flat = "0"
        for d, size in enumerate(a.shape):
            here = at if d == axis else c.coordinate(layout, d, r)
            if d != axis and size & size - 1:
                here = w.intrinsic("umin", "i32", 0, here, str(size - 1))
            flat = here if d == 0 else w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {flat}, {size}')}, {here}")
        return flat

    c.set(result, reordered(c, c.tile(source), a, layout, where, total, lambda r: row_major(c, a, r)))
