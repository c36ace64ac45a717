"""Mathematical functions against NumPy in higher precision: error in units of the last place, special values, signs
of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowering.harness import HOST, NUMPY, PLAIN, Compiled
from lowering.test_convert import codes_of, decoded, every_code

from triton.ir import types as T
from triton.ir.table import IRError
from triton.lowering.math import FORMS, UNARY

special = pytest.importorskip("scipy.special")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
L = np.longdouble


def compiled(name: str, *elements: T.ElementType, result: T.ElementType | None = None, **options: Any) -> Compiled:
    result = result or elements[0]
    if name in UNARY:
        return Compiled(name, elements, [result], **options)
    return Compiled("libm", elements, [result], {"function": name}, **options)


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """In units of the last place of the exact result; infinite where a special value is wrong."""
    dtype = got.dtype.type
    near = exact.astype(dtype)
    unit = np.spacing(np.maximum(np.abs(near), np.finfo(dtype).tiny)).astype(L)
    same = (got == near) | (np.isnan(got) & np.isnan(near))
    distance = np.abs(got.astype(L) - exact.astype(L)) / unit
    # at the very edge of overflow the neighbour of infinity is the largest number
    edge = (np.isinf(got) != np.isinf(near)) & (np.abs(np.where(np.isinf(got), near, got)) == np.finfo(dtype).max)
    return np.where(
        same,
        np.minimum(np.nan_to_num(distance, posinf=0, nan=0), 1e9),
        np.where(edge, 1, np.nan_to_num(distance, nan=np.inf)),
    )


def check(name: str, got: np.ndarray, exact: np.ndarray, bound: float, *inputs: np.ndarray) -> None:
    error = errors(got, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, (
        f"{name}{tuple(x[worst] for x in inputs)} = {got[worst]}, not {exact[worst]}: {error[worst]} ulp"
    )


SPECIAL32 = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-45,
        -1e-45,
        1.1754944e-38,
        3.4e38,
        -3.4e38,
        88.722839,
        88.72284,
        -87.33655,
        -103.97,
        -103.98,
        -104.5,
        127.99999,
        128.0,
        -126.5,
        -149.0,
        -149.5,
        -150.0,
        0.5,
        2.0,
        1.5707964,
        524288.0,
        524289.0,
        1e10,
        0.9375,
        0.625,
        3.9,
        4.0,
        9.0,
        10.5,
    ],
    np.float32,
)


def inputs32(count: int = 1 << 17) -> np.ndarray:
    """Bit patterns spread evenly over all of f32, the special ones, and more where functions are interesting."""
    rng = np.random.default_rng(20)
    step = (1 << 32) // count
    bits = np.arange(count, dtype=np.uint64) * step + rng.integers(0, step, count, dtype=np.uint64)
    dense = [rng.uniform(-b, b, 1 << 14) for b in (1, 10, 100)] + [1 + rng.uniform(-0.5, 1, 1 << 14)]
    quarter_turns = np.arange(1, 4000) * (np.pi / 2)
    return np.concatenate(
        [
            bits.astype(np.uint32).view(np.float32),
            SPECIAL32,
            *(d.astype(np.float32) for d in dense),
            quarter_turns.astype(np.float32),
        ]
    )


# Bounds in ulp, a little above what has been measured over many more inputs.
F32: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (np.exp, 1.0),
    "exp2": (np.exp2, 1.1),
    "expm1": (np.expm1, 1.5),
    "log": (np.log, 0.9),
    "log2": (np.log2, 1.4),
    "sin": (np.sin, 1.6),
    "cos": (np.cos, 1.6),
    "erf": (special.erf, 1.3),
    "tanh": (np.tanh, 1.4),
    "sqrt": (np.sqrt, 0.501),
    "sqrt_rn": (np.sqrt, 0.501),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "log1p": (np.log1p, 1.3),
    "log10": (np.log10, 0.51),
    "exp10": (lambda x: np.power(10.0, x), 0.51),
}
CONFIGURATIONS = [
    pytest.param({"features": HOST, "lanes": 16}, id="host"),
    pytest.param({"features": PLAIN, "lanes": 4, "plain_cpu": True}, id="plain"),
    pytest.param({"features": HOST, "lanes": 0}, id="scalar"),
]


@pytest.mark.parametrize("options", CONFIGURATIONS)
@pytest.mark.parametrize("name", list(F32))
def test_f32(name: str, options: dict[str, Any]) -> None:
    reference, bound = F32[name]
    x = inputs32()
    exact = reference(x.astype(np.float64))
    got = compiled(name, T.f32, **options)(x)
    check(name, got, exact, bound, x)
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))


F64: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (np.exp, 1.0),
    "exp2": (np.exp2, 1.1),
    "expm1": (np.expm1, 2.0),
    "log": (np.log, 0.9),
    "log2": (np.log2, 0.8),
    "log1p": (np.log1p, 1.3),
    "tanh": (np.tanh, 1.4),
    "sqrt": (np.sqrt, 0.501),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
}


@pytest.mark.skipif(np.finfo(L).nmant < 63, reason="long double is no wider than double here")
@pytest.mark.parametrize("options", CONFIGURATIONS)
@pytest.mark.parametrize("name", list(F64))
def test_f64(name: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(21)
    corners = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        5e-324,
        1e308,
        709.78,
        709.79,
        -745.13,
        -745.2,
        1023.99,
        1024,
        -1074.5,
    ]
    x = np.concatenate(
        [
            rng.integers(0, 1 << 64, 20000, dtype=np.uint64).view(np.float64),
            corners,
            rng.uniform(-1, 1, 5000),
            rng.uniform(-700, 700, 5000),
            1 + rng.uniform(-0.5, 1, 5000),
            np.exp(rng.uniform(-40, 4, 5000)),
        ]
    )
    reference, bound = F64[name]
    exact = reference(x.astype(L))
    got = compiled(name, T.f64, **options)(x)
    check(name, got, exact, bound, x)
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))


def reference_turns(x: np.ndarray, function: Callable[[Any], Any]) -> np.ndarray:
    """The C library's value in double, which is right to 0.55 ulp."""
    return np.array([function(v) if math.isfinite(v) else math.nan for v in x.tolist()])


