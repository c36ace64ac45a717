"""Printing and assertions by the device library's printf, whose text the HIP runtime writes out.

The calls are those that AMD's compilers make for ``printf``: a message is begun, the format is appended, then the
arguments, up to seven at a time, 8 bytes each (device library ``ockl``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Op
from ...ir.types import PointerType, TensorType, f64
from ...lowering import convert
from ...lowering.simt.context import Context
from ...lowering.writer import Cell, FunctionWriter


def print_values(c: Context, op: Op, programs: Sequence[str]) -> None:
    """One line for each element, printed by its first replica."""
    w = c.w
    where_am_i = [w.emit(f"zext i32 {p} to i64") for p in programs]
    prefix, many = _escaped(op.attrs["prefix"]), len(op.operands) > 1
    if not op.operands:
        with w.branch(c.first_thread(), "print"):
            printf(w, f"pid (%u, %u, %u) {prefix}\n", where_am_i)
    for number, value in enumerate(op.operands):
        label = prefix + (f"(operand {number}) " if many else "")
        layout = c.layout(value) if isinstance(value.type, TensorType) else None
        owner = c.is_first_replica(layout) if layout is not None else c.first_thread()
        for r, cell in enumerate(c.tile(value)):
            inside = c.both(owner, c.in_range(layout, r) if layout is not None else None)
            at = [c.coordinate(layout, d, r) for d in range(len(layout.shape))] if layout is not None else []
            with w.branch(inside or "true", "print"):
                form, text = _printed(w, cell, bool(op.attrs.get("hex", False)))
                sizes = layout.shape if layout is not None else ()
                index = "(" + ", ".join(f"%{len(str(size - 1))}u" for size in sizes) + ")"
                wide = [w.emit(f"zext i32 {x} to i64") for x in at]
                printf(w, f"pid (%u, %u, %u) idx {index} {label}{form}\n", [*where_am_i, *wide, text])


def check(c: Context, op: Op, with_text: bool) -> None:
    """A failed assertion prints its message where that is possible, and stops the kernel with a trap."""
    w = c.w
    value = op.operands[0]
    layout = c.layout(value) if isinstance(value.type, TensorType) else None
    mask = c.tile(op.operands[1]) if len(op.operands) > 1 else None
    place = f"{op.loc.file}:{op.loc.line}: {op.loc.function}: " if op.loc is not None else ""
    trap = w.module.declare("llvm.trap", "void", [], "cold noreturn nounwind")
    for r, cell in enumerate(c.tile(value)):
        failed: str | None = w.emit(f"xor i1 {cell.text}, true")
        if layout is not None:
            failed = c.both(failed, c.in_range(layout, r))
        if mask is not None:
            failed = c.both(failed, mask[r].text)
        assert failed is not None
        with w.branch(failed, "assert"):
            if with_text:
                printf(w, _escaped(f"{place}assertion failed: {op.attrs['message']}\n"), [])
            w.line(f"call void {trap}()")


def printf(w: FunctionWriter, form: str, args: Sequence[str]) -> None:
    """``args`` are i64 operands: integers extended, doubles as their bits."""
    module = w.module
    begin = module.declare("__ockl_printf_begin", "i64", ["i64"])
    append_text = module.declare("__ockl_printf_append_string_n", "i64", ["i64", "ptr", "i64", "i32"])
    append = module.declare("__ockl_printf_append_args", "i64", ["i64", "i32", *["i64"] * 7, "i32"])
    data = form.encode() + bytes(1)
    message = w.emit(f"call i64 {begin}(i64 0)")
    message = w.emit(
        f"call i64 {append_text}(i64 {message}, ptr {module.string(data)}, i64 {len(data)}, i32 {int(not args)})"
    )
    for start in range(0, len(args), 7):
        group = list(args[start : start + 7])
        given = ", ".join(f"i64 {x}" for x in [*group, *["0"] * (7 - len(group))])
        last = int(start + 7 >= len(args))
        message = w.emit(f"call i64 {append}(i64 {message}, i32 {len(group)}, {given}, i32 {last})")


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _printed(w: FunctionWriter, cell: Cell, hexadecimal: bool) -> tuple[str, str]:
    """A printf conversion and its argument as i64."""
    kind = cell.element
    if isinstance(kind, PointerType):
        return "0x%016llx", w.emit(f"ptrtoint {cell.typed} to i64")
    if kind.is_float and not hexadecimal:
        return "%g", w.emit(f"bitcast double {convert.cast(w, cell, f64).text} to i64")
    text, type = cell.text, "i1" if kind.is_bool else f"i{kind.bits}"
    if kind.is_float and not kind.is_fp8:
        text = w.emit(f"bitcast {cell.typed} to {type}")
    if kind.bits < 64:
        signed = kind.is_signed and not hexadecimal and not kind.is_float
        text = w.emit(f"{'sext' if signed else 'zext'} {type} {text} to i64")
    if hexadecimal:
        return f"0x%0{max(8, kind.bits) // 4}llx", text
    return ("%lld" if kind.is_signed else "%llu"), text
