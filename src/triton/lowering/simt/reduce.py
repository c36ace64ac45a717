"""Reductions and scans along one axis.

The combine region always gets (earlier, later) elements. A reduction halves the axis bit by bit: bits held by registers
within the thread, bits held by lanes by shuffles, bits held by warps through shared memory; when the region is not
known to commute the bits are taken from low to high, for which the layout is changed if needed. Padding is skipped: it
lies at the end of an axis, so the later half may be empty but never the earlier one alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Block, Op
from ...ir.types import TensorType
from ...ir.types import i1 as _I1
from ...layouts.linear import LinearLayout, bit_positions, deal_blocks, distribute
from ..writer import Cell
from .context import Context, memory_bytes
from .convert import converted

Group = list[Cell]
_COMMUTES = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})


def commutes(region: Block) -> bool:
    """Whether the region is one commutative op of its two arguments."""
    if len(region.args) != 2 or len(region.ops) != 2:
        return False
    op = region.ops[0]
    return op.kind in _COMMUTES and set(op.operands) == set(region.args) and region.terminator.operands == op.results


def combine(c: Context, region: Block, earlier: Group, later: Group) -> Group:
    """The region's value for two groups."""
    for arg, cell in zip(region.args, [*earlier, *later], strict=True):
        c.set(arg, [cell])
    for op in region.ops[:-1]:
        c.lower(op)
    return [c.scalar(v) for v in region.terminator.operands]


def _combine_valid(c: Context, region: Block, earlier: Group, later: Group, valid: str | None) -> Group:
    """``combine``, or ``earlier`` alone where ``valid`` (an i1 operand) says that ``later`` is padding."""
    if valid == "false":
        return earlier
    both = combine(c, region, earlier, later)
    if valid is None or valid == "true":
        return both
    return [c.choose(valid, a, b) for a, b in zip(both, earlier, strict=True)]


def axis_bits(layout: LinearLayout, axis: int) -> list[tuple[str, int]] | None:
    """For each bit of the axis, low to high, the input and position that hold it; None when the layout mixes bits."""
    bits = bit_positions(layout.shape)[axis]
    places: dict[int, tuple[str, int]] = {}
    inside = sum(1 << b for b in bits)
    for name in ("register", "lane", "outer"):
        for position, vector in enumerate(getattr(layout, name)):
            if vector & inside:
                if vector & vector - 1 or vector.bit_length() - 1 in places:
                    return None
                places[vector.bit_length() - 1] = name, position
    return [places[b] for b in bits] if len(places) == len(bits) else None


def _in_order(bits: Sequence[tuple[str, int]]) -> bool:
    rank = {"register": 0, "lane": 1, "outer": 2}
    steps = [rank[name] for name, _ in bits]
    return steps == sorted(steps)


def reduce(c: Context, op: Op) -> None:
    region, axis = op.regions[0], op.attrs["axis"]
    layout = c.layout(op.operands[0])
    tiles = [c.tile(v) for v in op.operands]
    bits = axis_bits(layout, axis)
    wanted = layout
    if bits is None or not (commutes(region) or _in_order(bits)):
        wanted = ordered_layout(c, layout.shape, axis)
        tiles = [converted(c, t, layout, wanted) for t in tiles]
    groups = reduce_tile(c, region, axis, wanted, tiles)
    slice = wanted.without_axis(axis)
    for number, result in enumerate(op.results):
        cells = [g[number] for g in groups]
        if isinstance(result.type, TensorType):
            cells = converted(c, cells, slice, c.layout(result))
        c.set(result, cells)


