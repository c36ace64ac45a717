"""Functions beyond the portable language: mathematical libraries and target-specific ones."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["cuda", "hip", "libdevice"]


def __getattr__(name: str) -> Any:
    # Imported when first used: most kernels need none of them.
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
