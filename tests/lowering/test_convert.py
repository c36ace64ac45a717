"""Casts between number types: every code of every small float, boundary and tie values, saturation."""

from __future__ import annotations

import numpy as np
import pytest
from lowering.harness import HOST, NUMPY, PLAIN, Compiled, run

from triton.ir import types as T
from triton.lowering.convert import FORMATS, encode_number

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow and NaN are what is tested
L = np.longdouble
FEATURES = [
    pytest.param({"features": HOST, "lanes": 16}, id="host"),
    pytest.param({"features": PLAIN, "lanes": 4}, id="plain"),
    pytest.param({"features": PLAIN, "lanes": 0}, id="scalar"),
]
SMALL = list(FORMATS)


def decoded(name: str, codes: np.ndarray) -> np.ndarray:
    """The values of ``codes`` from the definition of the format, in long double."""
    fmt = FORMATS[name]
    codes = codes.astype(np.int64)
    magnitude = codes & (fmt.sign - 1)
    exponent, mantissa = magnitude >> fmt.mantissa, magnitude & ((1 << fmt.mantissa) - 1)
    normal = np.ldexp(L(1) + mantissa.astype(L) / (1 << fmt.mantissa), exponent - fmt.bias)
    denormal = np.ldexp(mantissa.astype(L), 1 - fmt.bias - fmt.mantissa)
    value = np.where(exponent == 0, denormal, normal)
    if fmt.specials == "ieee":
        top = exponent == (1 << fmt.exponent) - 1
        value = np.where(top, np.where(mantissa == 0, L(np.inf), L(np.nan)), value)
    elif fmt.specials == "nan":
        value = np.where(magnitude == fmt.sign - 1, L(np.nan), value)
    value = np.where(codes & fmt.sign, -value, value)
    return np.where(codes == fmt.sign, L(np.nan), value) if fmt.specials == "fnuz" else value


def encoded(name: str, x: np.ndarray, rounding: str) -> np.ndarray:
    """The code of each value of ``x`` (long double), by searching the sorted list of all values."""
    fmt = FORMATS[name]
    table = decoded(name, np.arange(fmt.largest + 1))
    magnitude, sign = np.abs(x), np.signbit(x)
    low = np.searchsorted(table, magnitude, side="right") - 1
    above = np.append(table, 2 * table[-1] - table[-2])
    middle = (table + above[1:]) / 2
    code = low.copy()
    if rounding == "rtne":
        code += (magnitude > middle[low]) | ((magnitude == middle[low]) & (low % 2 == 1))
    if fmt.saturate:
        code = np.minimum(code, fmt.largest)
    elif rounding == "rtz":
        code = np.where(np.isinf(x), fmt.largest + 1, code)
    code = np.where((fmt.specials == "fnuz") & (code == 0), 0, code | np.where(sign, fmt.sign, 0))
    return np.where(np.isnan(x), fmt.nan, code)


def codes_of(name: str, array: np.ndarray) -> np.ndarray:
    return array.view(np.uint16 if FORMATS[name].bits == 16 else np.uint8).astype(np.int64)


def same_codes(name: str, given: np.ndarray, expected: np.ndarray) -> None:
    given = codes_of(name, given)
    nan = np.isnan(decoded(name, expected))
    wrong = np.where(nan, ~np.isnan(decoded(name, given)), given != expected)
    assert not wrong.any(), (
        f"{wrong.sum()} wrong, first at {np.flatnonzero(wrong)[:5]}: {given[wrong][:5]} {expected[wrong][:5]}"
    )


def every_code(name: str) -> np.ndarray:
    codes = np.arange(1 << FORMATS[name].bits)
    return codes.astype(np.uint16).view(NUMPY[name]) if FORMATS[name].bits == 16 else codes.astype(np.uint8)


