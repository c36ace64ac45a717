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


def test_another_text_for_a_kernel() -> None:
    kernel = triton.JITFunction(add_one.fn)
    x = np.zeros(16, np.float32)
    kernel[(1,)](x, 16, BLOCK=16)
    kernel._unsafe_update_src(kernel.src.replace("+ 1,", "+ 5,"))
    kernel[(1,)](x, 16, BLOCK=16)
    assert (x == 6).all()


def test_a_buffer_that_empties_the_caches() -> None:
    torch = pytest.importorskip("torch")
    driver = triton.runtime.driver.active
    buffer = driver.get_empty_cache_for_benchmark()
    buffer[:] = 1
    driver.clear_cache(buffer)
    assert buffer.numel() * buffer.element_size() >= 256 << 20 and not torch.any(buffer)


def test_numbers_of_microscaling_formats() -> None:
    torch = pytest.importorskip("torch")
    from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor, fp8e8m0_to_float32

    values = torch.tensor([0, -0.0, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, torch.inf, -0.3, torch.nan])
    codes = MXFP4Tensor(data=values, device="cpu")
    assert codes.data.tolist() == [0, 8, 0, 1, 2, 2, 4, 4, 6, 6, 7, 7, 9, 7]  # ties to even
    assert codes.to(torch.float32)[:6].tolist() == [0, 0, 0, 0.5, 1, 1]
    codes = MXFP4Tensor(size=(6, 5), device="cpu").random()
    for dim in (0, 1, -1):
        packed = codes.to_packed_tensor(dim)
        assert packed.shape[dim] == 3
        torch.testing.assert_close(codes.unpack_packed_tensor(packed, dim, (6, 5)), codes.data)
    assert MXFP4Tensor(data=torch.tensor([1.0, 6.0]), device="cpu").to_packed_tensor(0).tolist() == [0x72]

    scales = MXScaleTensor(data=torch.tensor([1.0, 3.0, 0.3, 0.0, -1.0, torch.inf, 3e38]), device="cpu")
    assert scales.data.tolist() == [127, 128, 125, 255, 255, 255, 254]
    drawn = MXScaleTensor(size=(500,), device="cpu").random(low=0.5, high=4.0).to(torch.float32)
    assert set(drawn.tolist()) == {0.5, 1.0, 2.0, 4.0}
    every = torch.arange(256, dtype=torch.uint8)
    torch.testing.assert_close(fp8e8m0_to_float32(every)[:255].log2(), torch.arange(-127, 128.0), rtol=0, atol=0)
    assert fp8e8m0_to_float32(every)[255].isnan()
    with pytest.raises(ValueError, match="data or size"):
        MXFP4Tensor()


def test_linear_layouts_by_hand() -> None:
    from triton.tools import LinearLayout

    lanes, warps = LinearLayout.identity_1d(8, "lane", "x"), LinearLayout.identity_1d(4, "warp", "x")
    both = lanes * warps
    assert both.bases == [("lane", [[1], [2], [4]]), ("warp", [[8], [16]])] and both.out_dims == [("x", 32)]
    assert both.apply({"lane": 5, "warp": 2}) == {"x": 21}
    swapped = LinearLayout.from_bases([("r", [[1, 0], [0, 1]]), ("l", [[2, 0], [0, 2]])], ["x", "y"])
    assert swapped.get_matrix_view() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert swapped.invert().bases == [("x", [[1, 0], [0, 1]]), ("y", [[2, 0], [0, 2]])]
    wide = LinearLayout.from_bases([("u", [[1, 1], [0, 1], [2, 0], [0, 2]])], ["x", "y"])
    moved = swapped.invert_and_compose(wide)  # the u that lies where each r and l does
    assert moved.bases == [("r", [[3], [2]]), ("l", [[4], [8]])] and moved.out_dims == [("u", 16)]
    assert moved.compose(wide) == swapped and swapped.compose(swapped.invert()).is_invertible()
    strided, zeros = LinearLayout.strided_1d(4, 2, "r", "x"), LinearLayout.zeros_1d(4, "w", "x")
    assert strided.is_injective() and not strided.is_surjective()
    assert zeros.is_surjective() and not zeros.is_injective() and (zeros * lanes).out_dims == [("x", 8)]
    assert (zeros * lanes).pseudoinvert().compose(zeros * lanes) == LinearLayout.identity_1d(8, "x", "x")
    assert str(strided) == "\n - r=1 -> (2)\n   r=2 -> (4)\nwhere out dims are: [x (size 8)]"
    for wrong in (
        lambda: LinearLayout.identity_1d(6, "a", "b"),
        lambda: LinearLayout.from_bases([("r", [[1], [2]])], ["o"], [8]),
        lambda: LinearLayout.from_bases([("r", [[9]])], ["o"], [8], False),
        lambda: lanes.apply({"warp": 1}),
        lambda: strided.invert(),
        lambda: strided.pseudoinvert(),
    ):
        with pytest.raises(ValueError):
            wrong()


@triton.jit(debug=True)
def needs_positive(x):
    tl.device_assert(tl.load(x) > 0, "must be positive")


@pytest.mark.parametrize("interpret", [False, True])
def test_assertions_of_functions_made_for_debugging(interpret: bool) -> None:
    needs_positive[(1,)](np.ones(1, np.float32))
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.interpret = interpret
        with pytest.raises(Exception, match="assertion failed: must be positive"):
            needs_positive[(1,)](-np.ones(1, np.float32))


def test_debugging_of_a_function_without_a_module(tmp_path) -> None:
    path = tmp_path / "generated.py"
    path.write_text("def fill(x, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B) * 2 // 2, tl.program_id(0) + 3)\n")
    scope = {"tl": tl}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    x = np.zeros(4, np.float32)
    triton.jit(scope["fill"])[(1,)](x, B=4, debug=True)
    assert (x == 3).all()


def test_interpreted_functions_where_pytorch_looks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.interpreter import InterpretedFunction

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert not isinstance(add_one, InterpretedFunction)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert isinstance(add_one, InterpretedFunction)
    assert not isinstance(len, InterpretedFunction)
    x = np.zeros(4, np.float32)
    InterpretedFunction(add_one.fn)[(1,)](x, 3, BLOCK=8)
    assert x.tolist() == [1, 1, 1, 0]
