"""Rules of the ops that move elements or combine many: shapes, gather, sort, histogram, dot, reduce, scan, map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from triton.ir.types import ScalarType

from .errors import InterpreterError
from .floats import narrow, storage_dtype, widen

Array = npt.NDArray[Any]
Region = Callable[[Sequence[Array]], Sequence[Array]]


def gather(source: Array, index: Array, axis: int) -> Array:
    """Elements of ``source`` along ``axis``; raises when an index is out of range."""
    size = source.shape[axis]
    wrong = (index < 0) | (index >= size)
    if wrong.any():
        raise InterpreterError(f"gather index {int(index[wrong].flat[0])} is outside 0..{size - 1}")
    return np.take_along_axis(source, index.astype(np.int64), axis)


def sort(values: Array, element: ScalarType, axis: int, descending: bool) -> Array:
    """Stable; NaN counts as larger than every number."""
    order = np.argsort(widen(values, element), axis=axis, kind="stable")
    result = np.take_along_axis(values, order, axis)
    return np.flip(result, axis) if descending else result


def histogram(values: Array, mask: Array | None, bins: int) -> Array:
    """Counts of 0 .. bins - 1; other values are not counted."""
    counted = (values >= 0) & (values.astype(np.uint64) < bins)
    if mask is not None:
        counted &= mask
    return np.bincount(values[counted].astype(np.int64), minlength=bins).astype(np.int32)


# Matrix product -----------------------------------------------------------------------------------------------------


def dot(a: Array, b: Array, acc: Array, types: Sequence[ScalarType]) -> Array:
    """a x b + acc. Integers modulo 2^bits; floats summed in float64 and rounded once to the accumulator's type."""
    left, right, out = types
    if not out.is_float:
        wide = np.matmul(a.astype(np.int64), b.astype(np.int64))
        return np.asarray(wide + acc.astype(np.int64)).astype(storage_dtype(out))
    product = np.matmul(widen(a, left).astype(np.float64), widen(b, right).astype(np.float64))
    return narrow(product + widen(acc, out), out)


_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def _scaled_operand(
    values: Array, element: ScalarType, form: str, scale: Array | None, k_axis: int, k_packed: bool
) -> Array:
    """One operand of dot_scaled as float64, K along ``k_axis``; ``scale`` has K last."""
    if form == "e2m1":
        axis = k_axis if k_packed else (-1 if k_axis == -2 else -2)
        axis %= values.ndim
        halves = np.stack([_E2M1[values & 15], _E2M1[values >> 4]], axis=axis + 1)
        shape = list(values.shape)
        shape[axis] *= 2
        wide = halves.reshape(shape)
    else:
        formats = {"e4m3": "f8e4m3", "e5m2": "f8e5m2"}
        named = ScalarType(formats[form], "float", 8) if form in formats else element
        raw = values.view(np.uint8) if form in formats else values
        wide = widen(raw, named).astype(np.float64)
    if scale is None:
        return wide
    factors = np.where(scale == 255, np.nan, np.ldexp(1.0, scale.astype(np.int32) - 127))
    group = wide.shape[k_axis] // scale.shape[-1]
    factors = np.repeat(factors, group, axis=-1)
    return wide * (factors if k_axis == -1 else np.swapaxes(factors, -1, -2))


def dot_scaled(args: Sequence[Array], types: Sequence[ScalarType], attrs: dict[str, Any]) -> Array:
    """dot of block-scaled operands; a scale s means 2^(s - 127), 255 NaN. Scales have shape [M, K/32] and [N, K/32]."""
    a, b, acc, *scales = args
    rest = iter(scales)
    a_scale = next(rest) if attrs["a_scaled"] else None
    b_scale = next(rest) if attrs["b_scaled"] else None
    left = _scaled_operand(a, types[0], attrs["a_format"], a_scale, -1, attrs.get("a_k_pack", True))
    right = _scaled_operand(b, types[1], attrs["b_format"], b_scale, -2, attrs.get("b_k_pack", True))
    return narrow(np.matmul(left, right) + widen(acc, types[2]), types[2])


# Regions ------------------------------------------------------------------------------------------------------------


def reduce(values: Sequence[Array], axis: int, combine: Region) -> list[Array]:
    """Neighbours are combined pairwise until one is left, earlier elements first."""
    parts = [np.moveaxis(v, axis, 0) for v in values]
    while (count := parts[0].shape[0]) > 1:
        even = count // 2 * 2
        joined = combine([*(p[0:even:2] for p in parts), *(p[1:even:2] for p in parts)])
        whole = [np.broadcast_to(j, (even // 2, *p.shape[1:])) for j, p in zip(joined, parts, strict=True)]
        parts = [np.concatenate([w, p[even:]]) for w, p in zip(whole, parts, strict=True)]
    return [np.asarray(p[0]) for p in parts]


def scan(values: Sequence[Array], axis: int, reverse: bool, combine: Region) -> list[Array]:
    """One element after the other; what has been accumulated is the first argument of the combination."""
    parts = [np.moveaxis(v, axis, 0) for v in values]
    outs = [np.empty_like(p) for p in parts]
    count = parts[0].shape[0]
    running: Sequence[Array] = []
    for i in reversed(range(count)) if reverse else range(count):
        here = [p[i] for p in parts]
        running = combine([*running, *here]) if len(running) else here
        for out, value in zip(outs, running, strict=True):
            out[i] = value
    return [np.moveaxis(o, 0, axis) for o in outs]


def map_elements(values: Sequence[Array], pack: int, dtypes: Sequence[type], body: Region) -> list[Array]:
    """Runs ``body`` on groups of ``pack`` neighbours (row-major); it takes and gives ``pack`` values per tensor."""
    shape = values[0].shape
    if values[0].size % pack:
        raise InterpreterError(f"map takes {pack} elements at a time, which does not divide {values[0].size}")
    columns = [v.reshape(-1, pack)[:, k] for v in values for k in range(pack)]
    results = body(columns)
    count = values[0].size // pack
    wide = [np.broadcast_to(r, (count,)) for r in results]
    groups = [wide[i * pack : (i + 1) * pack] for i in range(len(dtypes))]
    return [np.stack(g, axis=1).reshape(shape).astype(d) for g, d in zip(groups, dtypes, strict=True)]


def each_element(values: Sequence[Array], body: Region, dtypes: Sequence[type]) -> list[Array]:
    """Runs ``body`` on single elements, for regions with control flow or effects."""
    arrays = np.broadcast_arrays(*values)
    shape = arrays[0].shape
    outs: list[Array] = [np.empty(shape, dtype=d) for d in dtypes]
    for index in np.ndindex(shape):
        for out, value in zip(outs, body([np.asarray(a[index]) for a in arrays]), strict=True):
            out[index] = value
    return outs
