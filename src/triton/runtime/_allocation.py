"""Scratch memory that kernels ask the host for at launch. ``triton.set_allocator`` says where it comes from."""

from __future__ import annotations

import contextvars
from typing import Protocol


class Buffer(Protocol):
    def data_ptr(self) -> int: ...


class Allocator(Protocol):
    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer: ...


class NullAllocator:
    """The allocator until one is set: it refuses."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer:
        raise RuntimeError("a kernel needs memory at run time; call triton.set_allocator(function) before launching it")


_NULL = NullAllocator()
_allocator: contextvars.ContextVar[Allocator] = contextvars.ContextVar("triton_allocator", default=_NULL)
_profile_allocator: Allocator = _NULL


def set_allocator(allocator: Allocator | None) -> None:
    """Use ``allocator(size, alignment, stream)``, which returns something with ``data_ptr()``, for kernels' scratch.

    Holds for the current context (thread or task); None takes it back."""
    _allocator.set(_NULL if allocator is None else allocator)


def get_allocator() -> Allocator:
    """The allocator of the current context."""
    return _allocator.get()


def set_profile_allocator(allocator: Allocator | None) -> None:
    """The same for profilers' buffers, for the whole process."""
    global _profile_allocator
    _profile_allocator = _NULL if allocator is None else allocator


def has_profile_allocator() -> bool:
    return _profile_allocator is not _NULL
