"""Histogram, sort and map."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...ir.core import Op
from ...ir.types import ElementType, ScalarType, TensorType, element_of, f32, i8, i16, i32, i64, shape_of
from ..convert import from_wide, to_wide
from ..writer import Cell, FunctionWriter, ModuleWriter, vector
from . import access, regions
from .buffers import Buffer
from .emit import FunctionEmitter, hold, rule
from .errors import Unsupported
from .evaluate import Evaluator
from .index import Dim, Index, fixed, shuffle
from .nest import Shape, choose, count, nest, survey

# Histogram ------------------------------------------------------------------------------------------------------------


@rule("histogram")
def _histogram(f: FunctionEmitter, op: Op) -> None:
    """Elements that are not counted go to one bin past the last."""
    e, w, bins = f.e, f.w, op.attrs["bins"]
    value = op.operands[0]
    mask = op.operands[1] if len(op.operands) > 1 else None
    target = f.buffer_for(op.results[0])
    counts, offset = f.allocate((bins + 1,), i32)
    name = f.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
    w.line(f"call void {name}(ptr align 64 {counts.pointer}, i8 0, i64 {4 * (bins + 1)}, i1 false)")

    def body(index: Index) -> None:
        cell = _wide(w, e.cell(value, index)[0])
        counted = w.emit(f"icmp ult i64 {cell.text}, {bins}")
        if mask is not None:
            counted = w.emit(f"and i1 {counted}, {e.cell(mask, index)[0].text}")
        bin_ = w.emit(f"select i1 {counted}, i64 {cell.text}, i64 {bins}")
        place = w.emit(f"getelementptr i32, ptr {counts.pointer}, i64 {bin_}")
        old = w.emit(f"load i32, ptr {place}, align 4")
        w.line(f"store i32 {w.emit(f'add i32 {old}, 1')}, ptr {place}, align 4")

    nest(e, shape_of(value.type), Shape(None, 0), body)
    e.reset()
    copy = f.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
    w.line(f"call void {copy}(ptr align 64 {target.pointer}, ptr align 64 {counts.pointer}, i64 {4 * bins}, i1 false)")
    f.arena.free(offset)
    f.buffers[op.results[0]] = target


def _wide(w: FunctionWriter, cell: Cell) -> Cell:
    if cell.element.bits == 64:
        return cell
    return Cell(w.emit(f"{'sext' if cell.element.is_signed else 'zext'} {cell.typed} to i64"), i64)


# Sort -----------------------------------------------------------------------------------------------------------------

_LANES = 16


@rule("sort")
def _sort(f: FunctionEmitter, op: Op) -> None:
    """Each row becomes a row of integers in the same order (NaN last), which a bitonic network sorts."""
    e, value, axis = f.e, op.operands[0], op.attrs["axis"]
    descending = bool(op.attrs.get("descending", False))
    result = op.results[0]
    target = f.buffer_for(result)
    shape = shape_of(value.type)
    n = shape[axis]
    key_type = key_element(element_of(value.type))
    lanes = min(_LANES, max(2, 1 << (n - 1).bit_length()))
    size = max(lanes, 1 << (n - 1).bit_length())
    others = tuple(d for d in range(len(shape)) if d != axis)
    pitch = size
    keys, offset = f.allocate((prod(shape[d] for d in others), pitch), key_type)
    strides = [0] * len(shape)
    weight = pitch
    for d in reversed(others):
        strides[d], weight = weight, weight * shape[d]
    strides[axis] = 1
    place = Buffer(keys.pointer, shape, key_type, tuple(strides))
    found = survey(e, [value], shape)
    found.accesses.append(tuple(strides))
    found.bits = max(found.bits, key_type.bits)

    def pack(index: Index) -> None:
        cell, level = e.cell(value, index)
        access.write(e, place, index, e.at(level, lambda: to_key(e.w, cell, key_type, descending)))

    nest(e, shape, choose(e, shape, found), pack)
    e.reset()
    sorter = f.module.helper(f"tl.sort.i{key_type.bits}.{lanes}", lambda m: build_sort(m, key_type.bits, lanes))

    def row(d: Dim, _: list[str]) -> Sequence[str]:
        at = f.w.emit(f"mul i64 {d.text}, {pitch}") if d.const is None else str(d.const * pitch)
        start = f.w.emit(f"getelementptr i{key_type.bits}, ptr {keys.pointer}, i64 {at}")
        f.w.line(f"call void {sorter}(ptr {start}, i64 {n}, i64 {size})")
        return ()

    count(e, prod(shape[d] for d in others), row)
    e.reset()

    def unpack(index: Index) -> None:
        cell, level = access.read(e, place, index)
        access.write(e, target, index, e.at(level, lambda: from_key(e.w, cell, element_of(value.type), descending)))

    nest(e, shape, choose(e, shape, found), unpack)
    e.reset()
    f.arena.free(offset)
    f.buffers[result] = target


def key_element(element: ElementType) -> ScalarType:
    """The signed integer type of the keys."""
    bits = 32 if element.is_float and element.bits < 32 else max(8, element.bits)
    return {8: i8, 16: i16, 32: i32, 64: i64}[bits]


def to_key(w: FunctionWriter, cell: Cell, key: ScalarType, descending: bool) -> Cell:
    """An integer in the order of the numbers; NaN is larger than all. Descending order is that of the complements."""
    lanes, bits = cell.lanes, key.bits
    type = vector(f"i{bits}", lanes)

    def const(value: int) -> str:
        return f"splat (i{bits} {value})" if lanes else str(value)

    if cell.element.is_float:
        wide = to_wide(w, cell)
        raw = w.emit(f"bitcast {wide.typed} to {type}")
        flip = w.emit(f"lshr {type} {w.emit(f'ashr {type} {raw}, {const(bits - 1)}')}, {const(1)}")
        text = w.emit(f"xor {type} {raw}, {flip}")
        nan = w.emit(f"fcmp uno {wide.typed}, {wide.text}")
        text = w.emit(f"select {vector('i1', lanes)} {nan}, {type} {const((1 << bits - 1) - 1)}, {type} {text}")
    elif cell.element.is_bool:
        text = w.emit(f"zext {cell.typed} to {type}")
    elif cell.element.is_signed:
        text = cell.text
    else:
        text = w.emit(f"xor {type} {cell.text}, {const(-(1 << bits - 1))}")
    if descending:
        text = w.emit(f"xor {type} {text}, {const(-1)}")
    return Cell(text, key, lanes)


def from_key(w: FunctionWriter, key: Cell, element: ElementType, descending: bool) -> Cell:
    lanes, bits, text, type = key.lanes, key.element.bits, key.text, key.type

    def const(value: int) -> str:
        return f"splat (i{bits} {value})" if lanes else str(value)

    if descending:
        text = w.emit(f"xor {type} {text}, {const(-1)}")
    if element.is_float:
        assert isinstance(element, ScalarType)
        flip = w.emit(f"lshr {type} {w.emit(f'ashr {type} {text}, {const(bits - 1)}')}, {const(1)}")
        raw = w.emit(f"xor {type} {text}, {flip}")
        nan = w.emit(f"icmp eq {type} {text}, {const((1 << bits - 1) - 1)}")
        quiet = {32: 0x7FC00000, 64: 0x7FF8000000000000}[bits]
        raw = w.emit(f"select {vector('i1', lanes)} {nan}, {type} {const(quiet)}, {type} {raw}")
        wide = f32 if bits == 32 else element
        base = "float" if bits == 32 else "double"
        cell = Cell(w.emit(f"bitcast {type} {raw} to {vector(base, lanes)}"), wide, lanes)
        return cell if element == wide else from_wide(w, cell, element)
    if element.is_bool:
        return Cell(w.emit(f"trunc {type} {text} to {vector('i1', lanes)}"), element, lanes)
    if not element.is_signed:
        text = w.emit(f"xor {type} {text}, {const(-(1 << bits - 1))}")
    return Cell(text, element, lanes)


def build_sort(module: ModuleWriter, bits: int, lanes: int) -> FunctionWriter:
    """``void sort(ptr row, i64 n, i64 size)``: ascending bitonic sort of n integers; ``size`` is a power of two >= n,
    lanes.

    The row has room for ``size`` elements: those from n on become the largest number. Distances of at least one
    vector are exchanged between vectors, shorter ones inside them.
    """
    params = ["ptr %row", "i64 %n", "i64 %size"]
    w = FunctionWriter(module, f"tl.sort.i{bits}.{lanes}", "void", params, linkage="internal", attributes="nounwind")
    net = _Network(w, bits, lanes)
    largest = (1 << bits - 1) - 1

    def pad(i: str, _: list[str]) -> Sequence[str]:
        w.line(f"store i{bits} {largest}, ptr {net.place(i)}")
        return ()

    w.loop("%n", "%size", "1", pad, hint="pad")

    def first(i: str, _: list[str]) -> Sequence[str]:
        v, k = net.load(i), 2
        while k <= lanes:
            v = net.within(v, k, k // 2, net.upward(i, str(lanes)) if k == lanes else None)
            k *= 2
        net.store(i, v)
        return ()

    w.loop("0", "%size", str(lanes), first, hint="vectors", at_least_once=True)
    head, done = w.new_label("stage"), w.new_label("sorted")
    before = w.block
    w.cond_br(w.emit(f"icmp ugt i64 %size, {lanes}"), head, done)
    w.label(head)
    k, phis = w.reserve(), w.point()
    half = w.emit(f"lshr i64 {k}, 1")
    step_head, step_done = w.new_label("distance"), w.new_label("inside")
    entry = w.block
    w.cond_br(w.emit(f"icmp uge i64 {half}, {lanes}"), step_head, step_done)
    w.label(step_head)
    j, inner = w.reserve(), w.point()

    def exchange(i: str, _: list[str]) -> Sequence[str]:
        bit = w.emit(f"and i64 {i}, {j}")
        with w.branch(w.emit(f"icmp eq i64 {bit}, 0"), "pair"):
            other = w.emit(f"add i64 {i}, {j}")
            a, b, up = net.load(i), net.load(other), net.upward(i, k)
            low, high = net.extreme("smin", a, b), net.extreme("smax", a, b)
            net.store(i, net.choose(up, low, high))
            net.store(other, net.choose(up, high, low))
        return ()

    w.loop("0", "%size", str(lanes), exchange, hint="exchange", at_least_once=True)
    shorter = w.emit(f"lshr i64 {j}, 1")
    inner.lines.append(f"  {j} = phi i64 [ {half}, %{entry} ], [ {shorter}, %{w.block} ]")
    w.cond_br(w.emit(f"icmp uge i64 {shorter}, {lanes}"), step_head, step_done)
    w.label(step_done)

    def finish(i: str, _: list[str]) -> Sequence[str]:
        net.store(i, net.within(net.load(i), 0, lanes // 2, net.upward(i, k)))
        return ()

    w.loop("0", "%size", str(lanes), finish, hint="within", at_least_once=True)
    longer = w.emit(f"shl i64 {k}, 1")
    phis.lines.append(f"  {k} = phi i64 [ {2 * lanes}, %{before} ], [ {longer}, %{w.block} ]")
    w.cond_br(w.emit(f"icmp ule i64 {longer}, %size"), head, done)
    w.label(done)
    w.ret()
    return w


class _Network:
    """Pieces of the sorting network on vectors of i``bits``."""

    def __init__(self, w: FunctionWriter, bits: int, lanes: int) -> None:
        self.w = w
        self.bits = bits
        self.lanes = lanes
        self.type = f"<{lanes} x i{bits}>"

    def place(self, i: str) -> str:
        return self.w.emit(f"getelementptr i{self.bits}, ptr %row, i64 {i}")

    def load(self, i: str) -> str:
        return self.w.emit(f"load {self.type}, ptr {self.place(i)}, align {self.bits // 8}")

    def store(self, i: str, v: str) -> None:
        self.w.line(f"store {self.type} {v}, ptr {self.place(i)}, align {self.bits // 8}")

    def upward(self, i: str, k: str) -> str:
        """Whether the block of size k that holds element i is sorted upward."""
        return self.w.emit(f"icmp eq i64 {self.w.emit(f'and i64 {i}, {k}')}, 0")

    def extreme(self, name: str, a: str, b: str) -> str:
        return self.w.intrinsic(name, f"i{self.bits}", self.lanes, a, b)

    def choose(self, condition: str, yes: str, no: str) -> str:
        return self.w.emit(f"select i1 {condition}, {self.type} {yes}, {self.type} {no}")

    def within(self, v: str, k: int, distance: int, up: str | None) -> str:
        """Exchanges at ``distance`` and all shorter ones; the direction is ``up`` or, inside the vector, that of
        blocks of k."""
        lanes = range(self.lanes)
        while distance:
            order = shuffle([i ^ distance for i in lanes])
            partner = self.w.emit(f"shufflevector {self.type} {v}, {self.type} poison, {order}")
            low, high = self.extreme("smin", v, partner), self.extreme("smax", v, partner)
            forward = [not i & distance for i in lanes]
            if up is None:
                v = self._blend([keep == (not i & k) for i, keep in enumerate(forward)], low, high)
            else:
                a, b = self._blend(forward, low, high), self._blend(forward, high, low)
                v = self.choose(up, a, b)
            distance //= 2
        return v

    def _blend(self, first: list[bool], low: str, high: str) -> str:
        mask = "<" + ", ".join(f"i1 {'true' if b else 'false'}" for b in first) + ">"
        return self.w.emit(f"select <{self.lanes} x i1> {mask}, {self.type} {low}, {self.type} {high}")


# map ------------------------------------------------------------------------------------------------------------------


@rule("map")
def _map(f: FunctionEmitter, op: Op) -> None:
    """The region on vectors where it is straight, otherwise on one group of ``pack`` elements after the other."""
    e, (body,), pack = f.e, op.regions, op.attrs.get("pack", 1)
    shape = shape_of(op.operands[0].type if op.operands else op.results[0].type)
    targets = [f.buffer_for(r) for r in op.results]
    if pack == 1 and regions.is_straight(body):
        found = survey(e, op.operands, shape)

        def whole(index: Index) -> None:
            lanes = 0 if all(d.is_scalar for d in index) else e.lanes
            args = [e.vector(v, index)[0] if lanes else e.cell(v, index)[0] for v in op.operands]
            for target, cell in zip(targets, regions.run(f, body, args, lanes), strict=True):
                access.write(e, target, index, cell)

        nest(e, shape, choose(e, shape, found), whole)
    else:
        total = prod(shape)
        if total % pack:
            raise Unsupported(f"map takes {pack} elements at a time, which does not divide {total}", op)

        def group(d: Dim, _: list[str]) -> Sequence[str]:
            start = e.scale(d, pack)
            places = [e.reshape((e.add(start, fixed(j)),), (total,), shape) for j in range(pack)]
            args = [e.cell(v, place)[0] for v in op.operands for place in places]
            results = regions.run_scalars(f, body, args)
            for i, target in enumerate(targets):
                for j, place in enumerate(places):
                    access.write(e, target, place, results[i * pack + j])
            return ()

        saved, e.lanes = e.lanes, 0
        count(e, total // pack, group)
        e.lanes = saved
    e.reset()
    f.buffers.update(zip(op.results, targets, strict=True))


# Operations with side effects on each element -------------------------------------------------------------------------


@rule("extern", "inline_asm")
def _effects(f: FunctionEmitter, op: Op) -> None:
    """Calls that must happen exactly once for each element: no vectors, no repetition."""
    if f.plan.is_lazy(op):
        return
    if not any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
        f.scalar(op)
        return
    if op.results and all(r in f.plan.computed_at for r in op.results):
        return
    if op.results and op.attrs.get("pure", True) and op.attrs.get("pack", 1) == 1:
        hold(f, op)
        return
    e: Evaluator = f.e
    shape = shape_of((op.results[0] if op.results else op.operands[0]).type)
    targets = [f.buffer_for(r) for r in op.results]

    def body(index: Index) -> None:
        args = [e.cell(v, index)[0] for v in op.operands]
        for target, cell in zip(targets, f.elementwise(op, args), strict=True):
            access.write(e, target, index, cell)

    nest(e, shape, Shape(None, 0), body)
    e.reset()
    f.buffers.update(zip(op.results, targets, strict=True))
