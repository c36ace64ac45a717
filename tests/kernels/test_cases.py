"""Small cases taken from real bug reports; each test's name ends with the case's number.

Cases about launching, caching and tuning are in ``tests/runtime``.
"""

import math
import sys

import numpy as np
import pytest
import support
from support import FLOAT8_VALUES, Data, close, empty, full_range, sample, wrapped

import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

# A. Reductions, scans, sort, histogram ------------------------------------------------------------------------------


@triton.jit
def sum_twice_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + i[None, :])
    s = tl.sum(tl.sum(a, axis=1), axis=0)
    tl.store(z + i, s + tl.zeros((N,), tl.float32))


def test_two_sums_in_a_row_A1(launch):
    x, z = np.full((128, 128), 1 / 128, np.float32), empty("float32", 128)
    launch(sum_twice_kernel, (1,), x, z, N=128)
    assert (z.raw == 128.0).all()


@triton.jit
def three_ways_kernel(z, N: tl.constexpr):
    i = tl.arange(0, N)
    a = i[:, None] * N + i[None, :]
    tl.store(z, tl.sum(tl.sum(a, axis=0), axis=0))
    tl.store(z + 1, tl.sum(tl.sum(a, axis=1), axis=0))
    tl.store(z + 2, tl.sum(a))


@pytest.mark.parametrize("n", [4, 8])
def test_three_ways_to_sum_a_tile_A2(launch, n):
    z = empty("int32", 3)
    launch(three_ways_kernel, (1,), z, N=n)
    assert z.raw.tolist() == [sum(range(n * n))] * 3


@triton.jit
def window_kernel(x, z, height, width, H: tl.constexpr, W: tl.constexpr, K: tl.constexpr):
    h, w = tl.arange(0, H)[:, None, None, None], tl.arange(0, W)[None, :, None, None]
    a, b = tl.arange(0, K)[None, None, :, None], tl.arange(0, K)[None, None, None, :]
    row, column = h + a, w + b
    v = tl.load(x + row * width + column, mask=(row < height) & (column < width), other=0.0)
    s = tl.sum(tl.sum(v, axis=2), axis=2)
    tl.store(z + tl.arange(0, H)[:, None] * W + tl.arange(0, W)[None, :], s)


def test_sliding_window_sums_A4(launch):
    x, z = sample("float32", (6, 9)), empty("float32", (4, 8))
    launch(window_kernel, (1,), x, z, 6, 9, H=4, W=8, K=4)
    padded = np.zeros((8, 12))
    padded[:6, :9] = x.raw
    expected = [[padded[i : i + 4, j : j + 4].sum() for j in range(8)] for i in range(4)]
    np.testing.assert_allclose(z.raw, expected, rtol=1e-5, atol=1e-4)


@triton.jit
def counting_kernel(z, n, W: tl.constexpr):
    i = tl.arange(0, W)[None, :]
    for k in range(0, n):
        ones = tl.where(i < W, 1, 0)
        c = tl.cumsum(ones, axis=1)
        tl.store(z + k * W + i, c.to(tl.int64))


@pytest.mark.parametrize("width", [8, 32])
def test_cumsum_in_a_loop_of_one_trip_A6(launch, width):
    z = empty("int64", width)
    launch(counting_kernel, (1,), z, 1, W=width)
    assert z.raw.tolist() == list(range(1, width + 1))


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def recurrence_kernel(a, b, z, N: tl.constexpr):
    i = tl.arange(0, N)
    _, r = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, recurrence)
    tl.store(z + i, r)


@pytest.mark.parametrize("n", [64, 17])
def test_first_order_recurrence_A7(launch, n):
    a, b, z = sample("float32", n, 1, 0.5, 1.1), sample("float32", n, 2), empty("float32", n)
    launch(recurrence_kernel, (1,), a, b, z, N=n)
    h, expected = 0.0, []
    for p, q in zip(a.raw.astype(float), b.raw.astype(float), strict=True):
        h = p * h + q
        expected.append(h)
    np.testing.assert_allclose(z.raw, expected, rtol=1e-4, atol=1e-4)


@triton.jit
def reverse_cumsum_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.cumsum(tl.load(x + i), axis=0, reverse=True))


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
def test_reverse_cumsum_does_not_subtract_A9(launch, warps):
    x, z = np.concatenate([np.full(32, 1e8), np.ones(32)]).astype(np.float32), empty("float32", 64)
    launch(reverse_cumsum_kernel, (1,), x, z, N=64, num_warps=warps)
    np.testing.assert_array_equal(z.raw[32:], np.arange(32, 0, -1))


