"""Cells of narrow elements, side by side in 32-bit registers: how tiles go from block to block."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.types import i32
from ..writer import Cell, FunctionWriter

_BITS = {"half": 16, "bfloat": 16, "i16": 16, "i8": 8}


def _per_word(cells: Sequence[Cell]) -> int:
    """How many cells a word holds; 1: they are left as they are."""
    count = 32 // _BITS.get(cells[0].type, 32) if cells else 1
    return count if len(cells) % count == 0 else 1


def pack(w: FunctionWriter, cells: Sequence[Cell]) -> list[Cell]:
    """The cells as words, the first in the low bits; cells that do not fill words, and wide ones, stay."""
    per = _per_word(cells)
    if per == 1:
        return list(cells)
    words = []
    for start in range(0, len(cells), per):
        full, vector = f"<{per} x {cells[0].type}>", "poison"
        for i, cell in enumerate(cells[start : start + per]):
            vector = w.emit(f"insertelement {full} {vector}, {cell.typed}, i32 {i}")
        words.append(Cell(w.emit(f"bitcast {full} {vector} to i32"), i32))
    return words


def unpack(w: FunctionWriter, words: Sequence[Cell], like: Sequence[Cell]) -> list[Cell]:
    """What ``pack`` made words of, given cells of the same number and type."""
    per = _per_word(like)
    if per == 1:
        return list(words)
    full, cells = f"<{per} x {like[0].type}>", []
    for word in words:
        vector = w.emit(f"bitcast i32 {word.text} to {full}")
        cells += [Cell(w.emit(f"extractelement {full} {vector}, i32 {i}"), like[0].element) for i in range(per)]
    return cells


def merge(w: FunctionWriter, ways: Sequence[tuple[Sequence[Cell], str]]) -> list[Cell]:
    """At the head of a block: the packed cells of whichever block it was entered from."""
    first = ways[0][0]
    return [
        Cell(w.emit(f"phi {x.type} " + ", ".join(f"[ {cells[i].text}, %{block} ]" for cells, block in ways)), x.element)
        for i, x in enumerate(first)
    ]
