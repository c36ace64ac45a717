"""Rules of the elementwise ops: arithmetic, comparison, casts, mathematics.

Operands are arrays in storage form (``floats.storage_dtype``) of any equal or broadcastable shape, so a rule serves a
tile, a scalar and a whole column of a reduction alike. Where the op table leaves a choice, the docstring says what is
chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.types import ElementType, ScalarType

from .floats import FORMATS, RAW, encode, exact_integers, narrow, storage_dtype, widen

Array = npt.NDArray[Any]
Binary = Callable[[Array, Array, ScalarType], Array]


# Arithmetic ---------------------------------------------------------------------------------------------------------


def _arithmetic(numbers: Callable[[Array, Array], Any], booleans: Callable[[Array, Array], Any]) -> Binary:
    """Integers wrap, booleans count modulo 2, floats are computed in their own or a wider type and rounded once."""

    def rule(a: Array, b: Array, element: ScalarType) -> Array:
        if element.is_bool:
            return np.asarray(booleans(a, b))
        if element.name in RAW:
            return narrow(np.asarray(numbers(widen(a, element), widen(b, element))), element)
        return np.asarray(numbers(a, b))

    return rule


def _safe_divisor(b: Array) -> Array:
    """0 and, for signed types, -1 replaced by 1: no trap, and the remainder by -1 is 0 anyway."""
    bad = (b == 0) | (b == -1) if b.dtype.kind == "i" else b == 0
    return np.where(bad, b.dtype.type(1), b)


def divide(a: Array, b: Array, element: ScalarType) -> Array:
    """Truncating for integers; a zero divisor counts as 1, and MIN / -1 wraps to MIN. IEEE for floats."""
    if element.is_float:
        return narrow(np.asarray(np.divide(widen(a, element), widen(b, element))), element)
    if element.is_bool:
        return np.logical_and(a, True)
    divisor = _safe_divisor(b)
    quotient = np.asarray((a - np.fmod(a, divisor)) // divisor)
    return np.where(b == -1, np.negative(a), quotient) if element.is_signed else quotient


def remainder(a: Array, b: Array, element: ScalarType) -> Array:
    """Sign of the dividend; a zero divisor counts as 1. C's fmod for floats."""
    if element.is_float:
        return narrow(np.asarray(np.fmod(widen(a, element), widen(b, element))), element)
    if element.is_bool:
        return np.logical_and(a, False)
    return np.asarray(np.fmod(a, _safe_divisor(b)))


def multiply_high(a: Array, b: Array, element: ScalarType) -> Array:
    """The high half of the double-width product."""
    if element.is_bool:
        return np.logical_and(a, False)
    if element.bits < 64:
        wide = np.int64 if element.is_signed else np.uint64
        return np.asarray((a.astype(wide) * b.astype(wide)) >> wide(element.bits)).astype(a.dtype)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    x0, x1, y0, y1 = x & mask, x >> half, y & mask, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    result = x1 * y1 + (middle >> half) + (((middle & mask) + x0 * y1) >> half)
    if element.is_signed:
        zero = np.uint64(0)
        result = result - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return np.asarray(result).astype(a.dtype)


def shift_left(a: Array, b: Array, element: ScalarType) -> Array:
    """Amounts are unsigned; from the width on, the result is 0."""
    return _shift(a, b, element, np.left_shift)


def shift_right(a: Array, b: Array, element: ScalarType) -> Array:
    """Amounts are unsigned; from the width on, the result is 0, or the sign for signed types."""
    return _shift(a, b, element, np.right_shift)


def _shift(a: Array, b: Array, element: ScalarType, operation: Callable[[Array, Array], Any]) -> Array:
    if element.is_bool:
        return np.logical_and(a, np.logical_not(b))
    large = (b < 0) | (b >= element.bits)
    beyond: Any = a.dtype.type(0)
    if element.is_signed and operation is np.right_shift:
        beyond = np.where(a < 0, a.dtype.type(-1), a.dtype.type(0))
    shifted: Array = operation(a, np.where(large, b.dtype.type(0), b))
    return np.where(large, beyond, shifted)


def extremum(a: Array, b: Array, element: ScalarType, larger: bool, propagate_nan: bool) -> Array:
    """min or max. A NaN loses against a number, or wins with ``propagate_nan``."""
    if element.is_bool:
        return np.asarray(np.logical_or(a, b) if larger else np.logical_and(a, b))
    if not element.is_float:
        return np.asarray(np.maximum(a, b) if larger else np.minimum(a, b))
    x, y = widen(a, element), widen(b, element)
    better = (x > y) if larger else (x < y)
    take_first = better | (np.isnan(x) if propagate_nan else np.isnan(y))
    return np.where(take_first, a, b)


BINARY: dict[str, Binary] = {
    "add": _arithmetic(np.add, np.logical_xor),
    "sub": _arithmetic(np.subtract, np.logical_xor),
    "mul": _arithmetic(np.multiply, np.logical_and),
    "div": divide,
    "rem": remainder,
    "mulhi": multiply_high,
    "and": lambda a, b, element: np.asarray(np.bitwise_and(a, b)),
    "or": lambda a, b, element: np.asarray(np.bitwise_or(a, b)),
    "xor": lambda a, b, element: np.asarray(np.bitwise_xor(a, b)),
    "shl": shift_left,
    "shr": shift_right,
}