@triton.jit
def small_integer_kernel(x, total, running, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    s = tl.sum(a, 0)
    c = tl.cumsum(a, 0)
    tl.static_assert(s.dtype == tl.int32)
    tl.static_assert(c.dtype == tl.int32)
    tl.store(total, s)
    tl.store(running + tl.arange(0, N), c)


@pytest.mark.parametrize("name", ["int1", "int8"])
def test_sums_of_small_integers_are_32_bits_wide_A11(launch, name):
    x, total, running = Data(name, np.ones(300, support.storage(name))), empty("int32", 1), empty("int32", 300)
    launch(small_integer_kernel, (1,), x, total, running, N=300)
    assert total.raw[0] == 300
    np.testing.assert_array_equal(running.raw, np.arange(1, 301))


@triton.jit
def boolean_sum_kernel(z, flag, N: tl.constexpr):
    ones = tl.full((32, 32), 1, tl.int1)
    tl.store(z, tl.sum(tl.sum(ones.to(tl.int32), 1), 0))
    tl.store(z + 1, tl.sum(tl.sum(ones, 1), 0))
    tl.store(flag, tl.sum(tl.full((N,), True, tl.int1), 0))


@pytest.mark.parametrize("n", [256, 512, 257])
def test_sum_of_booleans_A12(launch, n):
    z, flag = empty("int32", 2), np.zeros(1, bool)
    launch(boolean_sum_kernel, (1,), z, flag, N=n)
    assert z.raw.tolist() == [1024, 1024]
    assert flag.view(np.uint8)[0] == 1


@triton.jit
def nan_kernel(x, value, index, N: tl.constexpr, LEFT: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.store(value, tl.max(a, 0))
    tl.store(value + 1, tl.min(a, 0))
    tl.store(index, tl.argmax(a, 0, tie_break_left=LEFT))
    tl.store(index + 1, tl.argmin(a, 0, tie_break_left=LEFT))


NAN_CASES = [
    [np.nan, 6, 8, 4],
    [4, 6, 8, np.nan],
    [np.inf, np.nan],
    [np.nan] * 4,
    [-np.inf, np.nan],
    [np.nan, 1, 1, np.nan],
]


@pytest.mark.parametrize("numbers", NAN_CASES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("warps", [1, 4])
def test_nan_in_argmax_A14(launch, numbers, left, warps):
    x, value, index = np.array(numbers, np.float32), empty("float32", 2), empty("int32", 2)
    launch(nan_kernel, (1,), x, value, index, N=len(numbers), LEFT=left, num_warps=warps)
    if np.isnan(x).all():
        assert np.isnan(value.raw).all() and (index.raw >= 0).all() and (index.raw < len(x)).all()
        return
    assert value.raw.tolist() == [np.nanmax(x), np.nanmin(x)]
    assert x[index.raw[0]] == np.nanmax(x) and x[index.raw[1]] == np.nanmin(x)
    if left:
        assert index.raw.tolist() == [np.nanargmax(x), np.nanargmin(x)]


@triton.jit
def topk_kernel(x, z, K: tl.constexpr, LARGEST: tl.constexpr):
    a = tl.load(x + tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :])
    r = tl.topk(a, K, descending=LARGEST)
    tl.static_assert(r.shape[0] == 4 and r.shape[1] == K)
    tl.store(z + tl.arange(0, 4)[:, None] * K + tl.arange(0, K)[None, :], r)


@pytest.mark.parametrize("name", ["int32", "float16", "float32", "bfloat16"])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_A16(launch, name, k, largest):
    x, z = sample(name, (4, 32)), empty(name, (4, k))
    launch(topk_kernel, (1,), x, z, K=k, LARGEST=largest)
    ordered = np.sort(x.values, axis=1)
    np.testing.assert_array_equal(z.values, ordered[:, ::-1][:, :k] if largest else ordered[:, :k])


@triton.jit
def sort_kernel(x, z, M: tl.constexpr, N: tl.constexpr, DOWN: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + i, tl.sort(tl.load(x + i), dim=1, descending=DOWN))


@pytest.mark.parametrize("name", ["int32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 64), (1, 512)])
@pytest.mark.parametrize("down", [False, True])
def test_sort_with_eight_warps_A17(launch, name, shape, down):
    x, z = sample(name, shape), empty(name, shape)
    launch(sort_kernel, (1,), x, z, M=shape[0], N=shape[1], DOWN=down, num_warps=8)
    ordered = np.sort(x.values, axis=1)
    np.testing.assert_array_equal(z.values, ordered[:, ::-1] if down else ordered)


@triton.jit
def nearest_kernel(x, c, counts, N: tl.constexpr, K: tl.constexpr, D: tl.constexpr):
    n, k, d = tl.arange(0, N), tl.arange(0, K), tl.arange(0, D)
    a = tl.load(x + n[:, None] * D + d[None, :])
    b = tl.load(c + k[None, :] * D + d[:, None])
    best = tl.argmin(tl.dot(a, b), axis=1)
    h = tl.histogram(best, K)
    tl.store(counts + k, tl.load(counts + k) + h)


def test_histogram_of_argmin_of_dot_A19(launch):
    x, c = sample("float32", (32, 16), 1), sample("float32", (16, 16), 2)
    counts = np.arange(16, dtype=np.int32)
    launch(nearest_kernel, (1,), x, c, counts, N=32, K=16, D=16)
    best = (x.raw.astype(np.float64) @ c.raw.T).argmin(1)
    added = counts - np.arange(16)
    np.testing.assert_array_equal(added, np.bincount(best, minlength=16))
    assert added.sum() == 32


# B. Integer and floating semantics ----------------------------------------------------------------------------------


@triton.jit
def division_kernel(x, y, q, r, N: tl.constexpr, QUOTIENT: tl.constexpr, REMAINDER: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    if QUOTIENT:
        tl.store(q + i, a // b)
    if REMAINDER:
        tl.store(r + i, a % b)


@pytest.mark.parametrize("quotient, remainder", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("name", ["int32", "uint8", "int64", "int16"])
def test_division_by_zero_does_not_trap_B2(launch, quotient, remainder, name):
    x, y, q, r = full_range(name, 64, 1), sample(name, 64, 2, -3, 3), empty(name, 64), empty(name, 64)
    x.raw[:8] = np.iinfo(name).min
    if np.iinfo(name).min:
        y.raw[:4] = -1
    y.raw[4:12] = 0
    launch(division_kernel, (1,), x, y, q, r, N=64, QUOTIENT=quotient, REMAINDER=remainder)
    good = y.raw != 0
    pairs = [(int(a), int(b)) for a, b in zip(x.raw[good], y.raw[good], strict=True)]
    quotients = [abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1) for a, b in pairs]
    if quotient:
        np.testing.assert_array_equal(q.raw[good], wrapped(quotients, name))
    if remainder:
        rest = [a - d * b for (a, b), d in zip(pairs, quotients, strict=True)]
        np.testing.assert_array_equal(r.raw[good], wrapped(rest, name))


@triton.jit
def negative_offsets_kernel(x, q, z, N: tl.constexpr):
    i = tl.arange(0, N)
    off = (i - 64) // 32
    tl.store(q + i, off)
    tl.store(z + i, tl.load(x + 2 + off))


@pytest.mark.parametrize("n", [8, 128])
def test_quotients_of_negative_offsets_truncate_B3(launch, n):
    x, q, z = sample("float32", 8), empty("int32", n), empty("float32", n)
    launch(negative_offsets_kernel, (1,), x, q, z, N=n)
    expected = np.trunc((np.arange(n) - 64) / 32).astype(int)
    assert n != 8 or expected.tolist() == [-2, -1, -1, -1, -1, -1, -1, -1]
    np.testing.assert_array_equal(q.raw, expected)
    np.testing.assert_array_equal(z.raw, x.raw[2 + expected])


@triton.jit
def unsigned_literal_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.static_assert((a % 2).dtype == tl.uint32)
    tl.static_assert((a // 3).dtype == tl.uint32)
    tl.static_assert((a + 1).dtype == tl.uint32)
    tl.store(z + i, a % 2)
    tl.store(z + N + i, a // 3)
    tl.store(z + 2 * N + i, a + 1)


def test_literals_take_an_unsigned_type_B7(launch):
    x, z = full_range("uint32", 32), empty("uint32", (3, 32))
    x.raw[0] = 2**32 - 1
    launch(unsigned_literal_kernel, (1,), x, z, N=32)
    np.testing.assert_array_equal(z.raw, [x.raw % 2, x.raw // 3, x.raw + np.uint32(1)])


@triton.jit
def shift_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i) >> 5)


@pytest.mark.parametrize("name", support.INTEGERS)
def test_right_shift_follows_the_sign_B8(launch, name):
    x, z = full_range(name, 16), empty(name, 16)
    x.raw[:2] = [np.iinfo(name).min or np.iinfo(name).max, np.iinfo(name).max]
    launch(shift_kernel, (1,), x, z, N=16)
    np.testing.assert_array_equal(z.raw, x.raw >> 5)


@triton.jit
def large_literal_kernel(x, z, N: tl.constexpr, FULL: tl.constexpr):
    i = tl.arange(0, N)
    if FULL:
        tl.store(z + i, tl.full((N,), 300, tl.int8))
    else:
        tl.store(z + i, tl.load(x + i) + 300)


@pytest.mark.parametrize("full", [False, True])
def test_literal_that_does_not_fit_is_refused_B10(launch, full):
    x, z = sample("int8", 4), empty("int8", 4)
    with pytest.raises(CompilationError, match=r"(?s)300.*int8"):
        launch(large_literal_kernel, (1,), x, z, N=4, FULL=full)


@triton.jit
def annotated_half(z, v: tl.float16):
    tl.store(z, v)


@triton.jit
def annotated_brain(z, v: tl.bfloat16):
    tl.store(z, v)


@triton.jit
def annotated_double(z, v: tl.float64):
    tl.store(z, v)


@triton.jit
def annotated_byte(z, v: tl.int8):
    tl.store(z, v)


@pytest.mark.parametrize(
    "kernel, name",
    [
        (annotated_half, "float16"),
        (annotated_brain, "bfloat16"),
        (annotated_double, "float64"),
        (annotated_byte, "int8"),
    ],
)
def test_annotated_scalar_parameter_B12(launch, kernel, name):
    for given in (42, 42.0):
        z = empty(name, 1)
        launch(kernel, (1,), z, given)
        assert z.values[0] == 42


@triton.jit
def compare_booleans_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(z + i, a < b)
    tl.store(z + N + i, a <= b)
    tl.store(z + 2 * N + i, a > b)
    tl.store(z + 3 * N + i, a >= b)


def test_booleans_compare_as_zero_and_one_B13(launch):
    x, y = np.array([True, False, True, False]), np.array([False, True, True, False])
    z = empty("int1", (4, 4))
    launch(compare_booleans_kernel, (1,), x, y, z, N=4)
    np.testing.assert_array_equal(z.raw, [x < y, x <= y, x > y, x >= y])


@triton.jit
def float8_kernel(x, z, N: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i).to(TO))


@pytest.mark.parametrize("source", ["float8e5", "float8e4nv"])
@pytest.mark.parametrize("target", ["bfloat16", "float16", "float32"])
def test_every_float8_code_B15(launch, source, target):
    x, z = Data(source, np.arange(256, dtype=np.uint8)), empty(target, 256)
    launch(float8_kernel, (1,), x, z, N=256, TO=getattr(tl, target))
    np.testing.assert_array_equal(z.values, FLOAT8_VALUES[source].astype(np.float32))


@triton.jit
def exp2_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.exp2(tl.load(x + i)))


def test_exp2_keeps_denormals_B18(launch):
    x, z = np.array([-126, -127, -149, -150, -151, 0], np.float32), empty("float32", 6)
    launch(exp2_kernel, (1,), x, z, N=6)
    assert z.raw.tolist()[:3] == [2.0**-126, 2.0**-127, 2.0**-149]
    assert z.raw.tolist()[3:] == [0, 0, 1]


@triton.jit
def pow_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.extra.libdevice.pow(tl.load(x + i), tl.load(y + i)))


@pytest.mark.parametrize(
    "base, exponent", [("float32", "int32"), ("float32", "float32"), ("float64", "int32"), ("float32", "float64")]
)
def test_pow_promotes_B20(launch, base, exponent):
    result = "float64" if "float64" in (base, exponent) else "float32"
    x, y, z = sample(base, 40, 1, 0.1, 4), sample(exponent, 40, 2, -9, 9), empty(result, 40)
    x.raw[0], y.raw[0] = 0.9, 100
    launch(pow_kernel, (1,), x, y, z, N=40)
    close(z, np.power(x.raw.astype(np.float64), y.raw.astype(np.float64)), places=2)


@triton.jit
def random_kernel(z, u, seed, low, N: tl.constexpr):
    i = low + tl.arange(0, N).to(tl.int64)
    tl.store(z + tl.arange(0, N), tl.randint(seed, i))
    tl.store(u + tl.arange(0, N), tl.rand(seed, i))


def test_random_numbers_of_64_bit_offsets_B22(launch):
    n, seen = 16, []
    for seed in (0, 1, 2**31 - 1, 123456789):
        for low in (0, 2**32, 2**32 + 5, 2**40):
            z, u = empty("int32", n), empty("float32", n)
            launch(random_kernel, (1,), z, u, seed, low, N=n)
            assert (u.raw >= 0).all() and (u.raw < 1).all()
            seen.append((seed, low, z.raw.copy()))
    again = empty("int32", n)
    launch(random_kernel, (1,), again, empty("float32", n), 0, 2**32, N=n)
    np.testing.assert_array_equal(again.raw, next(v for s, o, v in seen if (s, o) == (0, 2**32)))
    np.testing.assert_array_equal(
        next(v for s, o, v in seen if (s, o) == (1, 2**32))[5:],
        next(v for s, o, v in seen if (s, o) == (1, 2**32 + 5))[:-5],
    )


@triton.jit
def uniform_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.uint_to_uniform_float(tl.load(x + i)))


def test_uniform_of_extreme_integers_B22(launch):
    x = np.array([-(2**31), 2**31 - 1, -1, 0, 1, -(2**31) + 1], np.int32)
    z = empty("float32", 6)
    launch(uniform_kernel, (1,), x, z, N=6)
    assert (z.raw >= 0).all() and (z.raw < 1).all()


# C. Memory ----------------------------------------------------------------------------------------------------------


@triton.jit
def masked_sum_kernel(x, z, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


def test_masked_lanes_count_zero_C1(launch):
    x, z = sample("float32", 256), empty("float32", 1)
    launch(masked_sum_kernel, (1,), x, z, 16, N=256)
    np.testing.assert_allclose(z.raw[0], x.raw[:16].sum(), rtol=1e-5)


@triton.jit
def three_masks_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i, mask=i < 10)
    b = tl.load(x + N + i, mask=(i >= 10) & (i < 20))
    c = tl.load(x + 2 * N + i, mask=i >= 20)
    tl.store(z + i, tl.where(i < 10, a, tl.where(i < 20, b, c)))


def test_three_masked_loads_select_no_garbage_C3(launch):
    x, z = sample("float16", (3, 32)), empty("float16", 32)
    launch(three_masks_kernel, (1,), x, z, N=32)
    part = np.digitize(np.arange(32), [10, 20])
    np.testing.assert_array_equal(z.raw, x.raw[part, np.arange(32)])


@triton.jit
def atomic_extremes_kernel(x, high, low, old, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.atomic_max(high + 0 * i, v)
    tl.atomic_min(low + 0 * i, v)
    tl.store(old, tl.atomic_max(high + 1, 5.0))
    tl.store(old + 1, tl.atomic_min(low + 1, -5.0))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_atomic_extremes_of_floats_C5_C6(launch, name):
    lowest = np.finfo(name).min
    for numbers in (
        [-0.0, lowest, -3.0, -1e-30],
        [-0.0, -0.0, -1.0, -1.0],
        [3.0, -7.0, 3.0, -0.0],
        [lowest, 0.0, -0.0, 1e30],
    ):
        x = np.array(numbers, name)
        high, low, old = np.array([lowest, 2.0], name), np.array([-lowest, -2.0], name), np.zeros(2, name)
        launch(atomic_extremes_kernel, (1,), x, high, low, old, N=4)
        assert high[0] == x.max() and low[0] == x.min()
        assert old.tolist() == [2.0, -2.0] and high[1] == 5 and low[1] == -5


@triton.jit
def atomic_add_old_kernel(cell, old, value):
    r = tl.atomic_add(cell, tl.load(value))
    tl.static_assert(r.dtype == cell.dtype.element_ty)
    tl.store(old, r)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_atomic_add_gives_the_old_value_C6(launch, dtype):
    cell, old, value = np.array([2**62 + 5], dtype), np.zeros(1, dtype), np.array([2**61 + 1], dtype)
    launch(atomic_add_old_kernel, (1,), cell, old, value)
    assert old[0] == 2**62 + 5 and cell[0] == 2**62 + 2**61 + 6


@triton.jit
def count_kernel(cells, N: tl.constexpr):
    tl.atomic_add(cells + tl.arange(0, N), 1)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_fewer_elements_than_threads_C8(launch, warps):
    cells = np.zeros(40, np.int32)
    launch(count_kernel, (1,), cells, N=32, num_warps=warps)
    assert cells.tolist() == [1] * 32 + [0] * 8


@triton.jit
def back_and_forth_kernel(x, z, n, N: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (N,), (0,))
    p = tl.advance(p, (-3,))
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(p, boundary_check=(0,), padding_option="zero"))
    p = tl.advance(p, (3,))
    tl.store(z + N + i, tl.load(p, boundary_check=(0,), padding_option="zero"))


def test_block_pointer_before_the_start_C10(launch):
    x, z = sample("float32", 16, 0, 1, 9), empty("float32", (2, 8))
    launch(back_and_forth_kernel, (1,), x.raw, z, 16, N=8)
    np.testing.assert_array_equal(z.raw, [[0, 0, 0, *x.raw[:5]], x.raw[:8]])


@triton.jit
def one_axis_kernel(x, z, rows, columns, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    p = tl.make_block_ptr(x, (rows, columns), (columns, 1), (1, 2), (M, N), ORDER)
    a = tl.load(p, boundary_check=(1,), padding_option="zero")
    tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], a)


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_only_the_named_axis_is_checked_C11(launch, order):
    x, z = sample("float32", (6, 5)), empty("float32", (4, 8))
    launch(one_axis_kernel, (1,), x, z, 2, 5, M=4, N=8, ORDER=order)  # rows 2.. exist although the shape says 2
    expected = np.zeros((4, 8), np.float32)
    expected[:, :3] = x.raw[1:5, 2:5]
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def described_kernel(x, z, rows, columns, stride, M: tl.constexpr, N: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[stride, 1], block_shape=[M, N])
    a = d.load([1, 0])
    tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], a)


def test_descriptor_strides_C13(launch):
    x, z = sample("float32", (5, 8)), empty("float32", (4, 8))
    launch(described_kernel, (1,), x, z, 5, 6, 8, M=4, N=8)
    expected = np.zeros((4, 8), np.float32)
    expected[:, :6] = x.raw[1:, :6]
    np.testing.assert_array_equal(z.raw, expected)


@pytest.mark.parametrize("stride", [3, 5, 9])
def test_run_time_stride_that_is_no_multiple_of_16_bytes_C13(launch, stride, backend):
    if backend not in ("interpreter", "cpu"):
        pytest.skip("a failed assertion ends the CUDA context")
    x, z = sample("float32", (8, 8)), empty("float32", (4, 8))
    with pytest.raises(Exception, match=r"strides\[0\]: must be a multiple of 16 bytes"):
        launch(described_kernel, (1,), x, z, 5, 3, stride, M=4, N=8)


@triton.jit
def constant_stride_kernel(x, z, STRIDE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[M, N], strides=[STRIDE, 1], block_shape=[M, N])
    tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], d.load([0, 0]))


