"""Equations of wrapping integers and of booleans. All hold modulo 2^bits; those that need more say so in ``when``."""

from __future__ import annotations

from ..ir.numbers import limits
from ..ir.types import ScalarType, element_of
from .pattern import Bindings, Rule, boolean, constant_of, integer, number, signed, unsigned, whole, with_sign


def _int(bound: Bindings, name: str) -> int:
    value = constant_of(bound[name])
    assert value is not None
    return int(value)


def _product_fits(bound: Bindings) -> bool:
    """A and B are positive and A * B is in the type's range."""
    a, b, element = _int(bound, "A"), _int(bound, "B"), element_of(bound["A"].type)
    assert isinstance(element, ScalarType)
    return a > 0 and b > 0 and a * b <= limits(element)[1]


def _shifts_fit(bound: Bindings) -> bool:
    """The two shifts by A and B are one by A + B that is less than the width."""
    a, b = _int(bound, "A"), _int(bound, "B")
    return a >= 0 and b >= 0 and a + b < element_of(bound["x"].type).bits


def _divides(bound: Bindings) -> bool:
    """B is a power of two that divides A: it also divides the wrapped product."""
    a, b = _int(bound, "A"), _int(bound, "B")
    return b > 0 and b & (b - 1) == 0 and a % b == 0


