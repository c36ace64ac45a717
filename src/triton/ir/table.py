"""The vocabulary in which ``ops.py`` declares ops: attributes, operand constraints, result-type rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .types import (
    DescriptorType,
    PointerType,
    ScalarType,
    SharedType,
    TensorType,
    Type,
    element_of,
    i1,
    i64,
    shape_of,
    with_element,
    with_shape,
)

if TYPE_CHECKING:
    from .core import Op

REQUIRED = object()
"""Marks an attribute without a default."""


class IRError(ValueError):
    """The IR breaks a rule of the op table. The message names the op, what was expected and what was given."""


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute: ``kind`` is ``int``, ``float``, ``number``, ``str``, ``bool``, ``ints`` or ``any``."""

    kind: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()

    def problem(self, value: Any) -> str | None:
        """What is wrong with ``value``, or None."""
        if value is None and self.default is None:
            return None
        accepts: dict[str, Callable[[Any], bool]] = {
            "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
            "float": lambda v: isinstance(v, float),
            "number": lambda v: isinstance(v, (int, float)),
            "str": lambda v: isinstance(v, str),
            "bool": lambda v: isinstance(v, bool),
            "ints": lambda v: isinstance(v, tuple) and all(isinstance(i, int) for i in v),
            "any": lambda v: True,
        }
        if not accepts[self.kind](value):
            return f"expected {self.kind}, got {value!r}"
        if self.choices and value not in self.choices:
            return f"expected one of {', '.join(map(repr, self.choices))}, got {value!r}"
        return None


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on an operand's type, with the words for it."""

    words: str
    holds: Callable[[Type], bool]


def _element(words: str, test: Callable[[Any], bool]) -> Constraint:
    return Constraint(words, lambda t: not isinstance(t, (DescriptorType, SharedType)) and test(element_of(t)))


ANY = Constraint("any value", lambda t: True)
DATA = Constraint("numbers or pointers", lambda t: not isinstance(t, (DescriptorType, SharedType)))
TENSOR = Constraint("a tensor", lambda t: isinstance(t, TensorType))
SCALAR = Constraint("a scalar", lambda t: isinstance(t, (ScalarType, PointerType)))
NUM = _element("numbers", lambda e: isinstance(e, ScalarType))
INT = _element("integers", lambda e: isinstance(e, ScalarType) and e.is_integer)
FLOAT = _element("floating-point numbers", lambda e: isinstance(e, ScalarType) and e.is_float)
SIGNED = _element("signed or floating-point numbers", lambda e: isinstance(e, ScalarType) and e.kind in ("int",
"float"))
BOOL = _element("booleans (i1)", lambda e: e is i1 or e == i1)
PTR = _element("pointers", lambda e: isinstance(e, PointerType))
SCALAR_INT = Constraint("a scalar integer", lambda t: isinstance(t, ScalarType) and t.is_integer)
SCALAR_BOOL = Constraint("a scalar boolean (i1)", lambda t: t == i1)
DESC = Constraint("a tensor descriptor", lambda t: isinstance(t, DescriptorType))
SHARED = Constraint("shared memory", lambda t: isinstance(t, SharedType))


@dataclass(frozen=True, slots=True)
class Operand:
    """``arity`` is ``one``, ``optional`` (trailing only) or ``many`` (last only)."""

    name: str
    constraint: Constraint = ANY
    arity: str = "one"


InferRule = Callable[[Sequence[Type], dict[str, Any]], list[Type]]
VerifyRule = Callable[["Op"], None]


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One row of the op table.

    ``infer``    result types from operand types and attributes; None when the op states its result types itself.
    ``results``  the number of results of an op without ``infer``; None where it varies.
    ``check``    further rules on one op (regions included), raising IRError.
    ``effects``  subset of ``read``, ``write``, ``stop``: reads memory, changes memory or output, may end the program.
    ``elementwise``  all tensor operands and results share one shape and element i depends on elements i only.
    ``stages``   IR stages in which it is legal: ``tile``, ``layout``.
    ``regions``  how many regions; each value names one region.
    """

    kind: str
    meaning: str
    operands: tuple[Operand, ...] = ()
    attrs: dict[str, Attr] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    infer: InferRule | None = None
    results: int | None = None
    check: VerifyRule | None = None
    effects: frozenset[str] = frozenset()
    elementwise: bool = False
    commutative: bool = False
    terminator: bool = False
    stages: frozenset[str] = frozenset({"tile", "layout"})
    example: str = ""
    group: str = ""

    @property
    def is_pure(self) -> bool:
        """No effects and no regions: two equal ops give equal results, and an unused one may go."""
        return not self.effects and not self.regions and not self.terminator

    @property
    def min_operands(self) -> int:
        return sum(o.arity == "one" for o in self.operands)

    @property
    def max_operands(self) -> int | None:
        return None if any(o.arity == "many" for o in self.operands) else len(self.operands)

    def attr(self, op: Op, name: str) -> Any:
        """The attribute's value on ``op``, or its default."""
        return op.attrs.get(name, self.attrs[name].default)


# Result-type rules --------------------------------------------------------------------------------------------------


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise IRError(message)


