"""Mathematical functions on ``Num`` values of type float or double."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.types import f32, f64
from .convert import from_wide, to_wide
from .values import Num, num
from .vectormath import FUNCTIONS, per_lane
from .writer import Cell, FunctionWriter


def fmod(x: Num, y: Num) -> Num:
    """C's fmod: exact, with the sign of x."""
    return per_lane("fmod" if x.base == "double" else "fmodf", [x, y], x.base)


def _sqrt(x: Num) -> Num:
    return x.call("sqrt")


def _rsqrt(x: Num) -> Num:
    return 1.0 / x.call("sqrt")


def fused_multiply_add(w: FunctionWriter, a: Cell, b: Cell, c: Cell) -> Cell:
    """a * b + c rounded once to the operands' type.

    Without an instruction for it, and for types narrower than f32, it is computed in f64: the product of two of those is exact
    there, and the sum is rounded to odd, so that the final rounding is the only one.
    """
    element = a.element
    if element == f64 or (element == f32 and w.features.fma):
        return num(w, a).fma(num(w, b), num(w, c)).cell(element)
    x, y, z = (_as_double(w, cell) for cell in (a, b, c))
    return from_wide(w, _add_to_odd(x * y, z).cell(f64), element)  # type: ignore[arg-type]


def _as_double(w: FunctionWriter, cell: Cell) -> Num:
    wide = num(w, to_wide(w, cell))
    return wide if wide.base == "double" else wide.convert("fpext", "double")


def _add_to_odd(x: Num, y: Num) -> Num:
    """x + y in f64, rounded to odd. The error term is the two-sum of Knuth."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    bits = total.to_bits()
    # A nonzero error moves an even last bit to the odd neighbour on the error's side.
    toward = error.gt(0.0).compare("eq", total.gt(0.0)).select(bits + 1, bits - 1)
    fix = error.compare("one", 0.0) & (bits & 1).eq(0)
    return fix.select(toward, bits).bitcast("double")


UNARY: dict[str, Callable[[Num], Num]] = {
    **{kind: FUNCTIONS[kind] for kind in ("exp", "exp2", "log", "log2", "sin", "cos", "erf")},
    "sqrt": _sqrt,
    "sqrt_rn": _sqrt,
    "rsqrt": _rsqrt,
    "floor": lambda x: x.call("floor"),
    "ceil": lambda x: x.call("ceil"),
}

#: C functions that have a form for whole vectors: name -> (number of arguments, function).
LIBRARY_FORMS: dict[str, tuple[int, Callable[..., Num]]] = {
    **{kind: (1, compute) for kind, compute in UNARY.items()},
    "tanh": (1, FUNCTIONS["tanh"]),
    "expm1": (1, FUNCTIONS["expm1"]),
    "fmod": (2, fmod),
}
