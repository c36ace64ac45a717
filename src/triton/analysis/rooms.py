"""Where buffers lie in shared memory: room for as long as they are used, block by block.

A buffer lives from its ``alloc_shared`` (or ``alloc_barriers``) to the last op of the same block that uses it, itself
or in a region. Buffers that live lie one behind the other; what lies behind them is free for other purposes.
"""

from __future__ import annotations

from ..ir.core import Block, Function, Op, Value
from ..ir.types import SharedType
from ..layouts.linear import part_shape
from ..layouts.placement import tile_bytes

ALLOCATIONS = frozenset({"alloc_shared", "alloc_barriers"})
BARRIER_BYTES = 8


def slot_shape(op: Op) -> tuple[int, ...]:
    """What one slot of an ``alloc_shared`` holds: a tile, in a cluster a block's part of it."""
    type = op.results[0].type
    assert isinstance(type, SharedType)
    return part_shape(type.block.shape, op.attrs.get("block") or ())


def slot_bytes(op: Op) -> int:
    """What one slot of an ``alloc_shared`` takes."""
    type = op.results[0].type
    assert isinstance(type, SharedType)
    return tile_bytes(slot_shape(op), max(1, type.block.element.bits // 8))


def buffer_bytes(op: Op) -> int:
    """What an allocation takes: a multiple of 1024."""
    type = op.results[0].type
    assert isinstance(type, SharedType)
    if op.kind == "alloc_barriers":
        return tile_bytes((type.slots,), BARRIER_BYTES)
    return type.slots * slot_bytes(op)


class Rooms:
    """``offsets`` of the buffers, and ``bytes``, what they take at most.

    ``begins`` and ``ends``: ops before and after which the memory behind the buffers begins elsewhere, and where.
    ``nested``: allocations that run again and again.
    """

    def __init__(self, function: Function) -> None:
        self.offsets: dict[Value, int] = {}
        self.begins: dict[Op, int] = {}
        self.ends: dict[Op, int] = {}
        self.nested: set[Op] = set()
        self.bytes = 0
        if any(op.kind in ALLOCATIONS for op in function.body.walk()):
            self.block(function.body, 0, False)

    def block(self, block: Block, start: int, nested: bool) -> None:
        """Deals room behind ``start``."""
        last: dict[Value, int] = {}
        for number, op in enumerate(block.ops):
            for value in (*op.operands, *(v for region in op.regions for v in _buffers(region))):
                if isinstance(value.type, SharedType):
                    last[value] = number
        live: list[tuple[Value, int]] = []
        for number, op in enumerate(block.ops):
            end = max((e for _, e in live), default=start)
            if op.kind in ALLOCATIONS:
                (value,) = op.results
                self.offsets[value] = end
                end += buffer_bytes(op)
                self.begins[op] = end
                self.bytes = max(self.bytes, end)
                live.append((value, end))
                last.setdefault(value, number)
                if nested:
                    self.nested.add(op)
            for region in op.regions:
                self.block(region, end, nested or op.kind in ("for", "while"))
            kept = [(v, e) for v, e in live if last[v] > number]
            if len(kept) != len(live):
                live = kept
                self.ends[op] = max((e for _, e in live), default=start)


def _buffers(block: Block) -> set[Value]:
    """The buffers that a block uses."""
    return {v for op in block.walk() for v in op.operands if isinstance(v.type, SharedType)}
