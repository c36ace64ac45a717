"""Loads, stores and atomics of tiles: neighbouring registers become one access as wide as the analyses permit."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis import access
from ...analysis.roots import root
from ...ir.core import Op, Value
from ...ir.ops import OPS, has_effect
from ...ir.types import PointerType, TensorType, element_of, i1, i32
from ...layouts.linear import LinearLayout
from ..writer import Cell
from .context import Context, memory_bytes
from .words import merge, pack, unpack


def access_width(c: Context, pointer: Value, mask: Value | None) -> int:
    """How many consecutive registers of ``pointer``'s layout one access may cover."""
    if not isinstance(pointer.type, TensorType):
        return 1
    pointee = element_of(pointer.type)
    assert isinstance(pointee, PointerType)
    known = c.facts.get(mask) if mask is not None and isinstance(mask.type, TensorType) else None
    return access.access_width(c.layout(pointer), c.facts.get(pointer), known, memory_bytes(pointee.pointee))


def _mask(c: Context, op: Op, position: int) -> list[Cell] | None:
    return c.tile(op.operands[position]) if len(op.operands) > position else None


def _predicate(c: Context, layout: LinearLayout | None, register: int, mask: Sequence[Cell] | None) -> str | None:
    """Mask and not padding."""
    found = c.in_range(layout, register) if layout is not None else None
    if mask is not None and mask[register].text != "true":
        found = c.both(found, mask[register].text)
    return found


def _full_width(c: Context, pointer: Value, mask: Value | None, width: int) -> int:
    """The width of accesses where the whole mask holds; ``width`` when nothing is to be gained."""
    return access_width(c, pointer, None) if mask is not None and isinstance(mask.type, TensorType) else width


def _all_of(c: Context, mask: Sequence[Cell]) -> str | None:
    """An i1 operand: every cell of this thread holds."""
    found: str | None = None
    for text in dict.fromkeys(cell.text for cell in mask):
        if text != "true":
            found = c.both(found, text)
    return found


def load(c: Context, op: Op) -> None:
    """Every thread loads what its registers hold; replicas load it too. Where a mask may end between neighbours,
    threads all of whose elements are asked for still make wide accesses."""
    pointer, result = op.operands[0], op.results[0]
    mask = _mask(c, op, 1)
    width = access_width(c, pointer, op.operands[1] if mask is not None else None)
    wide = _full_width(c, pointer, op.operands[1] if mask is not None else None, width)
    full = _all_of(c, mask) if mask is not None and wide > width else None
    if full is None:
        c.set(result, _loaded(c, op, mask, width))
        return
    w = c.w
    yes, no, done = w.new_label("load.full"), w.new_label("load.part"), w.new_label("load.end")
    w.cond_br(full, yes, no)
    ways = []
    for label, inside, count in ((yes, None, wide), (no, mask, width)):
        w.label(label)
        cells = _loaded(c, op, inside, count)
        ways.append((pack(w, cells), w.block))
        w.br(done)
    w.label(done)
    c.set(result, unpack(w, merge(w, ways), cells))


def _loaded(c: Context, op: Op, mask: Sequence[Cell] | None, width: int) -> list[Cell]:
    pointer, kind = op.operands[0], element_of(op.results[0].type)
    layout = c.layout(pointer) if isinstance(pointer.type, TensorType) else None
    other = _mask(c, op, 2) if mask is not None or layout is not None else None
    pointers = c.tile(pointer)
    cells: list[Cell] = []
    for r in range(0, len(pointers), width):
        predicate = _predicate(c, layout, r, mask)
        others = other[r : r + width] if other is not None else None
        texts = c.machine.load(c.w, pointers[r], kind, width, predicate, others, op)
        cells += [c.from_memory(text, kind) for text in texts]
    return cells


def store(c: Context, op: Op) -> None:
    """One of several replicas stores; a scalar is stored by the first thread. Masks are treated as by ``load``."""
    pointer = op.operands[0]
    mask = _mask(c, op, 2)
    width = access_width(c, pointer, op.operands[2] if mask is not None else None)
    wide = _full_width(c, pointer, op.operands[2] if mask is not None else None, width)
    full = _all_of(c, mask) if mask is not None and wide > width else None
    if full is None:
        _stored(c, op, mask, width)
        return
    w = c.w
    yes, no, done = w.new_label("store.full"), w.new_label("store.part"), w.new_label("store.end")
    w.cond_br(full, yes, no)
    for label, inside, count in ((yes, None, wide), (no, mask, width)):
        w.label(label)
        _stored(c, op, inside, count)
        w.br(done)
    w.label(done)


