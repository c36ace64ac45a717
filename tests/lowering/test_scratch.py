"""Regions of shared scratch memory: a barrier only where a region may still be read."""

from triton.lowering.simt.context import Scratch


def ready(scratch: Scratch) -> None:
    scratch.reading = [(scratch.base, scratch.end)]


def test_ops_in_a_row_alternate_between_regions():
    scratch = Scratch()
    bases = []
    for _ in range(4):
        assert not scratch.place(100, 1024)
        bases.append((scratch.base, scratch.end))
        ready(scratch)
    assert bases == [(0, 112), (112, 224), (0, 112), (112, 224)]


def test_no_room_means_a_barrier():
    scratch = Scratch()
    assert not scratch.place(1000, 1024)
    ready(scratch)
    assert scratch.place(1000, 1024)
    assert (scratch.base, scratch.end) == (0, 1008)


def test_unknown_readers_mean_a_barrier_once():
    scratch = Scratch()
    scratch.unknown = True
    assert scratch.place(16, 1024)
    ready(scratch)
    assert not scratch.place(16, 1024)
