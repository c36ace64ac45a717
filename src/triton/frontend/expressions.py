"""Expressions: names, constants, operators, comparisons, subscripts, attributes, f-strings."""

from __future__ import annotations

import ast
import builtins
import operator
import sys
from types import ModuleType
from typing import Any

from triton import knobs

from . import dtypes as dt
from .dtypes import base_type
from .generator import MISSING, BoundMethod, Generator, expression, wrap
from .source import JITCallable
from .values import base_value, constexpr, describe, slice, tensor, tuple, unwrap

TENSOR_METHODS: dict[str, Any] = {}
"""Functions of the language that are also methods of tensors; filled by ``triton.language``."""
PYTHON_NAMES: dict[str, Any] = {}
"""What a kernel means by the names of Python's builtins; filled by ``triton.language``."""


# Names --------------------------------------------------------------------------------------------------------------


@expression(ast.Name)
def visit_name(g: Generator, node: ast.Name) -> Any:
    scope = g.scope
    value = scope.env.get(node.id, MISSING)
    if value is not MISSING:
        return value
    value = scope.globals.get(node.id, MISSING)
    if value is MISSING:
        g.node = node
        value = scope.globals[node.id] = _global(g, node.id)
    return value


def _global(g: Generator, name: str) -> Any:
    fn = g.scope.fn
    if name in g.scope.lost:
        raise NameError(f"{name} is not defined here: {g.scope.lost[name]}")
    value = fn.lookup(name, MISSING)
    if value is MISSING:
        if name in PYTHON_NAMES:
            return PYTHON_NAMES[name]
        if hasattr(builtins, name):
            raise NameError(f"Python's {name} cannot be used in a kernel")
        raise NameError(f"{name} is not defined")
    if isinstance(value, (constexpr, JITCallable, ModuleType, type, base_type)) or callable(value):
        return value
    if isinstance(value, base_value):
        return value
    if isinstance(value, builtins.tuple) and hasattr(value, "_fields"):
        return wrap(value)
    if _annotated_constexpr(fn, name) or knobs.compilation.allow_non_constexpr_globals:
        return constexpr(value)
    raise NameError(
        f"global variable {name} is not a compile-time constant: kernels may use globals only if they are "
        f"tl.constexpr, as in `{name} = tl.constexpr({_short(value)})` or `{name}: tl.constexpr = {_short(value)}`"
    )


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float, str)) and len(repr(value)) <= 20 else "..."


def _annotated_constexpr(fn: JITCallable, name: str) -> bool:
    annotations = fn.__globals__.get("__annotations__")
    if annotations is None:
        module = sys.modules.get(fn.__module__)
        annotations = getattr(module, "__annotations__", None) or {}
    given = annotations.get(name)
    return given is constexpr or (isinstance(given, str) and "constexpr" in given)


@expression(ast.Constant)
def visit_constant(g: Generator, node: ast.Constant) -> Any:
    return constexpr(node.value)


@expression(ast.Tuple, ast.List)
def visit_tuple(g: Generator, node: ast.Tuple) -> Any:
    return tuple(_members(g, node.elts))


def _members(g: Generator, nodes: list[ast.expr]) -> list[Any]:
    values: list[Any] = []
    for member in nodes:
        if type(member) is ast.Starred:
            values.extend(iterate(g, g.visit(member.value), member))
        else:
            values.append(g.visit(member))
    return values


def iterate(g: Generator, value: Any, node: Any) -> list[Any]:
    """The members of a compile-time sequence."""
    if isinstance(value, tuple):
        return value.values
    plain = unwrap(value)
    if isinstance(plain, (builtins.tuple, list, range, str)):
        if len(plain) > MAX_MEMBERS:
            raise ValueError(f"a compile-time sequence may have {MAX_MEMBERS} members, this one has {len(plain)}")
        return [wrap(v) for v in plain]
    g.at(node)
    raise TypeError(f"expected a tuple, got {describe(value)}")


