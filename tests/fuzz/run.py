"""Random kernels in a loop: ``python tests/fuzz/run.py --count 1000 --seed 0``.

Each kernel is run by the interpreter before and after every pass and by the CPU back end; the first ways to disagree
are printed, made small, with the seed that brings them back. Exit status 1 when there was one.
"""

from __future__ import annotations

import argparse
import sys
import time

from backends import cpu_executor, cpu_passes, unoptimised_executor
from check import Mismatch, check
from generator import Kernel, generate
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--failures", type=int, default=3, help="stop after this many")
    parser.add_argument("--no-cpu", action="store_true", help="passes only")
    options = parser.parse_args()
    passes = cpu_passes
    executors = {} if options.no_cpu else {"cpu": cpu_executor, "cpu without passes": unoptimised_executor}
    found, start = 0, time.perf_counter()
    for seed in range(options.seed, options.seed + options.count):
        kernel = generate(seed, options.steps)
        error = failure(kernel, passes, executors)
        if error is not None:
            print(report(kernel, error, passes, executors), flush=True)
            found += 1
            if found >= options.failures:
                break
    done = seed + 1 - options.seed
    print(f"{done} kernels in {time.perf_counter() - start:.1f} s, {found} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
