"""Arithmetic, comparison, selection and casts over types and odd sizes."""

import numpy as np
import pytest
import support
from support import ALL, FLOAT8, FLOATS, INTEGERS, Data, close, empty, full_range, sample, wrapped

import triton
import triton.language as tl


@triton.jit
def binary_kernel(x, y, z, N: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if OP == "+":
        c = a + b
    elif OP == "-":
        c = a - b
    elif OP == "*":
        c = a * b
    elif OP == "/":
        c = a / b
    elif OP == "//":
        c = a // b
    elif OP == "%":
        c = a % b
    elif OP == "&":
        c = a & b
    elif OP == "|":
        c = a | b
    elif OP == "^":
        c = a ^ b
    elif OP == "<<":
        c = a << b
    elif OP == ">>":
        c = a >> b
    elif OP == "min":
        c = tl.minimum(a, b)
    elif OP == "max":
        c = tl.maximum(a, b)
    elif OP == "==":
        c = a == b
    elif OP == "!=":
        c = a != b
    elif OP == "<":
        c = a < b
    elif OP == "<=":
        c = a <= b
    elif OP == ">":
        c = a > b
    elif OP == ">=":
        c = a >= b
    else:
        tl.static_assert(False, "unknown operator")
    tl.store(z + i, c)


INTEGER_MEANING = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: (abs(a) // abs(b)) * (-1 if (a < 0) != (b < 0) else 1),
    "%": lambda a, b: (abs(a) % abs(b)) * (-1 if a < 0 else 1),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", sorted(INTEGER_MEANING))
def test_integer_operators(launch, name, op):
    n = 127
    x, y, z = full_range(name, n, 1), full_range(name, n, 2), empty(name, n)
    y.raw[:20] = np.arange(20) - (10 if np.iinfo(name).min else 0)
    x.raw[-4:], y.raw[-4:] = np.iinfo(name).min, [1, 2, 3, np.iinfo(name).max]
    y.raw[y.raw == 0] = 3
    launch(binary_kernel, (1,), x, y, z, N=n, OP=op)
    expected = [INTEGER_MEANING[op](a, b) for a, b in zip(x.raw.tolist(), y.raw.tolist(), strict=True)]
    np.testing.assert_array_equal(z.raw, wrapped(expected, name))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", ["<<", ">>"])
def test_shifts(launch, name, op):
    n, bits = 100, np.iinfo(name).bits
    x, z = full_range(name, n), empty(name, n)
    y = Data(name, (np.arange(n) % bits).astype(name))
    launch(binary_kernel, (1,), x, y, z, N=n, OP=op)
    pairs = zip(x.raw.tolist(), y.raw.tolist(), strict=True)
    np.testing.assert_array_equal(z.raw, wrapped([a << b if op == "<<" else a >> b for a, b in pairs], name))


FLOAT_MEANING = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.fmin,
    "max": np.fmax,
    "%": np.fmod,
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", sorted(FLOAT_MEANING))
def test_float_operators(launch, name, op):
    n = 257
    x, y, z = sample(name, n, 1), sample(name, n, 2), empty(name, n)
    special = support.encode(np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 3e-5, -7.0]), name)
    x.raw[:64], y.raw[:64] = (v.reshape(-1) for v in np.meshgrid(special, special))
    launch(binary_kernel, (1,), x, y, z, N=n, OP=op)
    with np.errstate(all="ignore"):
        wide = FLOAT_MEANING[op](x.values.astype(np.float64), y.values.astype(np.float64))
        if name == "float64":
            wide = FLOAT_MEANING[op](x.values, y.values)
        expected = support.encode(wide, name)
    close(z, support.decode(expected, name), places=0 if op != "/" else 1)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, "int1"])
