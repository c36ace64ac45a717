"""Casts between all number types, exactly as the op table's ``cast`` says, with nothing but generic LLVM operations.

f16, bf16 and the 8-bit floats are converted by integer operations on their bits (f16 by instructions where the target
has them). A narrowing conversion rounds once: sources wider than f32 first go to f32 by rounding to odd (the last bit
is set when anything was lost), after which a second rounding to at most 22 bits is the same as rounding the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, frexp, inf, ldexp

from ..ir.types import ElementType, PointerType, ScalarType, f32, f64
from .values import Num, num
from .writer import Cell, FunctionWriter, scalar_type


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A binary float of at most 16 bits: exponent and mantissa widths, bias, and what its top codes mean.

    ``specials``: ``ieee`` (all-ones exponent is infinity and NaN), ``nan`` (only the all-ones code is NaN), ``fnuz``
    (only the code of minus zero is NaN), ``none``. ``saturate``: magnitudes too large become ``largest``.
    """

    exponent: int
    mantissa: int
    bias: int
    specials: str
    largest: int
    nan: int
    saturate: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


FORMATS = {
    "f16": SmallFloat(5, 10, 15, "ieee", 0x7BFF, 0x7E00, saturate=False),
    "bf16": SmallFloat(8, 7, 127, "ieee", 0x7F7F, 0x7FC0, saturate=False),
    "f8e4m3": SmallFloat(4, 3, 7, "nan", 0x7E, 0x7F),
    "f8e5m2": SmallFloat(5, 2, 15, "ieee", 0x7B, 0x7F),
    "f8e4b15": SmallFloat(4, 3, 15, "none", 0x7F, 0x7F),
    "f8e4b8": SmallFloat(4, 3, 8, "fnuz", 0x7F, 0x80),
    "f8e5b16": SmallFloat(5, 2, 16, "fnuz", 0x7F, 0x80),
}

_F32_EXPONENT, _F32_SIGN, _F32_MAGNITUDE = 0x7F800000, 0x80000000, 0x7FFFFFFF


def cast(w: FunctionWriter, cell: Cell, to: ElementType, rounding: str = "rtne") -> Cell:
    """``cell`` converted to ``to``; ``rounding`` (``rtne`` or ``rtz``) is for results that are floats."""
    source = cell.element
    if source == to:
        return cell
    assert isinstance(source, ScalarType) and isinstance(to, ScalarType), f"no cast from {source} to {to}"
    if to.is_bool:
        return num(w, cell).ne(0).cell(to) if source.is_integer else num(w, to_wide(w, cell)).ne(0.0).cell(to)
    if source.is_integer:
        if to.is_integer:
            return num(w, cell).resize(scalar_type(to), source.is_signed).cell(to)
        return _int_to_float(w, cell, source, to, rounding)
    wide = to_wide(w, cell)
    if to.is_integer:
        return _float_to_int(num(w, wide), to).cell(to)
    return from_wide(w, wide, to, rounding)


def to_wide(w: FunctionWriter, cell: Cell) -> Cell:
    """A float cell as f32, exactly; f32 and f64 stay."""
    name = cell.element.name if isinstance(cell.element, ScalarType) else ""
    if name in ("f32", "f64"):
        return cell
    if name == "f16" and w.features.half_convert:
        return num(w, cell).convert("fpext", "float").cell(f32)
    fmt = FORMATS[name]
    code = num(w, cell).bitcast(f"i{fmt.bits}").resize("i32")
    if name == "bf16":
        return (code << 16).bitcast("float").cell(f32)
    return _decode(code, fmt).cell(f32)


def _decode(code: Num, fmt: SmallFloat) -> Num:
    """The f32 that ``code`` (in the low bits of an i32) stands for.

    Exponent and mantissa are moved into f32's fields and the product with a power of two corrects the bias; denormals
    come right by the same product, because as f32 fields they are denormals scaled alike.
    """
    magnitude = code & (fmt.sign - 1)
    shifted = magnitude << (23 - fmt.mantissa)
    value = (shifted.bitcast("float") * 2.0 ** (127 - fmt.bias)).to_bits()
    sign = (code & fmt.sign) << (32 - fmt.bits)
    if fmt.specials == "ieee":
        top = ((1 << fmt.exponent) - 1) << fmt.mantissa
        value = magnitude.compare("uge", top).select(shifted | _F32_EXPONENT, value)
    elif fmt.specials == "nan":
        value = magnitude.eq(fmt.sign - 1).select(0x7FC00000, value)
    result = value | sign
    if fmt.specials == "fnuz":
        result = code.eq(fmt.nan).select(0x7FC00000, result)
    return result.bitcast("float")


