"""The base of every exception that this package raises on purpose."""

from __future__ import annotations

from typing import Any


class TritonError(Exception):
    """Base class of the package's own exceptions."""


class OptionError(TritonError, ValueError, AssertionError):
    """A compile option has a value that the target cannot use. Also an AssertionError, as callers of Triton expect."""


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
