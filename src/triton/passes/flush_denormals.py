"""Marks ``exp2`` ops whose denormal results cannot show in what is made of them.

Requires: stage ``tile``; a target on which keeping denormals costs instructions.
Ensures: an f32 ``exp2`` has ``flush`` when all that its result comes to, moved, selected or not, are sums over an axis
and operands of matrix products in a narrower float type: there a term below 2^-126 counts as zero.

    %p = exp2 %x : 64x64xf32                            %p = exp2 %x {flush = true} : 64x64xf32
    %s = reduce %p {axis = 1} ... add             =>    ...
    %h = cast %p : 64x64xf16
    %r = dot %h, %v, %acc
"""

from __future__ import annotations

from ..analysis.uses import find_uses
from ..ir.core import Module, Op, Value
from ..ir.types import ScalarType, TensorType, element_of

_MOVES = frozenset({"expand_dims", "broadcast", "reshape", "permute", "convert_layout", "select"})
_Uses = dict[Value, list[tuple[Op, int]]]


def flush_denormals(module: Module) -> Module:
    """Marks the ops of every function; see the head of this file."""
    for function in module.functions.values():
        marked = [op for op in function.body.walk() if op.kind == "exp2" and _is_f32(op.results[0])]
        uses = find_uses(function) if marked else {}
        for op in marked:
            if isinstance(op.results[0].type, TensorType) and _only_terms(op.results[0], uses):
                op.attrs = {**op.attrs, "flush": True}
    return module


def _is_f32(value: Value) -> bool:
    element = element_of(value.type)
    return isinstance(element, ScalarType) and element.is_float and element.bits == 32


def _only_terms(value: Value, uses: _Uses) -> bool:
    """Whether ``value`` ends in sums and products only."""
    return all(_is_term(op, place, uses) for op, place in uses.get(value, ()))


def _is_term(op: Op, place: int, uses: _Uses) -> bool:
    if op.kind in _MOVES:
        return (op.kind != "select" or place > 0) and _only_terms(op.results[0], uses)
    if op.kind == "cast":
        element = element_of(op.results[0].type)
        assert isinstance(element, ScalarType)
        return element.is_float and element.bits < 32 and _only_factors(op.results[0], uses)
    if op.kind != "reduce" or len(op.operands) != 1:
        return False
    combine = op.regions[0].ops
    return len(combine) == 2 and combine[0].kind == "add" and set(combine[0].operands) == set(op.regions[0].args)


def _only_factors(value: Value, uses: _Uses) -> bool:
    for op, place in uses.get(value, ()):
        moved = op.kind in _MOVES and (op.kind != "select" or place > 0) and _only_factors(op.results[0], uses)
        if not moved and not (op.kind == "dot" and place < 2):
            return False
    return True
