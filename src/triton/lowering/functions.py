"""The functions that have a fast form for whole vectors, each as a helper function to be inlined."""

from __future__ import annotations

from collections.abc import Callable

from . import reduction
from . import vectormath as v
from .calls import outlined
from .values import Num

FUNCTIONS: dict[str, Callable[[Num], Num]] = {
    name: outlined(name, compute)
    for name, compute in (
        ("exp", v.exp),
        ("exp2", v.exp2),
        ("expm1", v.expm1),
        ("log", v.log),
        ("log2", v.log2),
        ("log1p", v.log1p),
        ("tanh", v.tanh),
        ("erf", v.erf),
        ("sin", reduction.sin),
        ("cos", reduction.cos),
    )
}
fmod: Callable[[Num, Num], Num] = outlined("fmod", reduction.fmod, 2)
