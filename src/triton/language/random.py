"""Counter-based random numbers: Philox-4x32-10 and 4x64-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
easy as 1, 2, 3", SC 2011)."""

# Jitted functions are typed by the compiler.
# mypy: ignore-errors

from __future__ import annotations

from triton.runtime.jit import jit

from . import core as tl
from . import math

N_ROUNDS_DEFAULT = tl.constexpr(10)
_KEY_A32, _KEY_B32 = tl.constexpr(0x9E3779B9), tl.constexpr(0xBB67AE85)
_ROUND_A32, _ROUND_B32 = tl.constexpr(0xD2511F53), tl.constexpr(0xCD9E8D57)
_KEY_A64, _KEY_B64 = tl.constexpr(0x9E3779B97F4A7C15), tl.constexpr(0xBB67AE8584CAA73B)
_ROUND_A64, _ROUND_B64 = tl.constexpr(0xD2E7470EE14C6C93), tl.constexpr(0xCA5A826395121157)


@jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """``n_rounds`` rounds of Philox on counter (c0, c1, c2, c3) and key (k0, k1), all uint32 or all uint64."""
    if c0.dtype == tl.uint32:
        key_a: tl.constexpr = _KEY_A32
        key_b: tl.constexpr = _KEY_B32
        round_a: tl.constexpr = _ROUND_A32
        round_b: tl.constexpr = _ROUND_B32
    else:
        tl.static_assert(c0.dtype == tl.uint64, "philox_impl: the counter must be uint32 or uint64")
        key_a: tl.constexpr = _KEY_A64
        key_b: tl.constexpr = _KEY_B64
        round_a: tl.constexpr = _ROUND_A64
        round_b: tl.constexpr = _ROUND_B64
    for _ in tl.static_range(n_rounds):
        high_b, low_b = math.umulhi(c2, round_b), c2 * round_b
        high_a, low_a = math.umulhi(c0, round_a), c0 * round_a
        c0 = high_b ^ c1 ^ k0
        c1 = low_b
        c2 = high_a ^ c3 ^ k1
        c3 = low_a
        k0 = k0 + key_a
        k1 = k1 + key_b
    return c0, c1, c2, c3


@jit
def philox(seed, c0, c1, c2, c3, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four random words for the counter (c0, c1, c2, c3) under a 64-bit ``seed``; as wide as the counter, 32 or 64
    bits."""
    seed = tl.to_tensor(seed).to(tl.uint64)
    c0 = tl.to_tensor(c0)
    c1 = tl.to_tensor(c1)
    c2 = tl.to_tensor(c2)
    c3 = tl.to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        word: tl.constexpr = tl.uint32
        k0 = (seed & 0xFFFFFFFF).to(tl.uint32)
        k1 = (seed >> 32).to(tl.uint32)
    else:
        tl.static_assert(c0.dtype.primitive_bitwidth == 64, "philox: the counter must have 32 or 64 bits")
        word: tl.constexpr = tl.uint64
        k0 = seed
        k1 = tl.full([], 0, tl.uint64)
    c0 = c0.to(word, bitcast=True)
    c1 = c1.to(word, bitcast=True)
    c2 = c2.to(word, bitcast=True)
    c3 = c3.to(word, bitcast=True)
    return philox_impl(c0, c1, c2, c3, k0, k1, n_rounds)


@jit
def randint4x(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four blocks of random uint32 for ``seed`` and a block of offsets; the cheapest way to get many."""
    offset = tl.to_tensor(offset)
    if offset.dtype.primitive_bitwidth > 32:
        low = offset.to(tl.uint32)
        high = (offset >> 32).to(tl.uint32)
    else:
        low = offset.to(tl.int32).to(tl.uint32, bitcast=True)
        high = low * 0
    zero = low * 0
    return philox(seed, low, high, zero, zero, n_rounds)


@jit
def randint(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Random uint32, one for each offset."""
    word, _, _, _ = randint4x(seed, offset, n_rounds)
    return word


@jit
def uint_to_uniform_float(x):
    """Random integers of 32 or 64 bits, all bits used, as float32 evenly spread in [0, 1)."""
    if x.dtype == tl.uint32 or x.dtype == tl.int32:
        # 2**-31 times 1 - 2**-25 or so, so that the largest integer stays below 1 after rounding.
        x = x.to(tl.int32, bitcast=True)
        scale: tl.constexpr = 4.6566127342e-10
    else:
        tl.static_assert(x.dtype == tl.uint64 or x.dtype == tl.int64, "uint_to_uniform_float: expected 32 or 64 bits")
        x = x.to(tl.int64, bitcast=True)
        scale: tl.constexpr = 1.0842020432385337e-19
    x = tl.where(x < 0, -x - 1, x)
    return x * scale


@jit
def rand(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Random float32 in [0, 1), one for each offset."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@jit
def rand4x(seed, offsets, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four blocks of random float32 in [0, 1)."""
    i1, i2, i3, i4 = randint4x(seed, offsets, n_rounds)
    return uint_to_uniform_float(i1), uint_to_uniform_float(i2), uint_to_uniform_float(i3), uint_to_uniform_float(i4)


@jit
def pair_uniform_to_normal(u1, u2):
    """Two normal numbers from two uniform ones (Box and Muller)."""
    u1 = tl.maximum(1.0e-7, u1)
    angle = 6.283185307179586 * u2
    radius = math.sqrt(-2.0 * math.log(u1))
    return radius * math.cos(angle), radius * math.sin(angle)


@jit
def randn(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Random float32 of the standard normal distribution, one for each offset."""
    i1, i2, _, _ = randint4x(seed, offset, n_rounds)
    n1, _ = pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))
    return n1


@jit
def randn4x(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four blocks of random float32 of the standard normal distribution."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4
