"""The base of every exception that this package raises on purpose."""

from __future__ import annotations


class TritonError(Exception):
    """Base class of the package's own exceptions."""


class OptionError(TritonError, ValueError, AssertionError):
    """A compile option has a value that the target cannot use. Also an AssertionError, as callers of Triton expect."""
