"""What kernels written with each part of the language compute, by the interpreter."""

# ruff: noqa: B007, RUF005, SIM201, SIM300 - the kernels test these forms

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import pytest
import support

import triton
import triton.language as tl
from triton.language.core import _aggregate
from triton.language.extra import libdevice
from triton.runtime.jit import constexpr_function

Pair = namedtuple("Pair", ["first", "second"])


def run(kernel, *args, **meta):
    support.launch(triton.jit(kernel), (1,), *args, backend="interpreter", **meta)


def ints(*shape):
    return np.zeros(shape, dtype=np.int32)


def floats(*shape):
    return np.zeros(shape, dtype=np.float32)


# Functions and tuples -------------------------------------------------------------------------------------------------


@triton.jit
def with_defaults(x, scale=3, *, shift: tl.constexpr = 1):
    return x * scale + shift


@triton.jit
def several(*values):
    total = 0
    for value in values:
        total += value
    return total, len(values)


def test_calls_with_defaults_keywords_and_stars():
    def kernel(out):
        tl.store(out, with_defaults(5))
        tl.store(out + 1, with_defaults(5, 2))
        tl.store(out + 2, with_defaults(x=5, shift=7))
        a, b = several(1, 2, *(3, 4))
        tl.store(out + 3, a)
        tl.store(out + 4, b)

    out = ints(5)
    run(kernel, out)
    assert out.tolist() == [16, 11, 22, 10, 4]


@triton.jit
def swap(pair):
    return Pair(pair.second, first_of(pair))


@triton.jit
def first_of(pair):
    return pair[0]


def test_named_tuples():
    def kernel(out, n):
        pair = Pair(n, 2)
        pair = swap(pair)
        tl.store(out, pair.first)
        tl.store(out + 1, pair.second)

    out = ints(2)
    run(kernel, out, 9)
    assert out.tolist() == [2, 9]


def test_tuples_in_loops_branches_and_comprehensions():
    def kernel(out, n):
        state = (0, (1, n))
        for i in range(3):
            state = (state[0] + i, (state[1][0] * 2, state[1][1]))
        if n > 3:
            state = (state[0] + 100, state[1])
        a, (b, c) = state
        tl.store(out, a)
        tl.store(out + 1, b)
        tl.store(out + 2, c)
        doubled = [2 * x for x in (a, b, c) + (1,)]
        first, *rest = doubled
        tl.store(out + 3, rest[-1] + first)
        for i, x in enumerate(doubled):
            tl.store(out + 4 + i, x)

    out = ints(8)
    run(kernel, out, 5)
    assert out.tolist() == [103, 8, 5, 2 + 206, 206, 16, 10, 2]


def test_none_arguments_are_compile_time():
    def kernel(out, p):
        if p is None:
            tl.store(out, 1)
        else:
            tl.store(out, tl.load(p))

    out, source = ints(1), np.array([7], dtype=np.int32)
    kernel = triton.jit(kernel)
    for argument, wanted in ((None, 1), (source, 7), (None, 1)):
        support.launch(kernel, (1,), out, argument, backend="interpreter")
        assert out[0] == wanted


@triton.jit(noinline=True)
def outlined(x, pair, flag: tl.constexpr):
    if flag:
        return x + pair[0], pair[1]
    else:
        return x - pair[0], pair[1]


def test_functions_of_their_own():
    def kernel(out):
        x = tl.arange(0, 4)
        a, b = outlined(x, (1, 2), True)
        c, d = outlined(x, (1, 2), False)
        tl.store(out + x, a + b + c + d)

    out = ints(4)
    run(kernel, out)
    assert out.tolist() == [4, 6, 8, 10]


@triton.jit
def power_of(x, n: tl.constexpr):
    if n == 0:
        return 1
    else:
        return x * power_of(x, n - 1)


def test_recursion_over_compile_time_values_ends():
    def kernel(out):
        tl.store(out, power_of(3, 4))

    out = ints(1)
    run(kernel, out)
    assert out[0] == 81


# Compile-time values --------------------------------------------------------------------------------------------------


@constexpr_function
def next_power(n):
    return 1 << (n - 1).bit_length()


