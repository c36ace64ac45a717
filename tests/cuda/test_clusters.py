"""Compile-only: programs that are clusters of thread blocks. No GPU needed."""

import re

import features
import pytest
from test_architectures import compiled

import triton
import triton.language as tl
from triton.backends.cuda import codegen

ARCHITECTURES = [90, 100, 120]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", features.FEATURES)
def test_feature_compiles(name, arch):
    feature = features.FEATURES[name]
    options = {**feature.options, "num_ctas": 2}
    kernel = compiled(feature.kernel, arch, feature.signature, feature.constants, **options)
    ptx = kernel.asm["ptx"]
    assert ".reqnctapercluster 2" in ptx and "%ctaid" not in ptx
    assert (kernel.metadata.num_ctas, kernel.metadata.cluster_dims) == (2, (2, 1, 1))
    if codegen.find_ptxas(arch) is not None:
        assert kernel.asm["cubin"][:4] == b"\x7fELF"


@triton.jit
def row_sum(x, y, N: tl.constexpr):
    tl.store(y, tl.sum(tl.load(x + tl.arange(0, N)), 0))


@triton.jit
def sums_of_rows(x, y, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(y + m, tl.sum(v / tl.sum(v * v, 1)[:, None], 1))


def barriers(ptx: str) -> tuple[int, int]:
    """How many of the block and how many of the cluster."""
    return len(re.findall(r"\bbar\.sync", ptx)), ptx.count("barrier.cluster.arrive")


def test_only_what_crosses_blocks_waits_for_them():
    vector = {"x": "*fp32", "y": "*fp32"}
    ptx = compiled(row_sum, 90, vector, {"N": 4096}, num_ctas=4).asm["ptx"]
    assert "mapa.u64" in ptx and barriers(ptx) == (0, 3)  # all run; partial sums are there; they have been read
    ptx = compiled(sums_of_rows, 90, vector, {"M": 8, "N": 4096}, num_ctas=4).asm["ptx"]
    assert "mapa" not in ptx and barriers(ptx)[1] == 0 and barriers(ptx)[0] > 0


def test_blocks_share_the_memory_of_what_crosses_them():
    signature, sizes = {"x": "*fp32", "z": "*fp32"}, {"M": 1, "N": 8192}
    one, eight = (compiled(features.sort_kernel, 90, signature, sizes, num_ctas=n).metadata.shared for n in (1, 8))
    assert eight <= one / 2 == 16384


def test_each_block_multiplies_its_part():
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}
    constants = {"M": 128, "N": 64, "K": 32, "PRECISION": "ieee", "OUT": tl.float32}
    counts = []
    for ctas in (1, 2, 4):
        kernel = compiled(features.dot_kernel, 100, signature, constants, num_ctas=ctas)
        counts.append(kernel.asm["ptx"].count("mma.sync"))
    assert counts[0] == 2 * counts[1] == 4 * counts[2] > 0


@triton.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr):
    m, n, i = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + m[:, None] * k + (start + i)[None, :])
        if TURNED:
            y = tl.load(b + n[:, None] * k + (start + i)[None, :]).T
        else:
            y = tl.load(b + (start + i)[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("arch, instruction", [(90, "wgmma.mma_async"), (100, "mma.sync")])
@pytest.mark.parametrize(
    "ctas, tile", [(2, (256, 128, 64)), (4, (128, 128, 64)), (2, (64, 256, 32)), (8, (256, 256, 32))]
)
def test_operands_stay_within_blocks(ctas, tile, arch, instruction, turned):
    """Each block copies ahead what it needs and multiplies alone: rows are shared out, then columns."""
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "k": "i32"}
    constants = {"M": tile[0], "N": tile[1], "K": tile[2], "TURNED": turned}
    one = compiled(product, arch, signature, constants, divisible=("k",))
    kernel = compiled(product, arch, signature, constants, divisible=("k",), num_ctas=ctas)
    ptx = kernel.asm["ptx"]
    assert instruction in ptx and "cp.async.cg" in ptx
    assert "mapa" not in ptx and barriers(ptx)[1] == 0
    assert kernel.metadata.shared < one.metadata.shared
    if instruction.startswith("wgmma"):  # addresses in matrix descriptors without the number of the block
        assert re.search(r"and i32 \S+, 16383", kernel.asm["llir"])


@pytest.mark.parametrize(
    "arch, options, message",
    [
        (
            80,
            {"num_ctas": 2},
            "num_ctas=2 needs clusters of thread blocks, which GPUs have from compute capability 9.0 on",
        ),
        (90, {"num_ctas": 3}, "num_ctas must be 1, 2, 4, 8 or 16, got 3"),
        (90, {"num_ctas": 32}, "num_ctas must be 1, 2, 4, 8 or 16, got 32"),
        (90, {"num_ctas": 2, "cluster_dims": (4, 1, 1)}, "is a cluster of its own; cluster_dims=.* cannot be given"),
    ],
)
def test_what_cannot_be(arch, options, message):
    with pytest.raises(ValueError, match=message):
        compiled(row_sum, arch, {"x": "*fp32", "y": "*fp32"}, {"N": 64}, **options)
