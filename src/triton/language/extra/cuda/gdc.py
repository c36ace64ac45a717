"""Programmatic dependent launch of NVIDIA GPUs."""

from __future__ import annotations

from typing import Any

from triton.frontend.values import builtin
from triton.language import core


def _instruction(text: str, name: str, s: Any) -> None:
    if s.capabilities.backend != "cuda":
        raise NotImplementedError(f"{name}: needs an NVIDIA GPU; the target is {s.capabilities.backend}")
    core.inline_asm_elementwise(text, "=r", [], core.int32, is_pure=False, pack=1, _semantic=s)


@builtin
def gdc_wait(_semantic: Any = None) -> None:
    """Waits until the kernels before this one have finished and their memory is visible."""
    _instruction("griddepcontrol.wait; // dummy $0", "gdc_wait", _semantic)


@builtin
def gdc_launch_dependents(_semantic: Any = None) -> None:
    """Lets the kernels after this one start."""
    _instruction("griddepcontrol.launch_dependents; // dummy $0", "gdc_launch_dependents", _semantic)
