"""Loop-invariant motion: what gives the same in every trip moves in front of the loop.

Requires: nothing beyond a valid module.
Ensures: no pure op without control flow stands in the body of a ``for`` or in a region of a ``while`` unless it
depends on a value of that loop. Pure ops never trap, so they may run although the loop does not. A load moves only
out of a ``for`` with constant bounds that runs, writes no memory and cannot stop early. Loops marked ``disable_licm``
keep their ops.

    for %l, %h, %s () (%i: i32) {             %c = constant {value = 2} : i32
      %c = constant {value = 2} : i32         %d = mul %n, %c : i32
      %d = mul %n, %c : i32            =>     for %l, %h, %s (%i: i32) {
      %e = add %i, %d : i32                     %e = add %i, %d : i32
      ...                                       ...
"""

from __future__ import annotations

from ..analysis import effects
from ..ir.core import Block, Function, Module, Op, Value
from ..ir.ops import OPS
from ..rules.pattern import constant_of

_LOOPS = frozenset({"for", "while"})


def hoist(module: Module) -> Module:
    """Moves loop-invariant ops out of loops, innermost loops first."""
    for function in module.functions.values():
        if any(op.kind in _LOOPS for op in function.body.walk()):
            _Hoister(function).block(function.body)
    return module


class _Hoister:
    def __init__(self, function: Function) -> None:
        self.effects = effects.analyse(function)

    def block(self, block: Block) -> None:
        ops: list[Op] = []
        for op in block.ops:
            for region in op.regions:
                self.block(region)
            if op.kind in _LOOPS and not op.attrs.get("disable_licm"):
                for region in op.regions:
                    self.take_invariant(op, region, ops)
            ops.append(op)
        block.ops = ops

    def take_invariant(self, loop: Op, body: Block, ops: list[Op]) -> None:
        """Moves the invariant ops of ``body`` to the end of ``ops``."""
        local, kept = set(body.args), []
        for op in body.ops:
            if local.isdisjoint(op.operands) and self.may_move(op, loop, local):
                ops.append(op)
            else:
                kept.append(op)
                local.update(op.results)
        body.ops = kept

    def may_move(self, op: Op, loop: Op, local: set[Value]) -> bool:
        info = OPS[op.kind]
        if info.terminator or info.group == "Control flow":
            return False
        if not effects.is_pure(op):
            return effects.reads_memory(op) and self.load_may_move(loop)
        for region in op.regions:
            for inner in region.walk():
                if OPS[inner.kind].effects or not local.isdisjoint(inner.operands):
                    return False
        return True

    def load_may_move(self, loop: Op) -> bool:
        if loop.kind != "for" or loop in self.effects.writes or loop in self.effects.stops:
            return False
        low, high, step = (constant_of(v) for v in loop.operands[:3])
        if low is None or high is None or not step:
            return False
        return low < high if step > 0 else low > high