def test_constexpr_operators():
    def kernel(out, N: tl.constexpr):
        A: tl.constexpr = (N + 3) // 2 % 4 - -N * 2 + (N << 2) + (N >> 1) + (N & 1 | 8 ^ 3) + N**2 + ~N
        B: tl.constexpr = "yes" if N > 3 and not N == 5 else "no"
        C: tl.constexpr = next_power(N)
        D: tl.constexpr = min(N, 3) + max(N, 3, 9) + len((1, 2)) + int(2.7) + abs(-4)
        tl.store(out, A)
        tl.store(out + 1, B == "yes")
        tl.store(out + 2, C)
        tl.store(out + 3, D)
        tl.store(out + 4, tl.arange(0, C).shape[0])
        tl.store(out + 5, isinstance(N, tl.constexpr) and N in (5, 6, 7))

    out = ints(6)
    run(kernel, out, N=6)
    n = 6
    a = (n + 3) // 2 % 4 - -n * 2 + (n << 2) + (n >> 1) + (n & 1 | 8 ^ 3) + n**2 + ~n
    assert out.tolist() == [a, 1, 8, 3 + 9 + 2 + 2 + 4, 8, 1]


def test_assigned_numbers_are_run_time_values():
    def kernel(out, n):
        x = 1
        for _ in range(n):
            x = x * 2
        half = 0.5
        tl.static_assert((half + tl.zeros((), tl.float16)).dtype == tl.float32)
        tl.store(out, x + half)

    out = floats(1)
    run(kernel, out, 5)
    assert out[0] == 32.5


def test_annotated_parameters():
    def kernel(out, a: tl.float16, b: tl.int8):
        tl.static_assert(a.dtype == tl.float16)
        tl.static_assert(b.dtype == tl.int8)
        tl.store(out, a + b)

    out = floats(1)
    run(kernel, out, 42.0, 2)
    assert out[0] == 44


# Control flow ---------------------------------------------------------------------------------------------------------


def python_search(values, wanted, limit):
    steps = 0
    for i in range(len(values)):
        if values[i] < 0:
            continue
        steps += 1
        if values[i] == wanted:
            break
        if steps > limit:
            return -1
    return steps * 10


@pytest.mark.parametrize("wanted, limit", [(5, 10), (7, 10), (100, 10), (100, 2), (3, 0)])
def test_loops_with_break_continue_and_return(wanted, limit):
    def kernel(values, out, n, wanted, limit):
        tl.store(out, -1)
        steps = 0
        for i in range(n):
            x = tl.load(values + i)
            if x < 0:
                continue
            steps += 1
            if x == wanted:
                break
            if steps > limit:
                return
        tl.store(out, steps * 10)

    values = np.array([3, -1, 5, -2, -3, 7, 9], dtype=np.int32)
    out = ints(1)
    run(kernel, values, out, len(values), wanted, limit)
    assert out[0] == python_search(values.tolist(), wanted, limit)


def test_early_returns_of_helpers():
    def kernel(out, n):
        for i in range(n):
            tl.store(out + i, classify(i))

    out = ints(6)
    run(kernel, out, 6)
    assert out.tolist() == [0, 10, 10, 3, -1, -1]


@triton.jit
def classify(x):
    if x == 0:
        return 0
    y = 10
    if x > 2:
        if x > 3:
            return -1
        y = x
    return y


def test_chained_comparison_and_boolean_operators():
    def kernel(out, n):
        tl.store(out, 1 < n < 5)
        tl.store(out + 1, n == 0 or n == 3 or n > 100)
        tl.store(out + 2, not (n > 1 and n < 3))
        tl.store(out + 3, 7 if n % 2 == 0 else 8)
        tl.store(out + 4, 5 > 3 > n)

    for n in (0, 2, 3, 5):
        out = ints(5)
        run(kernel, out, n)
        assert out.tolist() == [1 < n < 5, n in (0, 3), not 1 < n < 3, 7 if n % 2 == 0 else 8, 3 > n]


def test_while_with_condition_object_and_walrus():
    def kernel(values, out, n):
        i = 0
        while tl.condition(i < n, disable_licm=True):
            i += 3
        tl.store(out, i)
        total = 0
        j = 0
        while (x := tl.load(values + j)) != 0:
            total += x
            j += 1
        tl.store(out + 1, total)
        tl.store(out + 2, x)

    out = ints(3)
    run(kernel, np.array([4, 5, 6, 0, 9], dtype=np.int32), out, 0)
    assert out.tolist() == [0, 15, 0]


def test_static_loops():
    def kernel(out, N: tl.constexpr):
        total = 0
        for i in tl.static_range(N, 0, -2):
            if i == 3:
                continue
            if i < 2:
                break
            total += i
        tl.store(out, total)

    out = ints(1)
    run(kernel, out, N=9)
    assert out[0] == 9 + 7 + 5


def test_negative_steps():
    def kernel(out, step):
        total = 0
        for i in tl.range(88, -1, step):
            total += i
        tl.store(out, total)
        for i in range(5, 10, -3):
            tl.store(out, -1)

    out = ints(1)
    run(kernel, out, -8)
    assert out[0] == sum(range(88, -1, -8))


# Operations -----------------------------------------------------------------------------------------------------------


