"""State of one function while it is lowered: which cells hold which value, where this thread is, shared scratch memory.

A scalar is one cell, the same in every thread. A tensor is a list of cells, one for each register of its layout:
register r of thread (lane, warp) holds element ``layout(r, lane, warp)``. Padding elements hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...analysis import axis as axis_analysis
from ...analysis.rooms import Rooms
from ...ir.core import Block, Function, Module, Op, Value
from ...ir.types import ElementType, TensorType, element_of
from ...layouts.linear import LinearLayout, bit_positions
from ...passes.assign_layouts import layouts_of
from ..elementwise import emit_constant
from ..writer import Cell, FunctionWriter, Point, llvm_type
from .machine import SHARED_SPACE, Machine

if TYPE_CHECKING:
    from .memory import Ordering

SHARED = "@shared_scratch"
SHARED_POINTER = f"ptr addrspace({SHARED_SPACE})"
SCRATCH_SPREAD = 32 << 10
"""Up to this many bytes of scratch, a region of its own is preferred to waiting until an earlier one has been read."""


Spans = list[tuple[int, int]]


class Scratch:
    """Which bytes of scratch other threads may still be reading: a barrier is needed only when these must be written.

    After the barrier between an op's writes and its reads, every earlier op's reads are done, so ops in a row alternate
    between regions and need one barrier each instead of two.

    In a cluster an op may be ``wide``: all blocks write to and read from the scratch memory of all. Narrow reads are
    known to be done after a block's barrier in the block itself, in the other blocks only after the cluster's.
    """

    __slots__ = ("base", "begun", "chunk", "end", "far", "near", "since", "unknown", "unknown_far", "wide")

    def __init__(self) -> None:
        self.base = 0
        self.end = 0
        self.wide = False
        self.chunk = 0  # of a wide region: the bytes that lie in each block's memory
        self.near: Spans = []  # what threads of this block may be reading
        self.far: Spans = []  # what other blocks may be reading in this block's memory
        self.since: Spans = []  # what any block may be reading in its own
        self.unknown = False  # several ways led here: anything may be being read by this block
        self.unknown_far = False  # or by others
        self.begun = False  # all blocks of the cluster run

    def place(self, bytes: int, limit: int, blocks: int) -> str:
        """Finds ``bytes`` for the next op, of each block if ``blocks`` is 1, else of all together. Which barrier must
        come first: "" for none, "block", "cluster", or "any": the cluster's in a function that has wide ops."""
        self.wide = blocks > 1
        if self.wide:
            self.chunk = max(16, 1 << (-(-bytes // blocks) - 1).bit_length())
        size = self.chunk if self.wide else -(-bytes // 16) * 16
        busy = self.since + self.far if self.wide else self.near + self.far
        unknown = self.unknown_far or (not self.begun if self.wide else self.unknown)
        behind = max((end for _, end in busy), default=0)
        before = min((start for start, _ in busy), default=size)
        if not unknown and (size <= before or behind + size <= limit):
            self.base = 0 if size <= before else behind
            self.end = self.base + size
            return ""
        self.base, self.end = 0, size
        return "cluster" if self.wide or self.far else "any" if self.unknown_far else "block"

    def met(self, wide: bool) -> None:
        """A barrier of the block, or of the cluster, has been passed."""
        self.near, self.unknown = [], False
        if wide:
            self.far, self.since, self.unknown_far, self.begun = [], [], False, True

    def read(self) -> None:
        """The region found last is read from now on."""
        span = self.base, self.end
        if self.wide:
            self.far.append(span)
        else:
            self.near.append(span)
            self.since.append(span)


class Context:
    """One function being lowered."""

    def __init__(self, module: Module, function: Function, w: FunctionWriter, machine: Machine) -> None:
        self.module = module
        self.function = function
        self.w = w
        self.machine = machine
        self.layouts = layouts_of(module)
        self.facts = axis_analysis.analyse(function)
        self.cells: dict[Value, list[Cell]] = {}
        self.carried: dict[Value, Value] = {}  # loop-carried block argument -> its initial value
        self.rooms = Rooms(function)
        self.phases: dict[Value, str] = {}  # barriers -> where the parities of their next phases are kept
        self.descriptors: dict[Value, str] = {}  # descriptor -> padding
        self.memory: Ordering
        self.rules: Mapping[str, Callable[[Context, Op], None]] = {}
        self.scratch_start = 0  # behind the buffers that are in use
        self.shared_bytes = 0  # what buffers and scratch take at most
        self._scratch = Scratch()
        self.used: set[Value] = {v for op in function.body.walk() for v in op.operands}
        self.entry = w.point()
        self.blocks = machine.cluster.blocks if machine.cluster is not None else 1
        self._wide_used = False
        self._barriers: list[Point] = []  # the cluster's if wide ops are found
        self._threads: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}
        with w.at(self.entry):
            thread = machine.thread(w)
            if machine.cluster is not None:  # numbers count through all blocks of the cluster
                shift = (machine.lanes * machine.warps).bit_length() - 1
                thread = w.emit(f"or i32 {thread}, {w.emit(f'shl nuw nsw i32 {machine.cluster.rank(w)}, {shift}')}")
            self.thread = thread
            self.lane = w.emit(f"and i32 {thread}, {machine.lanes - 1}")
            self.warp = w.emit(f"lshr i32 {thread}, {machine.lanes.bit_length() - 1}")

    def lower(self, op: Op) -> None:
        """Emits one op: a rule for each kind, see ``lower.py``."""
        end = self.rooms.begins.get(op)
        if end is not None:
            self.begin_buffer(op, end)
        self.memory.before(op)
        self.rules[op.kind](self, op)
        end = self.rooms.ends.get(op)
        if end is not None:
            self.move_scratch(end)

    def begin_buffer(self, op: Op, end: int) -> None:
        """The buffer may lie where scratch or another one was or, within a loop, where threads still read what the turn
        before put there."""
        if op in self.rooms.nested:
            self.barrier()
        else:
            self.settle()
        self.move_scratch(end)

    def move_scratch(self, start: int) -> None:
        """Scratch begins elsewhere from now on: what is there may still be in use by other threads."""
        self.scratch_start = start
        self.shared_bytes = max(self.shared_bytes, start)
        self.enter_region()

    def settle(self) -> None:
        """A barrier, unless no thread can be reading scratch."""
        scratch = self._scratch
        if scratch.unknown or scratch.unknown_far or scratch.near or scratch.far:
            self._meet("cluster" if scratch.far else "any")

    def leave(self) -> None:
        """The function's end. A block's shared memory must last until the other blocks have read it."""
        cluster = self.machine.cluster
        if cluster is None:
            return
        if self._wide_used and (self._scratch.unknown_far or self._scratch.far):
            self.barrier()
        for point in self._barriers:
            with self.w.at(point):
                (cluster if self._wide_used else self.machine).barrier(self.w)

    def enter_region(self) -> None:
        """A block that several ways lead to: what other threads did on the way here is not known."""
        self._scratch.unknown = self._scratch.unknown_far = True

    # Values

    def constant(self, element: ElementType, value: bool | int | float) -> Cell:
        return emit_constant(element, value)

    def scalar(self, value: Value) -> Cell:
        (cell,) = self.cells[value]
        return cell

    def tile(self, value: Value) -> list[Cell]:
        return self.cells[value]

    def set(self, value: Value, cells: Sequence[Cell]) -> None:
        self.cells[value] = list(cells)

    def layout(self, value: Value) -> LinearLayout:
        assert isinstance(value.type, TensorType) and value.type.layout is not None, value
        return self.layouts[value.type.layout]

    def within_block(self, op: Op) -> Op:
        """``op`` as each block of a cluster does it with its parts of the tiles."""
        if self.blocks == 1:
            return op
        results = [self._part(v) for v in op.results]
        part = Op(op.kind, [self._part(v) for v in op.operands], [v.type for v in results], op.attrs, (), op.loc)
        return part

    def own(self, layout: LinearLayout) -> LinearLayout:
        """The layout of the part of a tile that a block holds."""
        if self.blocks == 1:
            return layout
        part = layout.within_block()
        assert part is not None, f"{layout} is not shared out to blocks by bits of its index"
        return part

    def _part(self, value: Value) -> Value:
        """The part of ``value`` that a block holds, as a value of its own."""
        if not isinstance(value.type, TensorType):
            return value
        layout = self.own(self.layout(value))
        name = f"{value.type.layout}.block"
        self.layouts[name] = layout
        part = Value(TensorType(layout.shape, value.type.element, name), Block(), 0)
        if value in self.cells:
            self.cells[part] = self.cells[value]
        return part

    def registers(self, value: Value) -> int:
        return self.layout(value).registers if isinstance(value.type, TensorType) else 1

    # Where this thread is

    def thread_part(self, lane: Sequence[int], outer: Sequence[int]) -> str:
        """XOR of the vectors of this thread's set lane and warp bits (blocks follow warps), an i32 computed once at the
        function's entry."""
        key = (tuple(lane), tuple(outer))
        found = self._threads.get(key)
        if found is None:
            with self.w.at(self.entry):
                parts = [*self._runs(self.lane, lane), *self._runs(self.warp, outer)]
                found = parts[0] if parts else "0"
                for part in parts[1:]:
                    found = self.w.emit(f"xor i32 {found}, {part}")
            self._threads[key] = found
        return found

    def _runs(self, number: str, vectors: Sequence[int]) -> list[str]:
        """One term for each run of bits whose vectors are shifts of each other."""
        terms, start = [], 0
        while start < len(vectors):
            end = start + 1
            while end < len(vectors) and vectors[end] == vectors[start] << (end - start) and vectors[start]:
                end += 1
            vector = vectors[start]
            if vector:
                w = self.w
                picked = w.emit(f"lshr i32 {number}, {start}") if start else number
                picked = w.emit(f"and i32 {picked}, {(1 << end - start) - 1}")
                for bit in range(vector.bit_length()):
                    if vector >> bit & 1:
                        terms.append(w.emit(f"shl nuw nsw i32 {picked}, {bit}") if bit else picked)
            start = end
        return terms

    def index(self, layout: LinearLayout, register: int) -> str:
        """The padded index of the element in ``register``, an i32 operand."""
        part = self.thread_part(layout.lane, layout.outer)
        return self._combine(part, layout(register), (*layout.lane, *layout.outer))

    def coordinate(self, layout: LinearLayout, axis: int, register: int) -> str:
        """The element's coordinate along ``axis``, an i32 operand."""
        lane, outer = layout.axis_vectors(axis, "lane"), layout.axis_vectors(axis, "outer")
        bits = bit_positions(layout.shape)[axis]
        mine = layout(register) >> (bits[0] if bits else 0) & (1 << len(bits)) - 1
        return self._combine(self.thread_part(lane, outer), mine, (*lane, *outer))

    def _combine(self, thread: str, register: int, vectors: Sequence[int]) -> str:
        if thread == "0":
            return str(register)
        if register == 0:
            return thread
        overlap = any(v & register for v in vectors)
        return self.w.emit(f"xor i32 {thread}, {register}" if overlap else f"add nuw nsw i32 {thread}, {register}")

    def in_range(self, layout: LinearLayout, register: int) -> str | None:
        """An i1 operand: the element is not padding. None when none can be."""
        found: str | None = None
        for axis, size in enumerate(layout.shape):
            if size & size - 1:
                at = self.coordinate(layout, axis, register)
                found = self.both(found, self.w.emit(f"icmp ult i32 {at}, {size}"))
        return found

    def is_first_replica(self, layout: LinearLayout) -> str | None:
        """An i1 operand: of the threads that hold the same elements this is the first. None when there are no
        replicas."""
        found: str | None = None
        for number, name in ((self.lane, "lane"), (self.warp, "outer")):
            mask = layout.free_mask[name]
            if mask:
                with self.w.at(self.entry):
                    bits = self.w.emit(f"and i32 {number}, {mask}")
                    test = self.w.emit(f"icmp eq i32 {bits}, 0")
                found = self.both(found, test)
        return found

    def first_thread(self) -> str:
        with self.w.at(self.entry):
            return self.w.emit(f"icmp eq i32 {self.thread}, 0")

    def first_warp(self) -> str:
        with self.w.at(self.entry):
            return self.w.emit(f"icmp eq i32 {self.warp}, 0")

    def both(self, a: str | None, b: str | None) -> str | None:
        """Conjunction of predicates; None means always."""
        if a is None or b is None:
            return b if a is None else a
        return self.w.emit(f"and i1 {a}, {b}")

    # Shared scratch memory: an op writes a region, all threads meet, the op reads it

    def scratch_write(self, bytes: int, wide: bool = True) -> None:
        """Announces writes of ``bytes`` to scratch; until the next call ``shared_at`` counts from the region found for
        them. ``wide``: the threads that read may be of other blocks than those that write; all blocks share one region,
        which lies in parts in their memories. Else each block has one of its own."""
        barrier = self._scratch.place(bytes, SCRATCH_SPREAD, self.blocks if wide else 1)
        if barrier:
            self._meet(barrier)
        self._wide_used |= self._scratch.wide
        self.shared_bytes = max(self.shared_bytes, self.scratch_start + self._scratch.end)

    def scratch_written(self) -> None:
        """What was written is about to be changed by other threads."""
        self._meet("cluster" if self._scratch.wide else "block")

    def scratch_ready(self) -> None:
        """What was written is about to be read."""
        self._meet("cluster" if self._scratch.wide else "block")
        self._scratch.read()

    def barrier(self) -> None:
        """All threads of the program meet: whatever was read before has been read by all."""
        self._meet("cluster")

    def block_barrier(self) -> None:
        """All threads of the block meet."""
        self._meet("block")

    def _meet(self, barrier: str) -> None:
        cluster = self.machine.cluster
        if cluster is None or barrier == "block":
            self.machine.barrier(self.w)
        elif barrier == "cluster":
            cluster.barrier(self.w)
        else:
            self._barriers.append(self.w.point())
        self._scratch.met(cluster is None or barrier != "block")

    def shared_at(self, offset: str, base: int = 0) -> str:
        """A pointer (with its type) into the current region at the byte offset (i32 operand)."""
        w, scratch, cluster = self.w, self._scratch, self.machine.cluster
        rank = ""
        if scratch.wide:
            assert cluster is not None
            if base:
                offset, base = w.emit(f"add nuw nsw i32 {offset}, {base}"), 0
            rank = w.emit(f"lshr i32 {offset}, {scratch.chunk.bit_length() - 1}")
            offset = w.emit(f"and i32 {offset}, {scratch.chunk - 1}")
        base += scratch.base + self.scratch_start
        if base:
            offset = w.emit(f"add nuw nsw i32 {offset}, {base}")
        pointer = w.emit(f"getelementptr inbounds i8, {SHARED_POINTER} {SHARED}, i32 {offset}")
        if scratch.wide:
            assert cluster is not None
            return f"ptr {cluster.remote(w, pointer, rank)}"
        return f"{SHARED_POINTER} {pointer}"

    def put_shared(self, pointer: str, cells: Sequence[Cell]) -> None:
        """Stores cells to consecutive elements of shared memory (``pointer`` has its type), as one access."""
        w, element = self.w, cells[0].element
        type = llvm_type(element, 0, memory=True)
        texts = [self.to_memory(c) for c in cells]
        if len(texts) > 1:
            vector = "poison"
            full = f"<{len(texts)} x {type}>"
            for i, text in enumerate(texts):
                vector = w.emit(f"insertelement {full} {vector}, {type} {text}, i32 {i}")
            align = memory_bytes(element) * len(texts)
            w.line(f"store {full} {vector}, {pointer}, align {align}")
        else:
            w.line(f"store {type} {texts[0]}, {pointer}, align {memory_bytes(element)}")

    def get_shared(self, pointer: str, element: ElementType, count: int) -> list[Cell]:
        """Loads ``count`` consecutive elements of shared memory (``pointer`` has its type), as one access."""
        w = self.w
        type = llvm_type(element, 0, memory=True)
        full = f"<{count} x {type}>" if count > 1 else type
        align = memory_bytes(element) * count
        loaded = w.emit(f"load {full}, {pointer}, align {align}{w.shared_note}")
        if count == 1:
            return [self.from_memory(loaded, element)]
        return [self.from_memory(w.emit(f"extractelement {full} {loaded}, i32 {i}"), element) for i in range(count)]

    def to_memory(self, cell: Cell) -> str:
        """The operand in its memory type: booleans are bytes."""
        return self.w.emit(f"zext i1 {cell.text} to i8") if _is_bool(cell.element) else cell.text

    def from_memory(self, text: str, element: ElementType) -> Cell:
        return Cell(self.w.emit(f"icmp ne i8 {text}, 0") if _is_bool(element) else text, element)

    # Lanes

    def shuffle(self, kind: str, cell: Cell, amount: str) -> Cell:
        """A cell of any type from another lane, in pieces of 32 bits."""
        w = self.w
        bits = 8 if _is_bool(cell.element) else cell.element.bits
        text = self.to_memory(cell)
        type = llvm_type(cell.element, 0, memory=True)
        integer = f"i{bits}"
        if type.startswith("ptr"):
            text = w.emit(f"ptrtoint {type} {text} to i64")
        elif type != integer:
            text = w.emit(f"bitcast {type} {text} to {integer}")
        if bits <= 32:
            wide = text if bits == 32 else w.emit(f"zext {integer} {text} to i32")
            moved = self.machine.shuffle(w, kind, wide, amount)
            back = moved if bits == 32 else w.emit(f"trunc i32 {moved} to {integer}")
        else:
            low = self.machine.shuffle(w, kind, w.emit(f"trunc i64 {text} to i32"), amount)
            upper = w.emit(f"lshr i64 {text}, 32")
            high = self.machine.shuffle(w, kind, w.emit(f"trunc i64 {upper} to i32"), amount)
            high = w.emit(f"shl i64 {w.emit(f'zext i32 {high} to i64')}, 32")
            back = w.emit(f"or i64 {w.emit(f'zext i32 {low} to i64')}, {high}")
        if type.startswith("ptr"):
            back = w.emit(f"inttoptr i64 {back} to {type}")
        elif type != integer:
            back = w.emit(f"bitcast {integer} {back} to {type}")
        return self.from_memory(back, cell.element)

    def choose(self, condition: str, yes: Cell, no: Cell) -> Cell:
        """``select`` on one cell."""
        if yes.text == no.text:
            return yes
        return Cell(self.w.emit(f"select i1 {condition}, {yes.typed}, {no.typed}"), yes.element)

    def reason(self, op: Op) -> str:
        """Where ``op`` stands in the user's source, for messages."""
        return f"{op.kind} at {op.loc}" if op.loc is not None else op.kind


def memory_bytes(element: ElementType) -> int:
    """Bytes of one element in memory."""
    return max(1, element.bits // 8)


def _is_bool(element: ElementType) -> bool:
    return element.is_bool


def element(value: Value) -> ElementType:
    return element_of(value.type)