@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_f64_sin_cos_erf(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(22)
    near = (rng.integers(1, 1 << 18, 4000) * (L(math.pi) / 2 + L("6.123233995736766e-17"))).astype(np.float64)
    x = np.concatenate(
        [
            rng.integers(0, 1 << 64, 2000, dtype=np.uint64).view(np.float64),
            near,
            rng.uniform(-10, 10, 4000),
            [0.0, -0.0, np.inf, np.nan, 524288.0, 524288.5, 1e22, 1e300],
        ]
    )
    for name, function in (("sin", math.sin), ("cos", math.cos)):
        check(name, compiled(name, T.f64, **options)(x), reference_turns(x, function), 1.3, x)
    x = np.concatenate(
        [rng.uniform(-7, 7, 6000), rng.uniform(-1, 1, 4000), [0.0, 1e-300, np.inf, -np.inf, np.nan, 0.9375]]
    )
    check("erf", compiled("erf", T.f64, **options)(x), np.array([math.erf(v) for v in x.tolist()]), 1.6, x)
    assert np.signbit(compiled("sin", T.f64, **options)(np.array([-0.0]))).all()


@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("kind", list(UNARY))
def test_small_floats(kind: str, name: str) -> None:
    """All codes. Within one place of the format: computed in f32 and rounded once."""
    codes = every_code(name)
    x = decoded(name, codes_of(name, codes)).astype(np.float64)
    functions = {"floor": np.floor, "ceil": np.ceil, **{k: f for k, (f, _) in F32.items()}}
    exact = functions[kind](x)
    got = codes_of(name, compiled(kind, T.SCALARS[name], lanes=16)(codes))
    from lowering.test_convert import encoded

    expected = encoded(name, exact.astype(L), "rtne")
    nan = np.isnan(decoded(name, expected))
    assert (np.isnan(decoded(name, got)) == nan).all()
    assert np.abs(got - expected)[~nan].max() <= 1
    assert (got != expected)[~nan].mean() < 0.002


def test_huge_angles() -> None:
    """All exponents, and the doubles and floats that come closest to multiples of pi / 2 (found by continued
    fractions).
    """
    rng = np.random.default_rng(29)
    worst = [5319372648326541416707072.0, 16367173.0 * 2.0**72, 2.0**1023, 1e22]
    huge = np.concatenate([np.exp(rng.uniform(11, 709, 3000)), worst, [65536.0, 65537.0, 105615.0, 524287.9, 524288.1]])
    huge = np.concatenate([huge, -huge])
    closest = np.array([6381956970095103.0 * 2.0**797])  # of all doubles; the cosine has been computed in 2500 bits
    check("cos", compiled("cos", T.f64)(closest), np.array([L("-4.687165924254627611122583e-19")]), 0.6, closest)
    for lanes, features in ((8, HOST), (0, HOST), (4, PLAIN)):
        for name, function in (("sin", math.sin), ("cos", math.cos)):
            got = compiled(name, T.f64, lanes=lanes, features=features)(huge)
            check(name, got, reference_turns(huge, function), 1.3, huge)
            x = huge[np.abs(huge) < 3e38].astype(np.float32)
            got = compiled(name, T.f32, lanes=lanes, features=features)(x)
            check(name, got, reference_turns(x.astype(np.float64), function), 1.7, x)


def test_pow_special_cases() -> None:
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        np.inf,
        -np.inf,
        np.nan,
        1e30,
        1e-40,
        2.5,
        -2.5,
        16777217.0,
    ]
    rng = np.random.default_rng(23)
    for element, dtype, bound in ((T.f32, np.float32, 0.51), (T.f64, np.float64, 1.0)):
        base = np.concatenate([np.repeat(values, len(values)), np.exp(rng.uniform(-20, 20, 20000))]).astype(dtype)
        exponent = np.concatenate([np.tile(values, len(values)), rng.uniform(-6, 6, 20000)]).astype(dtype)
        exact = np.power(base.astype(L if dtype is np.float64 else np.float64), exponent)
        for options in ({"lanes": 8}, {"lanes": 0}):
            got = compiled("pow", element, element, **options)(base, exponent)
            check("pow", got, exact, bound, base, exponent)
            zero = exact == 0
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))
    n = np.arange(-20, 20, dtype=np.int32)
    got = compiled("pow", T.f32, T.i32)(np.full(40, -1.5, np.float32), n)
    np.testing.assert_array_equal(got, ((-1.5) ** n.astype(float)).astype(np.float32))


