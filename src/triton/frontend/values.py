"""Values of the language: tensors, compile-time values, tuples, slices.

A value that exists at run time is a tree whose leaves are IR values: ``flatten`` gives the leaves in order and
``rebuild`` makes the same tree from other leaves, which is how loops, branches and calls carry any of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from triton.ir import Value

from .dtypes import (
    base_type,
    constexpr_type,
    dtype,
    slice_type,
    tuple_type,
)

TRITON_BUILTIN = "__triton_builtin__"


def builtin(fn: Any) -> Any:
    """Marks a function that the compiler calls with its arguments and ``_semantic`` while it builds the kernel."""

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("_semantic") is None:
            raise ValueError(f"{fn.__name__}: can only be called inside a function decorated with @triton.jit")
        return fn(*args, **kwargs)

    setattr(wrapper, TRITON_BUILTIN, True)
    wrapper.raw = fn  # type: ignore[attr-defined]
    return wrapper


def is_builtin(fn: Any) -> bool:
    """Whether ``fn`` is an operation of the language."""
    return getattr(fn, TRITON_BUILTIN, False)


class base_value:
    """Base of everything a kernel's variable can hold at run time or compile time."""

    __slots__ = ()
    type: Any

    def flatten(self, leaves: list[Value]) -> None:
        """Appends the IR values inside this one."""
        raise NotImplementedError(f"{type(self).__name__} has no run-time form")

    def rebuild(self, leaves: Iterator[Value]) -> Any:
        """The same value with other IR values inside."""
        raise NotImplementedError(f"{type(self).__name__} has no run-time form")


def unwrap(value: Any) -> Any:
    """The Python value inside a constexpr; lists and tuples of them become Python's; anything else is itself."""
    kind = type(value)
    if kind is tensor:
        return value
    if kind is constexpr:
        return value.value
    if kind is list:
        return [unwrap(v) for v in value]
    if kind is tuple:
        return type_tuple([unwrap(v) for v in value.values])
    if kind is type_tuple:
        return type_tuple([unwrap(v) for v in value])
    return value.value if isinstance(value, constexpr) else value


def _unwrap_if_constexpr(o: Any) -> Any:
    """The Python value inside a constexpr, lists and tuples included."""
    return unwrap(o)


_unwrap_shape = _unwrap_if_constexpr


def _binary(fold: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    if reflected:
        return lambda self, other: constexpr(fold(unwrap(other), self.value))
    return lambda self, other: constexpr(fold(self.value, unwrap(other)))


class constexpr(base_value):
    """A value known while the kernel is compiled. Operators on two of them give another."""

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    @property
    def type(self) -> constexpr_type:
        return constexpr_type(self.value)

    def flatten(self, leaves: list[Value]) -> None:
        return None

    def rebuild(self, leaves: Iterator[Value]) -> constexpr:
        return self

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __hash__(self) -> int:
        return hash((self.value, constexpr))

    def __index__(self) -> Any:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)

    __add__, __radd__ = _binary(operator.add), _binary(operator.add, True)
    __sub__, __rsub__ = _binary(operator.sub), _binary(operator.sub, True)
    __mul__, __rmul__ = _binary(operator.mul), _binary(operator.mul, True)
    __mod__, __rmod__ = _binary(operator.mod), _binary(operator.mod, True)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _binary(operator.truediv, True)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _binary(operator.floordiv, True)
    __pow__, __rpow__ = _binary(operator.pow), _binary(operator.pow, True)
    __and__, __rand__ = _binary(operator.and_), _binary(operator.and_, True)
    __or__, __ror__ = _binary(operator.or_), _binary(operator.or_, True)
    __xor__, __rxor__ = _binary(operator.xor), _binary(operator.xor, True)
    __lshift__, __rlshift__ = _binary(operator.lshift), _binary(operator.lshift, True)
    __rshift__, __rrshift__ = _binary(operator.rshift), _binary(operator.rshift, True)
    __gt__, __rgt__ = _binary(operator.gt), _binary(operator.gt, True)
    __ge__, __rge__ = _binary(operator.ge), _binary(operator.ge, True)
    __lt__, __rlt__ = _binary(operator.lt), _binary(operator.lt, True)
    __le__, __rle__ = _binary(operator.le), _binary(operator.le, True)
    __eq__ = _binary(operator.eq)
    __ne__ = _binary(operator.ne)
    logical_and = _binary(lambda a, b: a and b)
    logical_or = _binary(lambda a, b: a or b)

    def __neg__(self) -> constexpr:
        return constexpr(-self.value)

    def __pos__(self) -> constexpr:
        return constexpr(+self.value)

    def __invert__(self) -> constexpr:
        return constexpr(~self.value)

    def __not__(self) -> constexpr:
        return constexpr(not self.value)

    def __iter__(self) -> Iterator[constexpr]:
        return map(constexpr, self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __call__(self, *args: Any, **kwds: Any) -> Any:
        return self.value(*args, **kwds)

    def __getitem__(self, *args: Any) -> Any:
        return self.value.__getitem__(*map(unwrap, args))


CONSTEXPR_0 = constexpr(0)


class tensor(base_value):
    """A tile, or a scalar when its type has no shape, computed by the kernel at run time."""

    __slots__ = ("handle", "type")
    type: Any

    def __init__(self, handle: Value, type: Any) -> None:
        self.handle = handle
        self.type = type

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return self.type.scalar  # type: ignore[no-any-return]

    @property
    def shape(self) -> Any:
        """Sizes as a tuple of constexpr."""
        return tuple([constexpr(s) for s in self.type.shape])

    @property
    def numel(self) -> constexpr:
        return constexpr(self.type.numel)

    def flatten(self, leaves: list[Value]) -> None:
        leaves.append(self.handle)

    def rebuild(self, leaves: Iterator[Value]) -> tensor:
        return tensor(next(leaves), self.type)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.type.shape))}]"

    def __repr__(self) -> str:
        return f"<tensor {self}>"

    __hash__ = object.__hash__


