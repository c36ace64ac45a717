"""Registers of AMD GPUs."""

from __future__ import annotations

from typing import Any

from triton.frontend.values import builtin, constexpr
from triton.language import core as core


def _only(name: str, s: Any) -> None:
    raise NotImplementedError(f"{name}: not implemented yet; the target is {s.capabilities.backend}")


@builtin
def memrealtime(_semantic: Any = None) -> Any:
    """The GPU's constant-rate clock, as int64."""
    _only("memrealtime", _semantic)


@builtin
def smid(_semantic: Any = None) -> Any:
    """The number of the compute unit that runs the program."""
    _only("smid", _semantic)


@builtin
def num_threads(_semantic: Any = None) -> Any:
    """Threads of a program."""
    return constexpr(_semantic.options.num_warps * _semantic.capabilities.lanes_per_warp)


@builtin
def num_warps(_semantic: Any = None) -> Any:
    """Warps of a program."""
    return constexpr(_semantic.options.num_warps)
