"""Descriptor loads and stores that nothing has copied ahead: through shared memory, a box at a time.

Requires: stage ``layout``, after ``box_maps`` and ``pipeline_loads``.
Ensures: a ``desc_load`` or ``desc_store`` of a descriptor with a ``box_map`` is a copy of a box where there is room for
it. A load is waited for where its value is first used, or memory may be written, so that several are under way
together; it is read in the layouts that its users want. A store takes its value in the layout it was made in. Where a
box is not certain to lie as the machine wants it, that is asked when the program runs.

    %x = desc_load %d, %i, %j            box_load %b, %0, %bars, %0, %d, %m, %true, %i, %j
    %y = desc_load %e, %i, %j    =>      box_load %c, %0, %bars, %1, %e, %n, %true, %i, %j
    %z = add %x, %y                      barrier_wait %bars, %0;  %x = shared_load %b, %0
                                         barrier_wait %bars, %1;  %y = shared_load %c, %0
                                         %z = add %x, %y
"""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis import ranges
from ..analysis.axis import analyse
from ..analysis.rooms import Rooms
from ..ir.builder import Builder
from ..ir.core import Block, Function, Module, Op, Value
from ..ir.ops import OPS, has_effect
from ..ir.types import DescriptorType, SharedType, TensorType, i1, i32, u64
from .box_maps import BoxOptions, is_aligned, maps_of

MAX_BARRIERS = 32
BARRIER_ROOM = 1024


def box_copies(module: Module, options: BoxOptions) -> Module:
    """Rewrites the kernel; see the head of this file."""
    function = module.kernel
    maps = maps_of(function)
    if maps:
        _Copies(function, maps, options).run()
    return module


@dataclass(slots=True)
class _Pending:
    """A load under way: its barrier's number, its buffer, the op it replaces."""

    index: int
    buffer: Value
    load: Op


