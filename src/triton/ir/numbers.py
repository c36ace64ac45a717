"""Exact arithmetic of the scalar types on Python numbers: wrapping, rounding, bit patterns.

Integers are Python ints, booleans bools, floats Python floats (every float format here is a subset of f64).
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from .types import ScalarType

Number = bool | int | float


class FloatFormat(NamedTuple):
    """``precision`` counts the significant bits, the hidden one included; ``bias`` is the exponent's. ``special``
    says how the top codes are used: ``ieee`` (infinities and NaN), ``nan`` (only 0x7f and 0xff are NaN), ``fnuz``
    (0x80 is NaN, no -0), ``none``."""

    precision: int
    bias: int
    bits: int
    special: str = "ieee"

    @property
    def lowest_exponent(self) -> int:
        """Exponent of the smallest denormal: every value is a multiple of 2 to this power."""
        return 2 - self.bias - self.precision

    @property
    def largest(self) -> float:
        """The largest finite value."""
        fraction = self.precision - 1
        code = (1 << self.bits - 1) - 1
        if self.special == "ieee":
            code = code - (1 << fraction)
        elif self.special == "nan":
            code -= 1
        return _decode(code, self)


FORMATS: dict[str, FloatFormat] = {
    "f16": FloatFormat(11, 15, 16),
    "bf16": FloatFormat(8, 127, 16),
    "f32": FloatFormat(24, 127, 32),
    "f64": FloatFormat(53, 1023, 64),
    "f8e4m3": FloatFormat(4, 7, 8, "nan"),
    "f8e5m2": FloatFormat(3, 15, 8),
    "f8e4b15": FloatFormat(4, 15, 8, "none"),
    "f8e4b8": FloatFormat(4, 8, 8, "fnuz"),
    "f8e5b16": FloatFormat(3, 16, 8, "fnuz"),
}


def limits(type: ScalarType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    if type.kind == "int":
        return -(1 << type.bits - 1), (1 << type.bits - 1) - 1
    return 0, (1 << type.bits) - 1


def wrap(value: int, type: ScalarType) -> int | bool:
    """The value of an integer type that has the same low bits."""
    value &= (1 << type.bits) - 1
    if type.kind == "int":
        return value - (1 << type.bits) if value >> type.bits - 1 else value
    return bool(value) if type.kind == "bool" else value


def round_float(value: int | float, type: ScalarType, toward_zero: bool = False) -> float:
    """``value``, exact, rounded once to a float type: to nearest even, or toward zero.

    Overflow gives infinity, toward zero the largest finite value. The 8-bit formats saturate: overflow and infinities
    give the largest finite value; where there is no NaN (f8e4b15), a NaN gives it too.
    """
    format = FORMATS[type.name]
    if format.bits == 64 and isinstance(value, float):
        return value
    if isinstance(value, float):
        if value == 0 or not math.isfinite(value):
            return _special(value, format)
        numerator, denominator = value.as_integer_ratio()
        exponent = 1 - denominator.bit_length()
    else:
        numerator, exponent = int(value), 0
        if numerator == 0:
            return 0.0
    magnitude = abs(numerator)
    excess = max(magnitude.bit_length() - format.precision, format.lowest_exponent - exponent, 0)
    kept = magnitude >> excess
    rest, half = magnitude & ((1 << excess) - 1), (1 << excess) >> 1
    if not toward_zero and (rest > half or (rest == half and excess and kept & 1)):
        kept += 1
    try:
        result = math.ldexp(kept, exponent + excess)
    except OverflowError:
        result = math.inf
    if result > format.largest:
        result = format.largest if toward_zero or format.bits == 8 else math.inf
    if result == 0 and format.special == "fnuz":
        return 0.0
    return -result if numerator < 0 else result


def _special(value: float, format: FloatFormat) -> float:
    if value == 0:
        return 0.0 if format.special == "fnuz" else value
    if math.isinf(value):
        return math.copysign(format.largest, value) if format.bits == 8 else value
    return format.largest if format.special == "none" else value


def to_bits(value: Number, type: ScalarType) -> int:
    """The bit pattern of a value of ``type``; a NaN gives the format's quiet NaN."""
    if not type.is_float:
        return int(value) & ((1 << type.bits) - 1)
    format, value = FORMATS[type.name], float(value)
    fraction = format.precision - 1
    sign = 1 << format.bits - 1 if math.copysign(1.0, value) < 0 else 0
    top = ((1 << format.bits - 1) - 1) >> fraction << fraction
    if value != value:
        if format.special == "fnuz":
            return 1 << format.bits - 1
        return (1 << format.bits - 1) - 1 if format.special == "nan" else top | 1 << fraction - 1
    if math.isinf(value):
        return sign | top
    if value == 0:
        return sign
    scaled, exponent = math.frexp(abs(value))
    biased = exponent - 1 + format.bias
    if biased <= 0:
        return sign | int(math.ldexp(scaled, exponent - format.lowest_exponent))
    return sign | biased << fraction | int(math.ldexp(scaled, format.precision)) - (1 << fraction)


def from_bits(bits: int, type: ScalarType) -> Number:
    """The value of ``type`` with this bit pattern."""
    if not type.is_float:
        return wrap(bits, type)
    format = FORMATS[type.name]
    if type.bits == 64:
        value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        return value
    return _decode(bits, format)


def _decode(bits: int, format: FloatFormat) -> float:
    fraction = format.precision - 1
    sign = -1.0 if bits >> format.bits - 1 else 1.0
    magnitude = bits & (1 << format.bits - 1) - 1
    biased, low = magnitude >> fraction, magnitude & (1 << fraction) - 1
    if format.special == "fnuz" and bits == 1 << format.bits - 1:
        return math.nan
    if format.special == "nan" and magnitude == (1 << format.bits - 1) - 1:
        return math.nan
    if format.special == "ieee" and biased == (1 << format.bits - 1) - 1 >> fraction:
        return math.nan if low else sign * math.inf
    if biased == 0:
        return sign * math.ldexp(low, format.lowest_exponent)
    return sign * math.ldexp(low + (1 << fraction), biased - 1 + format.lowest_exponent)
