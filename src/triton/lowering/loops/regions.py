"""Scalar regions (combines of reductions and scans, bodies of map) on cells, vectors of them included."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Block, Op, Value
from ...ir.ops import OPS
from ...ir.types import ScalarType, TensorType, element_of
from ..elementwise import emit_constant, emit_elementwise
from ..writer import Cell, splat
from .emit import FunctionEmitter
from .errors import Unsupported
from .evaluate import Evaluator


def is_straight(block: Block) -> bool:
    """Whether a region can run on vectors: elementwise ops on scalars and nothing else."""
    for op in block.ops[:-1]:
        if not (OPS[op.kind].elementwise or op.kind in ("constant", "hint")):
            return False
        if any(isinstance(r.type, TensorType) for r in op.results) or not op.attrs.get("pure", True):
            return False
    return True


def run(f: FunctionEmitter, block: Block, args: Sequence[Cell], lanes: int) -> list[Cell]:
    """The results of a straight region for ``args``, which have ``lanes`` lanes each."""
    values: dict[Value, Cell] = dict(zip(block.args, args, strict=True))

    def operand(v: Value) -> Cell:
        cell = values.get(v)
        if cell is None:
            cell = f.scalars[v]
        return splat(f.w, cell, lanes) if lanes and not cell.lanes else cell

    for op in block.ops[:-1]:
        if op.kind == "constant":
            values[op.results[0]] = emit_constant(element_of(op.results[0].type), op.attrs["value"], lanes)
        elif op.kind == "hint":
            values[op.results[0]] = operand(op.operands[0])
        elif OPS[op.kind].elementwise and not any(isinstance(v.type, TensorType) for v in op.operands):
            for result, cell in zip(
                op.results, emit_elementwise(f.w, op, [operand(v) for v in op.operands], lanes), strict=True
            ):
                values[result] = cell
        else:
            raise Unsupported(f"{op.kind} is not supported in a combine function on this target", op)
    return [operand(v) for v in block.terminator.operands]


def run_scalars(f: FunctionEmitter, block: Block, args: Sequence[Cell]) -> list[Cell]:
    """A region with control flow, on scalars."""
    f.scalars.update(zip(block.args, args, strict=True))
    found: list[Cell] = []

    def finish(end: Op) -> None:
        found.extend(f.scalars[v] for v in end.operands)

    outer = f.e
    f.e = Evaluator(f.w, f.plan, f.scalars, f.buffers)  # the region is a block of its own, inside the loops of the root
    f.e.descriptors, f.e.deltas = outer.descriptors, outer.deltas
    f.block(block, finish)
    f.e = outer
    return found


SIMPLE = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})


def single_op(block: Block) -> Op | None:
    """The op of a combine that is one commutative op of its two arguments."""
    if len(block.ops) != 2 or len(block.args) != 2:
        return None
    op, end = block.ops
    if op.kind in SIMPLE and set(op.operands) == set(block.args) and end.operands == [op.results[0]]:
        return op
    return None


def commutes(block: Block) -> bool:
    """Whether the order of the two groups of arguments certainly does not matter: one known op, or a known selection
    of pairs."""
    return single_op(block) is not None or is_selection(block) or _componentwise(block)


def _componentwise(block: Block) -> bool:
    """Result i is one commutative op of arguments i of both groups."""
    half = len(block.args) // 2
    if len(block.ops) != half + 1:
        return False
    end = block.terminator
    for i, value in enumerate(end.operands):
        op = value.op
        if op is None or op.kind not in SIMPLE or set(op.operands) != {block.args[i], block.args[half + i]}:
            return False
    return True


def is_selection(block: Block) -> bool:
    """max, min, argmax, argmin in any spelling: results are chosen from the arguments by comparing them, and the
    order does not matter.

    Such a region sees only how its arguments are ordered, so running it on every order of small numbers, ties and NaN
    included, is proof. Of pairs the second members are positions: they are never equal.
    """
    if len(block.args) not in (2, 4) or len(block.ops) > 24:
        return False
    inside = {id(op) for op in block.ops}
    for op in block.ops[:-1]:
        if op.kind not in _CHOOSING or (op.kind == "constant" and not element_of(op.results[0].type).is_bool):
            return False
        if any(v not in block.args and id(v.op) not in inside for v in op.operands):
            return False
    if any(v not in block.args and (v.op is None or v.op.kind != "select") for v in block.terminator.operands):
        return False
    values: list[float] = [0.0, 1.0, -1.0, float("nan")] if element_of(block.args[0].type).is_float else [0, 1, 2]
    if len(block.args) == 2:
        return all(_same(_simulate(block, (a, b)), _simulate(block, (b, a))) for a in values for b in values)
    if not element_of(block.args[1].type).is_integer:
        return False
    pairs = [(v, i) for v in values for i in (0, 1, 2)]
    return all(
        a[1] == b[1] or _same(_simulate(block, (*a, *b)), _simulate(block, (*b, *a))) for a in pairs for b in pairs
    )


def neutral(block: Block) -> list[float] | None:
    """For a combine that is one known op in each component: what changes nothing when combined. None for other
    combines."""
    if not _componentwise(block):
        return None
    found: list[float] = []
    for value in block.terminator.operands:
        op = value.op
        assert op is not None
        element = element_of(value.type)
        assert isinstance(element, ScalarType)
        number = _neutral_of(op, element)
        if number is None:
            return None
        found.append(number)
    return found


def _neutral_of(op: Op, element: ScalarType) -> float | None:
    kind = op.kind
    if kind in ("min", "max") and element.is_float:
        if element.bits == 8:
            return None
        if op.attrs.get("propagate_nan", False):
            return float("inf") if kind == "min" else float("-inf")
        return float("nan")  # loses against every number
    if kind == "add":
        return (-0.0 if element.bits > 8 else 0.0) if element.is_float else False if element.is_bool else 0
    if kind == "mul":
        return 1.0 if element.is_float else True if element.is_bool else 1
    if kind in ("or", "xor"):
        return False if element.is_bool else 0
    if kind == "and":
        return True if element.is_bool else -1 if element.is_signed else (1 << element.bits) - 1
    low, high = (
        (-(1 << element.bits - 1), (1 << element.bits - 1) - 1) if element.is_signed else (0, (1 << element.bits) - 1)
    )
    if element.is_bool:
        return kind == "min"
    return high if kind == "min" else low


_CHOOSING = frozenset({"cmp", "select", "and", "or", "xor", "constant"})
_PREDICATES = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _simulate(block: Block, args: Sequence[float]) -> list[float]:
    values: dict[Value, float] = dict(zip(block.args, args, strict=True))
    for op in block.ops[:-1]:
        given = [values[v] for v in op.operands]
        if op.kind == "constant":
            result = op.attrs["value"]
        elif op.kind == "cmp":
            result = _PREDICATES[op.attrs["pred"]](*given)
        elif op.kind == "select":
            result = given[1] if given[0] else given[2]
        else:
            a, b = int(given[0]), int(given[1])
            result = a & b if op.kind == "and" else a | b if op.kind == "or" else a ^ b
        values[op.results[0]] = result
    return [values[v] for v in block.terminator.operands]


def _same(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True))
