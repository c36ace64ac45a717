"""Atomic operations, one element after the other."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.core import Op, Value
from ...ir.types import ElementType, ScalarType, TensorType, element_of, i1, shape_of
from ..elementwise import emit_constant
from ..writer import Cell, FunctionWriter, scalar_type
from . import access
from .buffers import bytes_of
from .emit import FunctionEmitter, rule
from .errors import Unsupported
from .index import Index
from .nest import Shape, choose, nest, survey

_ORDER = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_FAILURE = {"relaxed": "monotonic", "acquire": "acquire", "release": "monotonic", "acq_rel": "acquire"}

Update = Callable[[FunctionWriter, str, Cell], Cell]
"""Changes the element at an address; returns the old one."""


def each_element(
    f: FunctionEmitter, op: Op, values: list[Value], mask: Value | None, act: Callable[[list[Cell]], Cell]
) -> None:
    """Runs ``act`` on the operands of each element whose mask holds, in row-major order, and keeps its results."""
    e, w, result = f.e, f.w, op.results[0] if op.results else None
    shape = shape_of(values[0].type)
    target = None
    if result is not None and isinstance(result.type, TensorType) and f.graph.users.get(result):
        target = f.buffer_for(result)

    def body(index: Index) -> None:
        cells = [e.cell(v, index)[0] for v in values]
        if mask is None:
            old = act(cells)
        else:
            condition = e.cell(mask, index)[0].text
            before, then, done = w.block, w.new_label("atomic"), w.new_label("atomic.end")
            w.cond_br(condition, then, done)
            w.label(then)
            old = act(cells)
            after = w.block
            w.br(done)
            w.label(done)
            nothing = zero(old.element)
            old = Cell(w.emit(f"phi {old.type} [ {old.text}, %{after} ], [ {nothing.text}, %{before} ]"), old.element)
        if target is not None:
            access.write(e, target, index, old)
        elif result is not None and not isinstance(result.type, TensorType):
            f.scalars[result] = old

    nest(e, shape, Shape(None, 0), body)
    e.reset()
    if target is not None and result is not None:
        f.buffers[result] = target


def zero(element: ElementType) -> Cell:
    return emit_constant(element, False if element.is_bool else 0.0 if element.is_float else 0)


@rule("atomic_rmw")
def _atomic_rmw(f: FunctionEmitter, op: Op) -> None:
    element = access.pointee(op.operands[0])
    update = updater(op.attrs["op"], element, op.attrs.get("sem", "acq_rel"), op)
    mask = op.operands[2] if len(op.operands) > 2 else None
    each_element(f, op, op.operands[:2], mask, lambda cells: update(f.w, cells[0].text, cells[1]))


@rule("atomic_cas")
def _atomic_cas(f: FunctionEmitter, op: Op) -> None:
    order = op.attrs.get("sem", "acq_rel")
    element = access.pointee(op.operands[0])
    if element.is_bool:
        raise Unsupported("atomic_cas on booleans is not supported", op)
    each_element(f, op, op.operands[:3], None, lambda cells: _exchange(f.w, cells[0].text, cells[1], cells[2], order))


@rule("atomic_poll")
def _atomic_poll(f: FunctionEmitter, op: Op) -> None:
    """The runtime looks and waits: it lets other programs run meanwhile. It always acquires."""
    w = f.w
    pointer, expected = (f.scalars[v] for v in op.operands[:2])
    timeout = "-1"  # none
    if len(op.operands) > 2:  # below 0 it is over at once
        given = f.scalars[op.operands[2]].typed
        timeout = w.emit(f"call i64 {w.module.declare('llvm.smax.i64', 'i64', ['i64'] * 2)}({given}, i64 0)")
    place = f"{op.loc.file}:{op.loc.line}: {op.loc.function}: ".encode() if op.loc is not None else b""
    callee = w.module.declare("tl_poll", "i32", ["ptr", "ptr", "i64", "i32", "i64", "ptr", "i64"])
    arguments = [
        f"ptr {f.context}", f"ptr {pointer.text}", access.wide_integer(w, expected, f.e).typed,
        f"i32 {expected.element.bits}", f"i64 {timeout}", f"ptr {w.module.string(place)}", f"i64 {len(place)}",
    ]  # fmt: skip
    found = w.call("i32", callee, arguments)
    f.scalars[op.results[0]] = Cell(w.emit(f"icmp ne i32 {found}, 0"), i1)
    f.e.reset()


def _bits(w: FunctionWriter, cell: Cell) -> str:
    """The operand as an integer of its width."""
    base = scalar_type(cell.element)
    return cell.text if base.startswith("i") else w.emit(f"bitcast {base} {cell.text} to i{cell.element.bits}")


def _exchange(w: FunctionWriter, address: str, expected: Cell, new: Cell, order: str) -> Cell:
    bits = new.element.bits
    a, b = _bits(w, expected), _bits(w, new)
    orders = f"{_ORDER[order]} {_FAILURE[order]}, align {bytes_of(new.element)}"
    pair = w.emit(f"cmpxchg ptr {address}, i{bits} {a}, i{bits} {b} {orders}")
    old = w.emit(f"extractvalue {{ i{bits}, i1 }} {pair}, 0")
    base = scalar_type(new.element)
    return Cell(old if base.startswith("i") else w.emit(f"bitcast i{bits} {old} to {base}"), new.element)


def updater(kind: str, element: ElementType, order: str, op: Op) -> Update:
    """The update ``kind`` of elements in memory. Raises Unsupported for types that cannot be updated atomically."""
    if kind in ("inc", "dec"):
        return _counter(kind, order)
    if not isinstance(element, ScalarType) or element.is_bool or (element.is_fp8 and kind != "xchg"):
        raise Unsupported(f"atomic {kind} of {element} is not supported", op)
    name = kind
    if element.is_float:
        if kind in ("and", "or", "xor"):
            raise Unsupported(f"atomic {kind} of {element} is not supported", op)
        name = {"add": "fadd", "max": "fmax", "min": "fmin", "xchg": "xchg"}[kind]
    elif kind in ("max", "min") and not element.is_signed:
        name = "u" + kind

    def update(w: FunctionWriter, address: str, value: Cell) -> Cell:
        text = w.emit(f"atomicrmw {name} ptr {address}, {value.typed} {_ORDER[order]}, align {bytes_of(element)}")
        return Cell(text, element)

    return update


def _counter(kind: str, order: str) -> Update:
    name = "uinc_wrap" if kind == "inc" else "udec_wrap"

    def update(w: FunctionWriter, address: str, value: Cell) -> Cell:
        text = w.emit(f"atomicrmw {name} ptr {address}, {value.typed} {_ORDER[order]}, align {bytes_of(value.element)}")
        return Cell(text, value.element)

    return update


@rule("desc_store")
def _desc_store(f: FunctionEmitter, op: Op) -> None:
    e, w = f.e, f.w
    descriptor, value = e.descriptors[op.operands[0]], op.operands[1]
    offsets = [access.wide_integer(w, f.scalars[v], e) for v in op.operands[2:]]
    kind = op.attrs.get("op", "store")
    shape = shape_of(value.type)
    if kind != "store":
        update = updater(kind, element_of(value.type), "relaxed", op)

        def one(index: Index) -> None:
            cell, _ = e.cell(value, index)
            address, mask, _, _ = access.box(e, descriptor, offsets, index)
            assert mask is not None
            with w.branch(mask, "inside"):
                update(w, address, cell)

        nest(e, shape, Shape(None, 0), one)
        e.reset()
        return
    found = survey(e, [value], shape)
    found.accesses.append((12,) * (len(shape) - 1) + (1,))

    def body(index: Index) -> None:
        cell, _ = e.cell(value, index)
        access.store_box(e, descriptor, offsets, cell, index)

    nest(e, shape, choose(e, shape, found), body)
    e.reset()
