"""Matrix products: operands packed into scratch in the accumulator's type, then a register-blocked kernel.

    A: rows as they are             B: panels of ``width`` columns           C tile of rows x vectors in registers
    [M][K + padding]                [N / width][K][width]                    c[r][v] += a[r][k] * b[k][v]   for each k

For each panel (which stays in the first-level cache) the kernel walks down the rows of A. The accumulator operand is
computed when a C tile starts and the tile is written when it ends, in place when the accumulator is not needed any
more. Where the processor multiplies groups of narrow numbers at once, the operands stay narrow (``grouped.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...ir.core import Op, Value
from ...ir.types import ElementType, ScalarType, TensorType, element_of, f32, shape_of
from ..convert import cast
from ..writer import Cell, scalar_type, splat, splat_text, suffix, vector
from . import access, epilogue, grouped, transpose
from .buffers import Buffer, bytes_of
from .emit import FunctionEmitter, rule
from .graph import Stride
from .index import Dim, Index, fixed, lane_mask
from .machine import GroupedProduct, Machine
from .nest import Shape, choose, count, nest, survey


@dataclass(frozen=True, slots=True)
class Blocking:
    """A C tile has ``rows`` x (``vectors`` x ``lanes``) elements."""

    rows: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        return self.vectors * self.lanes


def blocking(m: int, n: int, bits: int, machine: Machine) -> Blocking:
    """The C tile that needs the fewest steps for an m x n product."""
    lanes = 2
    while lanes < min(n, machine.vector_bits // bits):
        lanes *= 2
    columns = -(-n // lanes)
    budget = 24 if machine.registers >= 32 else 12

    def cost(rows: int, vectors: int) -> float:
        return max(rows * vectors, 0.7 * (rows + vectors), 4.5) + 0.5

    best: tuple[float, int, int] | None = None
    for vectors in range(1, min(4, columns) + 1):
        for rows in range(1, min(m, 14) + 1):
            if rows * vectors > budget:
                break
            total = 0.0
            for v, panels in ((vectors, columns // vectors), (columns % vectors, 1)):
                if v and panels:
                    total += panels * (m // rows * cost(rows, v) + (cost(m % rows, v) if m % rows else 0))
            if best is None or (total, -vectors) < best[:2]:
                best = (total, -vectors, rows)
    assert best is not None
    return Blocking(best[2], -best[1], lanes)


def compute_type(acc: ElementType) -> ScalarType:
    """What products and sums are computed in: narrow float accumulators are rounded once at the end."""
    assert isinstance(acc, ScalarType)
    return f32 if acc.is_float and acc.bits < 32 else acc


_SMALL = 32 << 10
"""Bytes of an operand, gaps between its rows included, that is multiplied where it lies."""

Place = Callable[[Index], tuple[Buffer, Index]]
"""Where an element of an operand is packed."""


@dataclass(slots=True)
class Operand:
    """An operand: ``pointer`` to elements of the compute type, ``pitch`` elements from row to row, and for B ``panel``
    elements from panel to panel. ``offset``: the place in scratch to give back. Panels of a grouped product are made
    of 32-bit groups; ``excess`` points to what each column's sum is too large by, if it is."""

    pointer: str
    pitch: int
    offset: int | None
    panel: int = 0
    excess: str = ""


@rule("dot")
def _dot(f: FunctionEmitter, op: Op) -> None:
    e, (a, b, acc) = f.e, op.operands
    result = op.results[0]
    *batch, m, n = shape_of(result.type)
    k = shape_of(a.type)[-1]
    job = product_of(f, op)
    store = epilogue.find(f, op) if f.plan.cost(acc) <= 8 else None
    if store is not None:
        f.written.add(store)
    out = store if store is not None else f.buffer_for(result)
    repeated = f.plan.cost(acc) <= 8 or acc in f.buffers or _made_of(f, a, acc) or _made_of(f, b, acc)
    if isinstance(out, Buffer) and not repeated:
        f.fill(acc, out)  # too long to be repeated for each register
        f.buffers[acc], borrowed = out, acc
    else:
        borrowed = None
    e.reset()
    if batch:

        def each(d: Dim, _: list[str]) -> Sequence[str]:
            _product(f, op, (d,), (m, n, k), job, out)
            return ()

        count(e, batch[0], each)
    else:
        _product(f, op, (), (m, n, k), job, out)
    e.reset()
    if borrowed is not None:
        del f.buffers[borrowed]
    if isinstance(out, Buffer):
        f.buffers[result] = out


