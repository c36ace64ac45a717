"""GPU benchmark: the same kernels under this package and under another installed ``triton``, and torch beside them.

    python benchmarks/gpu/run.py [--other PATH] [--save NAME] [name ...]

``PATH`` is the folder that holds the other package's ``triton``. Run time: median on the GPU with the L2 flushed; first
call: compile with an empty cache, load and launch; launch: host time of one launch with ten arguments.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def measure(path: Path, names: list[str]) -> dict:
    """The worker's findings under the ``triton`` in ``path``, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPATH": str(path), "TRITON_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, str(HERE / "worker.py"), *names], env=env, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only rows whose name contains one of these")
    parser.add_argument("--other", type=Path, help="folder of another triton package")
    parser.add_argument("--save", metavar="NAME", help="keep the figures in benchmarks/results/NAME.json")
    options = parser.parse_args()
    ours = measure(HERE.parents[1] / "src", options.names)
    other = measure(options.other, options.names) if options.other else {"rows": []}
    there = {row["name"]: row for row in other["rows"]}
    head = f"{'kernel':<28}{'ours ms':>10}{'rate':>8}{'other ms':>10}{'torch ms':>10}"
    print(head + f"{'other/ours':>11}{'first ms':>10}{'other first':>12}")
    for row in ours["rows"]:
        old = there.get(row["name"], {})
        if "failed" in row:
            print(f"{row['name']:<28} FAILED {row['failed']}")
            continue
        ratio = f"{old['ms'] / row['ms']:.2f}" if "ms" in old else "-"
        cells = [f"{row['ms']:.3f}", f"{row['rate']:.1f}"]
        cells += [f"{r[k]:.3f}" if k in r else "-" for r, k in ((old, "ms"), (row, "torch ms"))]
        firsts = [f"{r['first call ms']:.0f}" if "first call ms" in r else "-" for r in (row, old)]
        print(
            f"{row['name']:<28}{cells[0]:>10}{cells[1]:>8}{cells[2]:>10}{cells[3]:>10}{ratio:>11}{firsts[0]:>10}{firsts[1]:>12}"
        )
    for found in (ours, other):
        if "launch us" in found:
            print(f"launch, 10 arguments, triton {found['triton']}: {found['launch us']:.2f} us")
    if options.save:
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        command = "python benchmarks/gpu/run.py " + " ".join(options.names)
        text = json.dumps({"date": date, "command": command, "ours": ours, "other": other}, indent=1)
        (HERE.parent / "results" / f"{options.save}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
