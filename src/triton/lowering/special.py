"""Rarer mathematical functions: C's with a vector form for f32, and those of GPU libraries that C lacks.

Except where said otherwise they compute in double from correctly rounded pieces, so that f32 results are within 1
ulp; the double versions are within a few ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi, sqrt

from .calls import outlined, per_lane, per_lane_in_double
from .functions import FUNCTIONS
from .values import Num
from .vectormath import INF

NAN = float("nan")


def _in_double(compute: Callable[..., Num]) -> Callable[..., Num]:
    """``compute`` on doubles, its result rounded to the first argument's type."""

    def call(*args: Num) -> Num:
        wide = [a if a.base == "double" else a.convert("fpext", "double") for a in args]
        result = compute(*wide)
        return result if args[0].base == "double" else result.convert("fptrunc", "float")

    return call


def _for_float(compute: Callable[..., Num], symbol: str) -> Callable[..., Num]:
    """``compute`` in double for float arguments, the C function ``symbol`` for double ones."""
    narrow = _in_double(compute)
    return lambda *args: narrow(*args) if args[0].base == "float" else per_lane(symbol, args, "double")


def _log(x: Num) -> Num:
    return FUNCTIONS["log"](x)


def _exp(x: Num) -> Num:
    return FUNCTIONS["exp"](x)


def _power(x: Num, y: Num) -> Num:
    """exp2(y log2 |x|) with C's rules for signs and special values. x and y are f32 values held in double."""
    magnitude = x.abs()
    result = FUNCTIONS["exp2"](y * FUNCTIONS["log2"](magnitude))
    result = (magnitude.eq(1.0) & y.compare("ord", 0.0)).select(1.0, result)
    half = y * 0.5
    whole = y.call("rint").eq(y)
    odd = whole & half.call("rint").ne(half)
    negative = x.to_bits().lt(0)
    result = (negative & odd).select(-result, result)
    invalid = x.lt(0.0) & (magnitude.ne(INF) & ~whole)
    result = invalid.select(x.const(NAN), result)
    return (y.eq(0.0) | x.eq(1.0)).select(1.0, result)


# Error function and friends


def _inverse_erf(erf: Num, erfc: Num) -> Num:
    """y >= 0 with erf(y) = ``erf`` and erfc(y) = ``erfc``, whichever of the two is smaller being exact.

    Winitzki's closed form (error 2e-3), then Halley's steps on erf where that is the smaller one, Newton's on log(erfc)
    elsewhere (erfc itself is far too steep).
    """
    a = 0.147
    log = per_lane("log", [erfc * (erf + 1.0)], "double")
    log = erf.lt(0.25).select(-(erf * erf), log)
    head = log * 0.5 + 2.0 / (pi * a)
    y = ((log * (-1.0 / a)) / ((head * head - log * (1.0 / a)).call("sqrt") + head)).call("sqrt")
    slope = 2.0 / sqrt(pi)
    for _ in range(3):
        inverse_density = _exp(y * y) * (1.0 / slope)
        halley = (per_lane("erf", [y], "double") - erf) * inverse_density
        halley = -halley / (y * halley + 1.0)
        complement = per_lane("erfc", [y], "double")
        newton = per_lane("log", [complement / erfc], "double") * complement * inverse_density
        y = y + erfc.gt(0.5).select(halley, newton)
    return y


def _erfinv(x: Num) -> Num:
    a = x.abs()
    y = _inverse_erf(a, 1.0 - a).call("copysign", x)
    y = a.eq(1.0).select(x.const(INF).call("copysign", x), y)
    return a.gt(1.0).select(x.const(NAN), y)


def _erfcinv(x: Num) -> Num:
    upper = x.gt(1.0)
    erfc = upper.select(2.0 - x, x)
    y = _inverse_erf(1.0 - erfc, erfc)
    y = upper.select(-y, y)
    y = erfc.eq(0.0).select(upper.select(-INF, x.const(INF)), y)
    return erfc.lt(0.0).select(x.const(NAN), y)


def _erfcx(x: Num) -> Num:
    """exp(x^2) erfc(x); the asymptotic series from 25 on."""
    near = x.gt(26.0).select(26.0, x)
    square = near * near
    lost = near.fma(near, -square)
    small = (_exp(square) * (lost + 1.0)) * per_lane("erfc", [near], "double")
    small = square.lt(INF).select(small, square)
    terms = [1.0]
    for k in range(1, 9):
        terms.append(-terms[-1] * (2 * k - 1) / 2.0)
    inverse = 1.0 / x
    large = inverse * (1.0 / sqrt(pi)) * (inverse * inverse).polynomial(terms)
    return x.gt(25.0).select(large, small)


# Modified Bessel functions: the power series up to 30, the asymptotic one beyond


