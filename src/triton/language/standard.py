"""The part of the language that is written in itself."""

# Jitted functions are typed by the compiler.
# mypy: ignore-errors

from __future__ import annotations

from triton.runtime.jit import constexpr_function, jit

from . import core, math, reductions, shapes


@constexpr_function
def _log2(i):
    """The exponent of the largest power of two that is not above ``i``."""
    return int(i).bit_length() - 1


@constexpr_function
def _sum_type(dtype, wanted):
    """The type in which ``sum`` and friends add: what was asked for, else int32/uint32 for narrower integers."""
    wanted = getattr(wanted, "value", wanted)
    if wanted is not None:
        return wanted
    if dtype.is_int() and dtype.int_bitwidth < 32:
        return core.int32 if dtype.is_int_signed() or dtype.is_bool() else core.uint32
    return core.float32 if dtype.is_bf16() or dtype.is_fp8() else dtype


@constexpr_function
def _order_type(dtype):
    """The type in which ``max`` and ``min`` compare: float32 or int32 for narrower elements."""
    if dtype.primitive_bitwidth >= 32:
        return dtype
    return core.float32 if dtype.is_floating() else core.int32


@constexpr_function
def _unsqueezed(shape, dim):
    shape = list(shape)
    place = dim + len(shape) + 1 if dim < 0 else dim
    if not 0 <= place <= len(shape):
        raise ValueError(f"unsqueeze: invalid axis {dim}. Expected {-len(shape) - 1} <= axis < {len(shape) + 1}")
    return (*shape[:place], 1, *shape[place:])


@constexpr_function
def _squeezed(shape, dim):
    shape = list(shape)
    place = dim + len(shape) if dim < 0 else dim
    if not 0 <= place < len(shape) or shape[place] != 1:
        raise ValueError(f"squeeze: dim: axis {dim} of shape {shape} does not have size 1")
    return tuple(shape[:place] + shape[place + 1 :])


# Small helpers --------------------------------------------------------------------------------------------------------


@jit
def cdiv(x, div):
    """x / div rounded up, for integers that are not negative."""
    return (x + div - 1) // div


@jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-x))


@jit
def softmax(x, dim=None, keep_dims=None, ieee_rounding=False):
    """exp(x) / sum(exp(x)) along ``dim`` (0 when None), computed after the maximum is taken off."""
    axis: core.constexpr = 0 if dim is None else dim
    z = x - max(x, axis, keep_dims=True)
    num = math.exp(z)
    den = sum(num, axis, keep_dims=True)
    return math.fdiv(num, den, ieee_rounding)


@jit
def ravel(x, can_reorder=False):
    """The elements in row-major order as a tensor of rank 1."""
    return core.reshape(x, [x.numel], can_reorder=can_reorder)


@jit
def unsqueeze(x, dim):
    """Puts in an axis of size 1 at ``dim``."""
    return core.reshape(x, _unsqueezed(x.type.shape, dim))


@jit
def squeeze(x, dim):
    """Takes out axis ``dim``, which has size 1."""
    return core.reshape(x, _squeezed(x.type.shape, dim))


@jit
def swizzle2d(i, j, size_i, size_j, size_g):
    """Renumbers the cells (i, j) of a ``size_i`` by ``size_j`` grid so that groups of ``size_g`` rows are walked
    column by column.

    Row-major numbers become numbers that go down ``size_g`` rows before the next column; gives the new (i, j).
    """
    ij = i * size_j + j
    size_gj = size_g * size_j
    group_id = ij // size_gj
    off_i = group_id * size_g
    size_g = core.minimum(size_i - off_i, size_g)
    ij = ij % size_gj
    new_i = off_i + ij % size_g
    new_j = ij // size_g
    return new_i, new_j


@jit
def zeros(shape, dtype):
    """A tensor of zeros."""
    return core.full(shape, 0, dtype)


@jit
def zeros_like(input):
    """Zeros of the shape and type of ``input``."""
    return zeros(input.shape, input.dtype)