RULES: tuple[Rule, ...] = (
    # neutral and absorbing numbers
    Rule("add(x, 0)", "x", whole),
    Rule("sub(x, 0)", "x", whole),
    Rule("sub(0, x)", "neg(x)", integer),
    Rule("sub(x, x)", "0", whole),
    Rule("mul(x, 1)", "x", whole),
    Rule("mul(x, 0)", "0", whole),
    Rule("mul(x, -1)", "neg(x)", signed),
    Rule("div(x, 1)", "x", whole),
    Rule("div(x, -1)", "neg(x)", signed),
    Rule("div(0, x)", "0", whole),  # 0 / 0 counts as 0 / 1
    Rule("rem(x, 1)", "0", whole),
    Rule("rem(x, -1)", "0", signed),
    Rule("rem(0, x)", "0", whole),
    Rule("rem(x, x)", "0", whole),  # 0 rem 0 counts as 0 rem 1
    Rule("mulhi(x, 0)", "0", whole),
    Rule("and_(x, 0)", "0", whole),
    Rule("and_(x, -1)", "x", whole),
    Rule("and_(x, x)", "x", whole),
    Rule("or_(x, 0)", "x", whole),
    Rule("or_(x, -1)", "-1", whole),
    Rule("or_(x, x)", "x", whole),
    Rule("xor(x, 0)", "x", whole),
    Rule("xor(x, x)", "0", whole),
    Rule("shl(x, 0)", "x", whole),
    Rule("shr(x, 0)", "x", whole),
    Rule("shl(0, x)", "0", whole),
    Rule("shr(0, x)", "0", whole),
    Rule("min(x, x)", "x", number),
    Rule("max(x, x)", "x", number),
    # constants move outward and meet
    Rule("add(add(x, A), B)", "add(x, add(A, B))", integer),
    Rule("add(sub(A, x), B)", "sub(add(A, B), x)", integer),
    Rule("sub(x, A)", "add(x, neg(A))", signed),
    Rule("sub(A, add(x, B))", "sub(sub(A, B), x)", integer),
    Rule("sub(A, sub(B, x))", "add(x, sub(A, B))", integer),
    Rule("mul(mul(x, A), B)", "mul(x, mul(A, B))", integer),
    Rule("and_(and_(x, A), B)", "and_(x, and_(A, B))", whole),
    Rule("or_(or_(x, A), B)", "or_(x, or_(A, B))", whole),
    Rule("xor(xor(x, A), B)", "xor(x, xor(A, B))", whole),
    Rule("min(min(x, A), B)", "min(x, min(A, B))", whole),
    Rule("max(max(x, A), B)", "max(x, max(A, B))", whole),
    Rule("div(div(x, A), B)", "div(x, mul(A, B))", integer, when=_product_fits),
    Rule("shl(shl(x, A), B)", "shl(x, add(A, B))", integer, when=_shifts_fit),
    Rule("shr(shr(x, A), B)", "shr(x, add(A, B))", integer, when=_shifts_fit),
    # what cancels
    Rule("neg(neg(x))", "x", number),
    Rule("add(x, neg(y))", "sub(x, y)", integer),
    Rule("add(neg(x), y)", "sub(y, x)", integer),
    Rule("sub(x, neg(y))", "add(x, y)", integer),
    Rule("neg(sub(x, y))", "sub(y, x)", integer),
    Rule("mul(neg(x), neg(y))", "mul(x, y)", integer),
    Rule("mul(neg(x), A)", "mul(x, neg(A))", integer),
    Rule("sub(add(x, y), y)", "x", integer),
    Rule("sub(add(x, y), x)", "y", integer),
    Rule("add(sub(x, y), y)", "x", integer),
    Rule("add(y, sub(x, y))", "x", integer),
    Rule("sub(x, sub(x, y))", "y", integer),
    Rule("xor(xor(x, y), y)", "x", whole),
    Rule("and_(x, or_(x, y))", "x", whole),
    Rule("or_(x, and_(x, y))", "x", whole),
    Rule("and_(and_(x, y), y)", "and_(x, y)", whole),
    Rule("and_(and_(x, y), x)", "and_(x, y)", whole),
    Rule("or_(or_(x, y), y)", "or_(x, y)", whole),
    Rule("min(x, max(x, y))", "x", whole),
    Rule("max(x, min(x, y))", "x", whole),
    Rule("rem(rem(x, y), y)", "rem(x, y)", integer),
    Rule("rem(mul(x, A), B)", "0", integer, when=_divides),
    Rule("abs(abs(x))", "abs(x)", number),
    Rule("abs(neg(x))", "abs(x)", with_sign),
    Rule("abs(x)", "x", unsigned),
    # booleans: modulo 2
    Rule("abs(x)", "x", boolean),
    Rule("neg(x)", "x", boolean),
    Rule("add(x, y)", "xor(x, y)", boolean),
    Rule("sub(x, y)", "xor(x, y)", boolean),
    Rule("mul(x, y)", "and_(x, y)", boolean),
    Rule("min(x, y)", "and_(x, y)", boolean),
    Rule("max(x, y)", "or_(x, y)", boolean),
    Rule('cmp(x, true, pred="eq")', "x", boolean),
    Rule('cmp(x, false, pred="ne")', "x", boolean),
    Rule('cmp(x, false, pred="eq")', "xor(x, true)", boolean),
    Rule('cmp(x, true, pred="ne")', "xor(x, true)", boolean),
    # comparisons
    Rule('cmp(x, x, pred="eq")', "true", whole),
    Rule('cmp(x, x, pred="le")', "true", whole),
    Rule('cmp(x, x, pred="ge")', "true", whole),
    Rule('cmp(x, x, pred="ne")', "false", whole),
    Rule('cmp(x, x, pred="lt")', "false", number),
    Rule('cmp(x, x, pred="gt")', "false", number),
    Rule('cmp(add(x, A), B, pred="eq")', 'cmp(x, sub(B, A), pred="eq")', integer),
    Rule('cmp(add(x, A), B, pred="ne")', 'cmp(x, sub(B, A), pred="ne")', integer),
    Rule('cmp(sub(x, y), 0, pred="eq")', 'cmp(x, y, pred="eq")', integer),
    Rule('cmp(sub(x, y), 0, pred="ne")', 'cmp(x, y, pred="ne")', integer),
    # not of a comparison; of floats only where NaN behaves
    Rule('xor(cmp(x, y, pred="eq"), true)', 'cmp(x, y, pred="ne")', boolean),
    Rule('xor(cmp(x, y, pred="ne"), true)', 'cmp(x, y, pred="eq")', boolean),
    # choices between booleans
    Rule("select(true, x, y)", "x", boolean),
    Rule("select(false, x, y)", "y", boolean),
    Rule("select(c, x, x)", "x", boolean),
    Rule("select(xor(c, true), x, y)", "select(c, y, x)", boolean),
    Rule("select(c, select(c, x, y), z)", "select(c, x, z)", boolean),
    Rule("select(c, x, select(c, y, z))", "select(c, x, z)", boolean),
)
