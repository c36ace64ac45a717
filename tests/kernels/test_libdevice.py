"""``tl.extra.libdevice``: every function that has a plain meaning, against Python's own mathematics."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support import close, empty, full_range, sample

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def one(x, z, N: tl.constexpr, F: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, F(tl.load(x + i)))


@triton.jit
def two(x, y, z, N: tl.constexpr, F: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, F(tl.load(x + i), tl.load(y + i)))


@triton.jit
def three(x, y, w, z, N: tl.constexpr, F: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, F(tl.load(x + i), tl.load(y + i), tl.load(w + i)))


def apply(launch, name, result, *args):
    n = args[0].raw.size
    z = empty(result, n)
    launch((one, two, three)[len(args) - 1], (1,), *args, z, N=n, F=getattr(libdevice, name))
    return z


def elementwise(function):
    return np.vectorize(function, otypes=[float])


UNARY = {
    "acos": (np.arccos, -1, 1), "acosh": (np.arccosh, 1, 50), "asin": (np.arcsin, -1, 1),
    "asinh": (np.arcsinh, -50, 50), "atan": (np.arctan, -50, 50), "atanh": (np.arctanh, -0.99, 0.99),
    "cbrt": (np.cbrt, -50, 50),
    "cosh": (np.cosh, -20, 20), "exp10": (lambda v: 10.0**v, -20, 20), "expm1": (np.expm1, -3, 3),
    "erfc": (elementwise(math.erfc), -3, 5), "lgamma": (elementwise(math.lgamma), 0.1, 30),
    "log10": (np.log10, 0.01, 100), "log1p": (np.log1p, -0.9, 9), "nearbyint": (np.rint, -9, 9),
    "rint": (np.rint, -9, 9), "sinh": (np.sinh, -20, 20), "tan": (np.tan, -1.5, 1.5), "tanh": (np.tanh, -5, 5),
    "tgamma": (elementwise(math.gamma), 0.1, 20), "trunc": (np.trunc, -9, 9), "exp": (np.exp, -9, 9),
    "log": (np.log, 0.01, 9), "sin": (np.sin, -9, 9), "cos": (np.cos, -9, 9), "sqrt": (np.sqrt, 0, 9),
    "rsqrt": (lambda v: 1 / np.sqrt(v), 0.01, 9), "floor": (np.floor, -9, 9), "ceil": (np.ceil, -9, 9),
    "erf": (elementwise(math.erf), -3, 3), "fast_expf": (np.exp, -9, 9), "fast_logf": (np.log, 0.01, 9),
    "rcbrt": (lambda v: 1 / np.cbrt(v), 0.1, 9),
    "normcdf": (elementwise(lambda v: 0.5 * math.erfc(-v / 2**0.5)), -3, 3),
    "sinpi": (lambda v: np.sin(np.pi * v), -0.5, 0.5), "cospi": (lambda v: np.cos(np.pi * v), -0.25, 0.25),
    "saturatef": (lambda v: np.clip(v, 0, 1), -2, 2), "logb": (lambda v: np.floor(np.log2(np.abs(v))), 1.5, 90),
}  # fmt: skip
LOOSE = {"lgamma": 400, "tgamma": 8, "acosh": 8, "normcdf": 40, "rcbrt": 4, "erfc": 8, "cosh": 4, "sinh": 4, "tan": 8}


@pytest.mark.parametrize("function", sorted(UNARY))
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_functions_of_one_argument(launch, function, name):
    if name == "float64" and function in ("saturatef", "fast_expf", "fast_logf"):
        pytest.skip("for float32 only")
    meaning, low, high = UNARY[function]
    x = sample(name, 200, 0, low, high)
    z = apply(launch, function, name, x)
    expected = meaning(x.raw.astype(np.float64))
    scale = np.maximum(np.abs(expected), 1e-3) if function in ("sin", "cos", "sinpi", "tan") else None
    close(z, expected, places=LOOSE.get(function, 3), scale=scale)


def test_round_goes_away_from_zero(launch):
    x = sample("float32", 10)
    x.raw[:] = [0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, 8388609.0, -0.0, np.inf, np.nan]
    z = apply(launch, "round", "float32", x)
    np.testing.assert_array_equal(z.raw, np.float32([1, 2, 3, -1, -3, 0, 8388609, -0.0, np.inf, np.nan]))


BINARY = {
    "atan2": np.arctan2, "copysign": np.copysign, "fdim": lambda a, b: np.maximum(a - b, 0), "fmod": np.fmod,
    "hypot": np.hypot, "nextafter": np.nextafter, "remainder": elementwise(math.remainder), "add_rn": np.add,
    "div_rn": np.divide, "mul_rn": np.multiply,
}  # fmt: skip


@pytest.mark.parametrize("function", sorted(BINARY))
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_functions_of_two_arguments(launch, function, name):
    x, y = sample(name, 200, 1), sample(name, 200, 2)
    z = apply(launch, function, name, x, y)
    if function == "nextafter":
        np.testing.assert_array_equal(z.raw, np.nextafter(x.raw, y.raw))
    else:
        close(z, BINARY[function](x.raw.astype(np.float64), y.raw.astype(np.float64)), places=2)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_questions(launch, name):
    x = sample(name, 9)
    x.raw[:] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, 3]
    np.testing.assert_array_equal(apply(launch, "isnan", "int32", x).raw != 0, np.isnan(x.raw))
    np.testing.assert_array_equal(apply(launch, "isinf", "int32", x).raw != 0, np.isinf(x.raw))
    numbers = ~np.isnan(x.raw)
    sign = apply(launch, "signbit", "int32", x).raw != 0
    np.testing.assert_array_equal(sign[numbers], np.signbit(x.raw)[numbers])
    finite = apply(launch, "finitef" if name == "float32" else "isfinited", "int32", x)
    np.testing.assert_array_equal(finite.raw != 0, np.isfinite(x.raw))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_scaling_and_exponents(launch, name):
    x, n = sample(name, 50), sample("int32", 50, 1, -30, 30)
    for function in ("ldexp", "scalbn"):
        np.testing.assert_array_equal(apply(launch, function, name, x, n).raw, np.ldexp(x.raw, n.raw))
    np.testing.assert_array_equal(apply(launch, "ilogb", "int32", x).raw, np.frexp(x.raw)[1] - 1)


@pytest.mark.parametrize("name", ["int32", "int64"])
def test_bits(launch, name):
    x = full_range(name, 64)
    x.raw[:4] = [0, 1, -1, np.iinfo(name).min]
    bits = np.iinfo(name).bits
    unsigned = [int(v) % 2**bits for v in x.raw]
    texts = [f"{v:0{bits}b}" for v in unsigned]
    assert apply(launch, "popc", "int32", x).raw.tolist() == [t.count("1") for t in texts]
    assert apply(launch, "clz", "int32", x).raw.tolist() == [len(t) - len(t.lstrip("0")) for t in texts]
    lowest = [0 if v == 0 else len(t) - len(t.rstrip("0")) + 1 for v, t in zip(unsigned, texts, strict=True)]
    assert apply(launch, "ffs", "int32", x).raw.tolist() == lowest
    reverse = apply(launch, "brev", name, x).raw.view(f"uint{bits}")
    assert reverse.tolist() == [int(t[::-1], 2) for t in texts]


def test_integer_averages_and_differences(launch):
    x, y = full_range("int32", 40, 1), full_range("int32", 40, 2)
    a, b = x.raw.astype(np.int64), y.raw.astype(np.int64)
    np.testing.assert_array_equal(apply(launch, "hadd", "int32", x, y).raw, (a + b) >> 1)
    np.testing.assert_array_equal(apply(launch, "rhadd", "int32", x, y).raw, (a + b + 1) >> 1)
    np.testing.assert_array_equal(apply(launch, "mulhi", "int32", x, y).raw, (a * b) >> 32)


def test_words_of_doubles(launch):
    x = sample("float64", 30)
    high, low = apply(launch, "double2hiint", "int32", x), apply(launch, "double2loint", "int32", x)
    bits = x.raw.view(np.uint64)
    np.testing.assert_array_equal(high.raw.view(np.uint32), bits >> np.uint64(32))
    np.testing.assert_array_equal(low.raw.view(np.uint32), bits & np.uint64(0xFFFFFFFF))
    np.testing.assert_array_equal(apply(launch, "hiloint2double", "float64", high, low).raw, x.raw)


# Directed rounding --------------------------------------------------------------------------------------------------

EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c, "rcp": lambda a: 1 / a,
}  # fmt: skip


def check_direction(got, exact, mode, dtype):
    """``got`` is the nearest value of the type that lies on the side that ``mode`` names."""
    for value, wanted in zip(got, exact, strict=True):
        down = mode == "rd" or (mode == "rz" and wanted > 0)
        here = Fraction(float(value))
        beyond = Fraction(float(np.nextafter(value, dtype(np.inf if down else -np.inf))))
        assert (here <= wanted < beyond) if down else (beyond < wanted <= here), (float(value), float(wanted))


@pytest.mark.parametrize("function", sorted(EXACT))
@pytest.mark.parametrize("mode", ["rd", "ru", "rz"])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_directed_arithmetic(launch, function, mode, name):
    count = {"fma": 3, "rcp": 1}.get(function, 2)
    args = [sample(name, 60, k, 0.1 if k == 1 else -10, 10) for k in range(count)]
    args[0].raw[:4] = [1, 2, -1, 4]  # some exact results
    z = apply(launch, f"{function}_{mode}", name, *args)
    rows = zip(*[[Fraction(float(v)) for v in a.raw] for a in args], strict=True)
    check_direction(z.raw, [EXACT[function](*row) for row in rows], mode, z.raw.dtype.type)


@pytest.mark.parametrize("mode", ["rd", "ru", "rz"])
def test_directed_square_root(launch, mode):
    x = sample("float32", 100, 0, 0, 100)
    x.raw[:3] = [4, 9, 2]
    z = apply(launch, f"sqrt_{mode}", "float32", x)
    wide = np.sqrt(x.raw.astype(np.float64))
    assert (z.raw <= wide).all() if mode != "ru" else (z.raw >= wide).all()
    toward = np.float32(np.inf if mode != "ru" else -np.inf)
    beyond = np.nextafter(z.raw, toward).astype(np.float64)
    assert (beyond > wide).all() if mode != "ru" else (beyond < wide).all()


@pytest.mark.parametrize("source, spelled", [("int32", "int"), ("uint32", "uint"), ("int64", "ll"), ("uint64", "ull")])
@pytest.mark.parametrize("mode", ["rd", "ru", "rz"])
def test_directed_conversion_of_integers(launch, source, spelled, mode):
    x = full_range(source, 60)
    x.raw[:3] = [1, 2**24, 2**24 + 1]
    z = apply(launch, f"{spelled}2float_{mode}", "float32", x)
    check_direction(z.raw, [Fraction(int(v)) for v in x.raw], mode, np.float32)


@pytest.mark.parametrize("mode, meaning", [("rd", np.floor), ("ru", np.ceil), ("rz", np.trunc), ("rn", np.rint)])
@pytest.mark.parametrize("source, spelled", [("float32", "float"), ("float64", "double")])
def test_directed_conversion_to_integers(launch, mode, meaning, source, spelled):
    x = sample(source, 60, 0, -1000, 1000)
    x.raw[:4] = [0.5, 1.5, -0.5, -2.0]
    z = apply(launch, f"{spelled}2int_{mode}", "int32", x)
    np.testing.assert_array_equal(z.raw, meaning(x.raw))


@pytest.mark.parametrize("mode", ["rd", "ru", "rz"])
def test_directed_narrowing(launch, mode):
    x = sample("float64", 80)
    z = apply(launch, f"double2float_{mode}", "float32", x)
    check_direction(z.raw, [Fraction(float(v)) for v in x.raw], mode, np.float32)


def test_rough_reciprocal_of_the_high_word(launch):
    """PTX ISA, "rcp.approx.ftz.f64": special values, low words that do not count, 20 bits of mantissa."""
    x = sample("float64", 200)
    x.raw[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1.7e308, 4.0]
    z = apply(launch, "rcp64h", "float64", x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(z.raw[:9], [np.inf, -np.inf, 0.0, -0.0, np.nan, np.inf, -np.inf, 0.0, 0.25])
    assert np.signbit(z.raw[[1, 3, 6]]).all() and not np.signbit(z.raw[[0, 2, 5, 7]]).any()
    np.testing.assert_allclose(z.raw[9:], 1 / x.raw[9:], rtol=2**-19)
    np.testing.assert_array_equal(z.raw.view(np.uint64)[5:] & 0xFFFFFFFF, 0)
    bits = x.raw.view(np.uint64)
    bits[9:] |= 0xFFFFFFFF
    again = apply(launch, "rcp64h", "float64", x)
    np.testing.assert_array_equal(again.raw[9:], z.raw[9:])
