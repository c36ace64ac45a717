"""Masks without which a value changes nothing: 0 in a sum, -infinity in a maximum.

    x = load(p, mask, other=0)      sum(x), sum(x * x), sum(select(mask, x - m, 0)): vectors without a lane in ``mask``
                                    need no work
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.core import Value
from ...ir.types import TensorType, element_of


def is_number(value: Value, number: float) -> bool:
    """Whether ``value`` is this constant everywhere; 0.0 is not -0.0."""
    op = value.op
    if op is None or op.kind != "constant":
        return False
    found = op.attrs["value"]
    return bool(found == number) and math.copysign(1.0, found) == math.copysign(1.0, number)


def zero_without(value: Value) -> Value | None:
    """The mask without which ``value`` is 0 (or -0.0)."""
    found = number_without(value, 0)
    op = value.op
    if found is not None or op is None:
        return found
    if op.kind in ("mul", "add", "sub"):
        first, second = (zero_without(v) for v in op.operands)
        return first if first is second else None
    if op.kind in ("neg", "abs"):
        return zero_without(op.operands[0])
    if op.kind == "cast" and element_of(value.type).is_float == element_of(op.operands[0].type).is_float:
        return zero_without(op.operands[0])
    return None


def number_without(value: Value, number: float) -> Value | None:
    """The mask without which a load or a selection is ``number``."""
    op = value.op
    if op is None or not isinstance(value.type, TensorType):
        return None
    if op.kind == "load" and len(op.operands) > 1:
        other_is_number = number == 0 if len(op.operands) == 2 else is_number(op.operands[2], number)
        return op.operands[1] if other_is_number else None
    if op.kind == "select" and is_number(op.operands[2], number) and isinstance(op.operands[0].type, TensorType):
        return op.operands[0]
    return None


def nothing_without(values: Sequence[Value], neutral: Sequence[float]) -> Value | None:
    """The mask without which every one of ``values`` is what a reduction starts from; any zero where that is a zero."""
    found = [
        zero_without(v) if number == 0 else number_without(v, number)
        for v, number in zip(values, neutral, strict=True)
    ]
    return found[0] if all(mask is found[0] for mask in found) else None
