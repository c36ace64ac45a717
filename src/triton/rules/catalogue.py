"""All rules, and for an op the few that can apply, by the kinds of the ops that define its operands."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.core import Op
from ..ir.ops import OPS
from . import casts, floats, integers, memory, shapes
from .constants import evaluate
from .pattern import FunctionRule, Node, Result, Rewriter, Rule, constant_of

RULES: tuple[Rule, ...] = integers.RULES + floats.RULES
FUNCTIONS: tuple[FunctionRule, ...] = (*casts.RULES, *shapes.RULES, *memory.RULES)

Apply = Callable[[Rewriter, Op], Result]
Kinds = tuple[str | None, ...]

_BY_KIND: dict[str, list[Rule | FunctionRule]] = {}
for _rule in RULES:
    _BY_KIND.setdefault(_rule.kind, []).append(_rule)
for _function in FUNCTIONS:
    for _kind in _function.kinds:
        _BY_KIND.setdefault(_kind, []).append(_function)

_plans: dict[tuple[str, Kinds], tuple[Apply, ...]] = {}
_UNIFORM = frozenset({"splat", "constant"})


def candidates(kind: str, operands: Kinds) -> tuple[Apply, ...]:
    """What to try on an op of this kind; ``operands`` are the kinds of the defining ops, None for arguments."""
    key = kind, operands
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = _plan(kind, operands)
    return plan


def fold_constants(rewriter: Rewriter, op: Op) -> Result:
    """An elementwise op on constants is a constant."""
    numbers = [constant_of(v) for v in op.operands]
    if len(op.results) != 1 or any(n is None for n in numbers):
        return None
    result = evaluate(op, [n for n in numbers if n is not None])
    return None if result is None else rewriter.constant(result, op.results[0].type)


def _plan(kind: str, operands: Kinds) -> tuple[Apply, ...]:
    plan: list[Apply] = []
    elementwise = OPS[kind].elementwise and kind not in ("load", "store") and len(operands) > 0
    if elementwise and all(k == "constant" for k in operands):
        plan.append(fold_constants)
    for rule in _BY_KIND.get(kind, ()):
        if isinstance(rule, Rule):
            if _may_match(rule.sides[0], kind, operands):
                plan.append(rule.apply)
        elif not rule.needs or any(k in rule.needs for k in operands):
            plan.append(rule.apply)
    if elementwise and "splat" in operands:
        plan.append(_pure(shapes.elementwise_of_uniform))
    if elementwise and "broadcast" in operands:
        plan.append(_pure(shapes.elementwise_of_broadcast))
    return tuple(plan)


def _pure(apply: Apply) -> Apply:
    return lambda rewriter, op: apply(rewriter, op) if shapes.is_elementwise(op) else None


def _may_match(pattern: Node, kind: str, operands: Kinds) -> bool:
    wanted = tuple(_required(arg) for arg in pattern.args)
    if len(wanted) != len(operands):
        return False
    orders = (operands, operands[::-1]) if OPS[kind].commutative else (operands,)
    return any(all(w is None or w == k for w, k in zip(wanted, order, strict=True)) for order in orders)


def _required(node: Node) -> str | None:
    return node.name if node.form == "op" else None if node.form == "var" else "constant"
