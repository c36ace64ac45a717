"""Names under which PyTorch looks for kernels that run in the interpreter.

With ``TRITON_INTERPRET=1`` every launch of a jitted function is interpreted, whenever the function was made; so there
is no class of such functions, but ``isinstance`` answers as if there were.
"""

from __future__ import annotations

from typing import Any

from .. import knobs
from .errors import InterpreterError
from .jit import JITFunction, KernelInterface

__all__ = ["InterpretedFunction", "InterpreterError", "KernelInterface"]


class _Interpreted(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, JITFunction) and bool(knobs.runtime.interpret)


class InterpretedFunction(metaclass=_Interpreted):
    """What a jitted function is an instance of while kernels are interpreted."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The same as ``triton.jit``: how the function runs is decided at its launch."""
        return JITFunction(*args, **kwargs)