def _stored(c: Context, op: Op, mask: Sequence[Cell] | None, width: int) -> None:
    pointer, value = op.operands[:2]
    layout = c.layout(pointer) if isinstance(pointer.type, TensorType) else None
    owner = c.is_first_replica(layout) if layout is not None else c.first_thread()
    pointers, values = c.tile(pointer), c.tile(value)
    for r in range(0, len(pointers), width):
        predicate = c.both(owner, _predicate(c, layout, r, mask))
        c.machine.store(c.w, pointers[r], values[r : r + width], predicate, op)


def atomic(c: Context, op: Op) -> None:
    """Atomics act once for each element: one of several replicas acts, and tells the others the old value if it is
    used."""
    pointer, result = op.operands[0], op.results[0]
    is_tensor = isinstance(pointer.type, TensorType)
    layout = c.layout(pointer) if is_tensor else None
    values = [c.tile(v) for v in op.operands[1 : 2 if op.kind == "atomic_rmw" else 3]]
    mask = _mask(c, op, 2) if op.kind == "atomic_rmw" else None
    owner = c.is_first_replica(layout) if layout is not None else c.first_thread()
    cells = []
    for r, at in enumerate(c.tile(pointer)):
        predicate = c.both(owner, _predicate(c, layout, r, mask))
        cells.append(c.machine.atomic(c.w, op, at, [v[r] for v in values], predicate))
    if result in c.used and owner is not None:
        cells = told(c, cells, layout, owner)
    c.set(result, cells)


def poll(c: Context, op: Op) -> None:
    """The first thread looks until it sees the value and tells the others; what they do next comes after that."""
    w, owner = c.w, c.first_thread()
    pointer, expected, *timeout = (c.scalar(v) for v in op.operands)
    before = w.block
    with w.branch(owner, "poll"):
        seen = w.emit(f"zext i1 {c.machine.poll(w, op, pointer, expected, timeout[0] if timeout else None)} to i32")
        inside = w.block
    found = w.emit(f"phi i32 [ {seen}, %{inside} ], [ 0, %{before} ]")
    (told_cell,) = told(c, [Cell(found, i32)], None, owner)
    c.set(op.results[0], [Cell(w.emit(f"icmp ne i32 {told_cell.text}, 0"), i1)])


def told(c: Context, cells: Sequence[Cell], layout: LinearLayout | None, owner: str) -> list[Cell]:
    """The owners' cells, brought to the replicas through shared memory. Each block of a cluster has replicas of all
    that it does not own."""
    kind = cells[0].element
    width = memory_bytes(kind)
    elements = 1 << layout.total_bits if layout is not None else 1
    c.scratch_write(elements * width)

    def place(r: int) -> str:
        index = c.index(layout, r) if layout is not None else "0"
        return c.shared_at(c.w.emit(f"mul nuw nsw i32 {index}, {width}"))

    with c.w.branch(owner, "owner"):
        for r, cell in enumerate(cells):
            c.put_shared(place(r), [cell])
    c.scratch_ready()
    return [c.get_shared(place(r), kind, 1)[0] for r in range(len(cells))]


# Ordering ------------------------------------------------------------------------------------------------------------


# Ops on global memory and which operand is the pointer; those that only read; those that may touch any memory.
_GLOBAL = {
    "load": 0, "store": 0, "atomic_rmw": 0, "atomic_cas": 0, "atomic_poll": 0, "desc_load": 0, "desc_store": 0,
    "async_copy": 2, "box_load": 4, "box_copy": 2, "box_store": 2,
}  # fmt: skip
_READS = frozenset({"load", "desc_load", "async_copy", "box_load", "box_copy"})
_UNKNOWN = frozenset({"call", "extern", "inline_asm"})
_SYNCHRONISING = frozenset({"atomic_rmw", "atomic_cas", "atomic_poll"})
Accesses = dict[Value | None, set[Value | None]]


