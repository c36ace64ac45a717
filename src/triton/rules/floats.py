"""Equations of floats of 16 bits and more. Each names its licence: why both sides are equal, NaN and the sign of zero
included.

``exact``: IEEE 754 gives the same value on both sides for every input; the payload and sign of a NaN are free.
"""

from __future__ import annotations

import math

from ..ir.numbers import round_float
from ..ir.types import ScalarType, element_of
from .pattern import Bindings, Rule, constant_of, floating


def _has_exact_reciprocal(bound: Bindings) -> bool:
    """A is a power of two whose reciprocal is a normal number of the type."""
    value, element = constant_of(bound["A"]), element_of(bound["A"].type)
    assert isinstance(value, float) and isinstance(element, ScalarType)
    if not math.isfinite(value) or math.frexp(value)[0] not in (0.5, -0.5):
        return False
    smallest = 2.0 ** (-1022 if element.bits == 64 else -14 if element.name == "f16" else -126)
    return abs(value) >= smallest and abs(1 / value) >= smallest and round_float(1 / value, element) == 1 / value


RULES: tuple[Rule, ...] = (
    Rule("mul(x, 1.0)", "x", floating, "exact"),
    Rule("div(x, 1.0)", "x", floating, "exact"),
    Rule("mul(x, -1.0)", "neg(x)", floating, "exact"),
    Rule("div(x, -1.0)", "neg(x)", floating, "exact"),
    Rule("sub(x, 0.0)", "x", floating, "exact: -0 - +0 is -0"),
    Rule("add(x, -0.0)", "x", floating, "exact: -0 + -0 is -0; x + +0 would turn -0 into +0"),
    Rule("sub(-0.0, x)", "neg(x)", floating, "exact: -0 - +0 is -0, -0 - -0 is +0"),
    Rule(
        "div(x, A)", "mul(x, div(1.0, A))", floating, "exact: the reciprocal of a power of two", _has_exact_reciprocal
    ),
    Rule("add(x, neg(y))", "sub(x, y)", floating, "exact"),
    Rule("add(neg(x), y)", "sub(y, x)", floating, "exact"),
    Rule("sub(x, neg(y))", "add(x, y)", floating, "exact"),
    Rule("mul(neg(x), neg(y))", "mul(x, y)", floating, "exact"),
    Rule("div(neg(x), neg(y))", "div(x, y)", floating, "exact"),
    Rule("mul(neg(x), A)", "mul(x, neg(A))", floating, "exact"),
    Rule("fma(x, y, -0.0)", "mul(x, y)", floating, "exact: adding -0 changes nothing, one rounding either way"),
    Rule("fma(x, 1.0, y)", "add(x, y)", floating, "exact"),
    Rule("fma(neg(x), neg(y), z)", "fma(x, y, z)", floating, "exact"),
    Rule("floor(floor(x))", "floor(x)", floating, "exact"),
    Rule("ceil(ceil(x))", "ceil(x)", floating, "exact"),
    Rule("floor(ceil(x))", "ceil(x)", floating, "exact"),
    Rule("ceil(floor(x))", "floor(x)", floating, "exact"),
)
