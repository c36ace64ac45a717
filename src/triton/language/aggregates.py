"""Classes whose objects live in kernels: their fields are values of the language, their methods are jitted
functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from triton.frontend.dtypes import base_type
from triton.frontend.source import ConstexprFunction, JITCallable
from triton.frontend.values import base_value, constexpr, type_of
from triton.ir import Value


class _aggregate_type(base_type):
    """The type of an aggregate: its class and the types of its fields."""

    def __init__(self, cls: Any, fields: Any) -> None:
        self.cls, self.fields = cls, fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _aggregate_type) and self.cls is other.cls and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((self.cls, str(self.fields)))

    def __str__(self) -> str:
        return f"{self.cls.__name__}<{', '.join(f'{n}: {t}' for n, t in self.fields)}>"

    def mangle(self) -> str:
        return f"{self.cls.__name__}<{', '.join(t.mangle() for _, t in self.fields)}>"


def _fields(cls: Any, names: list[str], args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Values by field, for a class without ``__init__``; its own attributes are the defaults."""
    values = dict(zip(names, args, strict=False)) | kwargs
    for name in names:
        if name not in values and hasattr(cls, name):
            values[name] = getattr(cls, name)
    if len(args) > len(names) or set(values) != set(names):
        raise TypeError(f"{cls.__name__}: expected the fields {', '.join(names)}")
    return values


def _unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def _aggregate(cls: Any) -> Any:
    """Class decorator. Annotated fields are set by the class's ``__init__``, jitted or a ``constexpr_function``, or in
    order when it has none."""
    names = list(getattr(cls, "__annotations__", {}))

    class aggregate_value(base_value):
        __triton_builtin__ = True
        __triton_aggregate__ = True

        def __new__(this: Any, *args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any) -> Any:
            if _semantic is None:
                raise ValueError(f"{cls.__name__}: can only be made inside a jitted function")
            made = object.__new__(this)
            generator = _generator or _semantic.generator
            init = cls.__dict__.get("__init__")
            if isinstance(init, ConstexprFunction):  # plain Python, on run-time values too
                init.fn(made, *map(_unwrapped, args), **{name: _unwrapped(v) for name, v in kwargs.items()})
            elif isinstance(init, JITCallable):
                generator.call(init, [made, *args], kwargs)
            elif init is not None and inspect.isfunction(init):
                extra = {"_semantic": _semantic} if "_semantic" in inspect.signature(init).parameters else {}
                init(made, *args, **extra, **kwargs)
            else:
                for name, value in _fields(cls, names, args, kwargs).items():
                    setattr(made, name, value)
            for name in names:
                if name not in made.__dict__:
                    raise TypeError(f"{cls.__name__}: field {name} was not set by __init__")
            return made

        def __init__(this, *args: Any, **kwargs: Any) -> None:
            return None

        def __setattr__(this, name: str, value: Any) -> None:
            if name not in names:
                raise AttributeError(f"{cls.__name__} has no field {name!r}")
            if not isinstance(value, base_value) and not isinstance(value, (JITCallable, base_type)):
                value = constexpr(value)
            object.__setattr__(this, name, value)

        @property
        def type(this) -> Any:
            return _aggregate_type(aggregate_value, [(n, type_of(this.__dict__[n])) for n in names])

        def flatten(this, leaves: list[Value]) -> None:
            for name in names:
                value = this.__dict__[name]
                if isinstance(value, base_value):
                    value.flatten(leaves)

        def rebuild(this, leaves: Iterator[Value]) -> Any:
            made = object.__new__(aggregate_value)
            for name in names:
                value = this.__dict__[name]
                object.__setattr__(made, name, value.rebuild(leaves) if isinstance(value, base_value) else value)
            return made

    for name, member in inspect.getmembers(cls):
        if name not in ("__init__", "__new__") and (isinstance(member, (JITCallable, property)) or name in _plain(cls)):
            setattr(aggregate_value, name, cls.__dict__.get(name, member))
    aggregate_value.__name__ = cls.__name__
    aggregate_value.__qualname__ = cls.__qualname__
    aggregate_value.__module__ = cls.__module__
    aggregate_value.__doc__ = cls.__doc__
    aggregate_value.__triton_fields__ = names  # type: ignore[attr-defined]
    aggregate_value.__triton_init__ = cls.__dict__.get("__init__")  # type: ignore[attr-defined]
    return aggregate_value


def _plain(cls: Any) -> set[str]:
    """Methods that the class defines itself."""
    return {
        n
        for n, v in cls.__dict__.items()
        if callable(v) or isinstance(v, (staticmethod, classmethod, ConstexprFunction))
    }


def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """A copy of an aggregate with some fields changed."""
    names = getattr(type(instance), "__triton_fields__", None)
    if names is None:
        raise TypeError(f"aggregate_replace: expected an aggregate, got {type(instance).__name__}")
    made = object.__new__(type(instance))
    for name in names:
        object.__setattr__(made, name, instance.__dict__[name])
    changes.pop("_semantic", None)
    for name, value in changes.items():
        if name not in names:
            raise AttributeError(f"aggregate_replace: {type(instance).__name__} has no field {name!r}")
        setattr(made, name, value)
    return made


aggregate_replace.__triton_builtin__ = True  # type: ignore[attr-defined]
