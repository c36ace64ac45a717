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


# B. Integer and floating semantics ----------------------------------------------------------------------------------


@triton.jit
def seeded_kernel(z, u, seed, low, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.randint(seed, low + i))
    tl.store(u + i, tl.rand(seed, low + i.to(tl.int64)))


def test_random_numbers_need_no_overflow_B22(launch):
    """With the overflow checks of debug mode; a 32-bit offset gives what the 64-bit offset of the same value gives."""
    for seed in (0, 7, 2**31 + 3, 2**40 + 1, -1):
        for low in (0, 5, 2**32, 2**33 + 5):
            z, u = empty("int32", 8), empty("float32", 8)
            launch(seeded_kernel, (1,), z, u, seed, low, N=8, debug=True)
            assert (u.raw >= 0).all() and (u.raw < 1).all()
    narrow, wide = empty("int32", 8), empty("int32", 8)
    launch(seeded_kernel, (1,), narrow, empty("float32", 8), 3, 40, N=8)
    launch(wide_kernel, (1,), wide, 3, 40, N=8)
    assert narrow.raw.tolist() == wide.raw.tolist()


@triton.jit
def wide_kernel(z, seed, low, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.randint(seed, low + i.to(tl.int64)))


# D. Loops -----------------------------------------------------------------------------------------------------------


@triton.jit
def trips_kernel(z, start, stop, step):
    n = 0
    for _ in tl.range(start, stop, step):
        n += 1
    tl.store(z, n)


@pytest.mark.parametrize("bounds", [(88, -1, -8), (5, 10, -3), (10, 5, 3), (2, -1, -1), (0, 7, 3)])
def test_trips_of_a_run_time_step_D10(launch, bounds):
    z = empty("int32", 1)
    launch(trips_kernel, (1,), z, *bounds)
    assert z.raw[0] == len(range(*bounds))


# E. Shapes ----------------------------------------------------------------------------------------------------------


@triton.jit
def mismatch_kernel(z):
    tl.store(z + tl.arange(0, 8), tl.arange(0, 8) * tl.arange(0, 4))


def test_sizes_that_do_not_fit_are_both_named_E7(launch):
    with pytest.raises(CompilationError, match=r"shapes \[8\] and \[4\] cannot be broadcast"):
        launch(mismatch_kernel, (1,), empty("int32", 8))
