"""What compiling raises."""

from __future__ import annotations

from ..diagnostics.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from ..errors import TritonError


class CodeGenerationError(TritonError):
    """The code generator could not make code of valid IR. ``stage`` says which step failed."""

    def __init__(self, message: str, stage: str = "") -> None:
        super().__init__(message, stage)
        self.message = message
        self.stage = stage

    def __str__(self) -> str:
        return self.message


__all__ = [
    "CodeGenerationError",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "TritonError",
    "UnsupportedLanguageConstruct",
]
