"""Laid-out tile IR to LLVM IR: the rules, and the entry.

Every op has a rule here; what a machine does its own way (memory access, matrix products, printing, ...) it is asked
for through the
``Machine`` protocol. An op without a rule raises, naming the op and the user's line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.core import Function, Module, Op
from ...ir.ops import OPS
from ...ir.types import PointerType, TensorType, element_of, i32
from ...layouts.linear import LinearLayout
from ...passes.assign_layouts import joined
from ..elementwise import emit_elementwise
from ..writer import Cell, FunctionWriter, ModuleWriter, llvm_type
from . import control, convert, descriptors, memory, order, reduce, shared_tiles
from .context import SHARED, Context, element
from .machine import SHARED_SPACE, Machine

Rule = Callable[[Context, Op], None]


@dataclass(frozen=True, slots=True)
class Lowered:
    """LLVM IR text, the kernel's symbol and how many bytes of shared memory a program needs."""

    text: str
    kernel: str
    shared_bytes: int


def lower_module(module: Module, machine: Machine, writer: ModuleWriter) -> Lowered:
    """The whole module. Functions other than the kernel have scalar parameters only."""
    kernel = module.kernel
    shared = 0
    for function in module.functions.values():
        if function is kernel:
            w = machine.kernel(writer, function.name, _params(function, machine, writer))
        else:
            w = _plain(function, machine, writer)
        context = Context(module, function, w, machine)
        context.rules = RULES
        context.memory = memory.Ordering(context)
        for number, arg in enumerate(function.args):
            context.set(arg, [Cell(f"%arg{number}", element(arg))])
        for op in function.body.ops:
            context.lower(op)
        shared = max(shared, context.shared_bytes)
    writer.global_text(SHARED, f"external addrspace({SHARED_SPACE}) global [0 x i8], align 1024")
    machine.finish(writer, kernel.name)
    return Lowered(writer.text(), kernel.name, shared)


def _params(function: Function, machine: Machine, writer: ModuleWriter) -> list[str]:
    params = []
    for number, (arg, attrs) in enumerate(zip(function.args, function.arg_attrs, strict=True)):
        if "map_of" in attrs:
            params.append(machine.boxes.parameter(writer, function.name, number))
            continue
        kind = element(arg)
        align = f" align {attrs['divisible']}" if isinstance(kind, PointerType) and attrs.get("divisible") else ""
        params.append(f"{llvm_type(kind)}{align} %arg{number}")
    return params


def _plain(function: Function, machine: Machine, writer: ModuleWriter) -> FunctionWriter:
    types = [llvm_type(element_of(t)) for t in function.result_types]
    result = "void" if not types else types[0] if len(types) == 1 else "{" + ", ".join(types) + "}"
    return writer.function(
        function.name, result, _params(function, machine, writer), linkage="internal", attributes="noinline"
    )


# Constants and shapes -----------------------------------------------------------------------------------------------


def _constant(c: Context, op: Op) -> None:
    result = op.results[0]
    c.set(result, [c.constant(element(result), op.attrs["value"])] * c.registers(result))


def _arange(c: Context, op: Op) -> None:
    result, start = op.results[0], op.attrs["start"]
    layout = c.layout(result)
    cells = []
    for r in range(layout.registers):
        at = c.index(layout, r)
        cells.append(Cell(c.w.emit(f"add nsw i32 {at}, {start}") if start else at, i32))
    c.set(result, cells)


def _splat(c: Context, op: Op) -> None:
    c.set(op.results[0], [c.scalar(op.operands[0])] * c.registers(op.results[0]))


def _same(c: Context, op: Op) -> None:
    c.set(op.results[0], c.tile(op.operands[0]))


def _picked(c: Context, op: Op, needed: LinearLayout, source_index: Callable[[int], int]) -> None:
    """The result's register r is the operand's element ``source_index(r)`` (as an index at lane 0, warp 0) in layout
    ``needed``."""
    source, result = op.operands[0], op.results[0]
    cells = convert.converted(c, c.tile(source), c.layout(source), needed)
    where = {needed(r): r for r in range(needed.registers)}
    c.set(result, [cells[where[source_index(c.layout(result)(r))]] for r in range(c.registers(result))])


