"""Tiles in memory: where they lie in the scratch arena and how long they stay there."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.types import ElementType
from ..writer import FunctionWriter
from .index import strides_of

ALIGNMENT = 64
MARGIN = 512
"""Bytes before the first buffer, and eight times as many after the last, that partial vectors may read (never
write)."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tile of ``element`` at ``pointer``; ``strides`` count elements. Booleans take a byte."""

    pointer: str
    shape: tuple[int, ...]
    element: ElementType
    strides: tuple[int, ...]

    @staticmethod
    def dense(pointer: str, shape: tuple[int, ...], element: ElementType) -> Buffer:
        return Buffer(pointer, shape, element, strides_of(shape))

    def at(self, pointer: str) -> Buffer:
        """The same tile elsewhere."""
        return Buffer(pointer, self.shape, self.element, self.strides)


def bytes_of(element: ElementType) -> int:
    """The size of one element in memory."""
    return max(1, element.bits // 8)


class Arena:
    """Hands out static places in a function's scratch memory; ``peak`` is the size it needs."""

    def __init__(self, w: FunctionWriter, base: str) -> None:
        self.w = w
        self.base = base
        self.entry = w.point()
        self.peak = 0
        self._used: list[tuple[int, int]] = []  # sorted, disjoint (start, end)
        self._pointers: dict[int, str] = {}

    def allocate(self, size: int) -> tuple[str, int]:
        """A pointer to ``size`` bytes and the offset by which they are freed."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        offset = MARGIN
        for start, end in self._used:
            if start - offset >= size:
                break
            offset = end
        self._used.append((offset, offset + size))
        self._used.sort()
        self.peak = max(self.peak, offset + size + 8 * MARGIN)
        return self.pointer(offset), offset

    def free(self, offset: int) -> None:
        self._used = [u for u in self._used if u[0] != offset]

    def pointer(self, offset: int) -> str:
        text = self._pointers.get(offset)
        if text is None:
            with self.w.at(self.entry):
                text = self.w.emit(f"getelementptr i8, ptr {self.base}, i64 {offset}")
            self._pointers[offset] = text
        return text
