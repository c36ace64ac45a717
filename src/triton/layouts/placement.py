"""Where a tile lies in a slot of shared memory: rows of up to 128 bytes, swizzled, in panels.

The inner axis is the one whose elements lie side by side. A panel holds W = min(128, row) bytes of every row; panels
follow each other. Within a panel, bits 4 and up of the byte address are exchanged (XOR) with bits 7 and up,
log2(W / 16) of them: pieces of 16 bytes of neighbouring rows change places, so that reading a column of pieces meets
every bank once.
This is what the matrix instructions of compute capability 9.0 read (PTX ISA, "Shared Memory Matrix Layout", 128-, 64-
and 32-byte swizzling), and the map is linear, so any layout can be read from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .linear import LinearLayout, bit_counts, bit_positions
from .shared import SharedPlan

PANEL_BYTES = 128
PIECE_BYTES = 16


def panel_bytes(shape: Sequence[int], inner: int, element_bytes: int) -> int:
    """How many bytes of a row stand in one panel; a single row is one panel."""
    counts = bit_counts(shape)
    row = element_bytes << counts[inner]
    return min(PANEL_BYTES, row) if sum(counts) > counts[inner] else row


def swizzle_bits(shape: Sequence[int], inner: int, element_bytes: int) -> int:
    """log2 of how many pieces of a row are exchanged: 3, 2, 1 or 0."""
    counts = bit_counts(shape)
    if sum(counts) == counts[inner]:
        return 0
    return max(0, (panel_bytes(shape, inner, element_bytes) // PIECE_BYTES).bit_length() - 1)


def placement(shape: Sequence[int], inner: int, element_bytes: int) -> tuple[int, ...]:
    """For each bit of the padded row-major index, the byte address of the element with only that bit set (addresses
    XOR)."""
    counts, positions = bit_counts(shape), bit_positions(shape)
    panel = panel_bytes(shape, inner, element_bytes)
    rows = 1
    result = [0] * sum(counts)
    for axis in reversed(range(len(shape))):
        if axis != inner:
            for i, bit in enumerate(positions[axis]):
                result[bit] = panel * rows << i
            rows <<= counts[axis]
    for i, bit in enumerate(positions[inner]):
        at = element_bytes << i
        result[bit] = at if at < panel else at // panel * panel * rows
    mask = (1 << swizzle_bits(shape, inner, element_bytes)) - 1
    return tuple(at ^ ((at >> 7 & mask) << 4) for at in result)


def tile_bytes(shape: Sequence[int], element_bytes: int) -> int:
    """The size of one slot; a multiple of 1024, which the swizzle counts from."""
    return -(-(element_bytes << sum(bit_counts(shape))) // 1024) * 1024


def access_plan(layout: LinearLayout, inner: int, element_bytes: int, limit: int = PIECE_BYTES) -> SharedPlan:
    """Addresses (in elements) of a tile in ``layout``, and how many neighbouring registers one access may cover."""
    bases = placement(layout.shape, inner, element_bytes)
    positions = bit_positions(layout.shape)[inner]
    run = 0
    while (
        run < min(len(layout.register), len(positions))
        and layout.register[run] == 1 << positions[run]
        and element_bytes << run + 1 <= limit
    ):
        run += 1
    elements = tile_bytes(layout.shape, element_bytes) // element_bytes
    return SharedPlan(tuple(b // element_bytes for b in bases), 1 << run, elements)
