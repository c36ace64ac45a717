"""The ``libm`` op: functions of C's mathematical library on cells.

Functions with a vector form of their own (``math.py``, LLVM intrinsics, bit operations) use it; the rest call the C library for each
lane, in double precision, and round once to the result's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.core import Op
from ..ir.table import IRError
from ..ir.types import ElementType, element_of, f32, f64, i32, i64
from . import convert
from .math import LIBRARY_FORMS
from .values import Num, num
from .vectormath import per_lane
from .writer import Cell, FunctionWriter

#: C functions called for each lane: name -> number of float arguments.
DOUBLE_CALLS = {
    **dict.fromkeys(
        "acos acosh asin asinh atan atanh cbrt cosh erfc exp10 j0 j1 lgamma log10 log1p logb sinh tan tgamma y0 y1".split(), 1
    ),
    **dict.fromkeys("atan2 fdim hypot pow remainder".split(), 2),
}
#: LLVM intrinsics that give the result in the argument's own type: name -> (intrinsic, number of arguments).
INTRINSICS = {
    "rint": ("rint", 1), "nearbyint": ("nearbyint", 1), "trunc": ("trunc", 1), "round": ("round", 1),
    "roundeven": ("roundeven", 1), "fabs": ("fabs", 1), "abs": ("fabs", 1), "copysign": ("copysign", 2),
}


def _classify(test: Callable[[Num], Num]) -> Callable[[Num], Num]:
    return lambda x: test(x).convert("zext", "i32")


def _exponent(x: Num) -> Num:
    return x.to_bits() >> (23 if x.base == "float" else 52)


_INFINITY = float("inf")
#: Questions answered by i32 0 or 1.
PREDICATES: dict[str, Callable[[Num], Num]] = {
    "isnan": _classify(lambda x: x.isnan()),
    "isinf": _classify(lambda x: x.abs().eq(_INFINITY)),
    "isfinite": _classify(lambda x: x.abs().lt(_INFINITY)),
    "finite": _classify(lambda x: x.abs().lt(_INFINITY)),
    "finitef": _classify(lambda x: x.abs().lt(_INFINITY)),
    "isfinited": _classify(lambda x: x.abs().lt(_INFINITY)),
    "signbit": _classify(lambda x: x.to_bits().lt(0)),
}


def rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
    """The result of a ``libm`` op. Raises IRError for a function that is not known or does not take these arguments."""
    name, to = str(op.attrs["function"]), element_of(op.results[0].type)
    if name in PREDICATES:
        x = num(w, convert.to_wide(w, _only(name, args, 1)[0]))
        return convert.cast(w, PREDICATES[name](x).cell(i32), to)
    if name in _OTHERS:
        return _OTHERS[name](w, name, args, to)
    if not args or not all(a.element.is_float for a in args):
        raise IRError(f"libm function {name!r} takes floating-point arguments")
    if name in LIBRARY_FORMS:
        wide = [num(w, convert.to_wide(w, a)) for a in _only(name, args, LIBRARY_FORMS[name][0])]
        result = LIBRARY_FORMS[name][1](*wide)
    elif name in INTRINSICS:
        intrinsic, count = INTRINSICS[name]
        wide = [num(w, convert.to_wide(w, a)) for a in _only(name, args, count)]
        result = wide[0].call(intrinsic, *wide[1:])
    elif name in DOUBLE_CALLS:
        wide = [_double(w, a) for a in _only(name, args, DOUBLE_CALLS[name])]
        result = per_lane(name, wide, "double")
    else:
        raise IRError(f"no lowering for the libm function {name!r}")
    return convert.cast(w, result.cell(f64 if result.base == "double" else f32), to)


def _only(name: str, args: Sequence[Cell], count: int) -> Sequence[Cell]:
    if len(args) != count:
        raise IRError(f"libm function {name!r} takes {count} arguments, got {len(args)}")
    return args


def _double(w: FunctionWriter, a: Cell) -> Num:
    wide = num(w, convert.to_wide(w, a))
    return wide if wide.base == "double" else wide.convert("fpext", "double")


OtherRule = Callable[[FunctionWriter, str, Sequence[Cell], ElementType], Cell]


def _scale(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    """ldexp: exact in double for f32 and narrower, so that only the final rounding counts."""
    x, n = _only(name, args, 2)
    return convert.cast(w, per_lane("ldexp", [_double(w, x), num(w, convert.cast(w, n, i32))], "double").cell(f64), to)


def _exponent_of(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    (x,) = _only(name, args, 1)
    return convert.cast(w, per_lane("ilogb", [_double(w, x)], "i32").cell(i32), to)


def _round_to_integer(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    (x,) = _only(name, args, 1)
    wide = num(w, convert.to_wide(w, x)).call("rint" if name in ("lrint", "llrint") else "round")
    return convert.cast(w, convert.cast(w, wide.cell(f64 if wide.base == "double" else f32), i64), to)


def _bessel(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    n, x = _only(name, args, 2)
    return convert.cast(w, per_lane(name, [num(w, convert.cast(w, n, i32)), _double(w, x)], "double").cell(f64), to)


def _next_after(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    """The neighbour in the argument's own type, f32 for anything narrower."""
    x, y = (num(w, convert.to_wide(w, a)) for a in _only(name, args, 2))
    bits = x.to_bits()
    away = y.gt(x).compare("eq", bits.ge(0))
    moved = away.select(bits + 1, bits - 1)
    from_zero = (y.to_bits() & (-1 << (x.bits - 1))) | 1
    stepped = x.eq(0.0).select(from_zero, moved).bitcast(x.base)
    result = x.eq(y).select(y, x.compare("uno", y).select(x + y, stepped))
    return convert.cast(w, result.cell(f64 if x.base == "double" else f32), to)


_OTHERS: dict[str, OtherRule] = {
    **dict.fromkeys(("ldexp", "scalbn"), _scale),
    "ilogb": _exponent_of,
    **dict.fromkeys(("lrint", "llrint", "lround", "llround"), _round_to_integer),
    **dict.fromkeys(("jn", "yn"), _bessel),
    "nextafter": _next_after,
}
