"""Tools around the compiler."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("build_extern", "compile", "disasm", "link", "mxfp", "ragged_tma", "tensor_descriptor")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "LinearLayout":
        return importlib.import_module("triton.tools.linear_layout").LinearLayout
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
