"""Shared memory and asynchronous copies, in the least lucky order: a copy lands when the program waits for it.

The value of an ``alloc_shared`` is an array with the slots along its first axis, filled with 0xFF bytes (NaN in floats)
so that a tile read too early shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.core import Op
from triton.ir.types import SharedType

from . import tiles
from .errors import InterpreterError
from .floats import storage_dtype
from .machine import Machine
from .rules import rule, scalar_element

Array = npt.NDArray[Any]


@rule("alloc_shared")
def _alloc(m: Machine, op: Op, args: list[Any]) -> Array:
    type = op.results[0].type
    assert isinstance(type, SharedType)
    room: Array = np.empty((type.slots, *type.block.shape), dtype=storage_dtype(type.block))
    room.view(np.uint8)[...] = 0xFF if room.dtype != np.bool_ else 1
    return room


def _slot(buffer: Array, index: Any) -> int:
    number = int(index)
    if not 0 <= number < buffer.shape[0]:
        raise InterpreterError(f"slot {number} of shared memory is outside 0..{buffer.shape[0] - 1}")
    return number


@rule("async_copy")
def _copy(m: Machine, op: Op, args: list[Any]) -> None:
    buffer, index, addresses, *mask = args
    slot = _slot(buffer, index)
    inside = np.broadcast_to(mask[0], addresses.shape) if mask else np.ones(addresses.shape, dtype=bool)

    def land() -> None:
        buffer[slot] = 0
        buffer[slot][inside] = m.memory.read(addresses[inside], buffer.dtype.type)

    m.copies[-1].append(land)


@rule("async_commit")
def _commit(m: Machine, op: Op, args: list[Any]) -> None:
    m.copies.append([])


@rule("async_wait")
def _wait(m: Machine, op: Op, args: list[Any]) -> None:
    committed = len(m.copies) - 1
    done = max(committed - int(op.attrs["pending"]), 0)
    for group in m.copies[:done]:
        for land in group:
            land()
    del m.copies[:done]


@rule("shared_load")
def _load(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.array(args[0][_slot(args[0], args[1])])


@rule("shared_store")
def _store(m: Machine, op: Op, args: list[Any]) -> None:
    args[0][_slot(args[0], args[1])] = args[2]


@rule("dot_shared")
def _dot(m: Machine, op: Op, args: list[Any]) -> Array:
    a, a_slot, b, b_slot, acc = args
    left = a[_slot(a, a_slot)] if isinstance(op.operands[0].type, SharedType) else a
    right = b[_slot(b, b_slot)]
    left = left.T if op.attrs.get("a_transposed") else left
    right = right.T if op.attrs.get("b_transposed") else right
    return tiles.dot(left, right, acc, [scalar_element(op.operands[k]) for k in (0, 2, 4)])


@rule("dot_wait")
def _dot_wait(m: Machine, op: Op, args: list[Any]) -> list[Any]:
    return args
