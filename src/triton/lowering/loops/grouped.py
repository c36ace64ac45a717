"""Operands of instructions that multiply several neighbours at once: the right one's rows are interleaved.

B, rows of narrow numbers        panel: groups of ``group`` rows, column by column
a b c d ...                      (a e i m) (b f j n) (c g k o) (d h l p) ...        one 32-bit lane each
e f g h ...
i j k l ...                      A's rows stay as they are: the group lies side by side in memory
m n o p ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..writer import scalar_type, vector
from . import access
from .buffers import bytes_of
from .index import lane_mask, shuffle
from .machine import GroupedProduct

if TYPE_CHECKING:
    from .dot import Blocking, Operand
    from .emit import FunctionEmitter


def interleave(
    f: FunctionEmitter, rows: Operand, shape: tuple[int, int], how: GroupedProduct, block: Blocking
) -> tuple[str, str, int]:
    """Panels of ``rows``, which hold ``shape`` numbers of the right type: their address, that of what the sums of
    each column are too large by (empty for none), and the offset in scratch of both."""
    w = f.w
    (k, n), width, lanes = shape, block.width, block.lanes
    columns = -(-n // lanes)
    panels = -(-n // width)
    size = panels * (k // how.group) * width * 4
    pointer, offset = f.arena.allocate(size + (panels * width * 4 if how.shifted else 0))
    excess = w.emit(f"getelementptr i8, ptr {pointer}, i64 {size}") if how.shifted else ""
    job = _Interleaving(f, rows, k, n, how, block)

    def panel(counter: str, vectors: int, last: int) -> None:
        at = w.emit(f"mul nuw nsw i64 {counter}, {k // how.group * width}")
        target = w.emit(f"getelementptr i32, ptr {pointer}, i64 {at}")
        column = w.emit(f"mul nuw nsw i64 {counter}, {width}")
        source = w.emit(f"getelementptr {job.base}, ptr {rows.pointer}, i64 {column}")
        sums = job.panel(source, target, vectors, last)
        for v, text in enumerate(sums):
            place = w.emit(f"add nuw nsw i64 {column}, {v * lanes}")
            to = w.emit(f"getelementptr i32, ptr {excess}, i64 {place}")
            w.line(f"store <{lanes} x i32> {text}, ptr {to}, align 4")

    whole = n // width
    if whole:

        def each(counter: str, _: list[str]) -> Sequence[str]:
            panel(counter, block.vectors, lanes)
            return ()

        w.loop("0", str(whole), "1", each, hint="panel", at_least_once=True)
    if n % width:
        vectors = columns - whole * block.vectors
        panel(str(whole), vectors, n - (columns - 1) * lanes)
    return pointer, excess, offset


class _Interleaving:
    def __init__(self, f: FunctionEmitter, rows: Operand, k: int, n: int, how: GroupedProduct, block: Blocking) -> None:
        self.w = f.w
        self.pitch = rows.pitch
        self.k, self.n = k, n
        self.how = how
        self.block = block
        self.base = scalar_type(how.right)

    def panel(self, source: str, target: str, vectors: int, last: int) -> list[str]:
        """All rows of one panel, whose last vector has ``last`` columns; the excess of the columns' sums, if any."""
        w, how, lanes, width = self.w, self.how, self.block.lanes, self.block.width
        words = f"<{lanes} x i32>"
        bias = f"splat (i8 {-128})"

        def group(counter: str, sums: list[str]) -> Sequence[str]:
            line = w.emit(f"mul nuw nsw i64 {counter}, {how.group * self.pitch}")
            to = w.emit(f"mul nuw nsw i64 {counter}, {width}")
            following: list[str] = []
            for v in range(vectors):
                part = last if v == vectors - 1 else lanes
                mixed = self._mixed(source, line, v * lanes, part)
                place = w.emit(f"add nuw nsw i64 {to}, {v * lanes}")
                address = w.emit(f"getelementptr i32, ptr {target}, i64 {place}")
                w.line(f"store {words} {mixed}, ptr {address}, align 4")
                if how.shifted:
                    ones = w.emit(f"bitcast <{4 * lanes} x i8> {bias} to {words}")
                    following.append(how.emit(w, sums[v], ones, mixed, lanes))
            return following

        carried = [(words, "zeroinitializer")] * (vectors if how.shifted else 0)
        trips = self.k // how.group
        return w.loop("0", str(trips), "1", group, carried, hint="group", at_least_once=True)

    def _mixed(self, source: str, line: str, column: int, part: int) -> str:
        """One vector of groups: as many rows, interleaved."""
        w, lanes, group = self.w, self.block.lanes, self.how.group
        rows: list[str] = []
        mask = None if part == lanes else lane_mask(lanes, part)
        for r in range(group):
            place = w.emit(f"add nuw nsw i64 {line}, {r * self.pitch + column}")
            address = w.emit(f"getelementptr {self.base}, ptr {source}, i64 {place}")
            rows.append(access.load_contiguous(w, address, self.how.right, lanes, mask, None).text)
        size = lanes
        while len(rows) > 1:  # pairs of the first and second half: each round doubles the distance between neighbours
            type, half = vector(self.base, size), len(rows) // 2
            order = shuffle([i // 2 + size * (i % 2) for i in range(2 * size)])
            pairs = zip(rows[:half], rows[half:], strict=True)
            rows = [w.emit(f"shufflevector {type} {a}, {type} {b}, {order}") for a, b in pairs]
            size *= 2
        return w.emit(f"bitcast {vector(self.base, size)} {rows[0]} to <{lanes} x i32>")


def left_words(f: FunctionEmitter, address: str, how: GroupedProduct, lanes: int) -> str:
    """The group of the left operand at ``address`` in every lane."""
    w = f.w
    word = w.emit(f"load i32, ptr {address}, align {bytes_of(how.left)}")
    first = w.emit(f"insertelement <{lanes} x i32> poison, i32 {word}, i64 0")
    return w.emit(f"shufflevector <{lanes} x i32> {first}, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer")
