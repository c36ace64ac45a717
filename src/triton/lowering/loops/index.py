"""Positions in tiles: one ``Dim`` for each axis, scalar or with one value for each lane of a vector."""

from __future__ import annotations

from typing import NamedTuple


class Dim(NamedTuple):
    """The position along one axis.

    Lane l stands at ``text + step * l`` (i64); a ``step`` of 0 means a scalar. ``vec``, when set, holds arbitrary
    positions instead
    (a vector of i64). ``level`` is the depth of the loop at which the operands exist, ``const`` the value of ``text``
    when known, and ``unit`` divides it.
    """

    text: str
    level: int = 0
    const: int | None = None
    step: int = 0
    unit: int = 1
    vec: str | None = None

    @property
    def is_scalar(self) -> bool:
        return self.step == 0 and self.vec is None

    def first(self) -> Dim:
        """The position of lane 0."""
        return Dim(self.text, self.level, self.const, 0, self.unit)


Index = tuple[Dim, ...]

ZERO = Dim("0", 0, 0)


def fixed(value: int, step: int = 0) -> Dim:
    """A known position."""
    return Dim(str(value), 0, value, step)


def is_scalar(index: Index) -> bool:
    return all(d.step == 0 and d.vec is None for d in index)


def aligned(dim: Dim, lanes: int) -> bool:
    """Whether lane 0 stands at a multiple of ``lanes``."""
    return dim.const % lanes == 0 if dim.const is not None else dim.unit % lanes == 0


def iota(lanes: int, step: int = 1, base: str = "i64") -> str:
    """The constant vector 0, step, 2 step, ..."""
    return "<" + ", ".join(f"{base} {step * i}" for i in range(lanes)) + ">"


def lane_mask(lanes: int, active: int) -> str:
    """The constant i1 vector that holds in the first ``active`` lanes."""
    return "<" + ", ".join(f"i1 {'true' if i < active else 'false'}" for i in range(lanes)) + ">"


def shuffle(indices: list[int]) -> str:
    """A shuffle mask."""
    return f"<{len(indices)} x i32> <" + ", ".join(f"i32 {i}" for i in indices) + ">"


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    strides, weight = [], 1
    for n in reversed(shape):
        strides.append(weight)
        weight *= n
    return tuple(reversed(strides))
