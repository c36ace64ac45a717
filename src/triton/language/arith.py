"""Element-by-element operations and casts."""

from __future__ import annotations

import builtins
from enum import Enum
from typing import Any

from triton.frontend.expressions import check_overflow
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, constexpr, describe, tensor, unwrap

from .shapes import element_type


class PropagateNan(Enum):
    """What minimum and maximum do with a NaN: the other operand wins (NONE), or the NaN does (ALL)."""

    NONE = 0
    ALL = 65535


PROPAGATE_NAN = PropagateNan


def propagates(value: Any, what: str) -> bool:
    """The truth of a propagate_nan argument."""
    value = unwrap(value)
    if not isinstance(value, PropagateNan):
        raise TypeError(f"{what}: propagate_nan: expected a tl.PropagateNan, got {describe(value)}")
    return value is PropagateNan.ALL


@builtin
def add(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> tensor:
    """x + y. Integers wrap; with ``debug``, that is an error unless ``sanitize_overflow`` is False."""
    if unwrap(sanitize_overflow):
        check_overflow(_semantic.generator, "add", unwrap(x), unwrap(y))
    return _semantic.add(x, y, "add")


@builtin
def sub(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> tensor:
    """x - y. Integers wrap; with ``debug``, that is an error unless ``sanitize_overflow`` is False."""
    if unwrap(sanitize_overflow):
        check_overflow(_semantic.generator, "sub", unwrap(x), unwrap(y))
    return _semantic.sub(x, y, "sub")


@builtin
def mul(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> tensor:
    """x * y. Integers wrap; with ``debug``, that is an error unless ``sanitize_overflow`` is False."""
    if unwrap(sanitize_overflow):
        check_overflow(_semantic.generator, "mul", unwrap(x), unwrap(y))
    return _semantic.mul(x, y, "mul")


def _min_max(kind: str, x: Any, y: Any, propagate_nan: Any, what: str, s: TritonSemantic) -> Any:
    # bfloat16 is compared as float32, like in sums.
    x, y = unwrap(x), unwrap(y)
    return s.min_max(kind, x, y, what, propagates(propagate_nan, what))


@builtin
def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: Any = None) -> tensor:
    """The smaller of x and y, element by element. A NaN loses against a number unless ``propagate_nan`` is ALL."""
    return _min_max("min", x, y, propagate_nan, "minimum", _semantic)


@builtin
def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: Any = None) -> tensor:
    """The larger of x and y, element by element. A NaN loses against a number unless ``propagate_nan`` is ALL."""
    return _min_max("max", x, y, propagate_nan, "maximum", _semantic)


@builtin
def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: Any = None) -> tensor:
    """x limited to min..max. A NaN in x gives ``min``, or NaN when ``propagate_nan`` is ALL. Floating point only."""
    s = _semantic
    x = s.to_tensor(unwrap(x), "clamp: x")
    if not x.dtype.is_floating():
        raise TypeError(f"clamp: x: expected floating-point numbers, got {describe(x)}")
    nan = propagates(propagate_nan, "clamp")
    return s.min_max("min", s.min_max("max", x, min, "clamp", nan), max, "clamp", nan)


@builtin
def where(condition: Any, x: Any, y: Any, _semantic: Any = None) -> tensor:
    """x where the condition holds, else y, after promotion and broadcasting. Both are evaluated everywhere."""
    return _semantic.select(unwrap(condition), x, y, "where")


@builtin
def cast(
    input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, _semantic: Any = None
) -> tensor:
    """``input`` converted to ``dtype``.

    To a narrower float: to nearest even ("rtne", the default) or toward zero ("rtz") as ``fp_downcast_rounding``
    says. Float to integer truncates toward zero; integers keep their low bits; to int1 asks for != 0. With
    ``bitcast`` the bits are kept, and both types have one width.
    """
    s = _semantic
    value, element = unwrap(input), element_type(dtype, "cast: dtype")
    if not isinstance(value, tensor):
        value = s.to_tensor(value, "cast: input")
    if unwrap(bitcast):
        return s.bitcast(value, element)
    rounding = unwrap(fp_downcast_rounding)
    if rounding is not None:
        if rounding not in ("rtne", "rtz"):
            raise ValueError(f"cast: fp_downcast_rounding: expected 'rtne' or 'rtz', got {rounding!r}")
        source = value.dtype
        if source != element and not (
            source.is_floating() and element.is_floating() and element.primitive_bitwidth < source.primitive_bitwidth
        ):
            raise ValueError(
                f"cast: fp_downcast_rounding: needs a conversion to a narrower float, not {source} to {element}"
            )
    return s.cast(value, element, rounding)


@builtin
def to(self: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, _semantic: Any = None) -> tensor:
    """``tl.cast(self, dtype, ...)``."""
    return cast.raw(self, dtype, fp_downcast_rounding, bitcast, _semantic=_semantic)


