"""Reductions, scans, sorting, histograms."""

import numpy as np
import pytest
from support import FLOATS, INTEGERS, close, empty, sample

import triton
import triton.language as tl

SHAPES = [(1, 1), (1, 33), (5, 7), (12, 17), (16, 64), (33, 3), (3, 257), (100, 2)]


@triton.jit
def reduce_kernel(x, z, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        r = tl.sum(a, axis=AXIS)
    elif OP == "max":
        r = tl.max(a, axis=AXIS)
    elif OP == "min":
        r = tl.min(a, axis=AXIS)
    elif OP == "argmax":
        r = tl.argmax(a, axis=AXIS)
    elif OP == "argmin":
        r = tl.argmin(a, axis=AXIS)
    elif OP == "xor":
        r = tl.xor_sum(a, axis=AXIS)
    if AXIS == 0:
        tl.store(z + tl.arange(0, N), r)
    elif AXIS == 1:
        tl.store(z + tl.arange(0, M), r)
    else:
        tl.store(z, r)


NUMPY = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "xor": np.bitwise_xor.reduce,
}


def widened(name, op):
    """The type of a sum: small integers become 32 bits wide."""
    if op.startswith("arg"):
        return "int32"
    if op == "sum" and name in INTEGERS and np.iinfo(name).bits < 32:
        return "int32" if name.startswith("int") else "uint32"
    return name


