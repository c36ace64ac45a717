"""The record of axis facts and the arithmetic of groups on which ``axis.py`` is built; it says what the facts mean."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from ..ir.core import Value
from ..ir.types import PointerType, ScalarType, Type, element_of, shape_of
from .ranges import type_range

MAX_DIVISIBILITY = 1 << 30


class AxisInfo(NamedTuple):
    """One entry per axis in each tuple; see the module's text."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    value: int | None = None


def power_of_two(n: int) -> int:
    """The largest power of two that divides n, at most 2^30; 0 is divisible by all."""
    return min(n & -n, MAX_DIVISIBILITY) if n else MAX_DIVISIBILITY


def rank(type: Type) -> int:
    """The number of axes an AxisInfo has for this type: 1 for a scalar."""
    return len(shape_of(type)) or 1


def sizes_of(value: Value) -> tuple[int, ...]:
    return shape_of(value.type) or (1,)


def step_of(value: Value) -> int:
    """How far consecutive values of a contiguous group lie apart: 1, for pointers the size of a pointee in bytes."""
    element = element_of(value.type)
    return max(element.pointee.bits // 8, 1) if isinstance(element, PointerType) else 1


def meet(a: int, b: int, size: int) -> int:
    """The largest aligned groups that lie inside a group of a and inside one of b."""
    if a >= size:
        return b
    return a if b >= size else gcd(a, b)


def divisor_at(info: AxisInfo, axis: int, group: int, size: int, step: int = 1) -> int:
    """The power of two that divides every value whose index along ``axis`` is a multiple of ``group``."""
    contiguity, divisibility = info.contiguity[axis], info.divisibility[axis]
    if contiguity >= size:
        inside = group < size
    else:
        inside = group % contiguity != 0
    if inside:
        return min(divisibility, power_of_two((group if contiguity >= size else gcd(group, contiguity)) * step))
    return divisibility


def divisor_of_all(info: AxisInfo, value: Value) -> int:
    """The power of two that divides every element."""
    step = step_of(value)
    return max(divisor_at(info, axis, 1, size, step) for axis, size in enumerate(sizes_of(value)))


def merge(a: AxisInfo, b: AxisInfo, value: Value) -> AxisInfo:
    """What holds for a value that is described by a or by b."""
    if a == b:
        return a
    shape, step = sizes_of(value), step_of(value)
    contiguity = tuple(map(meet, a.contiguity, b.contiguity, shape))
    divisibility = tuple(
        min(divisor_at(a, d, c, n, step), divisor_at(b, d, c, n, step))
        for d, (c, n) in enumerate(zip(contiguity, shape, strict=True))
    )
    constancy = tuple(map(meet, a.constancy, b.constancy, shape))
    return AxisInfo(contiguity, divisibility, constancy, a.value if a.value == b.value else None)


_UNKNOWN: dict[int, AxisInfo] = {n: AxisInfo((1,) * n, (1,) * n, (1,) * n) for n in range(1, 9)}


def unknown(axes: int) -> AxisInfo:
    return _UNKNOWN.get(axes) or AxisInfo((1,) * axes, (1,) * axes, (1,) * axes)


def known(number: int, shape: tuple[int, ...]) -> AxisInfo:
    return AxisInfo((1,) * len(shape), (power_of_two(number),) * len(shape), shape, number)


def wrapped(number: int, value: Value) -> int | None:
    element = element_of(value.type)
    if not isinstance(element, ScalarType) or not element.is_integer:
        return None
    low, high = type_range(element)
    return (number - low) % (high - low + 1) + low


def axis_groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Axes of both shapes, sizes of 1 left out, in the shortest runs with equal products."""
    result, i, j = [], 0, 0
    while i < len(before) and j < len(after):
        sources, targets, a, b = [i], [j], before[i], after[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                sources.append(i)
                a, i = a * before[i], i + 1
            else:
                targets.append(j)
                b, j = b * after[j], j + 1
        if a > 1:
            result.append(([s for s in sources if before[s] > 1], [t for t in targets if after[t] > 1]))
    return result


def merge_axes(info: AxisInfo, shape: tuple[int, ...], axes: list[int], step: int) -> tuple[int, int, int]:
    """Contiguity, divisibility and constancy of several axes read as one."""
    last = axes[-1]
    size, con, div = shape[last], info.contiguity[last], info.divisibility[last]
    if len(axes) > 1 and size % con:
        con = gcd(con, size)  # groups must not reach into the next row
        div = min(div, power_of_two(con * step))
    equal = info.constancy[last]
    if len(axes) > 1 and size % equal:
        equal = gcd(equal, size)
    total = size
    for axis in reversed(axes[:-1]):
        if equal != total:
            break
        outer = info.constancy[axis]
        if axis != axes[0] and shape[axis] % outer:
            outer = gcd(outer, shape[axis])
        equal *= outer
        total *= shape[axis]
    return con, div, equal
