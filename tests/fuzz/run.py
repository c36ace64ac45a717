"""Random kernels in a loop: ``python tests/fuzz/run.py --count 1000 --seed 0``.

Each kernel is run by the interpreter before and after every pass and by the CPU back end; the first ways to disagree
are printed, made small, with the seed that brings them back. Exit status 1 when there was one.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from functools import partial

from backends import cpu_executor, cpu_passes, unoptimised_executor
from check import Mismatch, check
from generator import Kernel, generate
from many import failures, usable_cpus
from shrink import shrink

from triton.ir import print_module


def failure(kernel: Kernel, passes: list, executors: dict) -> Mismatch | None:
    try:
        check(kernel, passes, executors)
    except Mismatch as error:
        return error
    return None


def report(kernel: Kernel, error: Mismatch, passes: list, executors: dict) -> str:
    """The failure with its kernel made small."""

    def fails(trial: Kernel) -> bool:
        try:
            found = failure(trial, passes, executors)
        except Exception:
            return False  # the trial broke a rule of the generator, so it shows nothing
        return found is not None and found.stage == error.stage

    small = shrink(kernel, fails)
    last = failure(small, passes, executors) or error
    scalars = ", ".join(f"{n} = {v}" for n, _, v in small.scalars)
    return f"seed {kernel.seed}: {last}\n{print_module(small.module)}scalars: {scalars}\n"


def everything(seed: int, steps: int = 14) -> str | None:
    """The report of a seed's kernel through all passes and both ways to compile, if anything is wrong with it."""
    return _checked(seed, steps, cpu_passes, {"cpu": cpu_executor, "cpu without passes": unoptimised_executor})


def passes_only(seed: int, steps: int = 14) -> str | None:
    return _checked(seed, steps, cpu_passes, {})


def _checked(seed: int, steps: int, passes: list, executors: dict) -> str | None:
    kernel = generate(seed, steps)
    try:
        error = failure(kernel, passes, executors)
    except Exception:  # of the interpreter or the generator: a finding too, and the other seeds go on
        return f"seed {seed}: {traceback.format_exc()}\n{print_module(kernel.module)}"
    return None if error is None else report(kernel, error, passes, executors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--failures", type=int, default=3, help="stop after this many")
    parser.add_argument("--no-cpu", action="store_true", help="passes only")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0: one for each processor")
    options = parser.parse_args()
    work = partial(passes_only if options.no_cpu else everything, steps=options.steps)
    found, start = 0, time.perf_counter()
    seeds = range(options.seed, options.seed + options.count)
    for text in failures(work, seeds, options.jobs or usable_cpus(), options.failures):
        print(text, flush=True)
        found += 1
    print(f"{options.count} kernels in {time.perf_counter() - start:.1f} s, {found} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
