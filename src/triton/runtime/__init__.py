"""Running kernels: specialisation, caches, launches, tuning, the choice of a driver."""

from __future__ import annotations

import importlib
from typing import Any

from .driver import driver
from .errors import InterpreterError, OutOfResources

_LAZY = {
    "Autotuner": "autotuner",
    "Config": "autotuner",
    "Heuristics": "autotuner",
    "autotune": "autotuner",
    "heuristics": "autotuner",
    "JITFunction": "jit",
    "KernelInterface": "jit",
    "MockTensor": "jit",
    "TensorWrapper": "jit",
    "reinterpret": "jit",
    "RedisRemoteCacheBackend": "cache",
    "RemoteCacheBackend": "cache",
}
_MODULES = ("autotuner", "build", "cache", "errors", "jit")

__all__ = ["InterpreterError", "OutOfResources", "driver", *_LAZY]


# Most programs never tune or look into the cache; those modules are imported when a name of theirs is read.
def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