def from_wide(w: FunctionWriter, cell: Cell, to: ScalarType, rounding: str = "rtne") -> Cell:
    """An f32 or f64 cell rounded once to the float type ``to``."""
    if cell.element == to:
        return cell
    x = num(w, cell)
    if to.name == "f64":
        return x.convert("fpext", "double").cell(to)
    if cell.element == f64:
        if to.name == "f32":
            return (x.convert("fptrunc", "float") if rounding == "rtne" else _narrow(x, odd=False)).cell(to)
        x = _narrow(x, odd=True)
    if to.name == "f16" and w.features.half_convert and rounding == "rtne":
        return x.convert("fptrunc", "half").cell(to)
    fmt = FORMATS[to.name]
    code = _encode_bf16(x, rounding) if to.name == "bf16" else _encode(x, fmt, rounding)
    return code.resize(f"i{fmt.bits}").bitcast(scalar_type(to)).cell(to)


def _narrow(x: Num, odd: bool) -> Num:
    """f64 to f32, toward zero; with ``odd`` the last bit is set when the result is not exact."""
    near = x.convert("fptrunc", "float")
    back = near.convert("fpext", "double")
    bits = near.to_bits()
    bits = back.abs().gt(x.abs()).select(bits - 1, bits)
    if odd:
        bits = back.compare("one", x).select(bits | 1, bits)
    return bits.bitcast("float")


def _encode_bf16(x: Num, rounding: str) -> Num:
    """The bf16 code of an f32 in the low half of an i32. Overflow carries into the exponent and so gives infinity."""
    bits = x.to_bits()
    if rounding == "rtz":
        rounded = bits >> 16
    else:
        rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    return x.isnan().select((bits >> 16) | 0x40, rounded)


def _encode(x: Num, fmt: SmallFloat, rounding: str) -> Num:
    """The code of an f32 in the low bits of an i32."""
    bits = x.to_bits()
    magnitude = bits & _F32_MAGNITUDE
    sign = (bits & _F32_SIGN) >> (32 - fmt.bits)
    shift = 23 - fmt.mantissa
    rebias = (127 - fmt.bias) << 23
    # Adding a float whose last place is the format's smallest denormal lets the addition do the rounding.
    magic = (127 + 24 - fmt.bias - fmt.mantissa) << 23
    absolute = magnitude.bitcast("float")
    sum_ = absolute + Num(x.w, magnitude.const(magic).text, "i32", x.lanes).bitcast("float")
    denormal = sum_.to_bits() - magic
    if rounding == "rtz":
        back = sum_ - Num(x.w, magnitude.const(magic).text, "i32", x.lanes).bitcast("float")
        denormal = back.gt(absolute).select(denormal - 1, denormal)
        normal = (magnitude - rebias) >> shift
    else:
        normal = (magnitude + ((magnitude >> shift) & 1) + ((1 << (shift - 1)) - 1 - rebias)) >> shift
    smallest_normal = (127 - fmt.bias + 1) << 23
    code = magnitude.compare("ult", smallest_normal).select(denormal, normal)
    if fmt.saturate:
        code = code.call("umin", fmt.largest)
    else:
        infinity = fmt.largest + 1
        limit = code.call("umin", infinity if rounding == "rtne" else fmt.largest)
        code = magnitude.eq(_F32_EXPONENT).select(infinity, limit)
    if fmt.specials == "fnuz":
        result = code.eq(0).select(0, code | sign)
    else:
        result = code | sign
    nan = magnitude.compare("ugt", _F32_EXPONENT)
    return nan.select(result.const(fmt.nan), result)