def domain(name: str, rng: np.random.Generator) -> np.ndarray:
    if name in ("acos", "asin", "atanh", "erfinv"):
        inside = np.concatenate(
            [rng.uniform(-1, 1, 300), 1 - np.exp(rng.uniform(-30, 0, 50)), [1.0, -1.0, 0.0, 1e-20, 1.5]]
        )
        return np.concatenate([inside, -inside])
    if name in ("erfcinv", "normcdfinv"):
        top = 2 if name == "erfcinv" else 1
        return np.concatenate([rng.uniform(0, top, 300), np.exp(rng.uniform(-600, 0, 100)), [0.0, top, top / 2, -1.0]])
    spread = np.concatenate(
        [rng.uniform(-30, 30, 300), np.exp(rng.uniform(-30, 6, 200)), -np.exp(rng.uniform(-30, 6, 200))]
    )
    return np.concatenate([spread, [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5]])


def by_math(function: Callable[[float], float], overflow: float = math.inf) -> Callable[[np.ndarray], np.ndarray]:
    def one(v: float) -> float:
        try:
            return function(v)
        except ValueError:
            return math.nan
        except OverflowError:
            return overflow

    return lambda x: np.array([one(v) for v in x.tolist()])


def scaled_erfc(x: np.ndarray) -> np.ndarray:
    """SciPy's, but in long double for negative x, where SciPy loses eight bits."""
    square = np.exp(x.astype(L) ** 2)
    return np.where(x < 0, 2 * square - special.erfcx(np.abs(x)), special.erfcx(x))


