"""Making and reshaping tensors."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.dtypes import get_block_type
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, constexpr, describe, slice, tensor, tuple, unwrap

RESHAPE_CAN_REORDER_WARNING = (
    "tl.reshape(can_reorder=True) is deprecated: the elements keep their row-major order by default (can_reorder=False)"
)
CAT_CAN_REORDER_WARNING = (
    "tl.cat(can_reorder=True) is deprecated: the operands keep their order by default (can_reorder=False)"
)


def _tensor(value: Any, what: str, s: TritonSemantic) -> tensor:
    if type(value) is tensor:
        return value
    return s.to_tensor(unwrap(value), what)


def element_type(value: Any, what: str) -> dt.dtype:
    """A dtype argument."""
    value = unwrap(value)
    if isinstance(value, dt.dtype) and not value.is_block():
        return value
    if isinstance(value, str) and value in dt.SIGNATURE_NAMES:
        return dt.SIGNATURE_NAMES[value]
    raise TypeError(f"{what}: expected a dtype such as tl.float32, got {describe(value)}")


def _dims(dims: Any) -> Any:
    """``*dims`` given one by one or as one sequence."""
    if len(dims) == 1 and isinstance(unwrap(dims[0]), (list, builtins.tuple)):
        return unwrap(dims[0])
    return [unwrap(d) for d in dims]


@builtin
def arange(start: Any, end: Any, _semantic: Any = None) -> tensor:
    """start, start + 1, ..., end - 1 as int32, of shape [end - start]. Both are compile-time ints; any length will
    do."""
    s = _semantic
    low, high = s.constexpr_int(start, "arange: start"), s.constexpr_int(end, "arange: end")
    if high <= low:
        raise ValueError(f"arange: end must be greater than start, got start={low} and end={high}")
    if not low >= -(2**31) or high > 2**31:
        raise ValueError(f"arange: start and end must fit int32, got start={low} and end={high}")
    type = get_block_type(dt.int32, (high - low,))
    return tensor(s.op("arange", [], type.ir, {"start": low, "end": high}), type)


@builtin
def full(shape: Any, value: Any, dtype: Any, _semantic: Any = None) -> tensor:
    """A tensor of ``shape`` and ``dtype`` that holds ``value``, a number or a run-time scalar, everywhere."""
    s = _semantic
    sizes = s.shape_argument(shape, "full: shape")
    value = unwrap(value)
    if unwrap(dtype) is None:
        if not isinstance(value, tensor):
            raise ValueError("full: dtype: must be given when value is not a tensor")
        element = value.dtype
    else:
        element = element_type(dtype, "full: dtype")
    dt.validate_block_shape(sizes, "full: shape")
    type = get_block_type(element, sizes)
    if not isinstance(value, tensor):
        if isinstance(value, float) and element.is_int() and not element.is_bool():
            if value != int(value):
                raise TypeError(f"full: value: cannot use {describe(value)} as {element}")
            value = int(value)
        return s.literal(value, type, "full: value")
    if value.type.is_block() and value.type.numel == 1 and value.type.shape != sizes:
        value = s.generator.scalar_of(value)
    if value.type.is_block():
        raise TypeError(f"full: value: expected a scalar, got {describe(value)}")
    return s.to_shape(s.cast(value, element), sizes)


@builtin
def to_tensor(x: Any, _semantic: Any = None) -> tensor:
    """A number as a run-time scalar: int32, uint32, int64 or uint64, the first that holds it; float32 or float64;
    int1."""
    return _semantic.to_tensor(unwrap(x), "to_tensor: x")


@builtin
def broadcast(input: Any, other: Any, _semantic: Any = None) -> Any:
    """Both tensors in their common shape."""
    s = _semantic
    a, b = s.broadcast(_tensor(input, "broadcast: input", s), _tensor(other, "broadcast: other", s), "broadcast")
    return tuple([a, b])


@builtin
def broadcast_to(input: Any, *shape: Any, _semantic: Any = None) -> tensor:
    """``input`` stretched to ``shape``: axes of size 1 are repeated, missing leading axes are put in."""
    s = _semantic
    x, sizes = _tensor(input, "broadcast_to: input", s), s.shape_argument(_dims(shape), "broadcast_to: shape")
    own = x.type.shape
    if s.broadcast_shape(own, sizes, "broadcast_to") != sizes:
        raise ValueError(f"broadcast_to: shape {list(own)} does not stretch to {list(sizes)}")
    return s.to_shape(x, sizes)


def _reshape(x: tensor, sizes: Any, what: str, s: TritonSemantic, reorder: bool = False) -> tensor:
    own = x.type.shape
    if own == sizes:
        return x
    type = get_block_type(x.dtype, sizes)
    if x.type.numel != type.numel:
        raise ValueError(
            f"{what}: shape: {list(sizes)} has {type.numel} elements, the tensor of shape {list(own)} "
            f"has {x.type.numel}"
        )
    value = s.known(x)
    if value is not None:
        return s.constant(value, type)
    if not own:
        return s.to_shape(x, sizes)
    return tensor(s.op("reshape", [x.handle], type.ir, {"reorder": True} if reorder else None), type)


@builtin
def reshape(input: Any, *shape: Any, can_reorder: Any = False, _semantic: Any = None, _generator: Any = None) -> tensor:
    """The same elements in row-major order in another ``shape``. One size may be -1."""
    s = _semantic
    x = _tensor(input, "reshape: input", s)
    if unwrap(can_reorder):
        warnings.warn(RESHAPE_CAN_REORDER_WARNING, DeprecationWarning, stacklevel=2)
    return _reshape(x, _inferred(_dims(shape), x, "reshape", s), "reshape", s, bool(unwrap(can_reorder)))


def _inferred(dims: Any, x: tensor, what: str, s: TritonSemantic) -> Any:
    sizes = list(s.shape_argument(dims, f"{what}: shape"))
    if sizes.count(-1) == 1:
        rest = 1
        for size in sizes:
            rest *= 1 if size == -1 else size
        if rest > 0 and x.type.numel % rest == 0:
            sizes[sizes.index(-1)] = x.type.numel // rest
    return builtins.tuple(sizes)


@builtin
def view(input: Any, *shape: Any, _semantic: Any = None) -> tensor:
    """The same elements in another shape; here they keep their row-major order, as with reshape."""
    x = _tensor(input, "view: input", _semantic)
    return _reshape(x, _inferred(_dims(shape), x, "view", _semantic), "view", _semantic)


@builtin
def expand_dims(input: Any, axis: Any, _semantic: Any = None) -> tensor:
    """Puts in axes of size 1 at ``axis`` of the result: an int or several."""
    s = _semantic
    x = _tensor(input, "expand_dims: input", s)
    axes = unwrap(axis)
    axes = list(axes) if isinstance(axes, (list, builtins.tuple)) else [axes]
    rank = len(x.type.shape) + len(axes)
    places = [s.axis_argument(a, rank, "expand_dims: axis") for a in axes]
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: duplicate axes in {axes}")
    for place in sorted(places):
        x = insert_axis(x, place, s)
    return x


def insert_axis(x: tensor, axis: int, s: TritonSemantic) -> tensor:
    """An axis of size 1 at ``axis``."""
    shape = x.type.shape
    type = get_block_type(x.dtype, (*shape[:axis], 1, *shape[axis:]))
    value = s.known(x)
    if value is not None:
        return s.constant(value, type)
    if not shape:
        return tensor(s.op("splat", [x.handle], type.ir), type)
    return tensor(s.op("expand_dims", [x.handle], type.ir, {"axis": axis}), type)


def _permute(x: tensor, dims: Any, what: str, s: TritonSemantic) -> tensor:
    rank = len(x.type.shape)
    order = builtins.tuple(s.axis_argument(d, rank, f"{what}: dims") for d in dims)
    if sorted(order) != list(range(rank)):
        raise ValueError(
            f"{what}: dims: expected a permutation of the axes 0 to {rank - 1}, got {list(unwrap(list(dims)))}"
        )
    if order == builtins.tuple(range(rank)):
        return x
    result = get_block_type(x.dtype, builtins.tuple(x.type.shape[i] for i in order))
    return tensor(s.op("permute", [x.handle], result.ir, {"order": order}), result)


@builtin
def permute(input: Any, *dims: Any, _semantic: Any = None) -> tensor:
    """Axis i of the result is axis ``dims[i]`` of ``input``."""
    return _permute(_tensor(input, "permute: input", _semantic), _dims(dims), "permute", _semantic)


@builtin
def trans(input: Any, *dims: Any, _semantic: Any = None) -> tensor:
    """``permute(input, *dims)``; without ``dims`` the last two axes are swapped."""
    x = _tensor(input, "trans: input", _semantic)
    order = _dims(dims)
    if not order:
        rank = len(x.type.shape)
        if rank < 2:
            raise ValueError(f"trans: input: expected a tensor of rank 2 or more, got {describe(x)}")
        order = [*range(rank - 2), rank - 1, rank - 2]
    return _permute(x, order, "trans", _semantic)


@builtin
def join(a: Any, b: Any, _semantic: Any = None) -> tensor:
    """Both tensors, broadcast and promoted, side by side along a new last axis of size 2."""
    s = _semantic
    x, y = s.pair(a, b, "join", pointers=True)
    type = get_block_type(x.dtype, (*x.type.shape, 2))
    return tensor(s.op("join", [x.handle, y.handle], type.ir), type)


@builtin
def split(a: Any, _semantic: Any = None, _generator: Any = None) -> Any:
    """The two halves of a last axis of size 2; undoes join."""
    s = _semantic
    x = _tensor(a, "split: a", s)
    shape = x.type.shape
    if not shape or shape[-1] != 2:
        raise ValueError(f"split: a: the last axis must have size 2, got {describe(x)}")
    type = get_block_type(x.dtype, shape[:-1])
    results = s.builder.emit("split", [x.handle], [type.ir, type.ir]).results
    return tuple([tensor(r, type) for r in results])


@builtin
def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0, _semantic: Any = None) -> tensor:
    """``other`` after ``input`` along axis ``dim``. Their order is kept; ``can_reorder`` changes nothing."""
    s = _semantic
    x, y = _tensor(input, "cat: input", s), _tensor(other, "cat: other", s)
    if x.dtype != y.dtype:
        raise TypeError(f"cat: input and other differ in type: {x.dtype} and {y.dtype}")
    a, b = x.type.shape, y.type.shape
    if not a or len(a) != len(b):
        raise ValueError(f"cat: input and other must be tensors of one rank, got shapes {list(a)} and {list(b)}")
    axis = s.axis_argument(dim, len(a), "cat: dim")
    if a[:axis] + a[axis + 1 :] != b[:axis] + b[axis + 1 :]:
        raise ValueError(f"cat: shapes {list(a)} and {list(b)} differ off axis {axis}")
    type = get_block_type(x.dtype, (*a[:axis], a[axis] + b[axis], *a[axis + 1 :]))
    return tensor(s.op("cat", [x.handle, y.handle], type.ir, {"axis": axis}), type)


@builtin
def _flip(input: Any, axis: Any, _semantic: Any = None) -> tensor:
    """Reverses one axis; the last one when ``axis`` is None."""
    s = _semantic
    x = _tensor(input, "flip: x", s)
    place = s.axis_argument(-1 if unwrap(axis) is None else axis, len(x.type.shape), "flip: dim")
    return tensor(s.op("flip", [x.handle], x.type.ir, {"axis": place}), x.type)


@builtin
def gather(src: Any, index: Any, axis: Any, _semantic: Any = None) -> tensor:
    """result[..., i, ...] = src[..., index[..., i, ...], ...] along ``axis``; the shapes agree along the other axes."""
    s = _semantic
    x, at = _tensor(src, "gather: src", s), _tensor(index, "gather: index", s)
    if not at.dtype.is_int():
        raise TypeError(f"gather: index: expected integers, got {describe(at)}")
    a, b = x.type.shape, at.type.shape
    if not a or len(a) != len(b):
        raise ValueError(f"gather: src and index must be tensors of one rank, got shapes {list(a)} and {list(b)}")
    place = s.axis_argument(axis, len(a), "gather: axis")
    if a[:place] + a[place + 1 :] != b[:place] + b[place + 1 :]:
        raise ValueError(f"gather: shapes {list(a)} and {list(b)} differ off axis {place}")
    type = get_block_type(x.dtype, b)
    return tensor(s.op("gather", [x.handle, at.handle], type.ir, {"axis": place}), type)


@builtin
def histogram(input: Any, num_bins: Any, mask: Any = None, _semantic: Any = None, _generator: Any = None) -> tensor:
    """How many of the integers in ``input``, of rank 1, equal 0, 1, ..., num_bins - 1, as int32; where ``mask``
    holds."""
    s = _semantic
    x, bins = _tensor(input, "histogram: input", s), s.constexpr_int(num_bins, "histogram: num_bins")
    if len(x.type.shape) != 1 or not x.dtype.is_int():
        raise TypeError(f"histogram: input: expected a tensor of integers of rank 1, got {describe(x)}")
    if bins < 1:
        raise ValueError(f"histogram: num_bins: must be at least 1, got {bins}")
    operands = [x.handle]
    if unwrap(mask) is not None:
        keep = s.to_shape(s.truth(mask, "histogram: mask"), x.type.shape)
        operands.append(keep.handle)
    type = get_block_type(dt.int32, (bins,))
    return tensor(s.op("histogram", operands, type.ir, {"bins": bins}), type)


@builtin
def item(input: Any, _semantic: Any = None, _generator: Any = None) -> tensor:
    """The only element of a tensor of one, as a scalar."""
    x = _tensor(input, "item: input", _semantic)
    if not x.type.is_block():
        return x
    if x.type.numel != 1:
        raise ValueError(f"item: input: expected a tensor of one element, got {describe(x)}")
    return _semantic.generator.scalar_of(x)


@builtin
def subscript(x: tensor, index: Any, _semantic: Any = None) -> tensor:
    """``x[None, :]``: each colon keeps an axis and each None puts in one of size 1; missing colons stand at the end."""
    members = index.values if isinstance(index, tuple) else [index]
    rank = len(x.type.shape)
    colons = sum(isinstance(m, slice) for m in members)
    ellipses = [i for i, m in enumerate(members) if unwrap(m) is Ellipsis]
    if ellipses:
        at = ellipses[0]
        missing = max(0, rank - colons)
        full = slice(constexpr(None), constexpr(None), constexpr(None))
        members = [*members[:at], *[full] * missing, *members[at + 1 :]]
        colons += missing
    if colons > rank:
        raise ValueError(f"subscript: has {colons} colons, but {describe(x)} has {rank} axes")
    for axis, member in enumerate(members):
        if isinstance(member, slice):
            if not member.is_full:
                raise ValueError(
                    "subscript: a tensor cannot be sliced; use a mask, tl.gather or tl.reshape with tl.split"
                )
        elif unwrap(member) is None:
            x = insert_axis(x, axis, _semantic)
        else:
            raise TypeError(
                f"subscript: a tensor takes None and : only, got {describe(member)}; use tl.gather, or tl.load "
                "for memory"
            )
    return x
