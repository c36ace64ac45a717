"""The arithmetic of constants: what an elementwise op gives for known numbers, as the interpreter would.

Floats are computed in f64 and rounded once to the result's type. For + - * / sqrt that equals rounding the exact
result, because f64 has more than twice the digits of the narrower types (Figueroa 1995). Results are None where a
constant would lose something: NaN in ``bitcast``, zeros of different sign in ``min`` and ``max``, functions that only
a back end knows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.core import Op
from ..ir.numbers import Number, from_bits, limits, round_float, to_bits, wrap
from ..ir.types import ElementType, PointerType, ScalarType, element_of

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def evaluate(op: Op, numbers: Sequence[Number]) -> Number | None:
    """The result of an elementwise op on these operand values, or None when it is not for the compiler to say."""
    kind = op.kind
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if kind == "cmp":
        return COMPARE[op.attrs["pred"]](numbers[0], numbers[1])
    if kind == "bitcast":
        return _bitcast(numbers[0], source, target)
    if not isinstance(target, ScalarType) or not isinstance(source, ScalarType):
        return None
    if kind == "cast":
        return convert(numbers[0], target, op.attrs.get("rounding") == "rtz") if source != target else numbers[0]
    if not target.is_float:
        rule = _INTEGER.get(kind)
        return None if rule is None else wrap(rule(*map(int, numbers), target), target)
    if kind in ("min", "max"):
        return _extremum(kind, float(numbers[0]), float(numbers[1]), bool(op.attrs.get("propagate_nan")))
    float_rule = _FLOAT.get(kind)
    if float_rule is None:
        return None
    try:
        result = float_rule(*map(float, numbers))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return None if result is None else round_float(result, target)


def convert(value: Number, target: ScalarType, toward_zero: bool = False) -> Number:
    """``cast``: one rounding to float; float to integer truncates and saturates, NaN gives 0; to i1 asks != 0."""
    if target.is_bool:
        return value != 0
    if target.is_float:
        return round_float(value if isinstance(value, float) else int(value), target, toward_zero)
    if not isinstance(value, float):
        return wrap(int(value), target)
    low, high = limits(target)
    if not math.isfinite(value):
        return 0 if value != value else low if value < 0 else high
    return min(max(int(value), low), high)


def _bitcast(value: Number, source: ElementType, target: ElementType) -> Number | None:
    if isinstance(target, PointerType) or isinstance(source, PointerType):
        return 0 if value == 0 and not (isinstance(value, float) and math.copysign(1, value) < 0) else None
    result = from_bits(to_bits(value, source), target)
    return None if value != value or result != result else result


def _extremum(kind: str, a: float, b: float, propagate: bool) -> float | None:
    if a != a or b != b:
        other = b if a != a else a
        return math.nan if propagate else other
    if a == b == 0 and math.copysign(1, a) != math.copysign(1, b):
        return None
    return min(a, b) if kind == "min" else max(a, b)


# Integers: the mathematical result, wrapped by the caller ------------------------------------------------------------


def _divide(a: int, b: int, t: ScalarType) -> int:
    b = b or 1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift(amount: int, t: ScalarType) -> int:
    """Amounts are unsigned; beyond the width all bits are shifted out."""
    return min(amount & (1 << t.bits) - 1, t.bits)


_INTEGER: dict[str, Callable[..., int]] = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul": lambda a, b, t: a * b,
    "div": _divide,
    "rem": lambda a, b, t: a - (b or 1) * _divide(a, b, t),
    "mulhi": lambda a, b, t: a * b >> t.bits,
    "and": lambda a, b, t: a & b,
    "or": lambda a, b, t: a | b,
    "xor": lambda a, b, t: a ^ b,
    "shl": lambda a, b, t: a << _shift(b, t),
    "shr": lambda a, b, t: a >> _shift(b, t),
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
    "neg": lambda a, t: -a,
    "abs": lambda a, t: abs(a),
}


# Floats --------------------------------------------------------------------------------------------------------------


def _quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _fmod(a: float, b: float) -> float:
    if a != a or b != b or math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


def _fma(a: float, b: float, c: float) -> float | None:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c if not (math.isfinite(a) and math.isfinite(b)) else c
    (an, ad), (bn, bd), (cn, cd) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    numerator, denominator = an * bn * cd + cn * ad * bd, ad * bd * cd
    if numerator == 0:
        return a * b + c if a * b == 0 else 0.0
    result = numerator / denominator  # rounded once
    n, d = result.as_integer_ratio()
    return result if n * denominator == numerator * d else None  # a second rounding might differ


def _whole(f: Callable[[float], int]) -> Callable[[float], float]:
    return lambda a: math.copysign(float(f(a)), a) if math.isfinite(a) and abs(a) < 2.0**52 else a


_FLOAT: dict[str, Callable[..., float | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "rem": _fmod,
    "neg": lambda a: -a,
    "abs": abs,
    "fma": _fma,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "sqrt": lambda a: math.sqrt(a),
    "sqrt_rn": lambda a: math.sqrt(a),
    "rsqrt": lambda a: 1 / math.sqrt(a),
    "exp": lambda a: math.inf if a > 710 else math.exp(a),
    "exp2": lambda a: 2.0**a,
    "log": lambda a: math.log(a),
    "log2": lambda a: math.log2(a),
    "sin": math.sin,
    "cos": math.cos,
    "erf": math.erf,
}
