"""Reads and writes of memory and of buffers: contiguous vectors where the addresses allow it, else gather and
scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...ir.core import Op, Value
from ...ir.types import ElementType, PointerType, TensorType, element_of, i1, i8, i64
from ..elementwise import emit_constant
from ..writer import Cell, FunctionWriter, llvm_type, scalar_type, splat, suffix, vector
from .buffers import Buffer, bytes_of
from .index import ZERO, Dim, Index, iota, is_scalar, lane_mask, shuffle

if TYPE_CHECKING:
    from .evaluate import Evaluator, Found


class Descriptor(NamedTuple):
    """A global tensor: sizes and strides are i64 cells, strides in elements."""

    base: Cell
    sizes: list[Cell]
    strides: list[Cell]
    padding: str


# Buffers ------------------------------------------------------------------------------------------------------------


def element_address(w: FunctionWriter, base: str, element: ElementType, offset: Dim) -> str:
    """The address of lane 0."""
    if offset.const == 0:
        return base
    return w.emit(f"getelementptr {scalar_type(element, memory=True)}, ptr {base}, i64 {offset.text}")


def read(e: Evaluator, buffer: Buffer, index: Index) -> Found:
    """The elements of a buffer. Lanes that do not count may read past the end: the arena has room there."""
    offset = e.linear(index, buffer.strides)
    level, element = offset.level, buffer.element
    if is_scalar(index):
        return e.at(
            level, lambda: _load_plain(e.w, element_address(e.w, buffer.pointer, element, offset), element, 0)
        ), level
    lanes = e.lanes
    if offset.vec is None and 1 <= offset.step <= 4 and lanes * offset.step <= 128:
        return e.at(level, lambda: _read_strided(e, buffer, offset)), level
    if offset.vec is None and offset.step == -1:
        low = offset._replace(text=e.emit_once(level, f"sub i64 {offset.text}, {lanes - 1}"), const=None)
        return e.at(
            level,
            lambda: _reverse(e.w, _load_plain(e.w, element_address(e.w, buffer.pointer, element, low), element, lanes)),
        ), level
    where = e.vector_of(offset)

    def gather() -> Cell:
        base = f"getelementptr {scalar_type(element, memory=True)}, ptr {buffer.pointer}, <{lanes} x i64> {where}"
        return gather_from(e.w, e.w.emit(base), element, lanes, e.active, None)

    return e.at(level, gather), level


def read_now(e: Evaluator, buffer: Buffer, index: Index) -> Cell:
    """A vector of consecutive elements of a buffer that the running loop also writes."""
    offset = e.linear(index, buffer.strides)
    assert offset.step == 1 and offset.vec is None
    return _load_plain(e.w, element_address(e.w, buffer.pointer, buffer.element, offset), buffer.element, e.lanes)


def _read_strided(e: Evaluator, buffer: Buffer, offset: Dim) -> Cell:
    step, lanes = offset.step, e.lanes
    address = element_address(e.w, buffer.pointer, buffer.element, offset)
    if step == 1:
        return _load_plain(e.w, address, buffer.element, lanes)
    raw = llvm_type(buffer.element, lanes * step, memory=True)
    whole = e.w.emit(f"load {raw}, ptr {address}, align {bytes_of(buffer.element)}")
    picked = e.w.emit(f"shufflevector {raw} {whole}, {raw} poison, {shuffle([step * i for i in range(lanes)])}")
    return from_memory(e.w, picked, buffer.element, lanes)


def write(e: Evaluator, buffer: Buffer, index: Index, cell: Cell) -> None:
    """Writes the lanes that count."""
    offset = e.linear(index, buffer.strides)
    element, lanes, w = buffer.element, e.lanes, e.w
    if is_scalar(index):
        store_plain(w, element_address(w, buffer.pointer, element, offset), cell)
        return
    cell = e.splat(cell, e.depth)
    if offset.vec is None and offset.step in (1, -1):
        if offset.step == -1:
            offset = offset._replace(text=w.emit(f"sub i64 {offset.text}, {lanes - 1}"), const=None)
            cell = _reverse(w, cell)
        mask = None if e.active is None else _reverse_text(w, e.active, lanes) if offset.step == -1 else e.active
        store_contiguous(w, element_address(w, buffer.pointer, element, offset), cell, mask)
        return
    where = e.vector_of(offset)
    pointers = w.emit(
        f"getelementptr {scalar_type(element, memory=True)}, ptr {buffer.pointer}, <{lanes} x i64> {where}"
    )
    scatter_to(w, pointers, cell, e.active)


def write_pairs(e: Evaluator, buffer: Buffer, index: Index, first: Cell, second: Cell) -> None:
    """Writes two vectors interleaved along a new last axis of the buffer; the vector axis of ``index`` is its last
    one."""
    w, lanes = e.w, e.lanes
    offset = e.linear((*e.first(index), ZERO), buffer.strides)
    base = scalar_type(buffer.element, memory=True)
    type = vector(base, lanes)
    order = shuffle([i // 2 + lanes * (i % 2) for i in range(2 * lanes)])
    text = w.emit(f"shufflevector {type} {to_memory(w, first)}, {type} {to_memory(w, second)}, {order}")
    address = element_address(w, buffer.pointer, buffer.element, offset)
    mask = None if e.active is None else lane_mask(2 * lanes, 2 * e.count)
    raw = i8 if buffer.element.is_bool else buffer.element
    store_contiguous(w, address, Cell(text, raw, 2 * lanes), mask)


# Single instructions --------------------------------------------------------------------------------------------------


def from_memory(w: FunctionWriter, text: str, element: ElementType, lanes: int) -> Cell:
    """What was read, as a value: a boolean is any byte but 0."""
    if element.is_bool:
        zero = "zeroinitializer" if lanes else "0"
        text = w.emit(f"icmp ne {vector('i8', lanes)} {text}, {zero}")
    return Cell(text, element, lanes)


def to_memory(w: FunctionWriter, cell: Cell) -> str:
    """The operand that is stored for ``cell``."""
    if cell.element.is_bool:
        return w.emit(f"zext {cell.typed} to {vector('i8', cell.lanes)}")
    return cell.text


def _load_plain(w: FunctionWriter, address: str, element: ElementType, lanes: int, volatile: bool = False) -> Cell:
    head = "load volatile" if volatile else "load"
    text = w.emit(f"{head} {llvm_type(element, lanes, memory=True)}, ptr {address}, align {bytes_of(element)}")
    return from_memory(w, text, element, lanes)


def store_plain(w: FunctionWriter, address: str, cell: Cell) -> None:
    text = to_memory(w, cell)
    type = llvm_type(cell.element, cell.lanes, memory=True)
    w.line(f"store {type} {text}, ptr {address}, align {bytes_of(cell.element)}")


def _store_past_caches(w: FunctionWriter, address: str, cell: Cell) -> None:
    """In pieces of 16 bytes, to an address that is divisible by 16: arrays need not start with a cache line."""
    base, text = scalar_type(cell.element, memory=True), to_memory(w, cell)
    size = 16 // bytes_of(cell.element)
    hint = w.module.metadata("!{i32 1}")
    for first in range(0, cell.lanes, size):
        part = part_of(w, text, base, cell.lanes, first, size)
        place = w.emit(f"getelementptr {base}, ptr {address}, i64 {first}") if first else address
        w.line(f"store {vector(base, size)} {part}, ptr {place}, align 16, !nontemporal {hint}")


def _masked_base(element: ElementType) -> str:
    """The type of an element in accesses under a mask: LLVM takes vectors of bf16 there apart, lane by lane, with a
    call of a conversion for each; not so the same bits as integers."""
    base = scalar_type(element, memory=True)
    return "i16" if base == "bfloat" else base


def _recast(w: FunctionWriter, text: str, lanes: int, source: str, target: str) -> str:
    if source == target or text == "zeroinitializer":
        return text
    return w.emit(f"bitcast {vector(source, lanes)} {text} to {vector(target, lanes)}")


def _to_masked(w: FunctionWriter, cell: Cell) -> str:
    """A vector as accesses under a mask take it."""
    text = to_memory(w, cell)
    return _recast(w, text, cell.lanes, scalar_type(cell.element, memory=True), _masked_base(cell.element))


def _from_masked(w: FunctionWriter, text: str, element: ElementType, lanes: int) -> Cell:
    text = _recast(w, text, lanes, _masked_base(element), scalar_type(element, memory=True))
    return from_memory(w, text, element, lanes)


def store_contiguous(w: FunctionWriter, address: str, cell: Cell, mask: str | None) -> None:
    if mask is None:
        store_plain(w, address, cell)
        return
    lanes, base = cell.lanes, _masked_base(cell.element)
    type = vector(base, lanes)
    name = w.module.declare(
        f"llvm.masked.store.{suffix(base, lanes)}.p0", "void", [type, "ptr", "i32", f"<{lanes} x i1>"]
    )
    text = _to_masked(w, cell)
    w.line(f"call void {name}({type} {text}, ptr {address}, i32 {bytes_of(cell.element)}, <{lanes} x i1> {mask})")


def load_contiguous(
    w: FunctionWriter, address: str, element: ElementType, lanes: int, mask: str | None, other: Cell | None
) -> Cell:
    """A vector of consecutive elements; lanes off the mask give ``other`` or 0."""
    if mask is None:
        return _load_plain(w, address, element, lanes)
    base = _masked_base(element)
    type = vector(base, lanes)
    name = w.module.declare(f"llvm.masked.load.{suffix(base, lanes)}.p0", type, ["ptr", "i32", f"<{lanes} x i1>", type])
    passthru = "zeroinitializer" if other is None else _to_masked(w, other)
    text = w.emit(
        f"call {type} {name}(ptr {address}, i32 {bytes_of(element)}, <{lanes} x i1> {mask}, {type} {passthru})"
    )
    return _from_masked(w, text, element, lanes)


def gather_from(
    w: FunctionWriter, pointers: str, element: ElementType, lanes: int, mask: str | None, other: Cell | None
) -> Cell:
    base = _masked_base(element)
    type = vector(base, lanes)
    params = [f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>", type]
    name = w.module.declare(f"llvm.masked.gather.{suffix(base, lanes)}.v{lanes}p0", type, params)
    passthru = "zeroinitializer" if other is None else _to_masked(w, other)
    mask = mask or "splat (i1 true)"
    operands = f"<{lanes} x ptr> {pointers}, i32 {bytes_of(element)}, <{lanes} x i1> {mask}, {type} {passthru}"
    text = w.emit(f"call {type} {name}({operands})")
    return _from_masked(w, text, element, lanes)


def scatter_to(w: FunctionWriter, pointers: str, cell: Cell, mask: str | None) -> None:
    lanes, base = cell.lanes, _masked_base(cell.element)
    type = vector(base, lanes)
    params = [type, f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>"]
    name = w.module.declare(f"llvm.masked.scatter.{suffix(base, lanes)}.v{lanes}p0", "void", params)
    text = _to_masked(w, cell)
    mask = mask or "splat (i1 true)"
    operands = f"{type} {text}, <{lanes} x ptr> {pointers}, i32 {bytes_of(cell.element)}, <{lanes} x i1> {mask}"
    w.line(f"call void {name}({operands})")


def _reverse_text(w: FunctionWriter, text: str, lanes: int, type: str = "i1") -> str:
    order = shuffle([lanes - 1 - i for i in range(lanes)])
    return w.emit(f"shufflevector <{lanes} x {type}> {text}, <{lanes} x {type}> poison, {order}")


def _reverse(w: FunctionWriter, cell: Cell) -> Cell:
    return Cell(_reverse_text(w, cell.text, cell.lanes, scalar_type(cell.element)), cell.element, cell.lanes)


# Global memory --------------------------------------------------------------------------------------------------------


def _mask(e: Evaluator, mask: Value | None, index: Index) -> tuple[str | None, int]:
    """The mask of a vector access, the last vector's partial mask included, and its level."""
    if mask is None:
        return e.active, 0
    cell, level = e.vector(mask, index)
    if cell.text == "splat (i1 true)":
        return e.active, 0
    if e.active is None:
        return cell.text, level
    return e.emit_once(level, f"and <{e.lanes} x i1> {cell.text}, {e.active}"), level


