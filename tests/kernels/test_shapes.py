"""Ops that move elements: reshape, transpose, permute, join, split, indexing with None, broadcasting."""

import numpy as np
import pytest
from support import empty, sample

import triton
import triton.language as tl


@triton.jit
def reshape_kernel(x, z, N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    a = tl.load(x + tl.arange(0, N)).reshape(A, B, C)
    b = tl.permute(a, ORDER)
    tl.store(z + tl.arange(0, N), tl.reshape(b, [N]))


@pytest.mark.parametrize("shape", [(1, 2, 3), (4, 4, 4), (5, 1, 7), (2, 33, 3), (16, 8, 2)])
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("name", ["float32", "int8"])
def test_reshape_and_permute(launch, shape, order, name):
    a, b, c = shape
    x, z = sample(name, shape), empty(name, a * b * c)
    launch(reshape_kernel, (1,), x, z, N=a * b * c, A=a, B=b, C=c, ORDER=order)
    np.testing.assert_array_equal(z.raw, x.raw.transpose(order).reshape(-1))


@triton.jit
def transpose_kernel(x, z, M: tl.constexpr, N: tl.constexpr, KIND: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    if KIND == "trans":
        b = tl.trans(a)
    elif KIND == "method":
        b = a.trans(1, 0)
    else:
        b = a.T
    tl.static_assert(b.shape[0] == N and b.shape[1] == M)
    tl.store(z + j[:, None] * M + i[None, :], b)


@pytest.mark.parametrize("kind", ["trans", "method", "T"])
@pytest.mark.parametrize("m, n", [(1, 1), (2, 7), (33, 12), (64, 64), (5, 257)])
def test_transpose(launch, kind, m, n):
    x, z = sample("float32", (m, n)), empty("float32", (n, m))
    launch(transpose_kernel, (1,), x, z, M=m, N=n, KIND=kind)
    np.testing.assert_array_equal(z.raw, x.raw.T)


@triton.jit
def join_kernel(x, y, z, back_x, back_y, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    c = tl.join(a, b)
    tl.static_assert(c.shape[0] == N and c.shape[1] == 2)
    tl.store(z + i[:, None] * 2 + tl.arange(0, 2)[None, :], c)
    p, q = tl.split(c)
    tl.store(back_x + i, p)
    tl.store(back_y + i, q)
    tl.store(z + 2 * N + tl.arange(0, 2 * N), tl.interleave(b, a))


@pytest.mark.parametrize("n", [1, 2, 7, 64, 100])
@pytest.mark.parametrize("name", ["float16", "int64"])
def test_join_split_interleave(launch, n, name):
    x, y = sample(name, n, 1), sample(name, n, 2)
    z, p, q = empty(name, (2, n, 2)), empty(name, n), empty(name, n)
    launch(join_kernel, (1,), x, y, z, p, q, N=n)
    np.testing.assert_array_equal(z.raw, [np.stack([x.raw, y.raw], 1), np.stack([y.raw, x.raw], 1)])
    np.testing.assert_array_equal(p.raw, x.raw)
    np.testing.assert_array_equal(q.raw, y.raw)


@triton.jit
def cat_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    c = tl.cat(tl.load(x + i), tl.load(y + i), can_reorder=True)
    tl.store(z + tl.arange(0, 2 * N), tl.sort(c))


def test_cat(launch):
    x, y, z = sample("int32", 16, 1), sample("int32", 16, 2), empty("int32", 32)
    launch(cat_kernel, (1,), x, y, z, N=16)
    np.testing.assert_array_equal(z.raw, np.sort(np.concatenate([x.raw, y.raw])))


@triton.jit
def none_kernel(x, z, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    b = a[None, :, None]
    tl.static_assert(b.shape[0] == 1 and b.shape[1] == N and b.shape[2] == 1)
    c = tl.expand_dims(a, 0) + tl.expand_dims(a, 1) * 10
    tl.static_assert(c.shape[0] == N and c.shape[1] == N)
    d = tl.broadcast_to(b, (3, N, 2))
    e = tl.sum(tl.sum(d, axis=2), axis=0)
    i = tl.arange(0, N)
    tl.store(z + i[:, None] * N + i[None, :], c + e[None, :])


@pytest.mark.parametrize("n", [1, 3, 16, 33])
def test_none_indexing_and_broadcast(launch, n):
    x, z = sample("int32", n), empty("int32", (n, n))
    launch(none_kernel, (1,), x, z, N=n)
    np.testing.assert_array_equal(z.raw, x.raw[None, :] + x.raw[:, None] * 10 + 6 * x.raw[None, :])


@triton.jit
def flip_ravel_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i)
    tl.store(z + tl.arange(0, M * N), tl.ravel(tl.flip(a, 1)))
    tl.store(z + M * N + tl.arange(0, M * N), tl.flip(a, 0).reshape(M * N))


@pytest.mark.parametrize("m, n", [(1, 4), (4, 8), (3, 5)])
def test_flip_and_ravel(launch, m, n):
    x, z = sample("float32", (m, n)), empty("float32", (2, m, n))
    launch(flip_ravel_kernel, (1,), x, z, M=m, N=n)
    np.testing.assert_array_equal(z.raw, [x.raw[:, ::-1], x.raw[::-1]])


@triton.jit
def full_kernel(z, M: tl.constexpr, N: tl.constexpr, VALUE: tl.constexpr, DTYPE: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.full((M, N), VALUE, DTYPE)
    b = tl.zeros((M, N), DTYPE)
    c = tl.zeros_like(a) + tl.full([1, 1], 1, DTYPE)
    tl.static_assert(a.dtype == DTYPE and b.dtype == DTYPE and c.dtype == DTYPE)
    tl.store(z + i, a)
    tl.store(z + M * N + i, b)
    tl.store(z + 2 * M * N + i, c)


@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("m, n", [(1, 1), (3, 7), (16, 16)])
def test_full_and_zeros(launch, name, m, n):
    z = empty(name, (3, m, n))
    launch(full_kernel, (1,), z, M=m, N=n, VALUE=7, DTYPE=getattr(tl, name))
    np.testing.assert_array_equal(z.values[:, 0, 0], [7, 0, 1])
    assert (z.values == z.values[:, :1, :1]).all()


@triton.jit
def gather_kernel(x, index, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if AXIS == 0:
        at = tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    else:
        at = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(z + at, tl.gather(a, tl.load(index + at), AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("m, n, k", [(4, 8, 8), (5, 7, 3), (16, 33, 20)])
def test_gather(launch, axis, m, n, k):
    x = sample("float32", (m, n))
    shape = (k, n) if axis == 0 else (m, k)
    index, z = sample("int32", shape, 1, 0, (m, n)[axis] - 1), empty("float32", shape)
    launch(gather_kernel, (1,), x, index, z, M=m, N=n, K=k, AXIS=axis)
    np.testing.assert_array_equal(z.raw, np.take_along_axis(x.raw, index.raw, axis))
