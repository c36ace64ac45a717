"""Measures one operation under several implementations in one run, and keeps what it saw.

Implementations are called in turn, so that a slow spell of the machine hits all of them; the figure is the median.
Every implementation uses the same number of threads. Results must agree with the reference before anything is timed.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

THREADS = int(os.environ.get("TRITON_NUM_THREADS", os.cpu_count() or 1))
for _variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TRITON_NUM_THREADS",
):
    os.environ.setdefault(_variable, str(THREADS))

import numpy as np  # noqa: E402  (after the thread counts are set)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One operation on one size. ``calls`` maps implementation names to calls that return the result as an array."""

    family: str
    size: str
    calls: dict[str, Call]
    tolerance: float = 1e-4
    flops: float = 0.0
    bytes: float = 0.0


@dataclass
class Result:
    family: str
    size: str
    milliseconds: dict[str, float]
    flops: float
    bytes: float
    error: float
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Time of the best other implementation over ours: above 1 we are faster."""
        others = [t for name, t in self.milliseconds.items() if name != "triton"]
        return min(others) / self.milliseconds["triton"] if others else float("nan")


def torch_module():
    """torch with the common number of threads, or None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(THREADS)
    return torch


def numba_module():
    """numba, or None where it is not installed."""
    try:
        import numba
    except ImportError:
        return None
    return numba


def as_array(x: object) -> np.ndarray:
    return x.float().numpy() if hasattr(x, "numpy") else np.asarray(x)


def measure(case: Case, seconds: float = 1.0, clock: Call = time.perf_counter) -> Result:
    """Checks agreement with NumPy (or the first other implementation), then times all implementations in turn.

    ``clock`` may be ``time.process_time``, with one thread, where other processes compete for the machine.
    """
    ours = as_array(case.calls["triton"]()).astype(np.float64)
    reference = next((n for n in ("numpy", "torch", "numba") if n in case.calls), "triton")
    expected = as_array(case.calls[reference]()).astype(np.float64)
    error = float(np.max(np.abs(ours - expected) / np.maximum(1.0, np.abs(expected)))) if ours.size else 0.0
    if not error <= case.tolerance:
        raise SystemExit(
            f"{case.family} {case.size}: differs from {reference} by {error:g} (allowed {case.tolerance:g})"
        )
    for call in case.calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in case.calls}
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times["triton"]) < 5:
        for name, call in case.calls.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    medians = {name: statistics.median(t) * 1e3 for name, t in times.items()}
    return Result(case.family, case.size, medians, case.flops, case.bytes, error)


def environment() -> dict[str, str]:
    """Date, machine and versions that belong to the figures."""
    import triton

    found = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "threads": str(THREADS),
    }
    found |= {"python": platform.python_version(), "processor": processor(), "triton": triton.__version__}
    found["command"] = " ".join(["python", *(Path(a).name if "/" in a else a for a in sys.argv)])
    for name in ("numpy", "torch", "numba"):
        if name in sys.modules:
            found[name] = sys.modules[name].__version__
    return found


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    return f"{names[0] if names else '?'} ({'AVX-512' if 'avx512f' in flags else 'AVX2' if 'avx2' in flags else 'SSE'})"


def print_results(results: list[Result]) -> None:
    names = ["triton", "numpy", "torch", "numba"]
    head = (
        f"{'family':<24}{'size':<28}"
        + "".join(f"{n + ' ms':>12}" for n in names)
        + f"{'ratio':>8}{'GFLOP/s':>10}{'GB/s':>8}"
    )
    print(head + "\n" + "-" * len(head))
    for r in results:
        cells = "".join(f"{r.milliseconds[n]:>12.3f}" if n in r.milliseconds else f"{'-':>12}" for n in names)
        ours = r.milliseconds["triton"] * 1e6
        rates = f"{r.flops / ours:>10.1f}{r.bytes / ours:>8.1f}"
        print(f"{r.family:<24}{r.size:<28}{cells}{r.ratio:>8.2f}{rates}", flush=True)


def save(results: list[Result], path: Path, clock: str = "wall") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(r), "ratio": round(r.ratio, 3)} for r in results]
    path.write_text(json.dumps({"environment": {**environment(), "clock": clock}, "results": rows}, indent=1) + "\n")