def _broadcast(c: Context, op: Op) -> None:
    source, result = op.operands[0], op.results[0]
    layout, small = c.layout(result), c.layout(source).shape
    needed = layout
    for axis, size in enumerate(small):
        if size == 1 and layout.shape[axis] != 1:
            needed = needed.narrowed(axis)

    def index(flat: int) -> int:
        coordinates = layout.coordinates(flat)
        return convert_index([0 if small[d] == 1 else x for d, x in enumerate(coordinates)], needed)

    _picked(c, op, needed, index)


def convert_index(coordinates: list[int], layout: LinearLayout) -> int:
    """Coordinates as a padded index of ``layout``."""
    flat = 0
    for x, size in zip(coordinates, layout.shape, strict=True):
        flat = flat << (size - 1).bit_length() | x
    return flat


def _expand_dims(c: Context, op: Op) -> None:
    if not isinstance(op.operands[0].type, TensorType):
        _splat(c, op)
        return
    needed = c.layout(op.results[0]).without_axis(op.attrs["axis"])
    _picked(c, op, needed, lambda flat: flat)


def _permute(c: Context, op: Op) -> None:
    order_of = list(op.attrs["order"])
    layout = c.layout(op.results[0])
    needed = layout.permuted([order_of.index(i) for i in range(len(order_of))])

    def index(flat: int) -> int:
        coordinates = layout.coordinates(flat)
        source = [0] * len(order_of)
        for d, axis in enumerate(order_of):
            source[axis] = coordinates[d]
        return convert_index(source, needed)

    _picked(c, op, needed, index)


def _reshape(c: Context, op: Op) -> None:
    source, result = op.operands[0], op.results[0]
    if not isinstance(source.type, TensorType):
        _splat(c, op)
    elif not isinstance(result.type, TensorType):
        c.set(result, [broadcast_element(c, c.tile(source)[0], c.layout(source))])
    else:
        convert.reshape(c, op)


def broadcast_element(c: Context, cell: Cell, layout: LinearLayout) -> Cell:
    """A one-element tile as a scalar: every thread is a replica and holds it."""
    assert layout.total_bits == 0
    return cell


def _join(c: Context, op: Op) -> None:
    first, second = op.operands
    result = op.results[0]
    layout = c.layout(result)
    if not isinstance(first.type, TensorType):
        at = [layout(r) for r in range(layout.registers)]
        pair = (c.scalar(first), c.scalar(second))
        if not any((*layout.lane, *layout.outer)):
            c.set(result, [pair[i] for i in at])
            return
        cells = []
        for r in range(layout.registers):
            test = c.w.emit(f"icmp ne i32 {c.index(layout, r)}, 0")
            cells.append(c.choose(test, pair[1], pair[0]))
        c.set(result, cells)
        return
    needed = layout.without_axis(len(layout.shape) - 1)
    halves = [convert.converted(c, c.tile(v), c.layout(v), needed) for v in op.operands]
    where = {needed(r): r for r in range(needed.registers)}
    cells = []
    spread = any(v & 1 for v in (*layout.lane, *layout.outer))
    for r in range(layout.registers):
        flat = layout(r)
        options = [h[where[flat >> 1]] for h in halves]
        if spread:
            low = c.w.emit(f"and i32 {c.index(layout, r)}, 1")
            cells.append(c.choose(c.w.emit(f"icmp ne i32 {low}, 0"), options[1], options[0]))
        else:
            cells.append(options[flat & 1])
    c.set(result, cells)


