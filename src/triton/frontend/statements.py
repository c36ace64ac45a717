"""Statements without control flow, and the run over a list of them."""

from __future__ import annotations

import ast
from typing import Any

from triton.ir import Op, Value

from .expressions import binary, iterate
from .generator import STATEMENTS, Generator, _syntax_name, statement, wrap
from .values import base_value, constexpr, describe, tensor, tuple, unwrap


class Outcome:
    """A body that has been left before the end of its list: ``values`` is what it gives (return value, loop
    variables)."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values


Continuation = Any
"""What is still to run after the present list: None, or (statements, index, continuation)."""


def run(g: Generator, body: list[ast.stmt], rest: Continuation, start: int = 0) -> Outcome | None:
    """Runs ``body`` from ``start``; ``rest`` follows it up to the end of the enclosing function or loop body.

    Gives None when the end of ``body`` is reached, and an Outcome when it was left: then ``rest`` has been dealt with.
    """
    for index in range(start, len(body)):
        node = body[index]
        handler = STATEMENTS.get(type(node))
        if handler is None:
            raise g.unsupported(node, f"{_syntax_name(node)} is not supported in a kernel")
        outcome = handler(g, node, (body, index + 1, rest))
        if outcome is not None:
            return outcome  # type: ignore[no-any-return]
    return None


def run_rest(g: Generator, rest: Continuation) -> Outcome | None:
    """Runs a continuation to its end."""
    while rest is not None:
        body, index, rest = rest
        outcome = run(g, body, rest, index)
        if outcome is not None:
            return outcome
    return None


# Assignment ---------------------------------------------------------------------------------------------------------


def assign(g: Generator, target: Any, value: Any) -> None:
    """Binds ``value`` to a target. Numbers become run-time values, as every variable may change in a loop or branch."""
    kind = type(target)
    if kind is ast.Name:
        g.scope.env[target.id] = value = run_time(g, value)
        if type(value) is tensor:
            name_value(value.handle, target.id)
    elif kind is ast.Tuple or kind is ast.List:
        _unpack(g, target, value)
    elif kind is ast.Attribute:
        owner = g.visit(target.value)
        if not hasattr(type(owner), "__triton_aggregate__"):
            g.at(target)
            raise TypeError(f"cannot set attribute {target.attr!r} of {describe(owner)}")
        setattr(owner, target.attr, value)
    elif kind is ast.Subscript:
        raise g.unsupported(
            target, "assigning to part of a tensor is not supported; use tl.where, or tl.store for memory"
        )
    else:
        raise g.unsupported(target, f"cannot assign to {_syntax_name(target)}")


def name_value(handle: Value, name: str) -> None:
    """Names an IR value after the variable that holds it first; constants are shared and stay nameless."""
    op = handle.owner
    if not handle.name and isinstance(op, Op) and op.kind != "constant":
        handle.name = name


def _unpack(g: Generator, target: Any, value: Any) -> None:
    members = iterate(g, value, target)
    stars = [i for i, t in enumerate(target.elts) if type(t) is ast.Starred]
    if stars:
        before, after = stars[0], len(target.elts) - stars[0] - 1
        if len(members) < before + after:
            g.at(target)
            raise ValueError(f"expected at least {before + after} values to unpack, got {len(members)}")
        middle = tuple(members[before : len(members) - after])
        members = [*members[:before], middle, *members[len(members) - after :]]
    elif len(members) != len(target.elts):
        g.at(target)
        raise ValueError(f"expected {len(target.elts)} values to unpack, got {len(members)}")
    for inner, member in zip(target.elts, members, strict=True):
        assign(g, inner.value if type(inner) is ast.Starred else inner, member)


def run_time(g: Generator, value: Any) -> Any:
    """What a plain assignment stores: numbers as tensors, tuples member by member, anything else as it is."""
    if type(value) is tensor:
        return value
    if isinstance(value, tuple):
        return value.like([run_time(g, v) for v in value.values])
    plain = unwrap(value) if isinstance(value, constexpr) else value
    if isinstance(plain, (bool, int, float)):
        return g.semantic.to_tensor(plain)
    return wrap(value)


@statement(ast.Assign)
def visit_assign(g: Generator, node: ast.Assign, rest: Continuation) -> None:
    value = wrap(g.visit(node.value))
    g.at(node)
    for target in node.targets:
        assign(g, target, value)


@statement(ast.AnnAssign)
def visit_annassign(g: Generator, node: ast.AnnAssign, rest: Continuation) -> None:
    if node.value is None:
        return
    value = wrap(g.visit(node.value))
    g.at(node)
    annotation = ast.unparse(node.annotation)
    if not annotation.strip("'\"").endswith("constexpr"):
        assign(g, node.target, value)
        return
    if type(node.target) is not ast.Name:
        raise g.unsupported(node.target, "only a name can be annotated constexpr")
    if isinstance(value, tensor) and not value.type.is_block():
        known = g.semantic.known(value)
        value = value if known is None else constexpr(known)
    g.scope.env[node.target.id] = value if isinstance(value, base_value) else constexpr(value)


@statement(ast.AugAssign)
def visit_augassign(g: Generator, node: ast.AugAssign, rest: Continuation) -> None:
    if type(node.target) is ast.Name:
        old = g.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
    elif type(node.target) is ast.Attribute:
        old = g.visit(node.target)
    else:
        raise g.unsupported(
            node.target, "assigning to part of a tensor is not supported; use tl.where, or tl.store for memory"
        )
    value = g.visit(node.value)
    g.at(node)
    assign(g, node.target, binary(g, type(node.op), old, value))


@statement(ast.Expr)
def visit_expr(g: Generator, node: ast.Expr, rest: Continuation) -> None:
    if type(node.value) is ast.Constant:  # a docstring
        return
    value = g.visit(node.value)
    if type(value) is tensor and type(node.value) is ast.Call and node.value.args:
        _keep_promise(g, node.value.args[0], value)


def _keep_promise(g: Generator, argument: Any, value: tensor) -> None:
    """``tl.multiple_of(x, 16)`` as a statement: from here on the variable ``x`` is the value with the promise."""
    op = value.handle.owner
    if type(argument) is ast.Name and isinstance(op, Op) and op.kind == "hint":
        old = g.scope.env.get(argument.id)
        if type(old) is tensor and old.handle is op.operands[0]:
            g.scope.env[argument.id] = value


@statement(ast.Pass)
def visit_pass(g: Generator, node: ast.Pass, rest: Continuation) -> None:
    return None


@statement(ast.Delete)
def visit_delete(g: Generator, node: ast.Delete, rest: Continuation) -> None:
    for target in node.targets:
        if type(target) is not ast.Name or target.id not in g.scope.env:
            raise g.unsupported(target, "del takes the name of a variable of the kernel")
        del g.scope.env[target.id]
        g.scope.lost[target.id] = "it was deleted"


@statement(ast.Assert)
def visit_assert(g: Generator, node: ast.Assert, rest: Continuation) -> None:
    test = wrap(g.visit(node.test))
    message = unwrap(g.visit(node.msg)) if node.msg is not None else ""
    g.at(node)
    g.emit_assert(test, message)


@statement(ast.FunctionDef)
def visit_functiondef(g: Generator, node: ast.FunctionDef, rest: Continuation) -> None:
    raise g.unsupported(
        node, f"{node.name}: a function cannot be defined inside a jitted function; define it at module level"
    )


Generator.assign = assign