def _bessel_i(order: int) -> Callable[[Num], Num]:
    series = [1.0 / (factorial(k) * factorial(k + order) * 4**k) for k in range(60)]
    tail = [1.0]
    for k in range(1, 22):
        tail.append(-tail[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8.0 * k))

    def compute(x: Num) -> Num:
        a = x.abs()
        near = a.gt(30.0).select(30.0, a)
        small = (near * near).polynomial(series)
        if order:
            small = small * near * 0.5
        root = _exp(a * 0.5)
        large = root * ((1.0 / a).polynomial(tail) / (a * (2.0 * pi)).call("sqrt")) * root
        large = a.eq(INF).select(INF, large)
        result = a.compare("ugt", 30.0).select(large, small)
        return result.call("copysign", x) if order else result

    return compute


# Multiples of pi, norms and other combinations


def _sin_pi(shift: int) -> Callable[[Num], Num]:
    def compute(x: Num) -> Num:
        r = x - (x * 0.5).call("rint") * 2.0
        quarters = (r * 2.0).call("rint")
        t = (r - quarters * 0.5) * pi
        sine, cosine = FUNCTIONS["sin"](t), FUNCTIONS["cos"](t)
        magic = 1.5 * 2.0**52
        quadrant = (quarters + magic).to_bits() + shift
        chosen = (quadrant & 1).eq(0).select(sine, cosine)
        result = (chosen.to_bits() ^ ((quadrant & 2) << 62)).bitcast("double")
        return x.abs().lt(INF).select(result, x.const(NAN))

    return compute


def _norm(*args: Num) -> Num:
    total = per_lane("hypot", args[:2], "double")
    for a in args[2:]:
        total = per_lane("hypot", [total, a], "double")
    return total


def _reciprocal(compute: Callable[..., Num]) -> Callable[..., Num]:
    return lambda *args: 1.0 / compute(*args)


def _library(symbol: str) -> Callable[..., Num]:
    return lambda *args: per_lane(symbol, args, "double")


def _saturate(x: Num) -> Num:
    """Into [0, 1]; NaN to 0."""
    positive = x.gt(0.0).select(x, 0.0)
    return positive.lt(1.0).select(positive, 1.0)


_TABLE: dict[str, tuple[int, Callable[..., Num]]] = {
    "pow": (2, _for_float(_power, "pow")),
    "log10": (1, _for_float(lambda x: _log(x) * 0.4342944819032518, "log10")),
    "exp10": (
        1,
        lambda x: (
            _in_double(lambda v: FUNCTIONS["exp2"](v * 3.321928094887362))(x)
            if x.base == "float"
            else per_lane("pow", [x.const(10.0), x], "double")
        ),
    ),
    "erfinv": (1, _in_double(_erfinv)),
    "erfcinv": (1, _in_double(_erfcinv)),
    "erfcx": (1, _in_double(_erfcx)),
    "normcdf": (1, _in_double(lambda x: per_lane("erfc", [x * -sqrt(0.5)], "double") * 0.5)),
    "normcdfinv": (1, _in_double(lambda x: _erfcinv(x * 2.0) * -sqrt(2.0))),
    "cyl_bessel_i0": (1, _in_double(_bessel_i(0))),
    "cyl_bessel_i1": (1, _in_double(_bessel_i(1))),
    "sinpi": (1, _in_double(_sin_pi(0))),
    "cospi": (1, _in_double(_sin_pi(1))),
    "rcbrt": (1, _in_double(_reciprocal(_library("cbrt")))),
    "rhypot": (2, _in_double(_reciprocal(_library("hypot")))),
    "norm3d": (3, _in_double(_norm)),
    "norm4d": (4, _in_double(_norm)),
    "rnorm3d": (3, _in_double(_reciprocal(_norm))),
    "rnorm4d": (4, _in_double(_reciprocal(_norm))),
    "saturate": (1, _saturate),
}

#: name -> (number of arguments, function of float or double values).
FORMS: dict[str, tuple[int, Callable[..., Num]]] = {
    name: (count, outlined(name, compute, count)) for name, (count, compute) in _TABLE.items()
}
FORMS["saturatef"] = FORMS["saturate"]

#: C functions called for each lane in double precision: name -> number of arguments.
DOUBLE_CALLS = {
    **dict.fromkeys(
        (
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cbrt",
            "cosh",
            "erfc",
            "j0",
            "j1",
            "lgamma",
            "logb",
            "sinh",
            "tan",
            "tgamma",
            "y0",
            "y1",
        ),
        1,
    ),
    **dict.fromkeys(("atan2", "fdim", "hypot", "remainder"), 2),
}
for _name, _count in DOUBLE_CALLS.items():
    FORMS[_name] = (_count, lambda *args, _name=_name: per_lane_in_double(_name, *args))