def pointee(value: Value) -> ElementType:
    pointer = element_of(value.type)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def load(e: Evaluator, op: Op, index: Index) -> Found:
    """A load at an index, scalar or vector."""
    pointer = op.operands[0]
    mask = op.operands[1] if len(op.operands) > 1 else None
    other = op.operands[2] if len(op.operands) > 2 else None
    element = pointee(pointer)
    if is_scalar(index):
        return _load_scalar(e, op, index, element)
    lanes = e.lanes
    level = 0
    fill: Cell | None = None
    if other is not None:
        fill, level = e.vector(other, index)
    mask_text, mask_level = _mask(e, mask, index)
    level = max(level, mask_level)
    step = e.step_of(pointer, index)
    if step in (0, 1, -1):
        address, pointer_level = e.cell(pointer, e.first(index))
        level = max(level, pointer_level)
        if step == 0:
            return e.at(level, lambda: _load_repeated(e, address.text, element, mask_text, fill)), level
        if step == 1:
            e.ahead(op, address.text, lanes, level, False)
        return e.at(level, lambda: _load_run(e.w, address.text, element, lanes, mask_text, fill, step == -1)), level
    run = e.runs_of(pointer, index)
    if run:
        return _load_runs(e, pointer, index, run, element, mask_text, fill, level)
    pointers, pointer_level = e.vector(pointer, index)
    level = max(level, pointer_level)
    offsets = _maybe_consecutive(e, pointer, index) if level == e.depth and not element.is_bool else None
    if offsets is not None:
        return _load_checked(e, offsets, pointers, element, mask_text, fill), level
    return e.at(level, lambda: gather_from(e.w, pointers.text, element, lanes, mask_text, fill)), level


