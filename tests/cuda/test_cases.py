"""Small cases taken from real bug reports that must compile for an NVIDIA target; no GPU needed. Each test's name ends
with the case's number.
"""

import pytest
from test_architectures import compiled

import triton
import triton.language as tl
from triton.backends.cuda import codegen


@triton.jit
def scaled_float8_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i).to(tl.float16) * tl.load(y + i).to(tl.float16))


@pytest.mark.parametrize("arch", [75, 86])
@pytest.mark.parametrize("kind", ["*fp8e4nv", "*fp8e5"])
def test_float8_on_older_architectures_B17(arch, kind):
    signature = {"x": kind, "y": "*fp16", "z": "*fp16"}
    kernel = compiled(scaled_float8_kernel, arch, signature, {"N": 256})
    assert f".target sm_{arch}" in kernel.asm["ptx"]
    if codegen.find_ptxas(arch) is None:
        pytest.skip(f"PTX made; no ptxas that knows sm_{arch} to assemble it")
    assert kernel.asm["cubin"][:4] == b"\x7fELF"


@triton.jit
def counting_kernel(cells, old, N: tl.constexpr):
    i = tl.arange(0, N)
    address = (cells + i).to(tl.int64, bitcast=True)
    before = tl.inline_asm_elementwise(
        "atom.global.add.u32 $0, [$1], 1;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(old + i, before)


@pytest.mark.parametrize("size, warps, guarded", [(32, 1, False), (32, 4, True), (24, 1, True), (256, 4, False)])
def test_assembly_with_an_effect_is_guarded_where_threads_hold_copies_C8(size, warps, guarded):
    kernel = compiled(counting_kernel, 90, {"cells": "*i32", "old": "*i32"}, {"N": size}, num_warps=warps)
    before, _, after = kernel.asm["ptx"].partition("atom.global")
    assert after and ("bra" in before) is guarded


@triton.jit
def packed_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    out = tl.inline_asm_elementwise(
        "and.b32 $0, $1, 0x1F1F1F1F;", "=r,r", [tl.load(x + i)], dtype=tl.int8, is_pure=True, pack=4
    )
    tl.store(y + i, out)


@pytest.mark.parametrize("size, joined", [(64, True), (128, False)])
def test_packed_assembly_takes_every_register_of_a_thread_F15(size, joined):
    """A thread with two bytes joins both for assembly that takes four, and stores two of the four that it gives."""
    ptx = compiled(packed_kernel, 90, {"x": "*i8", "y": "*i8"}, {"B": size}, num_warps=1).asm["ptx"]
    assert ("prmt.b32" in ptx) is joined
    assert ("st.global.b16" if joined else "st.global.b32") in ptx


@triton.jit
def products_kernel(a, b, c, groups, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    for g in range(groups):
        total = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            x = tl.load(a + (g * M + m[:, None]) * k + start + d[None, :])
            y = tl.load(b + (start + d[:, None]) * N + n[None, :])
            total = tl.dot(x, y, total)
        tl.store(c + (g * M + m[:, None]) * N + n[None, :], total)


@pytest.mark.parametrize("arch", [80, 90])
def test_pipelined_products_within_a_loop(arch):
    """Buffers of the inner loop are made anew on each turn of the outer one."""
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "groups": "i32", "k": "i32"}
    kernel = compiled(products_kernel, arch, signature, {"M": 64, "N": 64, "K": 32}, num_warps=4, num_stages=3)
    assert "cp.async" in kernel.asm["ptx"]
    assert kernel.metadata.shared >= 2 * 2 * 64 * 32 * 2


@triton.jit
def turned_kernel(x, y, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(tile))


@pytest.mark.parametrize("kind, shuffles", [("*fp32", 2), ("*i64", 4), ("*fp64", 4)])
def test_small_tiles_change_layout_by_shuffles(kind, shuffles):
    """Two elements a lane, 32 bits at a time; no shared memory, no barrier."""
    kernel = compiled(turned_kernel, 80, {"x": kind, "y": kind}, {"M": 8, "N": 8}, num_warps=1)
    ptx = kernel.asm["ptx"]
    assert ptx.count("shfl.sync.idx") == shuffles and kernel.metadata.shared == 0
    assert not any(word in ptx for word in (".shared", "bar."))


@pytest.mark.parametrize("warps, kind", [(1, "*fp32"), (4, "*fp16")])
def test_large_tiles_change_layout_in_shared_memory(warps, kind):
    kernel = compiled(turned_kernel, 80, {"x": kind, "y": kind}, {"M": 64, "N": 64}, num_warps=warps)
    ptx = kernel.asm["ptx"]
    assert "shfl" not in ptx and "st.shared" in ptx and kernel.metadata.shared >= 64 * 64 * 2
