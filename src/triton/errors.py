"""The base of every exception that this package raises on purpose."""

from __future__ import annotations


class TritonError(Exception):
    """Base class of the package's own exceptions."""
