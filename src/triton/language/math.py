"""Mathematical functions, element by element. Integer arguments are converted to float32 first; 16-bit floats are
computed in float32 and rounded once."""

from __future__ import annotations

from typing import Any, TypeVar

from triton.frontend import dtypes as dt
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, describe, tensor, unwrap

from . import core

T = TypeVar("T")


def _unary(kind: str, doc: str) -> Any:
    def function(x: Any, _semantic: Any = None) -> tensor:
        return emit_unary(kind, x, _semantic)

    function.__name__ = function.__qualname__ = kind
    function.__doc__ = doc
    return builtin(function)


def emit_unary(kind: str, x: Any, s: TritonSemantic) -> tensor:
    """The op ``kind`` on floats; narrow floats through float32."""
    x = s.to_tensor(unwrap(x), f"{kind}: x")
    element = x.dtype
    if element.is_ptr():
        raise TypeError(f"{kind}: x: expected numbers, got {describe(x)}")
    if element.is_int():
        x = s.cast(x, dt.float32)
    elif element.primitive_bitwidth < 32:
        wide = s.cast(x, dt.float32)
        return s.cast(tensor(s.op(kind, [wide.handle], wide.type.ir), wide.type), element)
    return tensor(s.op(kind, [x.handle], x.type.ir), x.type)


exp = _unary("exp", "e to the power x.")
exp2 = _unary("exp2", "2 to the power x. Denormal results are kept.")
log = _unary("log", "Natural logarithm.")
log2 = _unary("log2", "Binary logarithm.")
cos = _unary("cos", "Cosine of radians.")
sin = _unary("sin", "Sine of radians.")
sqrt = _unary("sqrt", "Square root; may differ from the correctly rounded one in the last place.")
sqrt_rn = _unary("sqrt_rn", "Square root, correctly rounded.")
rsqrt = _unary("rsqrt", "1 / sqrt(x).")
erf = _unary("erf", "Error function.")
floor = _unary("floor", "Largest whole number not above x, as a float.")
ceil = _unary("ceil", "Smallest whole number not below x, as a float.")


@builtin
def abs(x: Any, _semantic: Any = None) -> tensor:
    """Absolute value. Unsigned integers are unchanged; the smallest signed one stays itself."""
    s = _semantic
    x = s.to_tensor(unwrap(x), "abs: x")
    element = x.dtype
    if element.is_ptr():
        raise TypeError(f"abs: x: expected numbers, got {describe(x)}")
    if element.is_int_unsigned():
        return x
    if element.is_fp8():
        wide = s.cast(x, dt.float16)
        return s.cast(tensor(s.op("abs", [wide.handle], wide.type.ir), wide.type), element)
    return tensor(s.op("abs", [x.handle], x.type.ir), x.type)


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: Any = False, approx: Any = False, _semantic: Any = None) -> tensor:
    """x / y of floats. In float32 a relative error of 2^-22 is permitted unless ``ieee_rounding``; ``approx`` says the
    same."""
    s = _semantic
    a, b = s.pair(x, y, "fdiv")
    if not a.dtype.is_floating():
        raise TypeError(f"fdiv: expected floating-point numbers, got {s.words(x)} and {s.words(y)}")
    fast = a.dtype.is_fp32() and not unwrap(ieee_rounding)
    return s.binary("div", a, b, "fdiv", attrs={"approx": True} if fast else None)


@builtin
def div_rn(x: Any, y: Any, _semantic: Any = None) -> tensor:
    """x / y of floats, correctly rounded."""
    return fdiv.raw(x, y, True, False, _semantic=_semantic)


@builtin
def fma(x: Any, y: Any, z: Any, _semantic: Any = None) -> tensor:
    """x * y + z with one rounding, after promotion and broadcasting of all three. Floating point only."""
    s = _semantic
    a, b = s.pair(x, y, "fma")
    a, c = s.pair(a, z, "fma")
    b, c = s.pair(b, c, "fma")
    a, b, c = s.broadcast_all([s.cast(a, c.dtype), s.cast(b, c.dtype), c], "fma")
    if not c.dtype.is_floating():
        raise TypeError(f"fma: expected floating-point numbers, got {s.words(x)}, {s.words(y)} and {s.words(z)}")
    return tensor(s.op("fma", [a.handle, b.handle, c.handle], c.type.ir), c.type)


@builtin
def umulhi(x: Any, y: Any, _semantic: Any = None) -> tensor:
    """The upper half of the double-width product of two 32- or 64-bit integers, taken as unsigned."""
    s = _semantic
    a, b = s.pair(x, y, "umulhi")
    element = a.dtype
    if not element.is_int() or element.int_bitwidth not in (32, 64):
        raise TypeError(f"umulhi: expected integers of 32 or 64 bits, got {s.words(x)} and {s.words(y)}")
    unsigned = dt.get_int_dtype(element.int_bitwidth, False)
    a, b = s.bitcast(a, unsigned), s.bitcast(b, unsigned)
    high = tensor(s.op("mulhi", [a.handle, b.handle], a.type.ir), a.type)
    return s.bitcast(high, element)


__all__ = [
    "abs",
    "ceil",
    "core",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "sqrt_rn",
    "umulhi",
]
