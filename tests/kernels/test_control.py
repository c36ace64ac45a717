"""Loops, branches, functions, compile-time values, tuples, None, printing."""

import numpy as np
import pytest
from support import empty, sample

import triton
import triton.language as tl


@triton.jit
def loop_kernel(z, low, high, step):
    total = 0
    trips = 0
    for i in range(low, high, step):
        total += i
        trips += 1
    tl.store(z, total)
    tl.store(z + 1, trips)


@pytest.mark.parametrize(
    "low, high, step", [(0, 10, 1), (0, 10, 3), (5, 5, 1), (9, 2, 1), (10, 0, -3), (-5, 5, 2), (0, 1000, 7)]
)
def test_for_range(launch, low, high, step):
    z = empty("int32", 2)
    launch(loop_kernel, (1,), z, low, high, step)
    assert z.raw.tolist() == [sum(range(low, high, step)), len(range(low, high, step))]


@triton.jit
def nested_loop_kernel(x, z, m, n, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for r in range(m):
        row = tl.zeros((B,), tl.float32)
        for c in tl.range(0, n, num_stages=2):
            v = tl.load(x + (r * n + c) * B + i)
            row += v
            if c == 1:
                row *= 2
        acc = acc + row * (r + 1)
    tl.store(z + i, acc)


@pytest.mark.parametrize("m, n, b", [(0, 3, 4), (1, 1, 1), (3, 4, 7), (2, 5, 33)])
def test_nested_loops_carry_tensors(launch, m, n, b):
    x, z = sample("float32", (max(m, 1), n, b)), empty("float32", b)
    launch(nested_loop_kernel, (1,), x, z, m, n, B=b)
    expected = np.zeros(b)
    for r in range(m):
        row = np.zeros(b)
        for c in range(n):
            row = row + x.raw[r, c]
            if c == 1:
                row *= 2
        expected += row * (r + 1)
    np.testing.assert_allclose(z.raw, expected, rtol=1e-5, atol=1e-5)


@triton.jit
def while_kernel(z, n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(z, steps)


@pytest.mark.parametrize("n", [1, 2, 7, 27])
def test_while(launch, n):
    z = empty("int32", 1)
    launch(while_kernel, (1,), z, n)
    steps, value = 0, n
    while value != 1:
        value, steps = (value // 2 if value % 2 == 0 else 3 * value + 1), steps + 1
    assert z.raw[0] == steps


@triton.jit
def branch_kernel(x, z, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    pid = tl.program_id(0)
    if pid == 0:
        v = v + 1
        w = v * 2
    elif pid == 1:
        w = -v
    elif n > 3 and pid < 3:
        w = v * 0 + n
    else:
        w = tl.where(v > 0, v, 0)
    tl.store(z + pid * B + i, w)


@pytest.mark.parametrize("n", [2, 5])
def test_branches(launch, n):
    x, z = sample("float32", 9), empty("float32", (4, 9))
    launch(branch_kernel, (4,), x, z, n, B=9)
    relu = np.maximum(x.raw, 0)
    np.testing.assert_allclose(z.raw, [(x.raw + 1) * 2, -x.raw, np.full(9, n) if n > 3 else relu, relu], rtol=1e-6)


@triton.jit
def early_return_kernel(z, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    tl.store(z + pid, pid)


def test_early_return(launch):
    z = empty("int32", 8)
    z.raw[:] = -1
    launch(early_return_kernel, (8,), z, 5)
    assert z.raw.tolist() == [0, 1, 2, 3, 4, -1, -1, -1]


@triton.jit
def static_range_kernel(x, z, N: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B,), tl.int32)
    for k in tl.static_range(0, N, 2):
        tl.static_assert(k % 2 == 0)
        acc += tl.load(x + k * B + i)
    tl.store(z + i, acc)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_static_range(launch, n):
    x, z = sample("int32", (n, 5)), empty("int32", 5)
    launch(static_range_kernel, (1,), x, z, N=n, B=5)
    np.testing.assert_array_equal(z.raw, x.raw[::2].sum(0))


@triton.jit
def add_and_multiply(a, b, SCALE: tl.constexpr = 2):
    return a + b, a * b * SCALE


@triton.jit
def fourth(a):
    return square(a) * square(a)


@triton.jit
def square(a):
    return a * a


@triton.jit(noinline=True)
def apart(p, i, v):
    tl.store(p + i, v)
    return v + 1


@triton.jit
def helper_kernel(x, z, w, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    s, p = add_and_multiply(v, 3)
    _, q = add_and_multiply(v, v, SCALE=1)
    u = apart(w, i, fourth(s))
    tl.store(z + i, p + q - u)


@triton.jit(noinline=True)
def largest_apart(p, B: tl.constexpr):
    return tl.max(tl.load(p + tl.arange(0, B)), 0)


@triton.jit
def reductions_apart_kernel(x, z, n, B: tl.constexpr):
    total = tl.sum(tl.load(x + tl.arange(0, B)), 0)
    for _ in range(n):
        total = largest_apart(x, B) + tl.sum(tl.load(x + tl.arange(0, B)) + total, 0)
    tl.store(z, total)


def test_a_function_apart_that_reduces(launch):
    x, z = sample("int32", 500), empty("int32", 1)
    launch(reductions_apart_kernel, (1,), x, z, 3, B=500)
    total = x.raw.sum(dtype=np.int32)
    for _ in range(3):
        total = x.raw.max() + (x.raw + total).sum(dtype=np.int32)
    assert z.raw[0] == total


@pytest.mark.parametrize("b", [1, 7, 64])
def test_nested_functions(launch, b):
    x, z, w = sample("int32", b), empty("int32", b), empty("int32", b)
    launch(helper_kernel, (1,), x, z, w, B=b)
    v = x.raw
    np.testing.assert_array_equal(w.raw, (v + 3) ** 4)
    np.testing.assert_array_equal(z.raw, v * 6 + v * v - ((v + 3) ** 4 + 1))


@triton.jit
def tuple_kernel(pair, extra, z, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = pair
    v = tl.load(a + i) + tl.load(b + i) * extra[0]
    if extra[1] is not None:
        v += tl.load(extra[1] + i)
    t = (v, v * 2)
    t = (t[1], t[0])
    tl.store(z + i, t[0] - t[1])
    tl.static_assert(len(extra) == 2)


@pytest.mark.parametrize("third", [False, True])
def test_tuple_and_none_arguments(launch, third):
    x, y, w, z = (sample("float32", 10, k) for k in range(4))
    launch(tuple_kernel, (1,), (x, y), (3, w if third else None), z, B=10)
    np.testing.assert_allclose(z.raw, x.raw + y.raw * 3 + (w.raw if third else 0), rtol=1e-5, atol=1e-5)


@triton.jit
def constexpr_kernel(z, A: tl.constexpr, B: tl.constexpr, NAME: tl.constexpr, FLAG: tl.constexpr, DTYPE: tl.constexpr):
    N: tl.constexpr = A * B + 1
    i = tl.arange(0, N)
    value: tl.constexpr = 10 if NAME == "ten" else 20
    v = i + value
    if FLAG:
        v = -v
    tl.static_assert(N == A * B + 1, "size")
    tl.store(z + i, v.to(DTYPE))


@pytest.mark.parametrize("name, flag", [("ten", True), ("twenty", False)])
def test_constexpr(launch, name, flag):
    z = empty("int64", 13)
    launch(constexpr_kernel, (1,), z, A=3, B=4, NAME=name, FLAG=flag, DTYPE=tl.int64)
    expected = np.arange(13) + (10 if name == "ten" else 20)
    np.testing.assert_array_equal(z.raw, -expected if flag else expected)


@triton.jit
def ternary_kernel(z, n):
    pid = tl.program_id(0)
    a = 1 if pid % 2 == 0 else 2
    b = (a if n > 3 else -a) + (10 if pid == 0 else 20)
    c = (pid > 0) and (n > 3)
    d = (pid > 5) or (not (n > 3))
    tl.store(z + pid * 3, b)
    tl.store(z + pid * 3 + 1, c)
    tl.store(z + pid * 3 + 2, d)


@pytest.mark.parametrize("n", [2, 9])
def test_ternary_and_boolean_operators(launch, n):
    z = empty("int32", (3, 3))
    launch(ternary_kernel, (3,), z, n)
    for pid in range(3):
        a = 1 if pid % 2 == 0 else 2
        b = (a if n > 3 else -a) + (10 if pid == 0 else 20)
        assert z.raw[pid].tolist() == [b, pid > 0 and n > 3, pid > 5 or not n > 3]


@triton.jit
def print_kernel(x, n, B: tl.constexpr):
    tl.device_print("n", n)
    tl.device_print("x ", tl.load(x + tl.arange(0, B)))
    tl.device_print("both", n, n + 1)


def test_device_print(launch, backend, capfd):
    x = np.array([1.5, -2.0], np.float32)
    launch(print_kernel, (2,), x, 7, B=2)
    lines = capfd.readouterr().out.splitlines()
    for pid in range(2):
        mine = [line for line in lines if line.startswith(f"pid ({pid}, 0, 0)")]
        assert [line.split("idx ")[1] for line in mine if " n: " in line] == ["() n: 7"]
        elements = [line.split("idx ")[1] for line in mine]  # printed in any order
        assert sorted(text.split()[0] + text.split()[-1] for text in elements if "x" in text) == ["(0)1.5", "(1)-2"]
        assert [line.split()[-1] for line in mine if "both" in line] == ["7", "8"]


@triton.jit
def assert_kernel(x, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    tl.device_assert(v > 0, "values must be positive")


def test_device_assert(launch):
    if launch.keywords["backend"] == "cuda":
        pytest.skip("a failed assertion ends the GPU's context; tests/gpu runs it in a process of its own")
    x = np.array([1.0, 2.0, 3.0], np.float32)
    launch(assert_kernel, (1,), x, B=3, debug=True)
    x[1] = -1
    with pytest.raises(Exception, match="values must be positive"):
        launch(assert_kernel, (1,), x, B=3, debug=True)


@triton.jit
def long_loop_kernel(z, n):
    a = 1
    for _ in range(n):
        a = a * 1103515245 + 12345
    tl.store(z, a)


def test_long_loop(launch):
    z = empty("int32", 1)
    launch(long_loop_kernel, (1,), z, 20_000)
    a = 1
    for _ in range(20_000):
        a = (a * 1103515245 + 12345) & 0xFFFFFFFF
    assert z.raw.view(np.uint32)[0] == a


@triton.jit
def carried_type_kernel(x, z, n, B: tl.constexpr):
    """A loop whose carried values swap, one of them used only after the loop."""
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = a * 2
    last = a
    for _ in range(n):
        a, b = b, a + 1
        last = a
    tl.store(z + i, a)
    tl.store(z + B + i, b)
    tl.store(z + 2 * B + i, last)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_loop_carried_swap(launch, n):
    x, z = sample("int32", 17), empty("int32", (3, 17))
    launch(carried_type_kernel, (1,), x, z, n, B=17)
    a, b = x.raw.copy(), x.raw * 2
    last = a
    for _ in range(n):
        a, b = b, a + 1
        last = a
    np.testing.assert_array_equal(z.raw, [a, b, last])


@triton.jit
def decided_kernel(z, n, FLAG: tl.constexpr):
    if FLAG:
        place = z + 1
    if n > 2 and FLAG:
        tl.store(place, n)
    if not (n > 2 or not FLAG or n < -2):
        tl.store(place, 7)
    if n > 2 and not FLAG and n < 5:
        tl.store(z, n)
    tl.store(z + 2, 1 if n == 3 and FLAG else 2)
    tl.store(z + 3, tl.where(tl.arange(0, 4) < n and FLAG, 5, 6).sum())


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("flag", [False, True])
def test_a_compile_time_operand_decides_wherever_it_stands(launch, n, flag):
    """Names that only exist under the flag are not looked up without it."""
    z = empty("int32", 4)
    z.raw[:] = 9
    launch(decided_kernel, (1,), z, n, FLAG=flag)
    first = 9 if flag or n == 0 else 3
    second = 9 if not flag else n or 7
    z4 = sum(5 if i < n and flag else 6 for i in range(4))
    assert z.raw.tolist() == [first, second, 1 if n == 3 and flag else 2, z4]