def test_descriptor_stride_that_is_no_multiple_of_16_bytes_C13(launch):
    x, z = sample("float32", (4, 8)), empty("float32", (4, 8))
    launch(constant_stride_kernel, (1,), x, z, STRIDE=8, M=4, N=8)
    np.testing.assert_array_equal(z.raw, x.raw)
    with pytest.raises(Exception, match="16 bytes"):
        launch(constant_stride_kernel, (1,), x, z, STRIDE=3, M=4, N=4)


@triton.jit
def large_stride_kernel(z, batch, stride):
    tl.store(z, batch.to(tl.int64) * stride)
    tl.store(z + 1, (batch * stride).to(tl.int64))


def test_offsets_beyond_32_bits_C15(launch):
    z = empty("int64", 2)
    launch(large_stride_kernel, (1,), z, 319, 7_864_320)
    assert z.raw.tolist() == [2_508_718_080, -1_786_249_216]


@triton.jit
def load_then_store_kernel(x, z, N: tl.constexpr):
    start = tl.program_id(0) * N
    i = start + tl.arange(0, N)
    a = tl.load(x + start + 0 * i)
    tl.store(x + i, a + 1)
    tl.store(z + i, a)


def test_loaded_value_is_the_old_one_C16(launch):
    x, z = sample("float32", (20, 64)), empty("float32", (20, 64))
    first = x.raw[:, :1].copy()
    launch(load_then_store_kernel, (20,), x, z, N=64)
    assert (z.raw == first).all() and (x.raw == first + 1).all()


