"""CPU benchmarks: our kernels against NumPy, torch and numba on the same threads, in one run.

    python benchmarks/cpu/run.py [family ...] [--seconds S] [--save NAME] [--plot FOLDER]

``--save NAME`` writes benchmarks/results/NAME.json with date, machine and versions; ``--plot`` draws one picture a
family.
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

import harness

FAMILIES = ["elementwise", "normalisation", "products", "convolutions", "orders"]
RESULTS = Path(__file__).resolve().parents[1] / "results"


def plot(results: list[harness.Result], folder: Path) -> None:
    """Bars of each implementation's speed relative to ours, one picture a family."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for family in dict.fromkeys(r.family for r in results):
        rows = [r for r in results if r.family == family]
        names = list(dict.fromkeys(n for r in rows for n in r.milliseconds))
        figure, axes = pyplot.subplots(figsize=(7, 3.5))
        for i, name in enumerate(names):
            heights = [r.milliseconds["triton"] / r.milliseconds[name] if name in r.milliseconds else 0 for r in rows]
            axes.bar([k + i / (len(names) + 1) for k in range(len(rows))], heights, 1 / (len(names) + 1), label=name)
        axes.set_xticks([k + 0.3 for k in range(len(rows))], [r.size for r in rows], fontsize=7)
        axes.set_ylabel("speed relative to ours")
        axes.set_title(f"{family}, {harness.THREADS} threads")
        axes.legend()
        figure.tight_layout()
        figure.savefig(folder / f"{family.replace(' ', '-')}.png", dpi=120)
        pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=[], choices=[*FAMILIES, []], help="all of them by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="time spent on each case")
    parser.add_argument(
        "--process-time", action="store_true", help="the process's CPU time; needs TRITON_NUM_THREADS=1"
    )
    parser.add_argument("--save", metavar="NAME")
    parser.add_argument("--plot", metavar="FOLDER", type=Path)
    options = parser.parse_args()
    if options.process_time and harness.THREADS != 1:
        parser.error("--process-time adds up the time of all threads: set TRITON_NUM_THREADS=1")
    clock = time.process_time if options.process_time else time.perf_counter
    results = []
    for family in options.families or FAMILIES:
        for case in importlib.import_module(family).cases():
            results.append(harness.measure(case, options.seconds, clock))
    harness.print_results(results)
    if options.save:
        harness.save(results, RESULTS / f"{options.save}.json", "process" if options.process_time else "wall")
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
