"""Arithmetic, comparisons and bit operations of every type against Python integers and NumPy."""

from __future__ import annotations

import fractions
import operator
from collections.abc import Callable

import numpy as np
import pytest
from lowering.harness import HOST, NUMPY, PLAIN, Compiled, run
from lowering.test_convert import SMALL, codes_of, decoded, encoded, every_code

from triton.ir import types as T
from triton.ir.core import Op
from triton.ir.ops import OPS
from triton.ir.table import IRError
from triton.lowering.convert import FORMATS
from triton.lowering.elementwise import RULES, emit_constant, emit_elementwise
from triton.lowering.writer import Cell, ModuleWriter

L = np.longdouble
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
LANES = [pytest.param(16, id="x16"), pytest.param(0, id="scalar")]


def test_every_elementwise_op_has_a_rule() -> None:
    assert {kind for kind, info in OPS.items() if info.elementwise} == set(RULES)


def test_an_op_without_rule_is_an_error() -> None:
    w = ModuleWriter().function("f", "void", [])
    with pytest.raises(IRError, match="no element-wise lowering for reduce"):
        emit_elementwise(w, Op("reduce"), [], 0)


def wrap(value: int, name: str) -> int:
    bits = T.SCALARS[name].bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if name[0] == "i" and value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    return a if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted_right(a: int, b: int, name: str) -> int:
    bits = T.SCALARS[name].bits
    amount = b & ((1 << bits) - 1)
    return a >> min(amount, bits)


def shifted_left(a: int, b: int, name: str) -> int:
    bits = T.SCALARS[name].bits
    amount = b & ((1 << bits) - 1)
    return a << amount if amount < bits else 0