@triton.jit
def relay_kernel(x, scratch, z, steps, N: tl.constexpr):
    pid = tl.program_id(0)
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for k in range(steps):
        at = (pid * steps + k) * N * N
        a = tl.load(x + at + i * N + j)
        tl.store(scratch + at + i * N + j, tl.where(a > 0, a, 0))
    tl.debug_barrier()
    for k in range(steps):
        at = (pid * steps + k) * N * N
        tl.store(z + at + i * N + j, tl.load(scratch + at + j * N + i))


@pytest.mark.parametrize("warps", [4, 8])
def test_second_loop_sees_the_first_loops_stores_C16(launch, warps):
    x, z = sample("float32", (12, 3, 17, 17)), empty("float32", (12, 3, 17, 17))
    scratch = np.full(x.raw.shape, np.nan, np.float32)
    launch(relay_kernel, (12,), x, scratch, z, 3, N=17, num_warps=warps)
    np.testing.assert_array_equal(z.raw, np.maximum(x.raw, 0).swapaxes(2, 3))


# D. dot and loops ---------------------------------------------------------------------------------------------------


@triton.jit
def a_bt_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, K, BK, num_stages=3):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        acc += tl.dot(x, tl.trans(y))
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def test_transposed_operand_D2(launch):
    a, b, c = sample("float32", (100, 50), 1), sample("float32", (70, 50), 2), empty("float32", (100, 70))
    launch(a_bt_kernel, (4, 3), a, b, c, 100, 70, 50, BM=32, BN=32, BK=16, num_stages=3, num_warps=8)
    places = 8 * support.dot_loss(launch, "float32")
    close(c, a.raw.astype(np.float64) @ b.raw.T, places=places, scale=np.abs(a.raw) @ np.abs(b.raw.T))


