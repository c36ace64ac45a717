"""From the arguments of a call to the values of a kernel's parameters, and from these to a specialisation."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from math import isfinite
from numbers import Real
from typing import Any

from .arguments import PROMISES, ArgumentError, element_bytes, int_key, is_namedtuple, make_like, specialize_argument

Path = tuple[int, ...]


def convert_to_tuple_if_list(item: Any) -> Any:
    """Lists, at any depth, as tuples: what is hashable."""
    if isinstance(item, (list, tuple)):
        parts = [convert_to_tuple_if_list(part) for part in item]
        return make_like(item, parts) if isinstance(item, tuple) else tuple(parts)
    return item


def find_paths_if(iterable: Any, pred: Any) -> list[Path]:
    """The paths of the leaves of nested tuples and lists for which ``pred(path, leaf)`` holds."""
    found: list[Path] = []

    def walk(item: Any, path: Path) -> None:
        if isinstance(item, (tuple, list)):
            for i, part in enumerate(item):
                walk(part, (*path, i))
        elif pred(path, item):
            found.append(path)

    walk(iterable, ())
    return found


def get_iterable_path(iterable: Any, path: Iterable[int]) -> Any:
    """The item of nested tuples and lists at ``path``."""
    for index in path:
        iterable = iterable[index]
    return iterable


def constexpr_key(value: Any) -> Any:
    """A hashable stand-in for a compile-time value. It tells apart what Python calls equal: 1, 1.0, True; 0.0, -0.0."""
    cls = type(value)
    if cls is int or cls is str or value is None:
        return value
    if cls is bool:
        return ("bool", value)
    if cls is float:
        return ("float", value.hex())
    if isinstance(value, (list, tuple)):
        return (cls, tuple(constexpr_key(item) for item in value))
    if isinstance(value, dict):
        return (cls, tuple((constexpr_key(k), constexpr_key(v)) for k, v in value.items()))
    inner = getattr(value, "cache_key", None)
    if isinstance(inner, str):
        return inner
    if cls.__name__ == "constexpr" and hasattr(value, "value"):
        return constexpr_key(value.value)
    if cls.__hash__ is None:
        return (cls, repr(value))
    return (cls, value)


_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Binder:
    """Binds the calls of one kernel."""

    __slots__ = ("count", "index", "name", "names", "params", "rules")

    def __init__(self, name: str, params: Sequence[Any]) -> None:
        self.name = name
        self.params = list(params)
        self.names = [p.name for p in self.params]
        self.index = {p.name: i for i, p in enumerate(self.params)}
        self.count = len(self.params)
        for param in self.params:
            if stars := _STARS.get(param._param.kind):
                raise TypeError(f"{name}() cannot be launched: a kernel has no {stars}{param.name}; pass a tuple")
        self.rules = [_rule(p) for p in self.params]

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """``(values, options)``: one value per parameter, and the keywords that are not parameters.

        Raises TypeError naming the parameter that is missing or given twice.
        """
        given = len(args)
        if given > self.count:
            raise TypeError(f"{self.name}() takes {self.count} arguments, {given} were given")
        values = list(args)
        if given == self.count and not kwargs:
            self._check_nesting(values)
            return values, kwargs
        options = dict(kwargs)
        missing: list[str] = []
        for param in self.params[given:]:
            name = param.name
            if name in options:
                values.append(options.pop(name))
            elif param.has_default:
                values.append(param.default)
            else:
                missing.append(name)
        if missing:
            raise TypeError(self._missing(missing, options))
        for name in options:
            if name in self.index:
                raise TypeError(f"{self.name}() got argument {name!r} twice: by position and by name")
        self._check_nesting(values)
        return values, options

    def _check_nesting(self, values: list[Any]) -> None:
        """Refuses tuples in tuples without end: the walks over arguments are recursive."""
        for name, value in zip(self.names, values, strict=True):
            waiting = [(value, 1)] if isinstance(value, (tuple, list)) else []
            while waiting:
                outer, depth = waiting.pop()
                if depth > MAX_NESTING:
                    raise TypeError(f"{self.name}() argument {name!r}: tuples are nested more than {MAX_NESTING} deep")
                waiting += [(inner, depth + 1) for inner in outer if isinstance(inner, (tuple, list))]

    def _missing(self, missing: list[str], options: dict[str, Any]) -> str:
        import difflib  # only for this message

        text = ", ".join(repr(name) for name in missing)
        message = f"{self.name}() is missing argument{'s' * (len(missing) > 1)} {text}"
        close = [n for n in options if difflib.get_close_matches(n, missing, 1)]
        return message + (f"; {close[0]!r} was given, is it misspelt?" if close else "")

    def unknown(self, name: str, known: Iterable[str]) -> str:
        """The sentence for a keyword that is neither a parameter nor an option."""
        import difflib  # only for this message

        close = difflib.get_close_matches(name, [*self.names, *known], 1)
        hint = f"did you mean {close[0]!r}?" if close else f"its parameters are {', '.join(self.names) or 'none'}"
        return f"{self.name}() got an unknown argument {name!r}; {hint}"

    def specialize(self, values: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
        """One ``(type, key)`` per parameter: equal for two calls exactly when they can share compiled code."""
        result = []
        for i, value in enumerate(values):
            rule = self.rules[i]
            try:
                if rule is None:
                    result.append(("constexpr", constexpr_key(value)))
                elif rule[3]:
                    result.append(_annotated(value, rule))
                else:
                    result.append(specialize_argument(value, rule[0], rule[1], rule[2]))
            except ArgumentError as error:
                raise TypeError(f"{self.name}() argument {self.names[i]!r}: {error}") from None
        return tuple(result)


MAX_NESTING = 64
"""Of tuples in arguments."""

_Rule = tuple[bool, bool, bool, str]


def _rule(param: Any) -> _Rule | None:
    """How a parameter is specialised: ``(is const, specialise, align, annotated type)``; None for constexpr."""
    if param.is_constexpr:
        return None
    return (
        bool(param.is_const),
        not param.do_not_specialize,
        not (param.do_not_specialize_on_alignment or param.do_not_specialize),
        str(getattr(param, "annotation_type", "") or ""),
    )


def _annotated(value: Any, rule: _Rule) -> tuple[Any, Any]:
    """A parameter annotated with a scalar type has that type, whatever number is passed."""
    is_const, specialize, align, annotation = rule
    if value is None or not (isinstance(value, Real) or hasattr(value, "__index__")):
        return specialize_argument(value, is_const, specialize, align)
    if annotation[0] in "iu" and annotation != "u1":
        number = _as_integer(value, annotation)
        return annotation, int_key(number) if specialize and align else ""
    return annotation, None


def _as_integer(value: Any, annotation: str) -> int:
    if not hasattr(value, "__index__") and not (isfinite(value) and int(value) == value):
        raise ArgumentError(f"expected an integer for type {annotation}, got {value!r}")
    number = int(value)
    bits = 8 * element_bytes(annotation)
    low, high = (0, 2**bits) if annotation[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= number < high:
        raise ArgumentError(f"{number} does not fit type {annotation}")
    return number


def signature_of(
    params: Sequence[Any], values: Sequence[Any], specialization: Sequence[tuple[Any, Any]]
) -> tuple[dict[str, Any], dict[Path, Any], dict[Path, list[tuple[str, int]]]]:
    """``(signature, constexprs, attrs)`` of a specialisation: types by name, values and promises by path."""
    signature: dict[str, Any] = {}
    constexprs: dict[Path, Any] = {}
    attrs: dict[Path, list[tuple[str, int]]] = {}

    def walk(path: Path, kind: Any, key: Any, value: Any) -> None:
        if isinstance(kind, tuple):
            for i, part in enumerate(kind):
                walk((*path, i), part, key[i], value[i])
        elif kind == "constexpr":
            constexprs[path] = value
        elif isinstance(key, str) and key in PROMISES:
            attrs[path] = [("tt.divisibility", PROMISES[key])]

    for i, (param, (kind, key)) in enumerate(zip(params, specialization, strict=True)):
        signature[param.name] = kind
        walk((i,), kind, key, values[i])
    return signature, constexprs, attrs


__all__ = [
    "Binder",
    "constexpr_key",
    "convert_to_tuple_if_list",
    "find_paths_if",
    "get_iterable_path",
    "is_namedtuple",
    "signature_of",
]
