"""Compile-only: which descriptor loads and stores become copies of boxes, and how."""

import pytest
from test_architectures import compiled

import triton
import triton.language as tl
from triton.backends.cuda import codegen


@triton.jit
def product_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([0, k]), b.load([k, 0]), acc)
    c.store([0, 0], acc.to(tl.float16))


@triton.jit
def copy_kernel(x, z, n):
    z.store([n], x.load([n]))


def described(kernel, arch, signature, constants, regular=True, **options):
    """Compiled for descriptors that the machine can use, or for others."""
    names = [p.name for p in kernel.params]
    divisible = [n for n in signature if regular and signature[n].startswith("tensordesc")]
    assert set(names) == {*signature, *constants}
    return compiled(kernel, arch, signature, constants, divisible, **options)


PRODUCT = {
    "a": "tensordesc<fp16[64, 64]>",
    "b": "tensordesc<fp16[64, 128]>",
    "c": "tensordesc<fp16[64, 128]>",
    "K": "i32",
}
BLOCKS = {"BM": 64, "BN": 128, "BK": 64}


@pytest.mark.parametrize("arch, copied", [(80, False), (90, True), (100, True), (120, True)])
def test_products_of_descriptors(arch, copied):
    """Operands are copied ahead from 9.0 on; on 9.0 the product reads them where they lie."""
    kernel = described(product_kernel, arch, PRODUCT, BLOCKS, num_warps=4, num_stages=3)
    ptx = kernel.asm["ptx"]
    assert ("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier" in ptx) is copied
    assert ("cp.async.bulk.tensor.2d.global.shared::cta" in ptx) is copied
    assert ("cp.async.cg.shared.global" in ptx) is not copied
    assert ptx.count(".b8 product_kernel_param_") == (3 if copied else 0)
    assert len(kernel.metadata.maps) == (3 * 336 if copied else 0)
    if arch == 90:
        assert "wgmma" in ptx and "ld.shared" not in ptx and "ld.global" not in ptx
    if codegen.find_ptxas(arch) is not None:
        assert kernel.asm["cubin"][:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "kind, copied",
    [
        ("tensordesc<fp32[256]>", True),
        ("tensordesc<i8[16]>", True),
        ("tensordesc<i8[8]>", False),  # 8 bytes
        ("tensordesc<fp32[48]>", False),  # no power of two
        ("tensordesc<fp16[64], nan>", True),
        ("tensordesc<fp8e5[64], nan>", False),  # bytes have no NaN
    ],
)
def test_which_boxes_are_copied(kind, copied):
    target = kind.replace(", nan", "")
    ptx = described(copy_kernel, 90, {"x": kind, "z": target, "n": "i32"}, {}).asm["ptx"]
    assert ("mbarrier.try_wait" in ptx) is copied


def test_irregular_descriptors_are_not_copied():
    signature = {"x": "tensordesc<fp32[64]>", "z": "tensordesc<fp32[64]>", "n": "i32"}
    kernel = described(copy_kernel, 90, signature, {}, regular=False)
    assert "bulk" not in kernel.asm["ptx"] and kernel.metadata.maps == ""


def test_tma_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("TRITON_ENABLE_TMA", "0")
    signature = {"x": "tensordesc<fp32[64]>", "z": "tensordesc<fp32[64]>", "n": "i32"}
    assert "bulk" not in described(copy_kernel, 90, signature, {}).asm["ptx"]
