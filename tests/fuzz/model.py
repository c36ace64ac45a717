"""The language in miniature on NumPy, written apart from the interpreter: what the source text of a random kernel means
when Python itself runs it with ``MODEL`` in the place of ``tl``. Integers wrap, division truncates; floats are whole
numbers small enough to be exact."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
LIMITS = {"int32": 32, "int64": 64, "uint32": 32, "int16": 16, "uint8": 8}


def raw(value: Any, dtype: np.dtype) -> Any:
    """The operand as an array of this type; a plain number takes it on."""
    return value.data if isinstance(value, V) else np.asarray(value).astype(dtype)


class V:
    """A tile or scalar."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def _with(self, other: Any, function: Any, swap: bool = False) -> V:
        a, b = self.data, raw(other, self.dtype)
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        with np.errstate(all="ignore"):
            return V(function(b, a) if swap else function(a, b))

    def __add__(self, other: Any) -> V:
        return self._with(other, np.add)

    def __sub__(self, other: Any) -> V:
        return self._with(other, np.subtract)

    def __rsub__(self, other: Any) -> V:
        return self._with(other, np.subtract, swap=True)

    def __mul__(self, other: Any) -> V:
        return self._with(other, np.multiply)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: Any) -> V:
        return self._with(other, quotient)

    def __mod__(self, other: Any) -> V:
        return self._with(other, remainder)

    def __and__(self, other: Any) -> V:
        return self._with(other, np.bitwise_and)

    def __or__(self, other: Any) -> V:
        return self._with(other, np.bitwise_or)

    def __xor__(self, other: Any) -> V:
        return self._with(other, np.bitwise_xor)

    def __lshift__(self, other: Any) -> V:
        return self._with(other, np.left_shift)

    def __rshift__(self, other: Any) -> V:
        return self._with(other, np.right_shift)

    def __lt__(self, other: Any) -> V:
        return self._with(other, np.less)

    def __le__(self, other: Any) -> V:
        return self._with(other, np.less_equal)

    def __gt__(self, other: Any) -> V:
        return self._with(other, np.greater)

    def __ge__(self, other: Any) -> V:
        return self._with(other, np.greater_equal)

    def __eq__(self, other: Any) -> V:  # type: ignore[override]
        return self._with(other, np.equal)

    def __ne__(self, other: Any) -> V:  # type: ignore[override]
        return self._with(other, np.not_equal)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> V:
        return V((0 - self.data).astype(self.dtype))

    def __invert__(self) -> V:
        return V(~self.data)

    def __bool__(self) -> bool:
        assert self.shape == ()
        return bool(self.data)

    def __index__(self) -> int:
        return int(self.data)

    def __getitem__(self, key: Any) -> V:
        return V(self.data[key])

    def to(self, dtype: Any) -> V:
        return V(self.data.astype(dtype))

    def sum(self, axis: int) -> V:
        return MODEL.sum(self, axis)


def quotient(a: Array, b: Array) -> Array:
    """Toward zero; a zero divisor counts as 1."""
    b = np.where(b == 0, np.ones_like(b), b)
    q = np.floor_divide(a, b)
    exact = (q * b == a) | ((a < 0) == (b < 0))
    return np.where(exact, q, q + 1).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    b = np.where(b == 0, np.ones_like(b), b)
    return (a - quotient(a, b) * b).astype(a.dtype)


class Pointer:
    def __init__(self, memory: Array, offset: Any = 0) -> None:
        self.memory, self.offset = memory, np.asarray(offset)

    def __add__(self, other: Any) -> Pointer:
        return Pointer(self.memory, self.offset + (other.data if isinstance(other, V) else other))



def fold(values: list[V], axis: int, combine: Any, scan: bool, reverse: bool = False) -> list[V]:
    columns = [np.moveaxis(v.data, axis, 0) for v in values]
    order = range(len(columns[0]))
    steps = list(reversed(order)) if reverse else list(order)
    state = [V(c[steps[0]]) for c in columns]
    outs = [[s.data for s in state]]
    for i in steps[1:]:
        result = combine(*state, *[V(c[i]) for c in columns])
        state = list(result) if isinstance(result, tuple) else [result]
        outs.append([s.data for s in state])
    if not scan:
        return state
    rows = outs[::-1] if reverse else outs
    return [V(np.moveaxis(np.stack([row[k] for row in rows]), 0, axis)) for k in range(len(values))]


