"""Matrix multiplication of any size, with programs ordered in groups of rows so that panels of B are reused from
cache."""

import common
import numpy as np

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 64, "GROUP": 8}),
        triton.Config({"BM": 128, "BN": 128, "BK": 128, "GROUP": 4}),
        triton.Config({"BM": 128, "BN": 256, "BK": 256, "GROUP": 4}),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid_m, pid_n = tl.swizzle2d(tl.program_id(0) // columns, tl.program_id(0) % columns, rows, columns, GROUP)
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = K - start
        a_tile = tl.load(a, mask=(m[:, None] < M) & (k[None, :] < left), other=0.0)
        b_tile = tl.load(b, mask=(k[:, None] < left) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a_tile, b_tile, acc)
        a += BK * stride_ak
        b += BK * stride_bk
    c = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def strides(x: np.ndarray) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(s // x.itemsize for s in x.strides)


def matmul(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    (m, k), n = a.shape, b.shape[1]
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)  # noqa: E731
    matmul_kernel[grid](a, b, c, m, n, k, *strides(a), *strides(b), *strides(c))
    return c


def run() -> list[common.Row]:
    rng = np.random.default_rng(0)
    rows = []
    for m, n, k in ((512, 512, 512), (500, 700, 300)):
        a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
        c = np.empty((m, n), dtype=np.float32)
        error = common.check("matmul", matmul(a, b, c), a.astype(np.float64) @ b, 1e-3)
        with_torch = None
        if common.torch is not None:
            ta, tb = common.torch.from_numpy(a), common.torch.from_numpy(b)
            with_torch = lambda ta=ta, tb=tb: ta @ tb
        row = common.compare(
            "matmul",
            f"{m} x {n} x {k} f32",
            error,
            lambda a=a, b=b, c=c: matmul(a, b, c),
            lambda a=a, b=b: a @ b,
            with_torch,
        )
        rows.append(row)
    return rows


if __name__ == "__main__":
    common.print_table(run())
