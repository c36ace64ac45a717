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