class Model:
    """``tl``."""

    constexpr = Any
    int1, int16, int32, int64, uint8, uint32, float32 = (
        np.dtype(n) for n in ("bool", "int16", "int32", "int64", "uint8", "uint32", "float32")
    )

    def __init__(self) -> None:
        self.pid = 0
        self.grid = 1

    def program_id(self, axis: int) -> V:
        return V(np.int32(self.pid if axis == 0 else 0))

    def num_programs(self, axis: int) -> V:
        return V(np.int32(self.grid if axis == 0 else 1))

    def arange(self, low: int, high: int) -> V:
        return V(np.arange(low, high, dtype=np.int32))

    def full(self, shape: Any, value: Any, dtype: Any) -> V:
        return V(np.full(shape, value, dtype))

    def zeros(self, shape: Any, dtype: Any) -> V:
        return V(np.zeros(shape, dtype))

    def load(self, pointer: Pointer, mask: V | None = None, other: Any = 0, **hints: Any) -> V:
        where = pointer.offset
        if mask is None:
            return V(pointer.memory[where])
        holds = np.broadcast_to(mask.data, where.shape)
        data = pointer.memory[np.where(holds, where, 0)]
        return V(np.where(holds, data, np.asarray(other).astype(data.dtype)))

    def store(self, pointer: Pointer, value: Any, mask: V | None = None, **hints: Any) -> None:
        where, data = np.broadcast_arrays(pointer.offset, raw(value, pointer.memory.dtype))
        data = data.astype(pointer.memory.dtype)
        if mask is None:
            pointer.memory[where] = data
        else:
            holds = np.broadcast_to(mask.data, where.shape)
            pointer.memory[where[holds]] = data[holds]

    def _atomic(self, ufunc: Any, pointer: Pointer, value: V, mask: V | None) -> None:
        where, data = np.broadcast_arrays(pointer.offset, value.data)
        holds = np.broadcast_to(True if mask is None else mask.data, where.shape)
        ufunc.at(pointer.memory, where[holds], data[holds])

    def atomic_add(self, pointer: Pointer, value: V, mask: V | None = None, **order: Any) -> None:
        self._atomic(np.add, pointer, value, mask)

    def atomic_max(self, pointer: Pointer, value: V, mask: V | None = None, **order: Any) -> None:
        self._atomic(np.maximum, pointer, value, mask)

    def atomic_xor(self, pointer: Pointer, value: V, mask: V | None = None, **order: Any) -> None:
        self._atomic(np.bitwise_xor, pointer, value, mask)

    def where(self, condition: V, a: Any, b: Any) -> V:
        a, b = (a, raw(b, a.dtype)) if isinstance(a, V) else (V(raw(a, b.dtype)), raw(b, b.dtype))
        return V(np.where(condition.data, a.data, b).astype(a.dtype))

    def minimum(self, a: V, b: Any) -> V:
        return V(np.minimum(a.data, raw(b, a.dtype)))

    def maximum(self, a: V, b: Any) -> V:
        return V(np.maximum(a.data, raw(b, a.dtype)))

    def abs(self, a: V) -> V:
        with np.errstate(all="ignore"):
            return V(np.abs(a.data))

    def umulhi(self, a: V, b: V) -> V:
        """Of the operands read as unsigned."""
        unsigned = np.dtype(f"uint{8 * a.dtype.itemsize}")
        x, y = (v.data.astype(unsigned).astype(object) for v in (a, b))
        high = np.asarray(x * y // 2 ** (8 * a.dtype.itemsize), dtype=object)
        return V(high.astype(unsigned).astype(a.dtype))

    def cdiv(self, a: Any, b: int) -> Any:
        return (a + (b - 1)) // b

    def _narrow_sum(self, a: V) -> Array:
        small = a.dtype.kind in "biu" and a.dtype.itemsize < 4
        return a.data.astype(np.int32 if a.dtype.kind in "bi" else np.uint32) if small else a.data

    def sum(self, a: V, axis: int) -> V:
        data = self._narrow_sum(a)
        return V(np.sum(data, axis=axis, dtype=data.dtype))

    def cumsum(self, a: V, axis: int, reverse: bool = False) -> V:
        data = self._narrow_sum(a)
        data = np.flip(data, axis) if reverse else data
        total = np.cumsum(data, axis=axis, dtype=data.dtype)
        return V(np.flip(total, axis) if reverse else total)

    def max(self, a: V, axis: int) -> V:
        return V(a.data.max(axis))

    def min(self, a: V, axis: int) -> V:
        return V(a.data.min(axis))

    def argmax(self, a: V, axis: int) -> V:
        return V(a.data.argmax(axis).astype(np.int32))

    def argmin(self, a: V, axis: int) -> V:
        return V(a.data.argmin(axis).astype(np.int32))

    def xor_sum(self, a: V, axis: int) -> V:
        return V(np.bitwise_xor.reduce(a.data, axis))

    def reduce(self, values: Any, axis: int, combine: Any) -> Any:
        if isinstance(values, tuple):
            return tuple(fold(list(values), axis, combine, scan=False))
        return fold([values], axis, combine, scan=False)[0]

    def associative_scan(self, values: Any, axis: int, combine: Any, reverse: bool = False) -> Any:
        if isinstance(values, tuple):
            return tuple(fold(list(values), axis, combine, True, reverse))
        return fold([values], axis, combine, True, reverse)[0]

    def sort(self, a: V, dim: int, descending: bool = False) -> V:
        ordered = np.sort(a.data, axis=dim)
        return V(np.flip(ordered, dim) if descending else ordered)

    def topk(self, a: V, k: int, descending: bool = True) -> V:
        ordered = np.sort(a.data, axis=-1)
        return V((np.flip(ordered, -1) if descending else ordered)[..., :k])

    def flip(self, a: V, dim: int) -> V:
        return V(np.flip(a.data, dim))

    def trans(self, a: V) -> V:
        return V(a.data.T)

    def reshape(self, a: V, *shape: int) -> V:
        return V(a.data.reshape(shape))

    def ravel(self, a: V) -> V:
        return V(a.data.reshape(-1))

    def broadcast_to(self, a: V, *shape: int) -> V:
        return V(np.broadcast_to(a.data, shape))

    def expand_dims(self, a: V, axis: int) -> V:
        return V(np.expand_dims(a.data, axis))

    def join(self, a: V, b: V) -> V:
        return V(np.stack([a.data, b.data], -1))

    def interleave(self, a: V, b: V) -> V:
        joined = np.stack([a.data, b.data], -1)
        return V(joined.reshape(*a.shape[:-1], 2 * a.shape[-1]))

    def split(self, a: V) -> tuple[V, V]:
        return V(a.data[..., 0]), V(a.data[..., 1])

    def cat(self, a: V, b: V, dim: int) -> V:
        return V(np.concatenate([a.data, b.data], dim))

    def gather(self, a: V, index: V, axis: int) -> V:
        return V(np.take_along_axis(a.data, index.data, axis))

    def histogram(self, a: V, bins: int) -> V:
        inside = a.data[(a.data >= 0) & (a.data < bins)]
        return V(np.bincount(inside, minlength=bins).astype(np.int32))

    def dot(self, a: V, b: V, acc: V | None = None, **options: Any) -> V:
        wide = np.int32 if a.dtype.kind in "iu" else np.float32
        product = a.data.astype(wide) @ b.data.astype(wide)
        return V(product if acc is None else product + acc.data)

    def static_range(self, *bounds: int) -> Any:
        return range(*bounds)

    def range(self, *bounds: Any, **attributes: Any) -> Any:
        return model_range(*bounds)

    def static_assert(self, condition: Any, message: str = "") -> None:
        assert condition, message

    def assume(self, condition: V) -> None:
        assert condition

    def multiple_of(self, value: V, n: int) -> V:
        return value

    def debug_barrier(self) -> None: ...


def model_range(*bounds: Any) -> Any:
    return (V(np.int32(i)) for i in range(*map(int, bounds)))


MODEL = Model()