_COMPARE: dict[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def compare(a: Array, b: Array, element: ElementType, predicate: str) -> Array:
    """i1. Pointers compare as unsigned numbers, booleans as 0 and 1; with a NaN only ``ne`` holds."""
    if isinstance(element, ScalarType):
        a, b = widen(a, element), widen(b, element)
    return np.asarray(_COMPARE[predicate](a, b))


def negate(a: Array, element: ScalarType) -> Array:
    """Integers wrap; floats flip the sign bit, NaN included."""
    if element.is_bool:
        return a
    if element.name not in RAW:
        return np.asarray(np.negative(a))
    sign = a.dtype.type(1 << element.bits - 1)
    if FORMATS[element.name].signed_zero:
        return np.asarray(a ^ sign)
    return np.where((a & ~sign) == 0, a, a ^ sign)  # neither 0 nor the NaN 0x80 has a negative


def absolute(a: Array, element: ScalarType) -> Array:
    """The smallest signed integer stays itself; floats clear the sign bit."""
    if element.is_bool or element.kind == "uint":
        return a
    if element.name not in RAW:
        return np.asarray(np.abs(a))
    sign = a.dtype.type(1 << element.bits - 1)
    if FORMATS[element.name].signed_zero:
        return np.asarray(a & ~sign)
    return np.where(a == sign, a, a & ~sign)


def fused_multiply_add(a: Array, b: Array, c: Array, element: ScalarType) -> Array:
    """a * b + c with one rounding."""
    x, y, z = (widen(v, element).astype(np.float64) for v in (a, b, c))
    if element.name == "f64":
        return _exact_fma(x, y, z)
    # The product of two 24-bit significands is exact in f64. The sum is rounded to odd there (Boldo and Melquiond
    # 2008), which makes the second rounding the only one that counts.
    product = x * y
    total = product + z
    part = total - product
    error = (product - (total - part)) + (z - part)
    bits = np.asarray(total).view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
    away = (error > 0) == (total > 0)
    odd = np.where(inexact, np.where(away, bits + 1, bits - 1), bits).view(np.float64)
    return narrow(odd, element)


def _exact_fma(x: Array, y: Array, z: Array) -> Array:
    def one(a: float, b: float, c: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return a * b + c
        if not math.isfinite(c):
            return c  # the product may overflow only after rounding
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact == 0:
            return a * b + c
        try:
            return float(exact)
        except OverflowError:
            return float("inf") if exact > 0 else float("-inf")

    with np.errstate(invalid="ignore"):
        return np.asarray(np.frompyfunc(one, 3, 1)(x, y, z), dtype=np.float64)


# Casts --------------------------------------------------------------------------------------------------------------


def cast(a: Array, source: ScalarType, target: ScalarType, rounding: str) -> Array:
    """Value conversion with one rounding. Float to integer truncates and saturates, NaN gives 0."""
    if source == target:
        return a
    values = widen(a, source)
    if target.is_bool:
        return np.asarray(values != 0)
    if target.is_float:
        return _to_float(values, target, rounding == "rtz")
    if source.is_float:
        return _float_to_integer(values, target)
    return values.astype(storage_dtype(target))


def _to_float(values: Array, target: ScalarType, toward_zero: bool) -> Array:
    integer = values.dtype.kind != "f"
    if target.name == "f64":
        return _integer_toward_zero(values) if integer and toward_zero else values.astype(np.float64)
    if target.name == "f32" and not toward_zero:
        return values.astype(np.float32)
    if integer:
        values = exact_integers(values)
    if target.name == "f16" and not toward_zero:
        return values.astype(np.float16)
    codes = encode(values, target.name, toward_zero)
    return codes if target.name in RAW else codes.view(storage_dtype(target))


def _integer_toward_zero(values: Array) -> Array:
    """float64 of integers, rounded toward zero: the bits below the 53rd are cut off first."""
    if values.dtype.itemsize < 8:
        return values.astype(np.float64)
    negative = values < 0
    magnitude = np.where(negative, np.negative(values), values).astype(np.uint64)
    for low in range(11, 0, -1):
        cut = magnitude >> np.uint64(low) << np.uint64(low)
        magnitude = np.where(magnitude >> np.uint64(52 + low) == 1, cut, magnitude)
    result = magnitude.astype(np.float64)
    return np.where(negative, -result, result)


def _float_to_integer(values: Array, target: ScalarType) -> Array:
    wide = values.astype(np.float64)
    low, high = (-(1 << target.bits - 1), 1 << target.bits - 1) if target.is_signed else (0, 1 << target.bits)
    dtype = storage_dtype(target)
    inside = (wide > low - 1.0) & (wide < high) if target.bits < 64 else (wide >= low) & (wide < high)
    whole = np.where(inside, np.trunc(wide), 0.0)
    result: Array = whole.astype(np.uint64 if target.kind == "uint" else np.int64).astype(dtype)
    result = np.where(wide >= high, np.array(high - 1, dtype=dtype), result)
    return np.where(wide <= low, np.array(low, dtype=dtype), result)


def bitcast(a: Array, target: ElementType) -> Array:
    """The same bits as another type of the same width."""
    if isinstance(target, ScalarType) and target.is_bool:
        return a
    return a.view(storage_dtype(target))
