"""Memory access through buffer descriptors: base in scalar registers, 32-bit offsets, bounds checked by the hardware.

Used where the kernel's caller promises that a pointer parameter points to less than 2 GiB (``tt.pointer_range``), so
that the distance of every element from the parameter fits; the machine remembers for each pointer made from such a
parameter how far it is from it. Lanes that are masked off get an offset out of bounds: their loads give 0, their stores
do nothing, without a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.core import Op
from ...ir.types import PointerType
from ...lowering.elementwise import add_pointer
from ...lowering.simt.context import memory_bytes
from ...lowering.writer import Cell, FunctionWriter

if TYPE_CHECKING:
    from .lowering import HipMachine

OUTSIDE = 1 << 31
"""The size of every buffer, and so an offset that is out of bounds."""


def word(bytes: int) -> str:
    """The LLVM type of an access of 1 to 16 bytes."""
    return f"i{8 * bytes}" if bytes <= 4 else f"<{bytes // 4} x i32>"


def advance(w: FunctionWriter, machine: HipMachine, op: Op, args: Sequence[Cell]) -> list[Cell]:
    """``addptr``; remembers the distance from the parameter."""
    pointer, offset = args
    result = add_pointer(w, pointer, offset)
    known = machine.offsets.get((w.name, pointer.text))
    if known is not None:
        base, before = known
        assert isinstance(pointer.element, PointerType)
        text, bits = offset.text, offset.element.bits
        if bits > 32:
            text = w.emit(f"trunc {offset.type} {text} to i32")
        elif bits < 32:
            text = w.emit(f"{'sext' if offset.element.is_signed else 'zext'} {offset.type} {text} to i32")
        width = memory_bytes(pointer.element.pointee)
        text = w.emit(f"mul i32 {text}, {width}") if width > 1 else text
        machine.offsets[w.name, result.text] = base, text if before == "0" else w.emit(f"add i32 {before}, {text}")
    return [result]


def _place(w: FunctionWriter, machine: HipMachine, pointer: Cell, predicate: str | None) -> tuple[str, str] | None:
    """Descriptor and offset of an access; None where the distance is not known."""
    base, offset = machine.offsets.get((w.name, pointer.text), ("", "0"))
    if offset == "0":
        return None
    low = w.emit(f"ptrtoint ptr addrspace(1) {base}.global to i64")
    words = [
        w.emit(f"trunc i64 {low} to i32"),
        w.emit(f"trunc i64 {w.emit(f'lshr i64 {low}, 32')} to i32"),
        str(OUTSIDE - (1 << 32)),
        str(machine.chip.buffer_word),
    ]
    descriptor = "poison"
    for i, text in enumerate(words):
        descriptor = w.emit(f"insertelement <4 x i32> {descriptor}, i32 {text}, i32 {i}")
    if predicate is not None:
        offset = w.emit(f"select i1 {predicate}, i32 {offset}, i32 {OUTSIDE - (1 << 32)}")
    return descriptor, offset


def load(w: FunctionWriter, machine: HipMachine, pointer: Cell, bytes: int, predicate: str | None) -> str | None:
    """The loaded word, 0 where the predicate fails; None where this way is not open."""
    place = _place(w, machine, pointer, predicate)
    if place is None:
        return None
    type = word(bytes)
    name = f"llvm.amdgcn.raw.buffer.load.{_suffix(bytes)}"
    callee = w.module.declare(name, type, ["<4 x i32>", "i32", "i32", "i32"])
    return w.emit(f"call {type} {callee}(<4 x i32> {place[0]}, i32 {place[1]}, i32 0, i32 0)")


def store(
    w: FunctionWriter, machine: HipMachine, pointer: Cell, value: str, full: str, bytes: int, predicate: str | None
) -> bool:
    """Stores ``value`` of LLVM type ``full``; whether this way was open."""
    place = _place(w, machine, pointer, predicate)
    if place is None:
        return False
    type = word(bytes)
    raw = value if full == type else w.emit(f"bitcast {full} {value} to {type}")
    name = f"llvm.amdgcn.raw.buffer.store.{_suffix(bytes)}"
    callee = w.module.declare(name, "void", [type, "<4 x i32>", "i32", "i32", "i32"])
    w.line(f"call void {callee}({type} {raw}, <4 x i32> {place[0]}, i32 {place[1]}, i32 0, i32 0)")
    return True


def _suffix(bytes: int) -> str:
    return f"i{8 * bytes}" if bytes <= 4 else f"v{bytes // 4}i32"
