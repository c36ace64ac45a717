"""Helpers of the kernel tests: element types, random data, launching under a back end.

Expected values are computed here with NumPy alone, independently of the interpreter's own conversions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import device
import numpy as np

import triton
import triton.language as tl
from triton import knobs

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
FLOAT8 = ("float8e4nv", "float8e5", "float8e4b15", "float8e4b8", "float8e5b16")
ALL = ("int1", *INTEGERS, *FLOATS, *FLOAT8)

# exponent bits, mantissa bits, bias, how the top codes are used
_FLOAT8 = {
    "float8e4nv": (4, 3, 7, "nan"), "float8e5": (5, 2, 15, "ieee"), "float8e4b15": (4, 3, 15, "none"),
    "float8e4b8": (4, 3, 8, "fnuz"), "float8e5b16": (5, 2, 16, "fnuz"),
}  # fmt: skip


def _float8_table(name: str) -> np.ndarray:
    exponent_bits, mantissa_bits, bias, special = _FLOAT8[name]
    code = np.arange(256)
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (code & ((1 << mantissa_bits) - 1)) / 2.0**mantissa_bits
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    values = np.where(code >= 128, -values, values)
    if special == "ieee":
        values[0x7C], values[0xFC] = np.inf, -np.inf
        values[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    elif special == "nan":
        values[[0x7F, 0xFF]] = np.nan
    elif special == "fnuz":
        values[0x80] = np.nan
    return values


FLOAT8_VALUES = {name: _float8_table(name) for name in FLOAT8}


def storage(name: str) -> np.dtype:
    """The NumPy type that holds a language type in memory."""
    return np.dtype({"int1": "?", "bfloat16": "uint16", **dict.fromkeys(FLOAT8, "uint8")}.get(name, name))


def decode(raw: np.ndarray, name: str) -> np.ndarray:
    """The numbers that an array in memory form stands for."""
    if name == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if name in FLOAT8:
        return FLOAT8_VALUES[name][raw]
    return raw


def encode(values: Any, name: str) -> np.ndarray:
    """Numbers in memory form: integers wrap, floats round to nearest even; 8-bit floats saturate."""
    values = np.asarray(values)
    if name == "int1":
        return values != 0
    if name in INTEGERS:
        if values.dtype.kind == "f":
            values = values.astype(np.int64)
        return values.astype(name)
    with np.errstate(all="ignore"):
        if name == "bfloat16":
            return _round_bits(values.astype(np.float64), 8, -126, 127)
        if name in FLOAT8:
            return _encode_float8(values.astype(np.float64), name)
        return values.astype(name)


def _round_bits(values: np.ndarray, precision: int, lowest: int, highest: int) -> np.ndarray:
    """bfloat16 codes by scaling to an integer significand, rounding it half to even and scaling back."""
    exponent = np.maximum(np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1, lowest)
    scale = np.ldexp(1.0, exponent - precision + 1)
    rounded = np.where(np.isfinite(values), np.rint(values / scale) * scale, values)
    rounded = np.where(np.abs(rounded) >= 2.0 ** (highest + 1), np.copysign(np.inf, rounded), rounded)
    return (rounded.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _encode_float8(values: np.ndarray, name: str) -> np.ndarray:
    table = FLOAT8_VALUES[name][:128]
    codes = np.flatnonzero(np.isfinite(table))
    finite = table[codes]
    magnitude = np.minimum(np.abs(np.where(np.isnan(values), 0, values)), finite[-1])
    at = np.clip(np.searchsorted(finite, magnitude), 1, len(finite) - 1)
    low, high = finite[at - 1], finite[at]
    up = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) & (codes[at - 1] % 2 == 1))
    result = np.where(up, codes[at], codes[at - 1])
    negative_zero = _FLOAT8[name][3] != "fnuz"
    result = np.where(np.signbit(values) & ((result != 0) | negative_zero), result | 0x80, result)
    nan = {"fnuz": 0x80, "none": 0x7F, "nan": 0x7F, "ieee": 0x7F}[_FLOAT8[name][3]]
    return np.where(np.isnan(values), nan, result).astype(np.uint8)


def argument(raw: np.ndarray, name: str) -> Any:
    """What is passed to a kernel for an array in memory form."""
    return triton.reinterpret(raw, getattr(tl, name)) if name == "bfloat16" or name in FLOAT8 else raw


@dataclass
class Data:
    """An array of a language type: ``raw`` in memory form, ``values`` as numbers, ``arg`` for a launch."""

    name: str
    raw: np.ndarray

    @property
    def values(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            return decode(self.raw, self.name)

    @property
    def arg(self) -> Any:
        return argument(self.raw, self.name)


def empty(name: str, shape: Any, fill: int = 0x77) -> Data:
    """An array filled with a byte pattern, so that an element nobody wrote shows."""
    raw = np.zeros(shape, dtype=storage(name))
    raw.view(np.uint8)[...] = fill if name != "int1" else 1
    return Data(name, raw)


def sample(name: str, shape: Any, seed: int = 0, low: float = -10, high: float = 10) -> Data:
    """Random numbers, exactly representable; integers from [low, high] cut to the type's range."""
    rng = np.random.default_rng(seed)
    if name == "int1":
        return Data(name, rng.integers(0, 2, shape).astype(bool))
    if name in INTEGERS:
        info = np.iinfo(name)
        return Data(name, rng.integers(max(int(low), info.min), min(int(high), info.max) + 1, shape).astype(name))
    return Data(name, encode(rng.uniform(low, high, shape), name))