@triton.jit
def scalar_branch(x, y):
    if x > y:
        result = x - y
    else:
        result = x * 10
    return result, y


def test_map_elementwise():
    def kernel(out):
        i = tl.arange(0, 6)
        a, b = tl.map_elementwise(scalar_branch, i, 3)
        tl.store(out + i, a + b)

    out = ints(6)
    run(kernel, out)
    assert out.tolist() == [3, 13, 23, 33, 4, 5]


def test_swizzle2d_visits_every_cell_column_by_column_in_groups_of_rows():
    def kernel(out, M: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
        for i in range(M):
            for j in range(N):
                a, b = tl.swizzle2d(i, j, M, N, G)
                tl.store(out + a * N + b, i * N + j)

    out = ints(5, 3)
    run(kernel, out, M=5, N=3, G=2)
    assert out.tolist() == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11], [12, 13, 14]]


def test_methods_of_tensors():
    def kernel(out):
        x = tl.arange(0, 6).reshape(2, 3).to(tl.float32)
        tl.store(out, x.sum())
        tl.store(out + 1, x.T.sum(1).max(0))
        tl.store(out + 2, x.max(axis=1).min(axis=0))
        tl.store(out + 3, (x.exp().log() + x.abs()).sum(axis=None))
        tl.store(out + 4, x.trans(1, 0).shape[0] + x.numel)
        tl.store(out + 5, x.ravel().argmax(0))

    out = floats(6)
    run(kernel, out)
    assert np.allclose(out, [15, 7, 2, 30, 9, 5], rtol=1e-6)


def test_scalars_keep_rank_zero_and_index_to_one():
    def kernel(out):
        a = tl.full([], 3, tl.int32)
        tl.static_assert(a.shape == ())
        b = a[None, None]
        tl.static_assert(b.shape == (1, 1))
        c = tl.zeros_like(a)
        tl.static_assert(c.shape == ())
        tl.store(out + tl.arange(0, 1), a[None] + c)
        tl.store(out + 1, b.item() + 1)

    out = ints(2)
    run(kernel, out)
    assert out.tolist() == [3, 4]


