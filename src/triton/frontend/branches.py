"""Functions' bodies, return, if and conditional expressions.

Where the two branches of a run-time ``if`` may leave the enclosing body (return, continue, break), what follows the
``if`` is emitted inside both branches, up to the end of that body: every block then ends where it should and no jump
is needed.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

from triton.ir import Block, Value, is_pure

from .generator import MISSING, Generator, expression, statement, wrap
from .statements import Continuation, Outcome, name_value, run, run_rest
from .values import base_value, constexpr, describe, tensor, tuple, type_of, unwrap

MAX_COPIES = 256
"""How often statements after conditional returns may be emitted before the function counts as too tangled."""


def run_function(g: Generator, tree: ast.FunctionDef) -> Any:
    """The value that the function returns; None (as constexpr) at its end."""
    outcome = run(g, tree.body, None)
    return constexpr(None) if outcome is None else outcome.values[0]


@statement(ast.Return)
def visit_return(g: Generator, node: ast.Return, rest: Continuation) -> Outcome:
    for loop in reversed(g.scope.loops):
        if loop.static and loop.branches:
            raise g.unsupported(node, "return inside a static_range under a run-time condition is not supported")
        if not loop.static:
            if node.value is not None:
                message = (
                    "return of a value inside a loop is not supported; leave the loop with break and return after it"
                )
                raise g.unsupported(node, message)
            if loop is not g.scope.loops[-1]:
                raise g.unsupported(node, "return inside a static_range within another loop is not supported")
            g.at(node)
            return loop.finish(g, True, True)  # type: ignore[no-any-return]
    value = constexpr(None) if node.value is None else wrap(g.visit(node.value))
    g.at(node)
    return Outcome([value])


def finish(g: Generator) -> Outcome:
    """What a body gives when its end is reached."""
    return g.scope.loops[-1].finish(g, False) if g.scope.loops else Outcome([constexpr(None)])


# If -----------------------------------------------------------------------------------------------------------------


def static_truth(g: Generator, value: Any, node: Any) -> bool:
    """The truth of a compile-time value."""
    value = wrap(value)
    if isinstance(value, tensor):
        g.at(node)
        raise TypeError(f"the condition must be known at compile time, got {describe(value)}")
    return bool(value.values) if isinstance(value, tuple) else bool(unwrap(value))


def run_time_condition(g: Generator, value: Any, node: Any, construct: str) -> tensor | None:
    """A scalar boolean; None for a compile-time value."""
    value = wrap(value)
    if not isinstance(value, tensor):
        return None
    g.at(node)
    if value.type.is_block():
        if value.type.numel != 1:
            raise TypeError(
                f"{construct}: the condition must be a scalar, got {describe(value)}; use tl.where to choose by element"
            )
        value = g.scalar_of(value)
    if value.dtype.is_ptr():
        raise TypeError(f"{construct}: the condition must be a number, got {describe(value)}")
    return g.semantic.truth(value, construct)


@statement(ast.If)
def visit_if(g: Generator, node: ast.If, rest: Continuation) -> Outcome | None:
    value = g.visit(node.test)
    condition = run_time_condition(g, value, node.test, "if")
    if condition is None:
        return run(g, node.body if static_truth(g, value, node.test) else node.orelse, rest)
    for loop in g.scope.loops:
        loop.branches += 1
    if escapes(node):
        outcome: Outcome | None = leaving_if(g, node, condition, node.body, node.orelse, rest)
    else:
        outcome = None
        _plain_if(g, node, condition)
    for loop in g.scope.loops:
        loop.branches -= 1
    return outcome


def escapes(node: Any) -> bool:
    """Whether the statement holds a return, or a break or continue of a loop outside it."""
    found = getattr(node, "_escapes", None)
    if found is None:
        found = node._escapes = _escapes(node, False)
    return found


def _escapes(node: Any, in_loop: bool) -> bool:
    stack = [(node, in_loop)]
    while stack:
        current, inner = stack.pop()
        kind = type(current)
        if kind is ast.Return or (kind in (ast.Break, ast.Continue) and not inner):
            return True
        if isinstance(current, ast.stmt):
            nested = inner or kind in (ast.For, ast.While)
            stack.extend((child, nested) for child in _child_statements(current))
    return False


def _child_statements(node: Any) -> list[ast.stmt]:
    return [*getattr(node, "body", ()), *getattr(node, "orelse", ())]


def _plain_if(g: Generator, node: ast.If, condition: tensor) -> None:
    before = g.scope.env
    envs, blocks = [], []
    for body in (node.body, node.orelse):
        g.scope.env = dict(before)
        block = Block()
        with g.inside(block):
            run(g, body, None)
        envs.append(g.scope.env)
        blocks.append(block)
    g.scope.env = before
    g.at(node)
    names = [
        n for n in envs[0] if envs[0][n] is not before.get(n, MISSING) or envs[1].get(n, MISSING) is not envs[0][n]
    ]
    names += [n for n in envs[1] if n not in envs[0]]
    kept, first, second = [], [], []
    for name in names:
        a, b = envs[0].get(name, MISSING), envs[1].get(name, MISSING)
        if a is b:
            before[name] = a
        elif a is MISSING or b is MISSING:
            before.pop(name, None)
            g.scope.lost[name] = (
                f"only one branch of the if at line {g.scope.first_line + node.lineno - 1} gives it a value"
            )
        else:
            kept.append(name)
            first.append(a)
            second.append(b)
    merged = emit_if(g, condition, blocks, first, second, kept)
    for name, value in zip(kept, merged, strict=True):
        before[name] = value
        if type(value) is tensor:
            name_value(value.handle, name)


def leaving_if(
    g: Generator, node: Any, condition: tensor, yes: list[ast.stmt], no: list[ast.stmt], rest: Continuation
) -> Outcome:
    """An if of which a branch may leave the enclosing body; what follows it goes into both branches."""
    g.copies += 1
    if g.copies > MAX_COPIES:
        raise g.unsupported(node, "too many conditional returns, breaks or continues in one function")
    before = g.scope.env
    outcomes, blocks = [], []
    for body in (yes, no):
        g.scope.env = dict(before)
        block = Block()
        with g.inside(block):
            outcome = run(g, body, rest)
            if outcome is None:
                outcome = run_rest(g, rest)
            if outcome is None:
                outcome = finish(g)
        outcomes.append(outcome)
        blocks.append(block)
    g.scope.env = before
    g.at(node)
    names = g.scope.loops[-1].names if g.scope.loops else ["the return value"]
    return Outcome(emit_if(g, condition, blocks, outcomes[0].values, outcomes[1].values, names))


def emit_if(
    g: Generator, condition: tensor, blocks: list[Block], first: list[Any], second: list[Any], names: list[str]
) -> list[Any]:
    """The if op around two finished blocks that give these values; returns the merged values."""
    leaves: list[list[Value]] = [[], []]
    templates = []
    for name, a, b in zip(names, first, second, strict=True):
        templates.append(_merge(g, name, a, b, blocks, leaves))
    for block, values in zip(blocks, leaves, strict=True):
        with g.inside(block):
            g.builder.emit("yield", values, [])
    if not leaves[0] and all(len(block.ops) == 1 for block in blocks):
        return [t.rebuild(iter(())) if isinstance(t, base_value) else t for t in templates]
    types = [v.type for v in leaves[0]]
    results = iter(g.builder.emit("if", [condition.handle], types, None, blocks).results)
    return [t.rebuild(results) if isinstance(t, base_value) else t for t in templates]


def _merge(g: Generator, name: str, a: Any, b: Any, blocks: list[Block], leaves: list[list[Value]]) -> Any:
    """Adds the leaves of two values to merge; gives one of them as template for the result."""
    if a is b:
        return _identical(a, leaves)
    if isinstance(a, constexpr) and isinstance(b, constexpr) and _equal_constants(a.value, b.value):
        return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a.values) == len(b.values):
        members = [
            _merge(g, f"{name}[{i}]", x, y, blocks, leaves)
            for i, (x, y) in enumerate(zip(a.values, b.values, strict=True))
        ]
        return a.like(members)
    a, b = _as_tensors(g, a, b, blocks)
    alike = isinstance(a, base_value) and not isinstance(a, constexpr) and type(a) is type(b)
    if alike and type_of(a) == type_of(b):
        a.flatten(leaves[0])
        b.flatten(leaves[1])
        if len(leaves[0]) == len(leaves[1]):
            return a
    raise TypeError(f"Mismatched type for {name} between then block ({describe(a)}) and else block ({describe(b)})")


def _identical(a: Any, leaves: list[list[Value]]) -> Any:
    """A value that both branches leave as it was needs no result of the if."""
    return _Kept(a) if isinstance(a, base_value) and not isinstance(a, constexpr) else a


class _Kept(base_value):
    """A template that stands for a value which passes through unchanged."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def rebuild(self, leaves: Any) -> Any:
        return self.value


