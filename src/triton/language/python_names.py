"""What kernels mean by the names of Python's builtins."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from triton.frontend import expressions
from triton.frontend.generator import Generator, wrap
from triton.frontend.values import constexpr, describe, tensor, tuple, unwrap

from . import core
from .program import python_print

_NAMES = expressions.PYTHON_NAMES


def _kernel_function(name: str) -> Any:
    """Registers a function that is called with the generator and the arguments."""

    def register(fn: Any) -> Any:
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(f"{name} of a kernel was called from Python")

        stand_in.__name__ = name
        stand_in._kernel_call = fn  # type: ignore[attr-defined]
        _NAMES[name] = stand_in
        return fn

    return register


def _constant(value: Any, name: str) -> Any:
    """A compile-time argument."""
    plain = unwrap(value)
    if isinstance(plain, tensor):
        raise TypeError(f"{name}: works on compile-time values, got {describe(plain)}")
    return plain


@_kernel_function("len")
def _len(g: Generator, value: Any) -> Any:
    if isinstance(value, tensor):
        if not value.type.is_block():
            raise TypeError(f"len: expected a tensor or tuple, got {describe(value)}")
        return value.type.shape[0]
    return len(value.values) if isinstance(value, tuple) else len(unwrap(value))


def _number(name: str, convert: Any) -> None:
    def call(g: Generator, value: Any = 0) -> Any:
        plain = unwrap(value)
        if isinstance(plain, tensor):
            known = g.semantic.known(plain)
            if known is None or plain.type.is_block():
                hint = {"int": "x.to(tl.int32)", "float": "x.to(tl.float32)", "bool": "x != 0"}[name]
                raise TypeError(f"{name}: works on compile-time values, got {describe(plain)}; use {hint}")
            plain = known
        return convert(plain)

    _kernel_function(name)(call)


_number("int", int)
_number("float", float)
_number("bool", bool)


@_kernel_function("isinstance")
def _isinstance(g: Generator, value: Any, classes: Any) -> Any:
    wanted = unwrap(classes)
    wanted = builtins.tuple(unwrap(c) for c in wanted) if isinstance(wanted, builtins.tuple) else (wanted,)
    wanted = builtins.tuple(
        _PYTHON_TYPES.get(getattr(c, "__name__", ""), c) if hasattr(c, "_kernel_call") else c for c in wanted
    )
    if isinstance(value, wanted):
        return True
    return isinstance(value, constexpr) and isinstance(value.value, wanted)


_PYTHON_TYPES = {"int": int, "float": float, "bool": bool, "tuple": tuple}


@_kernel_function("hasattr")
def _hasattr(g: Generator, value: Any, name: Any) -> Any:
    text = _constant(name, "hasattr")
    if isinstance(value, tensor):
        return text in expressions.TENSOR_METHODS or hasattr(value, text)
    return hasattr(value, text) or (isinstance(value, constexpr) and hasattr(value.value, text))


@_kernel_function("getattr")
def _getattr(g: Generator, value: Any, name: Any, *default: Any) -> Any:
    text = _constant(name, "getattr")
    owner = value if hasattr(value, text) or not isinstance(value, constexpr) else value.value
    return getattr(owner, text, *default)


@_kernel_function("tuple")
def _tuple(g: Generator, value: Any = ()) -> Any:
    return tuple(expressions.iterate(g, value, g.node))


@_kernel_function("list")
def _list(g: Generator, value: Any = ()) -> Any:
    return tuple(expressions.iterate(g, value, g.node))


@_kernel_function("reversed")
def _reversed(g: Generator, value: Any) -> Any:
    return tuple(expressions.iterate(g, value, g.node)[::-1])


@_kernel_function("zip")
def _zip(g: Generator, *values: Any) -> Any:
    return tuple([tuple(list(row)) for row in zip(*[expressions.iterate(g, v, g.node) for v in values], strict=False)])


@_kernel_function("enumerate")
def _enumerate(g: Generator, values: Any, start: Any = 0) -> Any:
    members = expressions.iterate(g, values, g.node)
    return tuple([tuple([wrap(i), v]) for i, v in enumerate(members, int(_constant(start, "enumerate")))])


@_kernel_function("abs")
def _abs(g: Generator, value: Any) -> Any:
    if isinstance(value, tensor):
        from_math = expressions.TENSOR_METHODS["abs"]
        return from_math(value, _semantic=g.semantic)
    return abs(unwrap(value))


@_kernel_function("sum")
def _sum(g: Generator, values: Any, start: Any = 0) -> Any:
    if isinstance(values, tensor):
        raise TypeError("sum: Python's sum adds members of a tuple; use tl.sum for a tensor")
    total: Any = wrap(start)
    for member in expressions.iterate(g, values, g.node):
        total = expressions.binary(g, ast.Add, total, member)
    return total


def _truths(name: str, is_all: bool) -> None:
    def call(g: Generator, values: Any) -> Any:
        result: Any = constexpr(is_all)
        for member in expressions.iterate(g, values, g.node):
            if isinstance(result, constexpr):
                if bool(result.value) is not is_all:
                    return result
                result = member
            else:
                result = g.semantic.logical("and" if is_all else "or", result, member, name)
        return result

    _kernel_function(name)(call)


_truths("all", True)
_truths("any", False)


def _plain(name: str, fn: Any) -> None:
    def call(g: Generator, *args: Any) -> Any:
        return fn(*[_constant(a, name) for a in args])

    _kernel_function(name)(call)


for _name, _fn in (
    ("str", str),
    ("repr", repr),
    ("round", round),
    ("pow", pow),
    ("divmod", divmod),
    ("ord", ord),
    ("hex", hex),
):
    _plain(_name, _fn)


@_kernel_function("type")
def _type(g: Generator, value: Any) -> Any:
    return type(value.value) if isinstance(value, constexpr) else getattr(value, "type", type(value))


_kernel_function("print")(python_print)
_NAMES["range"] = core.range
_NAMES["min"], _NAMES["max"] = core.builtin_min, core.builtin_max
_NAMES["slice"] = core.slice