BINARY: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul": lambda a, b, n: a * b,
    "div": lambda a, b, n: truncated(a, b),
    "rem": lambda a, b, n: a - truncated(a, b or 1) * (b or 1),
    "mulhi": lambda a, b, n: (a * b) >> T.SCALARS[n].bits,
    "and": lambda a, b, n: a & b,
    "or": lambda a, b, n: a | b,
    "xor": lambda a, b, n: a ^ b,
    "shl": shifted_left,
    "shr": shifted_right,
    "min": lambda a, b, n: min(a, b),
    "max": lambda a, b, n: max(a, b),
}


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    info, rng = np.iinfo(NUMPY[name]), np.random.default_rng(0)
    corners = [
        info.min,
        info.min + 1,
        -1,
        0,
        1,
        2,
        3,
        5,
        7,
        info.bits - 1,
        info.bits,
        info.max - 1,
        info.max,
        info.max // 2 + 1,
    ]
    corners = [c for c in corners if info.min <= c <= info.max]
    a = [x for x in corners for _ in corners]
    b = corners * len(corners)
    noise = rng.integers(info.min, info.max, (2, 400), NUMPY[name], endpoint=True)
    small = rng.integers(1, 2 * info.bits, 400, NUMPY[name])
    # numbers just below a multiple of the divisor are where a rounded quotient would be one too large
    divisor = rng.integers(1, 1 + int(np.sqrt(float(info.max))), 400, NUMPY[name])
    multiple = (int(info.max) // divisor.astype(object) * divisor.astype(object) - 1).astype(NUMPY[name])
    return (
        np.concatenate([np.array(a, NUMPY[name]), noise[0], noise[0], multiple]),
        np.concatenate([np.array(b, NUMPY[name]), noise[1], small, divisor]),
    )


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", INTS)
@pytest.mark.parametrize("kind", list(BINARY))
def test_integers(kind: str, name: str, lanes: int) -> None:
    a, b = pairs(name)
    expected = [wrap(BINARY[kind](int(x), int(y), name), name) for x, y in zip(a, b, strict=True)]
    got = run(kind, T.SCALARS[name], T.SCALARS[name], a, b, lanes=lanes)
    np.testing.assert_array_equal(got, np.array(expected, NUMPY[name]))


@pytest.mark.parametrize("name", ["i8", "u8"])
@pytest.mark.parametrize("kind", list(BINARY))
def test_every_pair_of_bytes(kind: str, name: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(NUMPY[name])
    a, b = np.repeat(every, 256), np.tile(every, 256)
    rule = BINARY[kind]
    expected = np.array([wrap(rule(x, y, name), name) for x in every.tolist() for y in every.tolist()], NUMPY[name])
    np.testing.assert_array_equal(run(kind, T.SCALARS[name], T.SCALARS[name], a, b, lanes=32), expected)


@pytest.mark.parametrize("divisor", [0, 1, -1, 2, 3, -7, 10, 641, 1 << 31, -(1 << 31)])
@pytest.mark.parametrize("kind", ["div", "rem", "shl", "shr"])
def test_known_right_operand(kind: str, divisor: int) -> None:
    for name in ("i32", "u32", "i64"):
        value = wrap(divisor, name)
        a, _ = pairs(name)
        constant = emit_constant(T.SCALARS[name], value, 8)
        run_ = Compiled(kind, [T.SCALARS[name]] * 2, [T.SCALARS[name]], constants={1: constant})
        expected = [wrap(BINARY[kind](int(x), value, name), name) for x in a]
        np.testing.assert_array_equal(run_(a), np.array(expected, NUMPY[name]))


def test_booleans_count_modulo_two() -> None:
    a, b = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    table = {
        "add": a ^ b,
        "sub": a ^ b,
        "mul": a & b,
        "min": a & b,
        "max": a | b,
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "mulhi": 0 * a,
        "div": a,
        "rem": 0 * a,
        "shl": a & (1 - b),
        "shr": a & (1 - b),
    }
    for kind, expected in table.items():
        np.testing.assert_array_equal(run(kind, T.i1, T.i1, a, b), expected, kind)
    for kind in ("neg", "abs"):
        np.testing.assert_array_equal(run(kind, T.i1, T.i1, a), a)
    for predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
        got = run("cmp", T.i1, T.i1, a, b, attrs={"pred": predicate})
        np.testing.assert_array_equal(got, getattr(operator, predicate)(a, b))


@pytest.mark.parametrize("name", INTS)
def test_integer_signs_and_comparisons(name: str) -> None:
    a, b = pairs(name)
    np.testing.assert_array_equal(run("neg", T.SCALARS[name], T.SCALARS[name], a), (0 - a).astype(NUMPY[name]))
    np.testing.assert_array_equal(run("abs", T.SCALARS[name], T.SCALARS[name], a), np.abs(a))
    for predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
        got = run("cmp", T.SCALARS[name], T.i1, a, b, attrs={"pred": predicate})
        np.testing.assert_array_equal(got, getattr(operator, predicate)(a, b))


# Floats

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 3.0, 1e-3]


def float_pairs(dtype: type, count: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng, info = np.random.default_rng(6), np.finfo(dtype)
    special = np.array([*SPECIAL, info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal], dtype)
    unsigned = f"u{info.bits // 8}"
    noise = rng.integers(0, 1 << info.bits, (2, count), dtype=np.uint64).astype(unsigned).view(dtype)
    near = rng.standard_normal((2, count)).astype(dtype)
    return (
        np.concatenate([np.repeat(special, len(special)), noise[0], near[0]]),
        np.concatenate([np.tile(special, len(special)), noise[1], near[1]]),
    )


ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("kind", list(ARITHMETIC))
def test_float_arithmetic(kind: str, lanes: int) -> None:
    for name, dtype in (("f32", np.float32), ("f64", np.float64), ("f16", np.float16)):
        a, b = float_pairs(dtype)
        expected = ARITHMETIC[kind](a, b)
        for features in (HOST, PLAIN):
            got = run(kind, T.SCALARS[name], T.SCALARS[name], a, b, lanes=lanes, features=features)
            np.testing.assert_array_equal(got, expected)
            number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_remainder_of_far_apart_floats() -> None:
    """Quotients from 2^-10 to 2^200, and dividends just below and above multiples of the divisor."""
    rng, count = np.random.default_rng(12), 6000
    for name, dtype, bits in (("f32", np.float32, 29), ("f64", np.float64, 52)):
        y = np.exp(rng.uniform(-90, 40, count)).astype(dtype)
        x = (y.astype(np.float64) * np.exp2(rng.uniform(-10, 200, count)) * rng.choice([-1, 1], count)).astype(dtype)
        multiple = (rng.integers(1, 1 << bits, count) * y.astype(np.float64)).astype(dtype)
        unsigned = f"u{np.dtype(dtype).itemsize}"
        noise = rng.integers(0, np.iinfo(unsigned).max, (2, count), unsigned).view(dtype)
        tiny = rng.integers(0, 1 << 20, (2, count)).astype(unsigned).view(dtype)
        x = np.concatenate([x, multiple, np.nextafter(multiple, dtype(0)), noise[0], noise[0], tiny[0]])
        y = np.concatenate([y, y, y, noise[1], tiny[1], tiny[1]])
        for features, lanes in ((HOST, 16), (PLAIN, 4), (HOST, 0)):
            got = run("rem", T.SCALARS[name], T.SCALARS[name], x, y, features=features, lanes=lanes)
            expected = np.fmod(x, y)
            np.testing.assert_array_equal(got, expected)
            number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def small_pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    codes = every_code(name)
    if codes.size == 256:
        return np.repeat(codes, 256), np.tile(codes, 256)
    rng = np.random.default_rng(7)
    return rng.permutation(codes), rng.permutation(codes)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "min", "max"])
