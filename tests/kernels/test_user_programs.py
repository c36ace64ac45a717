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


# Programs of libraries, whole


@triton.jit
def as_ordered_key(x):
    """Bits of floats that compare as unsigned integers the way the floats do."""
    top: tl.constexpr = 1 << (x.dtype.primitive_bitwidth - 1)
    every: tl.constexpr = (1 << x.dtype.primitive_bitwidth) - 1
    return x ^ tl.where((x & top) != 0, tl.full(x.shape, every, x.dtype), tl.full(x.shape, top, x.dtype))


@triton.jit
def from_ordered_key(x):
    top: tl.constexpr = 1 << (x.dtype.primitive_bitwidth - 1)
    every: tl.constexpr = (1 << x.dtype.primitive_bitwidth) - 1
    return x ^ tl.where((x & top) == 0, tl.full(x.shape, every, x.dtype), tl.full(x.shape, top, x.dtype))


@triton.jit
def top_experts(
    logits, values, indices, rows, n, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, B: tl.constexpr
):
    bits: tl.constexpr = logits.dtype.element_ty.primitive_bitwidth
    key_type: tl.constexpr = tl.dtype(f"uint{bits}")
    pair_type: tl.constexpr = tl.dtype(f"uint{bits * 2}")
    steps: tl.constexpr = N // B - 1
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    valid = row[:, None] < rows
    column = steps * B + tl.arange(0, B)
    source = logits + row[:, None] * n + column[None, :]
    x = tl.load(source, valid & (column < n)[None, :], other=float("-inf"))
    key = (as_ordered_key(x.to(key_type, bitcast=True)).to(pair_type) << 16) | (N - column)[None, :]
    best = tl.topk(key, K, dim=1)
    for _ in (tl.static_range if steps <= 4 else range)(steps):
        best = tl.bitonic_merge(best)
        source -= B
        column -= B
        x = tl.load(source, valid, other=float("-inf"))
        key = (as_ordered_key(x.to(key_type, bitcast=True)).to(pair_type) << 16) | (N - column)[None, :]
        best = tl.maximum(best, tl.topk(key, K, dim=1))
    best = tl.sort((best << (2 * bits - 16)) | (best >> 16), dim=1, descending=True)
    index = N - (best >> (2 * bits - 16)).to(tl.uint32)
    value = from_ordered_key(best.to(key_type)).to(logits.dtype.element_ty, bitcast=True)
    place = row[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(values + place, value, valid)
    tl.store(indices + place, index, valid)


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_routing_by_packed_keys(launch, name):
    logits = np.random.default_rng(0).standard_normal((13, 50)).astype(name)
    values, indices = np.zeros((13, 4), name), np.zeros((13, 4), np.int16)
    launch(top_experts, (4,), logits, values, indices, 13, 50, ROWS=4, N=64, K=4, B=32)
    expected = np.sort(np.argsort(-logits, 1, kind="stable")[:, :4], 1)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, 1))


