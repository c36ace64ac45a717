"""Questions about the target of the kernel that is being compiled."""

from __future__ import annotations

import inspect
from typing import Any

from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, constexpr, unwrap
from triton.runtime.driver import driver
from triton.runtime.jit import constexpr_function


class _Target:
    """Back end and architecture of the kernel being compiled."""

    def __init__(self, backend: str, arch: Any, warp_size: int) -> None:
        self.backend, self.arch, self.warp_size = backend, arch, warp_size


@builtin
def current_target(_semantic: Any = None) -> Any:
    """The target as an object with ``backend``, ``arch`` and ``warp_size``."""
    return constexpr(_target(_semantic))


def _target(s: TritonSemantic) -> _Target:
    return _Target(s.capabilities.backend, s.capabilities.arch, s.capabilities.lanes_per_warp)


def _question(name: str, doc: str, test: Any) -> Any:
    """A function of no or few compile-time arguments about the target; outside of kernels it asks the active driver."""

    def ask(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        target = driver.active.get_current_target() if _semantic is None else _target(_semantic)
        answer = bool(test(target, *map(unwrap, args), **{k: unwrap(v) for k, v in kwargs.items()}))
        return answer if _semantic is None else constexpr(answer)

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = doc
    ask.__triton_builtin__ = True  # type: ignore[attr-defined]
    _, *parameters = inspect.signature(test).parameters.values()
    ask.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return ask


def _compute_capability(target: Any) -> int:
    text = str(target.arch)
    return int("".join(c for c in text if c.isdigit()) or 0)


def _capability_at_least(target: Any, major: int, minor: int = 0) -> bool:
    return bool(target.backend == "cuda" and _compute_capability(target) >= 10 * major + minor)


def _architecture(*names: str) -> Any:
    return lambda target: target.backend == "hip" and str(target.arch).split(":")[0] in names


is_cuda = _question("is_cuda", "Whether the target is an NVIDIA GPU.", lambda t: t.backend == "cuda")
is_hip = _question("is_hip", "Whether the target is an AMD GPU.", lambda t: t.backend == "hip")
cuda_capability_geq = _question(
    "cuda_capability_geq",
    "Whether the target is an NVIDIA GPU of compute capability major.minor or later.",
    _capability_at_least,
)
is_hip_cdna3 = _question(
    "is_hip_cdna3", "Whether the target is an AMD CDNA 3 GPU.", _architecture("gfx940", "gfx941", "gfx942")
)
is_hip_cdna4 = _question("is_hip_cdna4", "Whether the target is an AMD CDNA 4 GPU.", _architecture("gfx950"))
is_hip_gfx1250 = _question("is_hip_gfx1250", "Whether the target is an AMD gfx1250 GPU.", _architecture("gfx1250"))

__all__ = [
    "constexpr_function",
    "cuda_capability_geq",
    "current_target",
    "driver",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]
