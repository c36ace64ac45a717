"""What a rewrite rule is, and how tables of equations are matched.

An equation is written as text, ``"add(sub(x, y), y)" -> "x"``, in the names of the op table (a trailing underscore
for Python's keywords: ``and_``). Small letters stand for any value, capital letters for a constant, numbers for a
constant with that value (-1: all bits set), ``true`` and ``false`` for booleans. Attributes are given by keyword.
Operands of commutative ops match in either order. On the right, ops on constants become constants.

A rule that needs more than an equation is a function ``(rewriter, op) -> Value | None`` with the equation as text and
examples that show it at work; the tests run both kinds against the interpreter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ..analysis.ranges import Range
from ..ir.core import Op, Value
from ..ir.numbers import Number, wrap
from ..ir.ops import OPS
from ..ir.types import ElementType, ScalarType, Type, element_of

Result = Value | list[Value] | None


class Rewriter(Protocol):
    """What a rule may use. ``emit`` simplifies the new op in turn and gives its only result."""

    def emit(
        self, kind: str, operands: Sequence[Value], type: Type | None = None, attrs: dict[str, Any] | None = None
    ) -> Value: ...

    def constant(self, value: Number, type: Type) -> Value: ...

    def range_of(self, value: Value) -> Range | None: ...

    def is_used_once(self, value: Value) -> bool: ...


Domain = Callable[[ElementType], bool]


def integer(element: ElementType) -> bool:
    """Signed and unsigned integers, booleans excepted."""
    return element.kind in ("int", "uint")


def signed(element: ElementType) -> bool:
    return element.kind == "int"


def unsigned(element: ElementType) -> bool:
    return element.kind == "uint"


def boolean(element: ElementType) -> bool:
    return element.is_bool


def whole(element: ElementType) -> bool:
    """Integers and booleans."""
    return element.is_integer


def floating(element: ElementType) -> bool:
    """Floats of 16 bits and more; the 8-bit ones saturate, so that even x * 1 may change x."""
    return element.is_float and element.bits > 8


def number(element: ElementType) -> bool:
    return whole(element) or floating(element)


def with_sign(element: ElementType) -> bool:
    return signed(element) or floating(element)


class Node(NamedTuple):
    """A parsed equation side: ``op`` with kind, attributes and arguments, ``var``, ``const`` (capital) or ``num``."""

    form: str
    name: str = ""
    number: Number = 0
    attrs: tuple[tuple[str, Any], ...] = ()
    args: tuple[Node, ...] = ()


Bindings = dict[str, Value]


class Rule:
    """``left`` equals ``right`` where the root's first operand has elements in ``domain`` and ``when`` holds.

    ``licence`` says for float rules why the two sides are equal, or what the language permits. The text is parsed when
    first needed.
    """

    __slots__ = ("_sides", "domain", "kind", "left", "licence", "right", "when")

    def __init__(
        self, left: str, right: str, domain: Domain, licence: str = "", when: Callable[[Bindings], bool] | None = None
    ) -> None:
        self.left, self.right, self.domain, self.licence, self.when = left, right, domain, licence, when
        self.kind = left.partition("(")[0].rstrip("_")
        self._sides: tuple[Node, Node] | None = None

    @property
    def sides(self) -> tuple[Node, Node]:
        """The two sides, parsed."""
        if self._sides is None:
            self._sides = parse(self.left), parse(self.right)
        return self._sides

    def apply(self, rewriter: Rewriter, op: Op) -> Result:
        """The value that takes the place of ``op``'s result, or None when the rule does not fit."""
        first = op.operands[0]
        if not self.domain(element_of(first.type)):
            return None
        left, right = self.sides
        bound: Bindings = {}
        if not _match_op(left, op, bound) or (self.when is not None and not self.when(bound)):
            return None
        return _build(right, rewriter, bound, first.type, op)


class FunctionRule(NamedTuple):
    """A rule as a function; ``examples`` are bodies like those of the op table in which it fires.

    ``needs`` names kinds of ops of which at least one must define an operand: without them the function is not called.
    """

    kinds: tuple[str, ...]
    equation: str
    apply: Callable[[Rewriter, Op], Result]
    examples: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def collector() -> tuple[list[FunctionRule], Callable[..., Callable[[Any], Any]]]:
    """A table and the decorator ``@rule(kinds, equation, *examples, needs=...)`` that fills it."""
    table: list[FunctionRule] = []

    def rule(kinds: str, equation: str, *examples: str, needs: str = "") -> Callable[[Any], Any]:
        def add(function: Callable[[Rewriter, Op], Result]) -> Callable[[Rewriter, Op], Result]:
            table.append(FunctionRule(tuple(kinds.split()), equation, function, examples, tuple(needs.split())))
            return function

        return add

    return table, rule


