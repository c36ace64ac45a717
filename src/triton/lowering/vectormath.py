"""exp, exp2, expm1, log, log2, sin, cos, tanh and erf of float and double values, written in plain arithmetic.

Within 2 ulp over the whole range (most within 1); denormals, infinities, NaN and signed zeros come out as C has
them. Method: reduction to a small interval with constants split so that the leading products are exact, then a
polynomial (``coefficients.py``). Rounding to an integer is done by adding 1.5 * 2^(mantissa bits), whose low bits are
then that integer. Every function works on scalars and on vectors and never branches on data, except sin and cos,
whose huge arguments are left to the C library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import coefficients as c
from .values import Num

INF = float("inf")


@dataclass(frozen=True, slots=True)
class _Format:
    """What the algorithms need to know of float or double."""

    integer: str
    mantissa: int  # stored bits
    bias: int
    sqrt_half: int  # the bits of sqrt(1/2), rounded down
    exp: Sequence[float]
    exp2: Sequence[float]
    sin: Sequence[float]
    cos: Sequence[float]
    erf: Sequence[float]
    tanh: Sequence[float]
    ln2: tuple[float, float]
    exp_range: tuple[float, float]  # outside, exp is 0 or infinity
    expm1_low: float  # below, expm1 is -1
    tanh_high: float  # above, tanh is 1

    @property
    def magic(self) -> float:
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        return ((self.bias + self.mantissa) << self.mantissa) | (1 << (self.mantissa - 1))


_FORMATS = {
    "float": _Format(
        "i32",
        23,
        127,
        0x3F3504F3,
        c.EXP_F32,
        c.EXP2_F32,
        c.SIN_F32,
        c.COS_F32,
        c.ERF_F32,
        c.TANH_F32,
        c.LN2_F32,
        (-104.0, 89.0),
        -18.0,
        10.0,
    ),
    "double": _Format(
        "i64",
        52,
        1023,
        0x3FE6A09E667F3BCC,
        c.EXP_F64,
        c.EXP2_F64,
        c.SIN_F64,
        c.COS_F64,
        c.ERF_F64,
        c.TANH_F64,
        c.LN2_F64,
        (-746.0, 710.0),
        -38.0,
        20.0,
    ),
}


def _clamp(x: Num, low: float | None, high: float | None) -> Num:
    """``x`` kept between the bounds; a NaN stays."""
    if high is not None:
        x = x.gt(high).select(high, x)
    if low is not None:
        x = x.lt(low).select(low, x)
    return x


def nearest(x: Num, factor: float, plus: int = 0) -> tuple[Num, Num]:
    """x * factor rounded to an integer: as a float, and as an integer with ``plus`` added.

    The product must be below 2^(mantissa - 1).
    """
    f = _FORMATS[x.base]
    shifted = x.muladd(factor, f.magic + plus)
    return shifted - (f.magic + plus), shifted.to_bits() - f.magic_bits


def _scale(p: Num, n: Num, biased: Num) -> Num:
    """p * 2^n for p near 1, also where the result is a denormal or overflows; ``biased`` is n plus twice the bias.

    By the target's instruction, or in two steps, of which only the last can round; each takes half of n.
    """
    if p.w.features.scale is not None:
        scaled = p.w.features.scale(p, n)
        if isinstance(scaled, Num):
            return scaled
    f = _FORMATS[p.base]
    half = biased >> 1
    first, second = (half << f.mantissa).bitcast(p.base), ((biased - half) << f.mantissa).bitcast(p.base)
    return p * first * second


def _power_of_two(n: Num, base: str) -> Num:
    f = _FORMATS[base]
    return ((n + f.bias) << f.mantissa).bitcast(base)


def _reduce_exp(x: Num, plus: int = 0) -> tuple[Num, Num, Num]:
    """n as a float, n + ``plus`` as an integer, and exp(r) - 1, with x = n ln 2 + r."""
    f = _FORMATS[x.base]
    n_float, n = nearest(x, c.LOG2_E, plus)
    r = n_float.muladd(-f.ln2[1], n_float.muladd(-f.ln2[0], x))
    return n_float, n, (r * r).muladd(r.polynomial(f.exp), r)


def exp(x: Num) -> Num:
    f = _FORMATS[x.base]
    n, biased, tail = _reduce_exp(_clamp(x, *f.exp_range), 2 * f.bias)
    return _scale(tail + 1.0, n, biased)


def exp2(x: Num) -> Num:
    f = _FORMATS[x.base]
    x = _clamp(x, -f.bias - f.mantissa - 2.0, f.bias + 2.0)
    n, biased = nearest(x, 1.0, 2 * f.bias)
    r = x - n
    return _scale(r.muladd(r.polynomial(f.exp2), 1.0), n, biased)


def expm1(x: Num) -> Num:
    f = _FORMATS[x.base]
    _, n, tail = _reduce_exp(_clamp(x, f.expm1_low, f.exp_range[1]))
    half = _power_of_two(n - 1, x.base)  # 2^n itself would overflow before the result does
    result = half.muladd(tail, half - 0.5)
    return x.eq(0.0).select(x, result + result)


def tanh(x: Num) -> Num:
    """x + x^3 q(x^2) near zero, 1 - 2 / (exp(2|x|) + 1) farther out."""
    f = _FORMATS[x.base]
    magnitude = x.abs()
    a = _clamp(magnitude, None, f.tanh_high)
    _, n, tail = _reduce_exp(a + a)
    power = _power_of_two(n, x.base)
    far = 1.0 - 2.0 / (power.muladd(tail, power) + 1.0)
    z = x * x
    near = (z * magnitude).muladd(z.polynomial(f.tanh), magnitude)
    return magnitude.compare("ult", c.TANH_SPLIT).select(near, far).call("copysign", x)


def _split_log(x: Num) -> tuple[Num, Num]:
    """k (as a float) and f with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2). For positive finite x."""
    t = _FORMATS[x.base]
    tiny = x.lt(2.0 ** (1 - t.bias))
    scaled = tiny.select(x * 2.0 ** (t.mantissa + 1), x)
    above = scaled.to_bits() - t.sqrt_half
    m = ((above & ((1 << t.mantissa) - 1)) + t.sqrt_half).bitcast(x.base)
    if x.base == "float":
        k = above.ashr(t.mantissa).convert("sitofp", x.base)
    else:  # by hand: few machines convert 64-bit integers in vectors
        biased = (above + (t.bias << t.mantissa + 1)) >> t.mantissa
        k = (biased + t.magic_bits).bitcast(x.base) - (t.magic + 2.0 * t.bias)
    return k + tiny.select(k.const(-(t.mantissa + 1)), k.const(0.0)), m - 1.0


def _finish_log(x: Num, result: Num) -> Num:
    """Zero, negative numbers, infinity and NaN."""
    special = x.eq(0.0).select(-INF, x.lt(0.0).select(x.const(float("nan")), x))
    regular = x.gt(0.0) & x.lt(INF)
    return regular.select(result, special)


def _log_parts(f: Num) -> tuple[Num, Num, Num]:
    """log(1 + f) = f - square / 2 + rest, as (f^2 / 2, rest, s)."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    rest = s * (z * z.polynomial(c.LOG_F64) + half_square)
    return half_square, rest, s


