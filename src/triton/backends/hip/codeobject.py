"""Reads the metadata note of an AMD code object: how a kernel gets its arguments, and which resources it takes.

Source: LLVM "User Guide for AMDGPU Backend", "Code Object V5 Metadata": an ELF note of type 32 (NT_AMDGPU_METADATA)
by "AMDGPU" holds one MessagePack map. MessagePack's formats are those of its specification that LLVM writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_NOTE_SECTION, _METADATA = 7, 32


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel argument. ``kind`` is ``global_buffer``, ``by_value`` or one of the ``hidden_`` kinds; offsets are in
    the segment."""

    offset: int
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class Note:
    """A kernel's entry. Sizes are in bytes; registers are for each lane. Scalar registers are spilled to lanes of
    vector registers first, vector registers to private memory."""

    name: str
    symbol: str
    arguments: tuple[Argument, ...]
    kernarg_size: int
    kernarg_align: int
    shared: int
    private: int
    vector_registers: int
    scalar_registers: int
    accumulator_registers: int
    vector_spills: int
    scalar_spills: int
    lanes: int
    max_threads: int


def read_note(binary: bytes, name: str) -> Note:
    """The entry of kernel ``name``. Raises ValueError when the file has none."""
    for blob in _notes(binary):
        for kernel in _Reader(blob).value().get("amdhsa.kernels", ()):
            if kernel[".name"] == name:
                return _note(kernel)
    raise ValueError(f"the code object has no metadata for kernel {name!r}")


def _note(k: dict[str, Any]) -> Note:
    arguments = tuple(Argument(a[".offset"], a[".size"], a[".value_kind"]) for a in k.get(".args", ()))
    return Note(
        name=k[".name"],
        symbol=k[".symbol"],
        arguments=arguments,
        kernarg_size=k[".kernarg_segment_size"],
        kernarg_align=k[".kernarg_segment_align"],
        shared=k[".group_segment_fixed_size"],
        private=k[".private_segment_fixed_size"],
        vector_registers=k[".vgpr_count"],
        scalar_registers=k[".sgpr_count"],
        accumulator_registers=k.get(".agpr_count", 0),
        vector_spills=k.get(".vgpr_spill_count", 0),
        scalar_spills=k.get(".sgpr_spill_count", 0),
        lanes=k[".wavefront_size"],
        max_threads=k[".max_flat_workgroup_size"],
    )


def _notes(binary: bytes) -> Iterator[bytes]:
    """The metadata in each note section of a 64-bit little-endian ELF file."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an AMD code object: it is no 64-bit ELF file")
    (sections,) = struct.unpack_from("<Q", binary, 40)
    size, count = struct.unpack_from("<HH", binary, 58)
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQ", binary, sections + number * size)
        kind, at, end = fields[1], fields[4], fields[4] + fields[5]
        while kind == _NOTE_SECTION and at + 12 <= end:
            name_size, blob_size, note = struct.unpack_from("<III", binary, at)
            start = at + 12 + -(-name_size // 4) * 4
            if note == _METADATA and binary[at + 12 : at + 18] == b"AMDGPU":
                yield binary[start : start + blob_size]
            at = start + -(-blob_size // 4) * 4


class _Reader:
    """MessagePack: one value after another."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise ValueError("the code object's metadata ends early")
        self.at += count
        return piece

    def number(self, count: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "big", signed=signed)

    def value(self) -> Any:
        tag = self.number(1)
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self.map(tag & 15)
        if tag < 0xA0:
            return [self.value() for _ in range(tag & 15)]
        if tag < 0xC0:
            return self.take(tag & 31).decode()
        if tag >= 0xE0:
            return tag - 256
        if tag in _FIXED:
            return _FIXED[tag]
        if 0xCC <= tag <= 0xD3:
            return self.number(1 << (tag & 3), signed=tag >= 0xD0)
        if 0xD9 <= tag <= 0xDB:
            return self.take(self.number(1 << tag - 0xD9)).decode()
        if tag in (0xDC, 0xDD):
            return [self.value() for _ in range(self.number(2 << tag - 0xDC))]
        if tag in (0xDE, 0xDF):
            return self.map(self.number(2 << tag - 0xDE))
        raise ValueError(f"the code object's metadata holds a value of unknown format 0x{tag:02x}")

    def map(self, count: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(count)}


_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