def ordered_layout(c: Context, shape: tuple[int, ...], axis: int) -> LinearLayout:
    """A layout in which the axis bits lie in registers, then lanes, then warps, then (where the other axes are too
    small for them) blocks, from low to high."""
    others = [d for d in range(len(shape)) if d != axis]
    block_axes = [*others, axis]
    part, _ = deal_blocks(shape, c.blocks, block_axes)
    per_thread = [1] * len(shape)
    per_thread[axis] = max(1, (1 << len(bit_positions(part)[axis])) // (c.machine.lanes * c.machine.warps))
    order = [axis, *reversed(others)]
    return distribute(shape, order, per_thread, c.machine.lanes, c.machine.warps, c.blocks, block_axes)


def reduce_tile(c: Context, region: Block, axis: int, layout: LinearLayout, tiles: Sequence[list[Cell]]) -> list[Group]:
    """One group for each register of the slice, complete in every thread."""
    bits = axis_bits(layout, axis)
    assert bits is not None
    size = layout.shape[axis]
    padded = bool(size & size - 1)
    live = {r: [t[r] for t in tiles] for r in range(layout.registers)}
    first = {"register": 0, "lane": 1, "outer": 2}
    order = sorted(range(len(bits)), key=lambda b: (first[bits[b][0]], b))
    done = 0  # axis bits already combined
    for bit in order:
        name, position = bits[bit]
        if name == "outer":
            break
        done |= 1 << bit
        if name == "register":
            for r in [r for r in live if not r >> position & 1]:
                later = live.pop(r | 1 << position)
                valid = _valid(c, layout, axis, r | 1 << position, done & ~(1 << bit)) if padded else None
                live[r] = _combine_valid(c, region, live[r], later, valid)
        else:
            for r in live:
                live[r] = _lane_step(c, region, layout, axis, r, live[r], position, bit, done if padded else -1)
    warps = [bits[b][1] for b in order if bits[b][0] == "outer"]
    groups = [live[r] for r in sorted(live)]
    if warps:
        groups = _across_warps(c, region, layout, axis, groups, sorted(live), warps, bits, done if padded else -1)
    return groups


def _valid(c: Context, layout: LinearLayout, axis: int, register: int, done: int) -> str:
    """Whether the first element of the group that starts at ``register`` exists: axis bits in ``done`` count as 0."""
    at = c.coordinate(layout, axis, register)
    if done:
        at = c.w.emit(f"and i32 {at}, {~done & 0x7FFFFFFF}")
    return c.w.emit(f"icmp ult i32 {at}, {layout.shape[axis]}")


def _lane_step(
    c: Context,
    region: Block,
    layout: LinearLayout,
    axis: int,
    register: int,
    mine: Group,
    position: int,
    bit: int,
    done: int,
) -> Group:
    """Combines with the lane that differs in one bit; both get the result."""
    w = c.w
    theirs = [c.shuffle("xor", cell, str(1 << position)) for cell in mine]
    if commutes(region) and done < 0:
        return combine(c, region, mine, theirs)
    mask = w.emit(f"and i32 {c.lane}, {1 << position}")
    is_later = w.emit(f"icmp ne i32 {mask}, 0")
    earlier = [c.choose(is_later, b, a) for a, b in zip(mine, theirs, strict=True)]
    later = [c.choose(is_later, a, b) for a, b in zip(mine, theirs, strict=True)]
    if done < 0:
        return combine(c, region, earlier, later)
    at = w.emit(f"and i32 {c.coordinate(layout, axis, register)}, {~done & 0x7FFFFFFF}")
    at = w.emit(f"or i32 {at}, {1 << bit}")
    return _combine_valid(c, region, earlier, later, w.emit(f"icmp ult i32 {at}, {layout.shape[axis]}"))


def _share(layout: LinearLayout, wide: bool) -> LinearLayout:
    """What a region of scratch memory holds of a tile: all of it, or (for a block's own region) the block's part."""
    return layout if wide else layout.within_block() or layout


def _across_warps(
    c: Context,
    region: Block,
    layout: LinearLayout,
    axis: int,
    groups: list[Group],
    registers: list[int],
    warps: list[int],
    bits: Sequence[tuple[str, int]],
    done: int,
) -> list[Group]:
    """Every warp writes its partial results; after a barrier every thread combines those of all warps (of the cluster,
    where the axis goes through blocks), in axis order."""
    w = c.w
    wide = max(warps) >= len(layout.warp)
    slice = _share(layout.without_axis(axis), wide)
    places = 1 << slice.total_bits
    count = 1 << len(warps)
    offsets, total = [], 0
    for cell in groups[0]:
        offsets.append(total)
        total += -(-places * count * memory_bytes(cell.element) // 16) * 16
    c.scratch_write(total, wide)
    vectors = [0] * len(layout.outer)
    for number, position in enumerate(warps):
        vectors[position] = 1 << number
    part = c.thread_part((), vectors)  # which of the partial results this warp has

    def pointer(cell: Cell, item: int, index: str, which: str) -> str:
        at = w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {which}, {places}')}, {index}")
        return c.shared_at(w.emit(f"mul nuw nsw i32 {at}, {memory_bytes(cell.element)}"), offsets[item])

    indices = [c.index(slice, r) for r in range(slice.registers)]
    for group, index in zip(groups, indices, strict=True):
        for item, cell in enumerate(group):
            c.put_shared(pointer(cell, item, index, part), [cell])
    c.scratch_ready()
    results: list[Group] = []
    axis_bit = {position: bit for bit, (name, position) in enumerate(bits) if name == "outer"}
    for group, index, register in zip(groups, indices, registers, strict=True):
        total_group: Group = []
        for which in range(count):
            partial = [
                c.get_shared(pointer(cell, item, index, str(which)), cell.element, 1)[0]
                for item, cell in enumerate(group)
            ]
            if which == 0:
                total_group = partial
                continue
            valid = None
            if done >= 0:
                start = sum(1 << axis_bit[p] for n, p in enumerate(warps) if which >> n & 1)
                every = done | sum(1 << axis_bit[p] for p in warps)
                at = w.emit(f"and i32 {c.coordinate(layout, axis, register)}, {~every & 0x7FFFFFFF}")
                valid = w.emit(f"icmp ult i32 {w.emit(f'or i32 {at}, {start}')}, {layout.shape[axis]}")
            total_group = _combine_valid(c, region, total_group, partial, valid)
        results.append(total_group)
    return results


# Scans --------------------------------------------------------------------------------------------------------------


def scan(c: Context, op: Op) -> None:
    """Within a thread in sequence, over lanes by doubling, over warps through shared memory; then brought to the
    operand's layout."""
    region, axis = op.regions[0], op.attrs["axis"]
    reverse = bool(op.attrs.get("reverse", False))
    given = c.layout(op.operands[0])
    layout = ordered_layout(c, given.shape, axis)
    tiles = [converted(c, c.tile(v), given, layout) for v in op.operands]
    results = _Scan(c, region, axis, layout, reverse).run(tiles)
    for number, result in enumerate(op.results):
        c.set(result, converted(c, [g[number] for g in results], layout, c.layout(result)))


class _Scan:
    """A scan of one tile whose axis lies in registers, lanes and warps, in that order."""

    def __init__(self, c: Context, region: Block, axis: int, layout: LinearLayout, reverse: bool) -> None:
        self.c, self.region, self.axis, self.layout, self.reverse = c, region, axis, layout, reverse
        bits = axis_bits(layout, axis)
        assert bits is not None and _in_order(bits)
        self.register_bits = [p for name, p in bits if name == "register"]
        self.lane_bits = [p for name, p in bits if name == "lane"]
        self.warp_bits = [p for name, p in bits if name == "outer"]
        size = layout.shape[axis]
        self.padded = (
            bool(size & size - 1) and reverse
        )  # padding comes last, so only a reverse scan meets it before data

    def run(self, tiles: Sequence[list[Cell]]) -> list[Group]:
        c, layout = self.c, self.layout
        rows: dict[int, list[int]] = {}
        inside = sum(1 << p for p in self.register_bits)
        for r in range(layout.registers):
            rows.setdefault(r & ~inside, []).append(r)
        results: list[Group] = [[] for _ in range(layout.registers)]
        for registers in rows.values():
            order = registers[::-1] if self.reverse else registers
            running: Group = []
            for n, r in enumerate(order):
                mine = [t[r] for t in tiles]
                running = mine if n == 0 else self.step(running, mine, self.exists(order[n - 1]))
                results[r] = running
            before, valid = self.before(running, order[-1])
            if before is not None:
                for r in registers:
                    results[r] = [
                        c.choose(valid, a, b)
                        for a, b in zip(self.step(before, results[r], None), results[r], strict=True)
                    ]
        return results

    def exists(self, register: int) -> str | None:
        return self.c.in_range(self.layout, register) if self.padded else None

    def step(self, accumulated: Group, element: Group, valid: str | None) -> Group:
        """``accumulated`` (earlier in scan direction) combined with ``element``; the element alone where it is
        padding's."""
        both = combine(self.c, self.region, accumulated, element)
        return both if valid is None else [self.c.choose(valid, a, b) for a, b in zip(both, element, strict=True)]

    def before(self, total: Group, last: int) -> tuple[Group | None, str]:
        """What all threads before this one (in scan direction) add up to, and an i1 operand: there are such threads."""
        c, w = self.c, self.c.w
        count = len(self.lane_bits)
        inclusive, exclusive = total, total
        has = "false"
        real = self.exists(last)  # the thread's last element in scan direction exists: then its total does
        if count:
            low = self.lane_bits[0]
            assert self.lane_bits == list(range(low, low + count)), "ordered_layout deals consecutive lanes"
            place = w.emit(f"and i32 {w.emit(f'lshr i32 {c.lane}, {low}')}, {(1 << count) - 1}")
            if self.reverse:
                place = w.emit(f"sub i32 {(1 << count) - 1}, {place}")
            kind = "down" if self.reverse else "up"
            flag = Cell(real, _I1) if real is not None else None
            for n in range(count):
                theirs = [c.shuffle(kind, cell, str(1 << n + low)) for cell in inclusive]
                near = w.emit(f"icmp uge i32 {place}, {1 << n}")
                if flag is not None:
                    theirs_real = c.shuffle(kind, flag, str(1 << n + low))
                    near = w.emit(f"and i1 {near}, {theirs_real.text}")
                    joined = [
                        c.choose(flag.text, a, b)
                        for a, b in zip(combine(c, self.region, theirs, inclusive), theirs, strict=True)
                    ]
                    flag = Cell(w.emit(f"or i1 {flag.text}, {near}"), _I1)
                else:
                    joined = combine(c, self.region, theirs, inclusive)
                inclusive = [c.choose(near, a, b) for a, b in zip(joined, inclusive, strict=True)]
            exclusive = [c.shuffle(kind, cell, str(1 << low)) for cell in inclusive]
            has = w.emit(f"icmp ne i32 {place}, 0")
            if flag is not None:
                has = w.emit(f"and i1 {has}, {c.shuffle(kind, flag, str(1 << low)).text}")
            real = flag.text if flag is not None else None
        if not self.warp_bits:
            return (exclusive, has) if count else (None, has)
        return self.over_warps(inclusive, exclusive, has, real, last)

    def over_warps(
        self, inclusive: Group, exclusive: Group, has: str, real: str | None, last: int
    ) -> tuple[Group, str]:
        """Adds what earlier warps add up to; each warp's last lane (in scan direction) publishes the warp's total."""
        c, w, layout = self.c, self.c.w, self.layout
        count = 1 << len(self.warp_bits)
        wide = max(self.warp_bits) >= len(layout.warp)
        slice = _share(layout.without_axis(self.axis), wide)
        places = 1 << slice.total_bits
        vectors = [0] * len(layout.outer)
        for number, position in enumerate(self.warp_bits):
            vectors[position] = 1 << number
        part = c.thread_part((), vectors)
        kept = last & ~sum(1 << p for p in self.register_bits)
        off_axis = [r for r in range(layout.registers) if not r & sum(1 << p for p in self.register_bits)]
        index = c.index(slice, off_axis.index(kept))
        flags = [Cell(real, _I1)] if real is not None else []
        items = [*inclusive, *flags]
        offsets, total = [], 0
        for cell in items:
            offsets.append(total)
            total += -(-places * count * memory_bytes(cell.element) // 16) * 16
        c.scratch_write(total, wide)

        def pointer(item: int, which: str) -> str:
            at = w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {which}, {places}')}, {index}")
            return c.shared_at(w.emit(f"mul nuw nsw i32 {at}, {memory_bytes(items[item].element)}"), offsets[item])

        lanes = sum(1 << p for p in self.lane_bits)
        end = w.emit(f"icmp eq i32 {w.emit(f'and i32 {c.lane}, {lanes}')}, {0 if self.reverse else lanes}")
        with w.branch(end, "publish"):
            for item, cell in enumerate(items):
                c.put_shared(pointer(item, part), [cell])
        c.scratch_ready()
        before: Group = []
        any_before = "false"
        sequence = list(range(count))[::-1] if self.reverse else list(range(count))
        for n, which in enumerate(sequence[:-1]):
            partial = [c.get_shared(pointer(i, str(which)), cell.element, 1)[0] for i, cell in enumerate(items)]
            flag = partial.pop().text if flags else "true"
            mine = w.emit(f"icmp {'ult' if self.reverse else 'ugt'} i32 {part}, {which}")
            use = w.emit(f"and i1 {mine}, {flag}")
            if n == 0:
                before, any_before = partial, use
            else:
                joined = combine(c, self.region, before, partial)
                joined = [c.choose(any_before, a, b) for a, b in zip(joined, partial, strict=True)]
                before = [c.choose(use, a, b) for a, b in zip(joined, before, strict=True)]
                any_before = w.emit(f"or i1 {any_before}, {use}")
        if has == "false":
            return before, any_before
        joined = combine(c, self.region, before, exclusive)
        inner = [c.choose(any_before, a, b) for a, b in zip(joined, exclusive, strict=True)]
        result = [c.choose(has, a, b) for a, b in zip(inner, before, strict=True)]
        return result, w.emit(f"or i1 {has}, {any_before}")