def _load_runs(
    e: Evaluator,
    pointer: Value,
    index: Index,
    run: int,
    element: ElementType,
    mask: str | None,
    fill: Cell | None,
    level: int,
) -> Found:
    """A vector made of several shorter ones, each of consecutive elements."""
    lanes = e.lanes
    starts = [e.cell(pointer, e.lane(index, first)) for first in range(0, lanes, run)]
    level = max(level, *(found[1] for found in starts))

    def write() -> Cell:
        w = e.w
        parts = []
        for i, (start, _) in enumerate(starts):
            part_mask = None if mask is None else part_of(w, mask, "i1", lanes, i * run, run)
            part_fill = (
                None
                if fill is None
                else Cell(part_of(w, fill.text, scalar_type(element), lanes, i * run, run), element, run)
            )
            parts.append(load_contiguous(w, start.text, element, run, part_mask, part_fill).text)
        size = run
        while len(parts) > 1:
            type = vector(scalar_type(element), size)
            order = shuffle(list(range(2 * size)))
            parts = [
                w.emit(f"shufflevector {type} {a}, {type} {b}, {order}")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            size *= 2
        return Cell(parts[0], element, lanes)

    return e.at(level, write), level


def part_of(w: FunctionWriter, text: str, base: str, lanes: int, first: int, size: int) -> str:
    """``size`` lanes of a vector from ``first`` on."""
    type = vector(base, lanes)
    return w.emit(f"shufflevector {type} {text}, {type} poison, {shuffle(list(range(first, first + size)))}")


_CLAMPING = frozenset({"rem", "div", "min", "max", "select", "and"})


def _maybe_consecutive(e: Evaluator, pointer: Value, index: Index) -> Cell | None:
    """The offsets of a pointer whose lanes are likely to lie side by side although nothing proves it, as in ``p + i %
    n``."""
    op = pointer.op
    if op is None or op.kind != "addptr" or not e.is_uniform(op.operands[0], index):
        return None
    seen: set[Value] = set()
    work = [op.operands[1]]
    clamped = False
    while work:
        value = work.pop()
        if value in seen or not isinstance(value.type, TensorType):
            continue
        seen.add(value)
        producer = value.op
        if producer is None or producer.kind in ("load", "gather", "desc_load") or value in e.buffers:
            return None
        clamped = clamped or producer.kind in _CLAMPING or (producer.kind == "mul" and _unknown_step(e, value))
        work += producer.operands
    if not clamped:
        return None
    offsets, _ = e.cell(op.operands[1], index)
    return offsets if offsets.lanes and offsets.element.bits >= 32 else None


def _unknown_step(e: Evaluator, value: Value) -> bool:
    """Whether nothing is known of how ``value`` grows along some axis, as with a stride that is an argument."""
    shape = value.type.shape if isinstance(value.type, TensorType) else ()
    return any(e.graph.stride(value, axis) is None for axis in range(len(shape)))


def _are_consecutive(e: Evaluator, offsets: Cell) -> str:
    """An i1: each lane's offset is one more than the one before."""
    w, lanes, bits = e.w, e.lanes, offsets.element.bits
    type = offsets.type
    first = w.emit(f"extractelement {offsets.typed}, i64 0")
    last = w.emit(f"extractelement {offsets.typed}, i64 {lanes - 1}")
    base = splat(w, Cell(first, offsets.element), lanes)
    expected = w.emit(f"add {type} {base.text}, {iota(lanes, 1, f'i{bits}')}")
    equal = w.emit(f"icmp eq {type} {offsets.text}, {expected}")
    name = w.module.declare(f"llvm.vector.reduce.and.v{lanes}i1", "i1", [f"<{lanes} x i1>"])
    run = w.call("i1", name, [f"<{lanes} x i1> {equal}"])
    ordered = w.emit(f"icmp {'slt' if offsets.element.is_signed else 'ult'} i{bits} {first}, {last}")  # no wrap between
    return w.emit(f"and i1 {run}, {ordered}")


def _store_checked(e: Evaluator, offsets: Cell, pointers: Cell, cell: Cell, mask: str | None) -> None:
    """One contiguous store if the offsets turn out to be consecutive, else a scatter."""
    w = e.w
    fast, slow, done = w.new_label("run"), w.new_label("scatter"), w.new_label("stored")
    w.cond_br(_are_consecutive(e, offsets), fast, slow)
    w.label(fast)
    store_contiguous(w, w.emit(f"extractelement {pointers.typed}, i64 0"), cell, mask)
    w.br(done)
    w.label(slow)
    scatter_to(w, pointers.text, cell, mask)
    w.br(done)
    w.label(done)


def _load_checked(
    e: Evaluator, offsets: Cell, pointers: Cell, element: ElementType, mask: str | None, fill: Cell | None
) -> Cell:
    """One contiguous load if the offsets turn out to be consecutive, else a gather."""
    w, lanes = e.w, e.lanes
    fast, slow, done = w.new_label("run"), w.new_label("gather"), w.new_label("loaded")
    w.cond_br(_are_consecutive(e, offsets), fast, slow)
    w.label(fast)
    start = w.emit(f"extractelement {pointers.typed}, i64 0")
    a = load_contiguous(w, start, element, lanes, mask, fill)
    w.br(done)
    w.label(slow)
    b = gather_from(w, pointers.text, element, lanes, mask, fill)
    w.br(done)
    w.label(done)
    return Cell(w.emit(f"phi {a.type} [ {a.text}, %{fast} ], [ {b.text}, %{slow} ]"), element, lanes)


def _load_scalar(e: Evaluator, op: Op, index: Index, element: ElementType) -> Found:
    pointer, level = e.cell(op.operands[0], index)
    volatile = bool(op.attrs.get("volatile", False))
    if len(op.operands) == 1:
        return e.at(level, lambda: _load_plain(e.w, pointer.text, element, 0, volatile)), level
    mask, mask_level = e.cell(op.operands[1], index)
    level = max(level, mask_level)
    fill = emit_constant(element, False if element.is_bool else 0.0 if element.is_float else 0)
    if len(op.operands) > 2:
        fill, fill_level = e.cell(op.operands[2], index)
        level = max(level, fill_level)
    return e.at(level, lambda: _load_if(e, pointer.text, element, mask.text, fill)), level


def _load_if(e: Evaluator, address: str, element: ElementType, mask: str, other: Cell) -> Cell:
    """One element if the mask holds; otherwise a harmless address is read and the result dropped."""
    if mask == "false":
        return other
    safe = e.w.emit(f"select i1 {mask}, ptr {address}, ptr {e.dummy()}")
    value = _load_plain(e.w, safe, element, 0)
    return Cell(e.w.emit(f"select i1 {mask}, {value.typed}, {other.typed}"), element)


def _load_repeated(e: Evaluator, address: str, element: ElementType, mask: str | None, other: Cell | None) -> Cell:
    w, lanes = e.w, e.lanes
    if mask is None:
        return splat(w, _load_plain(w, address, element, 0), lanes)
    any_ = w.call(
        "i1",
        w.module.declare(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [f"<{lanes} x i1>"]),
        [f"<{lanes} x i1> {mask}"],
    )
    safe = w.emit(f"select i1 {any_}, ptr {address}, ptr {e.dummy()}")
    value = splat(w, _load_plain(w, safe, element, 0), lanes)
    fill = other.text if other is not None else "zeroinitializer"
    return Cell(w.emit(f"select <{lanes} x i1> {mask}, {value.typed}, {value.type} {fill}"), element, lanes)


def _load_run(
    w: FunctionWriter,
    address: str,
    element: ElementType,
    lanes: int,
    mask: str | None,
    other: Cell | None,
    backward: bool,
) -> Cell:
    """Consecutive elements from ``address`` on, or going down from it."""
    if not backward:
        return load_contiguous(w, address, element, lanes, mask, other)
    base = scalar_type(element, memory=True)
    low = w.emit(f"getelementptr {base}, ptr {address}, i64 {1 - lanes}")
    if mask is not None:
        mask = _reverse_text(w, mask, lanes)
    if other is not None:
        other = _reverse(w, other)
    return _reverse(w, load_contiguous(w, low, element, lanes, mask, other))


def store(e: Evaluator, op: Op, index: Index) -> None:
    """Stores one element of what ``op`` stores or one vector of them, at the current place."""
    cell, level = e.cell(op.operands[1], index)
    store_cell(e, op, cell if is_scalar(index) else e.splat(cell, level), index)


def store_cell(e: Evaluator, op: Op, cell: Cell, index: Index) -> None:
    """Stores ``cell`` through the pointer(s) of ``op`` at ``index``."""
    w, lanes, pointer = e.w, e.lanes, op.operands[0]
    mask = op.operands[2] if len(op.operands) > 2 else None
    if is_scalar(index):
        address, _ = e.cell(pointer, index)
        target = address.text
        if mask is not None:
            condition, _ = e.cell(mask, index)
            target = w.emit(f"select i1 {condition.text}, ptr {target}, ptr {e.dummy()}")
        store_plain(w, target, cell)
        return
    mask_text, _ = _mask(e, mask, index)
    step = e.step_of(pointer, index)
    if step in (1, -1):
        address, _ = e.cell(pointer, e.first(index))
        target = address.text
        if step == -1:
            target = w.emit(f"getelementptr {scalar_type(cell.element, memory=True)}, ptr {target}, i64 {1 - lanes}")
            cell = _reverse(w, cell)
            mask_text = None if mask_text is None else _reverse_text(w, mask_text, lanes)
        if e.streaming and mask_text is None:
            _store_past_caches(w, target, cell)
        else:
            store_contiguous(w, target, cell, mask_text)
        if step == 1:
            e.ahead(op, target, lanes, e.depth, True)
        return
    run = e.runs_of(pointer, index)
    if run:
        for first in range(0, lanes, run):
            address, _ = e.cell(pointer, e.lane(index, first))
            part = Cell(part_of(w, cell.text, scalar_type(cell.element), lanes, first, run), cell.element, run)
            store_contiguous(w, address.text, part, mask_text and part_of(w, mask_text, "i1", lanes, first, run))
        return
    pointers, _ = e.vector(pointer, index)
    offsets = _maybe_consecutive(e, pointer, index)
    if offsets is not None:
        _store_checked(e, offsets, pointers, cell, mask_text)
        return
    scatter_to(w, pointers.text, cell, mask_text)


# Descriptors ----------------------------------------------------------------------------------------------------------


def box(
    e: Evaluator, descriptor: Descriptor, offsets: list[Cell], index: Index
) -> tuple[str, str | None, int | None, int]:
    """Where a box's elements lie: (address or vector of addresses, mask, lane step if they are in order, level)."""
    scalar = is_scalar(index)
    level = max((d.level for d in index), default=0)
    lanes, mask, total = e.lanes, None, None
    step: int | None = 0
    for d, offset, size, stride in zip(index, offsets, descriptor.sizes, descriptor.strides, strict=True):
        if d.is_scalar:
            place = e.add(Dim(offset.text, 0, _known(offset)), d)
            at, width = place.text, 0
            product = e.emit_once(level, f"mul i64 {at}, {stride.text}")
        else:
            step = (
                None
                if d.vec is not None or _known(stride) not in (1, -1) or step is None
                else step + d.step * (_known(stride) or 0)
            )
            where = e.vector_of(d)
            first = e.splat(Cell(offset.text, i64), 0)
            at = e.emit_once(level, f"add <{lanes} x i64> {where}, {first.text}")
            width = lanes
            product = e.emit_once(level, f"mul <{lanes} x i64> {at}, {e.splat(Cell(stride.text, i64), 0).text}")
        limit = e.splat(Cell(size.text, i64), 0).text if width else size.text
        inside = e.emit_once(level, f"icmp ult {vector('i64', width)} {at}, {limit}")
        if not scalar and not width:
            inside = e.splat(Cell(inside, i1), level).text
            product = e.splat(Cell(product, i64), level).text
        kind = vector("i1", 0 if scalar else lanes)
        mask = inside if mask is None else e.emit_once(level, f"and {kind} {mask}, {inside}")
        wide = vector("i64", 0 if scalar else lanes)
        total = product if total is None else e.emit_once(level, f"add {wide} {total}, {product}")
    if not scalar and e.active is not None:
        mask = e.emit_once(level, f"and <{lanes} x i1> {mask}, {e.active}")
    pointer = descriptor.base.element
    assert isinstance(pointer, PointerType) and total is not None
    base = scalar_type(pointer.pointee, memory=True)
    address = e.emit_once(
        level, f"getelementptr {base}, ptr {descriptor.base.text}, {vector('i64', 0 if scalar else lanes)} {total}"
    )
    if not scalar and step in (1, -1):
        address = e.emit_once(level, f"extractelement <{lanes} x ptr> {address}, i64 0")
    return address, mask, step if not scalar else None, level


def _known(cell: Cell) -> int | None:
    if isinstance(cell.value, int):
        return int(cell.value)
    return int(cell.text) if cell.text.lstrip("-").isdigit() else None


def desc_load(e: Evaluator, op: Op, index: Index) -> Found:
    """The elements of a box; the padding outside the tensor."""
    descriptor = e.descriptors[op.operands[0]]
    offsets = [wide_integer(e.w, e.scalars[v], e) for v in op.operands[1:]]
    address, mask, step, level = box(e, descriptor, offsets, index)
    result = op.results[0].type
    assert isinstance(result, TensorType) and mask is not None
    element = result.element
    padding = emit_constant(element, float("nan")) if descriptor.padding == "nan" and element.is_float else None
    if is_scalar(index):
        other = padding or emit_constant(element, False if element.is_bool else 0.0 if element.is_float else 0)
        return e.at(level, lambda: _load_if(e, address, element, mask, other)), level
    fill = None if padding is None else e.splat(padding, 0)
    if step in (1, -1):
        return e.at(level, lambda: _load_run(e.w, address, element, e.lanes, mask, fill, step == -1)), level
    return e.at(level, lambda: gather_from(e.w, address, element, e.lanes, mask, fill)), level


def store_box(e: Evaluator, descriptor: Descriptor, offsets: list[Cell], cell: Cell, index: Index) -> None:
    """Writes the elements of a box that lie inside the tensor."""
    w, lanes = e.w, e.lanes
    address, mask, step, _ = box(e, descriptor, offsets, index)
    assert mask is not None
    if is_scalar(index):
        store_plain(w, w.emit(f"select i1 {mask}, ptr {address}, ptr {e.dummy()}"), cell)
        return
    cell = e.splat(cell, e.depth)
    if step == 1:
        store_contiguous(w, address, cell, mask)
        return
    if step == -1:
        low = w.emit(f"getelementptr {scalar_type(cell.element, memory=True)}, ptr {address}, i64 {1 - lanes}")
        store_contiguous(w, low, _reverse(w, cell), _reverse_text(w, mask, lanes))
        return
    scatter_to(w, address, cell, mask)


def wide_integer(w: FunctionWriter, cell: Cell, e: Evaluator) -> Cell:
    """A scalar integer as i64."""
    if isinstance(cell.value, int):
        return Cell(str(int(cell.value)), i64, 0, int(cell.value))
    if cell.element.bits == 64:
        return Cell(cell.text, i64)
    extend = "sext" if cell.element.is_signed else "zext"
    return Cell(e.emit_once(0, f"{extend} {cell.typed} to i64"), i64)
