"""Kernels as people write them for models: normalisation, attention, quantisation, routing, optimisers, image work."""

import importlib.util
import math

import numpy as np
import pytest
from support import Data, empty, sample

import triton
import triton.language as tl


def near(got, expected, rtol=1e-4, atol=1e-5):
    values = got.values if isinstance(got, Data) else got
    np.testing.assert_allclose(values.astype(np.float64), expected, rtol=rtol, atol=atol)


def normal(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# Normalisation and activations ----------------------------------------------------------------------------------------


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    tl.store(y_ptr + row * stride + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 100, 257])
def test_rms_norm(launch, name, n):
    x, w, y = sample(name, (5, n), 1, -2, 2), sample(name, n, 2, -2, 2), empty(name, (5, n))
    launch(rms_norm_kernel, (5,), x, w, y, n, n, 1e-6, BLOCK=triton.next_power_of_2(n))
    v = x.values.astype(np.float64)
    expected = v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-6) * w.values
    near(y, expected, {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}[name])


@triton.jit
def rope_kernel(q_ptr, cos_ptr, sin_ptr, out_ptr, seq, D: tl.constexpr, INTERLEAVED: tl.constexpr):
    row = tl.program_id(0)
    half = tl.arange(0, D // 2)
    cos = tl.load(cos_ptr + (row % seq) * (D // 2) + half)
    sin = tl.load(sin_ptr + (row % seq) * (D // 2) + half)
    if INTERLEAVED:
        q = tl.load(q_ptr + row * D + tl.arange(0, D))
        a, b = tl.split(tl.reshape(q, (D // 2, 2)))
        tl.store(out_ptr + row * D + tl.arange(0, D), tl.interleave(a * cos - b * sin, b * cos + a * sin))
    else:
        a = tl.load(q_ptr + row * D + half)
        b = tl.load(q_ptr + row * D + half + D // 2)
        tl.store(out_ptr + row * D + half, a * cos - b * sin)
        tl.store(out_ptr + row * D + half + D // 2, b * cos + a * sin)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(launch, interleaved):
    q, angle = normal((12, 32)), normal((6, 16), 1)
    out = np.full_like(q, 7)
    launch(rope_kernel, (12,), q, np.cos(angle), np.sin(angle), out, 6, D=32, INTERLEAVED=interleaved)
    pairs = q.reshape(12, 16, 2).transpose(2, 0, 1) if interleaved else q.reshape(12, 2, 16).transpose(1, 0, 2)
    turned = (pairs[0] + 1j * pairs[1]) * np.exp(1j * np.concatenate([angle, angle]))
    expected = np.stack([turned.real, turned.imag], axis=2 if interleaved else 1).reshape(12, 32)
    near(out, expected)


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476))


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def gated_kernel(x_ptr, y_ptr, n, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in tl.range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        gate = tl.load(x_ptr + row * 2 * n + cols, cols < n).to(tl.float32)
        up = tl.load(x_ptr + row * 2 * n + n + cols, cols < n)
        tl.store(y_ptr + row * n + cols, ACTIVATION(gate) * up, cols < n)


@pytest.mark.parametrize("activation", [gelu, silu])
def test_gated_linear_unit(launch, activation):
    x, y = normal((3, 2, 77)), empty("float32", (3, 77))
    launch(gated_kernel, (3,), x, y, 77, ACTIVATION=activation, BLOCK=32)
    g = x[:, 0].astype(np.float64)
    erf = np.vectorize(math.erf)
    expected = (0.5 * g * (1 + erf(g / 2**0.5)) if activation is gelu else g / (1 + np.exp(-g))) * x[:, 1]
    near(y, expected)


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * n
    y_ptr += row * n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    var = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
        x = tl.where(cols < n, x - mean, 0.0)
        var += x * x
    rstd = 1 / tl.sqrt(tl.sum(var, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, n, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < n
        w, b = tl.load(w_ptr + cols, mask=mask), tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=mask)


def test_layer_norm_bfloat16(launch):
    x, w, b = (
        sample("bfloat16", (4, 300), 1, -3, 3),
        sample("bfloat16", 300, 2, -1, 1),
        sample("bfloat16", 300, 3, -1, 1),
    )
    y, mean, rstd = empty("bfloat16", (4, 300)), empty("float32", 4), empty("float32", 4)
    launch(layer_norm_kernel, (4,), x, w, b, y, mean, rstd, 300, 1e-5, BLOCK=128)
    v = x.values.astype(np.float64)
    m, s = v.mean(1), 1 / np.sqrt(v.var(1) + 1e-5)
    near(mean, m)
    near(rstd, s)
    near(y, (v - m[:, None]) * s[:, None] * w.values + b.values, 1e-2, 1e-2)


# Losses and optimisers ------------------------------------------------------------------------------------------------


@triton.jit
def cross_entropy_kernel(
    logits,
    labels,
    loss,
    lse_ptr,
    n_cols,
    ignore_index,
    smoothing: tl.constexpr,
    SCALE_GRAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    logits += row * n_cols
    label = tl.load(labels + row)
    if label == ignore_index:
        for i in range(0, n_cols, BLOCK):
            tl.store(logits + i + tl.arange(0, BLOCK), 0.0, mask=i + tl.arange(0, BLOCK) < n_cols)
        tl.store(loss + row, 0.0)
        tl.store(lse_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    total = 0.0
    picked = tl.load(logits + label)
    for i in range(0, n_cols, BLOCK):
        cols = i + tl.arange(0, BLOCK)
        x = tl.load(logits + cols, mask=cols < n_cols, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(x))
        if smoothing > 0:
            total += tl.sum(tl.where(cols < n_cols, x, 0.0))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    tl.debug_barrier()
    for i in range(0, n_cols, BLOCK):
        cols = i + tl.arange(0, BLOCK)
        x = tl.load(logits + cols, mask=cols < n_cols, other=float("-inf"))
        p = tl.exp(x - lse) - smoothing / n_cols
        p = tl.where(cols == label, p - (1 - smoothing), p)
        tl.store(logits + cols, p * SCALE_GRAD, mask=cols < n_cols)
    value = lse - picked
    if smoothing > 0:
        value = (1 - smoothing) * value + smoothing * (lse - total / n_cols)
    tl.store(loss + row, value)
    tl.store(lse_ptr + row, lse)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", [1000, 1024])
def test_cross_entropy_in_place(launch, smoothing, vocabulary):
    x = normal((5, vocabulary)) * 5
    labels = np.array([0, vocabulary - 1, -100, 7, 511], np.int64)
    grad, loss, lse = x.copy(), empty("float32", 5), empty("float32", 5)
    launch(
        cross_entropy_kernel,
        (5,),
        grad,
        labels,
        loss,
        lse,
        vocabulary,
        -100,
        smoothing=smoothing,
        SCALE_GRAD=0.25,
        BLOCK=256,
    )
    v = x.astype(np.float64)
    full = np.log(np.exp(v).sum(1))
    log_p = v - full[:, None]
    onehot = np.eye(vocabulary)[np.maximum(labels, 0)]
    target = onehot * (1 - smoothing) + smoothing / vocabulary
    keep = labels >= 0
    near(loss, np.where(keep, -(log_p * target).sum(1), 0))
    near(lse, np.where(keep, full, 0))
    near(grad, np.where(keep[:, None], (np.exp(log_p) - target) * 0.25, 0))


@triton.jit
def adam_kernel(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, beta1, beta2, eps, decay, step, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p, g = tl.load(p_ptr + at, mask=mask), tl.load(g_ptr + at, mask=mask).to(tl.float32)
    m, v = tl.load(m_ptr + at, mask=mask), tl.load(v_ptr + at, mask=mask)
    p *= 1 - lr * decay
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - tl.exp2(step * tl.log2(beta1)))
    v_hat = v / (1 - tl.exp2(step * tl.log2(beta2)))
    tl.store(p_ptr + at, p - lr * m_hat / (tl.sqrt(v_hat) + eps), mask=mask)
    tl.store(m_ptr + at, m, mask=mask)
    tl.store(v_ptr + at, v, mask=mask)


def test_adamw_in_place(launch):
    p, g, m, v = normal(1000), sample("float16", 1000, 5, -1, 1), normal(1000, 2), np.abs(normal(1000, 3))
    before = [a.astype(np.float64) for a in (p, g.values, m, v)]
    launch(adam_kernel, (triton.cdiv(1000, 256),), p, g, m, v, 1000, 1e-3, 0.9, 0.999, 1e-8, 0.01, 3, BLOCK=256)
    p0, g0, m0, v0 = before
    m1, v1 = 0.9 * m0 + 0.1 * g0, 0.999 * v0 + 0.001 * g0 * g0
    near(m, m1)
    near(v, v1)
    near(p, p0 * (1 - 1e-5) - 1e-3 * (m1 / (1 - 0.9**3)) / (np.sqrt(v1 / (1 - 0.999**3)) + 1e-8), 1e-4)


# Quantisation ---------------------------------------------------------------------------------------------------------


@triton.jit
def quantise_rows_kernel(x_ptr, q_ptr, scale_ptr, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, cols < n, 0.0)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-12) / LARGEST
    tl.store(scale_ptr + row, scale)
    tl.store(q_ptr + row * n + cols, tl.clamp(x / scale, -LARGEST, LARGEST).to(q_ptr.dtype.element_ty), cols < n)


@pytest.mark.parametrize("name, largest", [("float8e4nv", 448.0), ("float8e5", 57344.0), ("int8", 127.0)])
def test_quantise_rows(launch, name, largest):
    x = normal((6, 100))
    x[3] = 0
    q, scale = empty(name, (6, 100)), empty("float32", 6)
    launch(quantise_rows_kernel, (6,), x, q, scale, 100, LARGEST=largest, BLOCK=128)
    near(scale, np.maximum(np.abs(x).max(1), 1e-12) / largest, 1e-6, 0)
    step = 1 if name == "int8" else np.maximum(np.abs(q.values) * 2.0 ** (-3 if name == "float8e4nv" else -2), 1e-2)
    with np.errstate(invalid="ignore"):
        assert (np.abs(q.values - x / scale.raw[:, None]) <= step * 1.001).all()


@triton.jit
def int4_matmul_kernel(
    a_ptr,
    b_ptr,
    scales_ptr,
    zeros_ptr,
    c_ptr,
    M,
    N,
    K,
    GROUP: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """b: int32 [K // 8, N], eight unsigned nibbles a word along K; scales float16, zeros packed along N."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rk = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        inside = (rk[:, None] < K) & (rn[None, :] < N)
        packed = tl.load(b_ptr + (rk[:, None] // 8) * N + rn[None, :], mask=inside, other=0)
        group = rk // GROUP
        scale = tl.load(scales_ptr + group[:, None] * N + rn[None, :], mask=inside, other=0.0)
        zero = tl.load(zeros_ptr + group[:, None] * (N // 8) + rn[None, :] // 8, mask=inside, other=0)
        zero = (zero >> ((rn[None, :] % 8) * 4)) & 0xF
        b = (((packed >> ((rk[:, None] % 8) * 4)) & 0xF) - zero).to(tl.float16) * scale
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def test_packed_int4_matmul(launch):
    M, N, K, group = 20, 40, 96, 32
    rng = np.random.default_rng(0)
    a = sample("float16", (M, K), 0, -1, 1)
    b, z = rng.integers(0, 16, (K, N)), rng.integers(0, 16, (K // group, N))
    s = sample("float16", (K // group, N), 3, 0, 0.25)
    shifts = 4 * np.arange(8)
    packed = (b.reshape(K // 8, 8, N) << shifts[None, :, None]).sum(1).astype(np.uint32).view(np.int32)
    zeros = (z.reshape(-1, N // 8, 8) << shifts).sum(2).astype(np.uint32).view(np.int32)
    c = empty("float32", (M, N))
    launch(int4_matmul_kernel, (2, 3), a, packed, s, zeros, c, M, N, K, GROUP=group, BM=16, BN=16, BK=32)
    weights = ((b - z.repeat(group, 0)) * s.values.repeat(group, 0).astype(np.float64)).astype(np.float16)
    near(c, a.values.astype(np.float64) @ weights.astype(np.float64), 1e-3, 1e-3)


# Matrix products ------------------------------------------------------------------------------------------------------


@triton.jit
def grouped_order(pid, num_m, num_n, GROUP: tl.constexpr):
    in_group = GROUP * num_n
    first = pid // in_group * GROUP
    size = min(num_m - first, GROUP)
    return first + (pid % in_group) % size, (pid % in_group) // size


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = grouped_order(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    pid_k = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = pid_k * BK + tl.arange(0, BK)
    a_ptrs = a_ptr + (rm % M)[:, None] * sam + rk[None, :] * sak
    b_ptrs = b_ptr + rk[:, None] * sbk + (rn % N)[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        left = K - k * BK * SPLIT
        a = tl.load(a_ptrs, mask=rk[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < left, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * SPLIT * sak
        b_ptrs += BK * SPLIT * sbk
    c_ptrs = c_ptr + rm[:, None] * scm + rn[None, :] * scn
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT == 1:
        tl.store(c_ptrs, acc, mask=mask)
    else:
        tl.atomic_add(c_ptrs, acc, mask=mask)


@pytest.mark.parametrize("split", [1, 4])
@pytest.mark.parametrize("m, n, k", [(37, 50, 100), (1, 1, 1), (64, 16, 200)])
def test_split_k_matmul_of_a_transposed_operand(launch, split, m, n, k):
    a, bt, c = sample("float16", (m, k), 1, -1, 1), sample("float16", (n, k), 2, -1, 1), np.zeros((m, n), np.float32)
    grid = (triton.cdiv(m, 16) * triton.cdiv(n, 16), split)
    launch(split_k_kernel, grid, a, bt, c, m, n, k, k, 1, 1, k, n, 1, BM=16, BN=16, BK=16, SPLIT=split, GROUP=2)
    near(c, a.values.astype(np.float64) @ bt.values.T.astype(np.float64), 1e-3, 1e-3)


@triton.jit
def grouped_gemm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    offsets_ptr,
    groups,
    N,
    K,
    PROGRAMS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Rows offsets[g]..offsets[g + 1] of a times b[g]; persistent programs walk over all tiles."""
    tile = tl.program_id(0)
    seen = 0
    tiles_n = tl.cdiv(N, BN)
    for g in range(groups):
        begin, end = tl.load(offsets_ptr + g), tl.load(offsets_ptr + g + 1)
        count = tl.cdiv(end - begin, BM) * tiles_n
        while tile >= seen and tile < seen + count:
            local = tile - seen
            rm = begin + local // tiles_n * BM + tl.arange(0, BM)
            rn = local % tiles_n * BN + tl.arange(0, BN)
            rk = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, K, BK):
                a = tl.load(
                    a_ptr + rm[:, None] * K + (k + rk)[None, :], (rm < end)[:, None] & (k + rk < K)[None, :], 0.0
                )
                b = tl.load(
                    b_ptr + g * N * K + (k + rk)[:, None] * N + rn[None, :],
                    (k + rk < K)[:, None] & (rn < N)[None, :],
                    0.0,
                )
                acc = tl.dot(a, b, acc, input_precision="ieee")
            tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, (rm < end)[:, None] & (rn < N)[None, :])
            tile += PROGRAMS
        seen += count


@pytest.mark.parametrize("sizes", [[5, 0, 17, 40], [0, 0, 0, 1], [16, 16, 16, 16]])
def test_grouped_gemm(launch, sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    a, b = normal((offsets[-1], 24)), normal((4, 24, 20), 1)
    c = empty("float32", (int(offsets[-1]), 20))
    launch(grouped_gemm_kernel, (3,), a, b, c, offsets, 4, 20, 24, PROGRAMS=3, BM=16, BN=16, BK=16)
    expected = np.concatenate([a[offsets[g] : offsets[g + 1]] @ b[g] for g in range(4)])
    near(c, expected, 1e-3, 1e-4)


# Attention ------------------------------------------------------------------------------------------------------------


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, cu_seqlens, scale, H, WINDOW: tl.constexpr, CAUSAL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Sequences of different lengths packed one after the other: [total, H, D]."""
    head, batch = tl.program_id(1), tl.program_id(2)
    begin = tl.load(cu_seqlens + batch)
    length = tl.load(cu_seqlens + batch + 1) - begin
    start_m = tl.program_id(0) * BM
    if start_m >= length:
        return
    rm, d = start_m + tl.arange(0, BM), tl.arange(0, D)
    base = begin * H * D + head * D
    q = tl.load(q_ptr + base + rm[:, None] * H * D + d[None, :], mask=rm[:, None] < length, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    high = tl.minimum(length, start_m + BM) if CAUSAL else length
    low = 0
    if WINDOW > 0:
        low = tl.maximum(0, (start_m - WINDOW) // BN * BN)
    for start_n in tl.range(low, high, BN, num_stages=2):
        rn = start_n + tl.arange(0, BN)
        k = tl.load(k_ptr + base + rn[None, :] * H * D + d[:, None], mask=rn[None, :] < length, other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        keep = rn[None, :] < length
        if CAUSAL:
            keep &= rn[None, :] <= rm[:, None]
        if WINDOW > 0:
            keep = keep and (rm[:, None] - rn[None, :] < WINDOW)
        s = tl.where(keep, s, -1.0e30)
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.where(keep, tl.exp2(s - m_new[:, None]), 0.0)
        alpha = tl.exp2(m - m_new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + base + rn[:, None] * H * D + d[None, :], mask=rn[:, None] < length, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        m = m_new
    tl.store(o_ptr + base + rm[:, None] * H * D + d[None, :], acc / total[:, None], mask=rm[:, None] < length)
    tl.store(lse_ptr + (begin + rm) * H + head, m / 1.4426950408889634 + tl.log(total), mask=rm < length)


def attention_reference(q, k, v, scale, causal, window):
    s = q.astype(np.float64) @ k.T.astype(np.float64) * scale
    i, j = np.arange(len(q))[:, None], np.arange(len(k))[None, :]
    keep = ((j <= i) | (not causal)) & ((i - j < window) | (window == 0))
    s = np.where(keep, s, -np.inf)
    lse = np.log(np.exp(s).sum(1))
    p = np.exp(s - lse[:, None])
    return p @ v, lse, p


@pytest.mark.parametrize("causal, window", [(False, 0), (True, 0), (True, 9)])
def test_attention_over_packed_sequences(launch, causal, window):
    lengths, H, D = [3, 40, 1, 17], 2, 16
    cu = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    q, k, v = (normal((61, H, D), s) for s in range(3))
    o, lse = empty("float32", (61, H, D)), empty("float32", (61, H))
    launch(attention_kernel, (3, H, 4), q, k, v, o, lse, cu, 0.25, H, WINDOW=window, CAUSAL=causal, BM=16, BN=16, D=D)
    for b in range(4):
        part = slice(cu[b], cu[b + 1])
        for h in range(H):
            expected, total, _ = attention_reference(q[part, h], k[part, h], v[part, h], 0.25, causal, window)
            near(o.raw[part, h], expected)
            near(lse.raw[part, h], total)


@triton.jit
def attention_backward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    T,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
):
    start_n = tl.program_id(0) * BN
    rn, d = start_n + tl.arange(0, BN), tl.arange(0, D)
    at_n, mask_n = rn[:, None] * D + d[None, :], rn[:, None] < T
    k, v = tl.load(k_ptr + at_n, mask_n, 0.0), tl.load(v_ptr + at_n, mask_n, 0.0)
    dk, dv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for start_m in range(start_n // BM * BM, T, BM):
        rm = start_m + tl.arange(0, BM)
        at_m, mask_m = rm[:, None] * D + d[None, :], rm[:, None] < T
        q, do = tl.load(q_ptr + at_m, mask_m, 0.0), tl.load(do_ptr + at_m, mask_m, 0.0)
        lse, delta = tl.load(lse_ptr + rm, rm < T, 0.0), tl.load(delta_ptr + rm, rm < T, 0.0)
        pt = tl.exp(tl.dot(k, tl.trans(q), input_precision="ieee") * scale - lse[None, :])
        pt = tl.where((rm[None, :] >= rn[:, None]) & (rm[None, :] < T), pt, 0.0)
        dv += tl.dot(pt, do, input_precision="ieee")
        dst = pt * (tl.dot(v, tl.trans(do), input_precision="ieee") - delta[None, :]) * scale
        dk += tl.dot(dst, q, input_precision="ieee")
        tl.atomic_add(dq_ptr + at_m, tl.dot(tl.trans(dst), k, input_precision="ieee"), mask_m)
    tl.store(dk_ptr + at_n, dk, mask_n)
    tl.store(dv_ptr + at_n, dv, mask_n)


@pytest.mark.parametrize("T, bm, bn", [(40, 16, 16), (33, 32, 16), (5, 16, 32)])
def test_causal_attention_backward(launch, T, bm, bn):
    q, k, v, do = (normal((T, 16), s) for s in range(4))
    o, lse, p = attention_reference(q, k, v, 0.25, True, 0)
    delta = (do * o).sum(1)
    dq, dk, dv = np.zeros_like(q), np.empty_like(q), np.empty_like(q)
    launch(
        attention_backward_kernel, (triton.cdiv(T, bn),), q, k, v, do, lse.astype(np.float32), delta.astype(np.float32),
        dq, dk, dv, T, 0.25, BM=bm, BN=bn, D=16,
    )  # fmt: skip
    ds = p * (do @ v.T - delta[:, None]) * 0.25
    near(dv, p.T @ do, 1e-3, 1e-4)
    near(dq, ds @ k, 1e-3, 1e-4)
    near(dk, ds.T @ q, 1e-3, 1e-4)


@triton.jit
def paged_attention_kernel(
    q_ptr,
    k_cache,
    v_cache,
    tables,
    lengths,
    o_ptr,
    max_pages,
    scale,
    Q_PER_KV: tl.constexpr,
    PAGE: tl.constexpr,
    D: tl.constexpr,
    KV: tl.constexpr,
):
    """One new token a sequence; caches [pages, PAGE, KV, D]; grouped query heads."""
    seq, kv = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + seq)
    heads = kv * Q_PER_KV + tl.arange(0, Q_PER_KV)
    d, slot = tl.arange(0, D), tl.arange(0, PAGE)
    q = tl.load(q_ptr + (seq * KV * Q_PER_KV + heads)[:, None] * D + d[None, :]) * scale
    m = tl.full([Q_PER_KV], float("-inf"), tl.float32)
    total = tl.zeros([Q_PER_KV], tl.float32)
    acc = tl.zeros([Q_PER_KV, D], tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        number = tl.load(tables + seq * max_pages + page).to(tl.int64)
        at = ((number * PAGE + slot)[:, None] * KV + kv) * D + d[None, :]
        valid = page * PAGE + slot < length
        k = tl.load(k_cache + at, mask=valid[:, None], other=0.0)
        s = tl.sum(q[:, None, :] * k[None, :, :], axis=2)
        s = tl.where(valid[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m - m_new)
        total = total * alpha + tl.sum(p, axis=1)
        v = tl.load(v_cache + at, mask=valid[:, None], other=0.0)
        acc = acc * alpha[:, None] + tl.sum(p[:, :, None] * v[None, :, :], axis=1)
        m = m_new
    tl.store(o_ptr + (seq * KV * Q_PER_KV + heads)[:, None] * D + d[None, :], acc / total[:, None])


def test_paged_attention(launch):
    rng = np.random.default_rng(4)
    lengths, kv, group, page, d = np.array([1, 13, 8], np.int32), 2, 4, 4, 8
    tables = rng.permutation(12).reshape(3, 4).astype(np.int32)
    q, k, v = normal((3, kv * group, d)), normal((12, page, kv, d), 1), normal((12, page, kv, d), 2)
    o = empty("float32", q.shape)
    launch(paged_attention_kernel, (3, kv), q, k, v, tables, lengths, o, 4, 0.3, Q_PER_KV=group, PAGE=page, D=d, KV=kv)
    for s, n in enumerate(lengths):
        keys, values = (c[tables[s]].reshape(-1, kv, d)[:n] for c in (k, v))
        for h in range(kv * group):
            p = np.exp(keys[:, h // group] @ q[s, h] * 0.3)
            near(o.raw[s, h], p / p.sum() @ values[:, h // group])


# Routing, compaction, segments ----------------------------------------------------------------------------------------


@triton.jit
def route_kernel(logits, weights, experts, counts, E: tl.constexpr, K: tl.constexpr):
    token = tl.program_id(0)
    e = tl.arange(0, E)
    x = tl.load(logits + token * E + e)
    x = tl.exp(x - tl.max(x, 0))
    x /= tl.sum(x, 0)
    picked = 0.0
    for k in tl.static_range(K):
        best, which = tl.max(x, 0, return_indices=True)
        picked += best
        tl.store(weights + token * K + k, best)
        tl.store(experts + token * K + k, which)
        tl.atomic_add(counts + which, 1)
        x = tl.where(e == which, -1.0, x)
    for k in tl.static_range(K):
        tl.store(weights + token * K + k, tl.load(weights + token * K + k) / picked)


def test_top_k_routing(launch):
    x = normal((50, 16))
    w, ids, counts = empty("float32", (50, 3)), empty("int32", (50, 3)), np.zeros(16, np.int32)
    launch(route_kernel, (50,), x, w, ids, counts, E=16, K=3)
    order = np.argsort(-x, axis=1, kind="stable")[:, :3]
    assert (ids.raw == order).all()
    assert (counts == np.bincount(order.ravel(), minlength=16)).all()
    p = np.exp(np.take_along_axis(x, order, 1))
    near(w, p / p.sum(1, keepdims=True))


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    written = 0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, at < n, 0)
        keep = x > 0
        place = written + tl.cumsum(keep.to(tl.int32), 0) - 1
        tl.store(out_ptr + place, x, mask=keep)
        written += tl.sum(keep.to(tl.int32), 0)
    tl.store(count_ptr, written)


@pytest.mark.parametrize("block", [16, 64, 100])
def test_stream_compaction_in_place(launch, block):
    x = np.random.default_rng(0).integers(-5, 6, 333).astype(np.int16)
    expected, count = x[x > 0], empty("int32", 1)
    if block == 100:
        buffer = x.copy()
        launch(compact_kernel, (1,), buffer, buffer, count, 333, BLOCK=128)
    else:
        buffer = np.zeros_like(x)
        launch(compact_kernel, (1,), x, buffer, count, 333, BLOCK=block)
    assert count.raw[0] == len(expected)
    assert (buffer[: len(expected)] == expected).all()


@triton.jit
def add_within_segment(flag_a, a, flag_b, b):
    return flag_a | flag_b, tl.where(flag_b != 0, b, a + b)


@triton.jit
def segment_sum_kernel(x_ptr, id_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Segmented scan inside the block, then one atomic a segment and block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, at < n, 0.0)
    here = tl.load(id_ptr + at, at < n, -1)
    before = tl.load(id_ptr + at - 1, (at > 0) & (at <= n), -1)
    after = tl.load(id_ptr + at + 1, at + 1 < n, -2)
    _, total = tl.associative_scan(((here != before).to(tl.int32), x), 0, add_within_segment)
    last = (here != after) | (tl.arange(0, BLOCK) == BLOCK - 1)
    tl.atomic_add(out_ptr + here, total, mask=last & (at < n), sem="relaxed")


def test_segment_sum(launch):
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, 20, 300)).astype(np.int64)
    x, out = rng.integers(-9, 9, 300).astype(np.float32), np.zeros(20, np.float32)
    launch(segment_sum_kernel, (5,), x, ids, out, 300, BLOCK=64)
    expected = np.zeros(20)
    np.add.at(expected, ids, x)
    assert (out == expected).all()


# Signal and image -----------------------------------------------------------------------------------------------------


@triton.jit
def mandelbrot_kernel(out, width, height, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = (at % width).to(tl.float32) * 3.0 / width - 2.0
    cy = (at // width).to(tl.float32) * 2.0 / height - 1.0
    x = tl.zeros_like(cx)
    y = tl.zeros_like(cy)
    count = tl.zeros([BLOCK], tl.int32)
    step = 0
    alive = tl.full([BLOCK], 1, tl.int1)
    while (step < limit) & (tl.sum(alive.to(tl.int32)) > 0):
        x, y = tl.where(alive, x * x - y * y + cx, x), tl.where(alive, 2 * x * y + cy, y)
        alive = alive & (x * x + y * y <= 4.0)
        count += alive.to(tl.int32)
        step += 1
    tl.store(out + at, count, at < width * height)


def test_mandelbrot(launch):
    out = empty("int32", (20, 30))
    launch(mandelbrot_kernel, (triton.cdiv(600, 128),), out, 30, 20, 25, BLOCK=128, enable_fp_fusion=False)
    at = np.arange(600)
    c = (at % 30 * 3 / 30 - 2) + 1j * (at // 30 * 2 / 20 - 1)
    z, count, alive = np.zeros(600, complex), np.zeros(600, int), np.ones(600, bool)
    for _ in range(25):
        z = np.where(alive, z * z + c, z)
        alive &= np.abs(z) <= 2
        count += alive
    assert (out.raw.ravel() == count).mean() > 0.98  # points on the very border may round either way


@triton.jit
def fft_kernel(re_ptr, im_ptr, N: tl.constexpr, LOG: tl.constexpr):
    """Radix 2, decimation in frequency by reshapes; the result is in bit-reversed order and put right by a scatter."""
    i = tl.arange(0, N)
    re, im = tl.load(re_ptr + i), tl.load(im_ptr + i)
    for s in tl.static_range(LOG):
        M: tl.constexpr = N >> (s + 1)
        ar, br = tl.split(tl.permute(tl.reshape(re, (N // (2 * M), 2, M)), (0, 2, 1)))
        ai, bi = tl.split(tl.permute(tl.reshape(im, (N // (2 * M), 2, M)), (0, 2, 1)))
        angle = -3.141592653589793 * tl.arange(0, M)[None, :].to(tl.float32) / M
        c, w = tl.cos(angle), tl.sin(angle)
        dr, di = ar - br, ai - bi
        re = tl.reshape(tl.permute(tl.join(ar + br, dr * c - di * w), (0, 2, 1)), (N,))
        im = tl.reshape(tl.permute(tl.join(ai + bi, dr * w + di * c), (0, 2, 1)), (N,))
    place = tl.zeros((N,), tl.int32)
    for s in tl.static_range(LOG):
        place |= ((i >> s) & 1) << (LOG - 1 - s)
    tl.store(re_ptr + place, re)
    tl.store(im_ptr + place, im)


@pytest.mark.parametrize("log", [1, 4, 7])
def test_fft_in_place(launch, log):
    n = 1 << log
    re, im = normal(n), normal(n, 1)
    expected = np.fft.fft(re + 1j * im)
    launch(fft_kernel, (1,), re, im, N=n, LOG=log)
    near(re, expected.real, 1e-3, 1e-3)
    near(im, expected.imag, 1e-3, 1e-3)


@triton.jit
def equalise_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    counts = tl.zeros([256], tl.int32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        counts += tl.histogram(tl.load(x_ptr + at, at < n, 0).to(tl.int32), 256, mask=at < n)
    total = tl.cumsum(counts, 0)
    first = tl.min(tl.where(counts > 0, total, n), 0)
    table = ((total - first).to(tl.float32) * 255 / tl.maximum(n - first, 1) + 0.5).to(tl.int32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, at < n, 0).to(tl.int32)
        tl.store(out_ptr + at, tl.gather(table, x, 0).to(tl.uint8), at < n)


def test_histogram_equalisation(launch):
    x = np.clip(np.random.default_rng(0).normal(100, 20, (30, 33)), 0, 255).astype(np.uint8)
    out = empty("uint8", x.shape)
    launch(equalise_kernel, (1,), x, out, x.size, BLOCK=256)
    total = np.cumsum(np.bincount(x.ravel(), minlength=256))
    first = total[x.min()]
    table = np.floor((total - first).astype(np.float32) * np.float32(255) / (x.size - first) + np.float32(0.5))
    assert np.abs(out.raw.astype(int) - table[x]).max() <= 1


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, y_ptr, C, H, W, O, OH, OW, STRIDE: tl.constexpr, PAD: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    BP: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Implicit product: pixels by output channels, nothing unrolled in memory. NCHW, weights [O, C, R, S]."""
    batch = tl.program_id(2)
    p, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.program_id(1) * BO + tl.arange(0, BO)
    oh, ow = p // OW, p % OW
    acc = tl.zeros((BP, BO), tl.float32)
    for r in tl.static_range(R):
        for s in tl.static_range(S):
            h, w = oh * STRIDE - PAD + r, ow * STRIDE - PAD + s
            inside = (p < OH * OW) & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            for c0 in range(0, C, BC):
                c = c0 + tl.arange(0, BC)
                x = tl.load(
                    x_ptr + ((batch * C + c)[None, :] * H + h[:, None]) * W + w[:, None],
                    inside[:, None] & (c < C)[None, :],
                    0.0,
                )
                k = tl.load(
                    w_ptr + ((o[None, :] * C + c[:, None]) * R + r) * S + s, (c < C)[:, None] & (o < O)[None, :], 0.0
                )
                acc = tl.dot(x, k, acc, input_precision="ieee")
    tl.store(y_ptr + (batch * O + o)[None, :] * OH * OW + p[:, None], acc, (p < OH * OW)[:, None] & (o < O)[None, :])


@pytest.mark.parametrize("stride, pad", [(1, 1), (2, 0)])
def test_convolution(launch, stride, pad):
    x, w = normal((2, 5, 9, 11)), normal((7, 5, 3, 2), 1)
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::stride, ::stride]
    expected = np.einsum("nchwrs,ocrs->nohw", view, w)
    y = empty("float32", expected.shape)
    oh, ow = expected.shape[2:]
    launch(
        conv2d_kernel, (triton.cdiv(oh * ow, 32), 1, 2), x, w, y, 5, 9, 11, 7, oh, ow,
        STRIDE=stride, PAD=pad, R=3, S=2, BP=32, BO=16, BC=16,
    )  # fmt: skip
    near(y, expected, 1e-3, 1e-4)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, sxm, sxn, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_block_ptr(
        x_ptr, (M, N), (sxm, sxn), (tl.program_id(0) * BM, tl.program_id(1) * BN), (BM, BN), (1, 0)
    )
    target = tl.make_block_ptr(y_ptr, (N, M), (M, 1), (tl.program_id(1) * BN, tl.program_id(0) * BM), (BN, BM), (1, 0))
    tl.store(target, tl.trans(tl.load(source, boundary_check=(0, 1), padding_option="zero")), boundary_check=(0, 1))


@pytest.mark.parametrize("name", ["int8", "int1", "bfloat16", "float64"])
@pytest.mark.parametrize("m, n", [(1, 70), (33, 17)])
def test_block_transpose(launch, name, m, n):
    x, y = sample(name, (m, n)), empty(name, (n, m))
    launch(transpose_kernel, (triton.cdiv(m, 16), triton.cdiv(n, 32)), x, y, m, n, n, 1, BM=16, BN=32)
    assert (y.raw == x.raw.T).all()


# Numbers on their way to memory ---------------------------------------------------------------------------------------


@triton.jit
def minus_one_kernel(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, at < n, other=-1))
    tl.store(o + BLOCK, -2)


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_minus_one_fills_unsigned_memory(launch, name):
    x, o = np.arange(5).astype(name), empty(name, 9)
    launch(minus_one_kernel, (1,), x, o, 5, BLOCK=8)
    assert (o.raw == np.array([0, 1, 2, 3, 4, -1, -1, -1, -2]).astype(name)).all()


def kernel_of(folder, source):
    """The kernel ``k`` of a module with this text."""
    (folder / "generated.py").write_text("import triton, triton.language as tl\n\n@triton.jit\n" + source)
    spec = importlib.util.spec_from_file_location("generated", folder / "generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


def test_an_expression_of_900_terms(launch, tmp_path):
    x = np.ones(1, np.float32)
    launch(kernel_of(tmp_path, "def k(x):\n    a = tl.load(x)\n    tl.store(x, a" + " + a" * 899 + ")\n"), (1,), x)
    assert x[0] == 900


# Messages -------------------------------------------------------------------------------------------------------------


@triton.jit
def open_ended_kernel(x, *rest):
    pass


@triton.jit
def endless(n: tl.constexpr):
    return endless(n + 1)


@triton.jit
def endless_kernel(x):
    tl.store(x, endless(0))


def test_a_kernel_cannot_take_any_number_of_arguments(launch):
    with pytest.raises(
        TypeError, match=r"open_ended_kernel\(\) cannot be launched: a kernel has no \*rest; pass a tuple"
    ):
        launch(open_ended_kernel, (1,), np.zeros(4, np.float32), 1)


def test_only_functions_made_with_def_are_kernels():
    with pytest.raises(TypeError, match="got a lambda or an async function"):
        triton.jit(lambda x: x)


def test_endless_recursion_is_told_shortly():
    with pytest.raises(triton.CompilationError) as caught:
        endless_kernel[(1,)](np.zeros(4, np.float32))
    text = str(caught.value)
    assert text.endswith("endless: a jitted function must not call itself; use a loop")
    assert "more calls ..." in text and text.count("called from") < 12


@pytest.mark.parametrize("wrong", ["%n: i64", "%n: f16", "%n: ptr<i8>"])
def test_ir_text_is_verified(tmp_path, wrong):
    good = """module {
func @k(%x: ptr<i32>, %n: i32) {kernel = true} {
  %0 = constant {value = 16} : i32
  %1 = add %n, %0 : i32
  store %x, %1
  return
}
}
"""
    (tmp_path / "good.ttir").write_text(good)
    triton.compile(str(tmp_path / "good.ttir"))
    (tmp_path / "bad.ttir").write_text(good.replace("%n: i32", wrong))
    with pytest.raises(ValueError, match=r"bad\.ttir: @k: %0 = add %n, %1 : i32: "):
        triton.compile(str(tmp_path / "bad.ttir"))