@expression(ast.ListComp, ast.GeneratorExp)
def visit_comprehension(g: Generator, node: Any) -> Any:
    if len(node.generators) != 1 or node.generators[0].is_async:
        raise g.unsupported(node, "a comprehension in a kernel may have one 'for' only")
    loop = node.generators[0]
    values, env = [], g.scope.env
    for member in iterate(g, g.visit(loop.iter), loop.iter):
        g.scope.env = dict(env)
        g.assign(loop.target, member)
        if all(g.static_truth(g.visit(test), test) for test in loop.ifs):
            values.append(g.visit(node.elt))
    g.scope.env = env
    return tuple(values)


@expression(ast.NamedExpr)
def visit_named(g: Generator, node: ast.NamedExpr) -> Any:
    g.assign(node.target, g.visit(node.value))
    return g.scope.env[node.target.id]


# Operators ----------------------------------------------------------------------------------------------------------

_FOLD: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_SYMBOL: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}
_EMIT: dict[type, Any] = {
    ast.Add: lambda s, a, b: s.add(a, b),
    ast.Sub: lambda s, a, b: s.sub(a, b),
    ast.Mult: lambda s, a, b: s.mul(a, b),
    ast.Div: lambda s, a, b: s.truediv(a, b),
    ast.FloorDiv: lambda s, a, b: s.floordiv(a, b),
    ast.Mod: lambda s, a, b: s.mod(a, b),
    ast.LShift: lambda s, a, b: s.shift("shl", a, b, "<<"),
    ast.RShift: lambda s, a, b: s.shift("shr", a, b, ">>"),
    ast.BitAnd: lambda s, a, b: s.bitwise("and", a, b, "&"),
    ast.BitOr: lambda s, a, b: s.bitwise("or", a, b, "|"),
    ast.BitXor: lambda s, a, b: s.bitwise("xor", a, b, "^"),
}
_COUNTED: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_DUNDER: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.MatMult: "matmul",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


MAX_BITS = 1 << 16
MAX_MEMBERS = 1 << 20


@expression(ast.BinOp)
def visit_binop(g: Generator, node: ast.BinOp) -> Any:
    a, b = g.visit(node.left), g.visit(node.right)
    g.at(node)
    return binary(g, type(node.op), a, b)


def binary(g: Generator, op: type, a: Any, b: Any) -> Any:
    """``a op b`` for any two values."""
    a, b = wrap(a), wrap(b)
    if isinstance(a, constexpr) and isinstance(b, constexpr):
        if op not in _FOLD:
            raise TypeError(f"{_SYMBOL[op]}: not supported between {describe(a)} and {describe(b)}")
        check_size(op, a.value, b.value)
        return wrap(_FOLD[op](a.value, b.value))
    if isinstance(a, tuple) or isinstance(b, tuple):
        if op is ast.Add and isinstance(a, tuple) and isinstance(b, tuple):
            return a + b
        if op is ast.Mult and isinstance(a, tuple) and isinstance(b, constexpr) and isinstance(b.value, int):
            check_size(op, a.values, b.value)
            return a * b
        raise TypeError(f"{_SYMBOL[op]}: not supported between {describe(a)} and {describe(b)}")
    if isinstance(a, (tensor, constexpr)) and isinstance(b, (tensor, constexpr)):
        emit = _EMIT.get(op)
        if emit is None:
            hint = "use tl.dot" if op is ast.MatMult else "multiply, or use tl.exp2/libdevice.pow"
            raise TypeError(f"{_SYMBOL[op]}: not supported between run-time values; {hint}")
        if op in _COUNTED:
            check_overflow(g, _COUNTED[op], a, b)
        return emit(g.semantic, a, b)
    return user_operator(g, op, a, b)


def check_size(op: type, a: Any, b: Any) -> None:
    """Refuses operations on compile-time values whose result would fill the memory."""
    bits = members = 0
    if isinstance(a, int) and isinstance(b, int):
        if op is ast.Pow and abs(a) > 1:
            bits = a.bit_length() * b
        elif op is ast.LShift and a:
            bits = a.bit_length() + b
        elif op is ast.Mult:
            bits = a.bit_length() + b.bit_length()
    elif op is ast.Mult:
        for sequence, count in ((a, b), (b, a)):
            if isinstance(sequence, (str, bytes, builtins.tuple, list)) and isinstance(count, int):
                members = len(sequence) * count
    if bits > MAX_BITS:
        raise ValueError(
            f"{_SYMBOL[op]}: a compile-time integer may have {MAX_BITS} bits, the result would have {bits}"
        )
    if members > MAX_MEMBERS:
        raise ValueError(
            f"{_SYMBOL[op]}: a compile-time sequence may have {MAX_MEMBERS} members, the result would have {members}"
        )


