"""Largest and smallest of floats where a NaN loses against every number.

Running ``acc = x > acc ? x : acc`` from -infinity is one machine instruction and passes over NaN, but gives -infinity
for NaN alone. So a result of -infinity is looked at again: if no element was a number, it is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...ir.core import Block
from ...ir.types import element_of
from ..elementwise import emit_constant
from ..writer import Cell, FunctionWriter
from . import regions
from .index import Dim, fixed, lane_mask
from .nest import count

if TYPE_CHECKING:
    from .reduce import Job


def applies(combine: Block) -> bool:
    """Whether a combine is max or min of f32 or f64 with NaN skipped."""
    op = regions.single_op(combine)
    if op is None or op.kind not in ("min", "max") or op.attrs.get("propagate_nan", False):
        return False
    element = element_of(op.results[0].type)
    return element.is_float and element.bits >= 32


def start(combine: Block) -> float:
    """What every number beats or equals."""
    return float("-inf") if combine.ops[0].kind == "max" else float("inf")


def merge(w: FunctionWriter, combine: Block, acc: Cell, x: Cell) -> Cell:
    """The better one of two; ``acc`` must not be NaN, and the result is not."""
    better = "ogt" if combine.ops[0].kind == "max" else "olt"
    chosen = w.emit(f"fcmp {better} {x.typed}, {acc.text}")
    kind = f"<{x.lanes} x i1>" if x.lanes else "i1"
    return Cell(w.emit(f"select {kind} {chosen}, {x.typed}, {acc.typed}"), acc.element, acc.lanes)


def settle(job: Job, result: Cell, any_number: Callable[[], str]) -> Cell:
    """``result``, or NaN in the lanes where it is the start value and ``any_number`` (run only then) says so.

    ``any_number`` gives an i1 for each lane of the result.
    """
    w, e, lanes = job.f.w, job.e, result.lanes
    worst = emit_constant(result.element, start(job.combine), lanes)
    hit = w.emit(f"fcmp oeq {result.typed}, {worst.text}")
    if lanes:
        name = w.module.declare(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [f"<{lanes} x i1>"])
        hit = w.call("i1", name, [f"<{lanes} x i1> {hit}"])
    look, done = w.new_label("look"), w.new_label("settled")
    before = w.block
    w.cond_br(hit, look, done)
    w.label(look)
    mark = e.mark()
    numbers = any_number()
    e.forget(mark)
    nan = emit_constant(result.element, float("nan"), lanes)
    kind = f"<{lanes} x i1>" if lanes else "i1"
    fixed_up = w.emit(f"select {kind} {numbers}, {result.typed}, {nan.typed}")
    after = w.block
    w.br(done)
    w.label(done)
    text = w.emit(f"phi {result.type} [ {result.text}, %{before} ], [ {fixed_up}, %{after} ]")
    return Cell(text, result.element, lanes)


def any_in_row(job: Job, outer: dict[int, Dim], n: int, lanes: int) -> str:
    """Whether some element along the vector axis is a number."""
    e, w = job.e, job.f.w
    kind = f"<{lanes} x i1>"
    saved = e.lanes, e.active, e.count
    e.lanes, e.active, e.count = lanes, None, lanes

    def body(d: Dim, values: list[str]) -> Sequence[str]:
        (x,) = job.values(job.index(outer, d._replace(step=1)), lanes)
        found = w.emit(f"fcmp ord {x.typed}, {x.text}")
        if e.active is not None:
            found = w.emit(f"and {kind} {found}, {e.active}")
        return [w.emit(f"or {kind} {values[0]}, {found}")]

    whole = n // lanes * lanes
    seen = count(e, whole, body, [(kind, "zeroinitializer")], step=lanes) if whole else ["zeroinitializer"]
    if whole < n:
        e.active, e.count = lane_mask(lanes, n - whole), n - whole
        seen = list(body(fixed(whole), seen))
    e.lanes, e.active, e.count = saved
    name = w.module.declare(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [kind])
    return w.call("i1", name, [f"{kind} {seen[0]}"])


def any_in_column(job: Job, outer: dict[int, Dim], n: int, lanes: int) -> str:
    """For each lane, whether some element along the reduced axis, which has no lanes, is a number."""
    e, w = job.e, job.f.w
    kind = f"<{lanes} x i1>" if lanes else "i1"

    def body(d: Dim, values: list[str]) -> Sequence[str]:
        (x,) = job.values(job.index(outer, d), lanes)
        found = w.emit(f"fcmp ord {x.typed}, {x.text}")
        return [w.emit(f"or {kind} {values[0]}, {found}")]

    return count(e, n, body, [(kind, "zeroinitializer" if lanes else "false")])[0]
