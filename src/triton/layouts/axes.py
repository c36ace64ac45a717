"""The coordinate bits of a product's axes (b, m, n, k), dealt to registers, lanes and warps."""

from __future__ import annotations

from collections.abc import Sequence

from .linear import bit_positions


def log2(n: int) -> int:
    """Rounded up, n >= 1."""
    return (n - 1).bit_length()


class Axis:
    """The coordinate bits of one axis, dealt out from the low end; bits the axis does not have are replicas (0)."""

    def __init__(self, bits: range) -> None:
        self.bits = list(bits)

    def take(self, count: int) -> list[int]:
        taken = [1 << b for b in self.bits[:count]]
        self.bits = self.bits[count:]
        return taken + [0] * (count - len(taken))

    def rest(self) -> list[int]:
        return self.take(len(self.bits))


def axes_of(shape: Sequence[int], names: str) -> dict[str, Axis]:
    """The axes of a tile by name; those that it lacks have no bits. A batch axis may be missing in front."""
    found = {name: Axis(range(0)) for name in "bmnk"}
    for name, bits in zip(names[-len(shape) :], bit_positions(shape), strict=True):
        found[name] = Axis(bits)
    return found


def real(vectors: Sequence[int]) -> tuple[int, ...]:
    """Registers without replicas."""
    return tuple(v for v in vectors if v)
