"""Products of block-scaled operands: values are decoded and multiplied by their scales while they are packed."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Op, Value
from ...ir.types import ScalarType, element_of, f8e4m3, f8e5m2, f32, shape_of
from ..convert import cast, to_wide
from ..writer import Cell, FunctionWriter, vector
from . import access
from .dot import Place, Product, blocking, compute_type, multiply, panels_place, rows_place
from .emit import FunctionEmitter, rule
from .errors import Unsupported
from .index import Dim, Index
from .nest import Shape, count, lanes_for, nest

_RAW = {"e4m3": f8e4m3, "e5m2": f8e5m2}
_PLAIN = frozenset({"bf16", "fp16"})


@rule("dot_scaled")
def _dot_scaled(f: FunctionEmitter, op: Op) -> None:
    """A scale s stands for 2^(s - 127), 255 for NaN; 4-bit values are two to a byte, the lower half first."""
    e, (a, b, acc), result = f.e, op.operands[:3], op.results[0]
    rest = iter(op.operands[3:])
    a_scale = next(rest) if op.attrs["a_scaled"] else None
    b_scale = next(rest) if op.attrs["b_scaled"] else None
    for name in ("a_format", "b_format"):
        if op.attrs[name] not in (*_RAW, *_PLAIN, "e2m1"):
            raise Unsupported(f"dot_scaled of format {op.attrs[name]!r} is not supported", op)
    element = compute_type(element_of(acc.type))
    out = f.buffer_for(result)
    *batch, m, n = shape_of(result.type)
    a_packed = op.attrs["a_format"] == "e2m1" and op.attrs.get("a_k_pack", True)
    k = shape_of(a.type)[-1] * (2 if a_packed else 1)
    left = _Side(f, a, op.attrs["a_format"], a_scale, 1, 1 if op.attrs.get("a_k_pack", True) else 0, k)
    right = _Side(f, b, op.attrs["b_format"], b_scale, 0, 0 if op.attrs.get("b_k_pack", True) else 1, k)
    block = blocking(m, n, element.bits, f.machine)

    def one(prefix: Index) -> None:
        rows, place = rows_place(f, m, k, element)
        left.pack(prefix, (m, k), element, place)
        panels, place = panels_place(f, k, n, element, block)
        right.pack(prefix, (k, n), element, place)
        multiply(f, rows, panels, acc, result, prefix, (m, n, k), Product(block, element), out)

    if batch:

        def each(d: Dim, _: list[str]) -> Sequence[str]:
            one((d,))
            return ()

        count(e, batch[0], each)
    else:
        one(())
    e.reset()
    f.buffers[result] = out


class _Side:
    """One operand: K is axis ``k_axis`` of its last two axes; two 4-bit values share a byte along ``packed_axis``."""

    def __init__(
        self, f: FunctionEmitter, value: Value, form: str, scale: Value | None, k_axis: int, packed_axis: int, k: int
    ) -> None:
        self.f = f
        self.value = value
        self.form = form
        self.scale = scale
        self.k_axis = k_axis
        self.packed_axis = packed_axis
        self.group = k // shape_of(scale.type)[-1] if scale is not None else 1

    def pack(self, prefix: Index, shape: tuple[int, int], element: ScalarType, place: Place) -> None:
        e = self.f.e
        axis = 1 if shape[1] > 1 else 0
        limit = e.machine.vector_bits // element.bits
        chosen = Shape(axis, lanes_for(shape[axis], limit)) if shape[axis] > 1 else Shape(None, 0)

        def body(index: Index) -> None:
            cell = self.decode(prefix, index)
            target, at = place(index)
            access.write(e, target, at, cell if cell.element == element else cast(self.f.w, cell, element))

        nest(e, shape, chosen, body)

    def decode(self, prefix: Index, index: Index) -> Cell:
        """The scaled value at an index into the unpacked operand, as f32."""
        f, e = self.f, self.f.e
        lanes = 0 if all(d.is_scalar for d in index) else e.lanes
        if self.form == "e2m1":
            whole, half = e.divide(index[self.packed_axis], 2)
            where = tuple(whole if i == self.packed_axis else d for i, d in enumerate(index))
            byte = self._read(self.value, (*prefix, *where), lanes)
            number = nibble(f.w, byte, self._half(half, lanes))
        else:
            raw = self._read(self.value, (*prefix, *index), lanes)
            number = to_wide(f.w, Cell(raw.text, _RAW[self.form], lanes) if self.form in _RAW else raw)
        if self.scale is None:
            return number
        group, _ = e.divide(index[self.k_axis], self.group)
        factor = power(f.w, self._read(self.scale, (*prefix, index[1 - self.k_axis], group), lanes))
        return Cell(f.w.emit(f"fmul {number.typed}, {factor.text}"), f32, lanes)

    def _read(self, value: Value, index: Index, lanes: int) -> Cell:
        cell, level = self.f.e.cell(value, index)
        return self.f.e.splat(cell, level) if lanes else cell

    def _half(self, half: Dim, lanes: int) -> str:
        """0 or 1 for the lower or upper half of the byte, as i32."""
        e = self.f.e
        text = e.vector_of(half) if lanes else half.text
        return self.f.w.emit(f"trunc {vector('i64', lanes)} {text} to {vector('i32', lanes)}")


def _const(value: int, lanes: int) -> str:
    return f"splat (i32 {value})" if lanes else str(value)


def nibble(w: FunctionWriter, byte: Cell, half: str) -> Cell:
    """An E2M1 value (sign, 2 exponent bits with bias 1, 1 fraction bit) as f32, by its bits."""
    lanes = byte.lanes
    type = vector("i32", lanes)

    def op(opcode: str, a: str, b: str | int) -> str:
        return w.emit(f"{opcode} {type} {a}, {_const(b, lanes) if isinstance(b, int) else b}")

    wide = w.emit(f"zext {byte.typed} to {type}")
    code = op("lshr", wide, op("shl", half, 2))
    sign = op("shl", op("and", code, 8), 28)
    exponent = op("and", op("lshr", code, 1), 3)
    fraction = op("and", code, 1)
    normal = op("or", op("shl", op("add", exponent, 126), 23), op("shl", fraction, 22))
    denormal = op("mul", fraction, 0x3F000000)
    zero = w.emit(f"icmp eq {type} {exponent}, {_const(0, lanes)}")
    bits = w.emit(f"select {vector('i1', lanes)} {zero}, {type} {denormal}, {type} {normal}")
    return Cell(w.emit(f"bitcast {type} {op('or', bits, sign)} to {vector('float', lanes)}"), f32, lanes)


def power(w: FunctionWriter, scale: Cell) -> Cell:
    """2^(s - 127) as f32 by its bits; 2^-127 is denormal, 255 NaN."""
    lanes = scale.lanes
    type, flag = vector("i32", lanes), vector("i1", lanes)
    wide = w.emit(f"zext {vector('i8', lanes)} {scale.text} to {type}")
    bits = w.emit(f"shl {type} {wide}, {_const(23, lanes)}")
    for value, special in ((0, 0x00400000), (255, 0x7FC00000)):
        found = w.emit(f"icmp eq {type} {wide}, {_const(value, lanes)}")
        bits = w.emit(f"select {flag} {found}, {type} {_const(special, lanes)}, {type} {bits}")
    return Cell(w.emit(f"bitcast {type} {bits} to {vector('float', lanes)}"), f32, lanes)
