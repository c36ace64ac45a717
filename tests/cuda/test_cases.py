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