LIBRARY: dict[str, tuple[Callable[..., np.ndarray], float]] = {
    "acos": (np.arccos, 2),
    "acosh": (np.arccosh, 2),
    "asin": (np.arcsin, 2),
    "asinh": (np.arcsinh, 3),
    "atan": (np.arctan, 2),
    "atanh": (np.arctanh, 3),
    "cbrt": (np.cbrt, 4),
    "cosh": (np.cosh, 3),
    "sinh": (np.sinh, 3),
    "tan": (np.tan, 2),
    "erfc": (by_math(math.erfc), 2),
    "lgamma": (lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)), 1e4),
    "tgamma": (lambda x: np.where((x == np.floor(x)) & (x < 0), np.nan, special.gamma(x)), 1e3),
    "j0": (special.j0, 1e6),
    "j1": (special.j1, 1e6),
    "y0": (special.y0, 1e6),
    "y1": (special.y1, 1e6),
    "erfinv": (special.erfinv, 30),
    "erfcinv": (special.erfcinv, 200),
    "normcdfinv": (special.ndtri, 400),
    "erfcx": (scaled_erfc, 40),
    "normcdf": (special.ndtr, 3000),
    "cyl_bessel_i0": (lambda x: np.where(np.isinf(x), np.inf, special.i0(x)), 20),
    "cyl_bessel_i1": (lambda x: np.where(np.isinf(x), x, special.i1(x)), 20),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 5),
    "log1p": (np.log1p, 2),
    "log10": (np.log10, 2),
    "exp10": (lambda x: np.power(10.0, x), 3),
    "rint": (np.rint, 0),
    "nearbyint": (np.rint, 0),
    "roundeven": (np.rint, 0),
    "trunc": (np.trunc, 0),
    "fabs": (np.abs, 0),
    "floor": (np.floor, 0),
    "ceil": (np.ceil, 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x), 0),
    "saturatef": (lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)), 0),
    "sinpi": (lambda x: np.where(np.isfinite(x), special.sindg(np.fmod(x, 2) * 180), np.nan), 1e6),
    "cospi": (lambda x: np.where(np.isfinite(x), special.cosdg(np.fmod(x, 2) * 180), np.nan), 1e6),
    "logb": (lambda x: np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1.0, np.abs(x))), 0),
}


@pytest.mark.parametrize("name", list(LIBRARY))
def test_library_functions(name: str) -> None:
    """f32 within 1 ulp; f64 to the accuracy of the reference itself (large bounds are near zeros of the function)."""
    x = domain(name, np.random.default_rng(24))
    function, bound = LIBRARY[name]
    for lanes in (0, 8):
        x32 = x.astype(np.float32)
        exact = function(x32.astype(np.float64))
        got = compiled(name, T.f32, lanes=lanes)(x32)
        if bound < 1e6:
            check(name, got, exact, min(1.0, bound), x32)
        exact, got = function(x), compiled(name, T.f64, lanes=lanes)(x)
        if bound < 1e6:
            check(name, got, exact, bound, x)
        else:
            finite = np.isfinite(x)  # the reference has NaN for infinities where C has limits
            np.testing.assert_allclose(got[finite], exact[finite], rtol=1e-11, atol=1e-13)


BINARY: dict[str, Callable[..., np.ndarray]] = {
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "nextafter": np.nextafter,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0)),
    "remainder": lambda x, y: np.array(
        [
            by_math(lambda v, u=u: math.remainder(v, u))(np.array([v]))[0]
            for v, u in zip(x.tolist(), y.tolist(), strict=True)
        ]
    ),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
}


@pytest.mark.parametrize("name", list(BINARY))
def test_binary_library_functions(name: str) -> None:
    corners = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-45, 3.0]
    rng = np.random.default_rng(25)
    x = np.concatenate([np.repeat(corners, len(corners)), rng.standard_normal(500) * 100])
    y = np.concatenate([np.tile(corners, len(corners)), rng.standard_normal(500)])
    for element, dtype in ((T.f32, np.float32), (T.f64, np.float64)):
        a, b = x.astype(dtype), y.astype(dtype)
        # nextafter depends on the type; everything else is computed in the widest one
        exact = BINARY[name](a, b) if name == "nextafter" else BINARY[name](a.astype(np.float64), b.astype(np.float64))
        for lanes in (0, 8):
            check(
                name,
                compiled(name, element, element, lanes=lanes)(a, b),
                exact,
                2.0 if dtype is np.float64 else 0.51,
                a,
                b,
            )


