"""Reductions and scans with any combine function, and functions applied element by element."""

from __future__ import annotations

import builtins
from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.dtypes import get_block_type
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, describe, tensor, tuple, unwrap
from triton.ir import Block

from .shapes import _reshape, insert_axis


def _operands(input: Any, what: str, s: TritonSemantic) -> builtins.tuple[list[tensor], bool]:
    """The tensors to work on and whether they came as a tuple; all of one shape."""
    several = isinstance(input, (tuple, builtins.tuple, list))
    values = [
        s.to_tensor(unwrap(v), f"{what}: input") for v in (getattr(input, "values", input) if several else [input])
    ]
    if not values:
        raise ValueError(f"{what}: input: the tuple is empty")
    for i, value in enumerate(values[1:], 1):
        if value.type.shape != values[0].type.shape:
            raise ValueError(
                f"{what}: input: the tensors differ in shape: {list(values[0].type.shape)} and "
                f"{list(value.type.shape)} (number {i})"
            )
    return values, several


def _combine_region(values: list[tensor], combine_fn: Any, what: str, s: TritonSemantic) -> Block:
    """The block that combines two groups of elements by calling ``combine_fn``."""
    elements = [v.dtype for v in values]
    block = Block([e.ir for e in elements] * 2)
    args = [tensor(a, e) for a, e in zip(block.args, elements * 2, strict=True)]
    results = s.generator.call_in_region(combine_fn, block, args)
    name = getattr(unwrap(combine_fn), "__name__", "combine_fn")
    if len(results) != len(values):
        raise ValueError(f"{what}: combine_fn: {name} must give {len(values)} values, it gives {len(results)}")
    with s.generator.inside(block):
        leaves = []
        for i, (result, element) in enumerate(zip(results, elements, strict=True)):
            if result.type.is_block():
                raise TypeError(f"{what}: combine_fn: {name} must give scalars, result {i} is {describe(result)}")
            if result.dtype != element and s.known(result) is None and not _widens_only(result.dtype, element):
                raise TypeError(f"{what}: combine_fn: {name} gives {result.dtype} for result {i}, expected {element}")
            leaves.append(s.cast(result, element).handle)
        s.builder.emit("yield", leaves, [])
    return block


def _widens_only(result: dt.dtype, element: dt.dtype) -> bool:
    """Whether ``result`` differs from ``element`` just by the width in which it was computed."""
    return not element.is_ptr() and not result.is_ptr() and result.kind() is element.kind()


@builtin
def reduce(
    input: Any,
    axis: Any,
    combine_fn: Any,
    keep_dims: Any = False,
    _semantic: Any = None,
    _generator: Any = None,
) -> Any:
    """Combines ``input``, a tensor or a tuple of tensors of one shape, along ``axis`` with the jitted ``combine_fn``.

    ``combine_fn(a0, a1, ..., b0, b1, ...)`` gets two groups of scalars and gives one; it must be associative.
    ``axis`` None combines everything. ``keep_dims`` leaves the axis in with size 1.
    """
    s = _semantic
    values, several = _operands(input, "reduce", s)
    rank = len(values[0].type.shape)
    keep = bool(unwrap(keep_dims))
    if rank == 0:
        return tuple(values) if several else values[0]
    if unwrap(axis) is None:
        flat = (values[0].type.numel,)
        values, place = [_reshape(v, flat, "reduce", s) for v in values], 0
    else:
        place = s.axis_argument(axis, rank, "reduce: axis")
    region = _combine_region(values, combine_fn, "reduce", s)
    shape = values[0].type.shape
    rest = shape[:place] + shape[place + 1 :]
    types = [get_block_type(v.dtype, rest) for v in values]
    op = s.builder.emit("reduce", [v.handle for v in values], [t.ir for t in types], {"axis": place}, [region])
    results = [tensor(r, t) for r, t in zip(op.results, types, strict=True)]
    if keep:
        for at in [place] if unwrap(axis) is not None else range(rank):
            results = [insert_axis(r, at, s) for r in results]
    return tuple(results) if several else results[0]


