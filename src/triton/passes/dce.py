"""Dead code: ops, loop-carried values, results of ``if`` and loops that nothing needs.

Requires: nothing beyond a valid module.
Ensures: every op either has an effect or gives a value that some kept op uses. Loops without effects whose results
are unused go (one that would never end included); so do loads, except volatile ones, and calls stay.

    %r, %s = for %a, %b, %c, %x, %y : f32, f32 (%i: i32, %u: f32, %v: f32) {      %r = for %a, %b, %c, %x : f32 (%i:
    i32, %u: f32) {
      %p = add %u, %u : f32                                                         %p = add %u, %u : f32
      %q = add %v, %p : f32                                                  =>     yield %p
      yield %p, %q                                                                }
    }                                                                             store %o, %r
    store %o, %r

How: mark from the ops with effects backwards through uses, where a loop-carried value is one thing with its initial
value, its block argument and what the body yields for it; then one sweep.
"""

from __future__ import annotations

from ..analysis.effects import is_pure, reads_memory
from ..analysis.uses import parents
from ..ir.core import Block, Function, Module, Op, Value
from ..ir.ops import OPS

_TRIMMED = frozenset({"if", "for", "while"})


def dce(module: Module) -> Module:
    """Removes dead code from every function."""
    for function in module.functions.values():
        marker = _Marker(function)
        marker.mark()
        _sweep(function.body, marker.live, marker.values)
    return module


def _has_effect(op: Op) -> bool:
    """By itself, without its regions. What the terminators of regions pass on is needed when a result is."""
    if OPS[op.kind].terminator:
        return op.kind == "return"
    return not (is_pure(op) or reads_memory(op))


class _Marker:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.parents = parents(function)
        self.owner: dict[Op, Op | None] = {}
        self.live: set[Op] = set()
        self.values: set[Value] = set()
        self.pending: list[Value] = []

    def mark(self) -> None:
        self.find(self.function.body, None)
        while self.pending:
            value = self.pending.pop()
            owner = value.owner
            if isinstance(owner, Op):
                self.need_op(owner)
                if owner.kind in _TRIMMED:
                    self.need_result(owner, value.index)
            elif owner in self.parents:
                self.need_argument(self.parents[owner], owner, value.index)

    def find(self, block: Block, parent: Op | None) -> None:
        """Notes each op's parent and starts from the ops with effects."""
        for op in block.ops:
            self.owner[op] = parent
            if _has_effect(op):
                self.need_op(op)
            for region in op.regions:
                self.find(region, op)

    def need(self, value: Value) -> None:
        if value not in self.values:
            self.values.add(value)
            self.pending.append(value)

    def need_op(self, op: Op | None) -> None:
        while op is not None and op not in self.live:
            self.live.add(op)
            kind = op.kind
            if kind == "for":
                operands = op.operands[:3]
            elif kind == "while":
                operands = op.regions[0].terminator.operands[:1]
            else:
                operands = op.operands
                if kind not in _TRIMMED:
                    for region in op.regions:
                        for value in region.terminator.operands:
                            self.need(value)
            for value in operands:
                self.need(value)
            op = self.owner[op]

    def need_result(self, op: Op, index: int) -> None:
        if op.kind == "if":
            for region in op.regions:
                self.need(region.terminator.operands[index])
        elif op.kind == "for":
            self.need_carried(op, index)
        else:
            self.need(op.regions[0].terminator.operands[1 + index])

    def need_argument(self, op: Op, region: Block, index: int) -> None:
        self.need_op(op)
        if op.kind == "for" and index:
            self.need_carried(op, index - 1)
        elif op.kind == "while" and region is op.regions[0]:
            self.need(op.operands[index])
            self.need(op.regions[1].terminator.operands[index])
        elif op.kind == "while":
            self.need(op.regions[0].terminator.operands[1 + index])

    def need_carried(self, op: Op, index: int) -> None:
        """A result or carried argument of a for loop: the other one, where it starts and what is yielded."""
        body = op.regions[0]
        for value in (op.operands[3 + index], body.terminator.operands[index], body.args[1 + index]):
            self.need(value)


def _sweep(block: Block, live: set[Op], values: set[Value]) -> None:
    ops = []
    for op in block.ops:
        if op not in live and not OPS[op.kind].terminator:
            continue
        ops.append(op)
        if op.regions:
            if op.kind in _TRIMMED:
                _trim(op, values)
            for region in op.regions:
                _sweep(region, live, values)
    block.ops = ops


def _trim(op: Op, values: set[Value]) -> None:
    """Drops the results, arguments and yielded values that are not needed."""
    if op.kind == "for":
        body = op.regions[0]
        keep = [arg in values or r in values for arg, r in zip(body.args[1:], op.results, strict=True)]
        if not all(keep):
            op.operands = op.operands[:3] + _where(op.operands[3:], keep)
            body.terminator.operands = _where(body.terminator.operands, keep)
            body.args = _renumber([body.args[0], *_where(body.args[1:], keep)])
            op.results = _renumber(_where(op.results, keep))
        return
    if op.kind == "if":
        keep = [r in values for r in op.results]
        if not all(keep):
            for region in op.regions:
                region.terminator.operands = _where(region.terminator.operands, keep)
            op.results = _renumber(_where(op.results, keep))
        return
    before, after = op.regions
    keep = [arg in values for arg in before.args]
    if not all(keep):
        op.operands = _where(op.operands, keep)
        before.args = _renumber(_where(before.args, keep))
        after.terminator.operands = _where(after.terminator.operands, keep)
    keep = [arg in values or r in values for arg, r in zip(after.args, op.results, strict=True)]
    if not all(keep):
        end = before.terminator
        end.operands = end.operands[:1] + _where(end.operands[1:], keep)
        after.args = _renumber(_where(after.args, keep))
        op.results = _renumber(_where(op.results, keep))


def _where(items: list[Value], keep: list[bool]) -> list[Value]:
    return [item for item, kept in zip(items, keep, strict=True) if kept]


def _renumber(items: list[Value]) -> list[Value]:
    for index, value in enumerate(items):
        value.index = index
    return items
