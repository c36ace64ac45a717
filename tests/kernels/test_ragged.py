"""Batches of unequal lengths in one tensor: boxes end where their slice ends."""

import numpy as np
import pytest
from support import empty, sample

import triton
import triton.language as tl
from triton.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
    to_ragged_indices,
)

MORE_BACKENDS = ["laid_out_80", "laid_out_90"]
SLICES = [(0, 5), (5, 16), (21, 0), (21, 1), (22, 33), (55, 9)]  # offset and length, 64 rows in all


def described(data, block, axis=0):
    """A ragged descriptor of a sample."""
    descriptor = create_ragged_descriptor(data.raw, list(block), axis)
    descriptor.base = data.arg
    return descriptor


@triton.jit
def copy_kernel(x, z, off, size, M: tl.constexpr, N: tl.constexpr):
    for row in range(0, size, M):
        store_ragged(z, off, size, [row, 16], load_ragged(x, off, size, [row, 16]) + 1)


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("off, size", SLICES)
def test_copies_change_one_slice_only(launch, kind, off, size):
    x, z = sample(kind, (64, 48)), sample(kind, (64, 48), seed=1)
    expected = z.raw.copy()
    expected[off : off + size, 16:48] = x.raw[off : off + size, 16:48] + x.raw.dtype.type(1)
    launch(copy_kernel, (1,), described(x, (8, 32)), described(z, (8, 32)), off, size, M=8, N=32)
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def middle_kernel(x, z, off, size, A: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    box = load_ragged(x, off, size, [1, 2, 16], ragged_dim=1)
    i = tl.arange(0, A)[:, None, None] * M * N + tl.arange(0, M)[None, :, None] * N + tl.arange(0, N)[None, None, :]
    tl.store(z + i, box)


@pytest.mark.parametrize("off, size", [(0, 20), (3, 4), (3, 2), (7, 1), (10, 10)])
def test_middle_axis(launch, off, size):
    """From row 2 of the slice and element 1 of the first axis on; outside lies zero."""
    x, z = sample("float32", (3, 20, 32)), empty("float32", (4, 8, 32))
    expected = np.zeros((4, 8, 32), np.float32)
    rows = x.raw[1:, off + 2 : min(off + size, off + 10), 16:]
    expected[:2, : rows.shape[1], :16] = rows
    launch(middle_kernel, (1,), described(x, (4, 8, 32), 1), z.arg, off, size, A=4, M=8, N=32)
    np.testing.assert_array_equal(z.raw, expected)


@triton.jit
def add_kernel(x, offsets, lengths, M: tl.constexpr, N: tl.constexpr):
    off, size = tl.load(offsets + tl.program_id(0)), tl.load(lengths + tl.program_id(0))
    for row in range(0, size, M):
        atomic_add_ragged(x, off, size, [row, 0], tl.full((M, N), 1, tl.int32) + tl.program_id(0))


def test_adds(launch):
    x = sample("int32", (64, 32))
    offsets, lengths = (np.array(v, np.int32) for v in zip(*SLICES, strict=True))
    expected = x.raw.copy()
    for number, (off, size) in enumerate(SLICES):
        expected[off : off + size] += 1 + number
    launch(add_kernel, (len(SLICES),), described(x, (8, 32)), offsets, lengths, M=8, N=32)
    np.testing.assert_array_equal(x.raw, expected)


@triton.jit
def rows_kernel(x, z, off, size, N: tl.constexpr):
    a, b, c = to_ragged_indices(off, size, 2)
    tl.store(z + tl.arange(0, N), tl.reshape(x.load([a, b, c, 0]), [N]))


@pytest.mark.parametrize("size, inside", [(3, True), (2, False)])
def test_coordinates_of_a_row(launch, size, inside):
    x, z = sample("float16", (40, 64)), empty("float16", (64,))
    launch(rows_kernel, (1,), described(x, (1, 64)), z.arg, 17, size, N=64)
    np.testing.assert_array_equal(z.raw, x.raw[19] if inside else np.zeros(64, np.float16))


@triton.jit
def plain_kernel(x, z):
    tl.store(z, tl.sum(load_ragged(x, 0, 4, [0, 0])))


def test_what_is_refused():
    x = np.zeros((4, 8, 16), np.float32)
    for tensor, axis, message in [
        (x, 2, "0 to 1 here, not the last dimension, got 2"),
        (x, -1, "got -1"),
        (x[0, 0], 0, "2 or 3 dimensions, got 1"),
        (x[None], 0, "2 or 3 dimensions, got 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            create_ragged_descriptor(tensor, [1] * tensor.ndim, axis)
    ordinary = triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(x[0], [4, 16])
    with pytest.raises(triton.CompilationError, match="needs a descriptor of create_ragged_descriptor"):
        plain_kernel[(1,)](ordinary, np.zeros(1, np.float32))


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x, z = torch.randn(64, 48).bfloat16(), torch.zeros(64, 48).bfloat16()
    copy_kernel[(1,)](create_ragged_descriptor(x, [8, 32]), create_ragged_descriptor(z, (8, 32)), 5, 16, M=8, N=32)
    assert torch.equal(z[5:21, 16:], x[5:21, 16:] + 1) and not z[:5].any() and not z[21:].any()
