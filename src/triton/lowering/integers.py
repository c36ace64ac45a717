"""Integer ops that need care: division without traps, shifts by any amount, the high half of a product."""

from __future__ import annotations

from ..ir.types import ScalarType
from .values import Num, num
from .writer import Cell, FunctionWriter, vector


def quotient(w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    """a / b truncated toward zero; a for b = 0, MIN for MIN / -1."""
    element = _scalar(a)
    if element.is_bool:
        return a
    if b.value is not None:
        if b.value in (0, 1):
            return a
        return (-num(w, a) if b.value == -1 else _divide(num(w, a), num(w, b), element)).cell(element)
    x, y = num(w, a), num(w, b)
    y = _safe_divisor(x, y, element)
    return (_float_quotient(x, y, element) if _by_float(a) else _divide(x, y, element)).cell(element)


def remainder(w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    """a - (a / b) * b, with the sign of a; 0 for b = 0 and b = -1."""
    element = _scalar(a)
    x, y = num(w, a), num(w, b)
    if element.is_bool or (b.value is not None and b.value in (-1, 0, 1)):
        return x.const(0).cell(element)
    if b.value is not None:
        return x.binary("srem" if element.is_signed else "urem", y).cell(element)
    y = _safe_divisor(x, y, element)
    if _by_float(a):
        return (x - _float_quotient(x, y, element) * y).cell(element)
    return x.binary("srem" if element.is_signed else "urem", y).cell(element)


def _scalar(a: Cell) -> ScalarType:
    assert isinstance(a.element, ScalarType)
    return a.element


def _by_float(a: Cell) -> bool:
    """Vector units divide floats only; dividing lane by lane in the integer unit is several times slower."""
    return a.lanes > 0 and a.element.bits <= 32


def _divide(x: Num, y: Num, element: ScalarType) -> Num:
    return x.binary("sdiv" if element.is_signed else "udiv", y)


def _safe_divisor(x: Num, y: Num, element: ScalarType) -> Num:
    """``y``, or 1 where the machine's division would trap: x / 1 is the result the op table wants there."""
    bad = y.eq(0)
    if element.is_signed:
        bad = Num(y.w, bad.text, "i1", y.lanes) | (y.eq(-1) & x.eq(-(1 << (element.bits - 1))))
    return bad.select(1, y)


def _float_quotient(x: Num, y: Num, element: ScalarType) -> Num:
    """The quotient of a float division, cut toward zero. This is exact: below the next integer a true quotient of n-bit
    integers stays away from it by a relative 2^-(n+1) or more, which 24 bits resolve for n = 16 and 53 for n = 32.
    """
    wide = "double" if element.bits == 32 else "float"
    opcode = "sitofp" if element.is_signed else "uitofp"
    ratio = x.convert(opcode, wide) / y.convert(opcode, wide)
    if element.bits == 32:
        return ratio.convert("fptosi" if element.is_signed else "fptoui", "i32")
    return ratio.convert("fptosi", "i32").resize(x.base)


def multiply_high(w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    """The high half of the product of twice the width, by the operands' signedness.

    Two unsigned vectors: the odd halves are picked by a shuffle. Of a shift, LLVM (22 and 23 at least) makes its MULHU
    node, and folds that by a vector of ones, as the tail of a masked load may be, to a shift by the whole width.
    """
    element = _scalar(a)
    x, y = num(w, a), num(w, b)
    if element.is_bool:
        return x.const(0).cell(element)
    extend, wide = ("sext" if element.is_signed else "zext"), f"i{2 * element.bits}"
    product = x.convert(extend, wide) * y.convert(extend, wide)
    if a.lanes and not element.is_signed and a.value is None and b.value is None:
        return _odd_halves(product, x.base).cell(element)
    return (product >> element.bits).resize(x.base).cell(element)


def _odd_halves(wide: Num, base: str) -> Num:
    """The upper half of each integer of a vector; little-endian."""
    pieces = vector(base, 2 * wide.lanes)
    text = wide.w.emit(f"bitcast {wide.type} {wide.text} to {pieces}")
    odd = ", ".join(f"i32 {2 * i + 1}" for i in range(wide.lanes))
    picked = wide.w.emit(f"shufflevector {pieces} {text}, {pieces} poison, <{wide.lanes} x i32> <{odd}>")
    return Num(wide.w, picked, base, wide.lanes)


def shift_left(w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    """a << b with b read as unsigned; 0 from the width on."""
    return _shift_or_zero("shl", w, a, b)


def shift_right(w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    """Logical for unsigned a (0 from the width on), arithmetic for signed a (the sign from the width on)."""
    if not a.element.is_signed:
        return _shift_or_zero("lshr", w, a, b)
    x, y, top = num(w, a), num(w, b), a.element.bits - 1
    if b.value is None:
        y = y.call("umin", top)
    elif not 0 <= b.value <= top:
        y = y.const(top)
    return x.ashr(y).cell(a.element)


def _shift_or_zero(opcode: str, w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    x, y, bits = num(w, a), num(w, b), a.element.bits
    if b.value is not None:
        return (x.binary(opcode, y) if 0 <= b.value < bits else x.const(0)).cell(a.element)
    if a.element.is_bool:
        return (x & ~y).cell(a.element)
    return y.compare("ult", bits).select(x.binary(opcode, y), 0).cell(a.element)
