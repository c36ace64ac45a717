"""Habits of people's kernels beyond the documented language, each found in published code."""

import numpy as np
import pytest

import triton
import triton.language as tl


@triton.jit
def scale_rows(x, offsets: tl.constexpr, columns: tl.constexpr, pair: tl.constexpr):
    inside = offsets < columns
    for _ in range(pair[0]):
        tl.store(x + offsets, tl.load(x + offsets, inside) * pair[1], inside)
    return offsets * 2


@triton.jit(noinline=True)
def store_twice(x, value: tl.constexpr):
    tl.store(x, value * 2)


@triton.jit
def run_time_constexprs(x, out, n, times):
    offsets: tl.constexpr = tl.arange(0, 16)
    pid: tl.constexpr = tl.program_id(0)
    doubled = scale_rows(x + pid * n, offsets, n, (times, 3))
    tl.store(out + offsets, doubled + n, mask=pid == 0)
    store_twice(out + 16, n)


@pytest.mark.parametrize("n", [1, 11])
def test_parameters_annotated_constexpr_take_run_time_values(launch, n):
    """As in attention kernels that annotate offsets, or a length, of their inner function so."""
    x, out = np.ones((2, n), np.int32), np.zeros(17, np.int32)
    launch(run_time_constexprs, (2,), x, out, n, 2)
    np.testing.assert_array_equal(x, np.full((2, n), 9))
    np.testing.assert_array_equal(out, [*(np.arange(16) * 2 + n), 2 * n])


@triton.jit
def divide_all_by_one(x, divisor, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) / tl.load(divisor))


@pytest.mark.parametrize(
    "divisor", [49.0, 3.0, -7.1e-38, 1e-42, 2.9e38, 0.0, -0.0, np.inf, np.nan, 4.9591064453125e-05]
)
def test_quotients_by_one_number(launch, divisor):
    """49 / 49 is one and a tie of a later rounding stays one: what people quantise with a scale depends on it."""
    x = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    x[:200] *= np.float32(2) ** np.arange(-100, 100)
    x[200:300] = np.arange(100) * (divisor if 0 < divisor < 1e30 else 1)
    x[300:308] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-44, -3e38, 0.66015625]
    out = np.full_like(x, 5)
    launch(divide_all_by_one, (1,), x, np.array([divisor], np.float32), out, N=512)
    with np.errstate(all="ignore"):
        expected = x / np.float32(divisor)
    if launch.keywords["backend"] == "cuda":
        np.testing.assert_allclose(out, expected, rtol=2.0**-22, atol=1e-44)
        return
    normal = np.abs(expected) >= 2.0**-100
    np.testing.assert_array_equal(out[normal], expected[normal])
    np.testing.assert_allclose(out[~normal], expected[~normal], rtol=2.0**-22, atol=3e-45)
    np.testing.assert_array_equal(np.signbit(out[expected == 0]), np.signbit(expected[expected == 0]))


@triton.jit
def store_rounded(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty, fp_downcast_rounding="rtne"))


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_a_rounding_mode_for_a_cast_to_the_same_type(launch, name):
    """A kernel for outputs of any type names the mode, whether or not there is something to round."""
    x, out = np.linspace(-1, 1, 64, dtype=np.float32), np.zeros(64, name)
    launch(store_rounded, (1,), x, out, N=64)
    np.testing.assert_array_equal(out, x.astype(name))


@triton.jit
def print_everything(x, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.device_print("x", values)
    tl.device_print("two", values[None, :] + tl.arange(0, 2)[:, None], N)


def test_printed_indices_are_as_wide_as_their_axis(launch, capfd):
    """What people's scripts compare lines of output with."""
    launch(print_everything, (1,), np.arange(128, dtype=np.int32), N=128)
    lines = capfd.readouterr().out.splitlines()
    head = "pid (0, 0, 0) idx "
    expected = [f"{head}({i:3}) x: {i}" for i in range(128)]
    expected += [f"{head}({j}, {i:3}) two: (operand 0) {i + j}" for j in range(2) for i in range(128)]
    expected += [f"{head}() two: (operand 1) 128"]
    assert sorted(line for line in lines if line.startswith(head)) == sorted(expected)


@tl.core._aggregate
class Scaled:
    values: tl.tensor
    factor: tl.tensor
    shift: tl.constexpr

    @triton.constexpr_function
    def __init__(self, values, factor, shift):
        self.values = values
        self.factor = factor
        self.shift = tl.constexpr(shift)

    @triton.jit
    def create(x, shift: tl.constexpr):
        return Scaled(tl.load(x + tl.arange(0, 4)), 2.0, shift)

    @triton.jit
    def result(self):
        return self.values * self.factor + self.shift


@triton.jit
def use_aggregates(x, out):
    scaled = Scaled.create(x, 3)
    for _ in range(2):
        scaled = Scaled(scaled.values + 1, scaled.factor, shift=scaled.shift)
    tl.store(out + tl.arange(0, 4), scaled.result())


def test_aggregates_whose_init_is_a_constexpr_function(launch):
    """The usual form of such classes: the function sets fields to run-time values, too."""
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    launch(use_aggregates, (1,), x, out)
    np.testing.assert_array_equal(out, (x + 2) * 2 + 3)
