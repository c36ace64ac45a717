"""Reductions: one accumulator per vector lane, then a combination of the lanes.

    along the vector axis           along another axis
    acc[l] op= x[16 i + l]          acc[l] op= x[i, 16 j + l]     one vector per block of 16 columns, rows in order
    acc -> halves -> quarters -> 1  out[16 j + l] = acc[l]

A combine that is not known to commute gets its operands in order: each vector is combined pairwise with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Op, Value
from ...ir.types import TensorType, element_of, shape_of
from ..elementwise import emit_constant
from ..writer import Cell
from . import access, extremum, regions
from .buffers import Buffer, bytes_of
from .emit import FunctionEmitter, rule
from .idle import nothing_without
from .index import ZERO, Dim, Index, fixed, lane_mask, shuffle
from .nest import Shape, Survey, choose, count, count_between, find_bounds, survey, vectors

_CACHE = 32 << 10
"""Bytes of a tile from which it is read in the order of memory."""


@rule("reduce")
def _reduce(f: FunctionEmitter, op: Op) -> None:
    e, axis = f.e, op.attrs["axis"]
    shape = shape_of(op.operands[0].type)
    lanes = f.gathered.get(op.operands[0])
    if lanes is not None:
        (f.scalars[op.results[0]],) = Job(f, op, shape, axis, [None], []).fold([lanes], lanes.lanes)
        return
    by_products = f.open_by_products(op)
    targets = [f.buffer_for(r) if isinstance(r.type, TensorType) else None for r in op.results]
    found = survey(e, op.operands, shape)
    light = not found.heavy and shape[axis] >= 128
    chosen = choose(e, shape, found, wide=4 if light else 2)
    job = Job(f, op, shape, axis, targets, by_products)
    job.found = found
    if not job.straight:
        job.along_lanes(0)
    elif chosen.axis == axis or chosen.axis is None:
        job.stop_where_idle()
        job.along_lanes(chosen.lanes if chosen.axis is not None else 0)
    elif job.streams(chosen):
        job.stream(chosen)
    else:
        job.across(chosen)
    e.reset()
    f.close_by_products(by_products)
    for r, target in zip(op.results, targets, strict=True):
        if target is not None:
            f.buffers[r] = target


class Job:
    def __init__(
        self,
        f: FunctionEmitter,
        op: Op,
        shape: tuple[int, ...],
        axis: int,
        targets: list[Buffer | None],
        by_products: list[tuple[Value, Buffer]],
    ) -> None:
        self.f = f
        self.e = f.e
        self.op = op
        self.shape = shape
        self.axis = axis
        self.targets = targets
        self.by_products = by_products
        self.combine = op.regions[0]
        self.found: Survey | None = None
        self.elements = [element_of(v.type) for v in op.operands]
        self.straight = regions.is_straight(self.combine)
        self.neutral = regions.neutral(self.combine)
        self.extremum = self.straight and extremum.applies(self.combine)
        if self.extremum:
            self.neutral = [extremum.start(self.combine)]

    # Pieces

    def values(self, index: Index, lanes: int) -> list[Cell]:
        cells = []
        for v in self.op.operands:
            cell, level = self.e.cell(v, index)
            cells.append(self.e.splat(cell, level) if lanes else cell)
        return cells

    def read(self, index: Index, lanes: int) -> list[Cell]:
        """The operands; by-products are written on the way."""
        cells = self.values(index, lanes)
        self.f.write_by_products(self.by_products, index)
        return cells

    def merge(self, a: Sequence[Cell], b: Sequence[Cell], lanes: int) -> list[Cell]:
        """combine(earlier, later)."""
        if self.extremum:
            return [extremum.merge(self.f.w, self.combine, a[0], b[0])]
        if not self.straight:
            return regions.run_scalars(self.f, self.combine, [*a, *b])
        return regions.run(self.f, self.combine, [*a, *b], lanes)

    def neutral_cells(self, lanes: int) -> list[Cell]:
        assert self.neutral is not None
        return [emit_constant(t, v, lanes) for t, v in zip(self.elements, self.neutral, strict=True)]

    def write(self, outer: dict[int, Dim], cells: Sequence[Cell]) -> None:
        """Results at the position given by the dims of the other axes."""
        index = tuple(outer.get(d, ZERO) for d in range(len(self.shape)) if d != self.axis)
        for result, target, cell in zip(self.op.results, self.targets, cells, strict=True):
            if target is None:
                self.f.scalars[result] = cell
            else:
                access.write(self.e, target, index, cell)

    def outer_loops(self, axes: list[int], outer: dict[int, Dim], body) -> None:  # type: ignore[no-untyped-def]
        if not axes:
            body(outer)
            return

        def inner(d: Dim, _: list[str]) -> Sequence[str]:
            self.outer_loops(axes[1:], {**outer, axes[0]: d}, body)
            return ()

        count(self.e, self.shape[axes[0]], inner)

    def index(self, outer: dict[int, Dim], d: Dim) -> Index:
        return tuple(d if i == self.axis else outer.get(i, ZERO) for i in range(len(self.shape)))

    # Along the axis that has the lanes

    def stop_where_idle(self) -> None:
        """Vectors that change nothing are left out. A sum then starts at 0.0, not at -0.0, which zeros would undo."""
        if self.neutral is None or self.by_products or self.found is None:
            return
        idle = nothing_without(self.op.operands, self.neutral)
        if idle is not None:
            self.found.stop = idle, tuple(range(len(self.shape)))
            self.neutral = [n + 0.0 if isinstance(n, float) else n for n in self.neutral]

    def along_lanes(self, lanes: int) -> None:
        others = [d for d, n in enumerate(self.shape) if d != self.axis and n > 1]
        n = self.shape[self.axis]
        if n == 1 or lanes < 2:
            self.outer_loops(others, {}, lambda outer: self.write(outer, self._one_by_one(outer, n)))
        elif regions.commutes(self.combine):
            lanes = min(lanes, 1 << (n.bit_length() - 1))  # the first vector is whole, so no neutral element is needed
            self.outer_loops(others, {}, lambda outer: self._write_scalar(outer, self._in_lanes(outer, n, lanes)))
        else:
            lanes = min(lanes, 1 << (n.bit_length() - 1), 16)
            self.outer_loops(others, {}, lambda outer: self._write_scalar(outer, self._in_order(outer, n, lanes)))

    def _write_scalar(self, outer: dict[int, Dim], cells: Sequence[Cell]) -> None:
        lanes, self.e.lanes = self.e.lanes, 0
        self.write(outer, cells)
        self.e.lanes = lanes

    def _one_by_one(self, outer: dict[int, Dim], n: int) -> list[Cell]:
        return self._rows(outer, 0) if n > 1 else self.read(self.index(outer, ZERO), 0)

    def _in_lanes(self, outer: dict[int, Dim], n: int, lanes: int) -> list[Cell]:
        e = self.e
        saved = e.lanes, e.active, e.count
        mark = e.mark()
        e.lanes, e.active, e.count = lanes, None, lanes
        whole = n // lanes * lanes
        start = 0 if self.extremum or (self.neutral is not None and whole > lanes) else lanes
        acc = self.neutral_cells(lanes) if start == 0 else self.read(self.index(outer, fixed(0, 1)), lanes)
        limit = None
        if start == 0 and self.found is not None:
            limit = find_bounds(e, self.found, n, self.axis, lanes)
        if whole > start:

            def body(d: Dim, values: list[str]) -> Sequence[str]:
                current = [Cell(v, c.element, lanes) for v, c in zip(values, acc, strict=True)]
                place = e.add(d, fixed(start)) if d.const is None else fixed(d.const + start)
                place = place._replace(step=1, unit=lanes)
                return [c.text for c in self.merge(current, self.read(self.index(outer, place), lanes), lanes)]

            def unmasked(d: Dim, values: list[str]) -> Sequence[str]:
                assert limit is not None
                limit.assume(self.index(outer, d), d._replace(step=1))
                return body(d, values)

            if limit is not None:
                split, end = limit.split(self.index(outer, ZERO), n, lanes)
                results = count_between(e, "0", split, lanes, unmasked, [(c.type, c.text) for c in acc])
                acc = [Cell(t, c.element, lanes) for t, c in zip(results, acc, strict=True)]
                results = count_between(e, split, end, lanes, body, [(c.type, c.text) for c in acc])
            else:
                results = count(e, whole - start, body, [(c.type, c.text) for c in acc], step=lanes)
            acc = [Cell(t, c.element, lanes) for t, c in zip(results, acc, strict=True)]
        if whole < n:
            acc = self._partial(outer, acc, whole, n, lanes)
        e.forget(mark)
        e.lanes, e.active, e.count = saved
        result = self.fold(acc, lanes)
        if self.extremum:
            result = [extremum.settle(self, result[0], lambda: extremum.any_in_row(self, outer, n, lanes))]
        return result

    def _partial(self, outer: dict[int, Dim], acc: list[Cell], whole: int, n: int, lanes: int) -> list[Cell]:
        """The last elements, in the first lanes."""
        e = self.e
        e.active, e.count = lane_mask(lanes, n - whole), n - whole
        merged = self.merge(acc, self.read(self.index(outer, fixed(whole, 1)), lanes), lanes)
        return [
            Cell(e.w.emit(f"select <{lanes} x i1> {e.active}, {m.typed}, {a.typed}"), a.element, lanes)
            for m, a in zip(merged, acc, strict=True)
        ]

    def fold(self, acc: list[Cell], lanes: int) -> list[Cell]:
        """All lanes into one; any order."""
        w = self.f.w
        while lanes > 1:
            half = lanes // 2
            low, high = shuffle(list(range(half))), shuffle(list(range(half, lanes)))
            parts = []
            for picked in (low, high):
                parts.append(
                    [Cell(w.emit(f"shufflevector {c.typed}, {c.type} poison, {picked}"), c.element, half) for c in acc]
                )
            acc = self.merge(parts[0], parts[1], half)
            lanes = half
        return [Cell(w.emit(f"extractelement {c.typed}, i64 0"), c.element) for c in acc]

    def fold_in_order(self, acc: list[Cell], lanes: int) -> list[Cell]:
        """All lanes into one: neighbours first, the earlier on the left."""
        w = self.f.w
        while lanes > 1:
            half = lanes // 2
            parts = []
            for first in (0, 1):
                picked = shuffle(list(range(first, lanes, 2)))
                parts.append(
                    [Cell(w.emit(f"shufflevector {c.typed}, {c.type} poison, {picked}"), c.element, half) for c in acc]
                )
            acc = self.merge(parts[0], parts[1], half)
            lanes = half
        return [Cell(w.emit(f"extractelement {c.typed}, i64 0"), c.element) for c in acc]

    def _in_order(self, outer: dict[int, Dim], n: int, lanes: int) -> list[Cell]:
        e = self.e
        saved = e.lanes, e.active, e.count
        mark = e.mark()
        e.lanes, e.active, e.count = lanes, None, lanes
        whole = n // lanes * lanes
        acc = self.fold_in_order(self.read(self.index(outer, fixed(0, 1)), lanes), lanes)
        if whole > lanes:

            def body(d: Dim, values: list[str]) -> Sequence[str]:
                current = [Cell(v, c.element) for v, c in zip(values, acc, strict=True)]
                place = e.add(d, fixed(lanes)) if d.const is None else fixed(d.const + lanes)
                place = place._replace(step=1, unit=lanes)
                block = self.fold_in_order(self.read(self.index(outer, place), lanes), lanes)
                return [c.text for c in self.merge(current, block, 0)]

            results = count(e, whole - lanes, body, [(c.type, c.text) for c in acc], step=lanes)
            acc = [Cell(t, c.element) for t, c in zip(results, acc, strict=True)]
        if whole < n:
            e.active, e.count = lane_mask(lanes, n - whole), n - whole
            cells = self.read(self.index(outer, fixed(whole, 1)), lanes)
            for lane in range(n - whole):
                one = [Cell(e.w.emit(f"extractelement {c.typed}, i64 {lane}"), c.element) for c in cells]
                acc = self.merge(acc, one, 0)
        e.forget(mark)
        e.lanes, e.active, e.count = saved
        return acc

    # Along another axis: rows in order, whole vectors of results

    def across(self, chosen: Shape) -> None:
        assert chosen.axis is not None
        vector_axis = chosen.axis
        others = [d for d, n in enumerate(self.shape) if d not in (self.axis, vector_axis) and n > 1]

        def block(outer: dict[int, Dim]) -> None:
            def columns(d: Dim) -> None:
                self.write({**outer, vector_axis: d}, self._rows({**outer, vector_axis: d}, self.e.lanes))

            vectors(self.e, self.shape[vector_axis], chosen.lanes, columns)

        self.outer_loops(others, {}, block)

    # The same for large tiles: rows are read from start to end, results stay in the first-level cache

    def streams(self, chosen: Shape) -> bool:
        """Whether the tile is too large for the cache, and simple enough to be computed four rows at a time."""
        v, n, plan = chosen.axis, self.shape[self.axis], self.f.plan
        if v is None or self.extremum or self.by_products or n < 16 or self.shape[v] < 4 * chosen.lanes:
            return False
        if n * self.shape[v] * max(bytes_of(t) for t in self.elements) < _CACHE or v < self.axis:
            return False
        if sum(plan.cost(operand) for operand in self.op.operands) > 8:
            return False
        kept = v - (v > self.axis)
        return all(t is not None and t.strides[kept] == 1 for t in self.targets)

    def stream(self, chosen: Shape) -> None:
        e, n = self.e, self.shape[self.axis]
        v = chosen.axis
        assert v is not None
        others = [d for d, size in enumerate(self.shape) if d not in (self.axis, v) and size > 1]
        first = n % 4 or 4

        def rows(outer: dict[int, Dim], places: list[Dim], start: bool) -> None:
            def columns(d: Dim) -> None:
                at = {**outer, v: d}
                acc = None if start else self._so_far(at)
                for place in places:
                    cells = self.read(self.index(at, place), e.lanes)
                    acc = cells if acc is None else self.merge(acc, cells, e.lanes)
                assert acc is not None
                self.write(at, acc)

            vectors(e, self.shape[v], chosen.lanes, columns)

        def block(outer: dict[int, Dim]) -> None:
            rows(outer, [fixed(k) for k in range(first)], True)

            def more(d: Dim, _: list[str]) -> Sequence[str]:
                rows(outer, [e.add(d, fixed(first + k)) for k in range(4)], False)
                return ()

            if n > first:
                count(e, n - first, more, step=4)

        self.outer_loops(others, {}, block)

    def _so_far(self, at: dict[int, Dim]) -> list[Cell]:
        index = tuple(at.get(d, ZERO) for d in range(len(self.shape)) if d != self.axis)
        return [access.read_now(self.e, target, index) for target in self.targets if target is not None]

    def _rows(self, outer: dict[int, Dim], lanes: int) -> list[Cell]:
        n = self.shape[self.axis]
        start = 0 if self.extremum or (self.neutral is not None and n > 2) else 1
        first = self.neutral_cells(lanes) if start == 0 else self.read(self.index(outer, ZERO), lanes)
        if n == start:
            return first

        def body(d: Dim, values: list[str]) -> Sequence[str]:
            acc = [Cell(v, c.element, lanes) for v, c in zip(values, first, strict=True)]
            later = self.e.add(d, fixed(start)) if d.const is None else fixed(d.const + start)
            return [c.text for c in self.merge(acc, self.read(self.index(outer, later), lanes), lanes)]

        results = count(self.e, n - start, body, [(c.type, c.text) for c in first])
        result = [Cell(t, c.element, lanes) for t, c in zip(results, first, strict=True)]
        if self.extremum:
            result = [extremum.settle(self, result[0], lambda: extremum.any_in_column(self, outer, n, lanes))]
        return result
