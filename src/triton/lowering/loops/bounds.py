"""Masks like ``offsets < n`` as loop bounds: vectors on which they hold throughout are run without them.

for i in 0 .. bound step L      masks known to hold        bound = n - first offset, in whole vectors,
for i in bound .. size step L   masks computed                     or 0 where another part of the mask is off
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir.core import Value
from ...ir.types import ScalarType, TensorType, element_of, i1, i64
from ..writer import Cell
from .graph import UNIFORM, Stride
from .index import ZERO, Dim, Index

if TYPE_CHECKING:
    from .evaluate import Evaluator

Axes = tuple[int | None, ...]
"""For each axis of a value the axis of the root that it follows; None where its size is 1."""


@dataclass(frozen=True, slots=True)
class Part:
    """One conjunct of a mask: ``low < high`` (or ``<=``) with ``low`` growing by 1, or, without those, the same in
    all lanes."""

    value: Value
    axes: Axes
    low: Value | None = None
    high: Value | None = None
    inclusive: bool = False


class Bounds:
    """The conjuncts of a root's masks that whole vectors along ``axis`` can do without.

    ``stops``: those of them without which the root does nothing at all, as a store's mask.
    """

    def __init__(self, e: Evaluator, axis: int, parts: Sequence[Part], stops: Sequence[Part]) -> None:
        self.e = e
        self.axis = axis
        self.parts = parts
        self.stops = stops

    def _index(self, part: Part, outer: Sequence[Dim], along: Dim) -> Index:
        return tuple(ZERO if a is None else along if a == self.axis else outer[a] for a in part.axes)

    def split(self, outer: Sequence[Dim], size: int, lanes: int) -> tuple[str, str]:
        """For a position along the other axes: how many elements need no mask, and where the last one ends that does
        anything.

        Both are multiples of ``lanes``.
        """
        e = self.e
        end, level = self._bound(self.stops, outer, str(size), 0)
        whole, inner = self._bound([p for p in self.parts if p not in self.stops], outer, end, level)
        whole = e.emit(inner, f"and i64 {whole}, {-lanes}")
        if not self.stops:
            return whole, str(size)
        up = e.emit(level, f"add i64 {end}, {lanes - 1}")
        return whole, e.emit(level, f"and i64 {up}, {-lanes}")

    def _bound(self, parts: Sequence[Part], outer: Sequence[Dim], bound: str, level: int) -> tuple[str, int]:
        """The number of elements from the start on for which all ``parts`` hold, at most ``bound``, and its loop
        level. What outer loops know is combined there."""
        e, w = self.e, self.e.w
        if not parts:
            return bound, level
        found = sorted((self._limit(part, outer) for part in parts), key=lambda limit: limit[2])
        for holds, room, at in found:
            level = max(level, at)
            if holds:
                bound = e.emit(level, f"select i1 {holds}, i64 {bound}, i64 0")
            else:
                bound = e.at(level, lambda a=bound, b=room: Cell(w.intrinsic("smin", "i64", 0, a, b), i64)).text  # type: ignore[misc]
        return e.at(level, lambda: Cell(w.intrinsic("smax", "i64", 0, bound, "0"), i64)).text, level

    def _limit(self, part: Part, outer: Sequence[Dim]) -> tuple[str, str, int]:
        """What one conjunct says: an i1 that holds everywhere or nowhere, or how many elements it holds for; its loop
        level."""
        e, w = self.e, self.e.w
        index = self._index(part, outer, ZERO)
        if part.low is None or part.high is None:
            holds, level = e.cell(part.value, index)
            return holds.text, "", level
        (low, a), (high, b) = self._wide(part.low, index), self._wide(part.high, index)

        def room() -> Cell:
            text = w.intrinsic("ssub.sat", "i64", 0, high, low)
            return Cell(w.intrinsic("sadd.sat", "i64", 0, text, "1") if part.inclusive else text, i64)

        return "", e.at(max(a, b), room).text, max(a, b)

    def _wide(self, value: Value, index: Index) -> tuple[str, int]:
        cell, level = self.e.cell(value, index)
        if isinstance(cell.value, int):
            return str(int(cell.value)), level
        if cell.element == i64:
            return cell.text, level
        return self.e.emit(level, f"sext {cell.typed} to i64"), level

    def assume(self, outer: Sequence[Dim], along: Dim) -> None:
        """Inside the loop over whole vectors: the conjuncts hold at its position. They hold there only, so nothing
        that depends on them may move out of the loop."""
        for part in self.parts:
            self.e.seed((part.value, self._index(part, outer, along)), Cell("true", i1, 0, True))


def find(
    e: Evaluator, masks: Sequence[tuple[Value, Axes]], axis: int, stop: tuple[Value, Axes] | None = None
) -> Bounds | None:
    """The bounds that ``masks`` give along ``axis`` of the root; None when they give none. ``stop`` is a store's
    mask."""
    stops = _parts(e, [] if stop is None else [stop], axis)
    parts = {**stops, **_parts(e, masks, axis)}
    if not parts:
        return None
    return Bounds(e, axis, list(parts.values()), [parts[key] for key in stops])


def _parts(e: Evaluator, masks: Sequence[tuple[Value, Axes]], axis: int) -> dict[tuple[Value, Axes], Part]:
    """The conjuncts of the masks, as far as they can be used."""
    parts: dict[tuple[Value, Axes], Part] = {}
    work = list(masks)
    while work:
        value, axes = work.pop()
        if (value, axes) in parts:
            continue
        op = value.op
        if op is None or not isinstance(value.type, TensorType):
            continue
        kind = op.kind
        if value not in e.buffers and kind in ("and", "broadcast", "expand_dims", "permute"):
            if kind == "and":
                work += [(v, axes) for v in op.operands]
            elif kind == "broadcast":
                shape = op.operands[0].type
                assert isinstance(shape, TensorType)
                work.append(
                    (op.operands[0], tuple(None if n == 1 else a for n, a in zip(shape.shape, axes, strict=True)))
                )
            elif kind == "expand_dims":
                at = op.attrs["axis"]
                work.append((op.operands[0], axes[:at] + axes[at + 1 :]))
            else:
                moved: list[int | None] = [None] * len(axes)
                for i, a in enumerate(op.attrs["order"]):
                    moved[a] = axes[i]
                work.append((op.operands[0], tuple(moved)))
            continue
        part = _part(e, value, axes, axis)
        if part is not None:
            parts[value, axes] = part
    return parts


def _part(e: Evaluator, value: Value, axes: Axes, axis: int) -> Part | None:
    graph, op = e.graph, value.op
    if op is None:
        return None
    mine = [d for d, a in enumerate(axes) if a == axis]
    if all(graph.stride(value, d) == UNIFORM for d in mine):
        return Part(value, axes)
    if op.kind != "cmp" or len(mine) != 1 or value in e.buffers:
        return None
    low, high = op.operands
    predicate = op.attrs["pred"]
    if predicate in ("gt", "ge"):
        low, high = high, low
    elif predicate not in ("lt", "le"):
        return None
    element = element_of(low.type)
    if not isinstance(element, ScalarType) or not element.is_signed or element.bits < 32:
        return None
    if graph.stride(low, mine[0]) != Stride(1, 0) or graph.stride(high, mine[0]) != UNIFORM:
        return None
    return Part(value, axes, low, high, predicate in ("le", "ge"))
