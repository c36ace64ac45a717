"""Writes block-scaled products as ordinary ones, for targets without instructions for them.

Requires: stage ``tile``.
Ensures: no ``dot_scaled`` is left but those that the target keeps. Operands are decoded to bf16 (to f32 when one is
fp16) and multiplied by their scales, powers of two, which is exact unless the product leaves the type's range; 4-bit
values are unpacked along the axis that ``k_pack`` names. Formats: OCP Microscaling Formats (MX) Specification 1.0,
sections 5 and 6.

    %r = dot_scaled %a, %b, %c, %s {...}   =>   %v = ... 2^(%s - 127), repeated 32 times along K
                                                %x = cast %a : bf16;   %y = mul %x, %v
                                                %r = dot %y, %b, %c
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.builder import Builder
from ..ir.core import Block, Module, Op, Value
from ..ir.types import ScalarType, TensorType, bf16, element_of, f8e4m3, f8e5m2, f32, shape_of, u16, with_element

_FLOAT8 = {"e4m3": f8e4m3, "e5m2": f8e5m2}


Keep = Callable[[Op], bool]


def expand_dot_scaled(module: Module, keep: Keep = lambda op: False) -> Module:
    """Rewrites every function of ``module``; ``keep`` says which products have instructions."""
    for function in module.functions.values():
        if any(op.kind == "dot_scaled" for op in function.body.walk()):
            _block(function.body, {}, keep)
    return module


def _block(block: Block, replaced: dict[Value, Value], keep: Keep) -> None:
    old, block.ops = block.ops, []
    b = Builder(block)
    for op in old:
        op.operands = [replaced.get(v, v) for v in op.operands]
        for region in op.regions:
            _block(region, replaced, keep)
        if op.kind != "dot_scaled" or keep(op):
            block.ops.append(op)
            continue
        b.loc = op.loc
        replaced[op.results[0]] = _expand(b, op)


def _expand(b: Builder, op: Op) -> Value:
    left, right, acc, *scales = op.operands
    rest = iter(scales)
    a_scale = next(rest) if op.attrs["a_scaled"] else None
    b_scale = next(rest) if op.attrs["b_scaled"] else None
    rank = len(shape_of(left.type))
    forms = op.attrs["a_format"], op.attrs["b_format"]
    wide = f32 if "fp16" in forms else bf16
    k_pack = [bool(op.attrs.get(name, True)) for name in ("a_k_pack", "b_k_pack")]
    a = _operand(b, left, forms[0], wide, a_scale, rank - 1, k_pack[0])
    c = _operand(b, right, forms[1], wide, b_scale, rank - 2, k_pack[1])
    result: Value = b.dot(a, c, acc)
    return result


def _operand(
    b: Builder, value: Value, form: str, wide: ScalarType, scale: Value | None, k_axis: int, k_pack: bool
) -> Value:
    """The operand in ``wide``, scaled."""
    rank = len(shape_of(value.type))
    if form == "e2m1":
        value = _unpack(b, value, k_axis if k_pack else 2 * rank - 3 - k_axis)
    elif form in _FLOAT8 and element_of(value.type) != _FLOAT8[form]:
        value = b.bitcast(value, types=[with_element(value.type, _FLOAT8[form])])
    if element_of(value.type) != wide:
        value = b.cast(value, types=[with_element(value.type, wide)])
    if scale is None:
        return value
    factor = _powers(b, scale, shape_of(value.type), k_axis)
    if wide != bf16:
        factor = b.cast(factor, types=[with_element(factor.type, wide)])
    result: Value = b.mul(value, factor)
    return result


def _unpack(b: Builder, value: Value, axis: int) -> Value:
    """4-bit floats (E2M1), two in a byte, the even one low: the axis becomes twice as long."""
    low = _decode(b, b.and_(value, b.const(15, value.type)))
    high = _decode(b, b.shr(value, b.const(4, value.type)))
    shape = shape_of(value.type)
    pairs = b.join(low, high)
    order = (*range(axis + 1), len(shape), *range(axis + 1, len(shape)))
    together = b.permute(pairs, order=order)
    full = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    result: Value = b.reshape(together, types=[TensorType(full, bf16)])
    return result


def _decode(b: Builder, code: Value) -> Value:
    """E2M1 codes 0..15 as bf16: sign, exponent of bias 1, one mantissa bit; 1 is the denormal 0.5."""
    wide = b.cast(code, types=[with_element(code.type, u16)])

    def number(value: int) -> Value:
        return b.const(value, wide.type)

    sign = b.shl(b.and_(wide, number(8)), number(12))
    magnitude = b.and_(wide, number(7))
    # bf16 has 8 exponent bits and 7 mantissa bits: exponent e, mantissa m become (126 + e) << 7 | m << 6
    normal = b.add(b.shl(magnitude, number(6)), number(126 << 7))
    small = b.select(b.cmp(magnitude, number(0), pred="eq"), number(0), number(126 << 7))
    bits = b.select(b.cmp(magnitude, number(2), pred="lt"), small, normal)
    result: Value = b.bitcast(b.or_(bits, sign), types=[with_element(wide.type, bf16)])
    return result


def _powers(b: Builder, scale: Value, shape: tuple[int, ...], k_axis: int) -> Value:
    """2^(s - 127) in bf16 for every element: scales lie [..., M or N, K / 32], whichever operand they belong to."""
    wide = b.cast(scale, types=[with_element(scale.type, u16)])
    bits = b.shl(wide, b.const(7, wide.type))
    # s = 0 is 2^-127, a denormal of bf16; s = 255 is NaN, not infinity
    bits = b.select(b.cmp(wide, b.const(0, wide.type), pred="eq"), b.const(0x40, wide.type), bits)
    bits = b.select(b.cmp(wide, b.const(255, wide.type), pred="eq"), b.const(0x7FC0, wide.type), bits)
    factor = b.bitcast(bits, types=[with_element(wide.type, bf16)])
    groups = shape_of(scale.type)
    size = shape[k_axis] // groups[-1]  # elements that share a scale
    spread = (*groups, size)
    factor = b.expand_dims(factor, axis=len(groups))
    factor = b.broadcast(factor, types=[TensorType(spread, bf16)])
    factor = b.reshape(factor, types=[TensorType((*groups[:-1], groups[-1] * size), bf16)])
    order = tuple(range(len(shape)))
    if k_axis != len(shape) - 1:
        order = (*order[:-2], order[-1], order[-2])
    result: Value = b.permute(factor, order=order)
    return result
