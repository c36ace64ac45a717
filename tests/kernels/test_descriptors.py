"""Tensor descriptors made on the host and passed to kernels: boxes loaded, stored, combined, multiplied.

On GPUs of compute capability 9.0 on boxes are copied by the tensor memory accelerator where its rules hold; every test
must give the same elsewhere.
"""

import numpy as np
import pytest
from support import decode, empty, sample

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

MORE_BACKENDS = ["laid_out_80", "laid_out_90"]  # laid-out IR, without and with copies of boxes, in the interpreter


def described(data, block, shape=None, strides=None, padding="zero"):
    """A descriptor of a sample."""
    shape = list(shape or data.raw.shape)
    strides = strides or [s // data.raw.itemsize for s in data.raw.strides]
    return TensorDescriptor(data.arg, shape, list(strides), list(block), padding)


def boxed(values, block, offsets, outside=0):
    """The box of an array at these offsets."""
    result = np.full(block, outside, values.dtype)
    to, source = [], []
    for n, size, start in zip(block, values.shape, offsets, strict=True):
        low, high = max(start, 0), min(start + n, size)
        to.append(slice(low - start, max(high, low) - start))
        source.append(slice(low, max(high, low)))
    result[tuple(to)] = values[tuple(source)]
    return result


@triton.jit
def box_kernel(x, z, offsets, RANK: tl.constexpr, N: tl.constexpr):
    if RANK == 1:
        v = x.load([offsets[0]])
    elif RANK == 2:
        v = x.load([offsets[0], offsets[1]])
    elif RANK == 3:
        v = x.load([offsets[0], offsets[1], offsets[2]])
    elif RANK == 4:
        v = x.load([offsets[0], offsets[1], offsets[2], offsets[3]])
    else:
        v = x.load([offsets[0], offsets[1], offsets[2], offsets[3], offsets[4]])
    tl.store(z + tl.arange(0, N), tl.reshape(v, [N]))


KINDS = ["int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "float8e4nv", "float8e5"]


def load_box(launch, kind, shape, block, offsets, padding="zero", warps=4):
    x, n = sample(kind, shape), int(np.prod(block))
    z = empty(kind, (n,))
    launch(
        box_kernel,
        (1,),
        described(x, block, padding=padding),
        z.arg,
        tuple(offsets),
        RANK=len(shape),
        N=n,
        num_warps=warps,
    )
    outside = np.nan if padding == "nan" else 0
    if padding == "nan":
        expected = boxed(x.values.astype(np.float64), block, offsets, outside)
        np.testing.assert_array_equal(decode(z.raw, kind).astype(np.float64), expected.reshape(-1))
    else:
        np.testing.assert_array_equal(z.raw, boxed(x.raw, block, offsets).reshape(-1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offsets", [(0, 0), (32, 16), (-3, 5), (60, 100)])
def test_loads_of_every_type(launch, kind, offsets):
    load_box(launch, kind, (70, 112), (32, 64), offsets)


BOXES = [
    ((1000,), (512,), (600,)),
    ((4096,), (2048,), (16,)),
    ((64,), (16,), (-4,)),
    ((40, 48), (8, 16), (35, 33)),
    ((300, 16), (512, 16), (-100, 0)),
    ((9, 272), (4, 256), (6, 20)),
    ((33, 144), (2, 128), (32, 24)),
    ((5, 7, 32), (2, 4, 16), (4, 5, 20)),
    ((3, 530, 16), (2, 512, 16), (1, 20, 3)),
    ((3, 4, 5, 16), (2, 2, 4, 16), (2, -1, 3, 0)),
    ((2, 3, 2, 5, 32), (2, 2, 1, 4, 32), (1, 0, 1, 3, -16)),
    ((6, 40), (3, 24), (4, 16)),  # sizes that are no powers of two
    ((20, 8), (16, 4), (3, 3)),  # rows of 8 or 16 bytes
]


@pytest.mark.parametrize("shape, block, offsets", BOXES)
@pytest.mark.parametrize("kind", ["float16", "int32"])
@pytest.mark.parametrize("warps", [1, 8])
def test_loads_of_every_rank(launch, shape, block, offsets, kind, warps):
    load_box(launch, kind, shape, block, offsets, warps=warps)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_padding_with_nan(launch, kind):
    load_box(launch, kind, (30, 48), (16, 32), (20, 30), "nan")


def test_descriptors_that_are_not_regular(launch):
    """A tensor without rows, and rows that the machine could not step over."""
    x, z = sample("float32", (8, 16)), empty("float32", (128,))
    launch(box_kernel, (1,), described(x, (8, 16), shape=(0, 16)), z.arg, (0, 0), RANK=2, N=128)
    np.testing.assert_array_equal(z.raw, 0)
    launch(box_kernel, (1,), described(x, (8, 16), strides=(0, 1)), z.arg, (0, 0), RANK=2, N=128)
    np.testing.assert_array_equal(z.raw.reshape(8, 16), np.broadcast_to(x.raw[0], (8, 16)))
    one = TensorDescriptor(x.arg, [8, 16], [16, 1], [8, 16])
    one.strides = [5, 1]  # set by hand, so that nothing has checked it
    launch(box_kernel, (1,), one, z.arg, (0, 0), RANK=2, N=128)
    rows = np.arange(8)[:, None] * 5 + np.arange(16)[None, :]
    np.testing.assert_array_equal(z.raw.reshape(8, 16), x.raw.reshape(-1)[rows])


@triton.jit
def scale_kernel(x, y, z, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.program_id(0) * M, tl.program_id(1) * N
    z.store([m, n], x.load([m, n]) * 2 + y.load([m, n]))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("block", [(16, 32), (64, 128), (4, 256)])
def test_stores(launch, kind, block):
    x, y, z = sample(kind, (100, 304)), sample(kind, (100, 304), seed=2), empty(kind, (100, 304))
    if kind == "int8":
        x.raw[...] %= 10
    grid = (triton.cdiv(100, block[0]), triton.cdiv(304, block[1]))
    launch(scale_kernel, grid, *(described(v, block) for v in (x, y, z)), M=block[0], N=block[1])
    if kind in ("bfloat16", "float16"):
        np.testing.assert_allclose(z.values, x.values * 2 + y.values, rtol=1e-2, atol=1e-2)
    else:
        np.testing.assert_allclose(z.values, x.values * 2 + y.values, rtol=1e-6)


@triton.jit
def update_kernel(x, z, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    m, n = tl.program_id(0) * M - 3, 0
    v = x.load([m, n])
    if OP == "add":
        z.atomic_add([m, n], v)
    elif OP == "min":
        z.atomic_min([m, n], v)
    elif OP == "max":
        z.atomic_max([m, n], v)
    elif OP == "and":
        z.atomic_and([m, n], v)
    elif OP == "or":
        z.atomic_or([m, n], v)
    else:
        z.atomic_xor([m, n], v)


UPDATES = {"add": np.add, "min": np.minimum, "max": np.maximum}
UPDATES |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.mark.parametrize("op", UPDATES)
@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64", "float16", "float32"])
def test_atomic_updates(launch, op, kind):
    if "float" in kind and op in ("and", "or", "xor"):
        pytest.skip("bits of integers")
    x, z = sample(kind, (61, 64)), sample(kind, (61, 64), seed=3)
    expected = UPDATES[op](x.raw, z.raw)
    launch(update_kernel, (4,), described(x, (16, 64)), described(z, (16, 64)), M=16, N=64, OP=op)
    np.testing.assert_allclose(z.raw, expected, rtol=1e-3 if kind == "float16" else 1e-6)


@triton.jit
def product_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TA: tl.constexpr, TB: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, PROGRAMS):
        m, n = tile // columns * BM, tile % columns * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            if TA:
                x = a.load([k, m]).T
            else:
                x = a.load([m, k])
            if TB:
                y = b.load([n, k]).T
            else:
                y = b.load([k, n])
            acc = tl.dot(x, y, acc, input_precision="ieee")
        c.store([m, n], acc.to(c.dtype))


def multiply(launch, kind, m, n, k, block, turned=(False, False), programs=None, out="float32", **options):
    bm, bn, bk = block
    a = sample(kind, (k, m) if turned[0] else (m, k), low=-1, high=1)
    b = sample(kind, (n, k) if turned[1] else (k, n), low=-1, high=1, seed=2)
    c = empty(out, (m, n))
    tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
    launch(
        product_kernel, (programs or tiles,),
        described(a, (bk, bm) if turned[0] else (bm, bk)), described(b, (bn, bk) if turned[1] else (bk, bn)),
        described(c, (bm, bn)), m, n, k, BM=bm, BN=bn, BK=bk, TA=turned[0], TB=turned[1], PROGRAMS=programs or tiles,
        **options,
    )  # fmt: skip
    left, right = (v.values.astype(np.float64) for v in (a, b))
    expected = (left.T if turned[0] else left) @ (right.T if turned[1] else right)
    np.testing.assert_allclose(c.values, expected, rtol=2e-2 if out != "float32" else 2e-3, atol=2e-2)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products(launch, stages, turned):
    multiply(launch, "float16", 128, 128, 160, (64, 64, 32), turned, num_warps=4, num_stages=stages)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float8e5", "float8e4nv"])
def test_products_of_every_type(launch, kind):
    multiply(launch, kind, 80, 112, 144, (64, 32, 64), num_warps=4, num_stages=3)


@pytest.mark.parametrize("shape", [(64, 64, 16), (200, 136, 72), (8, 8, 8)])
@pytest.mark.parametrize("warps", [4, 8])
def test_products_of_odd_sizes(launch, shape, warps):
    multiply(launch, "float16", *shape, (128, 64, 64), num_warps=warps, num_stages=3, out="float16")


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("programs", [1, 3])
def test_persistent_products(launch, stages, programs):
    multiply(launch, "float16", 192, 128, 128, (64, 64, 64), programs=programs, num_warps=4, num_stages=stages)


@triton.jit
def mixed_kernel(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One operand through a descriptor, the other through pointers."""
    k, n = tl.arange(0, BK), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = a.load([0, start])
        y = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=(start + k)[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
    c.store([0, 0], acc)


@pytest.mark.parametrize("k", [64, 200])
def test_products_of_both_kinds_of_loads(launch, k):
    a, b, c = (
        sample("float16", (64, k), low=-1, high=1),
        sample("float16", (k, 64), low=-1, high=1),
        empty("float32", (64, 64)),
    )
    launch(
        mixed_kernel, (1,), described(a, (64, 32)), b.arg, described(c, (64, 64)), k, 64, BM=64, BN=64, BK=32,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    np.testing.assert_allclose(c.raw, a.values.astype(np.float64) @ b.values.astype(np.float64), rtol=2e-3, atol=1e-2)


@triton.jit
def chain_kernel(x, z, STEPS: tl.constexpr):
    """Each load sees the stores before it."""
    z.store([0, 0], x.load([0, 0]))
    for i in range(STEPS):
        v = z.load([0, 0])
        z.store([0, 0], v + v)
        if i % 2 == 0:
            w = z.load([8, 0])
            z.store([8, 0], w + 1)


def test_loads_see_earlier_stores(launch):
    x, z = sample("int32", (16, 32)), empty("int32", (16, 32))
    launch(chain_kernel, (1,), described(x, (16, 32)), described(z, (16, 32)), STEPS=5)
    expected = x.raw.copy()
    for i in range(5):
        expected = expected + expected
        expected[8:] += i % 2 == 0
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def made_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Descriptors of the kernel's arguments."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc)


@pytest.mark.parametrize("m, n, k", [(128, 64, 128), (100, 80, 96), (70, 48, 40), (33, 20, 8)])
def test_descriptors_made_of_arguments(launch, m, n, k):
    """Rows that are multiples of 16 elements can be copied as boxes; others are read like any memory."""
    a, b = (sample("float16", shape, low=-1, high=1) for shape in ((m, k), (n, k)))
    c = empty("float32", (m, n))
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    launch(made_kernel, grid, a.arg, b.arg, c.arg, m, n, k, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)
    expected = a.values.astype(np.float64) @ b.values.astype(np.float64).T
    np.testing.assert_allclose(c.raw, expected, rtol=2e-3, atol=1e-2)


@triton.jit
def edges_kernel(x, z, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [32, 1], [M, N], padding_option="nan")
    target = tl.make_tensor_descriptor(z, [rows, 32], [32, 1], [M, N])
    v = source.load([0, 0])
    target.store([0, 0], tl.where(v == v, v, -1.0))


@pytest.mark.parametrize("rows, columns", [(16, 32), (5, 16), (0, 16), (3, 0)])
def test_descriptors_of_empty_tensors(launch, rows, columns):
    x, z = sample("float32", (16, 32)), empty("float32", (16, 32))
    before = z.raw.copy()
    launch(edges_kernel, (1,), x.arg, z.arg, rows, columns, M=16, N=32)
    expected = np.where(np.arange(32) < columns, x.raw, -1)
    np.testing.assert_array_equal(z.raw, np.where(np.arange(16)[:, None] < rows, expected, before))


def test_arguments_are_of_one_kind_each():
    """Element type, box, padding and regularity select the compiled version; sizes and strides do not."""
    from triton.runtime.arguments import specialize_argument

    x = np.zeros((32, 64), np.float16)
    plain = specialize_argument(TensorDescriptor.from_tensor(x, [16, 32]))
    assert plain == ("tensordesc<fp16[16, 32]>", "D")
    assert specialize_argument(TensorDescriptor.from_tensor(x[:20], [16, 32])) == plain
    assert specialize_argument(TensorDescriptor.from_tensor(x, [16, 32], "nan")) == (
        "tensordesc<fp16[16, 32], nan>",
        "D",
    )
    assert specialize_argument(TensorDescriptor.from_tensor(x[:0], [16, 32])) == ("tensordesc<fp16[16, 32]>", "")
