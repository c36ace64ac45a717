"""Boxes of global tensors as machines copy them to and from shared memory: a tile cut into pieces that can be copied.

A tile lies in shared memory as ``placement.py`` says, its last axis inside. One copy moves a piece: at most a panel
wide and 256 elements long along each axis, whose rows follow each other in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from .placement import PIECE_BYTES, panel_bytes, swizzle_bits

MAX_RANK = 5
MAX_SIZE = 256
MAX_PIECES = 32
"""More would be more code than they are worth."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """``piece``: sizes of one copy. ``copies``: for each one the element offsets along the axes, and where it lies in
    the slot, in bytes. ``swizzle``: bytes of a row whose pieces of 16 bytes change places; 16 when none do."""

    piece: tuple[int, ...]
    copies: tuple[tuple[tuple[int, ...], int], ...]
    swizzle: int


def boxes(shape: Sequence[int], element_bytes: int) -> Boxes | None:
    """How a tile is cut; None when it cannot be."""
    inner = len(shape) - 1
    if not 1 <= len(shape) <= MAX_RANK or any(size & size - 1 for size in shape):
        return None
    if shape[inner] * element_bytes < PIECE_BYTES:
        return None
    panel = panel_bytes(shape, inner, element_bytes) // element_bytes
    piece = [0] * len(shape)
    piece[inner] = min(panel, MAX_SIZE)
    whole = True  # so far; where an axis is cut, the slower ones go one by one
    for axis in reversed(range(inner)):
        piece[axis] = min(shape[axis], MAX_SIZE) if whole else 1
        whole = piece[axis] == shape[axis]
    steps = [range(0, size, part) for size, part in zip(shape, piece, strict=True)]
    if len(list(product(*steps))) > MAX_PIECES:
        return None
    copies = tuple((at, _place(shape, at, panel, element_bytes)) for at in product(*steps))
    return Boxes(tuple(piece), copies, PIECE_BYTES << swizzle_bits(shape, inner, element_bytes))


def _place(shape: Sequence[int], at: Sequence[int], panel: int, element_bytes: int) -> int:
    """Where the piece at these offsets begins, in bytes, before bits are exchanged: machines do that by address."""
    row, rows = 0, 1
    for start, size in zip(at[:-1], shape[:-1], strict=True):
        row = row * size + start
        rows *= size
    column = at[-1]
    return (column // panel * rows * panel + row * panel + column % panel) * element_bytes