class _Copies:
    def __init__(self, function: Function, maps: dict[Value, Value], options: BoxOptions) -> None:
        self.function, self.maps, self.options = function, maps, options
        self.facts = analyse(function)
        self.ranges = ranges.analyse(function, no_wrap=True)
        self.loads = 0
        self.barriers = Op("alloc_barriers", (), [SharedType(1, TensorType((1,), u64))], {"copies": 1})
        self.replaced: dict[Value, Value] = {}
        self.own: set[Value] = set()  # buffers filled once each time they are made

    def run(self) -> None:
        self.block(self.function.body)
        if self.loads:
            self.barriers.results[0].type = SharedType(self.loads, TensorType((1,), u64))
            self.function.body.ops.insert(0, self.barriers)

    def block(self, block: Block) -> None:
        old = block.ops
        made: list[Op] = []
        b = Builder(block)
        pending: list[_Pending] = []
        for number, op in enumerate(old):
            block.ops, rest = made, old[number:]
            if pending and (op.regions or _ends_waiting(op, pending)):
                self.settle(b, pending)
            op.operands = [self.replaced.get(v, v) for v in op.operands]
            if op.regions:
                block.ops = [*made, *rest]  # room is dealt over the whole function
                for region in op.regions:
                    self.block(region)
                block.ops = made
            b.loc = op.loc
            if op.kind in ("desc_load", "desc_store") and self.fits(op, block, rest, pending):
                condition = self.condition(b, op)
                if condition is not None:
                    self.guarded(b, op, condition)
                elif op.kind == "desc_load":
                    pending.append(self.begin(b, op))
                else:
                    self.store(b, op)
            elif op.kind != "convert_layout" or not self.reread(b, op, rest):
                made.append(op)
        block.ops = made

    def fits(self, op: Op, block: Block, rest: list[Op], pending: list[_Pending]) -> bool:
        """Whether the target has the copy, and shared memory room for it."""
        block_type = _block(op)
        if op.operands[0] not in self.maps:
            return False
        if op.kind == "desc_store":
            if not self.options.can_store(block_type, op.attrs.get("op", "store")):
                return False
        elif self.loads == MAX_BARRIERS:
            return False
        made = block.ops
        trial = Op("alloc_shared", (), [SharedType(1, block_type)], {"inner": len(block_type.shape) - 1})
        reads = [Op("shared_load", [buffer], []) for buffer in (trial.results[0], *(p.buffer for p in pending))]
        fits = self.room_for(block, [*made, trial, *reads, *rest])
        block.ops = made
        return fits

    def room_for(self, block: Block, ops: list[Op]) -> bool:
        """Whether shared memory would do if ``ops`` were the block's."""
        before, block.ops = block.ops, ops
        bytes = Rooms(self.function).bytes + BARRIER_ROOM
        block.ops = before
        return bytes <= self.options.shared_bytes

    def room(self, b: Builder, op: Op) -> Value:
        block = _block(op)
        buffer: Value = b.alloc_shared(types=[SharedType(1, block)], inner=len(block.shape) - 1)
        return buffer

    def begin(self, b: Builder, op: Op) -> _Pending:
        descriptor, *offsets = op.operands
        buffer, index = self.room(b, op), self.loads
        self.own.add(buffer)
        self.loads += 1
        zero, number, yes = b.const(0, i32), b.const(index, i32), b.const(True, i1)
        b.box_load(buffer, zero, self.barriers.results[0], number, descriptor, self.maps[descriptor], yes, *offsets)
        return _Pending(index, buffer, op)

    def settle(self, b: Builder, pending: list[_Pending]) -> None:
        """Waits for all loads under way and reads them."""
        for one in pending:
            b.loc = one.load.loc
            b.barrier_wait(self.barriers.results[0], b.const(one.index, i32))
        for one in pending:
            b.loc = one.load.loc
            result = one.load.results[0]
            self.replaced[result] = b.shared_load(one.buffer, b.const(0, i32), types=[result.type])
        pending.clear()

    def reread(self, b: Builder, op: Op, rest: list[Op]) -> bool:
        """A loaded box that is wanted in another layout is read from its slot once more, if that stays till then."""
        source = op.operands[0].op
        if source is None or source.kind != "shared_load" or source.operands[0] not in self.own:
            return False
        read = Op("shared_load", source.operands, [op.results[0].type], {}, (), op.loc)
        if source not in b.block.ops or not self.room_for(b.block, [*b.block.ops, read, *rest]):
            return False
        b.block.ops.append(read)
        self.replaced[op.results[0]] = read.results[0]
        return True

    def condition(self, b: Builder, op: Op) -> Value | None:
        """What must hold when the program runs for the machine to copy this box; None if it is certain to."""
        block, options = _block(op), self.options
        offsets = op.operands[-len(block.shape) :]
        found: list[Value] = []
        if not is_aligned(offsets[-1], block, self.facts, options.alignment):
            per = options.alignment // max(1, block.element.bits // 8)
            low = b.and_(offsets[-1], b.const(per - 1, offsets[-1].type))
            found.append(b.cmp(low, b.const(0, low.type), pred="eq"))
        if op.kind == "desc_store" and options.stores_from_zero:
            low_ends = [v for v in offsets if self.ranges.get(v, (-1, 0))[0] < 0]
            found += [b.cmp(v, b.const(0, v.type), pred="ge") for v in low_ends]
        result = None
        for value in found:
            result = value if result is None else b.and_(result, value)
        return result

    def guarded(self, b: Builder, op: Op, condition: Value) -> None:
        """A copy where the condition holds, an ordinary access elsewhere."""
        copied, plain = Block(), Block([])
        with b.inside(copied):
            if op.kind == "desc_load":
                self.settle(b, [self.begin(b, op)])
                b.yield_(self.replaced[op.results[0]])
            else:
                self.store(b, op)
                b.yield_()
        choice = Op("if", [condition], [r.type for r in op.results], {}, [copied, plain], op.loc)
        b.block.ops.append(choice)
        plain.ops = [op, Op("yield", op.results, [])]
        for old, new in zip(op.results, choice.results, strict=True):
            self.replaced[old] = new

    def store(self, b: Builder, op: Op) -> None:
        descriptor, value, *offsets = op.operands
        source = value.op
        if source is not None and source.kind == "convert_layout":
            value = source.operands[0]
        buffer, zero = self.room(b, op), b.const(0, i32)
        b.shared_store(buffer, zero, value)
        b.box_store(buffer, zero, descriptor, self.maps[descriptor], *offsets, op=op.attrs.get("op", "store"))


def _block(op: Op) -> TensorType:
    type = op.operands[0].type
    assert isinstance(type, DescriptorType)
    return type.block


def _ends_waiting(op: Op, pending: list[_Pending]) -> bool:
    """Whether the loads under way must be there before ``op``: it uses one, or may write memory."""
    if OPS[op.kind].terminator or any(p.load.results[0] in op.operands for p in pending):
        return True
    return has_effect(op, "write") and op.kind not in ("alloc_shared", "box_load", "assume")
