"""What only a real GPU shows: assertions, streams, precision, errors, launch cost, torch tensors."""

import subprocess
import sys
import textwrap

import pytest

import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def run(body: str) -> subprocess.CompletedProcess:
    """The code in a process of its own: what it does to the GPU ends with it."""
    import tempfile
    from pathlib import Path

    head = "import torch, triton\nimport triton.language as tl\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.py"
        file.write_text(head + textwrap.dedent(body))
        return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)


def test_failed_assertion_is_an_exception_at_synchronisation():
    done = run(
        """
        @triton.jit
        def k(x, B: tl.constexpr):
            v = tl.load(x + tl.arange(0, B))
            tl.device_assert(v > 0, "values must be positive")

        x = torch.tensor([1.0, -1.0], device="cuda")
        k[(1,)](x, B=2, debug=True)
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            print("raised", error)
        """
    )
    assert "raised" in done.stdout, done.stdout + done.stderr
    assert "values must be positive" in done.stderr


def test_torch_tensors_and_streams(torch):
    x = torch.randn(100_003, device="cuda")
    y = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), B=1024)
    stream.synchronize()
    assert torch.equal(x, y)


def test_launch_under_graph_capture(torch):
    x, y = torch.randn(4096, device="cuda"), torch.zeros(4096, device="cuda")
    copy_kernel[(4,)](x, y, 4096, B=1024)
    y.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        copy_kernel[(4,)](x, y, 4096, B=1024)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(x, y)


def test_cpu_tensor_in_a_gpu_launch_names_the_argument(torch):
    x, y = torch.randn(64), torch.zeros(64, device="cuda")
    with pytest.raises(Exception, match=r"argument 'x' is on device 'cpu'|'x'.*cpu"):
        copy_kernel[(1,)](x, y, 64, B=64)


@triton.jit
def dot_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision=PRECISION))


@pytest.mark.parametrize(
    "precision, bound", [("tf32", 2e-3), ("tf32x3", 3e-6), ("bf16x3", 3e-5), ("bf16x6", 3e-6), ("ieee", 2e-6)]
)
@pytest.mark.parametrize("shape", [(64, 64, 64), (128, 32, 16), (5, 7, 3)])
def test_dot_precisions(torch, precision, bound, shape):
    m, n, k = shape
    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    c = torch.empty(m, n, device="cuda")
    dot_kernel[(1,)](a, b, c, M=m, N=n, K=k, PRECISION=precision)
    exact = a.double() @ b.double()
    assert ((c.double() - exact).abs() / (a.double().abs() @ b.double().abs())).max() < bound


@pytest.mark.parametrize("warps", [1, 2, 8, 16, 32])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "float64"])
def test_dot_under_every_number_of_warps(torch, warps, kind):
    m, n, k = 64, 32, 64
    dtype = getattr(torch, kind)
    if kind == "int8":
        a, b = (torch.randint(-128, 128, s, dtype=dtype, device="cuda") for s in ((m, k), (k, n)))
    else:
        a, b = (torch.randn(s, device="cuda").to(dtype) for s in ((m, k), (k, n)))
    out = {"int8": torch.int32, "float64": torch.float64}.get(kind, torch.float32)
    c = torch.empty(m, n, dtype=out, device="cuda")
    dot_kernel[(1,)](a, b, c, M=m, N=n, K=k, PRECISION="ieee", num_warps=warps)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-4)


@triton.jit
def reduce_kernel(x, y, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(y + tl.arange(0, N), tl.cumsum(tl.sort(v), 0).sum(0))


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("shape", [(4, 4), (33, 17), (64, 128)])
def test_scan_sort_reduce_under_every_number_of_warps(torch, warps, shape):
    m, n = shape
    x, y = (
        torch.randint(-1000, 1000, shape, dtype=torch.int32, device="cuda"),
        torch.empty(n, dtype=torch.int32, device="cuda"),
    )
    reduce_kernel[(1,)](x, y, M=m, N=n, num_warps=warps)
    assert torch.equal(y, x.sort(1).values.cumsum(0, dtype=torch.int32).sum(0, dtype=torch.int32))


@triton.jit
def asm_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    out = tl.inline_asm_elementwise(
        "{ .reg .b32 t; and.b32 t, $1, 0x1F1F1F1F; shl.b32 $0, t, 3; }",
        "=r,r",
        [v],
        dtype=tl.int8,
        is_pure=True,
        pack=4,
    )
    tl.store(y + i, out)


def test_inline_assembly_packs_four_bytes(torch):
    x = torch.randint(0, 128, (256,), dtype=torch.int8, device="cuda")
    y = torch.empty_like(x)
    asm_kernel[(1,)](x, y, B=256, num_warps=1)
    assert torch.equal(y, ((x.int() & 0x1F) << 3).to(torch.int8))


@triton.jit
def print_kernel(x, B: tl.constexpr):
    tl.device_print("value: ", tl.load(x + tl.arange(0, B)))


def test_device_print():
    done = run(
        """
        @triton.jit
        def k(x, B: tl.constexpr):
            tl.device_print("value: ", tl.load(x + tl.arange(0, B)))

        k[(2,)](torch.arange(3, device="cuda", dtype=torch.int32), B=3)
        torch.cuda.synchronize()
        """
    )
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("pid"))
    assert len(lines) == 6, done.stdout + done.stderr
    assert any("pid (1, 0, 0) idx (2) value: 2" in line for line in lines), lines


def test_too_much_shared_memory_is_refused_before_the_launch(torch):
    a = torch.randn(256, 256, device="cuda", dtype=torch.float64)
    with pytest.raises(triton.OutOfResources, match="shared memory"):
        dot_kernel[(1,)](a, a, a, M=256, N=256, K=256, PRECISION="ieee")


def test_bool_and_half_scalars(torch):
    @triton.jit
    def k(y, flag, value):
        tl.store(y, tl.where(flag, value, -value))

    y = torch.zeros(1, device="cuda")
    k[(1,)](y, True, 2.5)
    assert y.item() == 2.5
    k[(1,)](y, False, 2.5)
    assert y.item() == -2.5
