"""Copies the operands of matrix products ahead of their use: asynchronous copies into slots of shared memory.

Requires: stage ``layout``; a target with asynchronous copies.
Ensures: in each innermost ``for`` loop with a constant positive step, a load whose tile only goes (transposed or not)
to a product is replaced by copies into one of S slots, begun S - 1 trips ahead. What the addresses need (the counter,
pointers carried by the loop, masks) is computed ahead too, in carried values of its own. Copies beyond the last trip
are masked off. Loads of descriptors with a ``box_map`` become ``box_load``, with one barrier for each slot.

    for ... (%i, %p, %acc) {                    copies for the first S - 1 trips
      %x = load %p                              for ... (%i, %acc, %ahead, %slot) {
      %y = convert_layout %x              =>      async_wait;  copies for trip %i + S - 1
      %r = dot %y, ...                            %y = shared_load %buffer, %slot
      %q = addptr %p, ...                         %r = dot %y, ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..analysis import axis as axis_analysis
from ..analysis.access import access_width
from ..analysis.effects import is_pure
from ..analysis.roots import carried_values, root
from ..ir.builder import Builder
from ..ir.core import Block, Function, Module, Op, Value, clone_op
from ..ir.ops import has_effect
from ..ir.types import (
    DescriptorType,
    PointerType,
    ScalarType,
    SharedType,
    TensorType,
    Type,
    element_of,
    i1,
    i32,
    u64,
    with_element,
)
from ..layouts.linear import LinearLayout, part_shape
from ..layouts.placement import tile_bytes
from .assign_layouts import layouts_of, name_layout
from .box_maps import is_aligned, maps_of

MIN_COPY_BYTES = 4
"""The narrowest asynchronous copy (PTX ISA, "cp.async")."""
BARRIER_ROOM = 1024
_MAY_WRITE_ANYTHING = frozenset({"extern", "inline_asm", "call", "atomic_rmw", "atomic_cas", "atomic_poll"})
"""Atomics among them: what other programs wrote before is seen after."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """``stages``: slots unless a loop says otherwise. ``shared_bytes``: what all slots may take together.

    ``asynchronous`` says which products read their operands from slots while later ops run, ``k_inside`` which of them
    need slots with K as the inner axis; ``box_alignment``: bytes that the place of a copied box along its last axis is
    a multiple of; ``box_pieces``: whether threads may copy boxes together.
    """

    stages: int
    shared_bytes: int
    asynchronous: Callable[[Op], bool]
    k_inside: Callable[[Op], bool] = lambda op: False
    box_alignment: int = 1
    box_pieces: bool = False


def pipeline_loads(module: Module, options: PipelineOptions) -> Module:
    """Rewrites every loop that qualifies; see the head of this file."""
    for function in module.functions.values():
        pipeliner = _Pipeliner(module, function, options)
        pipeliner.block(function.body)
        function.body.ops = pipeliner.head + function.body.ops
    return module


@dataclass(slots=True)
class _Candidate:
    """One load that may be copied ahead: ``path`` are the ops between it and the product, which takes ``last``."""

    load: Op
    path: list[Op]
    inner: int
    block: tuple[int, ...] = ()
    map: Value | None = None
    slice: set[Op] = field(default_factory=set)
    carried: set[int] = field(default_factory=set)
    buffer: Value | None = None

    @property
    def places(self) -> list[Value]:
        """What says where it reads: pointer and mask, or a box's offsets."""
        return self.load.operands[1:] if self.load.kind == "desc_load" else self.load.operands[:2]

    @property
    def last(self) -> Value:
        return (self.path[-1] if self.path else self.load).results[0]


