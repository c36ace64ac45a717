"""Writes one function of the tile IR as LLVM IR: blocks in order, a loop nest for each root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...ir.core import Block, Function, Op, Value
from ...ir.ops import OPS
from ...ir.types import DescriptorType, ElementType, TensorType, element_of, shape_of
from ..elementwise import emit_constant, emit_elementwise
from ..writer import Cell, FunctionWriter, ModuleWriter
from . import access, transpose
from .ahead import Ahead
from .buffers import Arena, Buffer, bytes_of
from .errors import Unsupported
from .evaluate import Evaluator
from .graph import EVERYTHING, Graph, Stride
from .index import ZERO, Index, fixed, strides_of
from .machine import Machine
from .nest import Shape, choose, nest, preferred_axis, survey
from .plan import Plan


class FunctionEmitter:
    """The state of one function. ``programs`` gives program ids, ``callees`` the functions already written."""

    def __init__(
        self,
        module: ModuleWriter,
        function: Function,
        machine: Machine,
        w: FunctionWriter,
        scratch: str,
        context: str,
        callees: dict[str, Callee],
    ) -> None:
        self.module = module
        self.function = function
        self.machine = machine
        self.w = w
        self.context = context
        self.callees = callees
        self.graph = Graph(function)
        self.plan = Plan(self.graph, machine)
        self.arena = Arena(w, scratch)
        self.scalars: dict[Value, Cell] = {}
        self.buffers: dict[Value, Buffer] = {}
        self.e = Evaluator(w, self.plan, self.scalars, self.buffers)
        self.e.ahead = Ahead(self).vector
        self.destination: dict[Value, Buffer] = {}
        self.packed: dict[object, Any] = {}
        self.gathered: dict[Value, Cell] = {}
        self.trailing: dict[Op, list[tuple[Value, Buffer]]] = {}
        self.written: set[Op] = set()  # stores that the products before them have carried out
        self.loops = 0  # for loops around this place
        self._live: list[list[tuple[int, int]]] = []
        self.program_id: Callable[[int], Cell] = _no_programs
        self.num_programs: Callable[[int], Cell] = _no_programs
        self.streams: Callable[[], str] | None = None  # whether the launch's data is too much for the caches

    # Blocks

    def block(self, block: Block, finish: Callable[[Op], None]) -> None:
        """Everything but the terminator, which ``finish`` handles. Buffers of the block end with it."""
        self._live.append([])
        for op in block.ops[:-1]:
            self.op(op)
            self._release(self.graph.end[op])
        finish(block.terminator)
        for _, offset in self._live.pop():
            self.arena.free(offset)

    def _release(self, now: int) -> None:
        live = self._live[-1]
        kept = [entry for entry in live if entry[0] > now]
        if len(kept) != len(live):
            for death, offset in live:
                if death <= now:
                    self.arena.free(offset)
            self._live[-1] = kept

    def op(self, op: Op) -> None:
        rule = RULES.get(op.kind)
        if rule is not None:
            self.e.reset()
            rule(self, op)
        elif any(r in self.plan.held for r in op.results):
            if op.results[0] not in self.plan.computed_at:
                hold(self, op)
        elif self.plan.is_lazy(op):
            return
        else:
            self.e.reset()
            self.scalar(op)

    def elementwise(self, op: Op, args: list[Cell]) -> list[Cell]:
        """An elementwise op on scalars."""
        return emit_elementwise(self.w, op, args, 0)

    def scalar(self, op: Op) -> None:
        """An op without tiles."""
        if op.kind == "load":
            self.scalars[op.results[0]] = access.load(self.e, op, ())[0]
        elif op.kind == "desc_load":
            self.scalars[op.results[0]] = access.desc_load(self.e, op, ())[0]
        elif OPS[op.kind].elementwise:
            args = [self.scalars[v] for v in op.operands]
            for result, cell in zip(op.results, self.elementwise(op, args), strict=True):
                self.scalars[result] = cell
        else:
            raise Unsupported(f"{op.kind} is not supported on this target", op)

    # Buffers

    def allocate(
        self, shape: Sequence[int], element: ElementType, strides: tuple[int, ...] | None = None
    ) -> tuple[Buffer, int]:
        """A temporary tile, row-major unless ``strides`` are given; the caller frees its offset."""
        pointer, offset = self.arena.allocate(prod(shape) * bytes_of(element))
        return Buffer(pointer, tuple(shape), element, strides or strides_of(tuple(shape))), offset

    def buffer_for(self, value: Value) -> Buffer:
        """Where ``value`` is to be written: the place its only reader wants, or a new one that lives as long as the
        value."""
        found = self.destination.get(value)
        if found is not None:
            return found
        buffer, offset = self.allocate(shape_of(value.type), element_of(value.type), self.strides_for(value))
        self._live[-1].append((self.plan.death.get(value, 0), offset))
        return buffer

    def strides_for(self, value: Value) -> tuple[int, ...]:
        """How a tile computed as ``value`` should lie: along the axis in which what it is made of lies in memory."""
        shape = shape_of(value.type)
        wide = [d for d, n in enumerate(shape) if n > 1]
        if len(wide) < 2 or value.op is None or not self.plan.lazy_kind(value.op):
            return strides_of(shape)
        fast = preferred_axis(survey(self.e, [value], shape), shape)
        if fast is None or fast == wide[-1]:
            return strides_of(shape)
        order = [d for d in range(len(shape)) if d != fast] + [fast]
        packed = strides_of(tuple(shape[d] for d in order))
        return tuple(packed[order.index(d)] for d in range(len(shape)))

    def keep(self, offset: int, until: int) -> None:
        """Frees a place of the current block after op number ``until``."""
        self._live[-1].append((until, offset))

    def extend(self, buffer: Buffer, until: int) -> bool:
        """Keeps a buffer of the current block until op number ``until``; False when it is not one of the block's
        places."""
        live = self._live[-1]
        for i, (death, offset) in enumerate(live):
            if self.arena.pointer(offset) == buffer.pointer:
                live[i] = (max(death, until), offset)
                return True
        return False

    def fill(self, value: Value, buffer: Buffer, idle: Value | None = None) -> None:
        """Computes every element of ``value`` into ``buffer``; where ``idle`` does not hold, it may stay as it is."""
        held = self.buffers.get(value)
        if held is not None and held.strides == buffer.strides:
            copy(self, held, buffer)
            return
        self.fill_all([(value, buffer)], idle)

    def fill_all(self, pairs: Sequence[tuple[Value, Buffer]], idle: Value | None = None) -> None:
        """``fill`` for values of one shape, none of which is held, in one loop nest."""
        self.e.reset()
        values = [value for value, _ in pairs]
        shape = shape_of(values[0].type)
        found = survey(self.e, values, shape)
        found.accesses += [tuple(buffer.strides) for _, buffer in pairs]
        if idle is not None:
            found.stop = idle, tuple(range(len(shape)))
        nest(self.e, shape, choose(self.e, shape, found), lambda index: self.write_all(pairs, index), found)
        self.e.reset()

    def write_all(self, pairs: Sequence[tuple[Value, Buffer]], index: Index) -> None:
        """All values at ``index``, computed before the first is written: a buffer may be one that they read."""
        cells = [self.e.cell(value, index)[0] for value, _ in pairs]
        for (_, buffer), cell in zip(pairs, cells, strict=True):
            access.write(self.e, buffer, index, cell)

    # By-products: values that a root computes anyway

    def open_by_products(self, root: Op) -> list[tuple[Value, Buffer]]:
        return [(v, self.buffer_for(v)) for v in self.plan.by_product.get(root, ())]

    def write_by_products(self, values: list[tuple[Value, Buffer]], index: Index) -> None:
        for value, buffer in values:
            access.write(self.e, buffer, index, self.e.cell(value, index)[0])

    def close_by_products(self, values: list[tuple[Value, Buffer]]) -> None:
        self.buffers.update(values)

    def scalar_of(self, value: Value) -> Cell:
        """The element at index 0 of a value that is the same everywhere, or of size 1."""
        return self.e.cell(value, (ZERO,) * len(shape_of(value.type)))[0]


class Callee:
    """A function already written: its LLVM name and the scratch bytes it needs."""

    __slots__ = ("name", "scratch")

    def __init__(self, name: str, scratch: int) -> None:
        self.name = name
        self.scratch = scratch


def _no_programs(axis: int) -> Cell:
    raise AssertionError("program ids are set before a body is written")


def copy(f: FunctionEmitter, source: Buffer, target: Buffer) -> None:
    """All bytes of a dense tile."""
    if source.pointer == target.pointer:
        return
    size = bytes_of(source.element)
    for n in source.shape:
        size *= n
    name = f.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
    f.w.line(f"call void {name}(ptr align 64 {target.pointer}, ptr align 64 {source.pointer}, i64 {size}, i1 false)")


def hold(f: FunctionEmitter, op: Op) -> None:
    """Computes the results of a lazy op into buffers."""
    e = f.e
    e.reset()
    shape = shape_of(op.results[0].type)
    targets = [(r, f.buffer_for(r)) for r in op.results]
    found = survey(e, op.results, shape)
    found.accesses += [tuple(b.strides) for _, b in targets]

    def body(index: Index) -> None:
        cells = [e.cell(r, index)[0] for r, _ in targets]
        for (_, buffer), cell in zip(targets, cells, strict=True):
            access.write(e, buffer, index, cell)

    nest(e, shape, choose(e, shape, found), body, found)
    e.reset()
    f.buffers.update(targets)


# Rules ----------------------------------------------------------------------------------------------------------------

OpRule = Callable[[FunctionEmitter, Op], None]
RULES: dict[str, OpRule] = {}
"""What ops emit when they are reached. Ops without a row are lazy, or elementwise on scalars."""


def rule(*kinds: str) -> Callable[[OpRule], OpRule]:
    def register(function: OpRule) -> OpRule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


@rule("store")
def _store(f: FunctionEmitter, op: Op) -> None:
    if op in f.written:
        return
    e, pointer = f.e, op.operands[0]
    mask = op.operands[2] if len(op.operands) > 2 else None
    shape = shape_of(pointer.type)
    by_products = f.open_by_products(op)
    trailing = f.trailing.get(op, [])
    if not by_products and not trailing and len(shape) == 2 and _store_turned(f, op):
        return
    found = survey(e, [*op.operands[1:], *(v for v, _ in trailing)], shape, [pointer])
    found.accesses += [tuple(b.strides) for _, b in trailing]

    def body(index: Index) -> None:
        f.write_by_products(by_products, index)
        access.store(e, op, index)
        f.write_all(trailing, index)

    if mask is not None:
        entry = mask, tuple(range(len(shape)))
        if by_products:
            found.masks.append(entry)
        else:
            found.stop = entry
    chosen = choose(e, shape, found)
    streams = None if by_products or trailing else _streams(f, op, chosen)
    nest(e, shape, chosen, body, found, streams)
    e.reset()
    f.close_by_products(by_products)


_CHEAP = 30
"""Instructions for each element, addresses included, below which memory is what a store waits for."""


def _streams(f: FunctionEmitter, op: Op, chosen: Shape) -> Callable[[Index], str] | None:
    """For a long store of cheap values to memory that the kernel does not read: whether a run of it, which begins at
    an index, may go past the caches."""
    pointer, value = op.operands[:2]
    if f.streams is None or chosen.axis is None or f.plan.cost(value) > _CHEAP:
        return None
    bits, n = 8 * bytes_of(element_of(value.type)), shape_of(pointer.type)[chosen.axis]
    if f.graph.stride(pointer, chosen.axis) != Stride(1, 0) or chosen.lanes * bits % 512 or n < 8 * chosen.lanes:
        return None
    base = f.graph.base(pointer)
    for other in f.graph.ops:
        if "read" in OPS[other.kind].effects:
            source = f.graph.base(other.operands[0]) if other.kind in ("load", "desc_load") else EVERYTHING
            if f.plan.conflict(source, base):
                return None
    flag = f.streams()

    def aligned(index: Index) -> str:
        address = f.w.emit(f"ptrtoint ptr {f.e.cell(pointer, index)[0].text} to i64")
        rest = f.w.emit(f"and i64 {address}, 15")
        return f.w.emit(f"and i1 {flag}, {f.w.emit(f'icmp eq i64 {rest}, 0')}")

    return aligned


def _store_turned(f: FunctionEmitter, op: Op) -> bool:
    """Stores a tile that is read along one axis and written along the other; False when it is not one."""
    e, (pointer, value) = f.e, op.operands[:2]
    shape, element = shape_of(value.type), element_of(value.type)
    if element.is_bool:
        return False
    size = min(16, f.machine.vector_bits // element.bits)
    steps = [e.graph.stride(pointer, axis) for axis in (0, 1)]
    found = survey(e, [value], shape)
    for y in (0, 1):
        along, across = steps[y], steps[1 - y]
        if along is None or along.step != 1 or (across is not None and across.step in (0, 1)):
            continue
        if transpose.wanted(found, shape, 1 - y, y, size):
            transpose.turn(
                f, shape, 1 - y, y, size, element,
                lambda index: e.vector(value, index)[0],
                lambda index, cell: access.store_cell(e, op, cell, index),
            )  # fmt: skip
            e.reset()
            return True
    return False


@rule("constant")
def _constant(f: FunctionEmitter, op: Op) -> None:
    result = op.results[0]
    if not isinstance(result.type, TensorType):
        f.scalars[result] = emit_constant(element_of(result.type), op.attrs["value"])
    elif result in f.plan.held:
        hold(f, op)


@rule("program_id")
def _program_id(f: FunctionEmitter, op: Op) -> None:
    f.scalars[op.results[0]] = f.program_id(op.attrs["axis"])


@rule("num_programs")
def _num_programs(f: FunctionEmitter, op: Op) -> None:
    f.scalars[op.results[0]] = f.num_programs(op.attrs["axis"])


@rule("hint", "reshape", "split")
def _moved(f: FunctionEmitter, op: Op) -> None:
    if isinstance(op.results[0].type, TensorType):
        if any(r in f.plan.held for r in op.results):
            hold(f, op)
        return
    source = op.operands[0]
    if isinstance(source.type, DescriptorType):
        f.e.descriptors[op.results[0]] = f.e.descriptors[source]
    elif not isinstance(source.type, TensorType):
        f.scalars[op.results[0]] = f.scalars[source]
    elif op.kind == "split":
        for i, result in enumerate(op.results):
            f.scalars[result] = f.e.cell(source, (fixed(i),))[0]
    else:
        f.scalars[op.results[0]] = f.scalar_of(source)


@rule("assume", "barrier")
def _nothing(f: FunctionEmitter, op: Op) -> None:
    """Programs are single threads here, and promises have been used by the passes."""


@rule("make_desc")
def _make_desc(f: FunctionEmitter, op: Op) -> None:
    rank = (len(op.operands) - 1) // 2
    numbers = [access.wide_integer(f.w, f.scalars[v], f.e) for v in op.operands[1:]]
    base = f.scalars[op.operands[0]]
    f.e.descriptors[op.results[0]] = access.Descriptor(
        base, numbers[:rank], numbers[rank:], op.attrs.get("padding", "zero")
    )


@rule("join")
def _join(f: FunctionEmitter, op: Op) -> None:
    """Pairs side by side: two vectors are interleaved and written as one."""
    e, (first, second), result = f.e, op.operands, op.results[0]
    buffer = f.buffer_for(result)
    shape = shape_of(first.type)
    found = survey(e, [first, second], shape)
    found.accesses.append(tuple(s // 2 for s in buffer.strides[:-1]))

    def body(index: Index) -> None:
        if index and index[-1].step == 1 and buffer.strides[-2:] == (2, 1):
            access.write_pairs(e, buffer, index, e.vector(first, index)[0], e.vector(second, index)[0])
            return
        for i, value in enumerate((first, second)):
            cell = e.cell(value, index)[0]
            access.write(e, buffer, (*index, fixed(i)), cell)

    nest(e, shape, choose(e, shape, found), body)
    e.reset()
    f.buffers[result] = buffer


@rule("cat")
def _cat(f: FunctionEmitter, op: Op) -> None:
    """Each operand goes to its part of the result."""
    e, result, axis = f.e, op.results[0], op.attrs["axis"]
    buffer = f.buffer_for(result)
    start = 0
    for value in op.operands:
        shape = shape_of(value.type)
        found = survey(e, [value], shape)
        found.accesses.append(tuple(buffer.strides))
        offset = fixed(start)

        def body(index: Index, value: Value = value, offset: object = offset) -> None:
            moved = e.add(index[axis].first(), offset)._replace(step=index[axis].step)  # type: ignore[arg-type]
            cell = e.cell(value, index)[0]
            access.write(e, buffer, (*index[:axis], moved, *index[axis + 1 :]), cell)

        nest(e, shape, choose(e, shape, found), body, found)
        e.reset()
        start += shape[axis]
    f.buffers[result] = buffer
