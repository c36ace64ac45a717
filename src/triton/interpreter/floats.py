"""Number formats that NumPy does not have, by exact bit arithmetic: bfloat16 and five 8-bit floats.

Values of these types are kept in memory form: ``uint16`` for bf16 and ``uint8`` for the 8-bit ones. ``decode`` is
exact; ``encode`` rounds once, to nearest even or toward zero. Sources: IEEE 754-2019 section 4.3 (rounding), OCP 8-bit
floating point specification 1.0 (e4m3, e5m2), Noune et al. 2022 (the two FNUZ formats). Saturation of 8-bit types is a
choice of this implementation, the one that GPU conversion instructions make: see ``encode``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.types import PointerType, ScalarType, Type, element_of

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: 1 sign bit, ``exponent`` bits with ``bias``, ``mantissa`` bits.

    ``largest``     code of the largest finite value.
    ``nan``         code written for NaN.
    ``infinity``    code of infinity, or None.
    ``saturates``   overflow and infinity become ``largest``.
    ``signed_zero`` whether -0 exists.
    """

    storage: type
    exponent: int
    mantissa: int
    bias: int
    largest: int
    nan: int
    infinity: int | None
    saturates: bool
    signed_zero: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa


FORMATS: dict[str, Format] = {
    "f32": Format(np.uint32, 8, 23, 127, 0x7F7FFFFF, 0x7FC00000, 0x7F800000, False),
    "f16": Format(np.uint16, 5, 10, 15, 0x7BFF, 0x7E00, 0x7C00, False),
    "bf16": Format(np.uint16, 8, 7, 127, 0x7F7F, 0x7FC0, 0x7F80, False),
    "f8e4m3": Format(np.uint8, 4, 3, 7, 0x7E, 0x7F, None, True),
    "f8e5m2": Format(np.uint8, 5, 2, 15, 0x7B, 0x7F, 0x7C, True),
    "f8e4b15": Format(np.uint8, 4, 3, 15, 0x7F, 0x7F, None, True),
    "f8e4b8": Format(np.uint8, 4, 3, 8, 0x7F, 0x80, None, True, signed_zero=False),
    "f8e5b16": Format(np.uint8, 5, 2, 16, 0x7F, 0x80, None, True, signed_zero=False),
}
RAW = frozenset({"bf16", "f8e4m3", "f8e5m2", "f8e4b15", "f8e4b8", "f8e5b16"})
"""Float types that are kept as raw bits."""


def _decode_code(code: int, name: str) -> float:
    fmt = FORMATS[name]
    magnitude = code & ~(1 << fmt.bits - 1)
    sign = -1.0 if code >> fmt.bits - 1 else 1.0
    if not fmt.signed_zero and code == fmt.nan:
        return float("nan")
    if fmt.infinity is not None and magnitude >= fmt.infinity:
        return sign * float("inf") if magnitude == fmt.infinity else float("nan")
    if name == "f8e4m3" and magnitude == fmt.nan:
        return float("nan")
    exponent, mantissa = magnitude >> fmt.mantissa, magnitude & (1 << fmt.mantissa) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - fmt.bias - fmt.mantissa)
    return sign * (1 + mantissa / (1 << fmt.mantissa)) * 2.0 ** (exponent - fmt.bias)


_TABLES: dict[str, Array] = {
    name: np.array([_decode_code(code, name) for code in range(256)], dtype=np.float32)
    for name in RAW
    if name != "bf16"
}