def _made_of(f: FunctionEmitter, value: Value, part: Value) -> bool:
    """Whether computing an element of ``value`` computes one of ``part``."""
    seen: set[Value] = set()
    work = [value]
    while work:
        v = work.pop()
        if v is part:
            return True
        if v in seen or v in f.buffers or v.op is None:
            continue
        seen.add(v)
        work += v.op.operands
    return False


@dataclass(frozen=True, slots=True)
class Product:
    """How a product is computed: sums of ``element`` in tiles of ``block``, by one multiplication at a time or ``how``.

    ``left`` and ``right`` are the types that the operands are packed in.
    """

    block: Blocking
    element: ScalarType
    how: GroupedProduct | None = None

    @property
    def left(self) -> ScalarType:
        return self.how.left if self.how is not None else self.element

    @property
    def shifted(self) -> bool:
        """Whether the left operand's numbers are packed with 2^(bits - 1) added to them."""
        return self.how is not None and self.how.shifted

    @property
    def right(self) -> ScalarType:
        return self.how.right if self.how is not None else self.element


def product_of(f: FunctionEmitter, op: Op) -> Product:
    """The way to compute a ``dot``."""
    a, b, acc = op.operands
    m, n = shape_of(op.results[0].type)[-2:]
    element = compute_type(element_of(acc.type))
    block = blocking(m, n, element.bits, f.machine)
    how = f.machine.grouped(element_of(a.type), element_of(b.type), element, block.lanes)
    if how is not None and shape_of(a.type)[-1] % how.group:
        how = None
    return Product(block, element, how)


def _product(
    f: FunctionEmitter, op: Op, batch: Index, sizes: tuple[int, int, int], job: Product, out: Buffer | Op
) -> None:
    a, b, acc = op.operands
    left = pack_rows(f, a, batch, job.left, job.shifted)
    right = pack_panels(f, b, batch, job)
    multiply(f, left, right, acc, op.results[0], batch, sizes, job, out)


def multiply(
    f: FunctionEmitter,
    left: Operand,
    right: Operand,
    acc: Value,
    result: Value,
    batch: Index,
    sizes: tuple[int, int, int],
    job: Product,
    out: Buffer | Op,
) -> None:
    """out = left x right + acc for packed operands, whose places are given back. ``out`` may be a store."""
    kernel = _Kernel(f, left, right, acc, result, batch, sizes, job, out)
    whole = sizes[1] // job.block.width
    if whole:
        kernel.panels(whole)
    if sizes[1] % job.block.width:
        kernel.last_panel(whole)
    for operand in (left, right):
        if operand.offset is not None:
            f.arena.free(operand.offset)


# Packing --------------------------------------------------------------------------------------------------------------


def pack_rows(f: FunctionEmitter, value: Value, batch: Index, element: ScalarType, shifted: bool = False) -> Operand:
    """A in row-major order; a buffer that is so already is used as it is."""
    kept: Operand | None = f.packed.get((value, "rows", element, shifted))
    if kept is not None and not batch:
        return kept
    held = f.buffers.get(value) if not shifted else None
    if held is not None and held.element == element and not batch and held.strides[1] == 1:
        return Operand(held.pointer, held.strides[0], None)
    direct = _in_memory(f, value, batch, element) if not shifted else None
    if direct is not None:
        return direct
    m, k = shape_of(value.type)[-2:]
    operand, place = rows_place(f, m, k, element)
    _pack(f, value, batch, element, place, (operand.pitch, 1), shifted)
    return operand