def none(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """No result."""
    return []


def like(index: int) -> InferRule:
    """The type of operand ``index``."""
    return lambda types, attrs: [types[index]]


def all_same(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Every operand has one type, and so has the result."""
    for t in types[1:]:
        _need(t == types[0], f"operands differ in type: {types[0]} and {t}")
    return [types[0]]


def boolean_like(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """i1 of the operands' common shape; the operands have one type."""
    all_same(types, attrs)
    return [with_element(types[0], i1)]


def select_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """``cond`` is a scalar or has the shape of the two values, which have one type."""
    cond, a, b = types
    _need(a == b, f"the two choices differ in type: {a} and {b}")
    _need(cond == i1 or shape_of(cond) == shape_of(a), f"condition {cond} does not match {a}")
    return [a]


def expand_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """A size-1 axis is put in at ``axis``."""
    shape = list(shape_of(types[0]))
    axis = attrs["axis"]
    _need(0 <= axis <= len(shape), f"axis {axis} is outside 0..{len(shape)}")
    shape.insert(axis, 1)
    return [with_shape(tuple(shape), element_of(types[0]))]


def permute_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Axis i of the result is axis order[i] of the operand."""
    shape, order = shape_of(types[0]), attrs["order"]
    _need(sorted(order) == list(range(len(shape))), f"order {order} is not a permutation of {len(shape)} axes")
    return [with_shape(tuple(shape[i] for i in order), element_of(types[0]))]


def join_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """A new last axis of size 2."""
    all_same(types, attrs)
    return [with_shape((*shape_of(types[0]), 2), element_of(types[0]))]


def split_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Two results without the last axis, which has size 2."""
    shape = shape_of(types[0])
    _need(bool(shape) and shape[-1] == 2, f"the last axis of {types[0]} must have size 2")
    return [with_shape(shape[:-1], element_of(types[0]))] * 2


def cat_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Sizes add up along ``axis``; the others are equal."""
    (a, b), axis = map(shape_of, types), attrs["axis"]
    _need(element_of(types[0]) == element_of(types[1]), f"element types differ: {types[0]} and {types[1]}")
    _need(len(a) == len(b) and 0 <= axis < len(a), f"axis {axis} does not fit {types[0]} and {types[1]}")
    _need(a[:axis] + a[axis + 1 :] == b[:axis] + b[axis + 1 :], f"{types[0]} and {types[1]} differ off axis {axis}")
    return [with_shape((*a[:axis], a[axis] + b[axis], *a[axis + 1 :]), element_of(types[0]))]


def gather_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """The index's shape with the source's elements; sizes agree except along ``axis``."""
    (src, index), axis = map(shape_of, types), attrs["axis"]
    _need(len(src) == len(index) and 0 <= axis < len(src), f"axis {axis} does not fit {types[0]} and {types[1]}")
    _need(src[:axis] + src[axis + 1 :] == index[:axis] + index[axis + 1 :], f"{types[0]}, {types[1]} differ off axis")
    return [with_shape(index, element_of(types[0]))]


def addptr_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Pointer and offset have one shape."""
    _need(shape_of(types[0]) == shape_of(types[1]), f"pointer {types[0]} and offset {types[1]} differ in shape")
    return [types[0]]


def _check_mask(mask: Type, value: Type) -> None:
    _need(shape_of(mask) == shape_of(value), f"mask {mask} does not match {value}")


def load_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """The pointees, in the pointer's shape; mask and other have that shape."""
    pointer = element_of(types[0])
    assert isinstance(pointer, PointerType)
    result = with_element(types[0], pointer.pointee)
    if len(types) > 1:
        _check_mask(types[1], result)
    if len(types) > 2:
        _need(types[2] == result, f"other is {types[2]}, expected {result}")
    return [result]


def store_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Pointer, value and mask have one shape; the value's element is the pointee."""
    _need(load_rule(types[:1], attrs) == [types[1]], f"cannot store {types[1]} through {types[0]}")
    if len(types) > 2:
        _check_mask(types[2], types[1])
    return []


def atomic_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Result: the old values, of the pointee type."""
    store_rule(types, attrs)
    return [types[1]]


def cas_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Pointer, expected and new values have one shape; result: the old values."""
    store_rule(types[:2], attrs)
    _need(types[1] == types[2], f"expected {types[1]} and new value {types[2]} differ in type")
    return [types[1]]


def poll_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """One scalar in memory, of 16, 32 or 64 bits; result: whether it was seen in time."""
    _need(not any(shape_of(t) for t in types), "atomic_poll takes scalars")
    store_rule(types[:2], attrs)
    bits = getattr(element_of(types[1]), "bits", 0)
    _need(bits in (16, 32, 64), f"atomic_poll of {types[1]}, expected 16, 32 or 64 bits")
    _need(len(types) < 3 or types[2] == i64, "the timeout must be an i64")
    return [i1]


def dot_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """[..., M, K] x [..., K, N] + [..., M, N]; the result has the accumulator's type."""
    a, b, c = (shape_of(t) for t in types[:3])
    fits = len(a) == len(b) == len(c) and len(a) in (2, 3) and a[:-2] == b[:-2] == c[:-2]
    _need(fits and a[-1] == b[-2] and (a[-2], b[-1]) == c[-2:], f"{types[0]} x {types[1]} + {types[2]} does not fit")
    return [types[2]]


def reduce_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """Each operand without ``axis``; a scalar when none is left. Operands share one shape."""
    _need(len(types) > 0, "at least one operand is needed")
    shape, axis = shape_of(types[0]), attrs["axis"]
    _need(0 <= axis < len(shape), f"axis {axis} is outside {types[0]}")
    for t in types:
        _need(shape_of(t) == shape, f"operands differ in shape: {types[0]} and {t}")
    return [with_shape(shape[:axis] + shape[axis + 1 :], element_of(t)) for t in types]


def scan_rule(types: Sequence[Type], attrs: dict[str, Any]) -> list[Type]:
    """The operands' types."""
    reduce_rule(types, attrs)
    return list(types)