@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons(launch, name, op):
    n = 64
    x, y, z = sample(name, n, 1, -2, 2), sample(name, n, 2, -2, 2), empty("int1", n)
    x.raw[:8] = y.raw[:8]
    if name in FLOATS:
        x.raw[10], y.raw[11] = support.encode(np.nan, name), support.encode(np.nan, name)
        x.raw[12], y.raw[12] = support.encode(0.0, name), support.encode(-0.0, name)
    launch(binary_kernel, (1,), x, y, z, N=n, OP=op)
    operators = {
        "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    }  # fmt: skip
    np.testing.assert_array_equal(z.raw, operators[op](x.values, y.values))


PROMOTION = [
    ("int8", "int16", "int16"), ("int8", "uint8", "uint8"), ("int32", "uint32", "uint32"), ("int32", "int64", "int64"),
    ("uint8", "int16", "int16"), ("uint8", "int32", "int32"), ("uint16", "int16", "uint16"), ("int1", "int32", "int32"),
    ("int32", "float16", "float16"), ("int64", "float32", "float32"), ("float16", "float32", "float32"),
    ("bfloat16", "float32", "float32"), ("float16", "bfloat16", "float16"), ("float32", "float64", "float64"),
    ("int8", "bfloat16", "bfloat16"), ("float16", "float64", "float64"), ("uint64", "int64", "uint64"),
]  # fmt: skip


@triton.jit
def promotion_kernel(x, y, z, N: tl.constexpr, EXPECTED: tl.constexpr):
    i = tl.arange(0, N)
    c = tl.load(x + i) + tl.load(y + i)
    tl.static_assert(c.dtype == EXPECTED)
    tl.store(z + i, c)


@pytest.mark.parametrize("left, right, result", PROMOTION)
@pytest.mark.parametrize("swap", [False, True])
def test_promotion(launch, left, right, result, swap):
    if swap:
        left, right = right, left
    x, y, z = sample(left, 33, 1), sample(right, 33, 2), empty(result, 33)
    launch(promotion_kernel, (1,), x, y, z, N=33, EXPECTED=getattr(tl, result))
    if result in INTEGERS:
        expected = wrapped(x.values.astype(object) + y.values.astype(object), result)
        np.testing.assert_array_equal(z.raw, expected)
    else:
        a, b = (support.decode(support.encode(v.values.astype(np.float64), result), result) for v in (x, y))
        close(z, support.decode(support.encode(a.astype(np.float64) + b, result), result), places=0)


@triton.jit
def literal_kernel(x, z, N: tl.constexpr, KIND: tl.constexpr, SAME: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    if KIND == "int":
        c = 3 - a * 2 + 1
    else:
        c = 0.5 * a + 1.5
    if SAME:
        tl.static_assert(c.dtype == a.dtype)
    else:
        tl.static_assert(c.dtype == tl.float32)
    tl.store(z + i, c)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("kind", ["int", "float"])
def test_literals_take_the_tensors_type(launch, name, kind):
    same = kind == "int" or name in FLOATS
    x, z = sample(name, 17, 0, 0, 9), empty(name if same else "float32", 17)
    launch(literal_kernel, (1,), x, z, N=17, KIND=kind, SAME=same)
    if kind == "int" and name in INTEGERS:
        np.testing.assert_array_equal(z.raw, wrapped([3 - int(v) * 2 + 1 for v in x.raw], name))
    else:
        values = x.values.astype(np.float64)
        expected = 3 - values * 2 + 1 if kind == "int" else 0.5 * values + 1.5
        close(z, expected, places=2, scale=np.abs(values) * 2 + 4)


@triton.jit
def cast_kernel(x, z, N: tl.constexpr, TO: tl.constexpr, ROUNDING: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(z + i, a.to(TO, fp_downcast_rounding=ROUNDING))


def expected_cast(values, source, target):
    """What a cast gives, by NumPy and Python integers. ``values``: exact numbers of the source."""
    if target == "int1":
        return values != 0
    if target in INTEGERS:
        if source in INTEGERS or source == "int1":
            return wrapped(values.astype(object), target)
        info = np.iinfo(target)
        whole = [0 if v != v else min(max(v, -(2.0**70)), 2.0**70) for v in values.astype(np.float64).tolist()]
        return np.array([min(max(int(v), info.min), info.max) for v in whole], dtype=target)
    return support.encode(values.astype(np.float64), target)


NARROW = [n for n in ALL if support.storage(n).itemsize <= 2 and n != "int1"]


@pytest.mark.parametrize("source", NARROW)
def test_casts_from_every_narrow_value(launch, source):
    """All 256 or 65536 source values, to every type."""
    bits = 8 * support.storage(source).itemsize
    codes = np.arange(1 << bits).astype(f"uint{bits}").view(support.storage(source))
    x = Data(source, codes)
    n = 256
    for target in ALL:
        if target == source:
            continue
        z = empty(target, len(codes))
        launch(cast_kernel, (len(codes) // n,), x, z, N=n, TO=getattr(tl, target), ROUNDING=None)
        with np.errstate(all="ignore"):
            expected = Data(target, np.asarray(expected_cast(x.values, source, target)))
        if target in FLOATS or target in FLOAT8:
            close(z, expected.values, places=0)
            if target != "float8e4b15":
                numbers = ~np.isnan(expected.values)
                np.testing.assert_array_equal(np.signbit(z.values)[numbers], np.signbit(expected.values)[numbers])
        else:
            np.testing.assert_array_equal(z.raw, expected.raw, err_msg=target)


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_casts_from_wide_values(launch, source):
    rng = np.random.default_rng(0)
    if source in INTEGERS:
        raw = full_range(source, 500).raw >> rng.integers(0, np.iinfo(source).bits, 500).astype(source)
        halfway = np.array([(257 << 20) + d for d in (-1, 0, 1)] + [2**24 + 1, 2**24 + 3, 65519, 65520, 65521])
        ends = np.array([np.iinfo(source).min, np.iinfo(source).max], dtype=source)
        raw = np.concatenate([raw, halfway.astype(source), ends])
    else:
        wide = rng.standard_normal(600) * 10.0 ** rng.integers(-46, 40, 600)
        edges = [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            65519.9,
            65520.0,
            447.0,
            464.0,
            465.0,
            1 + 2.0**-9,
            1 + 2.0**-9 + 2.0**-30,
        ]
        bounds = [
            s * 2.0**e + d for s in (1, -1) for e in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)
        ]
        with np.errstate(all="ignore"):
            raw = np.concatenate([wide, edges, bounds]).astype(source)
    n = 37
    raw = np.resize(raw, -(-len(raw) // n) * n)
    x = Data(source, raw)
    for target in ALL:
        if target == source:
            continue
        z = empty(target, len(raw))
        launch(cast_kernel, (len(raw) // n,), x, z, N=n, TO=getattr(tl, target), ROUNDING=None)
        values = x.values
        if source in ("int64", "uint64") and target in (*FLOATS, *FLOAT8):
            if target == "float64" or target == "float32":
                expected = Data(target, raw.astype(target))
            else:  # NumPy would round twice; below 2^53 there is only one rounding
                small = np.abs(raw.astype(np.float64)) < 2.0**53
                expected = Data(target, np.where(small, support.encode(raw.astype(np.float64), target), z.raw))
        else:
            with np.errstate(all="ignore"):
                expected = Data(target, np.asarray(expected_cast(values, source, target)))
        if target in FLOATS or target in FLOAT8:
            close(z, expected.values, places=0)
        else:
            np.testing.assert_array_equal(z.raw, expected.raw, err_msg=target)


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float8e5"])
def test_rounding_toward_zero(launch, target):
    x = sample("float32", 600, 3, -300, 300)
    z = empty(target, 600)
    launch(cast_kernel, (6,), x, z, N=100, TO=getattr(tl, target), ROUNDING="rtz")
    got = z.values.astype(np.float64)
    assert (np.abs(got) <= np.abs(x.raw)).all()
    step = support.EPSILON[target] * 2.0 ** np.floor(np.log2(np.abs(x.raw)))
    assert (np.abs(x.raw) - np.abs(got) < step).all()


@triton.jit
def bitcast_kernel(x, z, N: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i).to(TO, bitcast=True))


@pytest.mark.parametrize(
    "source, target",
    [
        ("float32", "int32"),
        ("int32", "float32"),
        ("uint16", "bfloat16"),
        ("float64", "uint64"),
        ("int8", "uint8"),
        ("uint8", "float8e5"),
    ],
)
def test_bitcast(launch, source, target):
    x, z = sample(source, 31, 0, 0, 100), empty(target, 31)
    launch(bitcast_kernel, (1,), x, z, N=31, TO=getattr(tl, target))
    np.testing.assert_array_equal(z.raw, x.raw.view(support.storage(target)))


@triton.jit
def where_kernel(c, x, y, z, w, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    cond = tl.load(c + i * N + j)
    a = tl.load(x + i)
    b = tl.load(y + j)
    tl.store(z + i * N + j, tl.where(cond, a, b))
    tl.store(w + i * N + j, tl.where(i > j, 1.0, 0.0) + tl.where(cond != 0, a, 7))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("m, n", [(1, 1), (3, 5), (7, 33), (16, 100)])
def test_where_broadcasts(launch, name, m, n):
    c, x, y = sample("int1", (m, n)), sample(name, m, 1, 0, 50), sample(name, n, 2, 0, 50)
    z, w = empty(name, (m, n)), empty("float32", (m, n))
    launch(where_kernel, (1,), c, x, y, z, w, M=m, N=n)
    expected = np.where(c.raw, x.values[:, None], y.values[None, :])
    np.testing.assert_array_equal(z.values, expected)
    triangle = (np.arange(m)[:, None] > np.arange(n)[None, :]).astype(np.float32)
    np.testing.assert_allclose(w.raw, triangle + np.where(c.raw, x.values[:, None], 7), rtol=1e-2)


@triton.jit
def unary_kernel(x, z, N: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    if OP == "neg":
        c = -a
    elif OP == "not":
        c = ~a
    elif OP == "abs":
        c = tl.abs(a)
    elif OP == "pos":
        c = +a
    else:
        c = not a
    tl.store(z + i, c)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("op", ["neg", "not", "abs", "pos"])
def test_unary(launch, name, op):
    if op == "not" and name in FLOATS:
        pytest.skip("no bitwise complement of floats")
    x, z = (full_range(name, 65) if name in INTEGERS else sample(name, 65)), empty(name, 65)
    if name in INTEGERS:
        x.raw[0] = np.iinfo(name).min
    launch(unary_kernel, (1,), x, z, N=65, OP=op)
    if name in INTEGERS:
        meaning = {"neg": lambda v: -v, "not": lambda v: ~v, "abs": abs, "pos": lambda v: v}[op]
        np.testing.assert_array_equal(z.raw, wrapped([meaning(int(v)) for v in x.raw], name))
    else:
        meaning = {"neg": np.negative, "abs": np.abs, "pos": np.positive}[op]
        np.testing.assert_array_equal(z.values, meaning(x.values))


@triton.jit
def scalar_argument_kernel(x, z, a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(z + i, v * a + b - tl.where(c, 1, 2))


@pytest.mark.parametrize(
    "a, b, c", [(1, 1, True), (2, 0.5, False), (-3, 1e-3, True), (2**31, 16, False), (0, -0.0, True)]
)
def test_scalar_arguments(launch, a, b, c):
    x, z = sample("float32", 12), empty("float32", 12)
    launch(scalar_argument_kernel, (1,), x, z, a, b, c, N=12)
    with np.errstate(over="ignore"):
        expected = x.raw.astype(np.float64) * a + b - (1 if c else 2)
    close(z, expected, places=2, scale=np.abs(x.raw * float(a)) + abs(b) + 2)


@triton.jit
def clamp_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(z + i, tl.clamp(v, -1.0, 2.0))


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_clamp(launch, name):
    x, z = sample(name, 40), empty(name, 40)
    launch(clamp_kernel, (1,), x, z, N=40)
    np.testing.assert_array_equal(z.values, np.clip(x.values, -1, 2))


@triton.jit
def inplace_kernel(x, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    m = i < n
    v = tl.load(x + i, mask=m)
    v += 1
    v *= 2
    v -= 3
    tl.store(x + i, v, mask=m)


@pytest.mark.parametrize("n", [1, 5, 100, 127, 1000])
def test_in_place_over_a_grid(launch, n):
    x = sample("float32", n + 8)
    before = x.raw.copy()
    launch(inplace_kernel, (triton.cdiv(n, 33),), x, n, N=33)
    np.testing.assert_allclose(x.raw[:n], (before[:n] + 1) * 2 - 3, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x.raw[n:], before[n:])


@triton.jit
def by_zero_kernel(z, N: tl.constexpr, LOW: tl.constexpr, TYPE: tl.constexpr):
    i = tl.arange(0, N)
    x, y = (i + LOW).to(TYPE), tl.zeros((N,), TYPE)
    tl.store(z + i, x // y)
    tl.store(z + N + i, x % y)
    tl.store(z + 2 * N + i, x // tl.full((N,), 1, TYPE))


@pytest.mark.parametrize("low", [-5, 0, 3])
@pytest.mark.parametrize("name", ["int32", "int64", "uint32", "int16"])
def test_a_divisor_known_to_be_zero_counts_as_one(launch, low, name):
    if name == "uint32" and low < 0:
        pytest.skip("has no negative numbers")
    z = empty(name, (3, 16))
    launch(by_zero_kernel, (1,), z, N=16, LOW=low, TYPE=getattr(tl, name))
    x = np.arange(low, low + 16)
    np.testing.assert_array_equal(z.raw, [x, 0 * x, x])
