"""device_print and device_assert: text is put together here and handed to the runtime."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Op, Value
from ...ir.types import ElementType, PointerType, f64, shape_of
from ..convert import cast, to_wide
from ..writer import Cell
from .emit import FunctionEmitter, rule
from .index import Dim, Index, is_scalar
from .nest import Shape, choose, nest, survey

_NUMBER = 32
"""The most bytes that one formatted number takes."""


@rule("assert")
def _assert(f: FunctionEmitter, op: Op) -> None:
    e, w = f.e, f.w
    condition = op.operands[0]
    mask = op.operands[1] if len(op.operands) > 1 else None
    shape = shape_of(condition.type)
    text = f"assertion failed: {op.attrs['message']}"
    if op.loc is not None:
        text = f"{op.loc.file}:{op.loc.line}: {op.loc.function}: {text}"
    data = text.encode()

    def body(index: Index) -> None:
        scalar = is_scalar(index)
        lanes = 0 if scalar else e.lanes
        holds = e.cell(condition, index)[0] if scalar else e.vector(condition, index)[0]
        bad = w.emit(f"xor {holds.typed}, {'splat (i1 true)' if lanes else 'true'}")
        if mask is not None:
            where = e.cell(mask, index)[0] if scalar else e.vector(mask, index)[0]
            bad = w.emit(f"and {holds.type} {bad}, {where.text}")
        if lanes:
            if e.active is not None:
                bad = w.emit(f"and {holds.type} {bad}, {e.active}")
            name = w.module.declare(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [holds.type])
            bad = w.call("i1", name, [f"{holds.type} {bad}"])
        fail, go_on = w.new_label("fail"), w.new_label("holds")
        w.cond_br(bad, fail, go_on)
        w.label(fail)
        stop = w.module.declare("tl_assert_fail", "void", ["ptr", "ptr", "i64"], "noreturn cold")
        w.line(f"call void {stop}(ptr {f.context}, ptr {w.module.string(data)}, i64 {len(data)})")
        w.line("unreachable")
        w.label(go_on)

    values: list[Value] = [condition] if mask is None else [condition, mask]
    nest(e, shape, choose(e, shape, survey(e, values, shape)), body)
    e.reset()


@rule("print")
def _print(f: FunctionEmitter, op: Op) -> None:
    e = f.e
    prefix, hexadecimal = op.attrs["prefix"], bool(op.attrs.get("hex", False))
    rank = max((len(shape_of(v.type)) for v in op.operands), default=0)
    size = len(prefix.encode()) + _NUMBER * (rank + 6) + 64
    line = _Line(f, f.w.alloca("i8", 16, size))
    if not op.operands:
        line.start()
        line.pid()
        line.text(prefix)
        line.finish()
    for k, value in enumerate(op.operands):

        def body(index: Index, k: int = k, value: Value = value) -> None:
            cell, _ = e.cell(value, index)
            line.start()
            line.pid()
            line.position(index, shape_of(value.type))
            line.text(prefix + (f"(operand {k}) " if len(op.operands) > 1 else ""))
            line.value(cell, hexadecimal)
            line.finish()

        nest(e, shape_of(value.type), Shape(None, 0), body)
        e.reset()


class _Line:
    """Writes one line into a buffer on the stack."""

    def __init__(self, f: FunctionEmitter, buffer: str) -> None:
        self.f = f
        self.w = f.w
        self.buffer = buffer
        self.length = "0"

    def start(self) -> None:
        self.length = "0"

    def end(self) -> str:
        return self.w.emit(f"getelementptr i8, ptr {self.buffer}, i64 {self.length}")

    def advance(self, by: str) -> None:
        self.length = self.w.emit(f"add i64 {self.length}, {by}")

    def text(self, text: str) -> None:
        data = text.encode()
        if not data:
            return
        name = self.w.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
        self.w.line(f"call void {name}(ptr {self.end()}, ptr {self.w.module.string(data)}, i64 {len(data)}, i1 false)")
        self.advance(str(len(data)))

    def number(self, function: str, operands: list[str]) -> None:
        types = [o.split(" ")[0] for o in operands]
        name = self.w.module.declare(function, "i64", ["ptr", *types])
        self.advance(self.w.call("i64", name, [f"ptr {self.end()}", *operands]))

    def integer(self, text: str, signed: bool = True, digits: int = 0) -> None:
        self.number("tl_fmt_i64" if signed else "tl_fmt_u64", [f"i64 {text}", f"i32 {digits}"])

    def pid(self) -> None:
        for axis in range(3):
            self.text("pid (" if axis == 0 else ", ")
            wide = self.w.emit(f"zext i32 {self.f.program_id(axis).text} to i64")
            self.integer(wide)
        self.text(") ")

    def position(self, index: Index, shape: Sequence[int]) -> None:
        self.text("idx (")
        for k, (d, size) in enumerate(zip(index, shape, strict=True)):
            self.text(", " if k else "")
            self._dim(d, len(str(size - 1)))
        self.text(") ")

    def _dim(self, d: Dim, width: int) -> None:
        if d.const is not None:
            self.text(str(d.const).rjust(width))
            return
        for digits in range(width - 1, 0, -1):
            self.w.line(f"store i8 {ord(' ')}, ptr {self.end()}")  # what comes next writes over it if it is not wanted
            short = self.w.emit(f"icmp ult i64 {d.text}, {10**digits}")
            self.advance(self.w.emit(f"zext i1 {short} to i64"))
        self.integer(d.text)

    def value(self, cell: Cell, hexadecimal: bool) -> None:
        element = cell.element
        if isinstance(element, PointerType):
            self.number("tl_fmt_ptr", [f"ptr {cell.text}"])
        elif hexadecimal:
            self.integer(self._bits(cell), False, 2 * max(1, element.bits // 8))
        elif element.is_float:
            wide = cast(self.w, to_wide(self.w, cell), f64)
            self.number("tl_fmt_f64", [f"double {wide.text}"])
        else:
            self.integer(self._wide(cell.text, f"i{element.bits}", element), element.is_signed)

    def _wide(self, text: str, base: str, element: ElementType) -> str:
        if base == "i64":
            return text
        return self.w.emit(f"{'sext' if element.is_signed else 'zext'} {base} {text} to i64")

    def _bits(self, cell: Cell) -> str:
        element, text = cell.element, cell.text
        base = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}.get(str(element), f"i{element.bits}")
        bits = f"i{element.bits}"
        if not base.startswith("i"):
            text = self.w.emit(f"bitcast {base} {text} to {bits}")
        return text if bits == "i64" else self.w.emit(f"zext {bits} {text} to i64")

    def finish(self) -> None:
        name = self.w.module.declare("tl_print", "void", ["ptr", "ptr", "i64"])
        self.w.line(f"call void {name}(ptr {self.f.context}, ptr {self.buffer}, i64 {self.length})")