def full_range(name: str, shape: Any, seed: int = 0) -> Data:
    """Integers over the type's whole range."""
    info = np.iinfo(name)
    return Data(name, np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=name, endpoint=True))


def wrapped(values: Any, name: str) -> np.ndarray:
    """Python integers cut to a NumPy integer type."""
    info = np.iinfo(name)
    size = 1 << info.bits
    return np.array([(int(v) - info.min) % size + info.min for v in values], dtype=name)


EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPSILON |= {
    "float8e4nv": 2.0**-3,
    "float8e5": 2.0**-2,
    "float8e4b15": 2.0**-3,
    "float8e4b8": 2.0**-3,
    "float8e5b16": 2.0**-2,
}


def close(got: Data, expected: np.ndarray, places: float = 1.0, scale: Any = None) -> None:
    """Asserts that floats differ by at most ``places`` last places of ``scale`` (the expected value when not given)."""
    with np.errstate(invalid="ignore"):
        values = got.values.astype(np.float64)
    expected = np.asarray(expected, dtype=np.float64)
    size = np.abs(expected) if scale is None else np.broadcast_to(scale, expected.shape)
    size = np.where(np.isfinite(size), size, 0)
    tiny = {"float16": 2.0**-14, "float64": 2.0**-1022}.get(got.name, 2.0**-126)
    with np.errstate(invalid="ignore"):
        good = np.abs(values - expected) <= places * EPSILON[got.name] * np.maximum(size, tiny)
    good |= (values == expected) | (np.isnan(values) & np.isnan(expected))
    assert good.all(), (
        f"{int((~good).sum())} of {good.size} differ; first: got {values[~good].flat[0]!r}, "
        f"expected {expected[~good].flat[0]!r} at {tuple(int(i[0]) for i in np.nonzero(~good))}"
    )


def dot_loss(launch: Any, name: str) -> int:
    """Last places that a product of this type may lose: GPUs round float32 operands to tf32 (10 bits) by default."""
    return 2**13 if launch.keywords["backend"] == "cuda" and name == "float32" else 1


def launch(kernel: Any, grid: Any, *args: Any, backend: str, **meta: Any) -> None:
    """Runs a kernel. ``args``: arrays, Data, numbers, None or tuples of these."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(plain(v) for v in value)
        return value.arg if isinstance(value, Data) else value

    if backend == "cuda":
        device.launch(kernel, grid, tuple(map(plain, args)), {name: plain(value) for name, value in meta.items()})
        return
    if backend.startswith("laid_out_"):
        device.interpret_laid_out(kernel, grid, tuple(map(plain, args)), meta, int(backend[9:]))
        return
    if backend.startswith("sm_"):
        device.compile_only(kernel, grid, tuple(map(plain, args)), meta, int(backend[3:]))
    with knobs.runtime.scope():
        knobs.runtime.interpret = backend == "interpreter"
        kernel[grid](*map(plain, args), **meta)
