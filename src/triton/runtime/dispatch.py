"""The native dispatcher: launches of kernels that ran before, without Python code in between."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..frontend.values import constexpr
from .arguments import as_array, element_type

# What the native side is told of a parameter.
CONSTEXPR, NO_SPECIALIZE, NO_ALIGN, CONST = 1, 2, 4, 8


@functools.cache
def _extension() -> Any:
    """The native extension, with its hooks set. Loaded at the first launch: it brings LLVM with it."""
    from .._C import libtriton

    libtriton.set_dtype_resolver(element_type)
    libtriton.set_array_adapter(as_array)
    libtriton.set_constexpr_type(constexpr)
    return libtriton


@functools.cache
def bound_launch() -> Any:
    """What ``kernel[grid]`` makes: see ``BoundLaunch`` of the native core."""
    return _extension().BoundLaunch


def _flags(param: Any) -> int:
    if param.is_constexpr:
        return CONSTEXPR
    flags = CONST if param.is_const else 0
    if param.do_not_specialize:
        flags |= NO_SPECIALIZE
    if param.do_not_specialize_on_alignment:
        flags |= NO_ALIGN
    return flags


def make_dispatcher(name: str, params: Sequence[Any], on_miss: Callable[..., Any], gpu: Any) -> Any:
    """A dispatcher for a jitted function; launches without arrays go to the current GPU of the native driver ``gpu``,
    if it is not None.

    ``on_miss(key, values, classes, options, overlap, grid)`` gives the kernel for arguments of new kinds, or launches
    by itself and gives anything else.
    """
    missing = object()
    return _extension().Dispatcher(
        name,
        tuple(p.name for p in params),
        tuple(_flags(p) for p in params),
        tuple(None if p.is_constexpr else (p.annotation_type or None) for p in params),
        tuple(p.default if p.has_default else missing for p in params),
        on_miss,
        missing,
        gpu,
    )


def make_launcher(name: str, signature: Mapping[str, Any], on_miss: Callable[..., Any], gpu: Any) -> Any:
    """A dispatcher for one compiled kernel, whose arguments have the types of ``signature`` whatever their values; None
    where a parameter needs Python code."""
    kinds = list(signature.values())
    if not all(isinstance(kind, str) and not kind.startswith("tensordesc") for kind in kinds):
        return None
    missing = object()
    return _extension().Dispatcher(
        name,
        tuple(signature),
        tuple(CONSTEXPR if kind == "constexpr" else 0 for kind in kinds),
        tuple(None if kind == "constexpr" or kind[0] == "*" else kind for kind in kinds),
        (missing,) * len(kinds),
        on_miss,
        missing,
        gpu,
    )