def samples(target: str, dtype: type) -> np.ndarray:
    """All values of ``target``, the points midway between neighbours, the floats next to those, and random bits."""
    fmt, rng = FORMATS[target], np.random.default_rng(1)
    values = decoded(target, np.arange(fmt.largest + 1))
    if len(values) > 4096:
        values = values[:: len(values) // 2048]
    middles = (values[:-1] + values[1:]) / 2
    step = values[-1] - values[-2]
    base = np.concatenate(
        [values, middles, [values[-1] + step / 4, values[-1] + step / 2, values[-1] + step, 2 * values[-1]]]
    )
    base = base.astype(dtype)
    info = np.finfo(dtype)
    edge = np.array([0, info.tiny, info.smallest_subnormal, info.max, np.inf, np.nan], dtype)
    noise = rng.integers(0, 1 << info.bits, 20000, dtype=np.uint64).astype(f"u{info.bits // 8}").view(dtype)
    with np.errstate(over="ignore"):
        beside = [np.nextafter(base, dtype(np.inf)), np.nextafter(base, dtype(0))]
    positive = np.concatenate([base, *beside, edge, noise])
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("options", FEATURES)
@pytest.mark.parametrize("name", SMALL)
def test_every_code_widens_exactly(name: str, options: dict) -> None:
    codes = every_code(name)
    for wide in (T.f32, T.f64):
        got = run("cast", T.SCALARS[name], wide, codes, **options)
        expected = decoded(name, codes_of(name, codes)).astype(got.dtype)
        np.testing.assert_array_equal(got, expected)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("options", FEATURES)
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("name", SMALL)
def test_narrowing_rounds_once(name: str, rounding: str, options: dict) -> None:
    for source, dtype in ((T.f32, np.float32), (T.f64, np.float64)):
        x = samples(name, dtype)
        got = run("cast", source, T.SCALARS[name], x, attrs={"rounding": rounding}, **options)
        same_codes(name, got, encoded(name, x.astype(L), rounding))


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("source", SMALL)
def test_small_to_small(source: str, rounding: str) -> None:
    codes = every_code(source)
    exact = decoded(source, codes_of(source, codes))
    for target in SMALL:
        got = run("cast", T.SCALARS[source], T.SCALARS[target], codes, attrs={"rounding": rounding})
        expected = codes_of(source, codes) if source == target else encoded(target, exact, rounding)
        same_codes(target, got, expected)


@pytest.mark.parametrize("options", FEATURES)
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_f64_to_f32(rounding: str, options: dict) -> None:
    rng = np.random.default_rng(2)
    f32s = rng.integers(0, 1 << 32, 20000, dtype=np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)
    x = np.concatenate(
        [f32s, f32s * (1 + 2.0**-24), f32s * (1 + 2.0**-25), rng.standard_normal(1000), [1e39, -1e39, 1e-46, np.inf]]
    )
    with np.errstate(over="ignore"):
        near = x.astype(np.float32)
    if rounding == "rtz":
        near = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    np.testing.assert_array_equal(run("cast", T.f64, T.f32, x, attrs={"rounding": rounding}, **options), near)


INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def integers(name: str) -> np.ndarray:
    info, rng = np.iinfo(NUMPY[name]), np.random.default_rng(3)
    powers = [1 << k for k in range(info.bits)]
    corners = [p + d for p in powers for d in (-2, -1, 0, 1, 2)] + [3 * p // 2 + d for p in powers for d in (-1, 0, 1)]
    # ties of bf16, f16 and f32: a leading run of ones and zeros, then exactly half, then a little more or less
    corners += [(p << 24) // 255 + d for p in powers for d in (-1, 0, 1)]
    corners += [(257 << k) + (1 << k >> 1) + d for k in range(info.bits - 9) for d in (-1, 0, 1)]
    corners += [info.min, info.max]
    fit = [c for v in corners for c in (v, -v) if info.min <= c <= info.max]
    return np.concatenate(
        [np.array(fit, NUMPY[name]), rng.integers(info.min, info.max, 3000, NUMPY[name], endpoint=True)]
    )


@pytest.mark.parametrize("options", FEATURES)
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("source", INTS)
def test_integer_to_float(source: str, rounding: str, options: dict) -> None:
    x = integers(source)
    for target in ("f16", "bf16", "f8e4m3", "f8e5m2"):
        got = run("cast", T.SCALARS[source], T.SCALARS[target], x, attrs={"rounding": rounding}, **options)
        same_codes(target, got, encoded(target, x.astype(L), rounding))
    for target, dtype in (("f32", np.float32), ("f64", np.float64)):
        near = x.astype(L).astype(dtype)
        if rounding == "rtz":
            near = np.where(np.abs(near.astype(L)) > np.abs(x.astype(L)), np.nextafter(near, dtype(0)), near)
        got = run("cast", T.SCALARS[source], T.SCALARS[target], x, attrs={"rounding": rounding}, **options)
        np.testing.assert_array_equal(got, near)


@pytest.mark.parametrize("options", FEATURES)
@pytest.mark.parametrize("target", INTS)
def test_float_to_integer_saturates(target: str, options: dict) -> None:
    info, rng = np.iinfo(NUMPY[target]), np.random.default_rng(4)
    for source, dtype in (("f32", np.float32), ("f64", np.float64), ("f16", np.float16)):
        limits = np.array([info.min, info.max, info.max + 1, info.min - 1, 2 * info.max], L).astype(dtype)
        with np.errstate(over="ignore"):
            near = [np.nextafter(limits, dtype(0)), np.nextafter(limits, dtype(np.inf))]
        noise = (rng.standard_normal(2000) * np.exp(rng.uniform(-3, 45, 2000))).astype(L)
        with np.errstate(over="ignore"):
            noise = noise.astype(dtype)
        x = np.concatenate(
            [limits, *near, noise, np.array([0.0, -0.0, -0.9, 0.9, 1.5, -1.5, np.inf, -np.inf, np.nan], dtype)]
        )
        clean = np.where(np.isnan(x), 0, np.trunc(x.astype(L)))
        expected = np.array([int(min(max(v, L(info.min)), L(info.max))) for v in clean], NUMPY[target])
        np.testing.assert_array_equal(run("cast", T.SCALARS[source], T.SCALARS[target], x, **options), expected)


def test_integer_to_integer_and_bool() -> None:
    for source in INTS:
        x = integers(source)
        for target in INTS:
            np.testing.assert_array_equal(run("cast", T.SCALARS[source], T.SCALARS[target], x), x.astype(NUMPY[target]))
        np.testing.assert_array_equal(run("cast", T.SCALARS[source], T.i1, x), (x != 0).astype(np.uint8))
    bits = np.array([0, 1, 1, 0, 1], np.uint8)
    for target in ("i8", "u16", "i32", "i64", "f16", "f32", "f64"):
        np.testing.assert_array_equal(run("cast", T.i1, T.SCALARS[target], bits), bits.astype(NUMPY[target]))
    x = np.array([0.0, -0.0, np.nan, np.inf, 1e-45, 2.0], np.float32)
    np.testing.assert_array_equal(run("cast", T.f32, T.i1, x), [0, 0, 1, 1, 1, 1])


@pytest.mark.parametrize("name", SMALL)
def test_encode_number_is_the_same_rounding(name: str) -> None:
    x = samples(name, np.float64)[::37]
    expected = encoded(name, x.astype(L), "rtne")
    got = np.array([encode_number(float(v), name) for v in x])
    number = ~np.isnan(x)
    np.testing.assert_array_equal(got[number], expected[number])
    assert np.isnan(decoded(name, got[~number])).all() or FORMATS[name].specials == "none"


def test_bitcasts() -> None:
    x = np.random.default_rng(5).standard_normal(100).astype(np.float32)
    np.testing.assert_array_equal(run("bitcast", T.f32, T.i32, x), x.view(np.int32))
    np.testing.assert_array_equal(run("bitcast", T.i32, T.f32, x.view(np.int32)), x)
    half = x.astype(np.float16)
    np.testing.assert_array_equal(run("bitcast", T.f16, T.bf16, half), half.view(np.uint16))
    pointer = T.PointerType(T.f32)
    words = np.arange(100, dtype=np.uint64) << np.uint64(40)
    np.testing.assert_array_equal(run("bitcast", pointer, T.u64, words), words)
    np.testing.assert_array_equal(run("bitcast", T.i64, pointer, words.view(np.int64)), words)
    np.testing.assert_array_equal(run("bitcast", pointer, T.PointerType(T.i8), words), words)
    np.testing.assert_array_equal(run("bitcast", T.f8e5m2, T.i8, np.arange(100, dtype=np.uint8)), np.arange(100))


def test_plain_machine_needs_no_library() -> None:
    """Without f16 instructions, casts are integer operations: no function of a compiler's run-time library is
    called.
    """
    code = Compiled("cast", [T.f32], [T.f16], features=PLAIN, plain_cpu=True)
    assert "call" not in code.asm
