"""Sorting by a bitonic network over the bits of the axis, and histograms in shared memory."""

from __future__ import annotations

from ...ir.core import Op
from ...ir.types import ScalarType, element_of, i32
from ...layouts.linear import LinearLayout
from ...layouts.shared import SharedPlan
from ..elementwise import compare
from ..writer import Cell
from .context import Context, memory_bytes
from .convert import converted, load_tile, store_tile
from .reduce import axis_bits, ordered_layout


def sort(c: Context, op: Op) -> None:
    """Stages of 2, 4, 8, ... elements; in each, elements that differ in one bit of their place are put in order."""
    source, result = op.operands[0], op.results[0]
    axis, descending = op.attrs["axis"], bool(op.attrs.get("descending", False))
    given = c.layout(source)
    layout = ordered_layout(c, given.shape, axis)
    cells = converted(c, c.tile(source), given, layout)
    cells = _with_sentinels(c, cells, layout, descending)
    bits = axis_bits(layout, axis)
    assert bits is not None
    for stage in range(1, len(bits) + 1):
        for bit in reversed(range(stage)):
            cells = _exchange(c, cells, layout, axis, bits[bit], bit, stage, len(bits), descending)
    c.set(result, converted(c, cells, layout, c.layout(result)))


def _with_sentinels(c: Context, cells: list[Cell], layout: LinearLayout, descending: bool) -> list[Cell]:
    """Padding gets the key that sorts last, so that it ends where padding belongs."""
    kind = cells[0].element
    assert isinstance(kind, ScalarType)
    if kind.is_float:
        last = float("-inf") if descending else float("nan")
    elif kind.is_bool:
        last = not descending
    else:
        low = -(1 << kind.bits - 1) if kind.is_signed else 0
        last = low if descending else low + (1 << kind.bits) - 1
    found = []
    for r, cell in enumerate(cells):
        real = c.in_range(layout, r)
        found.append(cell if real is None else c.choose(real, cell, c.constant(kind, last)))
    return found


def _exchange(
    c: Context,
    cells: list[Cell],
    layout: LinearLayout,
    axis: int,
    place: tuple[str, int],
    bit: int,
    stage: int,
    total: int,
    descending: bool,
) -> list[Cell]:
    """Elements whose place differs in ``bit`` only are put in order: upward where bit ``stage`` of the place is 0."""
    w = c.w
    name, position = place
    results = list(cells)

    def direction(r: int) -> str:
        """An i1 operand: this pair is to be put in ascending order."""
        if stage == total:
            return "false" if descending else "true"
        at = c.coordinate(layout, axis, r)
        test = w.emit(f"and i32 {at}, {1 << stage}")
        return w.emit(f"icmp {'ne' if descending else 'eq'} i32 {test}, 0")

    if name == "register":
        for r in range(layout.registers):
            if not r >> position & 1:
                low, high = cells[r], cells[r | 1 << position]
                swap = _after(c, low, high, direction(r))
                results[r] = c.choose(swap, high, low)
                results[r | 1 << position] = c.choose(swap, low, high)
        return results
    if name == "lane":
        theirs = [c.shuffle("xor", cell, str(1 << position)) for cell in cells]
    else:
        theirs = _from_warp(c, cells, layout, 1 << position)
    number = c.lane if name == "lane" else c.warp
    upper = w.emit(f"icmp ne i32 {w.emit(f'and i32 {number}, {1 << position}')}, 0")
    for r, (mine, other) in enumerate(zip(cells, theirs, strict=True)):
        low, high = c.choose(upper, other, mine), c.choose(upper, mine, other)
        swap = _after(c, low, high, direction(r))
        results[r] = c.choose(swap, other, mine)
    return results


def _after(c: Context, low: Cell, high: Cell, ascending: str) -> str:
    """An i1 operand: the pair is out of order and must be swapped."""
    if ascending == "true":
        return _greater(c, low, high)
    if ascending == "false":
        return _greater(c, high, low)
    return c.w.emit(f"select i1 {ascending}, i1 {_greater(c, low, high)}, i1 {_greater(c, high, low)}")


