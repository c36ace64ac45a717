"""Mathematical functions: the unary ops of the op table and the C names of ``libm``.

Everything is computed in float64 and rounded once to the result type, which makes results for narrower types correctly
rounded in all but the rarest cases. Functions that NumPy lacks come from Python's ``math`` or the process's C library.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.types import ScalarType

from .directed import directed
from .errors import Unsupported
from .floats import narrow, storage_dtype, widen

Array = npt.NDArray[Any]
Function = Callable[..., Any]


def _elementwise(function: Callable[..., float]) -> Function:
    """A Python function of floats applied to every element; a domain error gives NaN, an overflow infinity."""

    def guarded(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    def apply(*arrays: Array) -> Array:
        ufunc = np.frompyfunc(guarded, len(arrays), 1)
        return np.asarray(ufunc(*arrays), dtype=np.float64)

    return apply


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.nan if x == -math.inf else math.gamma(x)


def _log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


UNARY: dict[str, Function] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(x), "erf": _elementwise(math.erf), "floor": np.floor,
    "ceil": np.ceil,
}  # fmt: skip

_LIBM: dict[str, Function] = {
    **UNARY,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "expm1": np.expm1,
    "exp10": lambda x: np.power(10.0, x), "log10": np.log10, "log1p": np.log1p, "cbrt": np.cbrt,
    "rcbrt": lambda x: 1.0 / np.cbrt(x), "pow": np.power, "powi": np.power, "hypot": np.hypot,
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y), "fabs": np.abs, "fmod": np.fmod,
    "remainder": _elementwise(math.remainder),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "fmin": np.fmin, "fmax": np.fmax, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint, "roundeven": np.rint,
    "round": lambda x: np.copysign(_half_up(np.abs(x)), x),
    "copysign": np.copysign, "ldexp": lambda x, n: np.ldexp(x, _clip_exponent(n)),
    "scalbn": lambda x, n: np.ldexp(x, _clip_exponent(n)),
    "logb": lambda x: np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, np.frexp(x)[1] - 1.0)),
    "ilogb": lambda x: np.where(
        np.isnan(x) | (x == 0), -2147483648, np.where(np.isinf(x), 2147483647, np.frexp(x)[1] - 1)
    ),
    "erfc": _elementwise(math.erfc), "tgamma": _elementwise(_gamma), "lgamma": _elementwise(_log_gamma),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)), "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "normcdf": lambda x: 0.5 * _elementwise(math.erfc)(-x / math.sqrt(2.0)),
    "saturate": lambda x: np.where(x > 0, np.minimum(x, 1.0), 0.0),
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "finite": np.isfinite, "signbit": np.signbit,
}  # fmt: skip


def _half_up(x: Array) -> Array:
    return np.where(np.isfinite(x), np.floor(x) + (x - np.floor(x) >= 0.5), x)


def _clip_exponent(n: Array) -> Array:
    return np.clip(n, -5000, 5000).astype(np.int32)


def unary(kind: str, a: Array, element: ScalarType) -> Array:
    """One of the unary ops of the table."""
    return narrow(np.asarray(UNARY[kind](widen(a, element).astype(np.float64))), element)


def libm(name: str, args: Sequence[Array], elements: Sequence[ScalarType], result: ScalarType) -> Array:
    """A C function; predicates give 0 or 1. Raises Unsupported for a name that neither NumPy nor the C library has."""
    rounded = directed(name, args, result)
    if rounded is not None:
        return rounded
    if name == "nextafter":
        values = [widen(a, e) for a, e in zip(args, elements, strict=True)]
        return narrow(np.asarray(np.nextafter(*values)), result)
    function = _LIBM.get(name) or _from_c_library(name, len(args))
    wide = [widen(a, e).astype(np.float64) for a, e in zip(args, elements, strict=True)]
    value = np.asarray(function(*wide))
    return narrow(value, result) if result.is_float else value.astype(np.int64).astype(storage_dtype(result))


@cache
def _from_c_library(name: str, arity: int) -> Function:
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    try:
        function = getattr(library, name)
    except AttributeError:
        raise Unsupported(f"the interpreter has no function {name!r}") from None
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * arity
    return _elementwise(function)
