"""Kernels that read and write the same memory, within an argument and through overlapping arguments.

Within a program a load sees every store before it and none after it, however the tile is walked.
"""

import numpy as np
import pytest
from support import empty, sample

import triton
import triton.language as tl


@triton.jit
def reverse_kernel(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + (N - 1 - i)))


@triton.jit
def transpose_kernel(x, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(x + i * N + j, tl.load(x + j * N + i))


@triton.jit
def shift_kernel(x, d, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(x + i + d, a * 2)


@triton.jit
def swap_kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@triton.jit
def scale_kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) * 2)


@triton.jit
def softmax_kernel(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    e = tl.exp(tl.load(x + i) - tl.max(tl.load(x + i), 0))
    tl.store(y + i, e)
    tl.store(y + i, tl.load(y + i) / tl.sum(e, 0))


SIZES = [1, 2, 7, 16, 33, 64, 100, 257, 1000]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["float32", "int8", "float64"])
def test_reversal_in_place(launch, n, name):
    x = sample(name, n)
    before = x.raw.copy()
    launch(reverse_kernel, (1,), x, N=n)
    np.testing.assert_array_equal(x.raw, before[::-1])


@pytest.mark.parametrize("n", [1, 3, 16, 33, 64])
def test_transposition_in_place(launch, n):
    x = sample("float32", (n, n))
    before = x.raw.copy()
    launch(transpose_kernel, (1,), x, N=n)
    np.testing.assert_array_equal(x.raw, before.T)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("d", [0, 1, 5, 16])
def test_shift_in_place(launch, n, d):
    x = sample("float32", n + d)
    expected = x.raw.copy()
    expected[d : d + n] = x.raw[:n] * 2
    launch(shift_kernel, (1,), x, d, N=n)
    np.testing.assert_array_equal(x.raw, expected)


@pytest.mark.parametrize("n", SIZES)
def test_swap(launch, n):
    x, y = sample("float32", n, 1), sample("float32", n, 2)
    a, b = x.raw.copy(), y.raw.copy()
    launch(swap_kernel, (1,), x, y, N=n)
    np.testing.assert_array_equal(x.raw, b)
    np.testing.assert_array_equal(y.raw, a)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("d", [-3, -1, 0, 1, 2, 17])
def test_overlapping_arguments(launch, backend, n, d):
    """The second argument is the first one moved by ``d`` elements."""
    if backend not in ("interpreter", "cpu"):
        pytest.skip("views of one host array")
    whole = sample("float32", n + 40)
    x, y = whole.raw[20 : 20 + n], whole.raw[20 + d : 20 + d + n]
    expected = whole.raw.copy()
    expected[20 + d : 20 + d + n] = x * 2
    launch(scale_kernel, (1,), x, y, N=n)
    np.testing.assert_array_equal(whole.raw, expected)


@pytest.mark.parametrize("n", [1, 7, 100])
@pytest.mark.parametrize("same", [False, True])
def test_softmax_in_place(launch, n, same):
    x = sample("float32", (3, n))
    y = x if same else empty("float32", (3, n))
    e = np.exp(x.raw.astype(np.float64) - x.raw.max(1, keepdims=True))
    launch(softmax_kernel, (3,), x, y, N=n)
    np.testing.assert_allclose(y.raw, e / e.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def prefix_kernel(x, n, N: tl.constexpr):
    """Each trip reads what the trip before wrote."""
    i = tl.arange(0, N)
    for k in range(1, n):
        a = tl.load(x + (k - 1) * N + i)
        b = tl.load(x + k * N + i)
        tl.store(x + k * N + i, a + b)


@pytest.mark.parametrize("n, width", [(1, 5), (4, 1), (6, 33), (20, 128)])
def test_loop_carried_through_memory(launch, n, width):
    x = sample("int32", (n, width))
    expected = np.cumsum(x.raw, axis=0)
    launch(prefix_kernel, (1,), x, n, N=width)
    np.testing.assert_array_equal(x.raw, expected)


@triton.jit
def conditional_store_kernel(x, z, flag, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    if flag > 0:
        tl.store(x + i, a * 0)
    b = tl.load(x + i)
    tl.store(z + i, a - b)


@pytest.mark.parametrize("flag", [0, 1, 5])
def test_store_under_a_condition(launch, flag):
    x, z = sample("float32", 50), empty("float32", 50)
    before = x.raw.copy()
    launch(conditional_store_kernel, (1,), x, z, flag, N=50)
    np.testing.assert_array_equal(z.raw, before if flag > 0 else np.zeros(50))


@triton.jit
def sum_then_overwrite_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i)
    tl.store(x + i, -a)
    s = tl.sum(a, 1)
    tl.store(z + tl.arange(0, M), s + tl.sum(tl.load(x + i), 1))


@pytest.mark.parametrize("m, n", [(1, 1), (5, 7), (16, 100)])
def test_reduction_after_the_tile_was_overwritten(launch, m, n):
    x, z = sample("int32", (m, n)), empty("int32", m)
    launch(sum_then_overwrite_kernel, (1,), x, z, M=m, N=n)
    np.testing.assert_array_equal(z.raw, np.zeros(m))