def rows_place(f: FunctionEmitter, m: int, k: int, element: ScalarType) -> tuple[Operand, Place]:
    """Room for a packed A and where its elements go."""
    pitch = -(-k // 16) * 16 + 16 if k >= 16 else k  # rows start in different cache sets
    pointer, offset = f.arena.allocate(m * pitch * bytes_of(element))
    target = Buffer(pointer, (m, k), element, (pitch, 1))
    return Operand(pointer, pitch, offset), lambda index: (target, index)


def pack_panels(f: FunctionEmitter, value: Value, batch: Index, job: Product) -> Operand:
    """B in panels; columns past the last are zero."""
    kept: Operand | None = f.packed.get((value, "panels", job))
    if kept is not None and not batch:
        return kept
    if job.how is not None:
        return _pack_groups(f, value, batch, job, job.how)
    k, n = shape_of(value.type)[-2:]
    block, element = job.block, job.element
    width = block.width
    held = f.buffers.get(value)
    if held is not None and held.element == element and not batch and held.strides == (width, 1) and n == width:
        return Operand(held.pointer, width, None, k * width)
    whole = n % block.lanes == 0 and not batch
    if (
        whole
        and held is not None
        and held.element == element
        and held.strides == (n, 1)
        and k * n * bytes_of(element) <= _SMALL
    ):
        return Operand(held.pointer, n, None, width)
    direct = _in_memory(f, value, batch, element) if whole else None
    if direct is not None:
        direct.panel = width
        return direct
    operand, place = panels_place(f, k, n, element, block)
    _pack(f, value, batch, element, place, (width, 1))
    return operand


def _pack_groups(f: FunctionEmitter, value: Value, batch: Index, job: Product, how: GroupedProduct) -> Operand:
    """B in panels whose elements are groups of neighbours in K."""
    k, n = shape_of(value.type)[-2:]
    rows = pack_rows(f, value, batch, how.right)
    pointer, excess, offset = grouped.interleave(f, rows, (k, n), how, job.block)
    if rows.offset is not None:
        f.arena.free(rows.offset)
    width = job.block.width
    return Operand(pointer, width, offset, k // how.group * width, excess)


def panels_place(f: FunctionEmitter, k: int, n: int, element: ScalarType, block: Blocking) -> tuple[Operand, Place]:
    """Room for a packed B and where its elements go."""
    width = block.width
    panels = -(-n // width)
    pointer, offset = f.arena.allocate(panels * k * width * bytes_of(element))
    if n % width:
        size = k * width * bytes_of(element)
        last = f.w.emit(f"getelementptr i8, ptr {pointer}, i64 {(panels - 1) * size}")
        name = f.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
        f.w.line(f"call void {name}(ptr align 64 {last}, i8 0, i64 {size}, i1 false)")
    target = Buffer(pointer, (panels, k, width), element, (k * width, width, 1))

    def place(index: Index) -> tuple[Buffer, Index]:
        panel, column = f.e.divide(index[1], width)
        return target, (panel, index[0], column)

    return Operand(pointer, width, offset, k * width), place


def _in_memory(f: FunctionEmitter, value: Value, batch: Index, element: ScalarType) -> Operand | None:
    """A small operand that is loaded as it is, its rows at constant distances: there is nothing to pack."""
    load = value.op
    if batch or load is None or load.kind != "load" or len(load.operands) != 1 or value in f.plan.held:
        return None
    shape, pointer = shape_of(value.type), load.operands[0]
    down, along = (f.graph.stride(pointer, axis) for axis in (0, 1))
    if element_of(value.type) != element or element.is_bool or down is None or down.group or down.step < shape[1]:
        return None
    if along != Stride(1, 0) or shape[0] * down.step * bytes_of(element) > _SMALL or shape[0] == 1:
        return None
    return Operand(f.scalar_of(pointer).text, down.step, None)


def _pack(
    f: FunctionEmitter,
    value: Value,
    batch: Index,
    element: ScalarType,
    place: Place,
    strides: tuple[int, int],
    shifted: bool = False,
) -> None:
    """Writes every element of the last two axes, converted, where ``place`` says."""
    e = f.e
    shape = shape_of(value.type)
    found = survey(e, [value], shape)
    lanes = f.machine.vector_bits // element.bits
    if not batch and transpose.wanted(found, shape, 1 - _fast(strides), _fast(strides), lanes):
        _pack_turned(f, value, element, place, _fast(strides), lanes, shifted)
        return
    found.bits = max(found.bits, element.bits)
    found.accesses.append((0,) * len(batch) + strides)
    chosen = choose(e, shape, found, allowed=range(len(batch), len(shape)))
    axis = None if chosen.axis is None else chosen.axis - len(batch)

    def body(index: Index) -> None:
        buffer, at = place(index)
        access.write(e, buffer, at, _converted(f, value, (*batch, *index), element, shifted))

    nest(e, shape[len(batch) :], Shape(axis, chosen.lanes), body, None if batch else found)


def _fast(strides: tuple[int, int]) -> int:
    """The axis along which packed elements are neighbours."""
    return 1 if strides[1] == 1 else 0


def _converted(f: FunctionEmitter, value: Value, index: Index, element: ScalarType, shifted: bool) -> Cell:
    """An element as it is packed. ``shifted``: with its sign bit turned over, which adds 2^(bits - 1)."""
    cell, level = f.e.cell(value, index)

    def write() -> Cell:
        found = cell if cell.element == element else cast(f.w, cell, element)
        if not shifted:
            return found
        sign = splat_text(str(-(1 << (element.bits - 1))), f"i{element.bits}", found.lanes)
        return Cell(f.w.emit(f"xor {found.typed}, {sign}"), element, found.lanes)

    return f.e.at(level, write)


def _pack_turned(
    f: FunctionEmitter, value: Value, element: ScalarType, place: Place, fast: int, lanes: int, shifted: bool
) -> None:
    def read(index: Index) -> Cell:
        return f.e.splat(_converted(f, value, index, element, shifted), f.e.depth)

    def write(index: Index, cell: Cell) -> None:
        buffer, at = place(index)
        access.write(f.e, buffer, at, cell)

    transpose.turn(f, shape_of(value.type), 1 - fast, fast, lanes, element, read, write)


def pack_invariants(f: FunctionEmitter, loop: Op) -> list[object]:
    """Packs, before a loop, the operands of its dots that no trip changes. Returns their keys."""
    keys: list[object] = []
    inside = {id(op) for op in loop.regions[0].walk()}
    for op in loop.regions[0].walk():
        if op.kind != "dot" or len(shape_of(op.results[0].type)) != 2:
            continue
        job = product_of(f, op)
        for value, role in ((op.operands[0], "rows"), (op.operands[1], "panels")):
            key: object = (value, role, job.left, job.shifted) if role == "rows" else (value, role, job)
            if key in f.packed or not _outside(f, value, loop, inside):
                continue
            f.e.reset()
            made = pack_rows(f, value, (), job.left, job.shifted) if role == "rows" else pack_panels(f, value, (), job)
            f.e.reset()
            if made.offset is None:
                continue
            f.keep(made.offset, f.graph.end[loop])
            f.packed[key] = replace(made, offset=None)
            keys.append(key)
    return keys


def _outside(f: FunctionEmitter, value: Value, loop: Op, inside: set[int]) -> bool:
    """Whether ``value`` can be computed before the loop: neither it nor a lazy input of it comes from the loop."""
    owner = value.owner
    if isinstance(owner, Op):
        return id(owner) not in inside and isinstance(value.type, TensorType)
    parent = f.graph.parent.get(owner)
    return parent is not loop and (parent is None or id(parent) not in inside)


# The kernel -----------------------------------------------------------------------------------------------------------


class _Kernel:
    def __init__(
        self,
        f: FunctionEmitter,
        left: Operand,
        right: Operand,
        acc: Value,
        result: Value,
        batch: Index,
        sizes: tuple[int, int, int],
        job: Product,
        out: Buffer | Op,
    ) -> None:
        self.f = f
        self.e = f.e
        self.w = f.w
        self.left = left
        self.right = right
        self.acc = acc
        self.result = result
        self.batch = batch
        self.m, self.n, self.k = sizes
        self.how = job.how
        self.group = job.how.group if job.how is not None else 1
        self.block = job.block
        self.element = job.element
        self.out = out
        self.scalar = scalar_type(job.element)
        self.left_scalar = scalar_type(job.left)
        self.vector = vector(self.scalar, job.block.lanes)
        self.words = self.vector if job.how is None else vector("i32", job.block.lanes)

    def panels(self, number: int) -> None:
        def each(d: Dim, _: list[str]) -> Sequence[str]:
            self._rows(d, self.block.vectors, None)
            return ()

        saved = self.e.lanes, self.e.active, self.e.count
        self.e.lanes, self.e.active, self.e.count = self.block.lanes, None, self.block.lanes
        mark = self.e.mark()
        count(self.e, number, each)
        self.e.forget(mark)
        self.e.lanes, self.e.active, self.e.count = saved

    def last_panel(self, panel: int) -> None:
        rest = self.n - panel * self.block.width
        vectors = -(-rest // self.block.lanes)
        saved = self.e.lanes, self.e.active, self.e.count
        self.e.lanes, self.e.active, self.e.count = self.block.lanes, None, self.block.lanes
        mark = self.e.mark()
        self._rows(fixed(panel), vectors, rest - (vectors - 1) * self.block.lanes)
        self.e.forget(mark)
        self.e.lanes, self.e.active, self.e.count = saved

    def _rows(self, panel: Dim, vectors: int, last: int | None) -> None:
        e, rows = self.e, self.block.rows
        offset = e.scale(panel, self.right.panel)
        base = self.right.pointer
        if offset.const != 0:
            base = e.emit(e.depth, f"getelementptr {self.scalar}, ptr {base}, i64 {offset.text}")
        column = e.scale(panel, self.block.width)
        whole = self.m // rows * rows

        def each(d: Dim, _: list[str]) -> Sequence[str]:
            self._tile(d, rows, base, column, vectors, last)
            return ()

        if whole:
            count(e, whole, each, step=rows)
        if whole < self.m:
            mark = e.mark()
            self._tile(fixed(whole), self.m - whole, base, column, vectors, last)
            e.forget(mark)

    def _index(self, row: Dim, column: Dim, r: int, v: int) -> Index:
        e, lanes = self.e, self.block.lanes
        x = e.add(row, fixed(r))
        y = e.add(column, fixed(v * lanes))
        return (*self.batch, x, y._replace(step=1, unit=lanes))

    def _tile(self, row: Dim, rows: int, base: str, column: Dim, vectors: int, last: int | None) -> None:
        w, e, lanes = self.w, self.e, self.block.lanes
        start: list[tuple[str, str]] = []
        places: list[tuple[Index, int]] = []
        full = e.active, e.count
        for r in range(rows):
            for v in range(vectors):
                part = lanes if last is None or v < vectors - 1 else last
                e.active, e.count = (None, lanes) if part == lanes else (lane_mask(lanes, part), part)
                index = self._index(row, column, r, v)
                cell, level = e.vector(self.acc, index)
                if cell.element != self.element:
                    cell = e.at(level, lambda cell=cell: cast(w, cell, self.element))  # type: ignore[misc]
                start.append((self.vector, self._without_excess(cell.text, column, v)))
                places.append((index, part))
        at = e.scale(row, self.left.pitch)
        left = (
            self.left.pointer
            if at.const == 0
            else w.emit(f"getelementptr {self.left_scalar}, ptr {self.left.pointer}, i64 {at.text}")
        )
        trips = self.k // self.group
        unroll = 2 if trips % 2 == 0 and trips > 2 else 1

        def step(counter: str, values: list[str]) -> Sequence[str]:
            for u in range(unroll):
                values = self._step(counter, u, values, left, base, rows, vectors)
            return values

        if trips == unroll:
            sums = list(step("0", [text for _, text in start]))
        else:
            sums = w.loop("0", str(trips), str(unroll), step, start, hint="k", at_least_once=True)
        for (index, part), text in zip(places, sums, strict=True):
            e.active, e.count = (None, lanes) if part == lanes else (lane_mask(lanes, part), part)
            self._finish(index, Cell(text, self.element, lanes))
        e.active, e.count = full

    def _finish(self, index: Index, cell: Cell) -> None:
        """Writes one vector of sums."""
        e, w, out = self.e, self.w, self.out
        if isinstance(out, Buffer):
            access.write(e, out, index, cell if out.element == self.element else cast(w, cell, out.element))
            return
        element = element_of(self.result.type)
        assert isinstance(element, ScalarType)
        e.seed((self.result, index), cell if element == self.element else cast(w, cell, element))
        access.store(e, out, index)

    def _without_excess(self, start: str, column: Dim, v: int) -> str:
        """A tile's first value, less what its sums will be too large by."""
        if not self.right.excess:
            return start
        e = self.e
        place = e.add(column, fixed(v * self.block.lanes))
        level = max(place.level, *(d.level for d in self.batch)) if self.batch else place.level
        address = e.emit_once(level, f"getelementptr i32, ptr {self.right.excess}, i64 {place.text}")
        excess = e.emit_once(level, f"load {self.vector}, ptr {address}, align 4")
        return self.w.emit(f"sub {self.vector} {start}, {excess}")

    def _step(
        self, counter: str, u: int, values: list[str], left: str, base: str, rows: int, vectors: int
    ) -> list[str]:
        """One k, or one group of them, for all elements of the tile."""
        w, lanes = self.w, self.block.lanes
        align = bytes_of(self.element)
        here = counter if u == 0 else w.emit(f"add nuw nsw i64 {counter}, {u}") if counter != "0" else str(u)
        line = w.emit(f"mul nuw nsw i64 {here}, {self.right.pitch}")
        b: list[str] = []
        for v in range(vectors):
            place = line if v == 0 else w.emit(f"add nuw nsw i64 {line}, {v * lanes}")
            address = w.emit(f"getelementptr {self.scalar}, ptr {base}, i64 {place}")
            b.append(w.emit(f"load {self.words}, ptr {address}, align {align}"))
        result: list[str] = []
        first = here if self.group == 1 else w.emit(f"mul nuw nsw i64 {here}, {self.group}")
        for r in range(rows):
            place = first if r == 0 else w.emit(f"add nuw nsw i64 {first}, {r * self.left.pitch}")
            address = w.emit(f"getelementptr {self.left_scalar}, ptr {left}, i64 {place}")
            if self.how is not None:
                a = grouped.left_words(self.f, address, self.how, lanes)
            else:
                one = Cell(w.emit(f"load {self.scalar}, ptr {address}, align {align}"), self.element)
                a = splat(w, one, lanes).text
            for v in range(vectors):
                result.append(self._accumulate(a, b[v], values[r * vectors + v]))
        return result

    def _accumulate(self, a: str, b: str, c: str) -> str:
        w, type = self.w, self.vector
        if self.how is not None:
            return self.how.emit(w, c, a, b, self.block.lanes)
        if not self.element.is_float:
            if self.element.is_bool:
                return w.emit(f"xor {type} {c}, {w.emit(f'and {type} {a}, {b}')}")
            return w.emit(f"add {type} {c}, {w.emit(f'mul {type} {a}, {b}')}")
        if w.features.fma:
            name = w.module.declare(f"llvm.fma.{suffix(self.scalar, self.block.lanes)}", type, [type] * 3)
            return w.call(type, name, [f"{type} {a}", f"{type} {b}", f"{type} {c}"])
        return w.emit(f"fadd {type} {c}, {w.emit(f'fmul {type} {a}, {b}')}")
