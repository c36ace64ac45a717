"""Long loops ask the runtime now and then whether the launch goes on, and tell it when they may be waiting for another
program."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.core import Function, Op
from ...ir.types import TensorType
from .emit import FunctionEmitter

COUNTDOWN_OFFSET = 32
"""Of the runtime's LaunchContext."""

_ATOMICS = frozenset({"atomic_rmw", "atomic_cas"})


def spins(op: Op) -> bool:
    """Whether a while loop may end by what another program writes."""
    return op.kind == "while" and any(
        inner.kind in _ATOMICS or inner.attrs.get("volatile") for region in op.regions for inner in region.walk()
    )


def waits(functions: Iterable[Function]) -> bool:
    """Whether programs may wait for others, so that each must be able to run while others do not go on."""
    return any(op.kind == "atomic_poll" or spins(op) for f in functions for op in f.body.walk())


def works(op: Op) -> bool:
    """Whether a trip of this for loop takes so long that a check costs nothing beside it."""
    inside = op.regions[0].walk()
    return any(isinstance(v.type, TensorType) for inner in inside for v in (*inner.results, *inner.operands))


def check(f: FunctionEmitter, waiting: bool) -> None:
    """Counts down to a call of the runtime, which sets how far to count next time."""
    w = f.w
    place = w.emit(f"getelementptr i8, ptr {f.context}, i64 {COUNTDOWN_OFFSET}")
    left = w.emit(f"add i32 {w.emit(f'load i32, ptr {place}, align 4')}, -1")
    w.line(f"store i32 {left}, ptr {place}, align 4")
    with w.branch(w.emit(f"icmp slt i32 {left}, 1"), "check"):
        callee = w.module.declare("tl_check", "void", ["ptr", "i32"], "cold")
        w.line(f"call void {callee}(ptr {f.context}, i32 {int(waiting)})")
