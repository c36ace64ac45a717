"""Functions beyond the portable language: mathematical libraries and target-specific ones."""

from __future__ import annotations

from . import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]
