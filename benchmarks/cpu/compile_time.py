"""Compile and launch time: cold and warm compile of each example's kernels, import, and an empty launch. Prints and
returns rows.

``--process-time`` counts the CPU time of the process, for machines that are busy with other work. Python's own
compilation of this package to bytecode is done before: installed packages come with theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PROBE = """
import json, sys, time
clock = getattr(time, sys.argv[2])
start = clock()
import triton
import_ms = (clock() - start) * 1e3
sys.path.insert(0, sys.argv[1])
import numpy as np
import triton.language as tl
from triton.compiler import compiler as machine

rows = []
inner = machine.compile
def timed(*args, **kwargs):
    start = clock()
    kernel = inner(*args, **kwargs)
    name = getattr(getattr(args[0], "fn", None), "__name__", "?") if args else kwargs["src"].fn.__name__
    timings = dict(getattr(kernel.metadata, "timings", None) or {})
    stages = {k: v * 1e3 for k, v in timings.items() if isinstance(v, float)}
    rows.append({"kernel": name, "ms": (clock() - start) * 1e3, "stages": stages})
    return kernel
machine.compile = timed
import common
common.compare = lambda *a: None
for name in ("vector_add", "softmax", "matmul", "layer_norm", "dropout", "attention", "convolution"):
    __import__(name).run()
print(json.dumps({"import_ms": import_ms, "rows": rows}))
"""


def probe(cache: str, bytecode: str, clock: str) -> dict:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(
        [sys.executable, "-c", PROBE, str(EXAMPLES), clock],
        capture_output=True,
        text=True,
        env={**env, "TRITON_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode},
    )
    if run.returncode:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def launch_microseconds(repeats: int = 20000) -> float:
    """Median time of one launch of an empty kernel with five tensors and five integers, one program."""
    import numpy as np

    import triton

    @triton.jit
    def empty(a, b, c, d, e, i, j, k, l, m):
        pass

    arrays = [np.zeros(16, np.float32) for _ in range(5)]
    launch = empty[(1,)]
    launch(*arrays, 2, 3, 4, 5, 6)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(repeats // 20):
            launch(*arrays, 2, 3, 4, 5, 6)
        times.append((time.perf_counter() - start) / (repeats // 20))
    return statistics.median(times) * 1e6


def main(save: Path | None = None, clock: str = "perf_counter") -> dict:
    with tempfile.TemporaryDirectory() as folder:
        bytecode, cache = f"{folder}/bytecode", f"{folder}/cache"
        probe(f"{folder}/first", bytecode, clock)
        cold, warm = probe(cache, bytecode, clock), probe(cache, bytecode, clock)
    launch = launch_microseconds()
    print(f"import triton: {cold['import_ms']:.1f} ms;  launch, 10 arguments: {launch:.2f} us")
    print(f"{'kernel':<28}{'cold ms':>10}{'warm ms':>10}  stages of the cold compile (ms)")
    for first, second in zip(cold["rows"], warm["rows"], strict=False):
        stages = "  ".join(f"{k} {v:.1f}" for k, v in first["stages"].items())
        print(f"{first['kernel']:<28}{first['ms']:>10.1f}{second['ms']:>10.1f}  {stages}")
    found = {"launch_us": launch, "cold": cold, "warm": warm}
    if save is not None:
        save.write_text(json.dumps({"environment": {**environment(), "clock": clock}, **found}, indent=1) + "\n")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", metavar="NAME", help="keep the figures in benchmarks/results/NAME.json")
    parser.add_argument("--process-time", action="store_true", help="CPU time of the process instead of wall time")
    options = parser.parse_args()
    results = EXAMPLES.parent / "benchmarks" / "results"
    main(
        results / f"{options.save}.json" if options.save else None,
        "process_time" if options.process_time else "perf_counter",
    )
