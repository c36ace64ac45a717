"""Functions for NVIDIA GPUs."""

from __future__ import annotations

import importlib
from typing import Any

from .gdc import gdc_launch_dependents, gdc_wait
from .utils import convert_custom_float8_sm70, convert_custom_float8_sm80, globaltimer, num_threads, num_warps, smid

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]


def __getattr__(name: str) -> Any:
    # Two hundred functions, imported when first used.
    if name == "libdevice":
        return importlib.import_module(f"{__name__}.libdevice")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
