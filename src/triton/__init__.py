"""Kernels in Python: ``@triton.jit``, launched with ``kernel[grid](...)``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "3.9.0"

if TYPE_CHECKING:
    from .runtime.autotuner import Config as Config
    from .runtime.autotuner import autotune as autotune
    from .runtime.autotuner import heuristics as heuristics
    from .runtime.jit import JITFunction as JITFunction
    from .runtime.jit import KernelInterface as KernelInterface
    from .runtime.jit import constexpr_function as constexpr_function
    from .runtime.jit import jit as jit
    from .runtime.jit import reinterpret as reinterpret

# Names and where they live. They are imported when first read, so that ``import triton`` stays quick.
_NAMES = {
    "AsyncCompileMode": "runtime._async_compile",
    "CompilationError": "compiler.errors",
    "Config": "runtime.autotuner",
    "FutureKernel": "runtime._async_compile",
    "InterpreterError": "runtime.errors",
    "JITFunction": "runtime.jit",
    "KernelInterface": "runtime.jit",
    "MockTensor": "runtime.jit",
    "OutOfResources": "runtime.errors",
    "TensorWrapper": "runtime.jit",
    "TritonError": "errors",
    "autotune": "runtime.autotuner",
    "cdiv": "_host",
    "compile": "compiler.compiler",
    "constexpr_function": "runtime.jit",
    "heuristics": "runtime.autotuner",
    "jit": "runtime.jit",
    "must_use_result": "language.core",
    "next_power_of_2": "_host",
    "reinterpret": "runtime.jit",
    "set_allocator": "runtime._allocation",
}
_MODULES = ("backends", "compiler", "errors", "knobs", "language", "runtime", "testing", "tools")

__all__ = [*_NAMES, "aggregate", "language", "runtime", "testing", "tools"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    if name == "aggregate":  # the language keeps it under another name
        return importlib.import_module(f"{__name__}.language.core")._aggregate
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