@triton.jit
def small_dot_kernel(a, b, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    r = tl.dot(tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :]))
    tl.store(z + m[:, None] * N + n[None, :], r)


@pytest.mark.parametrize("m", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("k", [1, 2, 4, 8, 16])
def test_small_dots_D3(launch, m, n, k):
    a, b, z = sample("float16", (m, k), 1), sample("float16", (k, n), 2), empty("float32", (m, n))
    a.raw[:, k // 2 :], b.raw[:, n // 2 :] = (0, 0) if k > 1 and n > 1 else (a.raw[:, k // 2 :], b.raw[:, n // 2 :])
    launch(small_dot_kernel, (1,), a, b, z, M=m, N=n, K=k)
    x, y = a.raw.astype(np.float64), b.raw.astype(np.float64)
    close(z, x @ y, places=4, scale=np.abs(x) @ np.abs(y))
    if k > 1 and n > 1:
        assert (z.raw[:, n // 2 :] == 0).all()


@pytest.mark.parametrize("k", [2, 16, 18, 30])
def test_integer_dot_is_exact_D5(launch, k):
    a, b, z = full_range("int8", (8, k), 1), full_range("int8", (k, 8), 2), empty("int32", (8, 8))
    if k == 2:
        a.raw[0], b.raw[:, 0] = [10, 20], [10, 20]
    launch(small_dot_kernel, (1,), a, b, z, M=8, N=8, K=k)
    np.testing.assert_array_equal(z.raw, a.raw.astype(np.int32) @ b.raw.astype(np.int32))
    assert k != 2 or z.raw[0, 0] == 500


@triton.jit
def sum_and_dot_kernel(x, y, s, z, n, B: tl.constexpr, FIRST: tl.constexpr, STAGES: tl.constexpr):
    r, k = tl.arange(0, B), tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, B), tl.float32)
    for start in tl.range(0, n, B, num_stages=STAGES):
        m = start + k < n
        a = tl.load(x + r[:, None] * n + start + k[None, :], mask=m[None, :], other=0.0)
        b = tl.load(y + (start + k)[:, None] * B + r[None, :], mask=m[:, None], other=0.0)
        if FIRST:
            total += tl.sum(a, 1)
            acc = tl.dot(a, b, acc)
        else:
            acc = tl.dot(a, b, acc)
            total += tl.sum(a, 1)
    tl.store(s + r, total)
    tl.store(z + r[:, None] * B + r[None, :], acc)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_statement_order_does_not_matter_D7(launch, stages):
    n, b = 5000, 16
    x, y = sample("float32", (b, n), 1), sample("float32", (n, b), 2)
    results = []
    for first in (True, False):
        s, z = empty("float32", b), empty("float32", (b, b))
        launch(sum_and_dot_kernel, (1,), x, y, s, z, n, B=b, FIRST=first, STAGES=stages)
        results.append((s.raw, z.raw))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][0], x.raw.astype(np.float64).sum(1), rtol=1e-4, atol=1e-2)