def _equal_constants(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and a == b)


def _as_tensors(g: Generator, a: Any, b: Any, blocks: list[Block]) -> builtins.tuple[Any, Any]:
    """Compile-time numbers as run-time ones of the other side's type, inside their blocks."""
    pair = [a, b]
    numbers = [isinstance(v, constexpr) and isinstance(v.value, (bool, int, float)) for v in pair]
    for i, block in enumerate(blocks):
        other = pair[1 - i]
        if numbers[i] and (numbers[1 - i] or isinstance(other, tensor)):
            with g.inside(block):
                if isinstance(other, tensor) and not other.type.is_block() and not other.dtype.is_ptr():
                    fits = not isinstance(pair[i].value, float) or other.dtype.is_floating()
                    pair[i] = (
                        g.semantic.literal(pair[i].value, other.type, "if") if fits else g.semantic.to_tensor(pair[i])
                    )
                else:
                    pair[i] = g.semantic.to_tensor(pair[i])
    return pair[0], pair[1]


# Conditional expression ---------------------------------------------------------------------------------------------

_CHEAP = 8


@expression(ast.IfExp)
def visit_ifexp(g: Generator, node: ast.IfExp) -> Any:
    value = g.visit(node.test)
    condition = run_time_condition(g, value, node.test, "conditional expression")
    if condition is None:
        return g.visit(node.body if static_truth(g, value, node.test) else node.orelse)
    blocks, values = [], []
    for branch in (node.body, node.orelse):
        block = Block()
        with g.inside(block):
            values.append(wrap(g.visit(branch)))
        blocks.append(block)
    g.at(node)
    a, b = values
    if isinstance(a, (tensor, constexpr)) and isinstance(b, (tensor, constexpr)):
        a, b = _alike(g, a, b, blocks)
    cheap = all(
        len(block.ops) <= _CHEAP and all(is_pure(op) and not op.regions for op in block.ops) for block in blocks
    )
    if cheap and isinstance(a, tensor) and isinstance(b, tensor) and a.type == b.type:
        for block in blocks:
            g.builder.block.ops.extend(block.ops)
        handle = g.semantic.op("select", [condition.handle, a.handle, b.handle], a.type.ir)
        return tensor(handle, a.type)
    return emit_if(g, condition, blocks, [a], [b], ["conditional expression"])[0]


def _alike(g: Generator, a: Any, b: Any, blocks: list[Block]) -> builtins.tuple[Any, Any]:
    """Both branches as tensors of one type, when promotion of scalars and broadcasting can do it."""
    if isinstance(a, constexpr) and isinstance(b, constexpr) and _equal_constants(a.value, b.value):
        return a, b
    a, b = _as_tensors(g, a, b, blocks)
    if not (isinstance(a, tensor) and isinstance(b, tensor)) or a.type == b.type:
        return a, b
    if a.dtype.is_ptr() or b.dtype.is_ptr() or a.type.shape != b.type.shape:
        return a, b
    common = g.semantic.promoted(a.dtype, b.dtype, False, "conditional expression")
    pair = []
    for block, value in zip(blocks, (a, b), strict=True):
        with g.inside(block):
            pair.append(g.semantic.cast(value, common))
    return pair[0], pair[1]


Generator.run_function = run_function
Generator.static_truth = static_truth
