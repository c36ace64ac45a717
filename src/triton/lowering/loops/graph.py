"""Facts about one function that planning and emission ask for: order, users, strides along an axis, where pointers
come from."""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from ...analysis import axis as axis_analysis
from ...ir.core import Block, Function, Op, Value
from ...ir.ops import OPS, has_effect
from ...ir.types import DescriptorType, PointerType, ScalarType, element_of, shape_of

EVERYTHING = None
"""The base of a pointer that could point anywhere."""


class Stride(NamedTuple):
    """Along an axis, in aligned groups of ``group`` elements (0: all of them), a value grows by ``step`` (pointees
    for pointers)."""

    step: int
    group: int


UNIFORM = Stride(0, 0)
UNKNOWN = Stride(0, -1)
"""Not asked yet."""


class Graph:
    """Order, users and memory effects of a function's ops."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.start: dict[Op, int] = {}
        self.end: dict[Op, int] = {}
        self.block: dict[Op, Block] = {}
        self.parent: dict[Block, Op | None] = {function.body: None}
        self.users: dict[Value, list[Op]] = {}
        self.ops: list[Op] = []
        self._walk(function.body)
        self._axis: dict[Value, axis_analysis.AxisInfo] | None = None
        self._strides: dict[tuple[Value, int], Stride | None] = {}
        self._bases: dict[Value, Value | None] = {}
        self.inductions: dict[Value, Induction] = {}
        for op in self.ops:
            if op.kind == "for":
                self._find_inductions(op)
        self._strides.clear()  # what was asked before all inductions were known

    def _walk(self, block: Block) -> None:
        for op in block.ops:
            self.start[op] = len(self.ops)
            self.ops.append(op)
            self.block[op] = block
            for operand in op.operands:
                users = self.users.setdefault(operand, [])
                if not users or users[-1] is not op:
                    users.append(op)
            for region in op.regions:
                self.parent[region] = op
                self._walk(region)
            self.end[op] = len(self.ops)

    def home(self, value: Value) -> Block:
        """The block that defines ``value``."""
        owner = value.owner
        return self.block[owner] if isinstance(owner, Op) else owner

    def ancestor(self, op: Op, block: Block) -> Op:
        """The op of ``block`` that is ``op`` or holds it."""
        while self.block[op] is not block:
            parent = self.parent[self.block[op]]
            assert parent is not None
            op = parent
        return op

    # Inductions

    def _find_inductions(self, loop: Op) -> None:
        (body,) = loop.regions
        for i, init in enumerate(loop.operands[3:]):
            arg = body.args[i + 1]
            element = element_of(arg.type)
            if not shape_of(arg.type) or isinstance(arg.type, DescriptorType) or element.is_float or element.is_bool:
                continue
            offsets: list[tuple[Value, int]] = []
            value = body.terminator.operands[i]
            while value is not arg:
                step = self._uniform_step(value)
                if step is None:
                    break
                value, offset, sign = step
                offsets.append((offset, sign))
            else:
                record = Induction(loop, i, init, tuple(offsets))
                self.inductions[arg] = record
                self.inductions[loop.results[i]] = record

    def _uniform_step(self, value: Value) -> tuple[Value, Value, int] | None:
        op = value.op
        if op is None:
            return None
        if op.kind in ("addptr", "add", "sub") and self.is_uniform(op.operands[1]):
            return op.operands[0], op.operands[1], -1 if op.kind == "sub" else 1
        if op.kind == "add" and self.is_uniform(op.operands[0]):
            return op.operands[1], op.operands[0], 1
        return None

    def is_uniform(self, value: Value) -> bool:
        """Whether every element is the same, whatever the loop trip."""
        return all(n == 1 or self.stride(value, d) == UNIFORM for d, n in enumerate(shape_of(value.type)))

    # Strides

    def stride(self, value: Value, axis: int) -> Stride | None:
        """How ``value`` changes along ``axis``; None when nothing is known."""
        key = (value, axis)
        known = self._strides.get(key, UNKNOWN)
        if known is not UNKNOWN:
            return known
        shape = shape_of(value.type)
        if not shape or shape[axis] == 1:
            self._strides[key] = UNIFORM
            return UNIFORM
        stack = [key]
        while stack:  # operands first, without recursion: chains of ops can be long
            current = stack[-1]
            if current in self._strides:
                stack.pop()
                continue
            needed = [k for k in _stride_inputs(self, *current) if k not in self._strides]
            if needed:
                stack.extend(needed)
                continue
            stack.pop()
            self._strides[current] = self._refine(current[0], current[1], _stride_of(self, *current))
        return self._strides[key]

    def _refine(self, value: Value, axis: int, found: Stride | None) -> Stride | None:
        """What the axis analysis adds: promises and remainders."""
        if found is not None or element_of(value.type).is_float:
            return found
        op = value.op
        if op is not None and op.kind not in _REFINED:
            return None
        if self._axis is None:
            self._axis = axis_analysis.analyse(self.function)
        info = self._axis.get(value)
        if info is None:
            return None
        if info.constancy[axis] > 1:
            return Stride(0, info.constancy[axis])
        if info.contiguity[axis] > 1:
            return Stride(1, info.contiguity[axis])
        return None

    def known(self, value: Value, axis: int) -> Stride | None:
        shape = shape_of(value.type)
        return UNIFORM if not shape or shape[axis] == 1 else self._strides.get((value, axis))

    # Memory

    def base(self, pointer: Value) -> Value | None:
        """The kernel argument that a pointer or descriptor is derived from; EVERYTHING (None) when unknown."""
        if not self.function.is_kernel:
            return EVERYTHING
        seen: list[Value] = []
        value: Value | None = pointer
        result: Value | None = EVERYTHING
        while value is not None:
            if value in self._bases:
                result = self._bases[value]
                break
            seen.append(value)
            op = value.op
            if op is None:
                if value.owner is self.function.body:
                    result = value
                    break
                value = self.inductions[value].init if value in self.inductions else None
            elif value in self.inductions:
                value = self.inductions[value].init
            elif op.kind in _POINTER_CHAIN:
                value = op.operands[0]
            else:
                value = None
        for v in seen:
            self._bases[v] = result
        return result

    def writes(self, op: Op) -> list[Value | None]:
        """The bases that ``op`` and what it holds may write through; EVERYTHING for an unknown or ordering effect."""
        if op.kind in ("store", "desc_store"):
            return [
                self.base(op.operands[0])
                if op.kind == "store" or op.attrs.get("op", "store") == "store"
                else EVERYTHING
            ]
        if op.kind in _HARMLESS:
            return []
        if "write" in OPS[op.kind].effects and has_effect(op, "write"):
            return [EVERYTHING]
        found: list[Value | None] = []
        for region in op.regions:
            for inner in region.ops:
                found += self.writes(inner)
        return found


class Induction(NamedTuple):
    """A loop-carried tensor that grows by the same amount everywhere: element = init + sum of sign * offset over the
    trips."""

    loop: Op
    position: int
    init: Value
    offsets: tuple[tuple[Value, int], ...]


_POINTER_CHAIN = frozenset(
    {"addptr", "splat", "broadcast", "expand_dims", "reshape", "permute", "flip", "hint", "make_desc"}
)
_HARMLESS = frozenset({"assume", "assert", "print"})
_REFINED = frozenset(
    {
        "div",
        "rem",
        "hint",
        "and",
        "or",
        "shr",
        "shl",
        "cast",
        "min",
        "max",
        "select",
        "xor",
        "add",
        "mul",
        "sub",
        "cmp",
        "addptr",
    }
)
_SAME_INDEX = frozenset({"hint", "load"})


def _stride_inputs(graph: Graph, value: Value, axis: int) -> list[tuple[Value, int]]:
    """The strides that ``_stride_of`` looks at."""
    if value in graph.inductions:
        return _key(graph.inductions[value].init, axis)
    op = value.op
    if op is None:
        return []
    kind = op.kind
    if kind == "hint":
        return _key(op.operands[0], axis)
    if kind in ("broadcast", "flip", "split"):
        return _key(op.operands[0], axis)
    if kind == "expand_dims":
        at = op.attrs["axis"]
        return [] if axis == at else _key(op.operands[0], axis - (axis > at))
    if kind == "permute":
        return _key(op.operands[0], op.attrs["order"][axis])
    if kind == "reshape":
        mapped = reshaped_axis(shape_of(value.type), shape_of(op.operands[0].type), axis)
        return [] if mapped is None else _key(op.operands[0], mapped[0])
    if kind == "join":
        return [] if axis == len(shape_of(value.type)) - 1 else _key(op.operands[0], axis) + _key(op.operands[1], axis)
    if kind == "cat":
        return [] if axis == op.attrs["axis"] else [k for v in op.operands for k in _key(v, axis)]
    if OPS[kind].elementwise or kind in _SAME_INDEX:
        return [k for v in op.operands for k in _key(v, axis)]
    return []


def _key(value: Value, axis: int) -> list[tuple[Value, int]]:
    shape = shape_of(value.type)
    return [(value, axis)] if shape and shape[axis] != 1 else []


def reshaped_axis(shape: tuple[int, ...], source: tuple[int, ...], axis: int) -> tuple[int, int, int] | None:
    """Where one step along ``axis`` of ``shape`` goes in ``source``: (source axis, steps there, group), or None."""
    weight = prod(shape[axis + 1 :])
    at = len(source) - 1
    inner = 1
    while at >= 0 and inner * source[at] <= weight:
        inner *= source[at]
        at -= 1
    while at >= 0 and source[at] == 1:
        at -= 1
    if at < 0 or weight % inner:
        return None
    steps, size = weight // inner, source[at] * inner
    extent = shape[axis] * weight
    if size % extent == 0:
        return at, steps, 0
    if extent % size == 0 and source[at] % steps == 0:
        return at, steps, source[at] // steps
    return None


def _stride_of(graph: Graph, value: Value, axis: int) -> Stride | None:
    if value in graph.inductions:
        return graph.known(graph.inductions[value].init, axis)
    op = value.op
    if op is None:
        return None
    kind, known = op.kind, graph.known
    if kind in ("constant", "splat"):
        return UNIFORM
    if kind == "arange":
        return Stride(1, 0)
    if kind == "broadcast":
        return UNIFORM if shape_of(op.operands[0].type)[axis] == 1 else known(op.operands[0], axis)
    if kind == "expand_dims":
        at = op.attrs["axis"]
        return UNIFORM if axis == at else known(op.operands[0], axis - (axis > at))
    if kind == "permute":
        return known(op.operands[0], op.attrs["order"][axis])
    if kind == "flip":
        inner = known(op.operands[0], axis)
        if inner is None or axis != op.attrs["axis"]:
            return inner
        return Stride(-inner.step, 0) if inner.group == 0 else None
    if kind == "reshape":
        return _reshape_stride(graph, op, axis)
    if kind == "split":
        return known(op.operands[0], axis)
    if kind in ("join", "cat"):
        last = len(shape_of(value.type)) - 1 if kind == "join" else op.attrs["axis"]
        if axis == last:
            return None
        first, *rest = (known(v, axis) for v in op.operands)
        if first is None or any(s is None or s.step != first.step for s in rest):
            return None
        return Stride(first.step, gcd(first.group, *(s.group for s in rest if s is not None)))
    if kind == "hint":
        promised = op.attrs.get("contiguous", ())
        inner = known(op.operands[0], axis)
        if inner is not None and inner.group == 0:
            return inner
        if len(promised) > axis and promised[axis] > 1:
            return Stride(1, promised[axis])
        promised = op.attrs.get("constant", ())
        if len(promised) > axis and promised[axis] > 1:
            return Stride(0, promised[axis])
        return inner
    if OPS[kind].elementwise or kind == "load":
        if op.kind in ("extern", "inline_asm") and not op.attrs.get("pure", True):
            return None
        return _elementwise_stride(graph, op, axis)
    return None


def _reshape_stride(graph: Graph, op: Op, axis: int) -> Stride | None:
    mapped = reshaped_axis(shape_of(op.results[0].type), shape_of(op.operands[0].type), axis)
    if mapped is None:
        return None
    at, steps, group = mapped
    inner = graph.known(op.operands[0], at)
    if inner is None or inner.group % steps:
        return None
    return Stride(inner.step * steps, gcd(inner.group // steps, group))


def _elementwise_stride(graph: Graph, op: Op, axis: int) -> Stride | None:
    strides = [graph.known(v, axis) for v in op.operands]
    if any(s is None for s in strides):
        return None
    group = gcd(*(s.group for s in strides if s is not None)) if strides else 0
    steps = [s.step for s in strides if s is not None]
    if not any(steps):
        return Stride(0, group)
    kind, element = op.kind, element_of(op.results[0].type)
    if kind in ("addptr", "add"):
        step = steps[0] + steps[1]
    elif kind == "sub":
        step = steps[0] - steps[1]
    elif kind == "mul":
        factor = constant_of(op.operands[0]) if steps[0] == 0 else constant_of(op.operands[1])
        if factor is None or (steps[0] and steps[1]):
            return None
        step = factor * (steps[0] + steps[1])
    elif kind == "cast":
        source = element_of(op.operands[0].type)
        if not (
            isinstance(source, ScalarType) and _no_wrap(source) and _no_wrap(element) and element.bits >= source.bits
        ):
            return None
        step = steps[0]
    else:
        return None
    # Narrow and 32-bit unsigned arithmetic may wrap on purpose; wider offsets that wrap would leave the address space.
    return Stride(step, group) if isinstance(element, PointerType) or _no_wrap(element) else None


def _no_wrap(element: object) -> bool:
    return isinstance(element, ScalarType) and (element.bits == 64 or (element.bits == 32 and element.is_signed))


def constant_of(value: Value) -> int | None:
    """The integer that every element of ``value`` is, if the IR says so directly."""
    op = value.op
    while op is not None and op.kind in ("splat", "broadcast", "expand_dims", "reshape", "hint"):
        op = op.operands[0].op
    if op is not None and op.kind == "constant" and isinstance(op.attrs["value"], int):
        return int(op.attrs["value"])
    return None
