"""Which kernel parameter a pointer or descriptor comes from."""

from __future__ import annotations

from ..ir.core import Block, Function, Value

_SAME = frozenset(
    {
        "addptr",
        "splat",
        "broadcast",
        "expand_dims",
        "reshape",
        "permute",
        "convert_layout",
        "hint",
        "make_desc",
        "box_map",
    }
)


def carried_values(function: Function) -> dict[Value, Value]:
    """For every loop's carried argument the value it has in the first trip."""
    found: dict[Value, Value] = {}
    for op in function.body.walk():
        if op.kind in ("for", "while"):
            inits = op.operands[3:] if op.kind == "for" else op.operands
            args = op.regions[0].args[1:] if op.kind == "for" else op.regions[0].args
            found.update(zip(args, inits, strict=True))
    return found


def root(value: Value | None, parameters: Block, carried: dict[Value, Value]) -> Value | None:
    """The parameter, an argument of the function's body; None when it cannot be told."""
    for _ in range(1000):
        if value is None:
            return None
        op = value.op
        if op is None:
            if value.owner is parameters:
                return value
            value = carried.get(value)
        elif op.kind in _SAME:
            value = op.operands[0]
        elif op.kind == "for":
            value = op.operands[3 + value.index]
        else:
            return None
    return None
