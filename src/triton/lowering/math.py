"""Mathematical functions by name: the unary ops of the table and everything that ``libm`` can call."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.types import ScalarType, f32, f64
from .convert import from_wide, to_wide
from .functions import FUNCTIONS, fmod
from .special import FORMS as SPECIAL
from .values import Num, num
from .writer import Cell, FunctionWriter


def _intrinsic(name: str) -> Callable[..., Num]:
    return lambda x, *others: x.call(name, *others)


def _reciprocal_root(x: Num) -> Num:
    return 1.0 / x.call("sqrt")


#: The unary ops of the table, on float or double values.
UNARY: dict[str, Callable[[Num], Num]] = {
    **{kind: FUNCTIONS[kind] for kind in ("exp", "exp2", "log", "log2", "sin", "cos", "erf")},
    "sqrt": _intrinsic("sqrt"),
    "sqrt_rn": _intrinsic("sqrt"),
    "rsqrt": _reciprocal_root,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
}


def extremum(x: Num, y: Num, largest: bool, propagate_nan: bool) -> Num:
    """min or max. Which of +0 and -0 comes out is left open: some machines would need more instructions for it."""
    name = ("maximum" if largest else "minimum") if propagate_nan else ("maxnum" if largest else "minnum")
    return Num(x.w, x.w.intrinsic(name, x.base, x.lanes, x.text, y.text, flags="nsz"), x.base, x.lanes)


#: name -> (number of arguments, function of float or double values).
FORMS: dict[str, tuple[int, Callable[..., Num]]] = {
    **SPECIAL,
    **{name: (1, compute) for name, compute in {**FUNCTIONS, **UNARY}.items()},
    **{name: (1, _intrinsic(name)) for name in ("rint", "nearbyint", "trunc", "round", "roundeven", "fabs")},
    "fmod": (2, fmod),
    "copysign": (2, _intrinsic("copysign")),
    "fmin": (2, lambda x, y: extremum(x, y, largest=False, propagate_nan=False)),
    "fmax": (2, lambda x, y: extremum(x, y, largest=True, propagate_nan=False)),
    "div": (2, lambda x, y: x / y),
}


def fused_multiply_add(w: FunctionWriter, a: Cell, b: Cell, c: Cell) -> Cell:
    """a * b + c rounded once to the operands' type.

    Without an instruction for it, and for types narrower than f32, it is computed in f64: the product of two of those
    is exact there, and the sum is rounded to odd, so that the final rounding is the only one.
    """
    element = a.element
    assert isinstance(element, ScalarType)
    if element == f64 or (element == f32 and w.features.fma):
        return num(w, a).fma(num(w, b), num(w, c)).cell(element)
    if element.name == "f16" or element.is_fp8:
        x, y, z = (num(w, to_wide(w, cell)) for cell in (a, b, c))
        return from_wide(w, _add_to_odd(x * y, z).cell(f32), element)
    x, y, z = (_as_double(w, cell) for cell in (a, b, c))
    return from_wide(w, _add_to_odd(x * y, z).cell(f64), element)


def _as_double(w: FunctionWriter, cell: Cell) -> Num:
    wide = num(w, to_wide(w, cell))
    return wide if wide.base == "double" else wide.convert("fpext", "double")


def _add_to_odd(x: Num, y: Num) -> Num:
    """x + y rounded to odd. The error term is the two-sum of Knuth."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    bits = total.to_bits()
    # A nonzero error moves an even last bit to the odd neighbour on the error's side.
    toward = error.gt(0.0).compare("eq", total.gt(0.0)).select(bits + 1, bits - 1)
    fix = error.compare("one", 0.0) & (bits & 1).eq(0)
    return fix.select(toward, bits).bitcast(x.base)
