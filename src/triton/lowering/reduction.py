"""sin, cos and fmod of float and double values: functions that begin by taking a remainder.

The usual arguments take a short path in vector registers; the rare ones (angles beyond thousands of turns, quotients
of 2^29 and more) are computed one by one with 64-bit integers, exactly or to 120 bits. No C function is called.
"""

from __future__ import annotations

from collections.abc import Callable

from . import coefficients as c
from .calls import with_rare_lanes
from .values import Num
from .vectormath import INF, nearest

_LIMIT_F64 = 2.0**19  # n * (33 bits of pi / 2) is exact up to here
_LIMIT_F32 = 2.0**16


def _limit(x: Num) -> float:
    return _LIMIT_F32 if x.base == "float" and x.w.features.fma else _LIMIT_F64


def _reduce(x: Num) -> tuple[Num, Num, Num]:
    """r, its low part, and the quadrant (i64) of a double x = quadrant * pi/2 + r; |x| is at most _LIMIT_F64."""
    p1, p2, p3, p4 = c.HALF_PI
    n, quadrant = nearest(x, c.TWO_OVER_PI)
    r = x - n * p1  # exact, as is n * p2
    second = n * p2
    high = r - second
    low = (r - high) - second  # |r| > |second| or the difference is exact anyway
    third = n * p3
    top = high - third
    part = high - top
    low = low + ((part - third) - n * p4)
    result = top + low
    return result, (top - result) + low, quadrant


def _reduce_float(x: Num) -> tuple[Num, Num]:
    """r and the quadrant (i32) of a float x."""
    if x.w.features.fma:
        n, quadrant = nearest(x, c.TWO_OVER_PI)
        p1, p2, p3 = c.HALF_PI_F32
        return n.fma(-p3, n.fma(-p2, n.fma(-p1, x))), quadrant
    wide = x.convert("fpext", "double")
    n, quadrant = nearest(wide, c.TWO_OVER_PI)
    r = n.muladd(-(c.HALF_PI[1] + c.HALF_PI[2]), n.muladd(-c.HALF_PI[0], wide))
    return r.convert("fptrunc", "float"), quadrant.convert("trunc", "i32")


def _sin_cos_double(r: Num, low: Num, quadrant: Num) -> Num:
    """sin(quadrant * pi/2 + r + low)."""
    z = r * r
    sine = r - ((z * (low * 0.5 - z * r * z.polynomial(c.SIN_F64[1:])) - low) - z * r * c.SIN_F64[0])
    half = z * 0.5
    head = 1.0 - half
    cosine = head + (((1.0 - head) - half) + (z * z * z.polynomial(c.COS_F64) - r * low))
    return _in_quadrant(sine, cosine, quadrant)


def _sin_cos_float(r: Num, quadrant: Num) -> Num:
    z = r * r
    sine = (z * r).muladd(z.polynomial(c.SIN_F32), r)
    cosine = (z * z).muladd(z.polynomial(c.COS_F32), z.muladd(-0.5, 1.0))
    return _in_quadrant(sine, cosine, quadrant)


def _in_quadrant(sine: Num, cosine: Num, quadrant: Num) -> Num:
    chosen = (quadrant & 1).eq(0).select(sine, cosine)
    sign = (quadrant & 2) << (quadrant.bits - 2)
    return (chosen.to_bits() ^ sign).bitcast(sine.base)


def _far(shift: int) -> Callable[[Num], Num]:
    """sin(x + shift * pi/2) of a double beyond _LIMIT_F32, by Payne and Hanek's method.

    x = m 2^e with an integer m of 53 bits. Of the bits of 2/pi, those that m 2^e turns into multiples of 4 quarter
    turns do not matter; the 192 after them are multiplied by m. Two bits of the product are the quadrant, 190 the
    fraction of it.
    """

    def compute(x: Num) -> Num:
        bits = x.to_bits()
        exponent = (bits >> 52) & 0x7FF
        m = (bits & ((1 << 52) - 1)) | (1 << 52)
        offset = exponent - 1013  # in the table, which starts with 64 zeros
        words = _words_at(offset >> 6, m)
        shift_bits = offset & 63
        f2, f1, f0 = (_funnel(words[i], words[i + 1], shift_bits) for i in range(3))
        low, carry = _multiply(m, f0)
        middle, high = _multiply(m, f1)
        t1 = middle + carry
        t2 = high + m * f2 + t1.compare("ult", carry).convert("zext", "i64")
        fraction, rest = _funnel(t2, t1, m.const(2)), _funnel(t1, low, m.const(2))
        quadrant = (t2 >> 62) + (fraction >> 63) + shift
        # The fraction, a signed number of 128 bits: its magnitude as a sum of two doubles, times pi / 2.
        sign = fraction.ashr(63)
        fraction, rest = fraction ^ sign, rest ^ sign
        top = (fraction & -2048).convert("sitofp", "double")
        total, error = _fast_sum(top, (fraction & 2047).convert("sitofp", "double"))
        total, last = _fast_sum(total, rest.convert("uitofp", "double") * 2.0**-64)
        total, error = total * 2.0**-64, (error + last) * 2.0**-64
        p, p_low = c.HALF_PI_PAIR
        r = total * p
        r_low = total.fma(p, -r) + (total * p_low + error * p)
        inverted = sign.ne(0)
        result = _sin_cos_double(inverted.select(-r, r), inverted.select(-r_low, r_low), quadrant)
        return result if shift else bits.lt(0).select(-result, result)

    return compute


