"""Small cases taken from real bug reports that need a GPU; each test's name ends with the case's number."""

import pytest

import triton
import triton.language as tl


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


WARPS = pytest.mark.parametrize("warps", [1, 2, 4, 8])


@triton.jit
def odd_rows_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M + tl.arange(0, M)[:, None], tl.program_id(1) * N + tl.arange(0, N)[None, :]
    tl.store(z + 1185 * row + column, tl.load(x + 1185 * row + column))


@WARPS
@pytest.mark.parametrize("kind", ["float16", "float32", "int8"])
def test_odd_stride_B5(torch, warps, kind):
    x = torch.randint(-100, 100, (64, 1185), device="cuda").to(getattr(torch, kind))
    z = torch.zeros_like(x)
    odd_rows_kernel[(2, 8)](x, z, M=32, N=128, num_warps=warps)
    assert torch.equal(z[:, :1024], x[:, :1024]) and (z[:, 1024:] == 0).all()


@triton.jit
def float8_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i).to(tl.float16) * tl.load(y + i))


def test_float8_times_half_B17(torch):
    codes = torch.arange(256, dtype=torch.uint8, device="cuda")
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        y, z = (
            torch.full((256,), 2.0, dtype=torch.float16, device="cuda"),
            torch.empty(256, dtype=torch.float16, device="cuda"),
        )
        float8_kernel[(1,)](codes.view(dtype), y, z, N=256)
        torch.testing.assert_close(z, codes.view(dtype).to(torch.float16) * 2, rtol=0, atol=0, equal_nan=True)


@triton.jit
def counting_assembly_kernel(cells, old, N: tl.constexpr):
    i = tl.arange(0, N)
    address = (cells + i).to(tl.int64, bitcast=True)
    before = tl.inline_asm_elementwise(
        "atom.global.add.u32 $0, [$1], 1;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(old + i, before)


@WARPS
def test_assembly_with_an_effect_runs_once_for_each_element_C8(torch, warps):
    cells, old = (
        torch.zeros(40, dtype=torch.int32, device="cuda"),
        torch.full((32,), 9, dtype=torch.int32, device="cuda"),
    )
    counting_assembly_kernel[(1,)](cells, old, N=32, num_warps=warps)
    assert cells.tolist() == [1] * 32 + [0] * 8 and old.tolist() == [0] * 32


@triton.jit
def packed_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    out = tl.inline_asm_elementwise(
        "{ .reg .b32 t; and.b32 t, $1, 0x1F1F1F1F; shl.b32 $0, t, 3; }",
        "=r,r", [tl.load(x + i)], dtype=tl.int8, is_pure=True, pack=4,
    )  # fmt: skip
    tl.store(y + i, out)


@WARPS
@pytest.mark.parametrize("size", [256, 64, 8, 6, 2])
def test_packed_assembly_of_any_size_F15(torch, warps, size):
    x = torch.randint(0, 128, (size,), dtype=torch.int8, device="cuda")
    y = torch.empty_like(x)
    packed_kernel[(1,)](x, y, size, B=size, num_warps=warps)
    assert torch.equal(y, ((x.int() & 0x1F) << 3).to(torch.int8))


@triton.jit
def copy_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_a_cpu_tensor_is_named_C18(torch):
    x, y = torch.randn(64), torch.zeros(64, device="cuda")
    with pytest.raises(Exception, match="argument 'x' is on device 'cpu', the launch needs 'cuda:0'"):
        copy_kernel[(1,)](x, y, 64, B=64)


def test_tensors_of_a_device_that_is_not_current_C18(torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    x = torch.randn(64, device="cuda:1")
    for _ in range(2):
        y = torch.zeros_like(x)
        copy_kernel[(1,)](x, y, 64, B=64)
        torch.cuda.synchronize(1)
        assert torch.equal(x, y) and torch.cuda.current_device() == 0
    with pytest.raises(Exception, match=r"cuda:[01].*cuda:[01]"):
        copy_kernel[(1,)](x, torch.zeros(64, device="cuda:0"), 64, B=64)


@triton.jit
def product_kernel(a, c, N: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    x = tl.load(a + i * N + j)
    tl.store(c + i * N + j, tl.dot(x, x, input_precision="ieee"))


def test_configurations_that_do_not_fit_G12(torch):
    configs = [triton.Config({"B": b}) for b in (256, 16, 32)]
    kernel = triton.autotune(configs, key=[])(product_kernel)
    a = torch.randn(256, 256, dtype=torch.float64, device="cuda")
    c = torch.zeros_like(a)
    kernel[(1,)](a, c, N=256)
    best = kernel.best_config.kwargs["B"]
    assert best in (16, 32) and "shared memory" in str(kernel.failures[configs[0]])
    torch.testing.assert_close(c[:best, :best], a[:best, :best] @ a[:best, :best])


def test_grids_beyond_the_limit_G15(torch):
    x = torch.zeros(64, device="cuda")
    for grid, axis in (((1, 65536), 1), ((1, 1, 70000), 2)):
        with pytest.raises(ValueError, match=f"grid dimension {axis} is {grid[axis]}.*65535"):
            copy_kernel[grid](x, x, 64, B=64)
