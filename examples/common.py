"""What the examples share: sample data, checking, timing, and the table that ``run_all.py`` prints."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

try:
    import torch
except ImportError:
    torch = None


@dataclass(frozen=True)
class Row:
    """One line of the table: times in milliseconds, ``error`` the largest absolute difference from NumPy."""

    name: str
    size: str
    triton: float
    numpy: float
    torch: float | None
    error: float


def sample_image() -> np.ndarray:
    """A photograph, [height, width, 3] float32 in [0, 1] (scikit-image's astronaut)."""
    from skimage import data

    return data.astronaut().astype(np.float32) / 255


def sample_volume() -> np.ndarray:
    """A magnetic resonance scan, [depth, height, width] float32 in [0, 1] (nibabel's example4d)."""
    import nibabel

    path = Path(nibabel.__file__).parent / "tests" / "data" / "example4d.nii.gz"
    scan = np.asarray(nibabel.load(path).dataobj)[..., 0].astype(np.float32)
    return np.ascontiguousarray((scan / scan.max()).transpose(2, 1, 0))


def check(name: str, got: np.ndarray, expected: np.ndarray, tolerance: float) -> float:
    """The largest absolute difference; stops the example when it exceeds ``tolerance``."""
    error = float(np.max(np.abs(got.astype(np.float64) - expected.astype(np.float64)))) if got.size else 0.0
    if got.shape != expected.shape or not error <= tolerance:
        raise SystemExit(f"{name}: wrong result, largest error {error:g} (allowed {tolerance:g})")
    return error


def milliseconds(call: Callable[[], object], seconds: float = 0.3) -> float:
    """Median time of ``call``, after one call that is not counted."""
    call()
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < stop:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def compare(
    name: str,
    size: str,
    error: float,
    ours: Callable[[], object],
    with_numpy: Callable[[], object],
    with_torch: Callable[[], object] | None,
) -> Row:
    """Times the three on the same data. ``with_torch`` is called only where torch is installed."""
    torch_time = milliseconds(with_torch) if torch is not None and with_torch is not None else None
    return Row(name, size, milliseconds(ours), milliseconds(with_numpy), torch_time, error)


def print_table(rows: list[Row]) -> None:
    head = (
        f"{'example':<26}{'size':<30}{'triton ms':>11}{'NumPy ms':>11}{'torch ms':>11}{'vs NumPy':>10}{'max error':>11}"
    )
    print(head)
    print("-" * len(head))
    for r in rows:
        torch_text = f"{r.torch:.3f}" if r.torch is not None else "-"
        ratio = f"{r.numpy / r.triton:.2f}x"
        print(f"{r.name:<26}{r.size:<30}{r.triton:>11.3f}{r.numpy:>11.3f}{torch_text:>11}{ratio:>10}{r.error:>11.1e}")
