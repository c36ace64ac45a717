"""Measures the kernels under the ``triton`` that this process imports; prints one JSON object. Started by
``run.py``."""

from __future__ import annotations

import json
import statistics
import sys
import time

import kernels
import torch

import triton
from triton.tools.tensor_descriptor import TensorDescriptor


def milliseconds(call, repeats: int = 30) -> float:
    """Median time on the GPU, the L2 cache flushed before each call."""
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def close(got: torch.Tensor, expected: torch.Tensor, bound: float) -> float:
    error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
    if not error < bound:
        raise AssertionError(f"relative error {error:g}, allowed {bound:g}")
    return error


def elementwise():
    n = (1 << 27) + 3
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    call = lambda: kernels.add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)  # noqa: E731
    yield (
        "vector add, 2^27+3 fp32",
        call,
        lambda: close(out, x + y, 1e-7),
        lambda: torch.add(x, y, out=out),
        12 * n,
        "TB/s",
    )
    r, c = 8192, 4000
    s = torch.randn(r, c, device="cuda", dtype=torch.float16)
    so = torch.empty_like(s)
    call = lambda: kernels.softmax_kernel[(r,)](so, s, c, c, BLOCK=4096, num_warps=8)  # noqa: E731
    yield (
        "softmax 8192x4000 fp16",
        call,
        lambda: close(so, torch.softmax(s.float(), 1), 1e-3),
        lambda: torch.softmax(s, 1),
        4 * r * c,
        "TB/s",
    )
    r, c = 8192, 5000
    v = torch.randn(r, c, device="cuda", dtype=torch.float16)
    w, b = torch.randn(c, device="cuda", dtype=torch.float16), torch.randn(c, device="cuda", dtype=torch.float16)
    vo, mean, rstd = torch.empty_like(v), torch.empty(r, device="cuda"), torch.empty(r, device="cuda")
    call = lambda: kernels.layer_norm_kernel[(r,)](v, vo, w, b, mean, rstd, c, c, 1e-5, BLOCK=2048, num_warps=8)  # noqa: E731
    expected = torch.nn.functional.layer_norm(v.float(), (c,), w.float(), b.float())
    yield (
        "layer norm 8192x5000 fp16",
        call,
        lambda: close(vo, expected, 1e-3),
        lambda: torch.layer_norm(v, (c,), w, b),
        4 * r * c,
        "TB/s",
    )


def products(sizes):
    for name, kind, n, config, *turned in sizes:
        dtype = getattr(torch, kind)
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        if turned:  # b with K contiguous
            b = b.t().contiguous().t()
        out = torch.empty(n, n, device="cuda", dtype=torch.float32 if kind == "float32" else torch.float16)
        bm, bn, bk, warps, stages = config

        def call(a=a, b=b, out=out, n=n, bm=bm, bn=bn, bk=bk, warps=warps, stages=stages):
            grid = (triton.cdiv(n, bm) * triton.cdiv(n, bn),)
            kernels.matmul_kernel[grid](
                a, b, out, n, n, n, n, 1, *b.stride(), n, 1,
                BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages,
            )  # fmt: skip

        def check(a=a, b=b, out=out):
            return close(out, a.float().double() @ b.float().double() if n <= 4096 else a.float() @ b.float(), 5e-3)

        other = (lambda a=a, b=b: a @ b) if "float8" not in kind else None
        yield name, call, check, other, 2 * n**3, "TFLOP/s"


def described_products():
    """Operands and result through descriptors made on the host."""
    n, bm, bn, bk = 8192, 128, 256, 64
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.empty_like(a)
    for turned in (False, True):
        boxes = ([bm, bk], [bn, bk] if turned else [bk, bn], [bm, bn])
        described = [TensorDescriptor.from_tensor(x, box) for x, box in zip((a, b, out), boxes, strict=True)]

        def call(described=described, turned=turned):
            kernels.descriptor_matmul_kernel[(triton.cdiv(n, bm) * triton.cdiv(n, bn),)](
                *described, n, n, n, BM=bm, BN=bn, BK=bk, GROUP=8, TURNED=turned, num_warps=8, num_stages=3
            )

        other = lambda turned=turned: a @ (b.T if turned else b)  # noqa: E731
        name = "matmul fp16 8192 descriptors" + (", b transposed" if turned else "")
        yield name, call, lambda other=other: close(out, other(), 5e-3), other, 2 * n**3, "TFLOP/s"


def attention():
    for d, causal in ((64, False), (128, True)):
        heads, length = 64, 4096
        q, k, v = (torch.randn(heads, length, d, device="cuda", dtype=torch.float16) for _ in range(3))
        out = torch.empty_like(q)

        def call(q=q, k=k, v=v, out=out, d=d, causal=causal):
            kernels.attention_kernel[(length // 128, heads)](
                q,
                k,
                v,
                out,
                d**-0.5,
                length,
                CAUSAL=causal,
                D=d,
                BM=128,
                BN=64,
                num_warps=4 if d == 64 else 8,
                num_stages=3,
            )

        step = torch.nn.functional.scaled_dot_product_attention
        other = lambda q=q, k=k, v=v, causal=causal: step(q[None], k[None], v[None], is_causal=causal)[0]  # noqa: E731
        name = f"attention fwd d={d}" + (" causal" if causal else "")
        flops = 4 * heads * length * length * d / (2 if causal else 1)
        yield name, call, lambda out=out, other=other: close(out, other(), 5e-3), other, flops, "TFLOP/s"


def launch_microseconds() -> float:
    tensors = [torch.zeros(16, device="cuda") for _ in range(5)]
    step = kernels.empty_kernel[(1,)]
    step(*tensors, 2, 3, 4, 5, 6)
    torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            step(*tensors, 2, 3, 4, 5, 6)
        times.append((time.perf_counter() - start) / 200)
        torch.cuda.synchronize()
    return statistics.median(times) * 1e6


def main(names: list[str]) -> None:
    sizes = [
        ("matmul fp16 8192", "float16", 8192, (128, 256, 64, 8, 3)),
        ("matmul bf16 4096", "bfloat16", 4096, (128, 256, 64, 8, 3)),
        ("matmul fp8 8192", "float8_e4m3fn", 8192, (128, 256, 128, 8, 3)),
        ("matmul fp8 8192, K contiguous", "float8_e4m3fn", 8192, (128, 256, 128, 8, 3), True),
        ("matmul tf32 4096", "float32", 4096, (128, 128, 32, 8, 3)),
        ("matmul tf32 4096, K contiguous", "float32", 4096, (128, 256, 32, 8, 3), True),
    ]
    found = {"triton": triton.__version__, "torch": torch.__version__, "rows": []}
    for group in (elementwise(), products(sizes), described_products(), attention()):
        for name, call, check, other, work, unit in group:
            if names and not any(n in name for n in names):
                continue
            row = {"name": name, "unit": unit}
            try:
                start = time.perf_counter()
                call()
                torch.cuda.synchronize()
                row["first call ms"] = (time.perf_counter() - start) * 1e3
                row["error"] = check()
                row["ms"] = milliseconds(call)
                row["rate"] = work / row["ms"] / 1e9
                if other is not None:
                    row["torch ms"] = milliseconds(other)
            except Exception as error:  # the row says what failed; the others still run
                row["failed"] = f"{type(error).__name__}: {error}"[:300]
            found["rows"].append(row)
    if not names or "launch" in names:
        found["launch us"] = launch_microseconds()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
