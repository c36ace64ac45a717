"""Exceptions of the runtime. All pickle, because compile workers send them back to their parent process."""

from __future__ import annotations

from typing import Any

from ..errors import TritonError

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


class OutOfResources(TritonError):
    """A kernel needs more of something (``name``) than the device has (``limit``)."""

    def __init__(self, required: int, limit: int, name: str) -> None:
        super().__init__(required, limit, name)
        self.required = required
        self.limit = limit
        self.name = name

    def __str__(self) -> str:
        return (
            f"out of resource: {self.name}: required {self.required}, the limit is {self.limit}; "
            "smaller tiles or fewer num_stages may help"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.required, self.limit, self.name)
