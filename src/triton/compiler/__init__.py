"""The public face of the compiler. Names are imported when first read: see ``triton/__init__.py``."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "ASTSource": "compiler",
    "CompilationError": "errors",
    "CompiledKernel": "compiler",
    "IRSource": "compiler",
    "LazyDict": "compiler",
    "compile": "compiler",
    "get_cache_key": "compiler",
    "make_backend": "compiler",
    "max_shared_mem": "compiler",
}
_MODULES = ("compiler", "errors")

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
