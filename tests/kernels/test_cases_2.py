"""More of the small cases taken from real bug reports; each test's name ends with the case's number."""

import pytest
from support import empty

import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

# Arguments that are 1 -----------------------------------------------------------------------------------------------


@triton.jit
def methods_of_a_number_kernel(z, n):
    tl.static_assert(n.dtype == tl.int32)
    tl.static_assert(len(n.shape) == 0)
    tl.store(z, n.to(tl.int64) * 3_000_000_000)
    tl.store(z + 1, tl.zeros_like(n))
    tl.store(z + 2 + tl.arange(0, 1), n[None])
    tl.store(z + 3 + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :], n[None, None])


@pytest.mark.parametrize("n", [1, 2, 16])
def test_an_argument_that_is_one_has_the_methods_of_a_number_C15_E4_E5_F2(launch, n):
    z = empty("int64", 4)
    launch(methods_of_a_number_kernel, (1,), z, n)
    assert z.raw.tolist() == [n * 3_000_000_000, 0, n, n]


@triton.jit
def colon_of_a_number_kernel(z, n):
    tl.store(z, n[:, None])


@pytest.mark.parametrize("n", [1, 2])
def test_a_number_has_no_axis_for_a_colon_E4(launch, n):
    with pytest.raises(CompilationError, match=r"colon_of_a_number_kernel(?s:.)*0 axes"):
        launch(colon_of_a_number_kernel, (1,), empty("int32", 1), n)


@triton.jit
def countdown_kernel(z, n):
    total = 0
    while n > 0:
        total += n
        n -= 1
    tl.store(z, total)


def test_an_argument_that_is_one_changes_in_a_loop_F2(launch):
    for n in (1, 4, 1, 16):
        z = empty("int32", 1)
        launch(countdown_kernel, (1,), z, n)
        assert z.raw[0] == n * (n + 1) // 2
