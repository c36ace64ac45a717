"""Batches of unequal lengths in one tensor, read and written in boxes that end where their slice ends.

The slices lie one after the other along one axis. A descriptor has one bound for each axis, the same for all slices, so
the tensor is described with two more axes in front and the ragged axis made ``LIMIT`` long: row ``r`` of the slice
``[off, off + size)`` has the coordinates ``(LIMIT, off + size, LIMIT - size + r)``. Rows from ``size`` on lie beyond
``LIMIT``, outside the tensor. The strides make the address right: with ``s`` bytes from row to row they are
``2^64 / LIMIT - s``, ``s`` and ``s``, and

    LIMIT * (2^64 / LIMIT - s) + (off + size) * s + (LIMIT - size + r) * s  =  (off + r) * s  (modulo 2^64).
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code=assignment

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.runtime.arguments import element_bytes, element_type
from triton.tools.tensor_descriptor import TensorDescriptor

LIMIT = tl.constexpr(1 << 30)


def create_ragged_descriptor(T: Any, block_shape: Any, ragged_dim: int = 0) -> TensorDescriptor:
    """A descriptor of ``T``, whose axis ``ragged_dim`` holds slices of any lengths, for boxes of ``block_shape``.

    ``T`` has 2 or 3 axes, the last one contiguous and not the ragged one. Raises ValueError for other tensors.
    """
    plain = TensorDescriptor.from_tensor(T, list(block_shape))
    rank = len(plain.shape)
    if not 2 <= rank <= 3:
        raise ValueError(f"create_ragged_descriptor: the tensor must have 2 or 3 dimensions, got {rank}")
    axis = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    if not 0 <= axis < rank - 1:
        raise ValueError(
            f"create_ragged_descriptor: ragged_dim is one of 0 to {rank - 2} here, "
            f"not the last dimension, got {ragged_dim}"
        )
    limit, stride, width = LIMIT.value, plain.strides[axis], element_bytes(element_type(T.dtype))
    if plain.shape[axis] > limit or not 0 < stride * width < 1 << 34:
        raise ValueError(
            f"create_ragged_descriptor: dimension {axis} has {plain.shape[axis]} rows, {stride * width} bytes apart; "
            f"there may be {limit}, less than {1 << 34} bytes apart"
        )
    back = (1 << 34) // width - stride
    shape = [limit + 1, limit + 1, *plain.shape]
    shape[2 + axis] = limit
    return TensorDescriptor(T, shape, [back, stride, *plain.strides], [1, 1, *plain.block_shape])


@triton.jit
def to_ragged_indices(slice_off, slice_size, row):
    """The three coordinates of ``row`` (not negative) of the slice of ``slice_size`` rows at ``slice_off``: of the two
    additional axes and of the ragged one."""
    return LIMIT, slice_off + slice_size, LIMIT - slice_size + row


@triton.jit
def _coordinates(slice_off, slice_size, coords, ragged_dim: tl.constexpr):
    first, second, row = to_ragged_indices(slice_off, slice_size, coords[ragged_dim])
    return (first, second, *coords[:ragged_dim], row, *coords[ragged_dim + 1 :])


@triton.jit
def load_ragged(TMA, slice_off, slice_size, coords, ragged_dim: tl.constexpr = 0):
    """The box at ``coords`` of a slice, of the shape given to ``create_ragged_descriptor``; zero from the slice's end
    on. ``coords`` count from the slice's beginning along the ragged axis."""
    tl.static_assert(len(TMA.shape) == len(coords) + 2, "load_ragged: needs a descriptor of create_ragged_descriptor")
    box = TMA.load(_coordinates(slice_off, slice_size, coords, ragged_dim))
    return tl.reshape(box, TMA.block_shape[2:])


@triton.jit
def store_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Writes a box at ``coords`` of a slice; rows from the slice's end on are dropped."""
    tl.static_assert(len(TMA.shape) == len(coords) + 2, "store_ragged: needs a descriptor of create_ragged_descriptor")
    TMA.store(_coordinates(slice_off, slice_size, coords, ragged_dim), tl.reshape(data, TMA.block_shape))


@triton.jit
def atomic_add_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Adds a box to memory at ``coords`` of a slice, each element atomically; rows from the slice's end on are
    dropped."""
    tl.static_assert(
        len(TMA.shape) == len(coords) + 2, "atomic_add_ragged: needs a descriptor of create_ragged_descriptor"
    )
    TMA.atomic_add(_coordinates(slice_off, slice_size, coords, ragged_dim), tl.reshape(data, TMA.block_shape))