@pytest.mark.parametrize("name", SMALL)
def test_small_floats_round_once(name: str, kind: str) -> None:
    """Computed in long double and rounded once by the definition of the format."""
    a, b = small_pairs(name)
    x, y = decoded(name, codes_of(name, a)), decoded(name, codes_of(name, b))
    exact = {"min": np.fmin, "max": np.fmax, **ARITHMETIC}[kind](x, y)
    got = decoded(name, codes_of(name, run(kind, T.SCALARS[name], T.SCALARS[name], a, b, lanes=16)))
    np.testing.assert_array_equal(got, decoded(name, encoded(name, exact, "rtne")))


@pytest.mark.parametrize("name", SMALL)
def test_small_float_signs_and_comparisons(name: str) -> None:
    a, b = small_pairs(name)
    x, y = decoded(name, codes_of(name, a)), decoded(name, codes_of(name, b))
    element = T.SCALARS[name]
    for kind, expected in (("neg", -x), ("abs", np.abs(x))):
        got = decoded(name, codes_of(name, run(kind, element, element, a)))
        np.testing.assert_array_equal(got, expected)
    for predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
        got = run("cmp", element, T.i1, a, b, attrs={"pred": predicate})
        np.testing.assert_array_equal(got, getattr(operator, predicate)(x, y))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_minimum_and_maximum(name: str, lanes: int) -> None:
    element, dtype = T.SCALARS[name], NUMPY[name]
    a, b = float_pairs(dtype, 100)
    zero = (a == 0) & (b == 0)  # which of +0 and -0 comes out is free
    for kind, skip, keep in (("min", np.fmin, np.minimum), ("max", np.fmax, np.maximum)):
        for propagate, function in ((False, skip), (True, keep)):
            attrs = {"propagate_nan": propagate}
            got = run(kind, element, element, a, b, attrs=attrs, lanes=lanes)
            np.testing.assert_array_equal(got[~zero], function(a, b)[~zero])
            bound = Compiled(
                kind, [element] * 2, [element], attrs, lanes=lanes, constants={1: emit_constant(element, 1.5, lanes)}
            )
            np.testing.assert_array_equal(bound(a), function(a, dtype(1.5)))


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_float_signs_comparisons_rounding(name: str) -> None:
    element, dtype = T.SCALARS[name], NUMPY[name]
    a, b = float_pairs(dtype, 200)
    for kind, function in (("neg", np.negative), ("abs", np.abs), ("floor", np.floor), ("ceil", np.ceil)):
        got, expected = run(kind, element, element, a), function(a)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(a)]), np.signbit(expected[~np.isnan(a)]))
    for predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
        got = run("cmp", element, T.i1, a, b, attrs={"pred": predicate})
        np.testing.assert_array_equal(got, getattr(operator, predicate)(a, b))


