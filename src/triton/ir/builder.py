"""Builds ops at the end of a block: one method per row of the op table; types are inferred where a rule exists."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .core import Block, Location, Op, Value
from .ops import OPS
from .table import IRError
from .types import Type, element_of


class Builder:
    """``block`` is where ops go and ``loc`` what they are marked with; both may be set freely.

    ``b.add(x, y)``, ``b.load(p, mask, cache=".cg")``, ``b.constant(value=0.0, types=[t])``: operands by position,
    attributes and ``types``/``regions`` by keyword. An op with one result returns that value, otherwise the op's list
    of results. Names that Python keeps get a trailing underscore: ``b.and_``, ``b.for_``, ``b.yield_``.
    """

    __slots__ = ("block", "loc")

    def __init__(self, block: Block | None = None, loc: Location | None = None) -> None:
        self.block = block if block is not None else Block()
        self.loc = loc

    def emit(
        self,
        kind: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] | None = None,
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
    ) -> Op:
        """Appends an op and returns it. Raises IRError when the inference rule refuses the operand types."""
        attrs = attrs or {}
        if types is None:
            rule = OPS[kind].infer
            if rule is None:
                raise IRError(f"{kind} needs explicit result types")
            try:
                types = rule([v.type for v in operands], attrs)
            except IRError as error:
                raise IRError(f"{kind}: {error}") from None
        op = Op(kind, operands, types, attrs, regions, self.loc)
        self.block.ops.append(op)
        return op

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Ops go to ``block`` while the context lasts."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    def const(self, value: bool | int | float, type: Type) -> Value:
        """A constant of ``type`` (scalar or tensor); ``value`` is brought to the Python type the op table asks for."""
        element = element_of(type)
        if element.is_float:
            value = float(value)
        elif element.is_bool:
            value = bool(value)
        elif not isinstance(value, int) or isinstance(value, bool):
            value = int(value)
        return self.emit("constant", (), [type], {"value": value}).results[0]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"the op table has no op {name!r}")


def _method(kind: str) -> Callable[..., Any]:
    names = frozenset(OPS[kind].attrs)

    def build(
        self: Builder,
        *operands: Value | None,
        types: Sequence[Type] | None = None,
        regions: Sequence[Block] = (),
        **attrs: Any,
    ) -> Any:
        unknown = attrs.keys() - names
        if unknown:
            raise IRError(f"{kind} has no attribute {sorted(unknown)[0]!r}")
        given = [v for v in operands if v is not None]
        results = self.emit(kind, given, types, attrs, regions).results
        return results[0] if len(results) == 1 else results

    build.__doc__ = OPS[kind].meaning
    return build


for _kind in OPS:
    setattr(Builder, _kind + "_" if keyword.iskeyword(_kind) else _kind, _method(_kind))
