"""Matrix products of all types, with sizes that fit no machine's tile."""

import numpy as np
import pytest
from support import close, dot_loss, empty, full_range, sample

import triton
import triton.language as tl

SIZES = [
    (1, 1, 1),
    (2, 3, 5),
    (8, 8, 8),
    (7, 33, 12),
    (16, 17, 18),
    (33, 5, 100),
    (64, 64, 64),
    (1, 100, 7),
    (127, 2, 3),
]


@triton.jit
def dot_kernel(a, b, c, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr, OUT: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    if ACC:
        r = tl.dot(x, y, tl.load(c + m[:, None] * N + n[None, :]), out_dtype=OUT)
    else:
        r = tl.dot(x, y, out_dtype=OUT)
    tl.static_assert(r.dtype == OUT)
    tl.store(z + m[:, None] * N + n[None, :], r)


@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("name", ["float32", "float16"])
@pytest.mark.parametrize("acc", [False, True])
def test_dot_sizes(launch, m, n, k, name, acc):
    a, b, c, z = (
        sample(name, (m, k), 1),
        sample(name, (k, n), 2),
        sample("float32", (m, n), 3),
        empty("float32", (m, n)),
    )
    launch(dot_kernel, (1,), a, b, c, z, M=m, N=n, K=k, ACC=acc, OUT=tl.float32)
    left, right = a.values.astype(np.float64), b.values.astype(np.float64)
    start = c.raw.astype(np.float64) if acc else 0 * c.raw
    close(
        z,
        left @ right + start,
        places=(4 + k / 8) * dot_loss(launch, name),
        scale=np.abs(left) @ np.abs(right) + np.abs(start),
    )


FLOATING = [
    ("bfloat16", "bfloat16", "float32"), ("float16", "float16", "float16"), ("float64", "float64", "float64"),
    ("float8e4nv", "float8e4nv", "float32"), ("float8e5", "float8e5", "float32"), ("float8e5", "float8e4nv", "float32"),
]  # fmt: skip


@pytest.mark.parametrize("left, right, out", FLOATING)
@pytest.mark.parametrize("m, n, k", [(16, 16, 32), (7, 9, 5)])
def test_dot_of_floats(launch, left, right, out, m, n, k):
    a, b, z = sample(left, (m, k), 1, -2, 2), sample(right, (k, n), 2, -2, 2), empty(out, (m, n))
    launch(dot_kernel, (1,), a, b, z, z, M=m, N=n, K=k, ACC=False, OUT=getattr(tl, out))
    x, y = a.values.astype(np.float64), b.values.astype(np.float64)
    close(z, x @ y, places=8, scale=np.abs(x) @ np.abs(y))


@pytest.mark.parametrize("left, right", [("int8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (5, 3, 18), (1, 8, 30), (33, 17, 64)])
def test_dot_of_integers_is_exact(launch, left, right, m, n, k):
    a, b, c, z = (
        full_range(left, (m, k), 1),
        full_range(right, (k, n), 2),
        full_range("int32", (m, n), 3),
        empty("int32", (m, n)),
    )
    launch(dot_kernel, (1,), a, b, c, z, M=m, N=n, K=k, ACC=True, OUT=tl.int32)
    exact = a.raw.astype(np.int64) @ b.raw.astype(np.int64) + c.raw
    np.testing.assert_array_equal(z.raw, exact.astype(np.int32))


@triton.jit
def batched_dot_kernel(a, b, z, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    g, m, n, k = tl.arange(0, B)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + g * M * K + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + g * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(z + g * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(x, y))


@pytest.mark.parametrize("batch, m, n, k", [(1, 4, 4, 4), (3, 5, 7, 2), (4, 16, 8, 33)])
def test_batched_dot(launch, batch, m, n, k):
    a, b, z = sample("float32", (batch, m, k), 1), sample("float32", (batch, k, n), 2), empty("float32", (batch, m, n))
    launch(batched_dot_kernel, (1,), a, b, z, B=batch, M=m, N=n, K=k)
    close(
        z, a.raw.astype(np.float64) @ b.raw, places=8 * dot_loss(launch, "float32"), scale=np.abs(a.raw) @ np.abs(b.raw)
    )


@triton.jit
def matmul_kernel(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(
        c + m[:, None] * cm + n[None, :] * cn, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N)
    )


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (100, 70, 50), (33, 129, 65), (64, 64, 64)])
@pytest.mark.parametrize("blocks", [(16, 16, 16), (32, 64, 32), (7, 33, 12)])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN"])
@pytest.mark.parametrize("name", ["float32", "float16"])
def test_matmul(launch, m, n, k, blocks, layout, name):
    a = sample(name, (k, m) if layout[0] == "T" else (m, k), 1)
    b = sample(name, (n, k) if layout[1] == "T" else (k, n), 2)
    c = empty(name, (m, n))
    x, y = (a.raw.T if layout[0] == "T" else a.raw), (b.raw.T if layout[1] == "T" else b.raw)
    strides = [s // a.raw.itemsize for s in (*x.strides, *y.strides, *c.raw.strides)]
    grid = (triton.cdiv(m, blocks[0]), triton.cdiv(n, blocks[1]))
    launch(matmul_kernel, grid, a, b, c, m, n, k, *strides, BM=blocks[0], BN=blocks[1], BK=blocks[2])
    left, right = x.astype(np.float64), y.astype(np.float64)
    close(c, left @ right, places=12 * dot_loss(launch, name), scale=np.abs(left) @ np.abs(right))


@triton.jit
def large_kernel(
    a, b, c, M, N, K, am, ak, bk, bn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LIMIT: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), OUT)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        y = tl.load(b + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0)
        acc = tl.dot(x, y, acc, max_num_imprecise_acc=LIMIT, out_dtype=OUT)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


# In sums of these sizes: fp8 products may be added up in 14 bits, tf32 drops 13 bits of each operand.
LARGE = [("float16", "float16", 2e-6), ("bfloat16", "bfloat16", 2e-6), ("float32", "float32", 2e-3),
         ("float8e4nv", "float8e4nv", 2e-3), ("float8e5", "float8e4nv", 2e-3), ("int8", "int8", 0),
         ("uint8", "uint8", 0)]  # fmt: skip


@pytest.mark.parametrize("left, right, bound", LARGE)
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("blocks, warps", [((64, 32, 64), 4), ((128, 64, 32), 8), ((64, 128, 128), 8)])
def test_products_for_groups_of_warps(launch, left, right, bound, layout, blocks, warps):
    """Sizes and orders of memory for which there are instructions that read operands from shared memory."""
    m, n, k = 128, 160, 208
    whole = bound == 0
    make = full_range if whole else lambda name, shape, seed: sample(name, shape, seed, -2, 2)
    a = make(left, (k, m) if layout[0] == "T" else (m, k), 1)
    b = make(right, (n, k) if layout[1] == "T" else (k, n), 2)
    c = empty("int32" if whole else "float32", (m, n))
    x, y = (a.values.T if layout[0] == "T" else a.values), (b.values.T if layout[1] == "T" else b.values)
    strides = [*((1, m) if layout[0] == "T" else (k, 1)), *((1, k) if layout[1] == "T" else (n, 1))]
    grid = (triton.cdiv(m, blocks[0]), triton.cdiv(n, blocks[1]))
    sizes = {"BM": blocks[0], "BN": blocks[1], "BK": blocks[2], "LIMIT": None, "OUT": tl.int32 if whole else tl.float32}
    launch(large_kernel, grid, a, b, c, m, n, k, *strides, **sizes, num_warps=warps)
    if whole:
        np.testing.assert_array_equal(c.raw, x.astype(np.int64) @ y.astype(np.int64))
        return
    x, y = x.astype(np.float64), y.astype(np.float64)
    error = np.abs(c.raw - x @ y) / (np.abs(x) @ np.abs(y))
    assert error.max() < bound


@pytest.mark.parametrize("limit", [0, 32])
def test_float8_sums_are_as_exact_as_asked_for(launch, limit):
    m, n, k = 64, 32, 256
    a, b, c = sample("float8e4nv", (m, k), 1, -2, 2), sample("float8e4nv", (n, k), 2, -2, 2), empty("float32", (m, n))
    launch(
        large_kernel, (1, 1), a, b, c, m, n, k, k, 1, 1, k, BM=m, BN=n, BK=64, LIMIT=limit, OUT=tl.float32, num_warps=4
    )
    x, y = a.values.astype(np.float64), b.values.T.astype(np.float64)
    assert (np.abs(c.raw - x @ y) / (np.abs(x) @ np.abs(y))).max() < 2e-6


@triton.jit
def chained_kernel(q, k, v, z, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    a = tl.load(q + m[:, None] * D + d[None, :])
    b = tl.load(k + n[:, None] * D + d[None, :])
    s = tl.dot(a, tl.trans(b))
    p = tl.exp(s - tl.max(s, 1)[:, None])
    o = tl.dot(p, tl.load(v + n[:, None] * D + d[None, :])) / tl.sum(p, 1)[:, None]
    tl.store(z + m[:, None] * D + d[None, :], o)


@pytest.mark.parametrize("m, n, d", [(16, 16, 16), (5, 33, 12), (64, 7, 32)])
def test_dots_in_a_row(launch, m, n, d):
    q, k, v, z = (sample("float32", s, i, -1, 1) for i, s in enumerate([(m, d), (n, d), (n, d), (m, d)]))
    launch(chained_kernel, (1,), q, k, v, z, M=m, N=n, D=d)
    s = q.raw.astype(np.float64) @ k.raw.T
    p = np.exp(s - s.max(1, keepdims=True))
    loss = min(100, dot_loss(launch, "float32"))
    np.testing.assert_allclose(z.raw, p @ v.raw / p.sum(1, keepdims=True), rtol=1e-4 * loss, atol=1e-5 * loss)


@triton.jit
def sum_of_products_kernel(
    a, b, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PARTS: tl.constexpr, KEEP: tl.constexpr
):
    """PARTS products one after another; with KEEP each sum so far is written before the next product is made."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    place = m[:, None] * N + n[None, :]
    acc = tl.full((M, N), 3, z.dtype.element_ty)
    for part in tl.static_range(PARTS):
        x = tl.load(a + part * M * K + m[:, None] * K + k[None, :])
        y = tl.load(b + part * K * N + k[:, None] * N + n[None, :], mask=n[None, :] < N - part, other=0)
        acc = tl.dot(x, y, acc)
        if KEEP:
            tl.store(z + part * M * N + place, acc)
    tl.store(z + (PARTS - 1) * M * N + place, acc)


@pytest.mark.parametrize("name, out", [("float32", "float32"), ("int8", "int32"), ("float16", "float32")])
@pytest.mark.parametrize("m, n, k, parts", [(16, 16, 16, 5), (16, 64, 3, 5), (5, 17, 1, 9), (4, 33, 20, 7)])
@pytest.mark.parametrize("keep", [False, True])
def test_sums_of_products(launch, name, out, m, n, k, parts, keep):
    make = full_range if name == "int8" else sample
    a, b, z = make(name, (parts, m, k), 1), make(name, (parts, k, n), 2), empty(out, (parts, m, n))
    launch(sum_of_products_kernel, (1,), a, b, z, M=m, N=n, K=k, PARTS=parts, KEEP=keep)
    kind = np.int64 if name == "int8" else np.float64
    x, y = a.raw.astype(kind), b.raw.astype(kind)
    for part in range(parts):
        y[part, :, n - part :] = 0
    sums, sizes = 3 + np.cumsum(x @ y, 0), 3 + np.cumsum(np.abs(x) @ np.abs(y), 0)
    if name == "int8":
        np.testing.assert_array_equal(z.raw[-1], sums[-1])
        if keep:
            np.testing.assert_array_equal(z.raw, sums)
    elif keep:
        close(z, sums, places=(8 + parts * k / 4) * dot_loss(launch, name), scale=sizes)
    else:
        last = np.abs(z.raw[-1] - sums[-1]) / sizes[-1]
        assert last.max() < (8 + parts * k / 4) * dot_loss(launch, name) * 2.0**-23


@triton.jit
def own_operand_kernel(x, y, z, N: tl.constexpr, B: tl.constexpr, KIND: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    if B > 1:
        at = tl.arange(0, B)[:, None, None] * N * N + at[None, :, :]
    if KIND == "spread":
        a = tl.load(x + at // N * N)  # costs more than a load
    elif KIND == "dot":
        a = tl.dot(tl.load(x + at), tl.load(y + at), input_precision="ieee")
    elif KIND == "scan":
        a = tl.cumsum(tl.load(x + at), len(at.shape) - 1)
    else:
        a = tl.load(x + at)
    b = tl.load(y + at)
    turned = tl.permute(a, (0, 2, 1)) if B > 1 else tl.trans(a)
    if HOW == "left":
        r = tl.dot(a, b, a, input_precision="ieee")
    elif HOW == "right":
        r = tl.dot(b, a, a, input_precision="ieee")
    elif HOW == "all":
        r = tl.dot(a, a, a, input_precision="ieee")
    elif HOW == "turned":
        r = tl.dot(turned, b, a, input_precision="ieee")
    elif HOW == "sum":
        r = tl.dot(b, a + 1, a, input_precision="ieee")
    elif HOW == "other batch":
        r = tl.dot(tl.flip(a, 0), b, a, input_precision="ieee")
    else:
        r = a
        for _ in range(2):
            r = tl.dot(r, b, r, input_precision="ieee")
    tl.store(z + at, r + 1)


@pytest.mark.parametrize("kind", ["spread", "dot", "scan", "load"])
@pytest.mark.parametrize("how", ["left", "right", "all", "turned", "sum", "other batch", "loop"])
@pytest.mark.parametrize("n, batch", [(16, 1), (33, 1), (16, 3)])
def test_accumulator_that_is_an_operand_too(launch, kind, how, n, batch):
    shape = (n, n) if batch == 1 else (batch, n, n)
    x, y, z = sample("float32", shape, 1, -2, 2), sample("float32", shape, 2, -2, 2), empty("float32", shape)
    launch(own_operand_kernel, (1,), x, y, z, N=n, B=batch, KIND=kind, HOW=how)
    v, b = x.raw.astype(np.float64), y.raw.astype(np.float64)
    a = {"spread": np.broadcast_to(v[..., :1], shape), "dot": v @ b, "scan": v.cumsum(-1), "load": v}[kind]
    if how == "loop":
        expected = a
        for _ in range(2):
            expected = expected @ b + expected
    else:
        left, right = {
            "left": (a, b), "right": (b, a), "all": (a, a), "turned": (a.swapaxes(-1, -2), b), "sum": (b, a + 1),
            "other batch": (np.flip(a, 0), b),
        }[how]  # fmt: skip
        expected = left @ right + a
    np.testing.assert_allclose(z.raw, expected + 1, rtol=1e-4, atol=2e-4 * np.abs(expected).max())
