"""Kernels that several tests launch."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def put(out, value):
    tl.store(out, value)


@triton.jit
def coordinates(out, WIDTH: tl.constexpr):
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(2)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out + place, x + 10 * y + 100 * z + WIDTH)


@triton.jit
def increment(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x + offsets, tl.load(x + offsets, mask=mask) + 1, mask=mask)


@triton.jit
def nothing():
    pass


@triton.jit
def optional(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    if x is not None:
        tl.store(out + offsets, tl.load(x + offsets, mask=mask), mask=mask)
    else:
        tl.store(out + offsets, offsets * 0 - 1, mask=mask)


@triton.jit
def mixed(a, A: tl.constexpr, one, b, B: tl.constexpr, n):
    tl.store(a, A + one)
    tl.store(b, B + n)


@triton.jit
def with_defaults(out, value=7, SCALE: tl.constexpr = 3):
    tl.store(out, value * SCALE)


@triton.jit
def flag(out, on):
    if on:
        tl.store(out, 1)
    else:
        tl.store(out, 2)


@triton.jit
def pairs(out, pair, extra):
    tl.store(out, pair[0])
    tl.store(out + 1, pair[1])
    tl.store(out + 2, extra)


@triton.jit(do_not_specialize=["value"])
def unspecialized(out, value):
    tl.store(out, value)


@triton.jit
def annotated(out, value: tl.float16):
    tl.store(out, value)


@triton.jit
def bad(out):
    tl.store(out, no_such_name)  # noqa: F821