def check_overflow(g: Generator, kind: str, a: Any, b: Any) -> None:
    """Where debug and sanitize_overflow are on: an assertion that integers narrower than 64 bits do not wrap. Not in
    the language's own functions, nor in what reductions combine with."""
    s = g.semantic
    if not (getattr(s.options, "debug", False) and getattr(s.options, "sanitize_overflow", False)):
        return
    if g.in_region or (g.scope.fn.__module__ or "").startswith("triton.language"):
        return
    if any(isinstance(v, tensor) and v.type.scalar.is_ptr() for v in (a, b)):
        return
    x, y = s.pair(a, b, kind)
    element = x.type.scalar
    if not element.is_int() or element.is_bool() or element.int_bitwidth >= 64:
        return
    exact = s.binary(kind, s.cast(x, dt.int64), s.cast(y, dt.int64), kind)
    high = s.compare("le", exact, element.get_int_max_value(), kind)
    inside = s.bitwise("and", high, s.compare("ge", exact, element.get_int_min_value(), kind), kind)
    if s.known(inside) is not True:
        s.builder.emit("assert", [inside.handle], [], {"message": f"{element} overflow detected for operation {kind}"})


def user_operator(g: Generator, op: type, a: Any, b: Any) -> Any:
    """An operator that a user's aggregate class defines."""
    name = _DUNDER[op]
    method = getattr(type(a), f"__{name}__", None)
    if isinstance(method, JITCallable) or getattr(method, "__triton_builtin__", False):
        return g.call(BoundMethod(method, a), [b], {})
    method = getattr(type(b), f"__r{name}__", None)
    if isinstance(method, JITCallable) or getattr(method, "__triton_builtin__", False):
        return g.call(BoundMethod(method, b), [a], {})
    raise TypeError(f"{_SYMBOL.get(op, name)}: not supported between {describe(a)} and {describe(b)}")


@expression(ast.UnaryOp)
def visit_unary(g: Generator, node: ast.UnaryOp) -> Any:
    x = wrap(g.visit(node.operand))
    g.at(node)
    op = type(node.op)
    if isinstance(x, constexpr):
        value = x.value
        if op is ast.USub:
            return constexpr(-value)
        if op is ast.UAdd:
            return constexpr(+value)
        return constexpr(not value) if op is ast.Not else constexpr(~value)
    if isinstance(x, tensor):
        if op is ast.USub:
            return g.semantic.negative(x)
        if op is ast.UAdd:
            return x
        return g.semantic.logical_not(x) if op is ast.Not else g.semantic.invert(x)
    if op is ast.Not and isinstance(x, tuple):
        return constexpr(not x.values)
    name = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Not: "__not__", ast.Invert: "__invert__"}[op]
    method = getattr(type(x), name, None)
    if isinstance(method, JITCallable) or getattr(method, "__triton_builtin__", False):
        return g.call(BoundMethod(method, x), [], {})
    raise TypeError(f"unary operator: not supported for {describe(x)}")


@expression(ast.BoolOp)
def visit_boolop(g: Generator, node: ast.BoolOp) -> Any:
    """Compile-time operands short-circuit as in Python; run-time ones are evaluated once each, up to a compile-time one
    that decides the whole: ``n > 3 and False`` is known, so that code under it is not compiled."""
    is_and = type(node.op) is ast.And
    result = None
    for operand in node.values:
        value = wrap(g.visit(operand))
        if result is None or isinstance(result, (constexpr, tuple)):
            result = value
        elif isinstance(value, (constexpr, tuple)) and not result.shape and bool(unwrap(value)) is not is_and:
            return constexpr(not is_and)
        else:
            g.at(node)
            result = g.semantic.logical("and" if is_and else "or", result, value, "and" if is_and else "or")
        if isinstance(value, (constexpr, tuple)) and result is value:
            truth = bool(unwrap(value))
            if truth is not is_and:
                return value
    return result


