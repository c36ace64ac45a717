"""Small integer functions for the host and, as compile-time functions, for kernels."""

from __future__ import annotations

from .runtime.jit import constexpr_function


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """``x / y`` rounded up, for integers with y > 0."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n``, for 1 <= n <= 2**63."""
    n -= 1
    n |= n >> 1
    n |= n >> 2
    n |= n >> 4
    n |= n >> 8
    n |= n >> 16
    n |= n >> 32
    n += 1
    return n
