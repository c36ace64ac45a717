"""Matrix products: square fp32, bf16 and int8, batches of small ones; flash attention."""

from __future__ import annotations

import numpy as np
from attention import attention, attention_numpy
from harness import Case, torch_module
from matmul import matmul, matmul_kernel

import triton
import triton.language as tl


@triton.jit
def batched_kernel(a_ptr, b_ptr, c_ptr, batch, N: tl.constexpr, PER: tl.constexpr):
    first = tl.program_id(0) * PER
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for which in range(first, min(first + PER, batch)):
        at = which * N * N + i * N + j
        tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def batched(a, b, c, per=64):
    count, n, _ = a.shape
    batched_kernel[(triton.cdiv(count, per),)](a, b, c, count, N=n, PER=per)
    return c


def typed_matmul(a, b, c):
    """The example's kernel on torch tensors (bf16) or integer arrays."""
    (m, k), n = a.shape, b.shape[1]
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)  # noqa: E731
    strides = [s for x in (a, b, c) for s in (x.shape[1], 1)]
    matmul_kernel[grid](a, b, c, m, n, k, *strides)
    return c


@triton.jit
def int8_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def int8_matmul(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    int8_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 128))](a, b, c, m, n, k, BM=128, BN=128, BK=128)
    return c


def cases() -> list[Case]:
    torch = torch_module()
    rng = np.random.default_rng(0)
    found = []
    for n in (512, 1024, 2048):
        a, b = rng.standard_normal((2, n, n), dtype=np.float32)
        calls = {"triton": lambda a=a, b=b, c=np.empty_like(a): matmul(a, b, c), "numpy": lambda a=a, b=b: a @ b}
        if torch is not None:
            calls["torch"] = lambda ta=torch.from_numpy(a), tb=torch.from_numpy(b): ta @ tb
        found.append(Case("matmul", f"{n} f32", calls, 1e-3, 2 * n**3, 12 * n * n))
    if torch is not None:
        n = 1024
        a, b = (torch.randn(n, n).to(torch.bfloat16) for _ in range(2))
        calls = {
            "triton": lambda a=a, b=b, c=torch.empty_like(a): typed_matmul(a, b, c),
            "torch": lambda a=a, b=b: a @ b,
        }
        found.append(Case("matmul", f"{n} bf16", calls, 2e-2, 2 * n**3, 6 * n * n))
    n = 1024
    x, y = rng.integers(-128, 128, (2, n, n), dtype=np.int8)
    calls = {"triton": lambda x=x, y=y, c=np.empty((n, n), np.int32): int8_matmul(x, y, c)}
    if torch is not None:
        calls["torch"] = lambda tx=torch.from_numpy(x), ty=torch.from_numpy(y): torch._int_mm(tx, ty)
    found.append(Case("matmul", f"{n} int8", calls, 0.0, 2 * n**3, 6 * n * n))
    for n in (8, 16, 32, 64):
        count = (1 << 20) // (n * n)
        a, b = rng.standard_normal((2, count, n, n), dtype=np.float32)
        calls = {"triton": lambda a=a, b=b, c=np.empty_like(a): batched(a, b, c), "numpy": lambda a=a, b=b: a @ b}
        if torch is not None:
            calls["torch"] = lambda ta=torch.from_numpy(a), tb=torch.from_numpy(b): torch.bmm(ta, tb)
        found.append(Case("batched matmul", f"{count} x {n} f32", calls, 1e-3, 2 * count * n**3, 12 * a.size))
    for causal in (False, True):
        q, k, v = rng.standard_normal((3, 8, 1024, 64), dtype=np.float32)
        calls = {
            "triton": lambda a=(q, k, v, np.empty_like(q), causal): attention(*a),
            "numpy": lambda a=(q, k, v, causal): attention_numpy(*a),
        }
        if torch is not None:
            parts = [torch.from_numpy(x)[None] for x in (q, k, v)]
            step = torch.nn.functional.scaled_dot_product_attention
            calls["torch"] = lambda p=parts, c=causal, f=step: f(*p, is_causal=c)[0]
        flops = 4 * 8 * 1024 * 1024 * 64 / (2 if causal else 1)
        found.append(Case("attention" + (" causal" if causal else ""), "8 x 1024 x 64 f32", calls, 1e-3, flops))
    return found