_COMPARE: dict[type, builtins.tuple[str, str, Any]] = {
    ast.Eq: ("eq", "==", operator.eq),
    ast.NotEq: ("ne", "!=", operator.ne),
    ast.Lt: ("lt", "<", operator.lt),
    ast.LtE: ("le", "<=", operator.le),
    ast.Gt: ("gt", ">", operator.gt),
    ast.GtE: ("ge", ">=", operator.ge),
}


@expression(ast.Compare)
def visit_compare(g: Generator, node: ast.Compare) -> Any:
    left = g.visit(node.left)
    result: Any = None
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = g.visit(right_node)
        g.at(node)
        test = compare(g, type(op), left, right)
        if result is None:
            result = test
        elif isinstance(result, constexpr):
            result = test if result.value else result
        elif isinstance(test, constexpr):
            result = result if test.value else test
        else:
            result = g.semantic.logical("and", result, test, "comparison")
        left = right
    return result


def compare(g: Generator, op: type, a: Any, b: Any) -> Any:
    """One comparison; compile-time values give a constexpr."""
    a, b = wrap(a), wrap(b)
    if op in (ast.Is, ast.IsNot):
        plain_a, plain_b = unwrap(a), unwrap(b)
        same = plain_a is plain_b or (isinstance(a, constexpr) and isinstance(b, constexpr) and _same(plain_a, plain_b))
        return constexpr(same is (op is ast.Is))
    if op in (ast.In, ast.NotIn):
        return _membership(a, b, op is ast.In)
    pred, symbol, fold = _COMPARE[op]
    if isinstance(a, tensor) or isinstance(b, tensor):
        if isinstance(a, (tensor, constexpr)) and isinstance(b, (tensor, constexpr)):
            for one in (a, b):
                if isinstance(one, constexpr) and one.value is None and op in (ast.Eq, ast.NotEq):
                    return constexpr(op is ast.NotEq)
            return g.semantic.compare(pred, a, b, symbol)
        return user_operator(g, op, a, b)
    if isinstance(a, tuple) or isinstance(b, tuple):
        if op in (ast.Eq, ast.NotEq):
            return _compare_tuples(g, a, b, op is ast.Eq)
        raise TypeError(f"{symbol}: not supported between {describe(a)} and {describe(b)}")
    if isinstance(a, base_value) and not isinstance(a, constexpr):
        return user_operator(g, op, a, b)
    return constexpr(bool(fold(unwrap(a), unwrap(b))))


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and isinstance(a, (bool, int, str)) and a == b


def _membership(a: Any, b: Any, positive: bool) -> constexpr:
    members = unwrap(b)
    plain = unwrap(a)
    run_time = isinstance(plain, tensor) or (
        isinstance(members, (builtins.tuple, list)) and any(isinstance(m, tensor) for m in members)
    )
    if run_time:
        raise TypeError("in: needs values known at compile time")
    return constexpr((plain in members) is positive)


def _compare_tuples(g: Generator, a: Any, b: Any, positive: bool) -> Any:
    if not (isinstance(a, tuple) and isinstance(b, tuple)) or len(a.values) != len(b.values):
        return constexpr(not positive)
    result: Any = constexpr(True)
    for x, y in zip(a.values, b.values, strict=True):
        test = compare(g, ast.Eq, x, y)
        if isinstance(result, constexpr):
            result = test if result.value else result
        elif isinstance(test, constexpr):
            result = result if test.value else test
        else:
            result = g.semantic.logical("and", result, test, "==")
    if positive:
        return result
    return constexpr(not result.value) if isinstance(result, constexpr) else g.semantic.logical_not(result)


# Subscripts and attributes ------------------------------------------------------------------------------------------


@expression(ast.Slice)
def visit_slice(g: Generator, node: ast.Slice) -> Any:
    return slice(*[constexpr(None) if n is None else g.visit(n) for n in (node.lower, node.upper, node.step)])


# A number is also a tensor without axes: an integer argument that is 1 is a compile-time value, and what a kernel does
# with the argument (``n.to(tl.int64)``, ``n[None]``) must not depend on that.
_NUMBERS = (bool, int, float)


