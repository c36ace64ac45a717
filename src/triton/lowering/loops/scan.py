"""Prefix combinations.

along another axis: one running vector            along the vector axis: log steps in the register, then the carry
acc[l] = combine(acc[l], x[i, l]) for each i      x = combine(x shifted by 1, x), by 2, by 4, ...; x = combine(carry, x)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Op
from ...ir.types import shape_of
from ..writer import Cell
from . import access, regions
from .buffers import Buffer
from .emit import FunctionEmitter, rule
from .index import ZERO, Dim, Index, fixed, lane_mask, shuffle
from .nest import Shape, choose, count, nest, survey


@rule("scan")
def _scan(f: FunctionEmitter, op: Op) -> None:
    e, axis = f.e, op.attrs["axis"]
    shape = shape_of(op.operands[0].type)
    targets = [f.buffer_for(r) for r in op.results]
    job = _Job(f, op, shape, axis, targets)
    if not regions.is_straight(op.regions[0]):
        job.across(Shape(None, 0))
    else:
        found = survey(e, op.operands, shape)
        found.accesses += [tuple(t.strides) for t in targets]
        others = [d for d, n in enumerate(shape) if d != axis and n >= 4]
        chosen = choose(e, shape, found, allowed=others)
        if chosen.axis is None and shape[axis] >= 8:
            lanes = 1 << (min(shape[axis], choose(e, shape, found, allowed=[axis], wide=1).lanes).bit_length() - 1)
            job.along(min(lanes, 16))
        else:
            job.across(chosen)
    e.reset()
    f.buffers.update(zip(op.results, targets, strict=True))


class _Job:
    def __init__(self, f: FunctionEmitter, op: Op, shape: tuple[int, ...], axis: int, targets: list[Buffer]) -> None:
        self.f = f
        self.e = f.e
        self.op = op
        self.shape = shape
        self.axis = axis
        self.targets = targets
        self.combine = op.regions[0]
        self.straight = regions.is_straight(self.combine)
        self.reverse = bool(op.attrs.get("reverse", False))

    def place(self, outer: Index, d: Dim) -> Index:
        """The index of step ``d`` along the axis, in scan direction."""
        if self.reverse:
            d = self.e.flip(d, self.shape[self.axis])
        return (*outer[: self.axis], d, *outer[self.axis + 1 :])

    def read(self, index: Index, lanes: int) -> list[Cell]:
        cells = []
        for v in self.op.operands:
            cell, level = self.e.cell(v, index)
            cells.append(self.e.splat(cell, level) if lanes else cell)
        return cells

    def merge(self, a: Sequence[Cell], b: Sequence[Cell], lanes: int) -> list[Cell]:
        if not self.straight:
            return regions.run_scalars(self.f, self.combine, [*a, *b])
        return regions.run(self.f, self.combine, [*a, *b], lanes)

    def write(self, index: Index, cells: Sequence[Cell]) -> None:
        for target, cell in zip(self.targets, cells, strict=True):
            access.write(self.e, target, index, cell)

    # Running vectors

    def across(self, chosen: Shape) -> None:
        shape = (*self.shape[: self.axis], 1, *self.shape[self.axis + 1 :])
        nest(self.e, shape, chosen, self._column)

    def _column(self, outer: Index) -> None:
        e, n = self.e, self.shape[self.axis]
        lanes = 0 if all(d.is_scalar for d in outer) else e.lanes
        index = self.place(outer, ZERO)
        first = self.read(index, lanes)
        self.write(index, first)
        if n == 1:
            return

        def body(d: Dim, values: list[str]) -> Sequence[str]:
            acc = [Cell(v, c.element, lanes) for v, c in zip(values, first, strict=True)]
            index = self.place(outer, e.add(d, fixed(1)))
            acc = self.merge(acc, self.read(index, lanes), lanes)
            self.write(index, acc)
            return [c.text for c in acc]

        count(e, n - 1, body, [(c.type, c.text) for c in first])

    # In the register

    def along(self, lanes: int) -> None:
        shape = (*self.shape[: self.axis], 1, *self.shape[self.axis + 1 :])
        nest(self.e, shape, Shape(None, 0), lambda outer: self._row(outer, lanes))

    def _row(self, outer: Index, lanes: int) -> None:
        e, n = self.e, self.shape[self.axis]
        saved = e.lanes, e.active, e.count
        mark = e.mark()
        e.lanes, e.active, e.count = lanes, None, lanes
        carry = self._vector(outer, fixed(0, 1), None, lanes)
        whole = n // lanes * lanes
        if whole > lanes:

            def body(d: Dim, values: list[str]) -> Sequence[str]:
                before = [Cell(v, c.element) for v, c in zip(values, carry, strict=True)]
                d = e.add(d, fixed(lanes))
                return [c.text for c in self._vector(outer, d._replace(step=1, unit=lanes), before, lanes)]

            results = count(e, whole - lanes, body, [(c.type, c.text) for c in carry], step=lanes)
            carry = [Cell(t, c.element) for t, c in zip(results, carry, strict=True)]
        if whole < n:
            e.active, e.count = lane_mask(lanes, n - whole), n - whole
            self._vector(outer, fixed(whole, 1), carry, lanes)
        e.forget(mark)
        e.lanes, e.active, e.count = saved

    def _vector(self, outer: Index, d: Dim, carry: list[Cell] | None, lanes: int) -> list[Cell]:
        """Scans one vector, writes it and returns its last lane."""
        w, index = self.f.w, self.place(outer, d)
        cells = self.read(index, lanes)
        step = 1
        while step < lanes:
            moved = shuffle([max(0, i - step) for i in range(lanes)])
            earlier = [
                Cell(w.emit(f"shufflevector {c.typed}, {c.type} poison, {moved}"), c.element, lanes) for c in cells
            ]
            keep = "<" + ", ".join(f"i1 {'true' if i >= step else 'false'}" for i in range(lanes)) + ">"
            cells = [
                Cell(w.emit(f"select <{lanes} x i1> {keep}, {m.typed}, {c.typed}"), c.element, lanes)
                for m, c in zip(self.merge(earlier, cells, lanes), cells, strict=True)
            ]
            step *= 2
        if carry is not None:
            cells = self.merge([self.e.splat(c, self.e.depth) for c in carry], cells, lanes)
        self.write(index, cells)
        return [Cell(w.emit(f"extractelement {c.typed}, i64 {lanes - 1}"), c.element) for c in cells]