def _greater(c: Context, a: Cell, b: Cell) -> str:
    """a sorts after b: NaN counts as larger than every number."""
    w = c.w
    more = compare(w, "gt", a, b).text
    if not a.element.is_float:
        return more
    a_nan, b_number = compare(w, "ne", a, a).text, compare(w, "eq", b, b).text
    return w.emit(f"or i1 {more}, {w.emit(f'and i1 {a_nan}, {b_number}')}")


def _from_warp(c: Context, cells: list[Cell], layout: LinearLayout, distance: int) -> list[Cell]:
    """The same registers and lanes of the warp whose number differs by ``distance`` in one bit."""
    position = distance.bit_length() - 1
    wide = position >= len(layout.warp)
    if not wide:
        layout = layout.within_block() or layout
    bits = layout.total_bits
    plan = SharedPlan(tuple(1 << b for b in range(bits)), 1, 1 << bits)
    vector = layout.outer[position]
    store_tile(c, cells, layout, plan, wide)
    c.scratch_ready()
    width = memory_bytes(cells[0].element)
    found = []
    for r in range(layout.registers):
        at = c.w.emit(f"xor i32 {c.index(layout, r)}, {vector}")
        pointer = c.shared_at(c.w.emit(f"mul nuw nsw i32 {at}, {width}"))
        found.append(c.get_shared(pointer, cells[0].element, 1)[0])
    return found


def histogram(c: Context, op: Op) -> None:
    """Counts in shared memory by atomics; values outside the bins are not counted."""
    w = c.w
    source, result = op.operands[0], op.results[0]
    layout, bins = c.layout(source), op.attrs["bins"]
    mask = c.tile(op.operands[1]) if len(op.operands) > 1 else None
    threads = c.machine.lanes * c.machine.warps * c.blocks
    c.scratch_write(4 * max(bins, threads))
    for start in range(0, bins, threads):
        at = w.emit(f"add nuw nsw i32 {c.thread}, {start}")
        test = w.emit(f"icmp ult i32 {at}, {bins}")
        with w.branch(test, "clear"):
            c.put_shared(c.shared_at(w.emit(f"mul nuw nsw i32 {at}, 4")), [c.constant(i32, 0)])
    c.scratch_written()
    kind = element_of(source.type)
    assert isinstance(kind, ScalarType)
    owner = c.is_first_replica(layout)
    for r, cell in enumerate(c.tile(source)):
        inside = w.emit(f"icmp ult {cell.type} {cell.text}, {bins}") if bins < 1 << min(kind.bits, 62) else None
        counted = c.both(
            c.both(c.both(owner, c.in_range(layout, r)), inside), mask[r].text if mask is not None else None
        )
        with w.branch(counted or "true", "count"):
            index = cell.text
            if kind.bits < 32:
                index = w.emit(f"zext {cell.type} {index} to i32")
            elif kind.bits > 32:
                index = w.emit(f"trunc {cell.type} {index} to i32")
            pointer = c.shared_at(w.emit(f"mul nuw nsw i32 {index}, 4"))
            w.emit(f"atomicrmw add {pointer}, i32 1 monotonic")
    c.scratch_ready()
    target = c.layout(result)
    if all(n & n - 1 == 0 for n in target.shape):
        bits = target.total_bits
        plan = SharedPlan(tuple(1 << b for b in range(bits)), 1, 1 << bits)
        c.set(result, load_tile(c, i32, target, plan))
        return
    cells = []
    for r in range(target.registers):
        at = w.intrinsic("umin", "i32", 0, c.index(target, r), str(bins - 1))
        cells += c.get_shared(c.shared_at(w.emit(f"mul nuw nsw i32 {at}, 4")), i32, 1)
    c.set(result, cells)
