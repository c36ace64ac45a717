"""Real kernels through the installed package, compared with NumPy. Needs nothing but the package, NumPy and pytest."""

import numpy as np
import pytest

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask), mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask, other=-float("inf"))
    exponentials = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, exponentials / tl.sum(exponentials, axis=0), mask)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + inner
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], (rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + columns[None, :], (k[:, None] < K) & (columns[None, :] < N), other=0.0)
        total += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, (rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize("n", [0, 1, 1000, 4097])
def test_vector_add(n):
    rng = np.random.default_rng(n)
    x, y = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    out = np.full(n + 1, 7, dtype=np.float32)
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    np.testing.assert_array_equal(out[:n], x + y)
    assert out[n] == 7, "the mask must keep the kernel inside its array"


@pytest.mark.parametrize("shape", [(4, 64), (3, 781)])
def test_softmax(shape):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    out = np.empty_like(x)
    softmax_kernel[(shape[0],)](x, out, shape[1], shape[1], BLOCK=triton.next_power_of_2(shape[1]))
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("M, N, K", [(32, 32, 32), (65, 33, 70)])
def test_matmul(M, N, K):
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((M, K)).astype(np.float32), rng.standard_normal((K, N)).astype(np.float32)
    c = np.empty((M, N), dtype=np.float32)
    matmul_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, c, M, N, K, BM=32, BN=32, BK=16)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