def encode_number(value: float, name: str) -> int:
    """The code of ``value`` in the small float ``name``, to nearest even, as ``cast`` gives it."""
    fmt = FORMATS[name]
    if value != value:
        return fmt.nan
    sign = fmt.sign if copysign(1.0, value) < 0 else 0
    magnitude = abs(value)
    if magnitude == inf:
        code = fmt.largest if fmt.saturate else fmt.largest + 1
    else:
        exponent = max(frexp(magnitude)[1] - 1, 1 - fmt.bias) if magnitude else 1 - fmt.bias
        units = round(ldexp(magnitude, fmt.mantissa - exponent))  # Python rounds ties to even, the scaling is exact
        code = units + ((exponent + fmt.bias - 1) << fmt.mantissa)
        code = min(code, fmt.largest if fmt.saturate else fmt.largest + 1)
    return 0 if fmt.specials == "fnuz" and code == 0 else code | sign


def _float_to_int(x: Num, to: ScalarType) -> Num:
    """Toward zero, saturating, NaN to 0. ``x`` is float or double.

    Clamped before the conversion, which then is a plain one; LLVM's saturating intrinsic goes lane by lane on many
    targets.
    """
    low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.is_signed else (0, (1 << to.bits) - 1)
    precision = 24 if x.base == "float" else 53
    spare = max(0, high.bit_length() - precision)
    top = high >> spare << spare  # the largest number of the float type that is in range
    clamped = x.gt(float(low)).select(x, float(low))
    clamped = clamped.lt(float(top)).select(clamped, float(top))
    if to.bits < 32:
        result = clamped.convert("fptosi", "i32").resize(scalar_type(to))
    else:
        result = clamped.convert("fptosi" if to.is_signed else "fptoui", scalar_type(to))
    if top != high:
        result = x.gt(float(top)).select(high, result)
    return x.isnan().select(0, result) if low else result


def _int_to_float(w: FunctionWriter, cell: Cell, source: ScalarType, to: ScalarType, rounding: str) -> Cell:
    x = num(w, cell)
    opcode = "sitofp" if source.is_signed else "uitofp"
    exact_bits = {"f64": 53, "f32": 24}.get(to.name, 24)
    if source.bits <= exact_bits:
        wide = "double" if to.name == "f64" else "float"
        return from_wide(w, x.convert(opcode, wide).cell(f64 if wide == "double" else f32), to, rounding)
    if to.name in ("f32", "f64"):
        if rounding == "rtne":
            return x.convert(opcode, scalar_type(to)).cell(to)
        return _int_cut(x, source, exact_bits, odd=False).convert(opcode, scalar_type(to)).cell(to)
    # One rounding to a small float: keep 24 bits with a sticky last bit, which f32 holds exactly.
    return from_wide(w, _int_cut(x, source, exact_bits, odd=True).convert(opcode, "float").cell(f32), to, rounding)


def _int_cut(x: Num, source: ScalarType, keep: int, odd: bool) -> Num:
    """``x`` with all but the leading ``keep`` bits of its magnitude cleared; ``odd`` sets the last kept bit if any
    was lost.
    """
    width = x.bits
    negative = x.lt(0) if source.is_signed else None
    magnitude = negative.select(-x, x) if negative is not None else x
    name = f"llvm.ctlz.{f'v{x.lanes}' if x.lanes else ''}{x.base}"
    callee = x.w.module.declare(name, x.type, [x.type, "i1"])
    zeros = Num(x.w, x.w.call(x.type, callee, [magnitude.typed, "i1 false"]), x.base, x.lanes)
    drop = zeros.call("umin", width - keep)
    drop = (drop.const(width - keep)) - drop
    unit = drop.const(1) << drop
    kept = magnitude & -unit
    if odd:
        kept = kept.ne(magnitude).select(kept | unit, kept)
    return negative.select(-kept, kept) if negative is not None else kept


def bitcast(w: FunctionWriter, cell: Cell, to: ElementType) -> Cell:
    """The same bits as ``to``, which is as wide; pointers count as 64-bit integers."""
    if isinstance(cell.element, PointerType):
        if isinstance(to, PointerType):
            return Cell(cell.text, to, cell.lanes)
        as_int = num(w, cell).convert("ptrtoint", "i64")
        return as_int.bitcast(scalar_type(to)).cell(to)
    if isinstance(to, PointerType):
        return num(w, cell).bitcast("i64").convert("inttoptr", scalar_type(to)).cell(to)
    return num(w, cell).bitcast(scalar_type(to)).cell(to)
