"""Tiles cut into boxes: what the copies write is where the placement looks for it."""

from itertools import product
from math import prod

import pytest

from triton.layouts.boxes import MAX_PIECES, MAX_SIZE, boxes
from triton.layouts.linear import join_index
from triton.layouts.placement import placement, swizzle_bits

SHAPES = [(16,), (1024,), (64, 64), (128, 32), (16, 8), (512, 32), (2, 256), (4, 128), (1, 64), (1, 1, 512), (32, 1)]
SHAPES += [(2, 512, 16), (4, 8, 32), (2, 4, 2, 64), (2, 2, 2, 2, 16), (8, 1, 4, 64)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_copies_fill_the_placement(shape, width):
    cut = boxes(shape, width)
    if shape[-1] * width < 16 or cut is None:
        assert cut is None
        return
    bases = placement(shape, len(shape) - 1, width)
    mask = cut.swizzle // 16 - 1
    assert mask == (1 << swizzle_bits(shape, len(shape) - 1, width)) - 1
    assert len(cut.copies) * prod(cut.piece) == prod(shape) and max(cut.piece) <= MAX_SIZE
    assert len(cut.copies) <= MAX_PIECES
    for start, place in cut.copies:
        assert place % 128 == 0 or len(cut.copies) == 1
        for number, inside in enumerate(product(*(range(n) for n in cut.piece))):
            linear = place + number * width  # a copy writes its elements one after the other
            swizzled = linear ^ (linear >> 7 & mask) << 4
            flat = join_index([a + b for a, b in zip(start, inside, strict=True)], shape)
            at = 0
            for bit, base in enumerate(bases):
                at ^= base if flat >> bit & 1 else 0
            assert swizzled == at


@pytest.mark.parametrize(
    ("shape", "width"),
    [
        ((48, 64), 2),  # no powers of two
        ((64, 4), 2),  # rows of 8 bytes
        ((2, 2, 2, 2, 2, 16), 4),  # six axes
        ((64, 512, 16), 1),  # 128 copies
    ],
)
def test_what_cannot_be_cut(shape, width):
    assert boxes(shape, width) is None