class _Pipeliner:
    def __init__(self, module: Module, function: Function, options: PipelineOptions) -> None:
        self.module, self.function, self.options = module, function, options
        self.layouts = layouts_of(module)
        self.facts = axis_analysis.analyse(function)
        self.maps = maps_of(function)
        self.origins = carried_values(function)
        self.head: list[Op] = []  # what the function begins with
        self.users: dict[Value, list[Op]] = {}
        for op in function.body.walk():
            for value in op.operands:
                self.users.setdefault(value, []).append(op)

    def block(self, block: Block) -> None:
        ops: list[Op] = []
        for op in block.ops:
            for region in op.regions:
                self.block(region)
            if op.kind == "for" and not any(inner.kind in ("for", "while", "if") for inner in op.regions[0].ops):
                ops += self.loop(op)
            else:
                ops.append(op)
        block.ops = ops

    # Which loads ----------------------------------------------------------------------------------------------------

    def candidates(self, op: Op, step: int) -> list[_Candidate]:
        found = []
        inside = set(op.regions[0].ops)
        for load in op.regions[0].ops:
            candidate = self.candidate(load) if load.kind in ("load", "desc_load") else None
            if candidate is not None and self.follow(op, inside, candidate) and not self.written(op, load):
                found.append(candidate)
        return found

    def written(self, loop: Op, load: Op) -> bool:
        """Whether the loop may write what a later trip loads."""
        here = root(load.operands[0], self.function.body, self.origins)
        for op in loop.regions[0].walk():
            if op.kind in _MAY_WRITE_ANYTHING and has_effect(op, "write"):
                return True
            if op.kind in ("store", "desc_store"):
                there = root(op.operands[0], self.function.body, self.origins)
                if here is None or there is None or here is there:
                    return True
        return False

    def candidate(self, load: Op) -> _Candidate | None:
        result = load.results[0]
        if not isinstance(result.type, TensorType) or len(result.type.shape) != 2 or load.attrs.get("volatile"):
            return None
        element = element_of(result.type)
        if element.bits not in (8, 16, 32) or isinstance(element, PointerType) or element.is_bool:
            return None
        path = self.path(result)
        if path is None:
            return None
        if load.kind == "desc_load":
            return self.boxed(load, path)
        return self.pointed(load, path)

    def boxed(self, load: Op, path: list[Op]) -> _Candidate | None:
        """A box, copied by the machine or, if rows are known to be aligned, by all threads."""
        map, made = self.maps.get(load.operands[0]), load.operands[0].op
        type = load.operands[0].type
        assert isinstance(type, DescriptorType)
        block = type.block
        if not is_aligned(load.operands[-1], block, self.facts, self.options.box_alignment):
            return None
        if map is None and (not self.options.box_pieces or made is None or not self.pieces_fit(made, block)):
            return None
        return _Candidate(load, path, 1, map=map)

    def pieces_fit(self, made: Op, block: TensorType) -> bool:
        """Whether 16-byte pieces of the rows of the descriptor's tensor are aligned; ``made`` is its ``make_desc``."""
        if made.kind != "make_desc" or made.attrs.get("padding", "zero") != "zero":
            return False
        if any(size & size - 1 for size in block.shape) or block.shape[-1] * block.element.bits < 128:
            return False
        base, last = self.facts.get(made.operands[0]), made.operands[-1].op
        aligned = base is not None and base.divisibility[0] % 16 == 0
        one = last is not None and last.kind == "constant" and last.attrs["value"] == 1
        return bool(made.attrs.get("regular")) or (aligned and one)  # strides are multiples: the kernel asserts it

    def path(self, value: Value) -> list[Op] | None:
        """The ops on the way to a product; None where the value goes elsewhere."""
        path: list[Op] = []
        while True:
            users = self.users.get(value, [])
            if len(users) != 1:
                return None
            if users[0].kind in ("dot", "dot_scaled"):
                return path if value in users[0].operands[:2] else None
            if users[0].kind not in ("permute", "convert_layout"):
                return None
            path.append(users[0])
            value = users[0].results[0]

    def pointed(self, load: Op, path: list[Op]) -> _Candidate | None:
        """A load through pointers, if they lie so that asynchronous copies can take it."""
        pointer = load.operands[0]
        if len(load.operands) > 2 and not _is_zero(load.operands[2]):
            return None
        element = element_of(load.results[0].type)
        facts = self.facts.get(pointer)
        if facts is None:
            return None
        mask = self.facts.get(load.operands[1]) if len(load.operands) > 1 else None
        width = access_width(self.layout(pointer), facts, mask, element.bits // 8)
        if width * element.bits // 8 < MIN_COPY_BYTES:
            return None
        inner = max((0, 1), key=lambda d: (facts.contiguity[d], d))
        block = self.layout(pointer).block
        if self.seen_layout(load, path).block != block:
            return None
        k = self.k_axis(load, path)
        if k is not None and element.bits == 32:
            inner = k  # copies of single elements turn the tile
        return _Candidate(load, path, inner, block)

    def seen_layout(self, load: Op, path: list[Op]) -> LinearLayout:
        """The layout in which a load's tile comes to its product, as a layout of the tile before it is transposed."""
        layout = self.layout((path[-1] if path else load).results[0])
        for turn in reversed([op for op in path if op.kind == "permute"]):
            order = turn.attrs["order"]
            layout = layout.permuted([order.index(i) for i in range(len(order))])
        return layout

    def k_axis(self, load: Op, path: list[Op]) -> int | None:
        """The load's axis that its product adds up over, if the product needs that inside."""
        value = (path[-1] if path else load).results[0]
        (product,) = self.users[value]
        if not self.options.k_inside(product):
            return None
        turns = sum(op.kind == "permute" for op in path)
        return (turns + (value is product.operands[0])) % 2

    def follow(self, loop: Op, inside: set[Op], candidate: _Candidate) -> bool:
        """Finds what the load's addresses and mask are computed from; False when that cannot run ahead."""
        body = loop.regions[0]
        yields = body.terminator.operands
        pending = list(candidate.places)
        seen: set[Value] = set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            op = value.op
            if op is None:
                if value.owner is body and value.index > 0:
                    candidate.carried.add(value.index - 1)
                    pending.append(yields[value.index - 1])
            elif op in inside:
                if not is_pure(op) or op.regions or op.kind == "convert_layout":
                    return False
                candidate.slice.add(op)
                pending += op.operands
        return True

    # The new loop ---------------------------------------------------------------------------------------------------

    def loop(self, op: Op) -> list[Op]:
        """The ops that take the loop's place: prologue, loop, and a last wait."""
        step = op.operands[2].op
        stages = op.attrs.get("num_stages") or self.options.stages
        if step is None or step.kind != "constant" or step.attrs["value"] <= 0 or stages < 2:
            return [op]
        candidates = self.candidates(op, step.attrs["value"])
        products = [inner for inner in op.regions[0].ops if inner.kind == "dot"]
        lag = int(self.runs_on(op, products, candidates))
        sizes = [_slot_bytes(c.load.results[0].type, c.block) for c in candidates]
        room = self.options.shared_bytes - (BARRIER_ROOM if any(c.map is not None for c in candidates) else 0)
        while sizes and sum(sizes) * stages > room and stages > 2:
            stages -= 1
        if not sizes or sum(sizes) * stages > room:
            return [op]
        if lag and sum(sizes) * (stages + 1) <= room:
            stages += 1
        elif stages < 3:
            lag = 0
        return _Rewrite(self, op, candidates, stages, step.attrs["value"], lag).run()

    def runs_on(self, op: Op, products: list[Op], candidates: list[_Candidate]) -> bool:
        """Whether the loop's only product reads its slots while the next trip has begun."""
        if len(products) != 1 or not self.options.asynchronous(products[0]) or not accumulates(op, products[0]):
            return False
        # Else b would be stored, to one slot, while the product of the trip before still reads it.
        return any(c.last is products[0].operands[1] for c in candidates)

    def layout(self, value: Value) -> LinearLayout:
        assert isinstance(value.type, TensorType) and value.type.layout is not None
        return self.layouts[value.type.layout]

    def named(self, type: TensorType, layout: LinearLayout) -> TensorType:
        name = name_layout(self.module, layout)
        self.layouts[name] = layout
        return TensorType(type.shape, type.element, name)


class _Rewrite:
    """One loop, rebuilt."""

    def __init__(self, owner: _Pipeliner, op: Op, chosen: list[_Candidate], stages: int, step: int, lag: int) -> None:
        self.owner, self.op, self.chosen, self.stages, self.step, self.lag = owner, op, chosen, stages, step, lag
        self.body = op.regions[0]
        self.boxed = [c for c in chosen if c.map is not None]
        self.pointed = [c for c in chosen if c.map is None]
        self.distance = stages - 1 - lag  # trips between a copy's beginning and its use
        self.barriers: Value | None = None  # one for each slot
        self.slice = set().union(*(c.slice for c in chosen))
        self.carried = sorted(set().union(*(c.carried for c in chosen)))
        self.out = Block()
        self.b = Builder(self.out, op.loc)

    def run(self) -> list[Op]:
        b, op = self.b, self.op
        low, high = op.operands[:2]
        kind = low.type
        assert isinstance(kind, ScalarType)
        for candidate in self.chosen:
            type = candidate.load.results[0].type
            assert isinstance(type, TensorType)
            held = SharedType(self.stages, TensorType(type.shape, type.element))
            block = {"block": candidate.block} if any(candidate.block) else {}
            candidate.buffer = b.alloc_shared(types=[held], inner=candidate.inner, **block)
        if self.boxed:
            type = SharedType(self.stages, TensorType((1,), u64))
            made = Op("alloc_barriers", (), [type], {"copies": len(self.boxed)}, (), op.loc)
            self.owner.head.append(made)
            self.barriers = made.results[0]
        ahead = [op.operands[3 + j] for j in self.carried]
        some = b.cmp(low, high, pred="lt")
        distance = b.sub(high, low)
        for s in range(self.distance):
            far = b.cmp(distance, b.const(s * self.step, kind), pred="gt") if s else some
            counter = b.add(low, b.const(s * self.step, kind)) if s else low
            ahead = self.copies(b, counter, ahead, b.and_(some, far) if s else some, b.const(s, i32))
        first, last = b.const(0, i32), b.const(self.distance, i32)
        count = len(self.body.args)
        types = [v.type for v in (*ahead, first, last)]
        extra = Block(types, [f"ahead{i}" for i in range(len(ahead))] + ["slot", "free"])
        for value in extra.args:
            value.owner, value.index = self.body, len(self.body.args)
            self.body.args.append(value)
        self.rewrite_body(self.body.args[count:])
        op.operands += [*ahead, first, last]
        for type in types:
            op.results.append(Value(type, op, len(op.results)))
        op.attrs = {**op.attrs, "num_stages": 1}  # done: not to be pipelined again
        if self.lag:
            op.attrs["in_flight"] = True
        b.block.ops.append(op)
        if self.pointed:
            b.async_wait(pending=0)
        return self.out.ops

    def copies(self, b: Builder, counter: Value, ahead: list[Value], wanted: Value, slot: Value) -> list[Value]:
        """The copies of one trip into ``slot``, if it is wanted; gives the carried values of the trip after."""
        mapping: dict[Value, Value] = {self.body.args[0]: counter}
        mapping.update({self.body.args[1 + j]: v for j, v in zip(self.carried, ahead, strict=True)})
        for inner in self.body.ops:
            if inner in self.slice:
                b.block.ops.append(clone_op(inner, mapping, lambda loc: loc))
        for candidate in self.boxed:
            offsets = [mapping.get(v, v) for v in candidate.places]
            source = candidate.load.operands[0]
            b.box_load(candidate.buffer, slot, self.barriers, slot, source, candidate.map, wanted, *offsets)
        for candidate in self.pointed:
            if candidate.load.kind == "desc_load":
                offsets = [mapping.get(v, v) for v in candidate.places]
                b.box_copy(candidate.buffer, slot, candidate.load.operands[0], wanted, *offsets)
                continue
            pointer = mapping.get(candidate.load.operands[0], candidate.load.operands[0])
            type = _mask_type(pointer.type)
            mask = b.splat(wanted, types=[type])
            if len(candidate.load.operands) > 1:
                own = candidate.load.operands[1]
                mask = b.and_(mapping.get(own, own), mask)
            b.async_copy(candidate.buffer, slot, pointer, mask)
        if self.pointed:
            b.async_commit()
        yields = self.body.terminator.operands
        return [mapping.get(yields[j], yields[j]) for j in self.carried]

    def rewrite_body(self, extra: list[Value]) -> None:
        """Wait and copies at the top, slots in place of loads, the new carried values at the end."""
        body, end = self.body, self.body.ops[-1]
        old = body.ops[:-1]
        *ahead, slot, free = extra
        body.ops = [*old, end]  # what ``copies`` clones from
        top = Block()
        b = Builder(top, self.op.loc)
        if self.pointed:
            b.async_wait(pending=self.distance - 1)
        else:
            b.barrier()  # all have read the slot that is to be filled
        counter, high = body.args[0], self.op.operands[1]
        reach = self.distance * self.step
        kind = counter.type
        assert isinstance(kind, ScalarType)
        wanted = b.cmp(b.sub(high, counter), b.const(reach, kind), pred="gt")
        after = self.copies(b, b.add(counter, b.const(reach, kind)), ahead, wanted, free)
        if self.boxed:
            b.barrier_wait(self.barriers, slot)
        next_slots = [self.next_slot(b, value) for value in (slot, free)]
        replaced = {c.load: c for c in self.chosen}
        skipped = {op for c in self.chosen for op in c.path}
        body.ops = list(top.ops)
        b = Builder(body, self.op.loc)
        for op in old:
            if op in replaced:
                self.read(b, replaced[op], slot)
            elif op not in skipped:
                body.ops.append(op)
        end.operands += [*after, *next_slots]
        body.ops.append(end)

    def next_slot(self, b: Builder, slot: Value) -> Value:
        up = b.add(slot, b.const(1, i32))
        result: Value = b.select(b.cmp(up, b.const(self.stages, i32), pred="eq"), b.const(0, i32), up)
        return result

    def read(self, b: Builder, candidate: _Candidate, slot: Value) -> None:
        """The tile from its slot, in the layout that the product wants; transposing changes names only."""
        owner = self.owner
        last = candidate.last
        layout = owner.seen_layout(candidate.load, candidate.path)
        turns = [op for op in candidate.path if op.kind == "permute"]
        type = candidate.load.results[0].type
        assert isinstance(type, TensorType)
        b.loc = candidate.load.loc
        value: Value = b.shared_load(candidate.buffer, slot, types=[owner.named(type, layout)])
        for turn in turns:
            layout = layout.permuted(turn.attrs["order"])
            shape = turn.results[0].type
            assert isinstance(shape, TensorType)
            made = Op("permute", [value], [owner.named(shape, layout)], dict(turn.attrs), (), turn.loc)
            b.block.ops.append(made)
            value = made.results[0]
        (product,) = owner.users[last]
        product.operands = [value if v is last else v for v in product.operands]


def accumulates(loop: Op, product: Op) -> bool:
    """Whether a product's result goes from trip to trip as its own accumulator and nothing else in the loop uses it."""
    body = loop.regions[0]
    acc = product.operands[2]
    if acc.owner is not body or acc.index == 0:
        return False
    result = product.results[0]
    uses = [(op, n) for op in body.walk() for n, v in enumerate(op.operands) if v in (acc, result)]
    return sorted((op.kind, n) for op, n in uses) == [("dot", 2), ("yield", acc.index - 1)] and (
        body.terminator.operands[acc.index - 1] is result
    )


def _is_zero(value: Value) -> bool:
    op = value.op
    return op is not None and op.kind == "constant" and op.attrs["value"] == 0


def _mask_type(pointer: Type) -> Type:
    return with_element(pointer, i1)


def _slot_bytes(type: Type, block: Sequence[int]) -> int:
    assert isinstance(type, TensorType)
    return tile_bytes(part_shape(type.shape, block), max(1, type.element.bits // 8))
