"""The loop of a thread that waits for a value in memory."""

from __future__ import annotations

from collections.abc import Callable

from ..writer import Cell, FunctionWriter


def poll_loop(
    w: FunctionWriter,
    expected: Cell,
    timeout: Cell | None,
    look: Callable[[], str],
    clock: Callable[[], str],
    rest: Callable[[], None],
) -> str:
    """An i1: ``look()`` gave ``expected`` before ``timeout`` ns of ``clock()`` (i64) were over. ``rest()`` is run
    between two looks."""
    head, again, done = w.new_label("poll"), w.new_label("poll.again"), w.new_label("poll.end")
    start = clock() if timeout is not None else ""
    w.br(head)
    w.label(head)
    seen = w.emit(f"icmp eq {expected.type} {look()}, {expected.text}")
    found = w.block
    w.cond_br(seen, done, again)
    w.label(again)
    ends = [f"[ true, %{found} ]"]
    if timeout is not None:
        passed = w.emit(f"sub i64 {clock()}, {start}")
        late = w.emit(f"icmp sge i64 {passed}, {timeout.text}")
        ends.append(f"[ false, %{w.block} ]")
        sleep = w.new_label("poll.rest")
        w.cond_br(late, done, sleep)
        w.label(sleep)
    rest()
    w.br(head)
    w.label(done)
    return w.emit("phi i1 " + ", ".join(ends))
