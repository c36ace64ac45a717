"""Structural equality of modules: same ops, types, attributes and data flow; value names and locations do not count."""

from __future__ import annotations

import struct
from typing import Any

from .core import Block, Function, Module, Op, Value
from .ops import OPS
from .table import REQUIRED


def equal(a: Module, b: Module) -> bool:
    """True when the two modules differ at most in value names and locations.

    An attribute left out equals one given with its default. Floats compare by their bits: -0.0 is not 0.0, NaN is NaN.
    """
    if list(a.functions) != list(b.functions) or freeze(a.attrs) != freeze(b.attrs):
        return False
    return all(equal_functions(f, g) for f, g in zip(a.functions.values(), b.functions.values(), strict=True))


def equal_functions(f: Function, g: Function) -> bool:
    """``equal`` for one function."""
    if (f.name, f.result_types) != (g.name, g.result_types) or freeze(f.attrs) != freeze(g.attrs):
        return False
    return list(map(freeze, f.arg_attrs)) == list(map(freeze, g.arg_attrs)) and _blocks(f.body, g.body, {})


def freeze(value: Any) -> Any:
    """A hashable stand-in for an attribute value, equal only for equal values of one type."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)
    if isinstance(value, dict):
        return tuple((k, freeze(value[k])) for k in sorted(value))
    if isinstance(value, (tuple, list)):
        return tuple(map(freeze, value))
    return type(value), value


def _blocks(a: Block, b: Block, same: dict[Value, Value]) -> bool:
    if len(a.ops) != len(b.ops) or not _bind(a.args, b.args, same):
        return False
    return all(_ops(x, y, same) for x, y in zip(a.ops, b.ops, strict=True))


def _bind(a: list[Value], b: list[Value], same: dict[Value, Value]) -> bool:
    if [v.type for v in a] != [v.type for v in b]:
        return False
    same.update(zip(a, b, strict=True))
    return True


def _ops(a: Op, b: Op, same: dict[Value, Value]) -> bool:
    if a.kind != b.kind or len(a.operands) != len(b.operands) or len(a.regions) != len(b.regions):
        return False
    if any(same.get(v) is not w for v, w in zip(a.operands, b.operands, strict=True)):
        return False
    if (a.attrs or b.attrs) and _attributes(a) != _attributes(b):
        return False
    return _bind(a.results, b.results, same) and all(
        _blocks(x, y, same) for x, y in zip(a.regions, b.regions, strict=True)
    )


def _attributes(op: Op) -> dict[str, Any]:
    info = OPS.get(op.kind)
    given = {k: freeze(v) for k, v in op.attrs.items()}
    if info is not None:
        for name, attr in info.attrs.items():
            if attr.default is not REQUIRED:
                given.setdefault(name, freeze(attr.default))
    return given
