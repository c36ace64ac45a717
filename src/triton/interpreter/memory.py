"""Memory of the interpreter: the process's own, at real addresses.

With ``ranges`` every access is checked before it is made; without, a wild address crashes the process as it would in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import MemoryFault

Array = npt.NDArray[Any]
_NULL_PAGE = 4096
"""Below this address nobody has memory."""


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes [start, start + size) belong to the kernel argument ``name``."""

    start: int
    size: int
    name: str


class _Window:
    """Gives NumPy a typed view of raw memory in which item i starts at byte ``start + i``."""

    __slots__ = ("__array_interface__",)

    def __init__(self, start: int, span: int, dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {
            "data": (start, False), "shape": (span,), "strides": (1,), "typestr": dtype.str, "version": 3,
        }  # fmt: skip


class Memory:
    """Element access by arrays of addresses (uint64). Values are in memory form: see ``floats.storage_dtype``."""

    __slots__ = ("_ends", "_ranges", "_starts")

    def __init__(self, ranges: Sequence[Range] | None = None) -> None:
        self._ranges = None if ranges is None else sorted(ranges, key=lambda r: r.start)
        merged: list[list[int]] = []  # overlapping arguments become one stretch, so that a binary search finds it
        for r in self._ranges or ():
            if merged and r.start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], r.start + r.size)
            else:
                merged.append([r.start, r.start + r.size])
        self._starts = np.array([start for start, _ in merged], dtype=np.uint64)
        self._ends = np.array([end for _, end in merged], dtype=np.uint64)

    def read(self, addresses: Array, dtype: type) -> Array:
        """The elements at a flat array of addresses."""
        stored = np.dtype(np.uint8 if dtype is np.bool_ else dtype)
        if addresses.size == 0:
            return np.zeros(0, dtype=dtype)
        view, offsets = self._view(addresses, stored)
        values: Array = view[offsets]
        return values != 0 if dtype is np.bool_ else values

    def write(self, addresses: Array, values: Array) -> None:
        """Stores flat ``values`` in order, so that the last of several writes to one address stays."""
        if values.dtype == np.bool_:
            values = values.astype(np.uint8)
        if addresses.size == 0:
            return
        view, offsets = self._view(addresses, values.dtype)
        view[offsets] = values

    def _view(self, addresses: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        low, high = int(addresses.min()), int(addresses.max())
        self._check(addresses, dtype.itemsize)
        if low < _NULL_PAGE:
            raise MemoryFault(f"access to address {low:#x}")
        view = np.asarray(_Window(low, high - low + 1, dtype))
        return view, (addresses - np.uint64(low)).astype(np.int64)

    def _check(self, addresses: Array, size: int) -> None:
        if self._ranges is None:
            return
        index = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        inside = index >= 0
        if self._ranges:
            room = self._ends[np.maximum(index, 0)] - addresses
            inside &= (addresses < self._ends[np.maximum(index, 0)]) & (room >= np.uint64(size))
        if not inside.all():
            at = int(np.flatnonzero(~inside)[0])
            raise MemoryFault(self._describe(int(addresses[at]), size))

    def _describe(self, address: int, size: int) -> str:
        if not self._ranges:
            return f"access to address {address:#x}, but no argument has memory"

        def distance(r: Range) -> int:
            return max(r.start - address, address + size - (r.start + r.size))

        # The address does not say which pointer it came from: the nearest argument is the likeliest.
        nearest = min(self._ranges, key=distance)
        index = (address - nearest.start) // size
        return f"access outside argument {nearest.name!r}: index {index}, but it has {nearest.size // size} elements"
