"""Memory of the interpreter: the process's own, at real addresses.

With ``ranges`` every access is checked against them before it is made; without, against what the process may read or
write at all, where the operating system tells that (Linux). Elsewhere a wild address then crashes the process, as in C.
"""

from __future__ import annotations

import sys
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


class Mapped:
    """What the process may read and write, by ``/proc/self/maps``, read again where an address is in none."""

    __slots__ = ("_ends", "_source", "_starts")

    def __init__(self, source: str = "/proc/self/maps") -> None:
        self._source = source
        self._starts: dict[bool, Array] = {}
        self._ends: dict[bool, Array] = {}

    def _load(self) -> bool:
        try:
            with open(self._source, encoding="utf-8", errors="replace") as file:
                lines = [line.split(maxsplit=2)[:2] for line in file]
        except OSError:
            return False
        for write in (False, True):
            merged: list[list[int]] = []
            for span, rights in lines:
                if "r" not in rights or (write and "w" not in rights):
                    continue
                low, high = (int(text, 16) for text in span.split("-"))
                if merged and merged[-1][1] == low:
                    merged[-1][1] = high
                else:
                    merged.append([low, high])
            self._starts[write] = np.array([low for low, _ in merged], dtype=np.uint64)
            self._ends[write] = np.array([high for _, high in merged], dtype=np.uint64)
        return True

    def outside(self, addresses: Array, size: int, write: bool) -> int | None:
        """The first address at which ``size`` bytes cannot be read, or written; None where all can."""
        for fresh in (False, True):
            if (fresh or not self._starts) and not self._load():
                return None
            starts, ends = self._starts[write], self._ends[write]
            index = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
            end = ends[np.maximum(index, 0)]
            inside = (index >= 0) & (addresses < end) & (end - addresses >= np.uint64(size))
            if inside.all():
                return None
        return int(addresses[int(np.flatnonzero(~inside)[0])])


class Memory:
    """Element access by arrays of addresses (uint64). Values are in memory form: see ``floats.storage_dtype``."""

    __slots__ = ("_ends", "_mapped", "_ranges", "_starts")

    def __init__(self, ranges: Sequence[Range] | None = None) -> None:
        self._ranges = None if ranges is None else sorted(ranges, key=lambda r: r.start)
        told = sys.platform == "linux"  # under Wine the file exists too, but is another process's
        self._mapped = Mapped() if ranges is None and told else None
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
        view, offsets = self._view(addresses, stored, False)
        values: Array = view[offsets]
        return values != 0 if dtype is np.bool_ else values

    def write(self, addresses: Array, values: Array) -> None:
        """Stores flat ``values`` in order, so that the last of several writes to one address stays."""
        if values.dtype == np.bool_:
            values = values.astype(np.uint8)
        if addresses.size == 0:
            return
        view, offsets = self._view(addresses, values.dtype, True)
        view[offsets] = values

    def _view(self, addresses: Array, dtype: np.dtype[Any], write: bool) -> tuple[Array, Array]:
        low, high = int(addresses.min()), int(addresses.max())
        self._check(addresses, dtype.itemsize)
        wild = None if self._mapped is None else self._mapped.outside(addresses, dtype.itemsize, write)
        if wild is not None:
            raise MemoryFault(f"access to address {wild:#x}, which cannot be {'written' if write else 'read'}")
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