@expression(ast.Subscript)
def visit_subscript(g: Generator, node: ast.Subscript) -> Any:
    value = wrap(g.visit(node.value))
    index = g.visit(node.slice)
    g.at(node)
    if isinstance(value, constexpr) and type(value.value) in _NUMBERS:
        value = g.semantic.to_tensor(value)
    if isinstance(value, tensor):
        return TENSOR_METHODS["__getitem__"](value, index, _semantic=g.semantic)
    if isinstance(value, tuple):
        return value[index]
    if isinstance(value, constexpr):
        plain = index.python() if isinstance(index, slice) else unwrap(index)
        return wrap(value.value[plain])
    method = getattr(type(value), "__getitem__", None)
    if isinstance(method, JITCallable) or getattr(method, "__triton_builtin__", False):
        return g.call(BoundMethod(method, value), [index], {})
    raise TypeError(f"subscript: not supported on {describe(value)}")


_TENSOR_ATTRIBUTES = frozenset({"dtype", "shape", "type", "numel", "handle"})
_NUMBER_ATTRIBUTES = frozenset({"dtype", "shape", "numel", "T"})


@expression(ast.Attribute)
def visit_attribute(g: Generator, node: ast.Attribute) -> Any:
    owner = g.visit(node.value)
    name = node.attr
    if (
        isinstance(owner, constexpr)
        and type(owner.value) in _NUMBERS
        and (name in _NUMBER_ATTRIBUTES or name in TENSOR_METHODS)
    ):
        g.at(node)
        owner = g.semantic.to_tensor(owner)
    if isinstance(owner, tensor):
        if name in _TENSOR_ATTRIBUTES:
            return wrap(getattr(owner, name))
        g.at(node)
        if name == "T":
            return TENSOR_METHODS["trans"](owner, _semantic=g.semantic)
        if name in TENSOR_METHODS:
            return BoundMethod(TENSOR_METHODS[name], owner)
        raise AttributeError(f"a tensor has no attribute {name!r}")
    g.node = node
    if isinstance(owner, ModuleType):
        return _module_attribute(g, owner, name)
    if isinstance(owner, constexpr) and not (name == "value" or name in ("logical_and", "logical_or", "type")):
        return wrap(getattr(owner.value, name))
    value = getattr(owner, name)
    if isinstance(value, JITCallable) and isinstance(owner, base_value) and name not in getattr(owner, "__dict__", ()):
        return BoundMethod(value, owner)
    if getattr(value, "__self__", None) is owner and getattr(value, "__triton_builtin__", False):
        return BoundMethod(value.__func__, owner)
    return wrap(value)


def _module_attribute(g: Generator, module: ModuleType, name: str) -> Any:
    value = getattr(module, name, MISSING)
    if value is MISSING:
        raise AttributeError(f"{module.__name__} has no {name!r}")
    if isinstance(value, (constexpr, JITCallable, ModuleType, type, base_type)) or callable(value):
        return value
    if module.__name__.split(".")[0] == "triton" or module.__name__ == "math":
        return wrap(value)
    raise NameError(
        f"{module.__name__}.{name} is not a compile-time constant: kernels may use variables of modules only if they "
        "are tl.constexpr"
    )


# Strings ------------------------------------------------------------------------------------------------------------


@expression(ast.JoinedStr)
def visit_fstring(g: Generator, node: ast.JoinedStr) -> Any:
    return constexpr("".join(str(unwrap(g.visit(part))) for part in node.values))


@expression(ast.FormattedValue)
def visit_formatted(g: Generator, node: ast.FormattedValue) -> Any:
    value = unwrap(g.visit(node.value))
    spec = "" if node.format_spec is None else str(unwrap(g.visit(node.format_spec)))
    if node.conversion >= 0:
        convert: Any = {"r": repr, "s": str, "a": ascii}[chr(node.conversion)]
        value = convert(value)
    if isinstance(value, tensor) and spec:
        g.at(node)
        raise TypeError(f"f-string: a run-time value has no format {spec!r}; pass it to tl.device_print as an argument")
    return constexpr(format(value, spec) if spec else str(value))