def test_predicates_and_integers() -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -3.7, 2.5, 3.5], np.float32)
    table: dict[str, tuple[np.ndarray, T.ScalarType]] = {
        "isnan": (np.isnan(x), T.i32),
        "isinf": (np.isinf(x), T.i32),
        "isfinite": (np.isfinite(x), T.i32),
        "finitef": (np.isfinite(x), T.i32),
        "signbit": (np.signbit(x) & ~np.isnan(x), T.i32),
        "llrint": (np.where(np.isfinite(x), np.rint(x), 0), T.i64),
    }
    for name, (expected, result) in table.items():
        for lanes in (0, 8):
            got = compiled(name, T.f32, result=result, lanes=lanes)(x)
            use = np.isfinite(x) if name == "llrint" else ~np.isnan(x) if name == "signbit" else np.full(x.shape, True)
            np.testing.assert_array_equal(got[use], expected.astype(NUMPY[result.name])[use], name)
    values = np.array([1.0, 8.0, 0.3, -100.0, 1e-45, np.inf], np.float32)
    np.testing.assert_array_equal(compiled("ilogb", T.f32, result=T.i32)(values), [0, 3, -2, 6, -149, 2**31 - 1])
    exponents = np.array([3, -200, 127, -140, 149, 5], np.int32)
    np.testing.assert_array_equal(compiled("ldexp", T.f32, T.i32)(values, exponents), np.ldexp(values, exponents))


def test_bit_functions() -> None:
    rng = np.random.default_rng(26)
    for element, dtype, bits in ((T.i32, np.int32, 32), (T.i64, np.int64, 64)):
        x = np.concatenate(
            [rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 100, dtype), np.array([0, 1, -1], dtype)]
        )
        unsigned = [int(v) % (1 << bits) for v in x]
        table = {
            "popc": [v.bit_count() for v in unsigned],
            "clz": [bits - v.bit_length() for v in unsigned],
            "ffs": [(v & -v).bit_length() for v in unsigned],
        }
        for name, expected in table.items():
            np.testing.assert_array_equal(compiled(name, element, result=T.i32)(x), expected, name)
        reversed_ = [int(f"{v:0{bits}b}"[::-1], 2) for v in unsigned]
        np.testing.assert_array_equal(
            compiled("brev", element)(x).view(f"u{bits // 8}"), np.array(reversed_, f"u{bits // 8}")
        )
    a, b = rng.integers(-(1 << 31), 1 << 31, (2, 200), dtype=np.int32)
    wide = a.astype(np.int64), b.astype(np.int64)
    np.testing.assert_array_equal(compiled("hadd", T.i32, T.i32)(a, b), (wide[0] + wide[1]) >> 1)
    np.testing.assert_array_equal(compiled("rhadd", T.i32, T.i32)(a, b), (wide[0] + wide[1] + 1) >> 1)
    got = compiled("mul24", T.i32, T.i32)(a, b)
    low = [((v & 0xFFFFFF) ^ 0x800000) - 0x800000 for v in wide]
    np.testing.assert_array_equal(got, (low[0] * low[1]).astype(np.int32))
    pick = np.full(200, 0x7610, np.int32)
    both = a.view(np.uint32).astype(object) | (b.view(np.uint32).astype(object) << 32)
    expected = [(v & 0xFFFF) | (((v >> 48) & 0xFFFF) << 16) for v in both]
    np.testing.assert_array_equal(
        compiled("byte_perm", T.i32, T.i32, T.i32)(a, b, pick).view(np.uint32), np.array(expected, np.uint32)
    )


DIRECTED = {"d": -np.inf, "u": np.inf}