def _split(c: Context, op: Op) -> None:
    source = op.operands[0]
    if not isinstance(op.results[0].type, TensorType):
        given = c.layout(source)
        whole = LinearLayout((2,), (1,), *((0,) * len(v) for v in (given.lane, given.warp, given.block)))
        cells = convert.converted(c, c.tile(source), c.layout(source), whole)
        for result, cell in zip(op.results, cells, strict=True):
            c.set(result, [cell])
        return
    half = c.layout(op.results[0])
    whole = joined(half)
    cells = convert.converted(c, c.tile(source), c.layout(source), whole)
    where = {whole(r): r for r in range(whole.registers)}
    for side, result in enumerate(op.results):
        layout = c.layout(result)
        found = [cells[where[half(r) << 1 | side]] for r in range(half.registers)]
        c.set(result, convert.converted(c, found, half, layout))


# Elementwise --------------------------------------------------------------------------------------------------------


def _elementwise(c: Context, op: Op) -> None:
    """One rule application for each register; registers with the same operands share it. Assembly with an effect runs
    once for each element of a tile, in the first of the threads that hold it; on scalars every thread runs it."""
    once = op.kind == "inline_asm" and not op.attrs.get("pure", True) and isinstance(op.results[0].type, TensorType)
    layout = c.layout(op.results[0]) if once else None
    owner = c.is_first_replica(layout) if layout is not None else None
    count = max([len(c.tile(v)) for v in op.operands if isinstance(v.type, TensorType)] or [c.registers(op.results[0])])
    operands = [c.tile(v) for v in op.operands]
    columns = [cells if len(cells) == count else cells * count for cells in operands]
    pack = c.machine.elementwise_pack(op)
    done: dict[tuple[str, ...], list[Cell]] = {}
    results: list[list[Cell]] = [[] for _ in op.results]
    for r in range(0, count, pack):
        args = [column[min(i, count - 1)] for column in columns for i in range(r, r + pack)]
        key = tuple([a.text for a in args])
        made = done.get(key)
        if layout is not None:
            made = _guarded(c, op, args, c.both(owner, c.in_range(layout, r)))
        elif made is None:
            made = done[key] = _apply(c, op, args)
        for number, column in enumerate(results):
            column += made[number * pack : (number + 1) * pack][: max(1, min(pack, count))]
    for result, cells in zip(op.results, results, strict=True):
        if owner is not None and result in c.used:
            cells = memory.told(c, cells, layout, owner)
        c.set(result, cells)


def _apply(c: Context, op: Op, args: list[Cell]) -> list[Cell]:
    own = c.machine.elementwise(c.w, op, args)
    return own if own is not None else emit_elementwise(c.w, op, args, 0)


def _guarded(c: Context, op: Op, args: list[Cell], predicate: str | None) -> list[Cell]:
    """What ``_apply`` gives where the predicate holds, zeros elsewhere."""
    if predicate is None:
        return _apply(c, op, args)
    before = c.w.block
    with c.w.branch(predicate, "asm"):
        made = _apply(c, op, args)
        inside = c.w.block
    return [
        Cell(c.w.emit(f"phi {x.type} [ {x.text}, %{inside} ], [ zeroinitializer, %{before} ]"), x.element) for x in made
    ]


def _select(c: Context, op: Op) -> None:
    condition, yes, no = op.operands
    count = c.registers(op.results[0])
    tests = c.tile(condition) if isinstance(condition.type, TensorType) else [c.scalar(condition)] * count
    cells = [c.choose(t.text, a, b) for t, a, b in zip(tests, c.tile(yes), c.tile(no), strict=True)]
    c.set(op.results[0], cells)


# Program, hints, diagnosis ------------------------------------------------------------------------------------------


def _program_id(c: Context, op: Op) -> None:
    with c.w.at(c.entry):
        text = c.machine.program_id(c.w, op.attrs["axis"])
    c.set(op.results[0], [Cell(text, i32)])


def _num_programs(c: Context, op: Op) -> None:
    with c.w.at(c.entry):
        text = c.machine.num_programs(c.w, op.attrs["axis"])
    c.set(op.results[0], [Cell(text, i32)])


def _assume(c: Context, op: Op) -> None:
    callee = c.w.module.declare("llvm.assume", "void", ["i1"])
    c.w.line(f"call void {callee}(i1 {c.scalar(op.operands[0]).text})")


