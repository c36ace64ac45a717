"""Integer arithmetic and casts against Python's integers; fma against fractions."""

from fractions import Fraction

import numpy as np
import pytest

from triton.interpreter import numeric
from triton.interpreter.floats import FORMATS, decode
from triton.ir.types import SCALARS

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def numpy_type(name):
    return np.dtype(name.replace("u", "uint").replace("i", "int") if name[0] == "i" else name.replace("u", "uint"))


def samples(name, count=300, seed=0):
    info = np.iinfo(numpy_type(name))
    rng = np.random.default_rng(seed)
    edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7] + ([-1, -2, -7] if info.min else [])
    shifts = rng.integers(0, info.bits, count, dtype=info.dtype)
    spread = rng.integers(info.min, info.max, count, dtype=info.dtype) >> shifts
    return np.concatenate([np.array(edges, dtype=info.dtype), spread])


def wrap(value, name):
    element = SCALARS[name]
    value &= (1 << element.bits) - 1
    return value - (1 << element.bits) if element.is_signed and value >> element.bits - 1 else value


def truncated(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def shift(a, b, bits, left):
    b &= (1 << bits) - 1
    if b >= bits:
        return 0 if left or a >= 0 else -1
    return a << b if left else a >> b


MEANING = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul": lambda a, b, bits: a * b,
    "div": lambda a, b, bits: truncated(a, b or 1),
    "rem": lambda a, b, bits: a - truncated(a, b or 1) * (b or 1),
    "mulhi": lambda a, b, bits: a * b >> bits,
    "and": lambda a, b, bits: a & b,
    "or": lambda a, b, bits: a | b,
    "xor": lambda a, b, bits: a ^ b,
    "shl": lambda a, b, bits: shift(a, b, bits, True),
    "shr": lambda a, b, bits: shift(a, b, bits, False),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", sorted(MEANING))
def test_integer_arithmetic(kind, name):
    assert set(MEANING) == set(numeric.BINARY)
    x = samples(name)
    a, b = (v.reshape(-1) for v in np.meshgrid(x[:60], x[:60]))
    if kind in ("shl", "shr"):
        b = np.concatenate([b[: b.size // 2] % 70, b[b.size // 2 :]]).astype(b.dtype)
    with np.errstate(all="ignore"):
        got = numeric.BINARY[kind](a, b, SCALARS[name])
    assert got.dtype == a.dtype
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    expected = [wrap(MEANING[kind](p, q, SCALARS[name].bits), name) for p, q in pairs]
    assert got.tolist() == expected


def test_booleans_count_modulo_two():
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    for kind, meaning in {"add": a ^ b, "sub": a ^ b, "mul": a & b, "div": a, "rem": a & False, "and": a & b}.items():
        assert numeric.BINARY[kind](a, b, SCALARS["i1"]).tolist() == meaning.tolist(), kind
    assert numeric.BINARY["shl"](a, b, SCALARS["i1"]).tolist() == (a & ~b).tolist()
    assert numeric.compare(a, b, SCALARS["i1"], "lt").tolist() == [False, True, False, False]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integer_casts_keep_low_bits(source, target):
    x = samples(source)
    got = numeric.cast(x, SCALARS[source], SCALARS[target], "rtne")
    assert got.tolist() == [wrap(v, target) for v in x.tolist()]


@pytest.mark.parametrize("source", ["f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("target", INTEGERS)
def test_float_to_integer_truncates_and_saturates(source, target):
    if source in ("f16", "bf16", "f8e4m3", "f8e5m2"):
        raw = np.arange(1 << SCALARS[source].bits).astype(FORMATS[source].storage)
        x = raw.view(np.float16) if source == "f16" else raw
        with np.errstate(invalid="ignore"):
            values = (x if source == "f16" else decode(x, source)).astype(np.float64)
        if source in ("f16", "bf16"):
            x, values = x[::7], values[::7]
    else:
        powers = [s * 2.0**e for s in (-1, 1) for e in (7, 8, 15, 16, 31, 32, 63, 64)]
        bounds = [p + d for p in powers for d in (-1, -0.5, 0, 0.5, 1)]
        more = [np.nan, np.inf, -np.inf, -0.0, 0.9, -0.9, 1e-300, 1e30]
        x = np.array(bounds + more).astype("f4" if source == "f32" else "f8")
        values = x.astype(np.float64)
    info = np.iinfo(numpy_type(target))
    with np.errstate(all="ignore"):
        got = numeric.cast(x, SCALARS[source], SCALARS[target], "rtne")

    def meaning(v):
        if v != v:
            return 0
        return min(max(int(v) if abs(v) != np.inf else (int(info.max) if v > 0 else int(info.min)), info.min), info.max)

    assert got.tolist() == [meaning(v) for v in values.tolist()]


@pytest.mark.parametrize("name", ["i64", "u64", "i32"])
def test_integer_to_double_toward_zero(name):
    x = samples(name)
    got = numeric.cast(x, SCALARS[name], SCALARS["f64"], "rtz")
    for value, result in zip(x.tolist(), got.tolist(), strict=True):
        assert abs(int(result)) <= abs(value) and abs(value) - abs(int(result)) < max(1, abs(value) >> 52), value


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
def test_fma_rounds_once(name):
    rng = np.random.default_rng(0)
    dtype = {"f32": np.float32, "f64": np.float64}.get(name, np.float32)
    a, b = (rng.standard_normal(2000).astype(dtype) for _ in range(2))
    c = (-(a.astype(np.float64) * b) * (1 + rng.choice([0, 1, -1, 2.0**-20, 2.0**-29], 2000))).astype(dtype)
    c[::3] = rng.standard_normal(len(c[::3])).astype(dtype) * dtype(2.0**-30)
    element = SCALARS[name]
    x, y, z = (numeric.cast(v, SCALARS["f64" if name == "f64" else "f32"], element, "rtne") for v in (a, b, c))
    got = numeric.fused_multiply_add(x, y, z, element)
    one = SCALARS["f64"]
    for p, q, r, g in zip(*(numeric.cast(v, element, one, "rtne").tolist() for v in (x, y, z, got)), strict=True):
        exact = Fraction(p) * Fraction(q) + Fraction(r)
        error = abs(Fraction(g) - exact)
        for other in neighbours(g, element):
            assert error <= abs(Fraction(other) - exact), (p, q, r)


def neighbours(value, element):
    raw = numeric.cast(np.array([value]), SCALARS["f64"], element, "rtne")
    bits = raw.view(f"i{raw.dtype.itemsize}")
    for step in (-1, 1):
        moved = (bits + bits.dtype.type(step)).view(raw.dtype)
        other = float(numeric.cast(moved, element, SCALARS["f64"], "rtne")[0])
        if np.isfinite(other):
            yield other


def test_fma_at_the_ends_of_double():
    big, tiny = np.array([1e308]), np.array([5e-324])
    double = SCALARS["f64"]
    assert numeric.fused_multiply_add(big, np.array([10.0]), np.array([-np.inf]), double)[0] == -np.inf
    assert numeric.fused_multiply_add(big, np.array([10.0]), tiny, double)[0] == np.inf
    assert np.isnan(numeric.fused_multiply_add(np.array([np.inf]), np.array([0.0]), tiny, double)[0])
    assert numeric.fused_multiply_add(big, np.array([10.0]), np.array([-1.5e308]), double)[0] == np.inf
    assert numeric.fused_multiply_add(big, np.array([1.5]), -big, double)[0] == 5e307


@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.parametrize("name", ["f32", "bf16", "f8e5m2", "f8e4m3"])
def test_nan_in_min_and_max(name, larger):
    element = SCALARS[name]
    x = numeric.cast(np.float32([np.nan, 1, np.nan, 1, -2]), SCALARS["f32"], element, "rtne")
    y = numeric.cast(np.float32([2, np.nan, np.nan, 3, 5]), SCALARS["f32"], element, "rtne")
    skip = numeric.cast(numeric.extremum(x, y, element, larger, False), element, SCALARS["f32"], "rtne")
    keep = numeric.cast(numeric.extremum(x, y, element, larger, True), element, SCALARS["f32"], "rtne")
    tail = [3, 5] if larger else [1, -2]
    np.testing.assert_array_equal(skip, [2, 1, np.nan, *tail])
    np.testing.assert_array_equal(keep, [np.nan] * 3 + tail)
