"""How many neighbouring registers of a tile one memory access may cover."""

from __future__ import annotations

from ..layouts.linear import LinearLayout, bit_positions
from .axis import AxisInfo

MAX_ACCESS_BYTES = 16


def first_axis(layout: LinearLayout) -> int | None:
    """The axis along which neighbouring registers lie; None when they do not lie side by side."""
    if not layout.register:
        return None
    places = bit_positions(layout.shape)
    return next((d for d, bits in enumerate(places) if bits and layout.register[0] == 1 << bits[0]), None)


def access_width(layout: LinearLayout, pointer: AxisInfo | None, mask: AxisInfo | None, element_bytes: int) -> int:
    """A power of two: registers that lie side by side, at consecutive and aligned addresses, under one value of the
    mask.

    ``mask`` None means that there is none.
    """
    axis = first_axis(layout)
    if pointer is None or axis is None:
        return 1
    bits = bit_positions(layout.shape)[axis]
    run = 0
    while run < min(len(layout.register), len(bits)) and layout.register[run] == 1 << bits[run]:
        run += 1
    size = layout.shape[axis]
    aligned = max(1, pointer.divisibility[axis] // element_bytes)
    limits = [1 << run, pointer.contiguity[axis], aligned, MAX_ACCESS_BYTES // element_bytes, size & -size]
    if mask is not None:
        limits.append(mask.constancy[axis])
    return 1 << min(limits).bit_length() - 1