def exact_fma(a: float, b: float, c: float) -> fractions.Fraction:
    return fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)


def nearest_f32(value: fractions.Fraction) -> np.float32:
    """The f32 nearest to ``value``, ties to even."""
    guess = np.float32(float(value))  # within one place
    around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(around, key=lambda v: (abs(fractions.Fraction(float(v)) - value), int(v.view(np.uint32)) & 1))


@pytest.mark.parametrize("features", [HOST, PLAIN], ids=["host", "plain"])
def test_fma_f32_rounds_once(features: object) -> None:
    rng = np.random.default_rng(8)
    a, b = rng.integers(1 << 23, 1 << 24, (2, 2000)).astype(np.float32)
    c = (rng.integers(-(1 << 23), 1 << 23, 2000) * 2.0 ** rng.integers(-30, 30, 2000)).astype(np.float32)
    # sums that lie next to a tie: product = k + 1/2 place, addend far below
    tie = np.float32(1 + 2.0**-12)
    a = np.append(a, [tie] * 4)
    b = np.append(b, [tie] * 4)
    c = np.append(c, np.array([2.0**-60, -(2.0**-60), 0.0, 1.0], np.float32))
    got = run("fma", T.f32, T.f32, a, b, c, features=features)
    expected = [nearest_f32(exact_fma(*map(float, v))) for v in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(got, np.array(expected))
    special = run(
        "fma",
        T.f32,
        T.f32,
        *np.array([[np.inf, 0], [0.0, 5], [1.0, -np.inf]], np.float32).reshape(3, 2),
        features=features,
    )
    assert np.isnan(special[0]) and special[1] == -np.inf


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SMALL)
def test_fma_of_small_floats_rounds_once(name: str) -> None:
    """Where long double rounds the sum, the nearest of three candidates is found in exact arithmetic."""
    rng = np.random.default_rng(9)
    codes = every_code(name)
    a, b, c = (rng.choice(codes, 5000) for _ in range(3))
    x, y, z = (decoded(name, codes_of(name, v)) for v in (a, b, c))
    expected = encoded(name, x * y + z, "rtne")
    for i in np.flatnonzero(np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & np.isfinite(decoded(name, expected))):
        value = exact_fma(float(x[i]), float(y[i]), float(z[i]))
        sign = int(expected[i]) & FORMATS[name].sign
        around = [k | sign for k in range(max(0, int(expected[i]) - sign - 1), int(expected[i]) - sign + 2)]
        exact = decoded(name, np.array(around))
        finite = [(k, fractions.Fraction(float(v))) for k, v in zip(around, exact, strict=True) if np.isfinite(v)]
        if value != 0 and (abs(value) <= max(abs(v) for _, v in finite)):
            expected[i] = min(finite, key=lambda pair: (abs(pair[1] - value), pair[0] & 1))[0]
    got = decoded(name, codes_of(name, run("fma", T.SCALARS[name], T.SCALARS[name], a, b, c, lanes=8)))
    np.testing.assert_array_equal(got, decoded(name, expected))


def test_select_moves_bits() -> None:
    rng = np.random.default_rng(10)
    condition = rng.integers(0, 2, 500).astype(np.uint8)
    for name in (*SMALL, "f32", "f64", "i8", "i32", "u64", "i1"):
        dtype = NUMPY.get(name, np.uint8)
        yes, no = (
            rng.integers(0, 2 if name == "i1" else 256, 500 * np.dtype(dtype).itemsize).astype(np.uint8).view(dtype)
            for _ in range(2)
        )
        element = T.SCALARS[name]
        for lanes in (0, 16):
            got = Compiled("select", [T.i1, element, element], [element], lanes=lanes)(condition, yes, no)
            unsigned = f"u{np.dtype(dtype).itemsize}"
            np.testing.assert_array_equal(
                got.view(unsigned), np.where(condition, yes.view(unsigned), no.view(unsigned))
            )