def decode(raw: Array, name: str) -> Array:
    """The exact float32 values of raw codes of format ``name`` (one of RAW)."""
    if name == "bf16":
        wide: Array = (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return wide
    found: Array = _TABLES[name][raw]
    return found


def encode(values: Array, name: str, toward_zero: bool = False) -> Array:
    """Codes of format ``name`` for floats of any NumPy width, with one rounding.

    Overflow: infinity, or the largest finite value when rounding toward zero. The 8-bit formats saturate: too large
    values and infinities give the largest finite value, also in e5m2. NaN gives NaN (in e4b15, which has none, 0x7f).
    """
    fmt = FORMATS[name]
    bits = np.asarray(values, dtype=np.float64).view(np.int64)
    magnitude = bits & np.int64(0x7FFFFFFFFFFFFFFF)
    field = magnitude >> 52
    significand = (magnitude & 0xFFFFFFFFFFFFF) | (np.minimum(field, 1) << 52)
    exponent = np.maximum(field, 1) - 1023
    # The value is significand * 2^(exponent - 52); the code's last place is 2^(lifted - mantissa).
    lifted = np.maximum(exponent, 1 - fmt.bias)
    shift = np.minimum(lifted - fmt.mantissa - exponent + 52, 60)
    rounded = significand >> shift
    if not toward_zero:
        rest = significand - (rounded << shift)
        half = np.int64(1) << (shift - 1)
        rounded = rounded + ((rest > half) | ((rest == half) & ((rounded & 1) == 1)))
    code = ((lifted + fmt.bias - 1) << fmt.mantissa) + rounded
    infinite = np.int64(0x7FF0000000000000)
    if fmt.saturates:
        code = np.minimum(code, fmt.largest)
    else:
        assert fmt.infinity is not None
        code = np.where(code > fmt.largest, fmt.largest if toward_zero else fmt.infinity, code)
        code = np.where(magnitude == infinite, fmt.infinity, code)
    negative = bits < 0 if fmt.signed_zero else (bits < 0) & (code != 0)
    code = np.where(negative, code | (1 << fmt.bits - 1), code)
    code = np.where(magnitude > infinite, fmt.nan, code)
    return code.astype(fmt.storage)


def exact_integers(values: Array) -> Array:
    """Integers as float64, inexact ones rounded to odd, so that a second rounding to <= 32 bits is right."""
    if values.dtype.itemsize < 8:
        return values.astype(np.float64)
    negative = values < 0
    magnitude = np.where(negative, np.negative(values), values).astype(np.uint64)
    large = magnitude >= np.uint64(1 << 53)
    sticky = (magnitude >> np.uint64(11)) | ((magnitude & np.uint64(0x7FF)) != 0)
    result = np.where(large, sticky.astype(np.float64) * 2048.0, magnitude.astype(np.float64))
    return np.where(negative, -result, result)


_NUMPY: dict[str, type] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    **{name: FORMATS[name].storage for name in RAW},
}  # fmt: skip


def storage_dtype(type: Type) -> type:
    """The NumPy type that holds elements of ``type``, in memory and in the interpreter."""
    element = element_of(type)
    return np.uint64 if isinstance(element, PointerType) else _NUMPY[element.name]


def widen(values: Array, element: ScalarType) -> Array:
    """Floats in a NumPy float type that holds them exactly; other values unchanged."""
    return decode(values, element.name) if element.name in RAW else values


def narrow(values: Array, element: ScalarType) -> Array:
    """Floats rounded to nearest even into the form in which ``element`` is kept."""
    return encode(values, element.name) if element.name in RAW else values.astype(_NUMPY[element.name])


def from_python(value: Any, element: ScalarType | PointerType) -> Array:
    """A Python number as a rank-0 value of ``element``: integers wrap, floats are rounded once."""
    if isinstance(element, PointerType):
        return np.array(int(value) & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
    if element.is_float:
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            try:
                value = float(value)
            except OverflowError:
                value = float("inf") if value > 0 else float("-inf")
        return narrow(np.asarray(value, dtype=np.float64), element)
    if element.is_bool:
        return np.array(bool(value))
    bits = int(value) & (1 << element.bits) - 1
    if element.is_signed and bits >> element.bits - 1:
        bits -= 1 << element.bits
    return np.array(bits, dtype=_NUMPY[element.name])
