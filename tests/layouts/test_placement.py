"""Swizzled tiles in shared memory: a permutation, rows and columns of pieces without bank conflicts."""

import pytest

from triton.layouts.linear import LinearLayout, distribute, join_index
from triton.layouts.placement import access_plan, placement, swizzle_bits, tile_bytes
from triton.layouts.shared import conflicts


def address(bases: tuple[int, ...], flat: int) -> int:
    at = 0
    for bit, base in enumerate(bases):
        at ^= base if flat >> bit & 1 else 0
    return at


@pytest.mark.parametrize("shape", [(8, 8), (64, 64), (16, 128), (128, 16), (1, 256), (32, 32)])
@pytest.mark.parametrize("inner", [0, 1])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_every_element_has_a_place_of_its_own(shape, inner, width):
    bases = placement(shape, inner, width)
    total = shape[0] * shape[1]
    places = sorted(address(bases, i) for i in range(total))
    assert places == list(range(0, total * width, width))
    assert places[-1] < tile_bytes(shape, width)


def test_rows_of_128_bytes_by_hand():
    """PTX ISA: piece p of row r stands where piece p ^ (r mod 8) would stand without swizzle."""
    bases = placement((16, 64), 1, 2)
    for r in range(16):
        for piece in range(8):
            at = address(bases, join_index((r, piece * 8), (16, 64)))
            assert at == r * 128 + (piece ^ r % 8) * 16


def test_wider_tiles_stand_in_panels():
    bases = placement((32, 128), 1, 2)
    assert address(bases, join_index((0, 64), (32, 128))) == 32 * 128


@pytest.mark.parametrize("row, bits", [(128, 3), (64, 2), (32, 1), (16, 0), (8, 0)])
def test_swizzle_follows_the_row(row, bits):
    assert swizzle_bits((16, row), 1, 1) == bits


def test_rows_are_written_and_columns_of_pieces_read_without_conflicts():
    rows = distribute((64, 64), (1, 0), (1, 8), 32, 4)
    plan = access_plan(rows, 1, 2)
    assert plan.vector == 8 and conflicts(rows, plan, 2) == 1
    pieces = LinearLayout((64, 64), (1, 2, 4, 8, 16, 32), (64, 128, 256, 512, 1024), (2048, 0))  # a row a lane
    plan = access_plan(pieces, 1, 2)
    assert plan.vector == 8 and conflicts(pieces, plan, 2) == 1