def _touches_global(op: Op) -> bool:
    return op.kind in _GLOBAL or (op.kind in _UNKNOWN and has_effect(op, "write"))


def _orders(op: Op, *orders: str) -> bool:
    """Whether an atomic on a scalar, such as a flag or a lock, has one of these memory orders. One thread does it."""
    if op.kind not in _SYNCHRONISING or isinstance(op.operands[0].type, TensorType):
        return False
    return OPS[op.kind].attr(op, "sem") in orders


class Ordering:
    """Inserts barriers between accesses of different threads of the program to what may be the same global memory.

    Within a program every load sees all stores before it and none after it. Threads run apart, so a barrier is needed
    between a write and a later access of the same memory, and between a read and a later write of it, unless each
    thread touches only its own elements: the same pointer value in the same layout. Pointers that come from different
    kernel parameters are taken not to overlap. Scalar atomics that release come after, and those that acquire before,
    what every thread of the program does on the other side, wherever in memory.
    """

    def __init__(self, c: Context) -> None:
        self.c = c
        self.reads: Accesses = {}
        self.writes: Accesses = {}
        self.stores_boxes = any(op.kind == "box_store" for op in c.function.body.walk())

    def before(self, op: Op) -> None:
        """Called before each op is emitted. Shared memory has barriers of its own."""
        if not _touches_global(op):
            return
        pointer, base, writes = self.access(op)
        clash = self.clash(self.writes, base, pointer) or (writes and self.clash(self.reads, base, pointer))
        if clash or (_orders(op, "release", "acq_rel") and (self.reads or self.writes)):
            if self.stores_boxes:
                self.c.machine.boxes.written(self.c.w)
            if op.kind in ("box_load", "box_store"):
                self.c.machine.boxes.follow(self.c.w)
            self.c.barrier()
            self.clear()
        self.done(op)

    def access(self, op: Op) -> tuple[Value | None, Value | None, bool]:
        """The op's pointer, the parameter it comes from, and whether it writes."""
        place = _GLOBAL.get(op.kind)
        pointer = op.operands[place] if place is not None else None
        return pointer, self.base(pointer), op.kind not in _READS

    def done(self, op: Op) -> None:
        """What later ops must know."""
        pointer, base, writes = self.access(op)
        self.note(pointer, None if _orders(op, "acquire", "acq_rel") else base, writes)

    def note(self, pointer: Value | None, base: Value | None, writes: bool) -> None:
        (self.writes if writes else self.reads).setdefault(base, set()).add(pointer)

    def enter_loop(self, op: Op) -> None:
        """What the trip before may have done comes before everything in a loop's body."""
        for region in op.regions:
            for inner in region.walk():
                if _touches_global(inner):
                    self.done(inner)

    def snapshot(self) -> tuple[Accesses, Accesses]:
        return ({k: set(v) for k, v in self.reads.items()}, {k: set(v) for k, v in self.writes.items()})

    def restore(self, state: tuple[Accesses, Accesses]) -> None:
        self.reads, self.writes = state

    def merge(self, state: tuple[Accesses, Accesses]) -> None:
        """Another way leads here too, on which this had happened without a barrier since."""
        for mine, theirs in zip((self.reads, self.writes), state, strict=True):
            for base, pointers in theirs.items():
                mine.setdefault(base, set()).update(pointers)

    def clear(self) -> None:
        self.reads.clear()
        self.writes.clear()

    def clash(self, known: Accesses, base: Value | None, pointer: Value | None) -> bool:
        for other, pointers in known.items():
            if (other is base or other is None or base is None) and (
                pointers != {pointer} or not self.injective(pointer)
            ):
                return True
        return False

    def injective(self, pointer: Value | None) -> bool:
        """Whether every element is accessed by one thread only, so that its own program order suffices."""
        if pointer is None or not isinstance(pointer.type, TensorType):
            return False
        layout, facts = self.c.layout(pointer), self.c.facts.get(pointer)
        if facts is None or any(layout.free_mask.values()):
            return False
        return all(n == 1 or facts.contiguity[d] >= n for d, n in enumerate(layout.shape)) and len(layout.shape) == 1

    def base(self, pointer: Value | None) -> Value | None:
        """The kernel parameter a pointer comes from; None when it cannot be told."""
        return root(pointer, self.c.function.body, self.c.carried)
