"""Shared memory and what runs beside the program, in the least lucky order: an asynchronous copy lands, and an
asynchronous product reads its operands, when the program waits for it.

The value of an ``alloc_shared`` is an array with the slots along its first axis, filled with 0xFF bytes (NaN in floats)
so that a tile read too early shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.core import Op
from triton.ir.types import ScalarType, SharedType

from . import tiles
from .errors import InterpreterError
from .floats import storage_dtype
from .machine import Machine
from .rules import read_box, rule, scalar_element, write_box

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


@rule("box_map")
def _box_map(m: Machine, op: Op, args: list[Any]) -> Array:
    """Boxes are copied by their descriptor here; a number that no pointer is."""
    return np.array(0, dtype=np.uint64)


class Barriers:
    """The copies that each of some barriers waits for: those of its open phase are the last ones."""

    def __init__(self, count: int, copies: int) -> None:
        self.copies = copies
        self.pending: list[list[Any]] = [[] for _ in range(count)]


@rule("alloc_barriers")
def _alloc_barriers(m: Machine, op: Op, args: list[Any]) -> Barriers:
    type = op.results[0].type
    assert isinstance(type, SharedType)
    return Barriers(type.slots, op.attrs["copies"])


@rule("box_load")
def _box_load(m: Machine, op: Op, args: list[Any]) -> None:
    buffer, index, barriers, number, desc, _, wanted, *offsets = args
    slot, type = _slot(buffer, index), op.operands[0].type
    assert isinstance(type, SharedType)

    def land() -> None:
        buffer[slot] = read_box(m, desc, type.block, offsets)

    if wanted:
        barriers.pending[int(number)].append(land)


@rule("box_copy")
def _box_copy(m: Machine, op: Op, args: list[Any]) -> None:
    buffer, index, desc, wanted, *offsets = args
    slot, type = _slot(buffer, index), op.operands[0].type
    assert isinstance(type, SharedType)

    def land() -> None:
        buffer[slot] = read_box(m, desc, type.block, offsets) if wanted else 0

    m.copies[-1].append(land)


@rule("barrier_wait")
def _barrier_wait(m: Machine, op: Op, args: list[Any]) -> None:
    barriers, number = args
    pending = barriers.pending[int(number)]
    if len(pending) < barriers.copies:
        raise InterpreterError(f"barrier {int(number)} would wait for ever: {len(pending)} copies of {barriers.copies}")
    for land in pending[: barriers.copies]:
        land()
    del pending[: barriers.copies]


@rule("box_store")
def _box_store(m: Machine, op: Op, args: list[Any]) -> None:
    buffer, index, desc, _, *offsets = args
    type = op.operands[0].type
    assert isinstance(type, SharedType) and isinstance(type.block.element, ScalarType)
    value = np.array(buffer[_slot(buffer, index)])
    write_box(m, desc, value, type.block.element, offsets, op.attrs.get("op", "store"))


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
    result: Array = np.empty_like(acc)
    result.view(np.uint8)[...] = 0xFF

    def finish() -> None:
        result[...] = tiles.dot(left, right, acc, [scalar_element(op.operands[k]) for k in (0, 2, 4)])

    m.products.append(finish)
    return result


@rule("dot_wait")
def _dot_wait(m: Machine, op: Op, args: list[Any]) -> list[Any]:
    done = max(len(m.products) - int(op.attrs.get("pending", 0)), 0)
    for finish in m.products[:done]:
        finish()
    del m.products[:done]
    return args
