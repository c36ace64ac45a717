"""Puts the bodies of called functions in place of the calls.

Requires: stage ``tile`` or ``layout``; a function that (through others) calls itself is refused with IRError.
Ensures: calls are left only to functions marked ``noinline``; functions that no kernel reaches are gone. Every op
keeps its place in the source, with the call site at the end of its ``caller`` chain.

    func @f(%x: i32) {                               func @f(%x: i32) {
      %y = call %x {callee = "g"} : i32                %c = constant {value = 1} : i32    // in g, called by f
      store %p, %y                             =>      %y = add %x, %c : i32              // in g, called by f
    func @g(%a: i32) -> i32 {                          store %p, %y
      %c = constant {value = 1} : i32
      %b = add %a, %c : i32
      return %b
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.core import Block, Function, Location, Module, Op, Value, clone_op
from ..ir.table import IRError
from ..ir.types import PointerType, ScalarType


def inline(module: Module) -> Module:
    """Inlines every call that is not to a ``noinline`` function."""
    if len(module.functions) == 1 and not any(op.kind == "call" for op in module.walk()):
        return module
    for function in _callees_first(module):
        _Inliner(module).block(function.body)
    kept = [f for f in module.functions.values() if f.is_kernel] or list(module.functions.values())
    reached = {f.name for f in kept}
    for function in kept:  # grows while it is read
        for name in _callees(function):
            if name not in reached:
                reached.add(name)
                kept.append(module.functions[name])
    module.functions = {name: f for name, f in module.functions.items() if name in reached}
    return module


def inline_tensors(module: Module) -> Module:
    """Lets functions that have tensors be inlined even where ``noinline`` asks otherwise: on a GPU a tensor has no home
    to be passed in, and what threads exchange lies in shared memory, which the kernel deals out."""
    for function in module.functions.values():
        values = [*function.args, *(r for op in function.body.walk() for r in op.results)]
        types = [*(v.type for v in values), *function.result_types]
        if any(not isinstance(t, (ScalarType, PointerType)) for t in types):
            function.attrs.pop("noinline", None)
    return module


def _callees(function: Function) -> dict[str, None]:
    return {op.attrs["callee"]: None for op in function.body.walk() if op.kind == "call"}


def _callees_first(module: Module) -> list[Function]:
    """The functions in an order in which callees stand before callers."""
    done: dict[str, Function] = {}
    path: list[str] = []

    def visit(function: Function) -> None:
        if function.name in done:
            return
        if function.name in path:
            chain = " -> ".join([*path[path.index(function.name) :], function.name])
            raise IRError(f"@{function.name} calls itself ({chain}); recursion is not supported")
        path.append(function.name)
        for name in _callees(function):
            visit(module.functions[name])
        path.pop()
        done[function.name] = function

    for function in module.functions.values():
        visit(function)
    return list(done.values())


class _Inliner:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.replaced: dict[Value, Value] = {}

    def block(self, block: Block) -> None:
        replaced = self.replaced
        ops: list[Op] = []
        for op in block.ops:
            if replaced:
                op.operands = [replaced.get(v, v) for v in op.operands]
            for region in op.regions:
                self.block(region)
            if op.kind == "call":
                callee = self.module.functions[op.attrs["callee"]]
                if not callee.attrs.get("noinline"):
                    self.expand(op, callee, ops)
                    continue
            ops.append(op)
        block.ops = ops

    def expand(self, call: Op, callee: Function, ops: list[Op]) -> None:
        mapping = dict(zip(callee.args, call.operands, strict=True))
        relocate = _relocation(call.loc)
        ops.extend(clone_op(op, mapping, relocate) for op in callee.body.ops[:-1])
        for result, value in zip(call.results, callee.body.terminator.operands, strict=True):
            self.replaced[result] = mapping.get(value, value)


def _relocation(call: Location | None) -> Callable[[Location | None], Location | None]:
    """Appends the call site to a location's chain; equal locations share one copy."""
    made: dict[Location, Location] = {}

    def relocate(loc: Location | None) -> Location | None:
        if loc is None or call is None:
            return loc or call
        new = made.get(loc)
        if new is None:
            caller = relocate(loc.caller) if loc.caller is not None else call
            new = made[loc] = Location(loc.file, loc.line, loc.column, loc.function, caller)
        return new

    return relocate