def test_pointers() -> None:
    rng = np.random.default_rng(11)
    base = rng.integers(0, 1 << 63, 300, dtype=np.uint64)
    for pointee, size in ((T.f32, 4), (T.f64, 8), (T.i1, 1), (T.bf16, 2), (T.f8e5m2, 1)):
        pointer = T.PointerType(pointee)
        for name in ("i32", "u32", "i64", "i8", "u16"):
            info = np.iinfo(NUMPY[name])
            offset = rng.integers(info.min, info.max, 300, NUMPY[name], endpoint=True)
            got = Compiled("addptr", [pointer, T.SCALARS[name]], [pointer])(base, offset)
            expected = [(int(p) + int(o) * size) % (1 << 64) for p, o in zip(base, offset, strict=True)]
            np.testing.assert_array_equal(got, np.array(expected, np.uint64))
    a, b = base, np.roll(base, 1)
    b[:50] = a[:50]
    for predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
        got = run("cmp", pointer, T.i1, a, b, attrs={"pred": predicate})
        np.testing.assert_array_equal(got, getattr(operator, predicate)(a, b))


def test_constants_of_every_type() -> None:
    for name, element in T.SCALARS.items():
        for value in (
            (0, 1) if not element.is_float else (0.0, -0.0, 1.5, -448.0, 1e9, float("inf"), float("nan"), 1e-45)
        ):
            cell = emit_constant(element, bool(value) if element.is_bool else value, 8)
            got = Compiled("bitcast", [element], [element], constants={0: cell})(np.zeros(8))
            if name in SMALL:
                expected = encoded(name, np.array([value], L), "rtne")
                np.testing.assert_array_equal(decoded(name, codes_of(name, got)), np.repeat(decoded(name, expected), 8))
            else:
                np.testing.assert_array_equal(got, np.array([value] * 8, NUMPY[name]))
    assert emit_constant(T.PointerType(T.f32), 0, 4) == Cell("zeroinitializer", T.PointerType(T.f32), 4, 0)


def test_inline_assembly_and_library_functions() -> None:
    a = np.arange(-8, 8, dtype=np.int32)
    attrs = {"text": "leal 3($1), $0", "constraints": "=r,r"}
    for lanes in (0, 8):
        np.testing.assert_array_equal(run("inline_asm", T.i32, T.i32, a, attrs=attrs, lanes=lanes), a + 3)
        got = run("extern", T.f64, T.f64, a.astype(np.float64), attrs={"symbol": "atan"}, lanes=lanes)
        np.testing.assert_allclose(got, np.arctan(a), rtol=1e-15)


@pytest.mark.parametrize("lanes", [1, 3, 6, 24, 64])
def test_any_number_of_lanes(lanes: int) -> None:
    """Vectors of every length compute what scalars do."""
    rng = np.random.default_rng(13)
    x, y = rng.uniform(0.1, 3, (2, 200)).astype(np.float32)
    for kind in (
        "exp",
        "log",
        "sin",
        "erf",
    ):  # other instructions may be chosen for vectors, so that the last bit may differ
        np.testing.assert_allclose(
            run(kind, T.f32, T.f32, x, lanes=lanes), run(kind, T.f32, T.f32, x, lanes=0), rtol=3e-7
        )
    for kind in ("add", "rem", "max"):
        np.testing.assert_array_equal(
            run(kind, T.f32, T.f32, x, y, lanes=lanes), run(kind, T.f32, T.f32, x, y, lanes=0)
        )
    a, b = rng.integers(-100, 100, (2, 200), dtype=np.int32)
    for kind in ("div", "mulhi", "shl"):
        np.testing.assert_array_equal(
            run(kind, T.i32, T.i32, a, b, lanes=lanes), run(kind, T.i32, T.i32, a, b, lanes=0)
        )
    for target in (T.f16, T.bf16, T.f8e4m3, T.u64):
        np.testing.assert_array_equal(
            run("cast", T.f32, target, x, lanes=lanes), run("cast", T.f32, target, x, lanes=0)
        )
