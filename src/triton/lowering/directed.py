"""Arithmetic and conversions rounded down, up or toward zero, as GPU libraries name them (``add_rd``,
``float2int_ru``, ...).

The nearest result is computed first, then the exact error of it tells whether a neighbour is wanted. For f32 the
error comes from double arithmetic and is exact; for f64 it comes from fused multiply-add and is exact unless it
underflows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..ir.types import ElementType, ScalarType, f32, f64, i32, i64, u32, u64
from . import convert
from .values import Num, num
from .writer import Cell, FunctionWriter

_OPERATIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1, "rcp": 1, "rsqrt": 1}
_TYPES = {"double": f64, "float": f32, "int": i32, "uint": u32, "ll": i64, "ull": u64}
_ROUND = {"d": "floor", "u": "ceil", "n": "rint", "z": "trunc"}


def step(x: Num, error: Num, mode: str) -> Num:
    """``x``, moved to its neighbour when the exact value x + ``error`` (any float type) lies on the side that
    ``mode`` asks for.
    """
    bits, positive, zero = x.to_bits(), x.gt(0.0), x.eq(0.0)
    least = (1 << (x.bits - 1)) | 1
    down = zero.select(bits.const(least), positive.select(bits - 1, bits + 1))
    up = zero.select(bits.const(1), positive.select(bits + 1, bits - 1))
    if mode == "d":
        moved = error.lt(0.0).select(down, bits)
    elif mode == "u":
        moved = error.gt(0.0).select(up, bits)
    else:
        moved = positive.select(
            error.lt(0.0).select(bits - 1, bits), (error.gt(0.0) & x.lt(0.0)).select(bits - 1, bits)
        )
    return moved.bitcast(x.base)


def _nearest(name: str, args: Sequence[Num]) -> Num:
    if name == "fma":
        return args[0].fma(args[1], args[2])
    if name == "sqrt":
        return args[0].call("sqrt")
    if name == "rcp":
        return 1.0 / args[0]
    return args[0].binary({"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}[name], args[1])


def _error(name: str, args: Sequence[Num], near: Num) -> Num:
    """A number with the sign of (exact result - ``near``), in double; the operands are double."""
    if name in ("add", "sub"):
        x, y = args[0], args[1] if name == "add" else -args[1]
        return _sum_error(x, y, near)
    if name == "mul":
        return args[0].fma(args[1], -near)
    if name == "fma":
        product = args[0] * args[1]
        low = args[0].fma(args[1], -product)
        total = product + args[2]
        return (total - near) + (_sum_error(product, args[2], total) + low)
    if name == "sqrt":
        return (-near).fma(near, args[0])
    numerator, divisor = (args[0].const(1.0), args[0]) if name == "rcp" else (args[0], args[1])
    residue = (-near).fma(divisor, numerator)
    return divisor.lt(0.0).select(-residue, residue)


def _sum_error(x: Num, y: Num, total: Num) -> Num:
    part = total - x
    return (x - (total - part)) + (y - part)


def _float_error(name: str, args: Sequence[Num], near: Num) -> Num:
    """The same for float operands: every exact result differs from ``near`` visibly in double."""
    wide = [a.convert("fpext", "double") for a in args]
    back = near.convert("fpext", "double")
    if name in ("add", "sub", "fma"):
        x, y = (wide[0] * wide[1], wide[2]) if name == "fma" else (wide[0], wide[1] if name == "add" else -wide[1])
        total = x + y
        return (total - back) + _sum_error(x, y, total)
    return _nearest(name, wide) - back


def arithmetic(name: str, mode: str, args: Sequence[Num]) -> Num:
    """``name`` of ``_OPERATIONS`` on float or double values, rounded by ``mode``: d(own), u(p), n(earest), z(ero)."""
    near = _nearest(name, args)
    if mode == "n":
        return near
    error = _float_error(name, args, near) if near.base == "float" else _error(name, args, near)
    return step(near, error, mode)


def _to_float(w: FunctionWriter, cell: Cell, to: ScalarType, mode: str) -> Cell:
    near = convert.cast(w, cell, to)
    if mode in "nz":
        return near if mode == "n" else convert.cast(w, cell, to, "rtz")
    toward_zero = num(w, convert.cast(w, cell, to, "rtz"))
    # Where rounding toward zero was not exact, the value lies beyond it.
    away_bits = toward_zero.to_bits() + 1
    source = num(w, cell)
    negative = (
        source.lt(0) if cell.element.is_signed else source.lt(0.0) if cell.element.is_float else source.const(0).ne(0)
    )
    inexact = num(w, _back_differs(w, cell, toward_zero.cell(to)))
    wanted = negative if mode == "d" else ~negative
    return (inexact & wanted).select(away_bits.bitcast(toward_zero.base), toward_zero).cell(to)


def _back_differs(w: FunctionWriter, cell: Cell, rounded: Cell) -> Cell:
    """i1: whether ``rounded`` (toward zero) is not ``cell`` exactly."""
    if cell.element.is_float:
        return (
            num(w, convert.cast(w, rounded, cell.element))
            .compare("one", num(w, cell))
            .cell(ScalarType("i1", "bool", 1))
        )
    back = num(w, convert.cast(w, rounded, cell.element))
    return back.ne(num(w, cell)).cell(ScalarType("i1", "bool", 1))


_CONVERSION = re.compile(r"(double|float|int|uint|ll|ull)2(double|float|int|uint|ll|ull)_r([dunz])$")
_OPERATION = re.compile(r"(add|sub|mul|div|fma|sqrt|rcp|rsqrt)_r([dunz])$")


def rule(name: str) -> Callable[[FunctionWriter, str, Sequence[Cell], ElementType], Cell] | None:
    """The rule for a function of this family, or None."""
    conversion, operation = _CONVERSION.match(name), _OPERATION.match(name)
    if conversion:
        source, target, mode = conversion.groups()
        return lambda w, n, args, to: _convert(w, args[0], _TYPES[source], _TYPES[target], mode, to)
    if operation:
        return lambda w, n, args, to: _operate(w, operation.group(1), operation.group(2), args, to)
    return None


def _convert(w: FunctionWriter, cell: Cell, source: ScalarType, target: ScalarType, mode: str, to: ElementType) -> Cell:
    if cell.element.is_integer and cell.element.bits == source.bits:
        cell = Cell(cell.text, source, cell.lanes, cell.value)  # signedness is what the function's name says
    cell = convert.cast(w, cell, source)
    if target.is_float:
        return convert.cast(w, _to_float(w, cell, target, mode), to)
    whole = num(w, cell).call(_ROUND[mode]).cell(source)
    result = convert.cast(w, whole, target)
    return (
        Cell(result.text, to, result.lanes)
        if to.bits == target.bits and not to.is_float
        else convert.cast(w, result, to)
    )


def _operate(w: FunctionWriter, name: str, mode: str, args: Sequence[Cell], to: ElementType) -> Cell:
    values = [num(w, convert.to_wide(w, a)) for a in args]
    if name == "rsqrt":
        result = 1.0 / values[0].call("sqrt")
    else:
        result = arithmetic(name, mode, values)
    return convert.cast(w, result.cell(f64 if result.base == "double" else f32), to)