@pytest.mark.parametrize("mode", ["rd", "ru", "rz", "rn"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "sqrt", "rcp", "fma"])
def test_directed_rounding_f32(name: str, mode: str) -> None:
    rng = np.random.default_rng(27)
    count = {"sqrt": 1, "rcp": 1, "fma": 3}.get(name, 2)
    args = [(rng.standard_normal(3000) * np.exp(rng.uniform(-10, 10, 3000))).astype(np.float32) for _ in range(count)]
    if name == "sqrt":
        args[0] = np.abs(args[0])
    wide = [a.astype(L) for a in args]
    exact = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "sqrt": np.sqrt,
        "rcp": lambda a: 1 / a,
        "fma": lambda a, b, c: a * b + c,
    }[name](*wide)
    near = exact.astype(np.float32)
    toward = np.float32(0) if mode == "rz" else np.float32(DIRECTED.get(mode[1], 0))
    beyond = {"rd": near.astype(L) > exact, "ru": near.astype(L) < exact, "rz": np.abs(near.astype(L)) > np.abs(exact)}
    expected = np.where(beyond[mode], np.nextafter(near, toward), near) if mode != "rn" else near
    np.testing.assert_array_equal(compiled(f"{name}_{mode}", *[T.f32] * count)(*args), expected)


@pytest.mark.parametrize("mode", ["rd", "ru", "rz", "rn"])
def test_directed_conversions(mode: str) -> None:
    rng = np.random.default_rng(28)
    whole = {"rd": np.floor, "ru": np.ceil, "rz": np.trunc, "rn": np.rint}[mode]
    x = np.concatenate([rng.standard_normal(500) * 1000, [0.5, -0.5, 1.5, 2.5]])
    np.testing.assert_array_equal(compiled(f"double2int_{mode}", T.f64, result=T.i32)(x), whole(x).astype(np.int32))
    n = rng.integers(-(1 << 62), 1 << 62, 500)
    near = n.astype(L).astype(np.float32)
    beyond = {
        "rd": near.astype(L) > n,
        "ru": near.astype(L) < n,
        "rz": np.abs(near.astype(L)) > np.abs(n.astype(L)),
        "rn": near != near,
    }
    toward = np.float32(0) if mode == "rz" else np.float32(DIRECTED.get(mode[1], 0))
    expected = np.where(beyond[mode], np.nextafter(near, toward), near)
    np.testing.assert_array_equal(compiled(f"ll2float_{mode}", T.i64, result=T.f32)(n), expected)
    near = x.astype(np.float32)
    beyond = {"rd": near > x, "ru": near < x, "rz": np.abs(near) > np.abs(x), "rn": near != near}
    expected = np.where(beyond[mode], np.nextafter(near, toward), near)
    np.testing.assert_array_equal(compiled(f"double2float_{mode}", T.f64, result=T.f32)(x), expected)


def test_errors_name_the_function() -> None:
    with pytest.raises(IRError, match="no lowering for the mathematical function 'frobnicate'"):
        compiled("frobnicate", T.f32)
    with pytest.raises(IRError, match="'atan2' takes 2 arguments, got 1"):
        compiled("atan2", T.f32)
    with pytest.raises(IRError, match="'tanh' takes floating-point arguments, got i32"):
        compiled("tanh", T.i32)


def test_every_form_compiles_in_every_shape() -> None:
    for name, (count, _) in FORMS.items():
        for element in (T.f32, T.f64):
            for lanes in (0, 4):
                assert "run" in compiled(name, *[element] * count, lanes=lanes).ir


@pytest.mark.parametrize("kind", ["sin", "cos", "rem"])
def test_reductions_need_no_c_library(kind: str) -> None:
    for element in (T.f32, T.f64):
        code = Compiled(kind, [element] * (2 if kind == "rem" else 1), [element], lanes=4)
        declared = [line for line in code.ir.splitlines() if line.startswith("declare") and "@llvm." not in line]
        assert declared == []


def test_vector_functions_call_no_library() -> None:
    """The common functions run in vector registers: no call remains in f32 or f64 code (huge sin and cos arguments
    apart).
    """
    for name in ("exp", "exp2", "log", "log2", "erf", "tanh", "expm1", "sqrt", "rsqrt", "floor", "ceil"):
        for element in (T.f32, T.f64):
            asm = compiled(name, element, lanes=8).asm
            assert "call" not in asm, f"{name} of {element} calls a function"