@triton.jit
def store_and_load_kernel(x, z, d, N: tl.constexpr):
    i = tl.arange(0, N)
    for a in tl.range(0, 4):
        for b in tl.range(0, 2, flatten=True, loop_unroll_factor=2, num_stages=2):
            at = (a * 2 + b) * N
            v = tl.load(x + at + i)
            tl.store(z + at + i, v)
            tl.store(d + at + i, tl.load(z + at + i) - v)


def test_store_then_load_in_an_unrolled_loop_D8(launch):
    x, z, d = sample("float32", (8, 32)), empty("float32", (8, 32)), empty("float32", (8, 32))
    launch(store_and_load_kernel, (1,), x, z, d, N=32)
    assert (d.raw == 0).all()
    np.testing.assert_array_equal(z.raw, x.raw)


@triton.jit
def step_kernel(x, z, start, stop, step):
    total = 0
    for i in tl.range(start, stop, step):
        total += tl.load(x + i)
    tl.store(z, total)


def test_negative_run_time_step_D10(launch):
    x, z = np.arange(1, 90, dtype=np.int32), empty("int32", 1)
    launch(step_kernel, (1,), x, z, 88, -1, -8)
    assert z.raw[0] == 540
    launch(step_kernel, (1,), x, z, 5, 10, -3)
    assert z.raw[0] == 0


@triton.jit
def false_at_entry_kernel(z, n):
    k = 0
    while n > k:
        tl.store(z, 1)
        k += 1
    while tl.condition(n > k):
        tl.store(z + 1, 1)
        k += 1
    tl.store(z + 2, k)


def test_while_whose_condition_is_false_at_entry_D12(launch):
    z = np.zeros(3, np.int32)
    launch(false_at_entry_kernel, (1,), z, -1)
    assert z.tolist() == [0, 0, 0]
    launch(false_at_entry_kernel, (1,), z, 2)
    assert z.tolist() == [1, 0, 2]


@triton.jit
def parity_kernel(z, a, b):
    pid = tl.program_id(0)
    tl.store(z + pid, a if pid % 2 == 0 else b)


def test_ternary_on_a_run_time_condition_D13(launch):
    z = empty("int32", 6)
    launch(parity_kernel, (6,), z, 7, 9)
    assert z.raw.tolist() == [7, 9] * 3


@triton.jit
def store_and_return(p, v):
    tl.store(p, v)
    return v * 2


@triton.jit
def ignored_result_kernel(z, n):
    for k in range(n):
        if k % 2 == 0:
            store_and_return(z + k, k)


def test_ignored_result_of_a_helper_D15(launch):
    z = np.full(6, -1, np.int32)
    launch(ignored_result_kernel, (1,), z, 5)
    assert z.tolist() == [0, -1, 2, -1, 4, -1]


@triton.jit
def returns_by_flag(x, FLAG: tl.constexpr):
    if FLAG:
        return x * 1.5
    return (x, x + 1)


