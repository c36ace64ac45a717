"""Names under which PyTorch looks for functions on nested tuples."""

from __future__ import annotations

from .runtime.binding import find_paths_if, get_iterable_path

__all__ = ["find_paths_if", "get_iterable_path"]
