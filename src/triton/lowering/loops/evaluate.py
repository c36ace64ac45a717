"""Computes elements of lazy values inside a loop nest.

``Evaluator.cell(value, index)`` gives the element of ``value`` at ``index``, or a vector of them when the index has
lanes, and writes
the instructions for it at the outermost loop level where their inputs exist. Everything is computed once for each
index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ...ir.core import Op, Value
from ...ir.ops import OPS
from ...ir.types import ElementType, PointerType, TensorType, element_of, f32, i32, i64, shape_of
from .. import elementwise
from ..writer import Cell, FunctionWriter, Point, float_text, llvm_type, scalar_type, splat
from . import access
from .buffers import Buffer
from .graph import Graph, Stride
from .index import ZERO, Dim, Index, aligned, fixed, iota, is_scalar, strides_of
from .plan import Plan

Found = tuple[Cell, int]
"""A cell and the loop level at which it exists."""


class Evaluator:
    """The state of the loop nest that is being written.

    ``points[k]`` is the place before the loop of depth k + 1; ``lanes`` the vector length; ``active`` the mask of a
    last partial vector (None: all lanes count) and ``count`` how many lanes that is.
    """

    def __init__(self, w: FunctionWriter, plan: Plan, scalars: dict[Value, Cell], buffers: dict[Value, Buffer]) -> None:
        self.w = w
        self.plan = plan
        self.graph: Graph = plan.graph
        self.machine = plan.machine
        self.scalars = scalars
        self.buffers = buffers
        self.deltas: dict[Value, Cell] = {}
        self.descriptors: dict[Value, access.Descriptor] = {}
        self.points: list[Point] = []
        self.lanes = 0
        self.active: str | None = None
        self.count = 0
        self.memo: dict[object, Found] = {}
        self.keys: list[list[object]] = [[]]
        self._dummy = ""
        self.epoch = 0  # which loop nest this is
        self.streaming = False  # stores go past the caches
        self.ahead: Callable[[Op, str, int, int, bool], None] = lambda op, address, lanes, level, write: None

    # Loop levels

    @property
    def depth(self) -> int:
        return len(self.points)

    def open(self) -> None:
        """The next loop is about to be written."""
        self.points.append(self.w.point())
        self.keys.append([])

    def close(self) -> None:
        """The innermost loop has ended: what was computed in it is out of reach."""
        self.points.pop()
        for key in self.keys.pop():
            self.memo.pop(key, None)

    def at_start(self, write: Callable[[], str]) -> str:
        """Runs ``write`` in front of the loop nest that is being written."""
        if not self.points:
            return write()
        with self.w.at(self.points[0]):
            return write()

    def reset(self) -> None:
        """Forgets everything: memory may change from here on."""
        assert not self.points
        self.epoch += 1
        self.memo.clear()
        self.keys = [[]]

    def mark(self) -> list[int]:
        return [len(keys) for keys in self.keys]

    def forget(self, mark: list[int]) -> None:
        """Drops what was computed since ``mark``: the number of lanes changes, and positions alone do not tell."""
        for keys, size in zip(self.keys, mark, strict=True):
            for key in keys[size:]:
                self.memo.pop(key, None)
            del keys[size:]

    def seed(self, key: tuple[Value, Index], cell: Cell) -> None:
        """What is known inside the innermost loop and not outside of it."""
        self.memo[key] = cell, self.depth
        self.keys[-1].append(key)

    def remember(self, key: object, found: Found) -> Found:
        self.memo[key] = found
        self.keys[found[1]].append(key)
        return found

    def at(self, level: int, write: Callable[[], Cell]) -> Cell:
        """Runs ``write`` at a loop level."""
        if level == len(self.points):
            return write()
        with self.w.at(self.points[level]):
            return write()

    def emit(self, level: int, rhs: str) -> str:
        if level == len(self.points):
            return self.w.emit(rhs)
        with self.w.at(self.points[level]):
            return self.w.emit(rhs)

    def line(self, level: int, text: str) -> None:
        """An instruction without a result, at a loop level."""
        if level == len(self.points):
            self.w.line(text)
            return
        with self.w.at(self.points[level]):
            self.w.line(text)

    def emit_once(self, level: int, rhs: str) -> str:
        """``emit``, or the value of an equal instruction written before."""
        found = self.memo.get(rhs)
        if found is None:
            found = self.remember(rhs, (Cell(self.emit(level, rhs), i64), level))
        return found[0].text

    def splat(self, cell: Cell, level: int) -> Cell:
        """``cell`` in all lanes, once."""
        if cell.lanes or not self.lanes:
            return cell
        if not cell.text.startswith("%"):
            return splat(self.w, cell, self.lanes)
        key = ("splat", cell.text, self.lanes)
        found = self.memo.get(key)
        if found is None:
            found = self.remember(key, (self.at(level, lambda: splat(self.w, cell, self.lanes)), level))
        return found[0]

    # Positions

    def add(self, a: Dim, b: Dim) -> Dim:
        """Sum of two scalar positions."""
        if a.const is not None and b.const is not None:
            return fixed(a.const + b.const)
        if a.const == 0:
            return b
        if b.const == 0:
            return a
        if a.level < b.level:
            a, b = b, a
        level = a.level
        return Dim(self.emit_once(level, f"add nsw i64 {a.text}, {b.text}"), level)

    def scale(self, a: Dim, factor: int) -> Dim:
        if a.const is not None:
            return fixed(a.const * factor)
        if factor == 1:
            return a
        if factor == 0:
            return ZERO
        text = self.emit_once(a.level, f"mul nsw i64 {a.text}, {factor}")
        return Dim(text, a.level, None, 0, abs(a.unit * factor))

    def linear(self, index: Index, strides: Sequence[int]) -> Dim:
        """The sum of index times strides. Outer loop levels are added up first, so that their sums stay outside inner
        loops."""
        step = 0
        scalars: list[Dim] = []
        vector: str | None = None
        vector_level = 0
        for d, s in zip(index, strides, strict=True):
            if s == 0:
                continue
            if d.vec is not None:
                term = d.vec
                if s != 1:
                    term = self.emit_once(d.level, f"mul <{self.lanes} x i64> {d.vec}, splat (i64 {s})")
                if vector is not None:
                    level = max(vector_level, d.level)
                    term = self.emit_once(level, f"add <{self.lanes} x i64> {vector}, {term}")
                vector, vector_level = term, max(vector_level, d.level)
                continue
            step += d.step * s
            scalars.append(self.scale(d.first(), s))
        total = ZERO
        unit = 0
        for d in sorted(scalars, key=lambda d: d.level):
            total = self.add(total, d)
            unit = _gcd(unit, d.const if d.const is not None else d.unit)
        if vector is None:
            return Dim(total.text, total.level, total.const, step, unit or 1)
        base = self.vector_of(Dim(total.text, total.level, total.const, step)) if step or total.const != 0 else None
        if base is not None:
            vector_level = max(vector_level, total.level)
            vector = self.emit_once(vector_level, f"add <{self.lanes} x i64> {vector}, {base}")
        return Dim("0", vector_level, None, 0, 1, vector)

    def vector_of(self, d: Dim) -> str:
        """All lanes of a position as a vector of i64."""
        if d.vec is not None:
            return d.vec
        base = self.splat(Cell(d.text, i64), d.level).text
        if not d.step:
            return base
        if d.const == 0:
            return iota(self.lanes, d.step)
        return self.emit_once(d.level, f"add <{self.lanes} x i64> {base}, {iota(self.lanes, d.step)}")

    def divide(self, d: Dim, n: int) -> tuple[Dim, Dim]:
        """Quotient and remainder of a position, which is not negative, by ``n``."""
        if n == 1:
            return d, ZERO
        if d.const is not None and d.is_scalar:
            return fixed(d.const // n), fixed(d.const % n)
        if d.is_scalar:
            q = self.emit_once(d.level, f"udiv i64 {d.text}, {n}")
            if d.unit % n == 0:
                return Dim(q, d.level, None, 0, d.unit // n), ZERO
            r = self.emit_once(d.level, f"urem i64 {d.text}, {n}")
            return Dim(q, d.level), Dim(r, d.level, None, 0, _gcd(d.unit, n))
        if d.vec is None and d.step == 1:
            if n % self.lanes == 0 and aligned(d, self.lanes):  # the vector stays inside one row
                row, column = self.divide(d.first(), n)
                return row, column._replace(step=1)
            if d.const is not None and d.const % n + self.count <= n:
                return fixed(d.const // n), fixed(d.const % n, 1)
        vector = self.vector_of(d)
        q = self.emit_once(d.level, f"udiv <{self.lanes} x i64> {vector}, splat (i64 {n})")
        r = self.emit_once(d.level, f"urem <{self.lanes} x i64> {vector}, splat (i64 {n})")
        return Dim("0", d.level, None, 0, 1, q), Dim("0", d.level, None, 0, 1, r)

    def flip(self, d: Dim, n: int) -> Dim:
        """n - 1 - position."""
        if d.vec is not None:
            text = self.emit_once(d.level, f"sub <{self.lanes} x i64> splat (i64 {n - 1}), {d.vec}")
            return Dim("0", d.level, None, 0, 1, text)
        if d.const is not None:
            return fixed(n - 1 - d.const, -d.step)
        return Dim(self.emit_once(d.level, f"sub i64 {n - 1}, {d.text}"), d.level, None, -d.step)

    def reshape(self, index: Index, shape: tuple[int, ...], source: tuple[int, ...]) -> Index:
        """``index`` into ``shape`` as an index into ``source``, the same elements in row-major order."""
        kept = [d for d, n in zip(index, shape, strict=True) if n > 1]
        if [n for n in shape if n > 1] == [n for n in source if n > 1]:
            it = iter(kept)
            return tuple(next(it) if n > 1 else ZERO for n in source)
        result: list[Dim] = []
        at, axis = len(shape), len(source)
        while axis:  # equal products from the right split the problem into small ones
            hi_t, hi_s = at, axis
            axis -= 1
            product, want = source[axis], 1
            while want != product:
                if want < product:
                    at -= 1
                    want *= shape[at]
                else:
                    axis -= 1
                    product *= source[axis]
            if product == 1:
                result = [ZERO] * (hi_s - axis) + result
                continue
            result = [*self._regroup(index[at:hi_t], shape[at:hi_t], source[axis:hi_s]), *result]
        return tuple(result)

    def _regroup(self, index: Index, shape: tuple[int, ...], source: tuple[int, ...]) -> list[Dim]:
        if len(source) == 1 and len(shape) == 1:
            return [index[0]]
        rest = self.linear(index, strides_of(shape))
        result: list[Dim] = []
        for n in reversed(source[1:]):
            rest, d = self.divide(rest, n)
            result.insert(0, d)
        return [rest, *result]

    # Uniform values

    def fits(self, stride: Stride | None, d: Dim) -> bool:
        """Whether all lanes of ``d`` lie in one group of ``stride``."""
        if stride is None:
            return False
        group = stride.group
        if group == 0:
            return True
        if d.vec is not None or d.step != 1:
            return False
        if group % self.lanes == 0 and aligned(d, self.lanes):
            return True
        return d.const is not None and d.const % group + self.count <= group

    def step_of(self, value: Value, index: Index) -> int | None:
        """By how much ``value`` grows from lane to lane; None when the lanes are not in arithmetic order or that is
        not known."""
        total = 0
        for axis, d in enumerate(index):
            if d.step == 0 and d.vec is None:
                continue
            stride = self.graph.stride(value, axis)
            if stride is None or (stride.group and not self.fits(stride, d)) or (d.vec is not None and stride.step):
                return None
            total += stride.step * d.step
        return total

    def runs_of(self, value: Value, index: Index) -> int:
        """The length of the aligned runs of lanes in which ``value`` grows by 1; 0 when there is none shorter than a
        vector."""
        vectors = [(axis, d) for axis, d in enumerate(index) if not d.is_scalar]
        if len(vectors) != 1:
            return 0
        axis, d = vectors[0]
        stride = self.graph.stride(value, axis)
        if stride is None or stride.step != 1 or d.vec is not None or d.step != 1:
            return 0
        run = _gcd(stride.group, self.lanes)
        return run if run >= 4 and aligned(d, run) else 0

    def lane(self, index: Index, number: int) -> Index:
        """Where one lane stands; the vector axis must be in steps of 1."""
        return tuple(d if d.is_scalar else self.add(d.first(), fixed(number)) for d in index)

    def is_uniform(self, value: Value, index: Index) -> bool:
        """Whether ``index`` has lanes and all of them see the same element."""
        return not is_scalar(index) and self.step_of(value, index) == 0

    def first(self, index: Index) -> Index:
        """Where lane 0 stands."""
        return tuple(d if d.is_scalar else ZERO if d.vec is not None else d.first() for d in index)

    # Values

    def cell(self, value: Value, index: Index) -> Found:
        """The element(s) of ``value`` at ``index``: a vector only if they may differ from lane to lane."""
        if not isinstance(value.type, TensorType):
            return self.scalars[value], 0
        memo = self.memo
        key = (value, index)
        found = memo.get(key)
        if found is not None:
            return found
        varies = not is_scalar(index)
        work = [value]
        while work:  # operands at the same index first: no recursion along chains of elementwise ops
            current = work[-1]
            if (current, index) in memo:
                work.pop()
                continue
            if varies and self.step_of(current, index) == 0:
                work.pop()
                self.remember((current, index), self.cell(current, self.first(index)))
                continue
            op = current.op
            if op is not None and OPS[op.kind].elementwise and current not in self.buffers:
                missing = [v for v in op.operands if isinstance(v.type, TensorType) and (v, index) not in memo]
                if missing:
                    work += missing
                    continue
            work.pop()
            self.remember((current, index), self._compute(current, index))
        return memo[key]

    def vector(self, value: Value, index: Index) -> Found:
        """As ``cell``, with the same element in all lanes where it is one scalar (and the index has lanes)."""
        cell, level = self.cell(value, index)
        return self.splat(cell, level), level

    def _compute(self, value: Value, index: Index) -> Found:
        buffer = self.buffers.get(value)
        if buffer is not None:
            return access.read(self, buffer, index)
        record = self.graph.inductions.get(value)
        if record is not None:
            return self._induction(value, record.init, index)
        op = value.op
        assert op is not None, f"block argument {value!r} has no buffer"
        rule = _RULES.get(op.kind)
        if rule is not None:
            return rule(self, op, index)
        if op.kind == "split":
            return self.cell(op.operands[0], (*index, fixed(value.index)))
        return self._elementwise(op, value, index)

    def _induction(self, value: Value, init: Value, index: Index) -> Found:
        base, level = self.cell(init, index)
        delta = self.deltas[value]
        return self.at(level, lambda: move(self, base, delta)), level

    def _elementwise(self, op: Op, value: Value, index: Index) -> Found:
        found = [self.cell(v, index) for v in op.operands]
        level = max((f[1] for f in found), default=0)
        cells = [f[0] for f in found]
        known = _known(op, found)
        if known is not None:
            return known
        lanes = max((c.lanes for c in cells), default=0)
        if lanes and op.kind == "addptr" and not cells[0].lanes:
            return self.at(level, lambda: gather_pointers(self.w, cells[0], cells[1])), level
        if (
            op.kind == "div"
            and op.attrs.get("approx")
            and lanes >= 8
            and self.w.features.fma
            and not cells[1].lanes
            and cells[1].element == f32
        ):
            return self._scaled_by_reciprocal(cells[0], cells[1], found[1][1], level), level
        if lanes:
            keep = 1 if op.kind == "select" else 0
            cells = [
                c if c.lanes or (i < keep and not c.lanes) else self.splat(c, f[1])
                for i, (c, f) in enumerate(zip(cells, found, strict=True))
            ]
        if level == len(self.points):
            results = elementwise.emit_elementwise(self.w, op, cells, lanes)
        else:
            with self.w.at(self.points[level]):
                results = elementwise.emit_elementwise(self.w, op, cells, lanes)
        for other, cell in zip(op.results, results, strict=True):
            if other is not value and (other, index) not in self.memo:
                self.remember((other, index), (cell, level))
        return results[value.index], level

    def _scaled_by_reciprocal(self, x: Cell, divisor: Cell, divisor_level: int, level: int) -> Cell:
        """x / divisor as q = x * k * (1 / (divisor * k)) and then q + (x * k - q * divisor * k) * (1 / (divisor * k)),
        which is the rounded quotient where it is a normal number. The power of two k keeps the reciprocal of a very
        large or small divisor from being denormal or infinite."""
        key = ("reciprocal", divisor.text)
        if key not in self.memo:

            def write() -> Cell:
                w = self.w
                size = w.intrinsic("fabs", "float", 0, divisor.text)
                large = w.emit(f"fcmp ogt float {size}, {float_text(2.0**64)}")
                small = w.emit(f"fcmp olt float {size}, {float_text(2.0**-64)}")
                k = w.emit(f"select i1 {small}, float {float_text(2.0**64)}, float 1.0")
                k = w.emit(f"select i1 {large}, float {float_text(2.0**-64)}, float {k}")
                scaled = w.emit(f"fmul float {divisor.text}, {k}")
                self.remember(("scale", divisor.text), (Cell(k, f32), divisor_level))
                self.remember(("scaled", divisor.text), (Cell(scaled, f32), divisor_level))
                return Cell(w.emit(f"fdiv float 1.0, {scaled}"), f32)

            self.remember(key, (self.at(divisor_level, write), divisor_level))
        reciprocal = self.splat(self.memo[key][0], divisor_level)
        scale = self.splat(self.memo["scale", divisor.text][0], divisor_level)
        scaled_divisor = self.splat(self.memo["scaled", divisor.text][0], divisor_level)

        def multiply() -> Cell:
            w, type = self.w, x.type
            scaled = w.emit(f"fmul {x.typed}, {scale.text}")
            quotient = w.emit(f"fmul {type} {scaled}, {reciprocal.text}")
            fma = w.module.declare(f"llvm.fma.v{x.lanes}f32", type, [type] * 3)
            negated = w.emit(f"fneg {type} {quotient}")
            rest = w.emit(f"call {type} {fma}({type} {negated}, {type} {scaled_divisor.text}, {type} {scaled})")
            better = w.emit(f"call {type} {fma}({type} {rest}, {type} {reciprocal.text}, {type} {quotient})")
            # Where the correction has no value (0, infinity, NaN), the quotient's own is right, its sign included.
            good = w.emit(f"fcmp one {type} {better}, zeroinitializer")
            chosen = w.emit(f"select <{x.lanes} x i1> {good}, {type} {better}, {type} {quotient}")
            return Cell(chosen, f32, x.lanes)

        return self.at(level, multiply)

    def dummy(self) -> str:
        """A place that may always be read: masked-off scalar accesses go there."""
        if not self._dummy:
            self._dummy = self.w.alloca("i64", 8)
        return self._dummy


def _known(op: Op, found: list[Found]) -> Found | None:
    """The result where a mask is known to hold. It exists where the knowledge does."""
    if op.kind == "and":
        for (cell, level), (other, other_level) in ((found[0], found[1]), (found[1], found[0])):
            if cell.text == "true":
                return other, max(level, other_level)
    if op.kind == "select" and found[0][0].text == "true":
        return found[1][0], max(found[0][1], found[1][1])
    return None


def gather_pointers(w: FunctionWriter, pointer: Cell, offset: Cell) -> Cell:
    """A scalar pointer plus a vector of offsets, in the form that code generation knows as base plus index."""
    element = pointer.element
    assert isinstance(element, PointerType)
    index = offset.typed
    if not offset.element.is_signed and offset.element.bits < 64:
        index = f"<{offset.lanes} x i64> " + w.emit(f"zext {offset.typed} to <{offset.lanes} x i64>")
    text = w.emit(f"getelementptr {elementwise.llvm_pointee(element)}, {pointer.typed}, {index}")
    return Cell(text, element, offset.lanes)


def move(e: Evaluator, cell: Cell, delta: Cell) -> Cell:
    """``cell`` plus what an induction has added: elements for pointers, the number itself for integers."""
    if isinstance(cell.element, PointerType):
        pointee = scalar_type(cell.element.pointee, memory=True)
        return Cell(e.w.emit(f"getelementptr {pointee}, {cell.typed}, i64 {delta.text}"), cell.element, cell.lanes)
    other = splat(e.w, delta, cell.lanes) if cell.lanes else delta
    return Cell(e.w.emit(f"add {cell.typed}, {other.text}"), cell.element, cell.lanes)


# Rules for ops that only move elements --------------------------------------------------------------------------------

Rule = Callable[[Evaluator, Op, Index], Found]


def _constant(e: Evaluator, op: Op, index: Index) -> Found:
    return elementwise.emit_constant(element_of(op.results[0].type), op.attrs["value"]), 0


def _splat(e: Evaluator, op: Op, index: Index) -> Found:
    return e.scalars[op.operands[0]], 0


def _arange(e: Evaluator, op: Op, index: Index) -> Found:
    (d,), start = index, op.attrs["start"]
    lanes = e.lanes
    if d.vec is not None:
        text = e.emit_once(d.level, f"trunc <{lanes} x i64> {d.vec} to <{lanes} x i32>")
        if start:
            text = e.emit_once(d.level, f"add <{lanes} x i32> {text}, splat (i32 {start})")
        return Cell(text, i32, lanes), d.level
    if d.const is not None:
        if not d.step:
            return Cell(str(start + d.const), i32, 0, start + d.const), 0
        items = ", ".join(f"i32 {start + d.const + d.step * l}" for l in range(lanes))
        return Cell(f"<{items}>", i32, lanes), 0
    text = e.emit_once(d.level, f"trunc i64 {d.text} to i32")
    if start and not d.step:
        text = e.emit_once(d.level, f"add i32 {text}, {start}")
    if not d.step:
        return Cell(text, i32), d.level
    base = e.splat(Cell(text, i32), d.level)
    items = ", ".join(f"i32 {start + d.step * l}" for l in range(lanes))
    return Cell(e.emit_once(d.level, f"add <{lanes} x i32> {base.text}, <{items}>"), i32, lanes), d.level


def _broadcast(e: Evaluator, op: Op, index: Index) -> Found:
    source = shape_of(op.operands[0].type)
    return e.cell(op.operands[0], tuple(ZERO if n == 1 else d for n, d in zip(source, index, strict=True)))


def _expand_dims(e: Evaluator, op: Op, index: Index) -> Found:
    axis = op.attrs["axis"]
    return e.cell(op.operands[0], index[:axis] + index[axis + 1 :])


def _permute(e: Evaluator, op: Op, index: Index) -> Found:
    moved = [ZERO] * len(index)
    for i, axis in enumerate(op.attrs["order"]):
        moved[axis] = index[i]
    return e.cell(op.operands[0], tuple(moved))


def _flip(e: Evaluator, op: Op, index: Index) -> Found:
    axis = op.attrs["axis"]
    flipped = e.flip(index[axis], shape_of(op.results[0].type)[axis])
    return e.cell(op.operands[0], (*index[:axis], flipped, *index[axis + 1 :]))


def _reshape(e: Evaluator, op: Op, index: Index) -> Found:
    source = op.operands[0]
    if not isinstance(source.type, TensorType):
        return e.scalars[source], 0
    return e.cell(source, e.reshape(index, shape_of(op.results[0].type), shape_of(source.type)))


def _hint(e: Evaluator, op: Op, index: Index) -> Found:
    return e.cell(op.operands[0], index)


def _gather(e: Evaluator, op: Op, index: Index) -> Found:
    source, where = op.operands
    cell, level = e.cell(where, index)
    bits = cell.element.bits
    text = cell.text
    if bits < 64:
        extend = "sext" if cell.element.is_signed else "zext"
        text = e.emit_once(level, f"{extend} {cell.typed} to {llvm_type(i64, cell.lanes)}")
    d = Dim("0", level, None, 0, 1, text) if cell.lanes else Dim(text, level)
    axis = op.attrs["axis"]
    return e.cell(source, (*index[:axis], d, *index[axis + 1 :]))


def _load(e: Evaluator, op: Op, index: Index) -> Found:
    return access.load(e, op, index)


def _desc_load(e: Evaluator, op: Op, index: Index) -> Found:
    return access.desc_load(e, op, index)


_RULES: dict[str, Rule] = {
    "constant": _constant, "splat": _splat, "arange": _arange, "broadcast": _broadcast, "expand_dims": _expand_dims,
    "permute": _permute, "flip": _flip, "reshape": _reshape, "hint": _hint, "gather": _gather, "load": _load,
    "desc_load": _desc_load,
}  # fmt: skip


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


def numel(value: Value) -> int:
    return prod(shape_of(value.type))


def element(value: Value) -> ElementType:
    return element_of(value.type)