@triton.heuristics({"STORE_LAST": lambda args: args["last"] is not None})
@triton.jit(do_not_specialize=["T"])
def chunk_states(
    k, v, g, states, last, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    STORE_LAST: tl.constexpr,
):  # fmt: skip
    i_k, i_v = tl.program_id(0), tl.program_id(1)
    state = tl.zeros([BK, BV], dtype=tl.float32)
    for t in range(tl.cdiv(T, BT)):
        into = tl.make_block_ptr(states + t * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(into, state.to(into.dtype.element_ty), boundary_check=(0, 1))
        keys = tl.make_block_ptr(k, (K, T), (1, K), (i_k * BK, t * BT), (BK, BT), (0, 1))
        rows = tl.make_block_ptr(v, (T, V), (V, 1), (t * BT, i_v * BV), (BT, BV), (1, 0))
        at = t * BT + tl.arange(0, BT)
        decay = tl.load(tl.max_contiguous(tl.multiple_of(g + at, BT), BT), mask=at < T, other=0.0)
        end = tl.load(g + min((t + 1) * BT, T) - 1)
        b_v = tl.load(rows, boundary_check=(0, 1))
        state *= tl.exp(end)
        state += tl.dot(
            tl.load(keys, boundary_check=(0, 1)),
            (b_v * tl.exp(end - decay)[:, None]).to(b_v.dtype),
            input_precision="ieee",
        )
    if STORE_LAST:
        into = tl.make_block_ptr(last, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(into, state.to(into.dtype.element_ty), boundary_check=(0, 1))


@pytest.mark.parametrize("store_last", [False, True])
def test_states_of_chunked_linear_attention(launch, store_last):
    rng = np.random.default_rng(0)
    length, K, V, BT = 40, 24, 20, 16
    k, v = rng.standard_normal((length, K)).astype("f4"), rng.standard_normal((length, V)).astype("f4")
    g = np.concatenate([-rng.random(min(BT, length - c)).cumsum() for c in range(0, length, BT)]).astype("f4")
    states, last = np.full((3, K, V), 7, "f4"), np.full((K, V), 7, "f4")
    launch(chunk_states, (2, 2), k, v, g, states, last if store_last else None, T=length, K=K, V=V, BT=BT, BK=16, BV=16)
    state = np.zeros((K, V))
    for chunk, start in enumerate(range(0, length, BT)):
        np.testing.assert_allclose(states[chunk], state, rtol=1e-4, atol=1e-4)
        part = slice(start, start + BT)
        end = g[part][-1]
        state = state * np.exp(end) + k[part].T @ (v[part] * np.exp(end - g[part])[:, None])
    np.testing.assert_allclose(last, state if store_last else np.full((K, V), 7), rtol=1e-4, atol=1e-4)


@triton.jit
def unpack_awq(packed, scales, zeros, out, columns, rows, group, BX: tl.constexpr, BY: tl.constexpr):
    x, y = tl.program_id(0) * BX + tl.arange(0, BX), tl.program_id(1) * BY + tl.arange(0, BY)
    wide = tl.program_id(0) * BX * 8 + tl.arange(0, BX * 8)
    inside = (y < rows)[:, None] & (x < columns)[None, :]
    weights = tl.load(packed + columns * y[:, None] + x[None, :], inside, 0)
    for _ in tl.static_range(3):
        weights = tl.interleave(weights, weights)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.reshape(tl.broadcast_to((order * 4)[None, :], (BY * BX, 8)), (BY, BX * 8))
    weights = (weights >> shifts) & 0xF
    row = tl.program_id(1) * BY // group + tl.arange(0, 1)
    zero = tl.load(zeros + columns * row[:, None] + x[None, :], (x < columns)[None, :], 0)
    for _ in tl.static_range(3):
        zero = tl.interleave(zero, zero)
    zero = (tl.broadcast_to(zero, (BY, BX * 8)) >> shifts) & 0xF
    valid = (wide < columns * 8)[None, :]
    scale = tl.load(scales + columns * 8 * row[:, None] + wide[None, :], valid, 0.0)
    result = (weights - zero) * tl.broadcast_to(scale, (BY, BX * 8))
    tl.store(
        out + columns * 8 * y[:, None] + wide[None, :], result.to(out.type.element_ty), (y < rows)[:, None] & valid
    )


def test_interleaved_4_bit_weights(launch):
    rng = np.random.default_rng(0)
    rows, columns, group = 64, 10, 32
    weights = rng.integers(0, 16, (rows, columns, 8), dtype=np.uint32)
    zeros = rng.integers(0, 16, (rows // group, columns, 8), dtype=np.uint32)
    scales = rng.random((rows // group, columns * 8)).astype(np.float16)
    place = np.array([0, 4, 1, 5, 2, 6, 3, 7], np.uint32) * 4
    packed, packed_zeros = ((v << place).sum(-1, dtype=np.uint32).view(np.int32) for v in (weights, zeros))
    out = np.zeros((rows, columns * 8), np.float16)
    launch(unpack_awq, (2, 2), packed, scales, packed_zeros, out, columns, rows, group, BX=8, BY=32)
    at = np.arange(rows) // group
    difference = weights.astype(np.float32) - zeros[at].astype(np.float32)
    expected = difference.reshape(rows, -1) * scales[at].astype(np.float32)
    np.testing.assert_allclose(out, expected, rtol=2e-3)


@triton.jit
def sum_of(a, b):
    return a + b


@triton.jit
def calculate(x, y, out, OP: tl.constexpr):
    a, b = tl.load(x), tl.load(y)
    if OP == "add":
        result = a + b
    elif OP == "sub":
        result = a - b
    elif OP == "mul":
        result = a * b
    elif OP == "free":
        result = tl.mul(a, b, sanitize_overflow=False)
    else:  # nor in what reduces, nor in the library's own functions
        result = tl.reduce(tl.full([4], 1, a.dtype) << 30, 0, sum_of) + (tl.randint(a, b) & 1).to(a.dtype) * 0
    tl.store(out, result)


@pytest.mark.parametrize(
    "op, name, a, b",
    [("add", "int32", 2**31 - 1, 1), ("sub", "int32", -(2**31), 1), ("mul", "int32", 2**30, 2),
     ("add", "int8", 100, 100), ("add", "uint32", 2**32 - 1, 1), ("sub", "uint32", 0, 1), ("mul", "int16", -300, 300)],
)  # fmt: skip
def test_overflow_is_an_error_under_debug(launch, op, name, a, b):
    x, y, out = np.array([a], name), np.array([b], name), np.zeros(1, name)
    exact = {"add": a + b, "sub": a - b, "mul": a * b}[op]
    launch(calculate, (1,), x, y, out, OP=op)
    assert out.astype(object)[0] == (exact - np.iinfo(name).min) % 2 ** (8 * out.itemsize) + np.iinfo(name).min
    launch(calculate, (1,), x, y, out, OP=op, debug=True, sanitize_overflow=False)
    if launch.keywords["backend"] == "cuda":
        return  # a failed assertion there ends the process's use of the device
    with pytest.raises(Exception, match=f"{name} overflow detected for operation {op}"):
        launch(calculate, (1,), x, y, out, OP=op, debug=True)


def test_no_overflow_no_error_under_debug(launch):
    one, out = np.array([2**31 - 2], np.int32), np.zeros(1, np.int32)
    launch(calculate, (1,), one, np.array([1], np.int32), out, OP="add", debug=True)
    assert out[0] == 2**31 - 1
    launch(calculate, (1,), one, np.array([2], np.int32), out, OP="free", debug=True)
    assert out[0] == -4
    launch(calculate, (1,), one, one, out, OP="reduce", debug=True)
    assert out[0] == 0
    wide = np.array([2**63 - 1], np.int64)
    launch(calculate, (1,), wide, wide, np.zeros(1, np.int64), OP="add", debug=True)  # 64 bits are not checked
