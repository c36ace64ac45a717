"""Calls: jitted functions walked in place, functions of their own for ``noinline``, operations of the language,
Python names."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from triton.ir import Block, Function, Value

from .dtypes import base_type
from .expressions import iterate
from .generator import BoundMethod, Generator, Scope, expression, wrap
from .source import ConstexprFunction, JITCallable
from .values import base_value, constexpr, describe, is_builtin, tensor, tuple, type_of, unwrap

MAX_DEPTH = 100
"""Nested calls of one jitted function beyond which it counts as endless recursion."""


@expression(ast.Call)
def visit_call(g: Generator, node: ast.Call) -> Any:
    fn = g.visit(node.func)
    args: list[Any] = []
    for arg in node.args:
        if type(arg) is ast.Starred:
            args.extend(iterate(g, g.visit(arg.value), arg))
        else:
            args.append(g.visit(arg))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise g.unsupported(keyword.value, "** in a call is not supported in a kernel")
        kwargs[keyword.arg] = g.visit(keyword.value)
    g.at(node)
    return call(g, fn, args, kwargs)


def call(g: Generator, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Calls any value that a kernel can call, at the current place."""
    if isinstance(fn, BoundMethod):
        return call(g, fn.fn, [fn.receiver, *args], kwargs)
    if isinstance(fn, constexpr):
        fn = fn.value
    if isinstance(fn, JITCallable):
        if isinstance(fn, ConstexprFunction) or not hasattr(fn, "params"):
            return call_constexpr_function(g, fn, args, kwargs)
        return call_jitted(g, fn, args, kwargs)
    if is_builtin(fn):
        return wrap(fn(*args, _semantic=g.semantic, **kwargs))
    python = getattr(fn, "_kernel_call", None)
    if python is not None:
        return wrap(python(g, *args, **kwargs))
    if isinstance(fn, type):
        return call_class(g, fn, args, kwargs)
    inner = getattr(fn, "fn", None)
    if isinstance(inner, JITCallable) or (inner is not None and isinstance(getattr(inner, "fn", None), JITCallable)):
        raise TypeError(
            f"{inner.__name__}: an autotuned kernel cannot be called from another kernel; call the function inside"
        )
    return call_python(g, fn, args, kwargs)


