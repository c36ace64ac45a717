"""Exceptions of the runtime. All pickle, because compile workers send them back to their parent process."""

from __future__ import annotations

from ..errors import OutOfResources, TritonError

__all__ = ["AutotunerError", "InterpreterError", "LaunchError", "OutOfResources", "PTXASError", "TritonError"]


class _MessageError(TritonError):
    def __init__(self, error_message: str | None = None) -> None:
        super().__init__(error_message)
        self.error_message = error_message

    def __str__(self) -> str:
        return self.error_message or ""


class InterpreterError(_MessageError):
    """A kernel failed while it ran in the interpreter."""


class PTXASError(_MessageError):
    """The PTX assembler refused its input."""


class AutotunerError(_MessageError):
    """Tuning could not choose a configuration."""


class LaunchError(_MessageError, ValueError):
    """A launch was refused before any program ran: a bad grid, a bad argument or no driver."""