@builtin
def associative_scan(
    input: Any,
    axis: Any,
    combine_fn: Any,
    reverse: Any = False,
    _semantic: Any = None,
    _generator: Any = None,
) -> Any:
    """Inclusive prefix combination of a tensor, or tuple of tensors, along ``axis`` (from its end with ``reverse``).

    ``combine_fn`` gets the earlier group of scalars first; it must be associative and need not be commutative.
    """
    s = _semantic
    values, several = _operands(input, "associative_scan", s)
    rank = len(values[0].type.shape)
    place = s.axis_argument(axis, rank, "associative_scan: axis")
    region = _combine_region(values, combine_fn, "associative_scan", s)
    attrs: dict[str, Any] = {"axis": place}
    if unwrap(reverse):
        attrs["reverse"] = True
    types = [v.type for v in values]
    op = s.builder.emit("scan", [v.handle for v in values], [t.ir for t in types], attrs, [region])
    results = [tensor(r, t) for r, t in zip(op.results, types, strict=True)]
    return tuple(results) if several else results[0]


@builtin
def map_elementwise(
    scalar_fn: Any,
    *args: Any,
    pack: Any = 1,
    _semantic: Any = None,
    _generator: Any = None,
) -> Any:
    """Calls the jitted ``scalar_fn`` for each element of the broadcast ``args``; branches in it are real branches.

    With ``pack`` p it gets p neighbouring elements of each argument at once (a0, a1, ..., b0, b1, ...) and gives p
    results.
    """
    s = _semantic
    per_call = s.constexpr_int(pack, "map_elementwise: pack")
    values = s.broadcast_all([s.to_tensor(unwrap(a), "map_elementwise: args") for a in args], "map_elementwise")
    if not values:
        raise ValueError("map_elementwise: args: at least one tensor is needed")
    shape = values[0].type.shape
    if per_call < 1 or (shape and values[0].type.numel % per_call):
        raise ValueError(f"map_elementwise: pack: {per_call} does not divide the {values[0].type.numel} elements")
    if not shape:
        return s.generator.call(unwrap(scalar_fn), values, {})
    block = Block([v.dtype.ir for v in values for _ in range(per_call)])
    elements = [v.dtype for v in values for _ in range(per_call)]
    results = s.generator.call_in_region(
        scalar_fn, block, [tensor(a, e) for a, e in zip(block.args, elements, strict=True)]
    )
    if not results or len(results) % per_call:
        raise ValueError(
            f"map_elementwise: scalar_fn: gives {len(results)} results, expected a multiple of pack={per_call}"
        )
    with s.generator.inside(block):
        s.builder.emit("yield", [r.handle for r in results], [])
    types = [get_block_type(results[i].dtype, shape) for i in range(0, len(results), per_call)]
    attrs = {"pack": per_call} if per_call != 1 else None
    made = s.builder.emit("map", [v.handle for v in values], [t.ir for t in types], attrs, [block]).results
    out = [tensor(r, t) for r, t in zip(made, types, strict=True)]
    return tuple(out) if len(out) > 1 else out[0]


@builtin
def _sort(input: Any, axis: Any, descending: Any, what: Any, _semantic: Any = None) -> tensor:
    """Sorts along ``axis``; the last one when it is None."""
    s, name = _semantic, unwrap(what)
    x = s.to_tensor(unwrap(input), f"{name}: x")
    rank = len(x.type.shape)
    if rank == 0:
        raise TypeError(f"{name}: x: expected a tensor, got {describe(x)}")
    place = s.axis_argument(-1 if unwrap(axis) is None else axis, rank, f"{name}: dim")
    attrs: dict[str, Any] = {"axis": place}
    if unwrap(descending):
        attrs["descending"] = True
    return tensor(s.op("sort", [x.handle], x.type.ir, attrs), x.type)


@builtin
def _first(input: Any, count: Any, axis: Any, what: Any, _semantic: Any = None) -> tensor:
    """The first ``count`` elements along ``axis``; the last axis when it is None."""
    s, name = _semantic, unwrap(what)
    x, shape = input, input.type.shape
    n = s.constexpr_int(count, f"{name}: k")
    place = s.axis_argument(-1 if unwrap(axis) is None else axis, len(shape), f"{name}: dim")
    if not 1 <= n <= shape[place]:
        raise ValueError(f"{name}: k: expected 1 to {shape[place]}, the size of the axis, got {n}")
    if n == shape[place]:
        return x
    lane = get_block_type(dt.int32, (n,))
    index = tensor(s.op("arange", [], lane.ir, {"start": 0, "end": n}), lane)
    for at in range(len(shape)):
        if at != place:
            index = insert_axis(index, at, s)
    wanted = (*shape[:place], n, *shape[place + 1 :])
    index = s.to_shape(index, wanted)
    result = get_block_type(x.dtype, wanted)
    return tensor(s.op("gather", [x.handle, index.handle], result.ir, {"axis": place}), result)