def call_python(g: Generator, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function of Python's ``math`` module, or a method of a compile-time value, on compile-time values."""
    name = getattr(fn, "__name__", type(fn).__name__)
    if not callable(fn):
        raise TypeError(f"{describe(fn)} is not callable")
    owner = getattr(fn, "__self__", None)
    pure = getattr(fn, "__module__", None) == "math" or isinstance(
        owner, (str, bytes, int, float, builtins.tuple, list, base_type)
    )
    if isinstance(owner, base_value) or str(getattr(fn, "__module__", "")).startswith("triton."):
        return wrap(fn(*args, **kwargs))
    if pure:
        plain = [unwrap(a) for a in args]
        for value in plain:
            if isinstance(value, tensor):
                raise TypeError(f"{name}: works on compile-time values only, got {describe(value)}")
        return wrap(fn(*plain, **{k: unwrap(v) for k, v in kwargs.items()}))
    if isinstance(fn, FunctionType):
        raise TypeError(
            f"{name} is a plain Python function: decorate it with @triton.jit, or with @triton.constexpr_function to "
            "run it at compile time"
        )
    raise TypeError(f"{name} cannot be called in a kernel")


def call_class(g: Generator, cls: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if issubclass(cls, builtins.tuple) and hasattr(cls, "_fields"):
        made = cls(*args, **kwargs)
        return tuple([wrap(v) for v in made], cls)
    if issubclass(cls, constexpr):
        (value,) = args
        if isinstance(value, tensor):
            known = g.semantic.known(value)
            if known is None or value.type.is_block():
                raise TypeError(f"constexpr: expected a compile-time value, got {describe(value)}")
            value = known
        return constexpr(unwrap(value))
    if issubclass(cls, tuple):
        return tuple(iterate(g, args[0], g.node) if len(args) == 1 else args)
    if issubclass(cls, base_type):
        return cls(*[unwrap(a) for a in args], **{k: unwrap(v) for k, v in kwargs.items()})
    if issubclass(cls, base_value):
        if hasattr(cls, "__triton_aggregate__"):
            return cls(*args, _semantic=g.semantic, _generator=g, **kwargs)
        return cls(*args, **kwargs)
    if hasattr(cls, "__triton_aggregate__"):
        return cls(*args, _semantic=g.semantic, _generator=g, **kwargs)
    raise TypeError(f"{cls.__name__} cannot be called in a kernel")


def call_constexpr_function(g: Generator, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    for value in (*args, *kwargs.values()):
        if isinstance(value, tensor):
            raise TypeError(f"{fn.__name__}: a constexpr function takes compile-time values, got {describe(value)}")
    return wrap(fn(*args, _semantic=g.semantic, **kwargs))


# Jitted functions ---------------------------------------------------------------------------------------------------


def bind(fn: JITCallable, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Values by parameter name, defaults filled in. Raises TypeError as Python would."""
    name, env, given = fn.__name__, {}, list(args)
    for param in fn.params:
        kind = param._param.kind
        if kind is param._param.VAR_POSITIONAL:
            env[param.name] = tuple(given)
            given = []
        elif kind is param._param.VAR_KEYWORD:
            raise TypeError(f"{name}: **{param.name} is not supported in a jitted function")
        elif given and kind is not param._param.KEYWORD_ONLY:
            if param.name in kwargs:
                raise TypeError(f"{name}: got two values for argument {param.name}")
            env[param.name] = given.pop(0)
        elif param.name in kwargs:
            env[param.name] = kwargs[param.name]
        elif param.has_default:
            env[param.name] = wrap(param.default)
        else:
            raise TypeError(f"{name}: argument {param.name} is missing")
    if given:
        raise TypeError(f"{name}: takes {len(fn.params)} arguments, got {len(args)}")
    for key in kwargs:
        if key not in env:
            raise TypeError(f"{name}: has no argument {key}")
    for param in fn.params:
        value = env[param.name]
        if param.is_constexpr:
            env[param.name] = value if isinstance(value, base_value) else constexpr(value)
        elif not isinstance(value, base_value):
            env[param.name] = value if callable(value) or isinstance(value, base_type) else wrap(value)
    return env


def call_jitted(g: Generator, fn: JITCallable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Walks ``fn`` in place, or calls it as a function of its own when it is ``noinline``. Gives its value."""
    if not hasattr(fn, "params"):
        raise TypeError(f"{fn.__name__} cannot be called in a kernel")
    env = bind(fn, args, kwargs)
    _check_recursion(g, fn, env)
    if getattr(fn, "noinline", False):
        return _call_function(g, fn, env)
    return walk_in_place(g, fn, env)


def walk_in_place(g: Generator, fn: JITCallable, env: dict[str, Any], inlined: bool = True) -> Any:
    """Emits the body of ``fn`` here and gives its value."""
    outer, node, loc = g.scope, g.node, g.builder.loc
    g.scope = Scope(fn, outer, node, loc if inlined else None)
    g.scope.env = env
    result = g.run_function(fn.parse())
    # On an exception the scope stays: it tells where the error happened.
    g.scope, g.node, g.builder.loc = outer, node, loc
    return result


def _check_recursion(g: Generator, fn: JITCallable, env: dict[str, Any]) -> None:
    scope, depth = g.scope, 0
    while scope is not None:
        if scope.fn is fn:
            depth += 1
        scope = scope.parent  # type: ignore[assignment]
    if depth == 0:
        return
    constants = [v for v in env.values() if isinstance(v, constexpr)]
    if depth > MAX_DEPTH or not constants:
        raise TypeError(f"{fn.__name__}: a jitted function must not call itself; use a loop")


def _signature(env: dict[str, Any]) -> Any:
    return builtins.tuple((k, str(type_of(v))) for k, v in env.items())


def _call_function(g: Generator, fn: JITCallable, env: dict[str, Any]) -> Any:
    """A call op; the callee is emitted once for each set of argument types and compile-time arguments."""
    leaves: list[Value] = []
    for value in env.values():
        if isinstance(value, base_value):
            value.flatten(leaves)
    key = (fn, _signature(env))
    if key not in g.functions:
        g.functions[key] = _emit_function(g, fn, env, leaves)
    function, result = g.functions[key]
    results = g.builder.emit("call", leaves, list(function.result_types), {"callee": function.name}).results
    return result.rebuild(iter(results)) if isinstance(result, base_value) else result


def _emit_function(g: Generator, fn: JITCallable, env: dict[str, Any], leaves: list[Value]) -> Any:
    name, number = fn.__name__, 0
    while name in g.module.functions:
        number += 1
        name = f"{fn.__name__}_{number}"
    function = Function(name, [v.type for v in leaves], attrs={"noinline": True}, loc=g.builder.loc)
    g.module.add(function)
    formal = iter(function.args)
    inner = {k: v.rebuild(formal) if isinstance(v, base_value) else v for k, v in env.items()}
    with g.inside(function.body):
        result = walk_in_place(g, fn, inner, inlined=False)
        results: list[Value] = []
        if isinstance(result, base_value):
            result.flatten(results)
        function.result_types = builtins.tuple(v.type for v in results)
        g.builder.emit("return", results, [])
    return function, result


def call_in_region(g: Generator, fn: Any, block: Block, args: list[Any]) -> list[tensor]:
    """Emits a call of ``fn`` into ``block`` and gives its results as a list: combine functions of reductions and
    scans."""
    with g.inside(block):
        outer, g.in_region = g.in_region, True
        result = call(g, fn, args, {})
        g.in_region = outer
        members = result.values if isinstance(result, tuple) else [result]
        for i, member in enumerate(members):
            if not isinstance(member, (tensor, constexpr)):
                raise TypeError(f"{fn.__name__}: result {i}: expected a number, got {describe(member)}")
        return [g.semantic.to_tensor(m) for m in members]


Generator.call = call
Generator.call_in_region = call_in_region
