"""Fetches ahead: while one trip of a loop computes, the caches get what the next one reads.

    trip r:    sum over row r          + prefetch row r + 1
               more passes               row r comes from the cache; without prefetches memory would be idle
               store to row r          + prefetch row r + 1 of the result, to be written

Only where a trip passes several times over its data: processors see by themselves that a single pass goes on, and they
begin the next program of a grid before the last one has ended. Prefetches have no effect but time, so that it does not
matter when the guess is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from ...ir.core import Block, Op, Value
from ...ir.types import ElementType, PointerType, TensorType, element_of, shape_of
from ..writer import Cell
from .buffers import bytes_of

if TYPE_CHECKING:
    from .emit import FunctionEmitter

_LARGEST = 256 << 10
"""Bytes of a tile that is fetched ahead: the caches hold this one and the next."""

_LINE = 64
_DEEPEST = 100
"""Longer chains of arithmetic are not followed."""

_PASSES = frozenset({"reduce", "scan"})
_FORWARD = frozenset({"addptr", "splat", "broadcast", "expand_dims", "hint"})
_SAME = frozenset({"splat", "broadcast", "expand_dims", "hint", "reshape", "permute", "cast"})


class Ahead:
    """What one function fetches ahead. Each piece of memory is fetched in the first loop that reads it, or writes it
    if none does."""

    def __init__(self, f: FunctionEmitter) -> None:
        self.f = f
        self.distances: dict[Value, tuple[int, str]] = {}  # of pointers: when the loop nest was begun, and bytes
        self.first: dict[Value, Op] = {}

    def vector(self, op: Op, address: str, lanes: int, level: int, write: bool) -> None:
        """``op`` reads or writes ``lanes`` elements from ``address`` on, which is known at that loop level."""
        e, pointer = self.f.e, op.operands[0]
        distance = self._distance(op, pointer)
        if not distance:
            return
        w = e.w
        name = w.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32 immarg", "i32 immarg", "i32 immarg"])
        there = e.emit(level, f"getelementptr i8, ptr {address}, i64 {distance}")
        for line in range(0, lanes * bytes_of(_pointee(pointer)), _LINE):
            place = e.emit(level, f"getelementptr i8, ptr {there}, i64 {line}") if line else there
            e.line(level, f"call void {name}(ptr {place}, i32 {int(write)}, i32 2, i32 1)")

    def _distance(self, op: Op, pointer: Value) -> str:
        """How far away the same element of the next trip is; empty if it is not to be fetched."""
        now = self.f.e.epoch
        if pointer not in self.distances or self.distances[pointer][0] != now:
            again = pointer in self.distances  # another loop nest has done it
            self.distances[pointer] = now, "" if again else self.f.e.at_start(lambda: self._find(op, pointer))
        return self.distances[pointer][1]

    def _find(self, op: Op, pointer: Value) -> str:
        f, block = self.f, self.f.graph.block[op]
        if self.first.setdefault(_memory(pointer), op) is not op or _bytes(pointer) > _LARGEST:
            return ""
        around = _repeated(f, block)
        if around is None:
            return ""
        slopes = _Slopes(f, around)
        slope = slopes.of(pointer)
        if slope is None or slope == 0:
            return ""
        bytes = slopes.times(slope, bytes_of(_pointee(pointer)))
        return f.w.emit(f"select i1 {_goes_on(f, around)}, i64 {bytes}, i64 0")


def _pointee(pointer: Value) -> ElementType:
    element = element_of(pointer.type)
    assert isinstance(element, PointerType)
    return element.pointee


def _bytes(pointer: Value) -> int:
    return prod(shape_of(pointer.type)) * bytes_of(_pointee(pointer))


def _memory(pointer: Value) -> Value:
    """What stands for a piece of memory: the scalar pointer to which a tile's offsets are added, if it moves."""
    value = pointer
    while isinstance(value.type, TensorType) and value.op is not None and value.op.kind in _FORWARD:
        value = value.op.operands[0]
    return value if not isinstance(value.type, TensorType) and value.op is not None else pointer


