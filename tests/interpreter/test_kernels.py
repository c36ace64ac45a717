"""What a user sees of the interpreter: errors with argument, index and source line."""

import numpy as np
import pytest
from support import launch

import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError


@triton.jit
def careless_kernel(source, target, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(source + i)
    tl.store(target + 2 * i, a)  # too far


def line_of(text):
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if text in line)


def test_out_of_range_store_names_argument_index_and_line():
    x, z = np.zeros(8, np.float32), np.zeros(8, np.float32)
    with pytest.raises(InterpreterError) as error:
        launch(careless_kernel, (1,), x, z, N=8, backend="interpreter")
    message = str(error.value)
    assert "outside argument 'target': index 8, but it has 8 elements" in message
    assert f"{__file__}:{line_of('# too far')}" in message
    assert (z == 0).all()


def test_out_of_range_load_names_the_argument():
    x, z = np.zeros(6, np.float32), np.zeros(16, np.float32)
    with pytest.raises(InterpreterError, match="outside argument 'source': index 6, but it has 6 elements"):
        launch(careless_kernel, (1,), x, z, N=8, backend="interpreter")


@triton.jit
def asserting_kernel(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.device_assert(v > 0, "not positive")


def test_assertion_names_the_line():
    with pytest.raises(
        InterpreterError, match=r"test_kernels.py:\d+: asserting_kernel: assertion failed: not positive"
    ):
        launch(asserting_kernel, (1,), np.zeros(4, np.float32), N=4, backend="interpreter", debug=True)