type_tuple = __builtins__["tuple"] if isinstance(__builtins__, dict) else __builtins__.tuple


class tuple(base_value):
    """Several values in one; members may be of any kind. A named tuple keeps its field names."""

    def __init__(self, args: Any, type: Any = None) -> None:
        self.values = list(args)
        if isinstance(type, tuple_type):
            self._fields, self._class = type.fields, getattr(type, "namedtuple", None)
        else:
            self._fields, self._class = None, type

    @property
    def fields(self) -> Any:
        if self._fields is not None:
            return self._fields
        return getattr(self._class, "_fields", None)

    @property
    def type(self) -> tuple_type:
        fields = self.fields
        made = tuple_type([type_of(v) for v in self.values], list(fields) if fields else None)
        made.namedtuple = self._class  # type: ignore[attr-defined]
        return made

    def like(self, values: Any) -> tuple:
        """Other members under the same field names."""
        made = tuple(values)
        made._fields, made._class = self._fields, self._class
        return made

    def flatten(self, leaves: list[Value]) -> None:
        for value in self.values:
            if isinstance(value, base_value):
                value.flatten(leaves)

    def rebuild(self, leaves: Iterator[Value]) -> tuple:
        return self.like(v.rebuild(leaves) if isinstance(v, base_value) else v for v in self.values)

    def __getitem__(self, idx: Any) -> Any:
        idx = unwrap(idx)
        if isinstance(idx, slice):
            idx = idx.python()
        if isinstance(idx, python_slice):
            return tuple(self.values[idx])
        if isinstance(idx, bool) or not isinstance(idx, int):
            raise TypeError(f"tuple: an index must be an int known at compile time, got {describe(idx)}")
        if not -len(self.values) <= idx < len(self.values):
            raise IndexError(f"tuple: index {idx} is outside a tuple of {len(self.values)} members")
        return self.values[idx]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        fields = self.fields
        if fields is not None and name in fields:
            return self.values[list(fields).index(name)]
        raise AttributeError(f"tuple has no field {name!r}")

    def __add__(self, other: Any) -> tuple:
        return tuple(self.values + list(getattr(other, "values", other)))

    def __mul__(self, other: Any) -> tuple:
        return tuple(self.values * unwrap(other))

    def __eq__(self, other: object) -> Any:
        values = getattr(other, "values", other)
        if not isinstance(values, (list, type_tuple)):
            return constexpr(False)
        return constexpr(unwrap(self) == type_tuple(unwrap(v) for v in values))

    def __hash__(self) -> int:
        return hash(type_tuple(self.values))

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.values)) + ")"

    __repr__ = __str__

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


python_slice = __builtins__["slice"] if isinstance(__builtins__, dict) else __builtins__.slice


class slice(base_value):
    """start:stop:step of compile-time values, in a subscript."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step
        self.type = slice_type()

    @property
    def is_full(self) -> bool:
        """Whether it is a bare colon."""
        return all(unwrap(v) is None for v in (self.start, self.stop, self.step))

    def python(self) -> Any:
        return python_slice(unwrap(self.start), unwrap(self.stop), unwrap(self.step))


def type_of(value: Any) -> Any:
    """The language's type of any value; Python values count as constexpr."""
    if isinstance(value, base_value):
        return value.type
    return constexpr_type(value)


def describe(value: Any) -> str:
    """A value as error messages name it: types for run-time values, the value itself for constants."""
    if isinstance(value, tensor):
        return f"a tensor {value}" if value.type.is_block() else f"a run-time {value.dtype}"
    if isinstance(value, constexpr):
        return describe(value.value)
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return "a tuple (" + ", ".join(describe(v) for v in value.values) + ")"
    if isinstance(value, type_tuple):
        return "a tuple (" + ", ".join(describe(v) for v in value) + ")"
    if isinstance(value, (bool, int, float, str)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, base_type):
        return f"the type {value}"
    name = getattr(value, "__name__", None)
    return f"{type(value).__name__} {name}" if name else f"a {type(value).__name__}"
