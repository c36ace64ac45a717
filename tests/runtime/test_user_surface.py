"""What libraries ask of kernels besides launching them."""

from __future__ import annotations

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.errors import TritonError


def test_the_name_is_made_from_constants_and_types_by_parameter() -> None:
    seen = []

    def name(specialization):
        seen.append(specialization)
        return f"fill_{specialization.constants['BLOCK']}_{specialization.signature['out'][1:]}"

    @triton.jit(repr=name)
    def fill(out, stride, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK) * stride, n)

    kernel = fill[(1,)](np.zeros(8, np.float32), 1, 5, BLOCK=8)
    assert kernel.name == "fill_8_fp32"
    assert seen[0].constants == {"stride": 1, "BLOCK": 8}  # an integer that is one is a constant, too
    assert seen[0].signature == {"out": "*fp32", "stride": "constexpr", "n": "i32", "BLOCK": "constexpr"}


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets, offsets < n) + 1, offsets < n)


def test_warmup_takes_element_types_by_name() -> None:
    torch = pytest.importorskip("torch")
    kernel = add_one.warmup(x=torch.float32, n=1000, BLOCK=64, grid=(1,))
    x = np.zeros(100, np.float32)
    kernel[(2, 1, 1)](x, 100, 64)
    assert (x == 1).all()


def test_what_the_autotuner_chooses_cannot_be_given_even_when_nothing_is_left_to_tune() -> None:
    for configs in ([triton.Config({"BLOCK": 16})], [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]):
        tuned = triton.autotune(configs, key=["n"])(add_one)
        x = np.zeros(16, np.float32)
        tuned[(1,)](x, 16)
        with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
            tuned[(1,)](x, 16, BLOCK=64)


@pytest.mark.parametrize("kind", [ValueError, AssertionError, TritonError])
def test_a_number_of_warps_that_is_no_power_of_two(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="must be a power of 2"):
        add_one[(1,)](np.zeros(16, np.float32), 16, BLOCK=16, num_warps=3)


def test_kernels_called_like_functions() -> None:
    with pytest.raises(
        RuntimeError, match=r"Cannot call @triton.jit'd outside of the scope of a kernel: .*add_one\[grid\]"
    ):
        add_one(np.zeros(1), 1, 1)
