"""Folds what is known at compile time: constants, equations of ``rules/``, branches and loops whose course is known.

Requires: stage ``tile``.
Ensures: constants stand to the right in commutative ops; no rule of ``rules/catalogue.py`` applies to an op because
of what defines its operands; an ``if`` with a known condition and a ``for`` with no trip or one are gone; carried
values that never change are replaced by their initial values. Unused ops are left for ``dce``, equal ones for
``cse``.

    %z = constant {value = 0} : i32                    %c = constant {value = 4} : i32
    %c = constant {value = 4} : i32                    %y = exp %x : f32
    %r = for %z, %c, %c, %x : f32 (%i: i32, ...   =>
      %a = add %i, %z : i32
      %y = exp %u : f32 ...

How: one walk in program order; an op is looked at when its operands are final, so rules look only upwards. An op that
a rule makes is simplified before it is put down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..analysis import ranges
from ..analysis.uses import count_uses
from ..ir.core import Block, Function, Location, Module, Op, Value
from ..ir.numbers import Number, round_float
from ..ir.ops import OPS
from ..ir.types import DescriptorType, ScalarType, TensorType, Type, element_of
from ..rules.catalogue import candidates
from ..rules.pattern import Result, constant_of, defined_by, is_constant

_MAX_DEPTH = 40  # of rules that apply to what a rule made; the equations are directional, so this is never reached


def fold(module: Module) -> Module:
    """Folds every function."""
    for function in module.functions.values():
        _Folder(function).run()
    return module


class _Folder:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.ranges = ranges.analyse(function)
        self.uses: dict[Value, int] | None = None
        if any(op.kind == "dot" for op in function.body.walk()):
            self.uses = count_uses(function)
        self.replaced: dict[Value, Value] = {}
        self.out: list[Op] = []
        self.loc: Location | None = None
        self.depth = 0

    def run(self) -> None:
        self.block(self.function.body)

    # What rules may use (rules/pattern.py: Rewriter)

    def emit(
        self, kind: str, operands: Sequence[Value], type: Type | None = None, attrs: dict[str, Any] | None = None
    ) -> Value:
        if type is None:
            infer = OPS[kind].infer
            assert infer is not None, kind
            (type,) = infer([v.type for v in operands], attrs or {})
        op = Op(kind, operands, [type], dict(attrs) if attrs else None, (), self.loc)
        if self.uses is not None:
            for value in operands:
                self.uses[value] = self.uses.get(value, 0) + 1
        if self.depth < _MAX_DEPTH:
            self.depth += 1
            found = self.simplify(op)
            self.depth -= 1
            if isinstance(found, Value):
                return found
        self.out.append(op)
        return op.results[0]

    def constant(self, value: Number, type: Type) -> Value:
        element = element_of(type)
        if isinstance(element, ScalarType):
            value = float(value) if element.is_float else bool(value) if element.is_bool else int(value)
        op = Op("constant", (), [type], {"value": value}, (), self.loc)
        self.out.append(op)
        return op.results[0]

    def range_of(self, value: Value) -> ranges.Range | None:
        return self.ranges.get(value)

    def is_used_once(self, value: Value) -> bool:
        return self.uses is not None and self.uses.get(value, 0) == 1

    # The walk

    def block(self, block: Block) -> None:
        outer, self.out = self.out, []
        self.ops(block.ops)
        block.ops, self.out = self.out, outer

    def ops(self, ops: Sequence[Op]) -> None:
        """Puts the simplified ops at the end of the current block."""
        replaced = self.replaced
        for op in ops:
            if replaced:
                op.operands = [replaced.get(v, v) for v in op.operands]
            self.loc = op.loc
            if op.regions:
                control = _CONTROL.get(op.kind)
                if control is not None:
                    control(self, op)
                    continue
                for region in op.regions:
                    self.block(region)
            elif op.kind in _STATEMENTS and self.does_nothing(op):
                continue
            found = self.simplify(op)
            if found is None:
                self.out.append(op)
            elif isinstance(found, Value):
                self.replace(op.results[0], found)
            else:
                for old, new in zip(op.results, found, strict=True):
                    self.replace(old, new)

    def simplify(self, op: Op) -> Result:
        """What stands for the op's results, or None when it stays as it is now."""
        kind = op.kind
        kinds = tuple([getattr(v.owner, "kind", None) for v in op.operands])
        if not kinds:
            if kind == "constant":
                _round_constant(op)
            return None
        if kinds[0] == "constant" and OPS[kind].commutative and kinds[-1] != "constant":
            op.operands.reverse()
            kinds = kinds[::-1]
        if op.results:
            known = self.ranges.get(op.results[0])
            if known is not None and known[0] == known[1] and len(op.results) == 1:
                return self.constant(known[0], op.results[0].type)
        for apply in candidates(kind, kinds):
            found = apply(self, op)
            if found is not None:
                return found
        return None

    def replace(self, old: Value, new: Value) -> None:
        self.replaced[old] = new
        if not new.name:
            new.name = old.name
        if self.uses is not None:
            self.uses[new] = self.uses.get(new, 0) + self.uses.get(old, 0)

    def final(self, values: Sequence[Value]) -> list[Value]:
        return [self.replaced.get(v, v) for v in values]

    def does_nothing(self, op: Op) -> bool:
        """Stores and assertions under a mask that never holds, and promises that surely hold."""
        mask = _STATEMENTS[op.kind]
        if len(op.operands) > mask and is_constant(op.operands[mask], 0):
            for result in op.results:
                self.replace(result, self.constant(0, result.type))
            return True
        return op.kind in ("assert", "assume") and is_constant(op.operands[0], 1)

    # Control flow

    def splice(self, region: Block, args: Sequence[Value], results: Sequence[Value], skip: int = 0) -> None:
        """Puts the region's ops here; ``results`` become what it yields (after ``skip`` operands)."""
        for arg, value in zip(region.args, args, strict=True):
            self.replaced[arg] = value
        self.ops(region.ops[:-1])
        for result, value in zip(results, self.final(region.terminator.operands[skip:]), strict=True):
            self.replace(result, value)

    def op_if(self, op: Op) -> None:
        condition = op.operands[0]
        negated = defined_by(condition, "xor")
        if negated is not None and is_constant(negated.operands[1], 1):
            op.operands[0] = condition = negated.operands[0]
            op.regions.reverse()
        known = self.ranges.get(condition, (0, 1))
        number = constant_of(condition)
        if number is None and known[0] == known[1]:
            number = known[0]
        if number is not None:
            self.splice(op.regions[0 if number else 1], (), op.results)
            return
        for region in op.regions:
            self.block(region)
        self.out.append(op)
        empty = all(len(region.ops) == 1 for region in op.regions)
        yields = [region.terminator.operands for region in op.regions]
        self.loc = op.loc
        for result, yes, no in zip(op.results, *yields, strict=True):
            if yes is no:
                self.replace(result, yes)
            elif empty and not isinstance(result.type, (TensorType, DescriptorType)):
                self.replace(result, self.emit("select", [condition, yes, no]))
            elif (number := constant_of(yes)) is not None and repr(number) == repr(constant_of(no)):
                self.replace(result, self.constant(number, result.type))

    def op_for(self, op: Op) -> None:
        low, high, step, *inits = op.operands
        (body,) = op.regions
        trips = self.trips(low, high, step)
        if trips == 0:
            for result, init in zip(op.results, inits, strict=True):
                self.replace(result, init)
            return
        if trips == 1:
            self.splice(body, [low, *inits], op.results)
            return
        self.out.append(op)
        carried = body.args[1:]
        unchanged = [
            value is arg or value is init
            for arg, init, value in zip(carried, inits, self.final(body.terminator.operands), strict=True)
        ]
        for arg, init, same in zip(carried, inits, unchanged, strict=True):
            if same:
                self.replaced[arg] = init
        self.block(body)
        for arg, init, result, value in zip(carried, inits, op.results, body.terminator.operands, strict=True):
            if value is arg or value is init:
                self.replace(result, init)

    def trips(self, low: Value, high: Value, step: Value) -> int | None:
        """How often a for loop runs: 0, 1, or None for more or unknown."""
        numbers = [constant_of(v) for v in (low, high, step)]
        if None not in numbers:
            first, last, by = (int(n or 0) for n in numbers)
            trips = len(range(first, last, by)) if by else 0
            return trips if trips < 2 else None
        known = [self.ranges.get(v) for v in (low, high, step)]
        a, b, c = ((n, n) if n is not None else k for n, k in zip(map(_whole, numbers), known, strict=True))
        if a is None or b is None or c is None:
            return None
        never = (c[0] > 0 and a[0] >= b[1]) or (c[1] < 0 and a[1] <= b[0])
        return 0 if never else None

    def op_while(self, op: Op) -> None:
        before, after = op.regions
        if is_constant(self.replaced.get(end := before.terminator.operands[0], end), 0):
            self.splice(before, op.operands, op.results, skip=1)
            return
        self.out.append(op)
        self.block(before)
        self.block(after)


def _whole(number: Number | None) -> int | None:
    return None if number is None else int(number)


def _round_constant(op: Op) -> None:
    """Brings a float to a value of its type, so that constants are compared and folded as what they are."""
    element, value = element_of(op.results[0].type), op.attrs["value"]
    if isinstance(value, float) and isinstance(element, ScalarType) and element.bits < 64:
        rounded = round_float(value, element)
        if rounded != value and value == value:
            op.attrs = {**op.attrs, "value": rounded}


_STATEMENTS = {"store": 2, "atomic_rmw": 2, "assert": 1, "assume": 1}
_CONTROL: dict[str, Callable[[_Folder, Op], None]] = {
    "if": _Folder.op_if,
    "for": _Folder.op_for,
    "while": _Folder.op_while,
}
