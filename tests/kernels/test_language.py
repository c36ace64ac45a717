"""The smaller names of the language: hints, tuples, lists of functions, descriptors, old and new spellings."""

import numpy as np
import pytest
from support import close, empty, sample

import triton
import triton.language as tl


@triton.jit
def hints_kernel(x, z, n, N: tl.constexpr):
    tl.assume(n > 0)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, N), 4), 4)
    j = tl.max_constancy(i // 4 * 4, 4)
    tl.static_print("hints", N)
    tl.store(z + i, tl.load(x + j, mask=i < n, other=-1))


def test_hints_change_nothing(launch):
    x, z = sample("float32", 32), empty("float32", 32)
    launch(hints_kernel, (1,), x, z, 30, N=32)
    expected = x.raw[np.arange(32) // 4 * 4]
    expected[30:] = -1
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def functions_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.add(a, 1)
    b = tl.mul(b, 2)
    b = tl.sub(b, a)
    b = tl.cast(b, tl.float32)
    tl.store(z + i, b)
    c, d = tl.broadcast(a[:, None], a[None, :])
    tl.static_assert(c.shape[0] == N and c.shape[1] == N and d.shape[0] == N)
    tl.store(z + N + i, tl.sum(c - d, 1))
    e = tl.squeeze(tl.unsqueeze(a, 0), 0)
    tl.static_assert(len(e.shape) == 1)
    tl.store(z + 2 * N + i, e)
    tl.store(z + 3 * N + i, tl.softmax(a))


def test_functions_with_operator_twins(launch):
    x, z = sample("float32", 16), empty("float32", (4, 16))
    launch(functions_kernel, (1,), x, z, N=16)
    a = x.raw.astype(np.float64)
    np.testing.assert_allclose(z.raw[0], (a + 1) * 2 - a, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(z.raw[1], (a[:, None] - a[None, :]).sum(1), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(z.raw[2], x.raw)
    np.testing.assert_allclose(z.raw[3], np.exp(a - a.max()) / np.exp(a - a.max()).sum(), rtol=1e-5)


@triton.jit
def swizzle_kernel(z, rows, columns, group):
    pid = tl.program_id(0)
    i, j = tl.swizzle2d(pid // columns, pid % columns, rows, columns, group)
    tl.store(z + pid, i * columns + j)


@pytest.mark.parametrize("rows, columns, group", [(4, 4, 2), (5, 3, 2), (6, 7, 4)])
def test_swizzle_is_a_permutation(launch, rows, columns, group):
    z = empty("int32", rows * columns)
    launch(swizzle_kernel, (rows * columns,), z, rows, columns, group)
    assert sorted(z.raw.tolist()) == list(range(rows * columns))
    i, j = z.raw[:group] // columns, z.raw[:group] % columns
    assert i.tolist() == list(range(min(group, rows)))[: len(i)] and (j == 0).all()


@triton.jit
def reduce_or_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(z + tl.arange(0, M), tl.reduce_or(a, 1))


def test_reduce_or(launch):
    x, z = sample("int32", (5, 13), 0, 0, 3), empty("int32", 5)
    launch(reduce_or_kernel, (1,), x, z, M=5, N=13)
    np.testing.assert_array_equal(z.raw, np.bitwise_or.reduce(x.raw, axis=1))


@triton.jit
def descriptor_kernel(x, z, rows, columns, M: tl.constexpr, N: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
    b = tl.make_tensor_descriptor(z, [rows, columns], [columns, 1], [M, N])
    for i in range(0, tl.cdiv(rows, M)):
        for j in range(0, tl.cdiv(columns, N)):
            v = tl.load_tensor_descriptor(a, [i * M, j * N])
            b.store([i * M, j * N], v * 2)
            b.atomic_add([i * M, j * N], v)


@pytest.mark.parametrize("rows, columns", [(4, 4), (7, 12), (17, 40)])
def test_tensor_descriptors(launch, rows, columns):
    x, z = sample("float32", (rows, columns)), empty("float32", (rows, columns))
    launch(descriptor_kernel, (1,), x, z, rows, columns, M=4, N=8)
    np.testing.assert_allclose(z.raw, x.raw * 3, rtol=1e-6)


@triton.jit
def classify(v):
    if v > 0:
        r = v * 2
    elif v < -5:
        r = v - v
    else:
        r = -v
    return r


@triton.jit
def map_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.map_elementwise(classify, tl.load(x + i)))


@pytest.mark.parametrize("n", [1, 7, 64])
def test_map_elementwise_with_branches(launch, n):
    x, z = sample("float32", n), empty("float32", n)
    launch(map_kernel, (1,), x, z, N=n)
    np.testing.assert_array_equal(z.raw, np.where(x.raw > 0, x.raw * 2, np.where(x.raw < -5, 0, -x.raw)))


@triton.jit
def with_tiles(v):
    t = tl.full((4, 3), 2.0, tl.float32)
    return v + tl.sum(tl.where(v > 1.0, t, t + 1))


@triton.jit
def map_tiles_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.map_elementwise(with_tiles, tl.load(x + i)))


def test_map_elementwise_with_tiles_inside(launch):
    x, z = sample("float32", 12), empty("float32", 12)
    launch(map_tiles_kernel, (1,), x, z, N=12)
    np.testing.assert_allclose(z.raw, x.raw + np.where(x.raw > 1, 24.0, 36.0), rtol=1e-6)


@triton.jit
def random_family_kernel(z, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c, d = tl.rand4x(seed, i)
    tl.store(z + i, a)
    tl.store(z + N + i, b)
    tl.store(z + 2 * N + i, c)
    tl.store(z + 3 * N + i, d)
    tl.store(z + 4 * N + i, tl.rand(seed, i))
    e, f, g, h = tl.randn4x(seed, i)
    tl.store(z + 5 * N + i, e)
    tl.store(z + 6 * N + i, f)
    tl.store(z + 7 * N + i, g)
    tl.store(z + 8 * N + i, h)
    tl.store(z + 9 * N + i, tl.randn(seed, i))


def test_random_families_agree(launch):
    z = empty("float32", (10, 500))
    launch(random_family_kernel, (1,), z, 11, N=500)
    np.testing.assert_array_equal(z.raw[0], z.raw[4])
    np.testing.assert_array_equal(z.raw[5], z.raw[9])
    assert len({row.tobytes() for row in z.raw}) == 8
    assert (z.raw[:5] >= 0).all() and (z.raw[:5] < 1).all()
    for row in z.raw[5:]:
        assert abs(row.mean()) < 0.2 and 0.8 < row.std() < 1.2


@triton.jit
def nested_tuple_kernel(args, z, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.static_range(len(args)):
        pointer, weight = args[k]
        total += tl.load(pointer + i) * weight
    tl.store(z + i, total)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_tuples_of_tuples(launch, count):
    xs, z = [sample("float32", 9, k) for k in range(count)], empty("float32", 9)
    launch(nested_tuple_kernel, (1,), tuple((x, k + 1) for k, x in enumerate(xs)), z, N=9)
    close(z, sum(x.raw.astype(np.float64) * (k + 1) for k, x in enumerate(xs)), places=4, scale=40)


@triton.jit
def while_tuple_kernel(z, n):
    state = (0, 1)
    k = 0
    while k < n:
        state = (state[1], state[0] + state[1])
        k += 1
    tl.store(z, state[0])


@pytest.mark.parametrize("n", [0, 1, 10])
def test_tuple_carried_around_a_while(launch, n):
    z = empty("int32", 1)
    launch(while_tuple_kernel, (1,), z, n)
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    assert z.raw[0] == a


@triton.constexpr_function
def block_for(n):
    return max(4, n // 2)


WIDTH = tl.constexpr(3)


@triton.jit
def compile_time_kernel(z, N: tl.constexpr):
    B: tl.constexpr = block_for(N)
    i = tl.arange(0, B)
    tl.static_assert(B * 2 == N)
    tl.store(z + i, i * WIDTH + tl.cdiv(N, 3))


def test_compile_time_functions_and_globals(launch):
    z = empty("int32", 10)
    launch(compile_time_kernel, (1,), z, N=20)
    np.testing.assert_array_equal(z.raw, np.arange(10) * 3 + 7)


@triton.jit
def apply_twice(F: tl.constexpr, v):
    return F(F(v))


@triton.jit
def add_three(v):
    return v + 3


@triton.jit
def function_argument_kernel(z, F: tl.constexpr, n):
    tl.store(z, apply_twice(F, n))


def test_function_as_argument(launch):
    z = empty("int32", 1)
    launch(function_argument_kernel, (1,), z, F=add_three, n=5)
    assert z.raw[0] == 11


@triton.jit
def scaled_kernel(a, sa, b, sb, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    r = tl.dot_scaled(
        x,
        tl.load(sa + m[:, None] * (K // 32) + g[None, :]),
        "e4m3",
        y,
        tl.load(sb + n[:, None] * (K // 32) + g[None, :]),
        "e5m2",
    )
    tl.store(z + m[:, None] * N + n[None, :], r)


def test_dot_scaled(launch):
    m, n, k = 16, 8, 64
    a, b = sample("float8e4nv", (m, k), 1, -2, 2), sample("float8e5", (k, n), 2, -2, 2)
    sa, sb = sample("uint8", (m, k // 32), 3, 124, 130), sample("uint8", (n, k // 32), 4, 124, 130)
    z = empty("float32", (m, n))
    launch(scaled_kernel, (1,), a, sa, b, sb, z, M=m, N=n, K=k)
    x = a.values * np.repeat(2.0 ** (sa.raw.astype(int) - 127), 32, 1)
    y = b.values * np.repeat(2.0 ** (sb.raw.astype(int) - 127), 32, 1).T
    np.testing.assert_allclose(z.raw, x @ y, rtol=1e-5, atol=1e-4)


@triton.jit
def pointer_kernel(x, y, z, use_x, N: tl.constexpr):
    i = tl.arange(0, N)
    p = x if use_x else y
    q = tl.where(i % 2 == 0, x + i, y + i)
    tl.store(z + i, tl.load(p + i))
    tl.store(z + N + i, tl.load(q))
    tl.store(z + 2 * N + i, (x + i == q).to(tl.float32))


@pytest.mark.parametrize("use_x", [True, False])
def test_pointers_as_values(launch, use_x):
    x, y, z = sample("float32", 12, 1), sample("float32", 12, 2), empty("float32", (3, 12))
    launch(pointer_kernel, (1,), x, y, z, use_x, N=12)
    even = np.arange(12) % 2 == 0
    np.testing.assert_array_equal(z.raw, [x.raw if use_x else y.raw, np.where(even, x.raw, y.raw), even])


@triton.jit
def pointer_of_pointers_kernel(table, z, count, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in range(count):
        p = tl.load(table + k).to(tl.pointer_type(tl.float32))
        total += tl.load(p + i)
    tl.store(z + i, total)


def test_addresses_loaded_from_memory(launch, backend):
    if backend not in ("interpreter", "cpu"):
        pytest.skip("host addresses")
    xs, z = [sample("float32", 8, k) for k in range(3)], empty("float32", 8)
    table = np.array([x.raw.ctypes.data for x in xs], np.int64)
    launch(pointer_of_pointers_kernel, (1,), table, z, 3, N=8)
    np.testing.assert_allclose(z.raw, sum(x.raw for x in xs), rtol=1e-5, atol=1e-5)