def _barrier(c: Context, op: Op) -> None:
    c.barrier()


def _dot(c: Context, op: Op) -> None:
    """Each block of a cluster multiplies for its part of the result, as a program of one block would."""
    c.set(op.results[0], c.machine.dot(c, c.within_block(op)))


def _print(c: Context, op: Op) -> None:
    c.machine.print(c, op)


def _assert(c: Context, op: Op) -> None:
    c.machine.assertion(c, op)


def _return(c: Context, op: Op) -> None:
    c.leave()
    cells = [c.scalar(v) for v in op.operands]
    if not cells:
        c.w.ret()
    elif len(cells) == 1:
        c.w.ret(cells[0].typed)
    else:
        type = "{" + ", ".join(x.type for x in cells) + "}"
        value = "poison"
        for i, cell in enumerate(cells):
            value = c.w.emit(f"insertvalue {type} {value}, {cell.typed}, {i}")
        c.w.ret(f"{type} {value}")


def _map(c: Context, op: Op) -> None:
    """The region once for each group of ``pack`` registers."""
    (region,) = op.regions
    pack = op.attrs.get("pack", 1)
    columns = [c.tile(v) for v in op.operands]
    results: list[list[Cell]] = [[] for _ in op.results]
    count = len(columns[0])
    for r in range(0, count, pack):
        cells = [column[min(i, count - 1)] for column in columns for i in range(r, r + pack)]
        for arg, cell in zip(region.args, cells, strict=True):
            c.set(arg, [cell])
        for inner in region.ops[:-1]:
            c.lower(inner)
        outs = [c.scalar(v) for v in region.terminator.operands]
        for number, column in enumerate(results):
            column += outs[number * pack : (number + 1) * pack]
    for result, cells in zip(op.results, results, strict=True):
        c.set(result, cells[:count])


RULES: dict[str, Rule] = {
    "constant": _constant,
    "arange": _arange,
    "splat": _splat,
    "broadcast": _broadcast,
    "expand_dims": _expand_dims,
    "reshape": _reshape,
    "permute": _permute,
    "flip": convert.flip,
    "join": _join,
    "split": _split,
    "cat": convert.cat,
    "gather": convert.gather,
    "sort": order.sort,
    "histogram": order.histogram,
    "convert_layout": convert.convert_layout,
    "select": _select,
    "load": memory.load,
    "store": memory.store,
    "atomic_rmw": memory.atomic,
    "atomic_cas": memory.atomic,
    "atomic_poll": memory.poll,
    "make_desc": descriptors.make_desc,
    "desc_load": descriptors.desc_load,
    "desc_store": descriptors.desc_store,
    "dot": _dot,
    "dot_scaled": _dot,
    "reduce": reduce.reduce,
    "scan": reduce.scan,
    "map": _map,
    "for": control.lower_for,
    "while": control.lower_while,
    "if": control.lower_if,
    "call": control.call,
    "return": _return,
    "program_id": _program_id,
    "num_programs": _num_programs,
    "hint": _same,
    "assume": _assume,
    "assert": _assert,
    "print": _print,
    "barrier": _barrier,
    "alloc_shared": shared_tiles.alloc_shared,
    "async_copy": shared_tiles.async_copy,
    "async_commit": shared_tiles.async_commit,
    "async_wait": shared_tiles.async_wait,
    "shared_load": shared_tiles.shared_load,
    "shared_store": shared_tiles.shared_store,
    "box_map": shared_tiles.box_map,
    "alloc_barriers": shared_tiles.alloc_barriers,
    "box_load": shared_tiles.box_load,
    "box_copy": descriptors.box_copy,
    "barrier_wait": shared_tiles.barrier_wait,
    "box_store": shared_tiles.box_store,
    "dot_shared": shared_tiles.dot_shared,
    "dot_wait": shared_tiles.dot_wait,
}
for _kind, _info in OPS.items():
    if _info.elementwise and _kind not in RULES:
        RULES[_kind] = _elementwise