def _fast_sum(a: Num, b: Num) -> tuple[Num, Num]:
    """a + b rounded, and the error, for |a| >= |b| or a = 0."""
    total = a + b
    return total, (a - total) + b


def _words_at(index: Num, like: Num) -> list[Num]:
    """Four words of 2/pi from word ``index`` (at most 16) on, by selection: no table in memory is needed."""
    words = [like.const(v) for v in c.TWO_OVER_PI_WORDS]
    for step in (16, 8, 4, 2, 1):
        taken = (index & step).ne(0)
        # 3 + step words are enough for what remains; those past the end matter only if this step is not taken
        words = [
            taken.select(words[i + step], words[i]) if i + step < len(words) else words[i] for i in range(3 + step)
        ]
    return words


def _funnel(high: Num, low: Num, amount: Num) -> Num:
    """The upper word of (high:low) << amount."""
    return high.call("fshl", low, amount)


def _multiply(a: Num, b: Num) -> tuple[Num, Num]:
    """Low and high word of the product of two i64, unsigned."""
    product = a.convert("zext", "i128") * b.convert("zext", "i128")
    return product.convert("trunc", "i64"), (product >> 64).convert("trunc", "i64")


def _trig(name: str, shift: int) -> Callable[[Num], Num]:
    def compute(x: Num) -> Num:
        if x.base == "float":
            r, quadrant = _reduce_float(x)
            result = _sin_cos_float(r, quadrant + shift if shift else quadrant)
        else:
            r, low, quadrant = _reduce(x)
            result = _sin_cos_double(r, low, quadrant + shift if shift else quadrant)
        if not shift:
            result = x.eq(0.0).select(x, result)
        limit = _limit(x)
        return with_rare_lanes(name, result, lambda v: v.abs().gt(limit) & v.abs().lt(INF), _far(shift), [x])

    return compute


sin, cos = _trig("sin", 0), _trig("cos", 1)


# Remainder


def fmod(x: Num, y: Num) -> Num:
    """C's fmod: exact, with the sign of x. One division, unless the quotient has more bits than there is room for.

    The room is 29 bits for float, whose quotient times divisor is exact in double, and 52 for double with fused
    multiply-add; without it, doubles are left to the integer unit altogether.
    """
    if x.base == "double" and not x.w.features.fma:
        return with_rare_lanes("fmod", x, lambda a, b: ~a.abs().lt(b.abs()), _fmod_by_integers, [x, y])
    a, b, room = x.abs(), y.abs(), 52
    if x.base == "float":
        a, b, room = a.convert("fpext", "double"), b.convert("fpext", "double"), 29
    quotient = (a / b).call("trunc")
    rest = (-quotient).fma(b, a) if x.base == "double" else a - quotient * b
    rest = rest.lt(0.0).select(rest + b, rest)  # the quotient had been rounded up to an integer
    result = (rest if x.base == "double" else rest.convert("fptrunc", "float")).call("copysign", x)
    result = (y.abs().eq(INF) & x.abs().lt(INF)).select(x, result)

    def far_apart(x: Num, y: Num) -> Num:
        # Scaling x may lose bits when it is a denormal, but then y has so few bits that the product is exact anyway.
        return (x.abs() * 2.0**-room).gt(y.abs()) & (x.abs().lt(INF) & y.ne(0.0))

    return with_rare_lanes("fmod", result, far_apart, _fmod_by_integers, [x, y])


def _fmod_by_integers(x: Num, y: Num) -> Num:
    """fmod of two scalar doubles: long division of the significands, 11 bits a step."""
    w = x.w
    (mx, ex), (my, ey) = _significand(x), _significand(y)
    divisor = my.eq(0).select(1, my)
    gap = (ex - ey).call("smax", 0)
    steps = gap.binary("udiv", 11)

    def body(_: str, carried: list[str]) -> list[str]:
        rest = Num(w, carried[0], "i64", 0)
        return [(rest << 11).binary("urem", divisor).text]

    first = mx.binary("urem", divisor)
    (text,) = w.loop("0", steps.text, "1", body, [("i64", first.text)], hint="divide")
    rest = (Num(w, text, "i64", 0) << (gap - steps * 11)).binary("urem", divisor)
    half = ey.ashr(1)
    magnitude = rest.convert("uitofp", "double") * _power(half) * _power(ey - half)
    result = x.abs().lt(y.abs()).select(x, magnitude.call("copysign", x))
    invalid = ~x.abs().lt(INF) | (y.isnan() | y.eq(0.0))
    return invalid.select(x.const(float("nan")), result)


def _significand(x: Num) -> tuple[Num, Num]:
    """Integers m and e with |x| = m 2^e."""
    bits = x.to_bits()
    field, fraction = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    denormal = field.eq(0)
    return denormal.select(fraction, fraction | (1 << 52)), denormal.select(1, field) - 1075


def _power(n: Num) -> Num:
    """2^n as a double, for n in its normal range."""
    return ((n + 1023) << 52).bitcast("double")
