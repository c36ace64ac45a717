"""Regions of shared scratch memory: a barrier only where a region may still be read."""

from triton.lowering.simt.context import Scratch


def op(scratch: Scratch, bytes: int, blocks: int = 1) -> str:
    """One op of a program (wide if ``blocks`` is more than 1): the barrier before it; then its own, and its reads."""
    barrier = scratch.place(bytes, 1024, blocks)
    if barrier:
        scratch.met(barrier != "block")
    scratch.met(scratch.wide)
    scratch.read()
    return barrier


def test_ops_in_a_row_alternate_between_regions():
    scratch = Scratch()
    bases = []
    for _ in range(4):
        assert op(scratch, 100) == ""
        bases.append((scratch.base, scratch.end))
    assert bases == [(0, 112), (112, 224), (0, 112), (112, 224)]


def test_no_room_means_a_barrier():
    scratch = Scratch()
    assert op(scratch, 1000) == ""
    assert op(scratch, 1000) == "block"
    assert (scratch.base, scratch.end) == (0, 1008)


def test_unknown_readers_mean_a_barrier_once():
    scratch = Scratch()
    scratch.unknown = True
    assert op(scratch, 16) == "block"
    assert op(scratch, 16) == ""


def test_the_first_wide_op_waits_for_the_other_blocks_to_begin():
    scratch = Scratch()
    assert op(scratch, 64, 4) == "cluster" and (scratch.chunk, scratch.end) == (16, 16)
    assert op(scratch, 64, 4) == "" and (scratch.base, scratch.end) == (16, 32)


def test_a_wide_region_lies_in_equal_parts_in_the_blocks_memories():
    scratch = Scratch()
    for bytes, chunk in ((1, 16), (200, 64), (256, 64), (257, 128)):
        op(scratch, bytes, 4)
        assert scratch.chunk == chunk and scratch.end - scratch.base == chunk


def test_what_other_blocks_read_is_kept_until_the_clusters_barrier():
    scratch = Scratch()
    op(scratch, 4096, 8)  # 512 bytes of each block
    assert op(scratch, 512) == "" and scratch.base == 512  # beside it, though a barrier of the block came since
    assert op(scratch, 600) == "cluster"


def test_narrow_reads_of_other_blocks_are_in_the_way_of_wide_writes():
    scratch = Scratch()
    op(scratch, 16, 2)
    scratch.met(True)
    op(scratch, 500)
    op(scratch, 500)  # of the block's own memory all is free again after its barrier, but another block may lag
    assert op(scratch, 64, 2) == "cluster"


def test_after_a_loop_the_barrier_depends_on_what_the_function_has():
    scratch = Scratch()
    scratch.unknown = scratch.unknown_far = True
    assert op(scratch, 16) == "any"
    assert op(scratch, 16) == ""
