"""Loads, stores, masks, strides, block pointers, atomics."""

import numpy as np
import pytest
from support import ALL, FLOATS, empty, full_range, sample

import triton
import triton.language as tl

SHAPES = [(1, 1), (2, 3), (5, 7), (12, 17), (33, 100), (16, 127), (3, 257)]


@triton.jit
def copy_kernel(x, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(z + i, tl.load(x + i, mask=m), mask=m)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("block", [1, 7, 64, 100])
def test_copy_leaves_the_rest_alone(launch, name, block):
    n = 257
    x, z = sample(name, n), empty(name, n + 40)
    before = z.raw.copy()
    launch(copy_kernel, (triton.cdiv(n, block),), x, z, n, BLOCK=block)
    np.testing.assert_array_equal(z.raw[:n], x.raw)
    np.testing.assert_array_equal(z.raw[n:], before[n:])


@triton.jit
def other_kernel(x, z, low, high, N: tl.constexpr):
    i = tl.arange(0, N)
    m = (i >= low) & (i < high)
    a = tl.load(x + i, mask=m, other=5)
    b = tl.load(x + i, mask=m, other=0)
    c = tl.load(x + i * 1000000, mask=i < 1, other=1)
    tl.store(z + i, a)
    tl.store(z + N + i, b)
    tl.store(z + 2 * N + i, c)


@pytest.mark.parametrize("name", ["int8", "uint64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("low, high", [(0, 50), (3, 7), (10, 10), (0, 0), (49, 50)])
def test_masked_lanes_get_other(launch, name, low, high):
    x, z = sample(name, 50, 0, 1, 9), empty(name, (3, 50))
    launch(other_kernel, (1,), x, z, low, high, N=50)
    inside = (np.arange(50) >= low) & (np.arange(50) < high)
    np.testing.assert_array_equal(z.values[0], np.where(inside, x.values, 5))
    np.testing.assert_array_equal(z.values[1], np.where(inside, x.values, 0))
    np.testing.assert_array_equal(z.values[2], np.where(np.arange(50) < 1, x.values[0], 1))


@triton.jit
def scalar_kernel(x, z, n, times):
    pid = tl.program_id(0)
    v = tl.load(x + pid, mask=pid < n)
    w = tl.load(x + pid)
    for i in range(times):
        tl.store(z + pid * 4 + i, v)
        if i % 2 == 0:
            w = v
        tl.store(z + pid * 4 + 2 + i, w)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float8e5"])
def test_scalars_keep_their_bits(launch, name):
    """Denormals too, while they are held from one loop to the next."""
    x = empty(name, 300)
    bits = x.raw.view(f"u{x.raw.itemsize}")
    bits[:] = np.arange(300) if x.raw.itemsize > 1 else np.arange(300) % 0x7C
    z = empty(name, (300, 4))
    launch(scalar_kernel, (300,), x, z, 300, 2)
    np.testing.assert_array_equal(z.raw.view(bits.dtype), np.repeat(bits[:, None], 4, 1))


@triton.jit
def tile_kernel(x, z, rows, columns, sx, sy, tx, ty, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    m = (i < rows)[:, None] & (j < columns)[None, :]
    a = tl.load(x + i[:, None] * sx + j[None, :] * sy, mask=m, other=0)
    tl.store(z + i[:, None] * tx + j[None, :] * ty, a + 1, mask=m)


@pytest.mark.parametrize("rows, columns", SHAPES)
@pytest.mark.parametrize("order", ["rows", "columns", "transposed", "every other"])
def test_strided_tiles(launch, rows, columns, order):
    x, z = sample("float32", (2 * rows, 2 * columns)), empty("float32", (2 * rows, 2 * columns))
    source, target = x.raw[:rows, :columns], z.raw[:rows, :columns]
    if order == "every other":
        source, target = x.raw[::2, ::2], z.raw[::2, ::2]
    if order == "transposed":
        target = z.raw.reshape(2 * columns, 2 * rows)[:columns, :rows].T
    if order == "columns":
        source = x.raw.reshape(2 * columns, 2 * rows)[:columns, :rows].T
        target = z.raw.reshape(2 * columns, 2 * rows)[:columns, :rows].T
    before = z.raw.copy()
    expected = source.copy() + 1
    strides = [s // 4 for s in (*source.strides, *target.strides)]
    launch(tile_kernel, (triton.cdiv(rows, 5), triton.cdiv(columns, 32)), x, z, rows, columns, *strides, M=5, N=32)
    np.testing.assert_array_equal(target, expected)
    assert (z.raw != before).sum() <= rows * columns


@triton.jit
def gather_scatter_kernel(x, index, z, N: tl.constexpr):
    i = tl.arange(0, N)
    at = tl.load(index + i)
    tl.store(z + at, tl.load(x + (N - 1 - i)))


@pytest.mark.parametrize("index", ["int32", "int64", "int16", "uint32"])
def test_scatter_by_loaded_indices(launch, index):
    n = 100
    order = np.random.default_rng(0).permutation(n)
    x, z, at = sample("float32", n), empty("float32", n), empty(index, n)
    at.raw[:] = order
    launch(gather_scatter_kernel, (1,), x, at, z, N=n)
    expected = np.empty(n, np.float32)
    expected[order] = x.raw[::-1]
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def three_axes_kernel(x, y, z, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    v = tl.load(x + a * C + c) * tl.load(y + b)
    tl.store(z + a * B * C + b * C + c, v)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (4, 1, 33), (7, 12, 8)])
def test_three_axes(launch, shape):
    a, b, c = shape
    x, y, z = sample("float32", (a, c)), sample("float32", b, 1), empty("float32", shape)
    launch(three_axes_kernel, (1,), x, y, z, A=a, B=b, C=c)
    np.testing.assert_array_equal(z.raw, x.raw[:, None, :] * y.raw[None, :, None])


@triton.jit
def scalar_memory_kernel(x, z, n):
    s = tl.load(x)
    t = tl.load(x + n - 1)
    if s < t:
        tl.store(z, t - s)
    else:
        tl.store(z, s - t)
    tl.store(z + 1, tl.load(x + 1) * 2)


@pytest.mark.parametrize("name", ["float32", "int16", "float64"])
def test_scalar_loads_and_stores(launch, name):
    x, z = sample(name, 9), empty(name, 2)
    launch(scalar_memory_kernel, (1,), x, z, 9)
    np.testing.assert_array_equal(z.raw, [abs(x.raw[8] - x.raw[0]), x.raw[1] * 2])


# Block pointers -----------------------------------------------------------------------------------------------------


@triton.jit
def block_pointer_kernel(x, z, rows, columns, M: tl.constexpr, N: tl.constexpr, PADDING: tl.constexpr):
    p = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
    q = tl.make_block_ptr(z, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
    for _ in range(0, tl.cdiv(columns, N)):
        a = tl.load(p, boundary_check=(0, 1), padding_option=PADDING)
        tl.store(q, a, boundary_check=(0, 1))
        p = tl.advance(p, (0, N))
        q = tl.advance(q, (0, N))


@pytest.mark.parametrize("rows, columns", SHAPES)
@pytest.mark.parametrize("name", ["float32", "float16", "int32"])
def test_block_pointers_walk_a_row_of_tiles(launch, rows, columns, name):
    x, z = sample(name, (rows, columns)), empty(name, (rows, columns))
    launch(block_pointer_kernel, (1,), x, z, rows, columns, M=40, N=16, PADDING="")
    np.testing.assert_array_equal(z.raw, x.raw)


@triton.jit
def padding_kernel(x, z, rows, columns, top, left, M: tl.constexpr, N: tl.constexpr, PADDING: tl.constexpr):
    p = tl.make_block_ptr(x, (rows, columns), (columns, 1), (top, left), (M, N), (1, 0))
    a = tl.load(p, boundary_check=(0, 1), padding_option=PADDING)
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + i, a)


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("top, left", [(0, 0), (-2, -3), (3, 4), (100, 0), (-9, 1)])
def test_block_pointer_padding(launch, padding, top, left):
    x, z = sample("float32", (5, 7)), empty("float32", (6, 8))
    launch(padding_kernel, (1,), x, z, 5, 7, top, left, M=6, N=8, PADDING=padding)
    expected = np.full((6, 8), 0.0 if padding == "zero" else np.nan, np.float32)
    for i in range(6):
        for j in range(8):
            if 0 <= i + top < 5 and 0 <= j + left < 7:
                expected[i, j] = x.raw[i + top, j + left]
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def transposed_block_kernel(x, z, rows, columns, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(
        base=x, shape=(columns, rows), strides=(1, columns), offsets=(0, 0), block_shape=(N, M), order=(0, 1)
    )
    q = tl.make_block_ptr(
        base=z, shape=(columns, rows), strides=(rows, 1), offsets=(0, 0), block_shape=(N, M), order=(1, 0)
    )
    tl.store(q, tl.load(p, boundary_check=(0, 1)), boundary_check=(0, 1))


def test_block_pointer_order(launch):
    x, z = sample("float32", (9, 13)), empty("float32", (13, 9))
    launch(transposed_block_kernel, (1,), x, z, 9, 13, M=16, N=16)
    np.testing.assert_array_equal(z.raw, x.raw.T)


# Atomics ------------------------------------------------------------------------------------------------------------


@triton.jit
def atomic_kernel(cells, values, index, old, n, N: tl.constexpr, OP: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    m = i < n
    at = tl.load(index + i, mask=m, other=0)
    v = tl.load(values + i, mask=m, other=0)
    if OP == "add":
        r = tl.atomic_add(cells + at, v, mask=m)
    elif OP == "max":
        r = tl.atomic_max(cells + at, v, mask=m)
    elif OP == "min":
        r = tl.atomic_min(cells + at, v, mask=m)
    elif OP == "and":
        r = tl.atomic_and(cells + at, v, mask=m)
    elif OP == "or":
        r = tl.atomic_or(cells + at, v, mask=m)
    elif OP == "xor":
        r = tl.atomic_xor(cells + at, v, mask=m)
    else:
        r = tl.atomic_xchg(cells + at, v, mask=m)
    tl.static_assert(r.dtype == v.dtype)
    tl.store(old + i, r, mask=m)


ATOMICS = {
    "add": np.add, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64", "float32", "float64", "float16"])
@pytest.mark.parametrize("op", sorted(ATOMICS))
def test_atomics_from_many_programs(launch, name, op):
    floating = name in FLOATS
    if floating and op in ("and", "or", "xor"):
        pytest.skip("no bitwise atomics on floats")
    if name == "float16" and op != "add":
        pytest.skip("half-precision atomics add only")
    n, cells_n = 500, 13
    values = sample(name, n, 1, -8, 8) if floating else full_range(name, n, 1)
    if floating:
        values.raw[:] = np.rint(values.raw)  # sums are then exact in any order
    cells = sample(name, cells_n, 2, -5, 5)
    cells.raw[:] = np.rint(cells.raw) if floating else cells.raw
    index, old = sample("int32", n, 3, 0, cells_n - 1), empty(name, n)
    expected = cells.raw.copy()
    ATOMICS[op].at(expected, index.raw, values.raw)
    launch(atomic_kernel, (8,), cells, values, index, old, n, N=67, OP=op)
    np.testing.assert_array_equal(cells.raw, expected)


@pytest.mark.parametrize("name", ["int32", "int64", "float32", "uint64"])
@pytest.mark.parametrize("op", ["add", "max", "min", "xchg"])
def test_atomics_return_the_old_value(launch, name, op):
    n = 64
    values, cells, old = sample(name, n, 1), sample(name, n, 2), empty(name, n)
    index = empty("int32", n)
    index.raw[:] = np.random.default_rng(0).permutation(n)
    before = cells.raw.copy()
    launch(atomic_kernel, (2,), cells, values, index, old, 60, N=32, OP=op)
    np.testing.assert_array_equal(old.raw[:60], before[index.raw[:60]])
    meaning = {"add": np.add, "max": np.maximum, "min": np.minimum, "xchg": lambda a, b: b}[op]
    expected = before.copy()
    expected[index.raw[:60]] = meaning(before[index.raw[:60]], values.raw[:60])
    np.testing.assert_array_equal(cells.raw, expected)


@triton.jit
def cas_kernel(lock, count, data):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    v = tl.load(data)
    tl.store(data, v + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
    tl.atomic_add(count, 1)


def test_spin_lock(launch):
    lock, count, data = (np.zeros(1, np.int32) for _ in range(3))
    launch(cas_kernel, (200,), lock, count, data)
    assert (lock[0], count[0], data[0]) == (0, 200, 200)


@triton.jit
def last_first_kernel(flags, data, out, VALUE: tl.constexpr):
    """Every program waits for the next one's data: those that start first end last."""
    pid, n = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, 32)
    if pid == n - 1:
        tl.store(data + pid * 32 + i, i)
    else:
        seen = tl.atomic_poll(flags + pid + 1, VALUE)
        tl.store(out + pid, seen.to(tl.int32))
        tl.store(data + pid * 32 + i, tl.load(data + (pid + 1) * 32 + i) + 1)
    tl.atomic_xchg(flags + pid, VALUE)


@pytest.mark.parametrize("name, value", [("int32", 7), ("int64", -(2**40)), ("uint32", 2**31 + 5), ("uint64", 2**63)])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_programs_wait_for_later_ones(launch, name, value, n):
    flags, data, out = np.zeros(n, name), np.zeros((n, 32), np.int32), np.zeros(n, np.int32)
    launch(last_first_kernel, (n,), flags, data, out, VALUE=value)
    np.testing.assert_array_equal(out, np.arange(n) < n - 1)
    np.testing.assert_array_equal(data, np.arange(32) + np.arange(n)[::-1, None])


@triton.jit
def meeting_kernel(count, out, ROUNDS: tl.constexpr):
    """All programs of the grid meet, again and again."""
    pid, n = tl.program_id(0), tl.num_programs(0)
    for r in range(ROUNDS):
        tl.atomic_add(count + r, 1)
        count_of_round = count + r
        count_of_round.atomic_poll(n)
        tl.store(out + r * n + pid, tl.load(count + r))


def test_grid_wide_barrier(launch):
    count, out = np.zeros(3, np.int32), np.zeros((3, 20), np.int32)
    launch(meeting_kernel, (20,), count, out, ROUNDS=3)
    np.testing.assert_array_equal(out, np.full((3, 20), 20))


@triton.jit
def impatient_kernel(flag, out, timeout):
    tl.store(out, tl.atomic_poll(flag, 3, sem="relaxed", scope="cta", timeout_ns=timeout).to(tl.int32))


@triton.jit
def hasty_kernel(flag, out):
    tl.store(out, tl.atomic_poll(flag, 3, timeout_ns=-1).to(tl.int32))
    tl.store(out + 1, tl.atomic_poll(flag, 3, timeout_ns=0).to(tl.int32))


def test_polls_with_constant_timeouts(launch):
    for value in (0, 3):
        flag, out = np.array([value], np.int32), np.full(2, -1, np.int32)
        launch(hasty_kernel, (1,), flag, out)
        assert out.tolist() == [value == 3] * 2


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.int64])
def test_polls_can_time_out(launch, dtype):
    flag, out = np.zeros(1, dtype), np.zeros(1, np.int32)
    for value, timeout, seen in ((0, 0, 0), (3, 0, 1), (3, -1, 1), (0, -1, 0), (0, 2_000_000, 0), (3, 10**12, 1)):
        flag[0], out[0] = value, -1
        launch(impatient_kernel, (1,), flag, out, timeout)
        assert out[0] == seen, (value, timeout)


@triton.jit
def spinning_kernel(count, out):
    pid, n = tl.program_id(0), tl.num_programs(0)
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < n:
        pass
    tl.store(out + pid, 1)


def test_spinning_programs_let_others_run(launch, backend):
    if backend == "interpreter":
        pytest.skip("runs one program after the other unless it polls")
    count, out = np.zeros(1, np.int32), np.zeros(12, np.int32)
    launch(spinning_kernel, (12,), count, out)
    assert out.all()


@triton.jit
def cas_value_kernel(cell, old, expected, value):
    tl.store(old, tl.atomic_cas(cell, expected, value))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("expected", [5, 6])
def test_compare_and_swap(launch, dtype, expected):
    cell, old = np.array([5], dtype), np.zeros(1, dtype)
    launch(cas_value_kernel, (1,), cell, old, expected, 9)
    assert old[0] == 5 and cell[0] == (9 if expected == 5 else 5)


@triton.jit
def grid_kernel(z, n):
    x, y, w = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    gx, gy = tl.num_programs(0), tl.num_programs(axis=1)
    at = x + gx * (y + gy * w)
    tl.store(z + at, x + 100 * y + 10000 * w + 1000000 * tl.num_programs(2))


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 5), (2, 3, 4), (1, 1, 9), (0,), (3, 0, 2)])
def test_program_ids(launch, grid):
    gx, gy, gz = (*grid, 1, 1)[:3]
    z = empty("int32", gx * gy * gz)
    launch(grid_kernel, grid, z, z.raw.size)
    w, y, x = np.meshgrid(range(gz), range(gy), range(gx), indexing="ij")
    np.testing.assert_array_equal(z.raw, (x + 100 * y + 10000 * w + 1000000 * gz).reshape(-1))


@triton.jit
def null_kernel(z, n):
    tl.store(z, tl.load((n.to(tl.int64) * 0).to(tl.pointer_type(tl.int32))))


def test_a_null_pointer_is_an_error(launch, backend):
    if backend not in ("interpreter", "cpu"):
        pytest.skip("a fault ends the CUDA context")
    with pytest.raises(Exception, match=r"address 0x0|fault at 0x0"):
        launch(null_kernel, (1,), np.zeros(1, np.int32), 5)
