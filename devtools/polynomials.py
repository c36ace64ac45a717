"""Derives the polynomial coefficients in ``triton/lowering/coefficients.py``: ``python -m devtools.polynomials``
prints the file.

Each polynomial q approximates (target(x) - base(x)) / factor(x), so that base + factor * q approximates the target
with small relative (or absolute) error. It is fitted in 50 digits by least squares in Chebyshev nodes, with Lawson's
reweighting towards the minimax solution; coefficients are rounded to the working precision one after the other,
lowest first, and the rest fitted again. Needs mpmath, which nothing else does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 50
Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Fit:
    name: str
    comment: str
    degree: int
    low: float
    high: float
    target: Function
    base: Function
    factor: Function
    variable: Function = lambda x: x
    scale: Function | None = None  # errors are measured relative to this; the target itself by default
    bits: int = 32


def rounded(value: mp.mpf, bits: int) -> float:
    if bits == 64:
        return float(value)
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def solve(fit: Fit) -> tuple[list[float], float]:
    """Coefficients, and the largest error in the nodes."""
    count = 6 * (fit.degree + 1)
    middle, half = (mp.mpf(fit.low) + fit.high) / 2, (mp.mpf(fit.high) - fit.low) / 2
    nodes = [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    nodes = [x for x in nodes if x != 0]
    scale = fit.scale or fit.target
    weight = [fit.factor(x) / scale(x) for x in nodes]
    wanted = [(fit.target(x) - fit.base(x)) / fit.factor(x) for x in nodes]
    points = [fit.variable(x) for x in nodes]
    fixed: list[float] = []
    while len(fixed) <= fit.degree:
        free = fit.degree + 1 - len(fixed)
        lawson = [mp.mpf(1)] * len(nodes)
        for _ in range(6):
            rows, right = [], []
            for x, w, y, emphasis in zip(points, weight, wanted, lawson, strict=True):
                known = value(fixed, [], x)
                factor = w * mp.sqrt(emphasis)
                rows.append([factor * x ** (len(fixed) + k) for k in range(free)])
                right.append(factor * (y - known))
            a, b = mp.matrix(rows), mp.matrix(right)
            c = mp.lu_solve(a.T * a, a.T * b)
            residual = [abs(w * (y - value(fixed, c, x))) for x, w, y in zip(points, weight, wanted, strict=True)]
            top = max(residual)
            lawson = [e * (r / top + mp.mpf("1e-6")) for e, r in zip(lawson, residual, strict=True)]
        fixed.append(rounded(c[0], fit.bits))
    worst = max(abs(w * (y - value(fixed, [], x))) for x, w, y in zip(points, weight, wanted, strict=True))
    return fixed, float(worst)


def value(fixed: list[float], rest: mp.matrix | list[mp.mpf], x: mp.mpf) -> mp.mpf:
    total = mp.mpf(0)
    for k, c in enumerate([*fixed, *rest]):
        total += c * x**k
    return total


HALF_LN2 = float(mp.log(2) / 2) * 1.001
QUARTER_PI = float(mp.pi / 4) * 1.001
LOG_LOW, LOG_HIGH = float(mp.sqrt(0.5)) - 1.0001, float(mp.sqrt(2)) - 0.9999
log1p = mp.log1p
ERF_SPLIT = 0.9375
TANH_SPLIT = 0.625


def _s(f: mp.mpf) -> mp.mpf:
    return f / (2 + f)


def erfcx(x: mp.mpf) -> mp.mpf:
    return mp.exp(x * x) * mp.erfc(x)


FITS = [
    Fit(
        "EXP_F32",
        "exp(r) = 1 + r + r^2 q(r), |r| <= ln(2)/2",
        4,
        -HALF_LN2,
        HALF_LN2,
        mp.exp,
        lambda r: 1 + r,
        lambda r: r * r,
    ),
    Fit(
        "EXP2_F32",
        "2^r = 1 + r q(r), |r| <= 1/2",
        5,
        -0.5,
        0.5,
        lambda r: mp.power(2, r),
        lambda r: mp.mpf(1),
        lambda r: r,
    ),
    Fit(
        "LOG_F32",
        "log(1 + f) = f - f^2/2 + f^3 q(f), sqrt(1/2) <= 1 + f <= sqrt(2)",
        7,
        LOG_LOW,
        LOG_HIGH,
        log1p,
        lambda f: f - f * f / 2,
        lambda f: f**3,
    ),
    Fit(
        "SIN_F32",
        "sin(r) = r + r^3 q(r^2), |r| <= pi/4",
        2,
        0.0,
        QUARTER_PI,
        mp.sin,
        lambda r: r,
        lambda r: r**3,
        lambda r: r * r,
    ),
    Fit(
        "COS_F32",
        "cos(r) = 1 - r^2/2 + r^4 q(r^2), |r| <= pi/4",
        2,
        0.0,
        QUARTER_PI,
        mp.cos,
        lambda r: 1 - r * r / 2,
        lambda r: r**4,
        lambda r: r * r,
    ),
    Fit(
        "ERF_F32",
        f"erf(x) = x + x q(x^2), |x| <= {ERF_SPLIT}",
        6,
        0.0,
        ERF_SPLIT,
        mp.erf,
        lambda x: x,
        lambda x: x,
        lambda x: x * x,
    ),
    Fit(
        "ERF_TAIL_F32",
        f"-log2(erfc(x)) = q(x), {ERF_SPLIT} <= x <= 4",
        7,
        ERF_SPLIT - 0.001,
        4.0,
        lambda x: -mp.log(mp.erfc(x), 2),
        lambda x: mp.mpf(0),
        lambda x: mp.mpf(1),
        scale=lambda x: 1 / mp.erfc(x),
    ),
    Fit(
        "TANH_F32",
        f"tanh(x) = x + x^3 q(x^2), |x| <= {TANH_SPLIT}",
        4,
        0.0,
        TANH_SPLIT,
        mp.tanh,
        lambda x: x,
        lambda x: x**3,
        lambda x: x * x,
    ),
    Fit(
        "TANH_F64",
        f"tanh(x) = x + x^3 q(x^2), |x| <= {TANH_SPLIT}",
        11,
        0.0,
        TANH_SPLIT,
        mp.tanh,
        lambda x: x,
        lambda x: x**3,
        lambda x: x * x,
        bits=64,
    ),
    Fit(
        "EXP_F64",
        "exp(r) = 1 + r + r^2 q(r), |r| <= ln(2)/2",
        9,
        -HALF_LN2,
        HALF_LN2,
        mp.exp,
        lambda r: 1 + r,
        lambda r: r * r,
        bits=64,
    ),
    Fit(
        "EXP2_F64",
        "2^r = 1 + r q(r), |r| <= 1/2",
        11,
        -0.5,
        0.5,
        lambda r: mp.power(2, r),
        lambda r: mp.mpf(1),
        lambda r: r,
        bits=64,
    ),
    Fit(
        "LOG_F64",
        "log(1 + f) = 2 s + s^3 q(s^2), s = f / (2 + f), sqrt(1/2) <= 1 + f <= sqrt(2)",
        6,
        0.0,
        LOG_HIGH,
        log1p,
        lambda f: 2 * _s(f),
        lambda f: _s(f) ** 3,
        lambda f: _s(f) ** 2,
        bits=64,
    ),
    Fit(
        "SIN_F64",
        "sin(r) = r + r^3 q(r^2), |r| <= pi/4",
        5,
        0.0,
        QUARTER_PI,
        mp.sin,
        lambda r: r,
        lambda r: r**3,
        lambda r: r * r,
        bits=64,
    ),
    Fit(
        "COS_F64",
        "cos(r) = 1 - r^2/2 + r^4 q(r^2), |r| <= pi/4",
        5,
        0.0,
        QUARTER_PI,
        mp.cos,
        lambda r: 1 - r * r / 2,
        lambda r: r**4,
        lambda r: r * r,
        bits=64,
    ),
    Fit(
        "ERF_F64",
        f"erf(x) = x + x q(x^2), |x| <= {ERF_SPLIT}",
        12,
        0.0,
        ERF_SPLIT,
        mp.erf,
        lambda x: x,
        lambda x: x,
        lambda x: x * x,
        bits=64,
    ),
    Fit(
        "ERF_TAIL_F64",
        f"exp(x^2) erfc(x) = q((x - 2) / (x + 2)), {ERF_SPLIT} <= x <= 6",
        14,
        ERF_SPLIT - 0.001,
        6.0,
        erfcx,
        lambda x: mp.mpf(0),
        lambda x: mp.mpf(1),
        lambda x: (x - 2) / (x + 2),
        scale=lambda x: mp.exp(x * x),
        bits=64,
    ),
]


def main() -> None:
    command = "python -m devtools.polynomials"
    print(f'"""Polynomial coefficients, lowest power first. Written by ``{command}``; do not edit."""\n')
    print("from typing import Final\n")
    print(f"ERF_SPLIT: Final = {ERF_SPLIT}\nTANH_SPLIT: Final = {TANH_SPLIT}")
    constants()
    for fit in FITS:
        coefficients, error = solve(fit)
        print(f"\n#: {fit.comment}; error 2^{float(mp.log(error, 2)):.1f}")
        print(f"{fit.name}: Final = (")
        for c in coefficients:
            print(f"    {c!r},")
        print(")")


def constants() -> None:
    """Splits of ln 2 and pi / 2 whose leading parts have short mantissas, so that small multiples of them are exact."""
    ln2, half_pi = mp.log(2), mp.pi / 2
    for bits, keep in ((32, 10), (64, 32)):
        high = mp.floor(ln2 * 2**keep) / 2**keep
        print(f"\nLN2_F{bits}: Final = ({float(high)!r}, {rounded(ln2 - high, bits)!r})")
    parts, rest = [], half_pi
    for k in range(3):
        unit = mp.mpf(2) ** (33 * (k + 1) - 1)
        parts.append(mp.floor(rest * unit) / unit)
        rest -= parts[-1]
    print("\n#: pi / 2: three parts of at most 33 bits and the rest")
    print(f"HALF_PI: Final = ({', '.join(repr(float(p)) for p in [*parts, rest])})")
    print(f"HALF_PI_PAIR: Final = ({float(half_pi)!r}, {float(half_pi - mp.mpf(float(half_pi)))!r})")
    first = rounded(half_pi, 32)
    second = rounded(half_pi - first, 32)
    print("\n#: pi / 2 as three floats")
    print(f"HALF_PI_F32: Final = ({first!r}, {second!r}, {rounded(half_pi - first - second, 32)!r})")
    with mp.workdps(500):
        bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * 19)))
    print("\n#: 2 / pi in words of 64 bits, after a word of zeros")
    print("TWO_OVER_PI_WORDS: Final = (\n    0,")
    for k in reversed(range(19)):
        print(f"    0x{bits >> (64 * k) & (1 << 64) - 1:016X},")
    print(")")
    print(f"\nTWO_OVER_PI: Final = {float(2 / mp.pi)!r}")
    print(f"LOG2_E: Final = {float(1 / ln2)!r}")
    high = mp.floor(1 / ln2 * 2**20) / 2**20
    print("\n#: 1 / ln 2: 21 bits and the rest")
    print(f"LOG2_E_PARTS: Final = ({float(high)!r}, {float(1 / ln2 - high)!r})")


if __name__ == "__main__":
    main()