def _repeated(f: FunctionEmitter, block: Block) -> Op | None:
    """The innermost loop that passes over its data several times."""
    while True:
        parent = f.graph.parent[block]
        if parent is None or parent.kind not in ("for", "if"):
            return None
        if parent.kind == "for" and any(op.kind in _PASSES for op in block.ops) and _stores_tiles(block):
            return parent
        block = f.graph.block[parent]


def _stores_tiles(block: Block) -> bool:
    return any(op.kind == "store" and shape_of(op.operands[0].type) for op in block.walk())


def _goes_on(f: FunctionEmitter, around: Op) -> str:
    """Whether another trip follows."""
    high, step = f.scalars[around.operands[1]], f.scalars[around.operands[2]]
    counter = f.scalars[around.regions[0].args[0]]
    following = f.w.emit(f"add {counter.type} {counter.text}, {step.text}")
    return f.w.emit(f"icmp {'slt' if counter.element.is_signed else 'ult'} {counter.type} {following}, {high.text}")


Slope = int | str | None
"""By how much a value grows with the variable, in every element: a number, an i64 operand, None for unknown."""


class _Slopes:
    def __init__(self, f: FunctionEmitter, around: Op) -> None:
        self.f = f
        self.around = around
        self.depth = 0
        self.known: dict[Value, Slope] = {around.regions[0].args[0]: self._wide(f.scalars[around.operands[2]])}

    def of(self, value: Value) -> Slope:
        if value not in self.known:
            if self.depth > _DEEPEST:
                return None
            self.depth += 1
            self.known[value] = self._find(value)
            self.depth -= 1
        return self.known[value]

    def _find(self, value: Value) -> Slope:
        op, graph = value.op, self.f.graph
        record = graph.inductions.get(value)
        if record is not None:
            return self.of(record.init) if record.loop is not self.around else self._growth(record.offsets)
        if op is None:
            parent = graph.parent.get(value.owner) if isinstance(value.owner, Block) else None
            if parent is None:
                return 0
            return self.of(parent.operands[0]) if parent.kind == "for" and value.index == 0 else None
        if op.kind in _SAME and not (op.kind == "cast" and element_of(value.type).is_float):
            return self.of(op.operands[0])
        slopes = [self.of(v) for v in op.operands]
        if all(s == 0 for s in slopes):
            return 0
        if op.kind in ("addptr", "add", "sub"):
            a, b = slopes
            if a is None or b is None:
                return None
            return self.plus(a, self.times(b, -1) if op.kind == "sub" else b)
        if op.kind == "mul":
            for slope, other, flat in ((slopes[0], op.operands[1], slopes[1]), (slopes[1], op.operands[0], slopes[0])):
                factor = self._number(other)
                if slope is not None and flat == 0 and factor is not None:
                    return self.times(slope, factor)
        return None

    def _growth(self, offsets: Sequence[tuple[Value, int]]) -> Slope:
        """What a carried pointer is moved by in each trip."""
        total: int | str = 0
        for offset, sign in offsets:
            number = self._number(offset)
            if number is None:
                return None
            total = self.plus(total, self.times(number, sign))
        return total

    def _number(self, value: Value) -> int | str | None:
        """A factor that is the same everywhere, as i64."""
        op = value.op
        while op is not None and op.kind in ("splat", "broadcast", "expand_dims", "hint"):
            value = op.operands[0]
            op = value.op
        if op is not None and op.kind == "constant":
            number = op.attrs["value"]
            return number if isinstance(number, int) else None
        if isinstance(value.type, TensorType) or value not in self.f.scalars:
            return None
        return self._wide(self.f.scalars[value])

    def _wide(self, cell: Cell) -> int | str:
        if cell.text.lstrip("-").isdigit():
            return int(cell.text)
        if cell.element.bits == 64:
            return cell.text
        return self.f.w.emit(f"{'sext' if cell.element.is_signed else 'zext'} {cell.typed} to i64")

    def plus(self, a: int | str, b: int | str) -> int | str:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.f.w.emit(f"add i64 {a}, {b}")

    def times(self, a: int | str, b: int | str) -> int | str:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        return 0 if a == 0 or b == 0 else self.f.w.emit(f"mul i64 {a}, {b}")
