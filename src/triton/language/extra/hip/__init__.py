"""Functions for AMD GPUs."""

from __future__ import annotations

import importlib
from typing import Any

from .utils import memrealtime, num_threads, num_warps, smid

__all__ = ["libdevice", "memrealtime", "num_threads", "num_warps", "smid"]


def __getattr__(name: str) -> Any:
    # Two hundred functions, imported when first used.
    if name == "libdevice":
        return importlib.import_module(f"{__name__}.libdevice")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