@triton.jit
def live_return_kernel(x, z, FLAG: tl.constexpr):
    r = returns_by_flag(tl.load(x), FLAG)
    if FLAG:
        tl.store(z, r)
    else:
        tl.store(z, r[0] + r[1])


@pytest.mark.parametrize("flag", [True, False])
def test_only_the_live_return_is_compiled_D17(launch, flag):
    x, z = np.array([4.0], np.float32), empty("float32", 1)
    launch(live_return_kernel, (1,), x, z, FLAG=flag)
    assert z.raw[0] == (6 if flag else 9)


@triton.jit
def boolean_chain_kernel(z, a, b, c):
    use = (a > 0) or (b > 0) or (c > 0)
    tl.store(z, use)


@pytest.mark.parametrize("bits", range(8))
def test_or_of_three_D18(launch, bits):
    z = empty("int32", 1)
    values = [1 if bits >> k & 1 else -1 for k in range(3)]
    launch(boolean_chain_kernel, (1,), z, *values)
    assert z.raw[0] == (bits != 0)


@triton.jit
def plain_booleans_kernel(z, a, b, c, n):
    use = a or b or c
    tl.store(z, use)
    tl.store(z + 1, tl.where(a and b and c, n, -n))
    tl.store(z + 2, not a)


@pytest.mark.parametrize("bits", range(8))
def test_or_of_three_boolean_parameters_D18(launch, bits):
    z, flags = empty("int32", 3), [bool(bits >> k & 1) for k in range(3)]
    launch(plain_booleans_kernel, (1,), z, *flags, 5)
    assert z.raw.tolist() == [any(flags), 5 if all(flags) else -5, not flags[0]]


@triton.jit
def bump(p):
    tl.store(p, tl.load(p) + 1)
    return tl.load(p)


@triton.jit
def chained_comparison_kernel(z, counter, low, high):
    tl.store(z, low < bump(counter) < high)


def test_chained_comparison_D18(launch):
    """Python's meaning with the middle evaluated once, or a refusal that names the line."""
    z, counter = empty("int32", 1), np.array([4], np.int32)
    try:
        launch(chained_comparison_kernel, (1,), z, counter, 3, 7)
    except CompilationError as error:
        assert "low < bump(counter) < high" in str(error)
        return
    assert z.raw[0] == 1 and counter[0] == 5
    launch(chained_comparison_kernel, (1,), z, counter, 3, 6)
    assert z.raw[0] == 0 and counter[0] == 6


# E. Shapes ----------------------------------------------------------------------------------------------------------


@triton.jit
def reshape_permute_kernel(x, z, w):
    i = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(x + i)
    b = tl.permute(tl.reshape(a, (4, 2, 16)), (1, 0, 2))
    p, q, r = tl.arange(0, 2)[:, None, None], tl.arange(0, 4)[None, :, None], tl.arange(0, 16)[None, None, :]
    tl.store(z + (p * 4 + q) * 16 + r, b)
    c = tl.reshape(a, (2, 8, 8))
    tl.store(w + tl.arange(0, 128), tl.reshape(c, (128,)))


def test_reshape_keeps_row_major_order_E2(launch):
    x, z, w = sample("float32", (4, 32)), empty("float32", (2, 4, 16)), empty("float32", 128)
    launch(reshape_permute_kernel, (1,), x, z, w)
    np.testing.assert_array_equal(z.raw, x.raw.reshape(4, 2, 16).transpose(1, 0, 2))
    np.testing.assert_array_equal(w.raw, x.raw.reshape(-1))


@triton.jit
def scalar_index_kernel(z, n, KIND: tl.constexpr):
    s = n + 1
    if KIND == "one":
        a = s[None]
        tl.static_assert(a.shape[0] == 1)
        tl.store(z + tl.arange(0, 1), a)
    elif KIND == "two":
        b = s[None, None]
        tl.static_assert(b.shape[0] == 1 and b.shape[1] == 1)
        tl.store(z + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :], b)
    elif KIND == "colon first":
        tl.store(z + tl.arange(0, 1), s[:, None])
    else:
        tl.store(z + tl.arange(0, 1), s[None, :])


def test_scalar_indexed_with_none_E4(launch):
    z = empty("int32", 1)
    for kind in ("one", "two"):
        launch(scalar_index_kernel, (1,), z, 6, KIND=kind)
        assert z.raw[0] == 7
    for kind in ("colon first", "colon last"):
        with pytest.raises(CompilationError):
            launch(scalar_index_kernel, (1,), z, 6, KIND=kind)


@triton.jit
def rank_zero_kernel(z, n):
    a = tl.full([], 3, tl.int32)
    tl.static_assert(len(a.shape) == 0)
    s = n + 4
    tl.static_assert(len(s.shape) == 0)
    b = tl.zeros_like(s)
    tl.static_assert(len(b.shape) == 0)
    tl.store(z, a + b)
    tl.store(z + 1 + tl.arange(0, 1), s[None])


def test_rank_zero_values_E5(launch):
    z = empty("int32", 2)
    launch(rank_zero_kernel, (1,), z, 6)
    assert z.raw.tolist() == [3, 10]


@triton.jit
def mixed_rank_kernel(x, y, z, M: tl.constexpr, N: tl.constexpr, KIND: tl.constexpr):
    row = tl.load(x + tl.arange(0, N))
    column = tl.load(y + tl.arange(0, M))[:, None]
    if KIND == "one":
        r = tl.load(y + tl.arange(0, 1)) * row[None, :]
        tl.store(z + tl.arange(0, N)[None, :], r)
    else:
        tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], column * row)