def _log(x: Num, extra: Num | None = None) -> Num:
    """log(x), plus a small number if given; before special values."""
    k, f = _split_log(x)
    high, low = _FORMATS[x.base].ln2
    small = k * low if extra is None else k.muladd(low, extra)
    if x.base == "float":
        z = f * f
        tail = small + z * f * f.polynomial(c.LOG_F32)
        return k.muladd(high, z.muladd(-0.5, tail) + f)
    half_square, rest, _ = _log_parts(f)
    return k.muladd(high, f - (half_square - (small + rest)))


def log(x: Num) -> Num:
    return _finish_log(x, _log(x))


def log1p(x: Num) -> Num:
    """log(u) with u = 1 + x rounded, corrected by what the rounding lost."""
    u = x + 1.0
    result = _finish_log(u, _log(u, (x - (u - 1.0)) / u))
    return x.eq(0.0).select(x, result)


def log2(x: Num) -> Num:
    k, f = _split_log(x)
    if x.base == "float":
        z = f * f
        tail = z.muladd(-0.5, z * f * f.polynomial(c.LOG_F32))
        fraction = c.LOG2_E - 1.0
        return _finish_log(x, k + (f + (tail + f.muladd(fraction, tail * fraction))))
    half_square, rest, _ = _log_parts(f)
    # The sum and 1 / ln 2 are both split in two, so that the leading product is exact.
    sum_high = ((f - half_square).to_bits() & -(1 << 32)).bitcast("double")
    sum_low = (f - sum_high) - half_square + rest
    factor_high, factor_low = c.LOG2_E_PARTS
    product = sum_high * factor_high
    error = (sum_low + sum_high) * factor_low + sum_low * factor_high
    total = k + product
    return _finish_log(x, total + (error + ((k - total) + product)))


def erf(x: Num) -> Num:
    """x + x q(x^2) near zero, 1 - erfc(|x|) farther out."""
    a = x.abs()
    near = x.muladd((x * x).polynomial(_FORMATS[x.base].erf), x)
    if x.base == "float":
        far = 1.0 - exp2(-_clamp(a, None, 4.0).polynomial(c.ERF_TAIL_F32))
    else:
        limited = _clamp(a, None, 6.0)
        scaled = ((limited - 2.0) / (limited + 2.0)).polynomial(c.ERF_TAIL_F64)
        far = 1.0 - exp(-(limited * limited)) * scaled
    return a.compare("ult", c.ERF_SPLIT).select(near, far.call("copysign", x))
