"""Loops: ``for`` over run-time ranges and compile-time sequences, ``while``, ``break`` and ``continue``.

A run-time loop carries the variables that its body assigns and that exist before it. A loop with ``break`` becomes a
``while`` that also carries whether it was broken.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

from triton.ir import Block, Value

from . import dtypes as dt
from .branches import leaving_if, run_time_condition, static_truth
from .expressions import iterate
from .generator import MISSING, Generator, statement, wrap
from .loop_values import condition as language_condition
from .loop_values import range as language_range
from .loop_values import static_range
from .statements import Continuation, Outcome, name_value, run, run_time
from .values import base_value, constexpr, describe, tensor, tuple, type_of, unwrap

MAX_STATIC_TRIPS = 100_000


class RunTimeLoop:
    """A loop whose body is emitted once. ``names`` are the carried variables, ``templates`` their values before the
    loop."""

    static = False

    def __init__(self, g: Generator, names: list[str], breaks: bool, returns: bool) -> None:
        self.flags = [name for name, wanted in (("return", returns), ("break", breaks or returns)) if wanted]
        self.branches = 0
        self.templates = [g.scope.env[n] for n in names]
        self.names = [*names, *self.flags]

    def initial_flags(self, g: Generator) -> list[Value]:
        return [g.semantic.constant(False, dt.int1).handle for _ in self.flags]

    def finish(self, g: Generator, broken: bool, returned: bool = False) -> Outcome:
        """The carried values where the body ends, and whether it ends by ``return`` and ``break``."""
        if broken and not self.flags:
            raise RuntimeError("a loop that seemed to have no exit has one")
        values = []
        for name in self.names[: len(self.templates)]:
            value = g.scope.env.get(name, MISSING)
            if value is MISSING:
                raise NameError(f"{name}: loop variable has no value at the end of the loop's body")
            values.append(value)
        for flag in self.flags:
            values.append(g.semantic.constant(returned if flag == "return" else broken, dt.int1))
        return Outcome(values)


class StaticLoop:
    """A loop whose body is emitted once for each trip."""

    static = True

    def __init__(self) -> None:
        self.names: list[str] = []
        self.branches = 0
        self.left = ""

    def finish(self, g: Generator, broken: bool, returned: bool = False) -> Outcome:
        raise g.unsupported(
            g.node, "break, continue or return under a run-time condition is not supported in a static_range loop"
        )


# Which variables a body assigns ---------------------------------------------------------------------------------------


def assigned_names(body: list[ast.stmt]) -> list[str]:
    """Names that the statements bind, in order of first binding; constexpr annotations do not count."""
    names: dict[str, None] = {}
    stack: list[Any] = list(reversed(body))
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                names.setdefault(node.id)
            continue
        if kind is ast.AnnAssign and ast.unparse(node.annotation).strip("'\"").endswith("constexpr"):
            continue
        if kind in (ast.ListComp, ast.GeneratorExp, ast.Constant):
            continue
        stack.extend(reversed(builtins.list(ast.iter_child_nodes(node))))
    return builtins.list(names)


def _carried(g: Generator, node: Any, extra: list[Any]) -> list[str]:
    found = getattr(node, "_assigned", None)
    if found is None:
        found = node._assigned = assigned_names([*extra, *node.body])
    return [n for n in found if n in g.scope.env]


def _exits(g: Generator, node: Any) -> builtins.tuple[bool, bool]:
    """Whether the loop's body may end it by ``break``, and the function by ``return``.

    Branches that compile-time conditions rule out do not count: a loop without exits keeps its simple form.
    """
    breaks = returns = False
    stored = getattr(node, "_stored", None)
    if stored is None:
        stored = node._stored = {n.id for n in ast.walk(node) if type(n) is ast.Name and type(n.ctx) is ast.Store}
    stack = [(statement, False) for statement in node.body]
    while stack:
        current, nested = stack.pop()
        kind = type(current)
        if kind is ast.Return:
            returns = True
        elif kind is ast.Break:
            breaks = breaks or not nested
        elif kind is ast.If:
            truth = _known_truth(g, current.test, stored)
            taken = [*current.body, *current.orelse] if truth is None else current.body if truth else current.orelse
            stack.extend((statement, nested) for statement in taken)
        else:
            inner = nested or kind in (ast.For, ast.While)
            stack.extend((s, inner) for s in [*getattr(current, "body", ()), *getattr(current, "orelse", ())])
    return breaks, returns


_STATIC = (
    ast.Name,
    ast.Constant,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.expr_context,
    ast.cmpop,
    ast.boolop,
    ast.unaryop,
)


def _known_truth(g: Generator, test: ast.expr, stored: set[str]) -> bool | None:
    """The truth of a condition made of compile-time variables that the loop leaves alone; None for any other."""
    for inner in ast.walk(test):
        if not isinstance(inner, _STATIC):
            return None
        if type(inner) is ast.Name:
            value = g.scope.env.get(inner.id)
            if inner.id in stored or not isinstance(value, constexpr):
                return None
    return static_truth(g, g.visit(test), test)


def _after(g: Generator, node: Any, loop: RunTimeLoop, returned: Value | None, rest: Continuation) -> Outcome | None:
    """After a loop that may have been left by ``return``: the rest of the function runs only if it was not."""
    if returned is None:
        return None
    leave = ast.copy_location(ast.Return(value=None), node)
    for outer in g.scope.loops:
        outer.branches += 1
    outcome = leaving_if(g, node, tensor(returned, dt.int1), [leave], [], rest)
    for outer in g.scope.loops:
        outer.branches -= 1
    return outcome


def _enter(g: Generator, names: list[str]) -> list[Value]:
    """Makes the carried variables run-time values and gives their IR values."""
    leaves: list[Value] = []
    for name in names:
        value = g.scope.env[name] = run_time(g, g.scope.env[name])
        if isinstance(value, base_value):
            value.flatten(leaves)
    return leaves


def _bind(g: Generator, loop: RunTimeLoop, values: list[Value]) -> None:
    """Gives the carried variables these IR values inside a region."""
    leaves = iter(values)
    for name, template in zip(loop.names, loop.templates, strict=False):
        g.scope.env[name] = template.rebuild(leaves) if isinstance(template, base_value) else template


def _run_body(g: Generator, loop: RunTimeLoop, node: Any) -> list[Value]:
    """Emits the body and gives what it yields."""
    g.scope.loops.append(loop)
    outcome = run(g, node.body, None)
    g.at(node)
    if outcome is None:
        outcome = loop.finish(g, False)
    g.scope.loops.pop()
    leaves: list[Value] = []
    for name, template, value in zip(loop.names, loop.templates, outcome.values, strict=False):
        _check_carried(g, name, template, value, leaves)
    for flag in outcome.values[len(loop.templates) :]:
        leaves.append(g.semantic.to_tensor(flag).handle)
    return leaves


def _check_carried(g: Generator, name: str, before: Any, after: Any, leaves: list[Value]) -> None:
    after = run_time(g, after)
    if type(before) is tensor and type(after) is tensor and before.type != after.type:
        known = g.semantic.known(after)
        scalars = not after.type.is_block() and not before.type.is_block() and not before.dtype.is_ptr()
        if known is not None and scalars and (not isinstance(known, float) or before.dtype.is_floating()):
            after = g.semantic.literal(known, before.type, name)
    same = isinstance(before, base_value) and isinstance(after, base_value) and type(before) is type(after)
    if same and type_of(before) == type_of(after):
        after.flatten(leaves)
    elif before is not after and not (not isinstance(before, base_value) and before == after):
        raise TypeError(
            f"Loop-carried variable {name} has initial type {_kind(before)} but is re-assigned to {_kind(after)} in "
            "the loop's body; it must keep its type and shape"
        )


def _kind(value: Any) -> str:
    return describe(value).removeprefix("a run-time ").removeprefix("a tensor ")


def _leave(g: Generator, loop: RunTimeLoop, before: dict[str, Any], results: list[Value], node: Any) -> None:
    """Variables after the loop: the carried ones have its results; those first assigned inside are gone."""
    inside = g.scope.env
    g.scope.env = before
    for name in inside:
        if name not in before:
            g.scope.lost[name] = (
                f"it is first assigned inside the loop at line {g.scope.first_line + node.lineno - 1}, "
                "which may not run"
            )
    _bind(g, loop, results)
    for name in loop.names:
        value = before.get(name)
        if type(value) is tensor:
            name_value(value.handle, name)


# For ----------------------------------------------------------------------------------------------------------------


@statement(ast.For)
def visit_for(g: Generator, node: ast.For, rest: Continuation) -> Outcome | None:
    if node.orelse:
        raise g.unsupported(node.orelse[0], "else after a loop is not supported")
    iterable = g.visit(node.iter)
    g.at(node)
    if isinstance(iterable, language_range):
        return _run_time_for(g, node, iterable, rest)
    if isinstance(iterable, static_range):
        low, high, step = (
            g.semantic.constexpr_int(getattr(iterable, n), f"static_range: {n}") for n in ("start", "end", "step")
        )
        trips = builtins.range(low, high, step)
        if len(trips) > MAX_STATIC_TRIPS:
            raise ValueError(f"static_range: {len(trips)} trips are too many to emit one by one")
        return _static_for(g, node, trips, rest)
    if isinstance(iterable, (constexpr, tuple, list, builtins.tuple)):
        return _static_for(g, node, iterate(g, iterable, node.iter), rest)
    raise TypeError(f"for: expected range, tl.range, tl.static_range or a tuple, got {describe(iterable)}")


def _static_for(g: Generator, node: ast.For, members: Any, rest: Continuation) -> Outcome | None:
    loop = StaticLoop()
    for member in members:
        g.scope.loops.append(loop)
        # The target is a compile-time value, unlike a plain assignment.
        if type(node.target) is ast.Name:
            g.scope.env[node.target.id] = wrap(member)
        else:
            g.assign(node.target, wrap(member))
        outcome = run(g, node.body, None)
        g.scope.loops.pop()
        if outcome is not None and loop.left == "":
            return outcome
        if loop.left == "break":
            break
        loop.left = ""
    return None


def _bounds(g: Generator, given: language_range) -> list[tensor]:
    bounds = []
    for name, value in (("start", given.start), ("end", given.end), ("step", given.step)):
        value = unwrap(value)
        bound = g.semantic.to_tensor(value, f"range: {name}")
        if bound.type.is_block() and bound.type.numel == 1:
            bound = g.scalar_of(bound)
        if bound.type.is_block() or not bound.dtype.is_int() or bound.dtype.is_bool():
            raise TypeError(f"range: {name}: expected an integer, got {describe(value)}")
        bounds.append(bound)
    common = bounds[0].dtype
    for bound in bounds[1:]:
        common = g.semantic.promoted(common, bound.dtype, False, "range")
    if g.semantic.known(bounds[2]) == 0:
        raise ValueError("range: step must not be 0")
    return [g.semantic.cast(b, common) for b in bounds]


def _loop_attributes(g: Generator, given: language_range) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for name, source in (("num_stages", given.num_stages), ("unroll", given.loop_unroll_factor)):
        value = unwrap(source)
        if value is not None:
            attrs[name] = g.semantic.constexpr_int(value, f"range: {name}")
    for name in ("flatten", "warp_specialize", "disallow_acc_multi_buffer", "disable_licm"):
        if unwrap(getattr(given, name)):
            attrs[name] = True
    return attrs


def _run_time_for(g: Generator, node: ast.For, given: language_range, rest: Continuation) -> Outcome | None:
    if type(node.target) is not ast.Name:
        raise g.unsupported(node.target, "the variable of a range loop must be a name")
    bounds = _bounds(g, given)
    names = [n for n in _carried(g, node, []) if n != node.target.id]
    inits = _enter(g, names)
    loop = RunTimeLoop(g, names, *_exits(g, node))
    if loop.flags:
        return _after(g, node, loop, _breaking_for(g, node, loop, bounds, inits), rest)
    before = g.scope.env
    g.scope.env = dict(before)
    counter_type = bounds[0].type
    body = Block([counter_type.ir, *[v.type for v in inits]], [node.target.id])
    _name_arguments(body, loop, 1)
    with g.inside(body):
        g.scope.env[node.target.id] = tensor(body.args[0], counter_type)
        _bind(g, loop, body.args[1:])
        leaves = _run_body(g, loop, node)
        g.builder.emit("yield", leaves, [])
    operands = [b.handle for b in bounds] + inits
    results = g.builder.emit("for", operands, [v.type for v in inits], _loop_attributes(g, given), [body]).results
    _leave(g, loop, before, results, node)
    return None


def _name_arguments(block: Block, loop: RunTimeLoop, start: int) -> None:
    position = start
    for name, template in zip(loop.names, loop.templates, strict=False):
        if type(template) is tensor:
            block.args[position].name = name
            position += 1
        elif isinstance(template, base_value):
            leaves: list[Value] = []
            template.flatten(leaves)
            position += len(leaves)


def _breaking_for(
    g: Generator, node: ast.For, loop: RunTimeLoop, bounds: list[tensor], inits: list[Value]
) -> Value | None:
    """``for`` with ``break``: a while over the counter, the carried variables and the flags. Gives the return flag."""
    low, high, step = bounds
    before = g.scope.env
    counter = low.type
    operands = [low.handle, *inits, *loop.initial_flags(g)]

    def test(args: list[Value]) -> Any:
        at, known = tensor(args[0], counter), g.semantic.known(step)
        up = g.semantic.compare("lt", at, high, "range")
        if known is not None:
            more = up if known > 0 else g.semantic.compare("gt", at, high, "range")
        else:
            down = g.semantic.compare("gt", at, high, "range")
            more = g.semantic.select(g.semantic.compare("gt", step, 0, "range"), up, down)
        going = g.semantic.logical_not(tensor(args[-1], dt.int1))
        return g.semantic.logical("and", more, going, "for"), args

    def body(args: list[Value]) -> list[Value]:
        g.scope.env[typed_name] = tensor(args[0], counter)
        _bind(g, loop, args[1:])
        leaves = _run_body(g, loop, node)
        return [g.semantic.add(tensor(args[0], counter), step).handle, *leaves]

    assert isinstance(node.target, ast.Name)
    typed_name = node.target.id
    results = _emit_while(g, loop, 1, operands, test, body, {})
    _leave(g, loop, before, results[1:], node)
    return results[-2] if len(loop.flags) == 2 else None


def _emit_while(
    g: Generator, loop: RunTimeLoop, start: int, operands: list[Value], test: Any, body: Any, attrs: dict[str, Any]
) -> list[Value]:
    """The while op. ``test(args)`` gives the condition and what the body gets; ``body(args)`` what the next test gets.

    ``start`` is the place of the first carried variable among the operands.
    """
    outer = g.scope.env
    first = Block([v.type for v in operands])
    _name_arguments(first, loop, start)
    g.scope.env = dict(outer)
    with g.inside(first):
        holds, passed = test(first.args)
        g.builder.emit("condition", [holds.handle, *passed], [])
    types = [v.type for v in passed]
    second = Block(types)
    _name_arguments(second, loop, start)
    g.scope.env = dict(outer)
    with g.inside(second):
        g.builder.emit("yield", body(second.args), [])
    return g.builder.emit("while", operands, types, attrs, [first, second]).results


# While --------------------------------------------------------------------------------------------------------------


@statement(ast.While)
def visit_while(g: Generator, node: ast.While, rest: Continuation) -> Outcome | None:
    if node.orelse:
        raise g.unsupported(node.orelse[0], "else after a loop is not supported")
    names = _carried(g, node, [ast.Expr(node.test)])
    g.at(node)
    inits = _enter(g, names)
    loop = RunTimeLoop(g, names, *_exits(g, node))
    operands = [*inits, *loop.initial_flags(g)]
    before = g.scope.env
    attrs: dict[str, Any] = {}
    fresh: dict[str, Any] = {}  # what `:=` in the test assigns for the first time

    def test(args: list[Value]) -> Any:
        _bind(g, loop, args)
        value = wrap(g.visit(node.test))
        if isinstance(value, language_condition):
            if unwrap(value.disable_licm):
                attrs["disable_licm"] = True
            value = wrap(value.condition)
        holds = run_time_condition(g, value, node.test, "while")
        if holds is None:
            holds = g.semantic.constant(static_truth(g, value, node.test), dt.int1)
        g.at(node)
        passed: list[Value] = []
        for name, template in zip(loop.names, loop.templates, strict=False):
            _check_carried(g, name, template, g.scope.env[name], passed)
        if loop.flags:
            holds = g.semantic.logical("and", holds, g.semantic.logical_not(tensor(args[-1], dt.int1)), "while")
            passed.extend(args[len(inits) :])
        for name, assigned in g.scope.env.items():
            if name not in before and isinstance(assigned, base_value):
                fresh[name] = assigned
                assigned.flatten(passed)
        return holds, passed

    def body(args: list[Value]) -> list[Value]:
        _bind(g, loop, args)
        _bind_fresh(g, fresh, args[len(operands) :])
        return _run_body(g, loop, node)

    results = _emit_while(g, loop, 0, operands, test, body, attrs)
    _leave(g, loop, before, results, node)
    _bind_fresh(g, fresh, results[len(operands) :])
    return _after(g, node, loop, results[len(operands) - 2] if len(loop.flags) == 2 else None, rest)


def _bind_fresh(g: Generator, fresh: dict[str, Any], values: list[Value]) -> None:
    leaves = iter(values)
    for name, template in fresh.items():
        g.scope.env[name] = template.rebuild(leaves)


# Break and continue -------------------------------------------------------------------------------------------------


@statement(ast.Break)
def visit_break(g: Generator, node: ast.Break, rest: Continuation) -> Outcome:
    return _leave_trip(g, node, "break")


@statement(ast.Continue)
def visit_continue(g: Generator, node: ast.Continue, rest: Continuation) -> Outcome:
    return _leave_trip(g, node, "continue")


def _leave_trip(g: Generator, node: Any, word: str) -> Outcome:
    loop = g.scope.loops[-1]
    g.at(node)
    if not loop.static:
        return loop.finish(g, word == "break")  # type: ignore[no-any-return]
    if loop.branches:
        raise g.unsupported(node, f"{word} under a run-time condition is not supported in a static_range loop")
    loop.left = word
    return Outcome([])