def _fold_min_max(args: Any, propagate_nan: Any, kind: str, s: TritonSemantic) -> Any:
    values = [unwrap(a) for a in args]
    if len(values) == 1 and isinstance(values[0], builtins.tuple):
        values = list(values[0])
    if len(values) < 2:
        raise TypeError(f"{kind}: expected at least two values")
    if not any(isinstance(v, tensor) for v in values):
        return constexpr(min(values) if kind == "min" else max(values))
    nan = False if propagate_nan is _UNSET else propagates(propagate_nan, kind)
    result = values[0]
    for value in values[1:]:
        result = s.min_max(kind, result, value, kind, nan)
    return result


_UNSET = object()


@builtin
def builtin_max(*args: Any, propagate_nan: Any = _UNSET, _semantic: Any = None) -> Any:
    """Python's ``max`` in a kernel: of compile-time values a constexpr, otherwise the elementwise maximum."""
    return _fold_min_max(args, propagate_nan, "max", _semantic)


@builtin
def builtin_min(*args: Any, propagate_nan: Any = _UNSET, _semantic: Any = None) -> Any:
    """Python's ``min`` in a kernel: of compile-time values a constexpr, otherwise the elementwise minimum."""
    return _fold_min_max(args, propagate_nan, "min", _semantic)


# Operators as methods: ``x.__add__(y)`` in functions written with @builtin ------------------------------------------


def _operator(name: str, emit: Any, reflected: bool = False) -> Any:
    def method(self: Any, other: Any, _semantic: Any = None) -> Any:
        return emit(_semantic, other, self) if reflected else emit(_semantic, self, other)

    method.__name__ = name
    return builtin(method)


_EMIT: dict[str, Any] = {
    "add": lambda s, a, b: s.add(a, b),
    "sub": lambda s, a, b: s.sub(a, b),
    "mul": lambda s, a, b: s.mul(a, b),
    "truediv": lambda s, a, b: s.truediv(a, b),
    "floordiv": lambda s, a, b: s.floordiv(a, b),
    "mod": lambda s, a, b: s.mod(a, b),
    "and": lambda s, a, b: s.bitwise("and", a, b, "&"),
    "or": lambda s, a, b: s.bitwise("or", a, b, "|"),
    "xor": lambda s, a, b: s.bitwise("xor", a, b, "^"),
    "lshift": lambda s, a, b: s.shift("shl", a, b, "<<"),
    "rshift": lambda s, a, b: s.shift("shr", a, b, ">>"),
    "lt": lambda s, a, b: s.compare("lt", a, b, "<"),
    "le": lambda s, a, b: s.compare("le", a, b, "<="),
    "gt": lambda s, a, b: s.compare("gt", a, b, ">"),
    "ge": lambda s, a, b: s.compare("ge", a, b, ">="),
    "eq": lambda s, a, b: s.compare("eq", a, b, "=="),
    "ne": lambda s, a, b: s.compare("ne", a, b, "!="),
}


def install_operators() -> None:
    """Gives ``tensor`` its operator methods. ``==`` and ``!=`` included, so tensors compare by identity only inside
    the compiler."""
    for name, emit in _EMIT.items():
        setattr(tensor, f"__{name}__", _operator(f"__{name}__", emit))
        setattr(tensor, f"__r{name}__", _operator(f"__r{name}__", emit, True))
    others = {
        "__neg__": _neg,
        "__invert__": _invert,
        "__not__": _not,
        "logical_and": _logical_and,
        "logical_or": _logical_or,
    }
    for name, method in others.items():
        setattr(tensor, name, builtin(method))
    tensor.__hash__ = object.__hash__  # type: ignore[method-assign,assignment]


def _neg(self: Any, _semantic: Any = None) -> tensor:
    return _semantic.negative(self)


def _invert(self: Any, _semantic: Any = None) -> tensor:
    return _semantic.invert(self)


def _not(self: Any, _semantic: Any = None) -> tensor:
    return _semantic.logical_not(self)


def _logical_and(self: Any, other: Any, _semantic: Any = None) -> tensor:
    return _semantic.logical("and", self, other, "and")


def _logical_or(self: Any, other: Any, _semantic: Any = None) -> tensor:
    return _semantic.logical("or", self, other, "or")


def check_bit_width(value: Any, shift_value: Any) -> None:
    """Raises ValueError when a known shift is not less than the width of ``value``."""
    shift = unwrap(shift_value)
    if isinstance(value, tensor) and isinstance(shift, int) and not 0 <= shift < value.dtype.primitive_bitwidth:
        raise ValueError(f"shift: {shift} is not less than the {value.dtype.primitive_bitwidth} bits of {value.dtype}")


def is_negative_zero(x: Any) -> bool:
    """Whether ``x`` is the float -0.0."""
    return isinstance(x, float) and x == 0.0 and str(x).startswith("-")


def binary_op_type_legalization(lhs: Any, rhs: Any, semantic: TritonSemantic) -> Any:
    """Both operands as tensors of their promoted type and common shape."""
    return semantic.pair(lhs, rhs, "operator")
