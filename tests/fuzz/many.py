"""Many seeds over several processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

SLICE = 10
"""Seeds that a process takes at a time."""


def usable_cpus() -> int:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, 16)


def failures(work: Callable[[int], str | None], seeds: range, jobs: int, most: int) -> Iterator[str]:
    """The texts that ``work`` gives for seeds, at most ``most`` of them; None is a success. Work must be a module's
    function when there are several jobs."""
    for found, text in enumerate(_texts(work, seeds, jobs), start=1):
        yield text
        if found >= most:
            return


def _texts(work: Callable[[int], str | None], seeds: range, jobs: int) -> Iterator[str]:
    if jobs <= 1:
        yield from filter(None, map(work, seeds))
        return
    slices = [seeds[i : i + SLICE] for i in range(0, len(seeds), SLICE)]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as executor:
        running = [executor.submit(_slice, work, part) for part in slices]
        try:
            for done in as_completed(running):
                yield from done.result()
        finally:
            for future in running:
                future.cancel()


def _slice(work: Callable[[int], str | None], seeds: range) -> list[str]:
    return [text for text in map(work, seeds) if text is not None]
