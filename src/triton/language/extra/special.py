"""Special functions that the C library lacks, made of elementary ones and ``erf``, ``erfc``.

Each takes a float32 or float64 tensor.

Accuracy: a few last places of the type over the whole range, as the tests check against SciPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, pi, sqrt

from triton.frontend import dtypes as dt
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import tensor

S = TritonSemantic


def _unary(s: S, kind: str, x: tensor) -> tensor:
    return tensor(s.op(kind, [x.handle], x.type.ir), x.type)


def _libm(s: S, function: str, x: tensor) -> tensor:
    return tensor(s.op("libm", [x.handle], x.type.ir, {"function": function}), x.type)


def _divide(s: S, a: tensor | float, b: tensor) -> tensor:
    """Correctly rounded division."""
    return s.binary("div", a, b, "special")


def _fma(s: S, a: tensor, b: tensor, c: tensor | float) -> tensor:
    c = c if isinstance(c, tensor) else s.constant(c, a.type)
    return tensor(s.op("fma", [a.handle, b.handle, c.handle], a.type.ir), a.type)


def _polynomial(s: S, x: tensor, coefficients: Sequence[float]) -> tensor:
    """Horner's rule; the constant term comes first."""
    total = s.constant(coefficients[-1], x.type)
    for coefficient in reversed(coefficients[:-1]):
        total = _fma(s, total, x, coefficient)
    return total


# Inverse error function. float32: M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011.
_CENTRAL = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


def _inverse_guess(s: S, x: tensor, complement: tensor) -> tensor:
    """erfinv(x) to about 1e-7; ``complement`` is (1 - x)(1 + x)."""
    w = s.negative(_unary(s, "log", complement))
    central = _polynomial(s, s.sub(w, 2.5), _CENTRAL)
    tail = _polynomial(s, s.sub(_unary(s, "sqrt", w), 3.0), _TAIL)
    return s.mul(s.select(s.compare("lt", w, 5.0, "erfinv"), central, tail), x)


def _polished(s: S, y: tensor, residual: tensor) -> tensor:
    """One step of Halley's method for f(y) = erf(y) - x, given the residual f(y)."""
    slope = s.mul(_unary(s, "exp", s.negative(s.mul(y, y))), 2 / sqrt(pi))
    step = _divide(s, residual, slope)
    return s.sub(y, _divide(s, step, _fma(s, y, step, 1.0)))


def erfinv(s: S, x: tensor) -> tensor:
    """The y with erf(y) = x; infinite at -1 and 1, NaN outside."""
    complement = s.mul(s.sub(1.0, x), s.add(1.0, x))
    y = _inverse_guess(s, x, complement)
    if x.dtype.is_fp64():
        size = _unary(s, "abs", x)
        for _ in range(2):
            # Near 1 the difference of error functions is taken as that of their complements, which is exact there.
            central = s.sub(_unary(s, "erf", y), x)
            away = s.sub(s.sub(1.0, size), _libm(s, "erfc", _unary(s, "abs", y)))
            away = s.select(s.compare("lt", x, 0.0, "erfinv"), s.negative(away), away)
            y = _polished(s, y, s.select(s.compare("lt", size, 0.75, "erfinv"), central, away))
    infinite = s.mul(x, float("inf"))
    return s.select(s.compare("eq", complement, 0.0, "erfinv"), infinite, y)