def philox_reference(counter, key):
    mask = 0xFFFFFFFF
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def test_philox_is_the_published_generator():
    # Known answers of Random123 for philox4x32-10.
    assert philox_reference([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox_reference([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]

    def kernel(out, seed, offsets, n: tl.constexpr):
        i = tl.arange(0, n)
        words = tl.randint4x(seed, tl.load(offsets + i))
        for j, word in enumerate(words):
            tl.store(out + j * n + i, word)

    for dtype, offsets in ((np.int32, [0, 1, 5, -1]), (np.int64, [0, 1, 2**33 + 5, 2**40])):
        for seed in (0, 12345, 2**40 + 7):
            out = np.zeros((4, 4), dtype=np.uint32)
            run(kernel, out, seed, np.array(offsets, dtype=dtype), n=4)
            for column, offset in enumerate(offsets):
                low, high = offset & 0xFFFFFFFF, (offset >> 32 if dtype is np.int64 else 0) & 0xFFFFFFFF
                expected = philox_reference([low, high, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
                assert out[:, column].tolist() == expected


def test_uniform_numbers_stay_below_one():
    def kernel(words, out, n: tl.constexpr):
        i = tl.arange(0, n)
        tl.store(out + i, tl.uint_to_uniform_float(tl.load(words + i)))

    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], dtype=np.uint32)
    out = floats(5)
    run(kernel, words, out, n=5)
    assert (out >= 0).all() and (out < 1).all()
    assert out[0] == 0 and out[4] == 0 and out[2] > 0.9999


LIBRARY = [
    ("tanh", math.tanh, [0.5, -2.0]),
    ("acos", math.acos, [0.5, -0.25]),
    ("log1p", math.log1p, [0.1, 3.0]),
    ("expm1", math.expm1, [1e-3, 2.0]),
    ("erfc", math.erfc, [0.5, -1.5]),
    ("cbrt", lambda x: math.copysign(abs(x) ** (1 / 3), x), [8, -27]),
    ("sinpi", lambda x: math.sin(math.pi * x), [0.3, -1.7]),
    ("cospi", lambda x: math.cos(math.pi * x), [0.3, 2.2]),
    ("normcdf", lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), [0.3, -2.0]),
    ("rint", round, [2.5, -1.2]),
    ("trunc", math.trunc, [2.7, -2.7]),
    ("rcbrt", lambda x: abs(x) ** (-1 / 3), [8, 27]),
    ("exp10", lambda x: 10**x, [0.5, -1]),
    ("saturatef", lambda x: min(max(x, 0), 1), [0.3, -2.0]),
    ("float2int_rn", round, [2.5, 3.5]),
    ("float2int_rd", math.floor, [2.5, -3.5]),
    ("isnan", math.isnan, [1.0, math.nan]),
    ("signbit", lambda x: x < 0, [1.0, -3.0]),
    ("llrint", round, [2.5, -7.3]),
]  # fmt: skip


@pytest.mark.parametrize("name, reference, values", LIBRARY, ids=[case[0] for case in LIBRARY])
def test_library_functions(name, reference, values):
    def kernel(p, out, NAME: tl.constexpr):
        i = tl.arange(0, 2)
        tl.store(out + i, getattr(libdevice, NAME)(tl.load(p + i)))

    for dtype in (np.float32, np.float64) if not name.startswith("float2") else (np.float32,):
        out = np.zeros(2, dtype=np.float64)
        run(kernel, np.array(values, dtype=dtype), out, NAME=name)
        expected = [float(reference(v)) for v in np.array(values, dtype=dtype).tolist()]
        assert np.allclose(out, expected, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-7)


INTEGERS = [
    ("popc", lambda x: bin(x & 0xFFFFFFFF).count("1")), ("clz", lambda x: 32 - (x & 0xFFFFFFFF).bit_length()),
    ("ffs", lambda x: (x & -x).bit_length()), ("brev", lambda x: int(f"{x & 0xFFFFFFFF:032b}"[::-1], 2)),
]  # fmt: skip


@pytest.mark.parametrize("name, reference", INTEGERS, ids=[case[0] for case in INTEGERS])
def test_bit_functions(name, reference):
    def kernel(p, out, n: tl.constexpr, NAME: tl.constexpr):
        i = tl.arange(0, n)
        tl.store(out + i, getattr(libdevice, NAME)(tl.load(p + i)))

    values = [0, 1, -1, 2**31 - 1, -(2**31), 12345, 0x0F0F0000]
    out = ints(len(values))
    run(kernel, np.array(values, dtype=np.int32), out, n=len(values), NAME=name)
    assert (out.astype(np.int64) & 0xFFFFFFFF).tolist() == [reference(v) for v in values]


def test_pow_promotes():
    def kernel(a, n, b, out):
        tl.store(out, libdevice.pow(tl.load(a), tl.load(n)))
        tl.store(out + 1, libdevice.pow(tl.load(a), tl.load(b)))
        tl.static_assert(libdevice.pow(tl.load(a), tl.load(b)).dtype == tl.float64)
        tl.static_assert(libdevice.pow(tl.load(a), tl.load(n)).dtype == tl.float32)

    out = np.zeros(2)
    run(kernel, np.array([0.9], np.float32), np.array([100], np.int32), np.array([0.5]), out)
    assert np.allclose(out, [np.float32(0.9) ** 100, float(np.float32(0.9)) ** 0.5], rtol=1e-6)


# Aggregates -----------------------------------------------------------------------------------------------------------


@_aggregate
class Accumulator:
    total: tl.tensor
    count: tl.constexpr

    @triton.jit
    def __init__(self, start, count: tl.constexpr):
        self.total = tl.to_tensor(start)
        self.count = count

    @triton.jit
    def add(self, x):
        return tl.aggregate_replace(self, total=self.total + x * self.count)

    @triton.jit
    def __add__(self, other):
        return Accumulator(self.total + other, self.count)


def test_aggregates():
    def kernel(out, n):
        sums = Accumulator(1, 2)
        for i in range(n):
            sums = sums.add(i)
        sums = sums + 1000
        tl.store(out, sums.total)
        tl.store(out + 1, sums.count)

    out = ints(2)
    run(kernel, out, 4)
    assert out.tolist() == [1 + 2 * 6 + 1000, 2]


# Large inputs to the front end ----------------------------------------------------------------------------------------


def test_long_elif_chains_from_deep_stacks(tmp_path):
    source = "import triton, triton.language as tl\n@triton.jit\ndef chain(out, n):\n    if n == 0:\n        v = 1000\n"
    for i in range(1, 80):
        source += f"    elif n == {i}:\n        v = {1000 + i}\n"
    source += "    else:\n        v = -1\n    tl.store(out, v)\n"
    path = tmp_path / "chain_module.py"
    path.write_text(source)
    space = {"__name__": "chain_module"}
    exec(compile(source, str(path), "exec"), space)

    def nested(depth, work):
        return work() if depth == 0 else nested(depth - 1, work)

    for n, wanted in ((0, 1000), (41, 1041), (79, 1079), (80, -1)):
        out = ints(1)
        nested(500, lambda n=n, out=out: support.launch(space["chain"], (1,), out, n, backend="interpreter"))
        assert out[0] == wanted
