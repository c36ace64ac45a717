"""Programs that are clusters of thread blocks, programs put into clusters, cooperative grids, overlapping launches."""

import pytest

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0), reason="clusters need an sm_90 GPU"
)
CTAS = [2, 4, 8, 16]


@triton.jit
def many_kernel(x, y, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    s = tl.sort(v)
    tl.store(y + tl.arange(0, N), tl.cumsum(s, 0).sum(0) + tl.max(tl.trans(s), 0).sum(0))


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("shape", [(1, 4), (4, 4), (33, 17), (64, 128)])
def test_scan_sort_reduce_transpose(ctas, warps, shape):
    m, n = shape
    x = torch.randint(-1000, 1000, shape, dtype=torch.int32, device="cuda")
    y = torch.empty(n, dtype=torch.int32, device="cuda")
    many_kernel[(1,)](x, y, M=m, N=n, num_warps=warps, num_ctas=ctas)
    s = x.sort(1).values
    assert torch.equal(y, (s.cumsum(0).sum(0) + s.max(1).values.sum()).int())


@triton.jit
def row_kernel(x, y, total, n, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + i, e / tl.sum(e, 0), mask=i < n)
    tl.atomic_add(total, tl.num_programs(0))


@pytest.mark.parametrize("ctas", [1, *CTAS])
def test_a_row_of_a_softmax_spread_over_blocks(ctas):
    x = torch.randn(70, 9000, device="cuda")
    y, total = torch.empty_like(x), torch.zeros(1, dtype=torch.int32, device="cuda")
    for _ in range(2):
        row_kernel[(70,)](x, y, total, 9000, N=16384, num_ctas=ctas)
    torch.testing.assert_close(y, torch.softmax(x, 1))
    assert total.item() == 2 * 70 * 70  # scalar atomics act once for each program, and programs are counted as such


@triton.jit
def product_kernel(
    a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, N: tl.constexpr, TURNED: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (k + tl.arange(0, BK))[None, :])
        if TURNED:
            y = tl.trans(tl.load(b + n[:, None] * K + (k + tl.arange(0, BK))[None, :]))
        else:
            y = tl.load(b + (k + tl.arange(0, BK))[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize(
    "tile", [(128, 128, 64), (256, 128, 32), (64, 256, 64), (256, 256, 32), (16, 64, 32), (32, 16, 16)]
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_product(ctas, tile, turned, kind):
    m, n, k = 2 * tile[0], 2 * tile[1], 6 * tile[2]
    a, b = (torch.randn(s, device="cuda", dtype=getattr(torch, kind)) for s in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda")
    warps = 8 if tile[0] * tile[1] > 1 << 15 and ctas < 4 else 4
    product_kernel[(2, 2)](a, b.T.contiguous() if turned else b, c, k, *tile, n, turned, num_ctas=ctas, num_warps=warps)
    bound = 1e-3 if kind == "float16" else 0.2  # tf32
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=bound, atol=bound)


@triton.jit
def meet_kernel(x, arrived, n):
    """Every program waits for all: that ends only if all run at the same time."""
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < n:
        pass
    tl.store(x + tl.program_id(0), tl.program_id(0))


def test_cooperative_grid():
    n = torch.cuda.get_device_properties(0).multi_processor_count
    x, arrived = torch.zeros(n, dtype=torch.int32, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    for turn in (1, 2):
        meet_kernel[(n,)](x, arrived, turn * n, launch_cooperative_grid=True)
        torch.cuda.synchronize()
    assert torch.equal(x, torch.arange(n, dtype=torch.int32, device="cuda"))
    with pytest.raises(RuntimeError, match="the kernel cannot be launched: too many blocks in cooperative launch"):
        meet_kernel[(1 << 20,)](x, arrived, 0, launch_cooperative_grid=True)


@triton.jit
def first_kernel(x, n, B: tl.constexpr):
    gdc.gdc_launch_dependents()
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    for _ in range(200):
        v = v * 1.0001 + 0.5
    tl.store(x + i, v, mask=i < n)


@triton.jit
def second_kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    gdc.gdc_wait()
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_a_dependent_launch_overlaps_and_waits():
    n = 1 << 20
    x, y = torch.zeros(n, device="cuda"), torch.zeros(n, device="cuda")
    for _ in range(20):
        first_kernel[(n // 1024,)](x, n, B=1024, launch_pdl=True)
        second_kernel[(n // 1024,)](x, y, n, B=1024, launch_pdl=True)
        first_kernel[(n // 1024,)](y, n, B=1024)
        assert torch.equal(y[:1], y[-1:])
    expected = torch.zeros(1, dtype=torch.float32)
    for _ in range(200):
        expected = torch.tensor(expected.item() * float(torch.tensor(1.0001)) + 0.5)
    assert x[0].item() > 0 and torch.equal(x, x[0].expand(n))


@triton.jit
def rank_kernel(y):
    rank = tl.inline_asm_elementwise("mov.u32 $0, %cluster_ctarank;", "=r", [], tl.int32, is_pure=True, pack=1)
    tl.store(y + tl.program_id(0), rank)


def test_programs_in_clusters():
    y = torch.empty(16, dtype=torch.int32, device="cuda")
    kernel = rank_kernel[(16,)](y, cluster_dims=(4, 1, 1))
    assert y.tolist() == [0, 1, 2, 3] * 4 and kernel.metadata.cluster_dims == (4, 1, 1)


def test_largest_grid_of_programs_of_several_blocks():
    y = torch.empty(16, dtype=torch.int32, device="cuda")
    message = r"grid dimension 0 is 1073741824; it must lie between 0 and 1073741823 for programs of 2 blocks each"
    with pytest.raises(ValueError, match=message):
        rank_kernel[(1 << 30,)](y, num_ctas=2)


@triton.jit
def pair_kernel(pair, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(pair[0] + i) + tl.load(pair[1] + i))


def test_large_clusters_launched_from_python():
    """A tuple among the arguments: such launches do not take the native way, which allows more than 8 blocks itself."""
    x, y = torch.randn(4096, device="cuda"), torch.empty(4096, device="cuda")
    pair_kernel[(1,)]((x, x), y, N=4096, num_ctas=16)
    assert torch.equal(y, x + x)