def erfcinv(s: S, x: tensor) -> tensor:
    """The y with erfc(y) = x; infinite at 0 and 2, NaN outside."""
    given = s.cast(x, dt.float64)
    wide = s.min_max("min", given, s.sub(2.0, given), "erfcinv", True)  # erfcinv(x) = -erfcinv(2 - x)
    # For small x, 1 - x would lose everything: the guess uses x (2 - x) and Halley's method works on erfc itself.
    y = _inverse_guess(s, s.sub(1.0, wide), s.mul(wide, s.sub(2.0, wide)))
    tiny = s.compare("lt", wide, 1e-12, "erfcinv")
    root = _unary(s, "sqrt", s.negative(_unary(s, "log", s.mul(wide, sqrt(pi)))))
    y = s.select(tiny, s.sub(root, _divide(s, _unary(s, "log", root), s.mul(root, 2.0))), y)
    for _ in range(4):
        # erfc(y) - x over erfc's slope, by the scaled function so that nothing underflows.
        target = s.mul(wide, _unary(s, "exp", s.mul(y, y)))
        step = s.mul(s.sub(erfcx(s, y), target), sqrt(pi) / 2)
        y = s.add(y, _divide(s, step, _fma(s, y, s.negative(step), 1.0)))
    y = s.select(s.compare("eq", wide, 0.0, "erfcinv"), s.constant(float("inf"), y.type), y)
    y = s.select(s.compare("gt", given, 1.0, "erfcinv"), s.negative(y), y)
    return s.cast(y, x.dtype)


def normcdfinv(s: S, x: tensor) -> tensor:
    """The quantile of the standard normal distribution, -sqrt(2) erfcinv(2 x)."""
    wide = s.cast(x, dt.float64)
    return s.cast(s.mul(erfcinv(s, s.mul(wide, 2.0)), -sqrt(2.0)), x.dtype)


def erfcx(s: S, x: tensor) -> tensor:
    """exp(x^2) erfc(x). Beyond a bound the asymptotic series 1 - 1/(2x^2) + 3/(2x^2)^2 - ... over x sqrt(pi)."""
    bound, terms = (20.0, 8) if x.dtype.is_fp64() else (8.0, 6)
    square = s.mul(x, x)
    low = _fma(s, x, x, s.negative(square))  # what rounding the square lost
    scale = _unary(s, "exp", square)
    near = s.mul(_fma(s, scale, low, scale), _libm(s, "erfc", x))
    series, term = [], 1.0
    for k in range(terms):
        series.append(term)
        term *= -(2 * k + 1) / 2
    far = _polynomial(s, _divide(s, 1.0, square), series)
    far = _divide(s, s.mul(far, 1 / sqrt(pi)), x)
    return s.select(s.compare("gt", x, bound, "erfcx"), far, near)


def _bessel(s: S, x: tensor, order: int) -> tensor:
    """I_0 or I_1: the power series in x^2/4, whose terms are all positive, or the asymptotic series for large x."""
    bound, terms, far_terms = (20.0, 50, 25) if x.dtype.is_fp64() else (10.0, 26, 9)
    size = _unary(s, "abs", x)
    # The branch that is not taken must not overflow into NaN.
    small = s.min_max("min", size, bound, "bessel", False)
    large = s.min_max("max", size, bound, "bessel", False)
    series = [1 / (factorial(k) * factorial(k + order)) for k in range(terms)]
    near = _polynomial(s, s.mul(s.mul(small, small), 0.25), series)
    if order == 1:
        near = s.mul(near, s.mul(small, 0.5))
    mu, term, tail = 4 * order * order, 1.0, []
    for k in range(far_terms):
        tail.append(term)
        term *= -(mu - (2 * k + 1) ** 2) / (8 * (k + 1))
    far = _polynomial(s, _divide(s, 1.0, large), tail)
    half = _unary(s, "exp", s.mul(large, 0.5))  # exp(x) would overflow before the function does
    far = s.mul(s.mul(_divide(s, far, _unary(s, "sqrt", s.mul(large, 2 * pi))), half), half)
    result = s.select(s.compare("gt", size, bound, "bessel"), far, near)
    result = s.select(s.compare("ne", x, x, "bessel"), x, result)
    if order == 1:
        result = s.select(s.compare("lt", x, 0.0, "bessel"), s.negative(result), result)
    return result


def cyl_bessel_i0(s: S, x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(s, x, 0)


def cyl_bessel_i1(s: S, x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 1."""
    return _bessel(s, x, 1)
