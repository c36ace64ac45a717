"""Cumulative sums, sorting, histograms."""

from __future__ import annotations

import numpy as np
from harness import Case, torch_module

import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x_ptr + at), BINS)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)


def cumsum(x, out):
    cumsum_kernel[(x.shape[0],)](x, out, N=x.shape[1])
    return out


def sort(x, out):
    sort_kernel[(x.shape[0],)](x, out, N=x.shape[1])
    return out


def histogram(x, out, block=8192):
    out[:] = 0
    histogram_kernel[(x.size // block,)](x, out, BLOCK=block, BINS=out.size)
    return out


def cases() -> list[Case]:
    torch = torch_module()
    rng = np.random.default_rng(0)
    found = []
    for rows, columns in ((1024, 1024), (64, 16384)):
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        sums = {"triton": lambda x=x, o=np.empty_like(x): cumsum(x, o), "numpy": lambda x=x: np.cumsum(x, axis=1)}
        if torch is not None:
            sums["torch"] = lambda tx=torch.from_numpy(x): torch.cumsum(tx, 1)
        found.append(Case("cumulative sum", f"{rows} x {columns} f32", sums, 1e-2, x.size, 8 * x.size))
    for rows, columns in ((1024, 256), (256, 1024)):
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        sorts = {"triton": lambda x=x, o=np.empty_like(x): sort(x, o), "numpy": lambda x=x: np.sort(x, axis=1)}
        if torch is not None:
            sorts["torch"] = lambda tx=torch.from_numpy(x): torch.sort(tx, 1)[0]
        found.append(Case("sort", f"{rows} x {columns} f32", sorts, 0.0, x.size, 8 * x.size))
    codes = rng.integers(0, 256, 1 << 20, dtype=np.int32)
    counts = {
        "triton": lambda o=np.empty(256, np.int32): histogram(codes, o),
        "numpy": lambda: np.bincount(codes, minlength=256),
    }
    if torch is not None:
        counts["torch"] = lambda t=torch.from_numpy(codes): torch.bincount(t, minlength=256)
    found.append(Case("histogram", "2^20 i32, 256 bins", counts, 0.0, codes.size, 4 * codes.size))
    return found