@pytest.mark.parametrize("m, n", SHAPES)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("op", ["sum", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("name", ["float32", "int32"])
def test_reduce_shapes(launch, m, n, axis, op, name):
    if axis is None and op.startswith("arg"):
        pytest.skip("flat positions are tested in test_argmax_of_a_flat_tile")
    x = sample(name, (m, n))
    z = empty(widened(name, op), {0: n, 1: m, None: 1}[axis])
    launch(reduce_kernel, (1,), x, z, M=m, N=n, AXIS=axis, OP=op)
    expected = NUMPY[op](x.raw.astype(np.float64) if name == "float32" else x.raw, axis=axis)
    if name == "float32" and op == "sum":
        close(z, np.atleast_1d(expected), places=4, scale=np.abs(x.raw).sum(axis=axis))
    else:
        np.testing.assert_array_equal(z.raw, expected)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("op", ["sum", "max", "min", "argmax", "argmin", "xor"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_types(launch, name, op, axis):
    if op == "xor" and name in FLOATS:
        pytest.skip("no bitwise reduction of floats")
    m, n = 9, 40
    x, z = sample(name, (m, n)), empty(widened(name, op), (n, m)[axis])
    launch(reduce_kernel, (1,), x, z, M=m, N=n, AXIS=axis, OP=op)
    if op == "sum" and name in FLOATS:
        exact = x.values.astype(np.float64).sum(axis)
        close(z, exact, places=8, scale=np.abs(x.values.astype(np.float64)).sum(axis))
    else:
        values = x.values.astype(np.int64) if op == "sum" else x.values
        np.testing.assert_array_equal(z.values, NUMPY[op](values, axis=axis))


@triton.jit
def keep_dims_kernel(x, z, w, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i)
    row = tl.sum(a, axis=1, keep_dims=True)
    tl.static_assert(row.shape[0] == M and row.shape[1] == 1)
    tl.store(z + i, a - row)
    value, at = tl.max(a, axis=1, return_indices=True)
    tl.store(w + tl.arange(0, M), value + at)


def test_keep_dims_and_return_indices(launch):
    x, z, w = sample("int32", (6, 11)), empty("int32", (6, 11)), empty("int32", 6)
    launch(keep_dims_kernel, (1,), x, z, w, M=6, N=11)
    np.testing.assert_array_equal(z.raw, x.raw - x.raw.sum(1, keepdims=True))
    np.testing.assert_array_equal(w.raw, x.raw.max(1) + x.raw.argmax(1))


@triton.jit
def flat_argmax_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(z, tl.argmax(tl.ravel(a), axis=0))
    tl.store(z + 1, tl.argmin(tl.ravel(a), 0))


@pytest.mark.parametrize("m, n", [(1, 1), (4, 9), (16, 16)])
def test_argmax_of_a_flat_tile(launch, m, n):
    x, z = sample("float32", (m, n)), empty("int32", 2)
    launch(flat_argmax_kernel, (1,), x, z, M=m, N=n)
    assert z.raw.tolist() == [x.raw.argmax(), x.raw.argmin()]


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_ties_give_the_lowest_index(launch, op):
    x, z = sample("int32", (20, 65), 0, 0, 3), empty("int32", 20)
    launch(reduce_kernel, (1,), x, z, M=20, N=65, AXIS=1, OP=op)
    np.testing.assert_array_equal(z.raw, NUMPY[op](x.raw, axis=1))


@triton.jit
def three_axis_kernel(x, z, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + (a[:, None, None] * B + b[None, :, None]) * C + c[None, None, :])
    r = tl.sum(v, AXIS)
    if AXIS == 0:
        tl.store(z + b[:, None] * C + c[None, :], r)
    elif AXIS == 1:
        tl.store(z + a[:, None] * C + c[None, :], r)
    else:
        tl.store(z + a[:, None] * B + b[None, :], r)


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 7, 16), (12, 4, 33)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reduce_three_axes(launch, shape, axis):
    x = sample("int64", shape)
    expected = x.raw.sum(axis)
    z = empty("int64", expected.shape)
    launch(three_axis_kernel, (1,), x, z, *shape, AXIS=axis)
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def welford(m1, v1, n1, m2, v2, n2):
    n = n1 + n2
    d = m2 - m1
    return m1 + d * (n2 / n), v1 + v2 + d * d * (n1 * n2 / n), n


@triton.jit
def custom_reduce_kernel(x, z, N: tl.constexpr, KIND: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    if KIND == "product":
        tl.store(z, tl.reduce(a, 0, multiply))
    elif KIND == "compose":
        _, b = tl.reduce((a, a + 1), 0, compose)
        tl.store(z, b)
    else:
        mean, m2, n = tl.reduce((a, tl.zeros_like(a), tl.full([N], 1.0, tl.float32)), 0, welford)
        tl.store(z, mean)
        tl.store(z + 1, m2 / n)


@pytest.mark.parametrize("n", [1, 2, 7, 33, 128])
@pytest.mark.parametrize("kind", ["product", "compose", "welford"])
def test_custom_reduction(launch, n, kind):
    x, z = sample("float32", n, 0, 0.5, 1.5), empty("float32", 2)
    launch(custom_reduce_kernel, (1,), x, z, N=n, KIND=kind)
    values = x.raw.astype(np.float64)
    if kind == "product":
        expected = values.prod()
    elif kind == "compose":
        expected = values[0] + 1
        for v in values[1:]:
            expected = v * expected + v + 1
    else:
        np.testing.assert_allclose(z.raw, [values.mean(), values.var()], rtol=2e-5, atol=1e-6)
        return
    np.testing.assert_allclose(z.raw[0], expected, rtol=2e-5)


@triton.jit
def scan_kernel(x, z, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i)
    if OP == "sum":
        r = tl.cumsum(a, AXIS, REVERSE)
    elif OP == "product":
        r = tl.cumprod(a, axis=AXIS, reverse=REVERSE)
    else:
        r = tl.associative_scan(a, AXIS, maximum, reverse=REVERSE)
    tl.store(z + i, r)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@pytest.mark.parametrize("m, n", [(1, 1), (5, 7), (3, 33), (16, 64), (2, 257), (65, 3)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", ["sum", "product", "max"])
@pytest.mark.parametrize("name", ["int64", "float32"])
def test_scan(launch, m, n, axis, reverse, op, name):
    low, high = {"sum": (-9, 9), "product": (0.75, 1.25), "max": (-9, 9)}[op]
    if name == "int64" and op == "product":
        low, high = -3, 3
    x, z = sample(name, (m, n), 0, low, high), empty(name, (m, n))
    launch(scan_kernel, (1,), x, z, M=m, N=n, AXIS=axis, REVERSE=reverse, OP=op)
    function = {"sum": np.cumsum, "product": np.cumprod, "max": np.maximum.accumulate}[op]
    values = x.raw.astype(np.float64) if name == "float32" else x.raw
    flipped = np.flip(values, axis) if reverse else values
    expected = function(flipped, axis=axis)
    expected = np.flip(expected, axis) if reverse else expected
    if name == "int64" or op == "max":
        np.testing.assert_array_equal(z.raw, expected)
    else:
        size = np.cumsum(np.abs(flipped), axis) if op == "sum" else np.abs(expected)
        close(z, expected, places=40, scale=np.flip(size, axis) if reverse and op == "sum" else size)


@triton.jit
def sort_kernel(x, z, M: tl.constexpr, N: tl.constexpr, DESCENDING: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + i, tl.sort(tl.load(x + i), 1, DESCENDING))


@pytest.mark.parametrize("name", ["int32", "uint8", "float16", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize("m, n", [(1, 1), (3, 2), (4, 32), (8, 64), (1, 512)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(launch, name, m, n, descending):
    x, z = sample(name, (m, n)), empty(name, (m, n))
    launch(sort_kernel, (1,), x, z, M=m, N=n, DESCENDING=descending)
    expected = np.sort(x.values, axis=1)
    np.testing.assert_array_equal(z.values, expected[:, ::-1] if descending else expected)


@triton.jit
def histogram_kernel(x, z, N: tl.constexpr, BINS: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, N)
    if MASKED:
        h = tl.histogram(tl.load(x + i), BINS, mask=i % 3 == 0)
    else:
        h = tl.histogram(tl.load(x + i), BINS)
    tl.store(z + tl.arange(0, BINS), h)


@pytest.mark.parametrize("n, bins", [(1, 2), (64, 16), (256, 8), (512, 128)])
@pytest.mark.parametrize("masked", [False, True])
def test_histogram(launch, n, bins, masked):
    x, z = sample("int32", n, 0, 0, bins - 1), empty("int32", bins)
    launch(histogram_kernel, (1,), x, z, N=n, BINS=bins, MASKED=masked)
    counted = x.raw[np.arange(n) % 3 == 0] if masked else x.raw
    np.testing.assert_array_equal(z.raw, np.bincount(counted, minlength=bins))


@triton.jit
def softmax_kernel(x, z, n, stride, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    a = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(a - tl.max(a, axis=0))
    tl.store(z + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)


@pytest.mark.parametrize("n", [1, 7, 100, 257])
def test_softmax(launch, n):
    x, z = sample("float32", (5, n)), empty("float32", (5, n))
    launch(softmax_kernel, (5,), x, z, n, n, N=300)
    e = np.exp(x.raw.astype(np.float64) - x.raw.max(1, keepdims=True))
    close(z, e / e.sum(1, keepdims=True), places=16)


@triton.jit
def masked_rows_kernel(x, y, z, rows, n, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    inside = (r < rows) & (c < n)
    if OP == "max":
        result = tl.max(tl.load(x + r * n + c, mask=inside, other=-float("inf")), axis=1)
    elif OP == "min":
        result = tl.min(tl.load(x + r * n + c, mask=inside, other=float("inf")), axis=1)
    else:
        a = tl.load(x + r * n + c, mask=inside, other=0.0)
        if OP == "sum":
            result = tl.sum(a, axis=1)
        elif OP == "centred":
            result = tl.sum(tl.where(inside, a - 1.0, 0.0), axis=1)
        elif OP == "product":
            result = tl.sum(a * tl.load(y + r * n + c, mask=inside, other=0.0), axis=1)
        else:
            result = tl.sum(a * tl.load(y + c, mask=c < n, other=2.0), axis=1)
    tl.store(z + tl.arange(0, M), result)


@pytest.mark.parametrize("rows, n", [(4, 1), (3, 63), (4, 64), (1, 65), (2, 200), (4, 512), (0, 512), (4, 0)])
@pytest.mark.parametrize("op", ["sum", "centred", "product", "weighted", "max", "min"])
def test_reduce_where_a_mask_ends_rows(launch, rows, n, op):
    """What lies past the mask is not computed where it changes nothing; elsewhere it is."""
    x, y, z = sample("float32", (4, 512), 1), sample("float32", (4, 512), 2), empty("float32", 4)
    launch(masked_rows_kernel, (1,), x, y, z, rows, n, M=4, N=512, OP=op)
    a, b = (v.raw.reshape(-1)[: rows * n].reshape(rows, n).astype(np.float64) for v in (x, y))
    if op in ("max", "min"):
        worst = -np.inf if op == "max" else np.inf
        want = NUMPY[op](a, axis=1, initial=worst)
        rest = worst
    else:
        terms = {"sum": a, "centred": a - 1, "product": a * b, "weighted": a * y.raw.reshape(-1)[:n].astype(np.float64)}
        want, rest = terms[op].sum(1), 0.0
    expected = np.full(4, rest)
    expected[:rows] = want
    np.testing.assert_allclose(z.raw, expected, rtol=1e-5, atol=1e-4)


@triton.jit
def special_rows_kernel(x, z, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))
    tl.store(z + 1, tl.max(tl.load(x + i, mask=i < n, other=-float("inf"))))


@pytest.mark.parametrize("n", [1, 256])
def test_reduce_of_nans_and_infinities_in_masked_rows(launch, n):
    x, z = empty("float32", 256), empty("float32", 2)
    x.raw[:] = np.nan
    launch(special_rows_kernel, (1,), x, z, n, N=256)
    assert np.isnan(z.raw[0]) and (np.isneginf(z.raw[1]) if n < 256 else np.isnan(z.raw[1]))
    x.raw[:] = -np.inf
    launch(special_rows_kernel, (1,), x, z, n, N=256)
    assert np.isneginf(z.raw).all()