@pytest.mark.parametrize("kind, m, n", [("one", 1, 2048), ("outer", 5, 7)])
def test_rank_mismatch_broadcasts_or_names_both_shapes_E7(launch, kind, m, n):
    x, y, z = sample("float32", n, 1), sample("float32", m, 2), empty("float32", (m, n))
    try:
        launch(mixed_rank_kernel, (1,), x, y, z, M=m, N=n, KIND=kind)
    except CompilationError as error:
        assert str(n) in str(error) and str(m) in str(error)
        return
    np.testing.assert_array_equal(z.raw, y.raw[:, None] * x.raw[None, :])


# F. Front end, arguments, functions ---------------------------------------------------------------------------------


@triton.jit
def add_scalar_kernel(z, n):
    tl.store(z, n + 100)


def test_each_call_uses_its_own_scalar_F2(launch):
    for n in (1, 5, 16, 17, 1, 32, -1):
        z = empty("int32", 1)
        launch(add_scalar_kernel, (1,), z, n)
        assert z.raw[0] == n + 100


@triton.jit
def maybe_kernel(x, z):
    if x is not None:
        tl.store(z, tl.load(x))
    else:
        tl.store(z, -1)


def test_none_then_tensor_then_none_F3(launch):
    x, seen = np.array([7], np.int32), []
    for given in (None, x, None):
        z = empty("int32", 1)
        launch(maybe_kernel, (1,), given, z)
        seen.append(int(z.raw[0]))
    assert seen == [-1, 7, -1]


@triton.jit
def interleaved_kernel(x, A: tl.constexpr, n, z, B: tl.constexpr, m):
    tl.store(z, tl.load(x) + A * 10 + n * 100 + B * 1000 + m * 10000)


def test_arguments_do_not_shift_F5(launch):
    x, z = np.array([3], np.int32), empty("int32", 1)
    launch(interleaved_kernel, (1,), x, 4, 1, z, 5, 6)
    assert z.raw[0] == 3 + 40 + 100 + 5000 + 60000


@triton.jit
def outer_with_inner_kernel(z):
    @triton.jit
    def inner_function(v):
        return v + 1

    tl.store(z, inner_function(1))


def test_function_defined_in_a_kernel_is_refused_F7(launch):
    with pytest.raises(CompilationError, match="inner_function"):
        launch(outer_with_inner_kernel, (1,), empty("int32", 1))


LADDER = "\n".join(
    ["@triton.jit", "def ladder_kernel(z, n):", "    r = -1", "    if n == 0:", "        r = 0"]
    + [line for k in range(1, 80) for line in (f"    elif n == {k}:", f"        r = {k * k}")]
    + ["    else:", "        r = 12345", "    tl.store(z, r)", ""]
)


def test_long_elif_chain_from_deep_in_the_stack_F8(launch, tmp_path):
    path = tmp_path / "ladder.py"
    path.write_text("import triton\nimport triton.language as tl\n\n\n" + LADDER)
    sys.path.insert(0, str(tmp_path))
    try:
        from ladder import ladder_kernel
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("ladder", None)

    def deep(depth, n):
        if depth:
            return deep(depth - 1, n)
        z = empty("int32", 1)
        launch(ladder_kernel, (1,), z, n)
        return int(z.raw[0])

    assert [deep(500, n) for n in (0, 1, 41, 79, 80)] == [0, 1, 1681, 6241, 12345]


@triton.jit
def print_all_kernel(x, n, f, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_print("int", n)
    tl.device_print("float", f)
    tl.device_print("bool", b)
    tl.device_print("pointer", x)
    tl.device_print("tensor", tl.load(x + i))


def test_device_print_of_everything_F10(launch, capfd):
    x = np.array([11, 22, 33], np.int32)
    launch(print_all_kernel, (1,), x, 42, 2.5, True, N=3)
    out = capfd.readouterr().out
    for word in (
        "int: 42",
        "float: 2.5",
        "bool: 1",
        "pointer: 0x" if launch.keywords["backend"] == "cuda" else f"pointer: 0x{x.ctypes.data:016x}",
        "tensor: 11",
        "tensor: 22",
        "tensor: 33",
    ):
        assert word in out


@triton.jit
def flag_kernel(z, flag):
    if flag:
        tl.store(z, 1)
    else:
        tl.store(z, 2)


def test_boolean_parameter_F12(launch):
    seen = []
    for flag in (True, False, True):
        z = empty("int32", 1)
        launch(flag_kernel, (1,), z, flag)
        seen.append(int(z.raw[0]))
    assert seen == [1, 2, 1]


@triton.autotune(configs=[triton.Config({"B": 4}), triton.Config({"B": 8})], key=["n"])
@triton.jit
def tuned_flag_kernel(z, n, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(z + i, tl.where(flag, i, -i), mask=i < n)


def test_boolean_parameter_of_a_tuned_kernel_F12(launch):
    for flag in (True, False):
        z = empty("int32", 4)
        launch(tuned_flag_kernel, (1,), z, 4, flag)
        assert z.raw.tolist() == ([0, 1, 2, 3] if flag else [0, -1, -2, -3])


@triton.jit
def defaults_kernel(z, a=3, B: tl.constexpr = 4):
    tl.store(z, a * 10 + B)


@triton.jit
def no_parameters_kernel():
    tl.static_assert(True)


def test_default_values_and_no_parameters_F13(launch):
    for given, expected in (({}, 34), ({"a": 7}, 74), ({"B": 1}, 31), ({"a": 1, "B": 2}, 12)):
        z = empty("int32", 1)
        launch(defaults_kernel, (1,), z, **given)
        assert z.raw[0] == expected
    launch(no_parameters_kernel, (3,))


def test_helpers_of_this_file_are_right():
    assert math.isnan(FLOAT8_VALUES["float8e4nv"][0x7F]) and FLOAT8_VALUES["float8e5"][0x7C] == np.inf
