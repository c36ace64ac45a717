"""Arithmetic and conversions rounded down, up or toward zero, named as in GPU libraries: ``add_rd``, ``ll2float_ru``.

The nearest result is compared with the exact one, a fraction, and moved to its neighbour where the direction asks so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.types import ScalarType

from .numeric import cast, fused_multiply_add

Array = npt.NDArray[Any]
Number = int | float

_OPERATION = re.compile(r"(add|sub|mul|div|fma|sqrt|rcp)_r([duz])")
_CONVERSION = re.compile(r"(double|float|int|uint|ll|ull)2(double|float|int|uint|ll|ull)_r([dunz])")
_WHOLE: dict[str, Callable[[Array], Any]] = {"d": np.floor, "u": np.ceil, "n": np.rint, "z": np.trunc}

_NEAREST: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
    "rcp": lambda x: 1 / x,
}  # fmt: skip
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x, "fma": lambda x, y, z: x * y + z,
}  # fmt: skip


def directed(name: str, args: Sequence[Array], result: ScalarType) -> Array | None:
    """The function's value in storage form, or None for a name that is none of this family."""
    operation, conversion = _OPERATION.fullmatch(name), _CONVERSION.fullmatch(name)
    if operation:
        kind, mode = operation.groups()
        dtype = args[0].dtype
        flat = [np.broadcast_to(a, args[0].shape).reshape(-1) for a in args]
        near = (
            fused_multiply_add(flat[0], flat[1], flat[2], result)
            if kind == "fma"
            else np.asarray(_NEAREST[kind](*flat))
        )
        moved = [_move(kind, mode, n, row, dtype) for n, *row in zip(near, *flat, strict=True)]
        return np.array(moved, dtype=dtype).reshape(args[0].shape)
    if conversion:
        return _convert(args[0], result, conversion.group(3))
    return None


def _move(kind: str, mode: str, near: Any, row: Sequence[Any], dtype: Any) -> Any:
    """One result: ``near``, or its neighbour in the direction of ``mode`` when the exact value lies beyond it."""
    if not all(math.isfinite(v) for v in row) or math.isnan(near):
        return near
    exact = [Fraction(float(v)) for v in row]
    if kind in ("div", "rcp") and exact[-1] == 0:
        return near
    if math.isinf(near):  # a finite value too large for the type
        near = math.copysign(np.finfo(dtype).max, near)
    fraction = Fraction(float(near))
    # A square root is compared by squares; both are positive.
    error = exact[0] - fraction**2 if kind == "sqrt" else _EXACT[kind](*exact) - fraction
    return _neighbour(near, fraction, error, mode, dtype)


def _neighbour(near: Any, fraction: Fraction, error: Fraction, mode: str, dtype: Any) -> Any:
    if mode == "z":
        mode = "d" if fraction + error > 0 else "u"
    near = dtype.type(near)
    if mode == "d" and error < 0:
        return np.nextafter(near, dtype.type(-np.inf))
    if mode == "u" and error > 0:
        return np.nextafter(near, dtype.type(np.inf))
    return near


def _convert(values: Array, result: ScalarType, mode: str) -> Array:
    if not result.is_float:
        source = ScalarType("f64", "float", 64)
        return cast(np.asarray(_WHOLE[mode](values)).astype(np.float64), source, result, "rtne")
    dtype = np.dtype(f"f{result.bits // 8}")
    near = values.astype(dtype)
    if mode == "n":
        return near
    moved = []
    for value, nearest in zip(values.reshape(-1).tolist(), near.reshape(-1), strict=True):
        if not math.isfinite(value):
            moved.append(nearest)
            continue
        if math.isinf(nearest):
            nearest = dtype.type(math.copysign(np.finfo(dtype).max, nearest))
        fraction = Fraction(float(nearest))
        moved.append(_neighbour(nearest, fraction, Fraction(value) - fraction, mode, dtype))
    return np.array(moved, dtype=dtype).reshape(values.shape)
