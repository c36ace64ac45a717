"""Common subexpressions: of equal pure ops in a block or around it, the first one serves all.

Requires: nothing beyond a valid module.
Ensures: no pure op equals an earlier one that is visible from it. A load is shared with an earlier equal one when the
program does not write memory between them, neither on the way nor around a loop; loads inside a ``while`` are never
shared with one before it, since such a loop may wait for another program.

    %a = mul %x, %y : i32                     %a = mul %x, %y : i32
    %b = mul %y, %x : i32              =>     %c = add %a, %a : i32
    %c = add %a, %b : i32
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..analysis import effects
from ..ir.core import Block, Function, Module, Op, Value
from ..ir.equal import freeze
from ..ir.ops import OPS


def cse(module: Module) -> Module:
    """Shares equal computations in every function."""
    for function in module.functions.values():
        _Sharing(function).block(function.body)
    return module


class _Sharing:
    def __init__(self, function: Function) -> None:
        self.writes = effects.analyse(function).writes
        self.replaced: dict[Value, Value] = {}
        self.known: dict[Hashable, list[Value]] = {}
        self.memory = 0  # a number for the state of memory; loads share within one state
        self.states = 0

    def block(self, block: Block) -> None:
        known, replaced = self.known, self.replaced
        added: list[Hashable] = []
        ops: list[Op] = []
        for op in block.ops:
            if replaced:
                op.operands = [replaced.get(v, v) for v in op.operands]
            if op.regions:
                self.regions(op)
            key = self.key(op)
            if key is not None:
                first = known.get(key)
                if first is not None:
                    for old, new in zip(op.results, first, strict=True):
                        replaced[old] = new
                        new.name = new.name or old.name
                    continue
                known[key] = op.results
                added.append(key)
            if op in self.writes:
                self.new_memory()
            ops.append(op)
        block.ops = ops
        for key in added:  # not visible after the block
            del known[key]

    def new_memory(self) -> None:
        self.states += 1
        self.memory = self.states

    def regions(self, op: Op) -> None:
        before = self.memory
        for region in op.regions:
            if op.kind == "while" or (op.kind == "for" and op in self.writes):
                self.new_memory()  # what an earlier trip or another program wrote
            else:
                self.memory = before
            self.block(region)
        if op.kind == "while":
            self.new_memory()
        else:
            self.memory = before  # the caller moves on when the op writes

    def key(self, op: Op) -> Hashable | None:
        kind = op.kind
        info = OPS[kind]
        state = -1
        if effects.reads_memory(op):
            state = self.memory
        elif not op.results or not effects.is_pure(op):
            return None
        if op.regions and (info.group == "Control flow" or not _is_plain(op)):
            return None
        operands: Any = tuple(op.operands)
        if info.commutative and id(operands[1]) < id(operands[0]):
            operands = operands[1], operands[0]
        types = None
        if info.infer is None or getattr(op.results[0].type, "layout", None) is not None:
            types = tuple(r.type for r in op.results)
        attrs = freeze(op.attrs) if op.attrs else None
        regions = tuple(_region_key(region) for region in op.regions) if op.regions else None
        return kind, operands, types, attrs, state, regions


def _is_plain(op: Op) -> bool:
    """No effects and no control flow inside the regions."""
    return all(not inner.regions and not OPS[inner.kind].effects for region in op.regions for inner in region.ops)


def _region_key(block: Block) -> Hashable:
    """Equal for regions that compute the same: values of the region are numbered."""
    numbers: dict[Value, int] = {arg: i for i, arg in enumerate(block.args)}
    parts: list[Hashable] = [tuple(arg.type for arg in block.args)]
    for op in block.ops:
        operands = tuple(numbers.get(v, v) for v in op.operands)
        parts.append((op.kind, operands, tuple(r.type for r in op.results), freeze(op.attrs)))
        for result in op.results:
            numbers[result] = len(numbers)
    return tuple(parts)
