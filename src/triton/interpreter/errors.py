"""What the interpreter raises."""

from __future__ import annotations

from triton.ir.core import Location


class InterpreterError(RuntimeError):
    """A kernel did something that has no defined result. The message starts with the op's source line, if known."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.location: Location | None = None

    def locate(self, location: Location | None) -> None:
        """Says where; the innermost location wins."""
        if self.location is None and location is not None:
            self.location = location
            self.args = (f"{location}: {self.message}",)


class Blocked(Exception):
    """The running program cannot go on before another one has written something: the machine can be resumed."""


class MemoryFault(InterpreterError):
    """An access outside the memory of every argument."""


class AssertionFailed(InterpreterError, AssertionError):
    """A device assertion does not hold; the text is ``FILE:LINE: FUNCTION: assertion failed: MESSAGE``."""

    def locate(self, location: Location | None) -> None:
        if self.location is None and location is not None:
            self.location = location
            function = f" {location.function}:" if location.function else ""
            self.args = (f"{location.file}:{location.line}:{function} {self.message}",)


class Unsupported(InterpreterError):
    """An op the interpreter has no meaning for."""