# Facts about values -------------------------------------------------------------------------------------------------


def defined_by(value: Value, kind: str) -> Op | None:
    """The op that makes ``value`` when it is of this kind."""
    owner = value.owner
    return owner if isinstance(owner, Op) and owner.kind == kind else None


def constant_of(value: Value) -> Number | None:
    """The number that ``value`` holds everywhere, when it is a constant."""
    owner = value.owner
    if isinstance(owner, Op) and owner.kind == "constant":
        number: Number = owner.attrs["value"]
        return number
    return None


def is_constant(value: Value, number: int) -> bool:
    """Whether ``value`` is this number everywhere (-1: all bits set); for floats +0.0 and -0.0 differ."""
    found = constant_of(value)
    return found is not None and _equals(found, number, element_of(value.type))


def _equals(found: Number, wanted: Number, element: ElementType) -> bool:
    if isinstance(found, float):
        return found == wanted and math.copysign(1.0, found) == math.copysign(1.0, wanted)
    if isinstance(wanted, float):
        return False
    return found == (wrap(wanted, element) if isinstance(element, ScalarType) else wanted)


# Equations ----------------------------------------------------------------------------------------------------------


_TOKEN = re.compile(r'[A-Za-z]\w*|-?[\d.]+|"[^"]*"|[(),=]')


def parse(text: str) -> Node:
    """One side of an equation: ``name(side, ..., attribute="text")``, a name, or a number."""
    tokens = _TOKEN.findall(text)
    node, end = _node(tokens, 0)
    assert end == len(tokens), f"cannot read {text}"
    return node


def _node(tokens: list[str], at: int) -> tuple[Node, int]:
    """The node that starts at a token, and where the next one stands."""
    word = tokens[at]
    if not word[0].isalpha():
        return Node("num", number=float(word) if "." in word else int(word)), at + 1
    if tokens[at + 1 : at + 2] != ["("]:
        if word in ("true", "false"):
            return Node("num", number=word == "true"), at + 1
        return Node("const" if word.isupper() else "var", word), at + 1
    args: list[Node] = []
    attrs: list[tuple[str, str]] = []
    at += 1
    while tokens[at] != ")":  # at an opening bracket or a comma
        if tokens[at + 2] == "=":
            attrs.append((tokens[at + 1], tokens[at + 3].strip('"')))
            at += 4
        else:
            node, at = _node(tokens, at + 1)
            args.append(node)
    return Node("op", word.rstrip("_"), attrs=tuple(attrs), args=tuple(args)), at + 1


def _match_op(node: Node, op: Op, bound: Bindings) -> bool:
    if op.kind != node.name or len(op.operands) != len(node.args):
        return False
    for name, value in node.attrs:
        if op.attrs.get(name) != value:
            return False
    before = dict(bound)
    if _match_all(node.args, op.operands, bound):
        return True
    bound.clear()
    bound.update(before)
    return OPS[op.kind].commutative and _match_all(node.args, op.operands[::-1], bound)


def _match_all(nodes: Sequence[Node], values: Sequence[Value], bound: Bindings) -> bool:
    return all(_match(node, value, bound) for node, value in zip(nodes, values, strict=True))


def _match(node: Node, value: Value, bound: Bindings) -> bool:
    if node.form == "op":
        owner = value.owner
        return isinstance(owner, Op) and _match_op(node, owner, bound)
    if node.form == "num":
        found = constant_of(value)
        return found is not None and _equals(found, node.number, element_of(value.type))
    if node.form == "const" and constant_of(value) is None:
        return False
    known = bound.get(node.name)
    if known is None:
        bound[node.name] = value
        return True
    return known is value


def _build(node: Node, rewriter: Rewriter, bound: Bindings, type: Type, root: Op | None = None) -> Value:
    """``type`` is that of the numbers on the right; a number alone has the root's type."""
    if node.form in ("var", "const"):
        return bound[node.name]
    if node.form == "num":
        type = root.results[0].type if root is not None else type
        element, value = element_of(type), node.number
        if element.is_float:
            value = float(value)
        elif isinstance(element, ScalarType):
            value = wrap(int(value), element)
        return rewriter.constant(value, type)
    operands = [_build(arg, rewriter, bound, type) for arg in node.args]
    return rewriter.emit(node.name, operands, None, dict(node.attrs))