@jit
def interleave(a, b):
    """a[0], b[0], a[1], b[1], ... along the last axis."""
    c = core.join(a, b)
    if len(c.shape) == 1:
        return c
    else:
        return core.reshape(c, (*c.type.shape[:-2], 2 * c.type.shape[-2]))


@jit
def flip(x, dim=None):
    """Reverses axis ``dim``, the last one when None."""
    return shapes._flip(x, dim)


# Maximum and minimum --------------------------------------------------------------------------------------------------


@jit
def _elementwise_max(a, b):
    return core.maximum(a, b)


@jit
def _elementwise_min(a, b):
    return core.minimum(a, b)


@jit
def _first_wins(value1, index1, value2, index2, better, tie_break_left: core.constexpr):
    """Whether the first of two candidates is chosen: numbers before NaN, then the better value, then the lower
    index."""
    if tie_break_left:
        if value1.dtype.is_floating():
            nan1 = value1 != value1
            nan2 = value2 != value2
            tie = (value1 == value2) | (nan1 & nan2)
            return better | (nan2 & (value1 == value1)) | (tie & (index1 < index2))
        else:
            return better | ((value1 == value2) & (index1 < index2))
    else:
        if value1.dtype.is_floating():
            return better | ((value2 != value2) & (value1 == value1))
        else:
            return better


@jit
def _argmax_combine(value1, index1, value2, index2, tie_break_left: core.constexpr):
    first = _first_wins(value1, index1, value2, index2, value1 > value2, tie_break_left)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@jit
def _argmin_combine(value1, index1, value2, index2, tie_break_left: core.constexpr):
    first = _first_wins(value1, index1, value2, index2, value1 < value2, tie_break_left)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@jit
def _argmax_combine_tie_break_left(value1, index1, value2, index2):
    return _argmax_combine(value1, index1, value2, index2, True)


@jit
def _argmax_combine_tie_break_fast(value1, index1, value2, index2):
    return _argmax_combine(value1, index1, value2, index2, False)


@jit
def _argmin_combine_tie_break_left(value1, index1, value2, index2):
    return _argmin_combine(value1, index1, value2, index2, True)


@jit
def _argmin_combine_tie_break_fast(value1, index1, value2, index2):
    return _argmin_combine(value1, index1, value2, index2, False)


@constexpr_function
def _index_axis(axis, rank):
    if axis is None:
        raise ValueError("axis: an axis is needed to give indices")
    if not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis % rank


@constexpr_function
def _along(axis, rank, size):
    return tuple(size if i == axis else 1 for i in range(rank))


@jit
def _with_indices(input, axis, combine_fn: core.constexpr, keep_dims: core.constexpr):
    place: core.constexpr = _index_axis(axis, len(input.shape))
    size: core.constexpr = input.shape[place]
    index = core.reshape(core.arange(0, size), _along(place, len(input.shape), size))
    index = core.broadcast_to(index, input.shape)
    return core.reduce((input, index), place, combine_fn, keep_dims=keep_dims)


@jit
def max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The largest element along ``axis``, of all when None. NaN is skipped; all NaN gives NaN.

    Elements narrower than 32 bits are compared, and given, as float32 or int32. With ``return_indices`` also the
    position along ``axis``, the lowest one of equal elements when ``return_indices_tie_break_left``.
    """
    input = input.to(_order_type(input.dtype))
    if return_indices:
        if return_indices_tie_break_left:
            return _with_indices(input, axis, _argmax_combine_tie_break_left, keep_dims)
        else:
            return _with_indices(input, axis, _argmax_combine_tie_break_fast, keep_dims)
    else:
        return core.reduce(input, axis, _elementwise_max, keep_dims=keep_dims)


@jit
def min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The smallest element along ``axis``, of all when None. NaN is skipped; all NaN gives NaN. Otherwise like max."""
    input = input.to(_order_type(input.dtype))
    if return_indices:
        if return_indices_tie_break_left:
            return _with_indices(input, axis, _argmin_combine_tie_break_left, keep_dims)
        else:
            return _with_indices(input, axis, _argmin_combine_tie_break_fast, keep_dims)
    else:
        return core.reduce(input, axis, _elementwise_min, keep_dims=keep_dims)


@jit
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    """The position of the largest element along ``axis`` as int32; NaN is skipped."""
    _, index = max(input, axis, return_indices=True, return_indices_tie_break_left=tie_break_left, keep_dims=keep_dims)
    return index


@jit
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    """The position of the smallest element along ``axis`` as int32; NaN is skipped."""
    _, index = min(input, axis, return_indices=True, return_indices_tie_break_left=tie_break_left, keep_dims=keep_dims)
    return index


# Sums -----------------------------------------------------------------------------------------------------------------


@jit
def _sum_combine(a, b):
    return a + b


@jit
def _prod_combine(a, b):
    return a * b


@jit
def _xor_combine(a, b):
    return a ^ b


@jit
def _or_combine(a, b):
    return a | b


@jit
def sum(input, axis=None, keep_dims=False, dtype: core.constexpr = None):
    """The sum along ``axis``, of all when None.

    Added up and given in ``dtype``; without it integers narrower than 32 bits in int32 or uint32 (booleans in int32),
    bfloat16 in float32, others in their own type.
    """
    input = input.to(_sum_type(input.dtype, dtype))
    return core.reduce(input, axis, _sum_combine, keep_dims=keep_dims)


@jit
def xor_sum(input, axis=None, keep_dims=False):
    """Exclusive or of integers along ``axis``, of all when None."""
    core.static_assert(input.dtype.is_int(), "xor_sum: input: expected integers")
    return core.reduce(input, axis, _xor_combine, keep_dims=keep_dims)


@jit
def reduce_or(input, axis, keep_dims=False):
    """Bitwise or of integers along ``axis``."""
    core.static_assert(input.dtype.is_int(), "reduce_or: input: expected integers")
    return core.reduce(input, axis, _or_combine, keep_dims=keep_dims)


@jit
def cumsum(input, axis=0, reverse=False, dtype: core.constexpr = None):
    """Running sums along ``axis``, from its end with ``reverse``; types as in sum."""
    input = input.to(_sum_type(input.dtype, dtype))
    return core.associative_scan(input, axis, _sum_combine, reverse)


@jit
def cumprod(input, axis=0, reverse=False, dtype: core.constexpr = None):
    """Running products along ``axis``, from its end with ``reverse``; types as in sum."""
    input = input.to(_sum_type(input.dtype, dtype))
    return core.associative_scan(input, axis, _prod_combine, reverse)


# Sorting --------------------------------------------------------------------------------------------------------------


@jit
def sort_impl(x, k: core.constexpr = None, dim: core.constexpr = None, descending: core.constexpr = core.CONSTEXPR_0):
    """Sorts along ``dim``, the last axis when None, and keeps the first ``k`` elements when given."""
    ordered = reductions._sort(x, dim, descending, "sort")
    if k is None:
        return ordered
    else:
        return reductions._first(ordered, k, dim, "topk")


@jit
def sort(x, dim: core.constexpr = None, descending: core.constexpr = core.CONSTEXPR_0):
    """Sorts along ``dim``, the last axis when None. NaN counts as larger than every number."""
    return sort_impl(x, dim=dim, descending=descending)


@jit
def topk(x, k: core.constexpr, dim: core.constexpr = None, descending: core.constexpr = True):
    """The ``k`` largest elements along ``dim``, largest first; the smallest, smallest first, when not
    ``descending``."""
    return sort_impl(x, k=k, dim=dim, descending=descending)


@jit
def bitonic_merge(x, dim: core.constexpr = None, descending: core.constexpr = core.CONSTEXPR_0):
    """Sorts along ``dim`` a tensor whose halves are sorted in opposite directions."""
    return reductions._sort(x, dim, descending, "bitonic_merge")
