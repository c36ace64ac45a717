"""Timing and comparing kernels, and small benchmark reports."""

from __future__ import annotations

import builtins
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from . import runtime

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "cuda_memcheck",
    "do_bench",
    "do_bench_cudagraph",
    "do_bench_cudagraph_proton",
    "do_bench_proton",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "set_gpu_clock",
]

_MODES = ("min", "max", "mean", "median", "all")


def _quantile(times: Sequence[float], q: float) -> float:
    """The q-quantile of sorted times, interpolated between neighbours."""
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"quantiles lie between 0 and 1, got {q}")
    position = q * (len(times) - 1)
    low = math.floor(position)
    high = builtins.min(low + 1, len(times) - 1)
    return times[low] + (times[high] - times[low]) * (position - low)


def _summarize(times: list[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    ordered = sorted(times)
    if quantiles is not None:
        values = [_quantile(ordered, q) for q in quantiles]
        return values[0] if len(values) == 1 else values
    if return_mode == "all":
        return times
    chosen: dict[str, Callable[[list[float]], float]] = {
        "min": builtins.min,
        "max": builtins.max,
        "mean": statistics.fmean,
        "median": statistics.median,
    }
    return chosen[return_mode](times)


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time a call in milliseconds, on the active driver.

    :param warmup: about how many milliseconds of calls to make before measuring.
    :param rep: about how many milliseconds of calls to measure.
    :param grad_to_none: tensors whose ``grad`` is dropped before each call.
    :param quantiles: return these quantiles (one number if there is one) instead of ``return_mode``.
    :param return_mode: ``min``, ``max``, ``mean``, ``median``, or ``all`` for the list of times.
    """
    if return_mode not in _MODES:
        raise ValueError(f"return_mode must be one of {', '.join(_MODES)}, got {return_mode!r}")
    active = runtime.driver.active
    timer = getattr(active, "time_calls", None)
    prepare = None
    if grad_to_none is not None:
        tensors = list(grad_to_none)

        def prepare() -> None:
            for tensor in tensors:
                tensor.grad = None

    if timer is not None:  # a device with a clock of its own
        return _summarize(timer(fn, warmup, rep, prepare), quantiles, return_mode)
    return _summarize(_host_times(fn, warmup, rep, prepare, active.synchronize), quantiles, return_mode)


def _host_times(
    fn: Callable[[], Any],
    warmup: float,
    rep: float,
    prepare: Callable[[], None] | None,
    synchronize: Callable[[], None],
) -> list[float]:
    """Wall-clock times of single calls. The first call, which may compile, is not counted."""
    clock = time.perf_counter
    fn()
    synchronize()
    start = clock()
    count = 0
    while count < 5 and (clock() - start) * 1e3 < builtins.max(rep, 1.0):
        fn()
        count += 1
    synchronize()
    estimate = builtins.max((clock() - start) * 1e3 / builtins.max(count, 1), 1e-6)
    for _ in range(builtins.max(1, builtins.min(int(warmup / estimate), 1_000_000))):
        fn()
    synchronize()
    times = []
    for _ in range(builtins.max(1, builtins.min(int(rep / estimate), 1_000_000))):
        if prepare is not None:
            prepare()
        begin = clock()
        fn()
        synchronize()
        times.append((clock() - begin) * 1e3)
    return times


def _no_cuda(name: str) -> NoReturn:
    raise RuntimeError(f"triton.testing.{name} needs a CUDA device and the CUDA back end, which is not here yet")


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time a call through a CUDA graph."""
    _no_cuda("do_bench_cudagraph")


def do_bench_proton(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time a call with the Proton profiler."""
    _no_cuda("do_bench_proton")


def do_bench_cudagraph_proton(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time a CUDA graph with the Proton profiler."""
    _no_cuda("do_bench_cudagraph_proton")


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """Values that ``nvidia-smi --query-gpu`` reports for device 0."""
    import subprocess  # a tool for one kind of machine

    query = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.check_output(query, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeError(f"nvsmi: nvidia-smi could not be asked: {error}") from error
    return [int(value) for value in text.strip().split(",")]


def get_dram_gbps(device: int | None = None) -> float:
    """Memory bandwidth of a device in GB/s, from its clock and bus width."""
    properties = _properties(device, "get_dram_gbps", ("mem_clock_rate", "mem_bus_width"))
    return float(properties["mem_clock_rate"]) * float(properties["mem_bus_width"]) * 2 / 1e6 / 8


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """The most TFLOP/s of a device's matrix units."""
    _no_cuda("get_max_tensorcore_tflops")


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """The most TFLOP/s of a device outside its matrix units."""
    _no_cuda("get_max_simd_tflops")


def _properties(device: int | None, name: str, needed: Sequence[str]) -> dict[str, Any]:
    active = runtime.driver.active
    chosen = active.get_current_device() if device is None else device
    properties: dict[str, Any] = active.get_device_properties(chosen)
    if any(key not in properties for key in needed):
        _no_cuda(name)
    return properties


def cuda_memcheck(**target_kwargs: Any) -> Callable[[Any], Any]:
    """Decorator for tests: run under compute-sanitizer when the arguments match."""
    _no_cuda("cuda_memcheck")


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Any:
    """Hold a GPU's clocks while a block runs."""
    _no_cuda("set_gpu_clock")
    yield


def _as_numpy(x: Any) -> Any:
    import numpy as np  # only comparisons need it

    if hasattr(x, "detach"):
        x = x.detach().cpu()
        if str(x.dtype) in ("torch.bfloat16",) or "float8" in str(x.dtype):
            x = x.float()
        return x.numpy()
    return np.asarray(x)


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raise AssertionError unless ``|x - y| <= atol + rtol * |y|`` everywhere. NaN equals NaN.

    Tensors and arrays of any library; atol defaults to 1e-2 and rtol to 0. Of arrays with one dimension more than the
    other's scalar, plain numbers are broadcast.
    """
    import numpy as np  # only comparisons need it

    a, b = _as_numpy(x), _as_numpy(y)
    if a.size > 1 and b.size > 1 and a.shape != b.shape:
        raise AssertionError(f"{err_msg} shapes differ: {a.shape} and {b.shape}".strip())
    atol = 1e-2 if atol is None else atol(a.dtype) if callable(atol) else atol
    rtol = 0.0 if rtol is None else rtol(a.dtype) if callable(rtol) else rtol
    if not np.issubdtype(a.dtype, np.inexact) and not np.issubdtype(b.dtype, np.inexact) and atol == 0 and rtol == 0:
        np.testing.assert_array_equal(a, b, err_msg=err_msg)
        return
    np.testing.assert_allclose(a, b, atol=atol, rtol=rtol, equal_nan=True, err_msg=err_msg)


class Benchmark:
    """What ``perf_report`` measures: a line for each of ``line_vals`` over the points of ``x_vals``.

    :param x_names: the arguments that vary along the x axis.
    :param x_vals: their values; a tuple per point where they differ.
    :param line_arg: the argument that tells the lines apart.
    :param line_vals: its values.
    :param line_names: labels of the lines.
    :param plot_name: title and file name.
    :param args: the arguments that stay the same.
    :param xlabel: label of the x axis.
    :param ylabel: label of the y axis.
    :param x_log: logarithmic x axis.
    :param y_log: logarithmic y axis.
    :param styles: ``(colour, line style)`` of each line.
    """

    def __init__(
        self,
        x_names: list[str],
        x_vals: list[Any],
        line_arg: str,
        line_vals: list[Any],
        line_names: list[str],
        plot_name: str,
        args: dict[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: list[tuple[str, str]] | None = None,
    ) -> None:
        self.x_names = x_names
        self.x_vals = x_vals
        self.x_log = x_log
        self.line_arg = line_arg
        self.line_vals = line_vals
        self.line_names = line_names
        self.y_log = y_log
        self.styles = styles
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.plot_name = plot_name
        self.args = args


class Mark:
    """A function with the benchmarks to run it under."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Any) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def measure(self, bench: Benchmark, **kwargs: Any) -> tuple[list[str], list[list[Any]]]:
        """``(column names, rows)`` of one benchmark: the x values, then value, lower and upper bound of each line."""
        columns = list(bench.x_names)
        for name in bench.line_names:
            columns += [name, f"{name}-min", f"{name}-max"]
        rows = []
        for x in bench.x_vals:
            values = list(x) if isinstance(x, (list, tuple)) else [x for _ in bench.x_names]
            if len(values) != len(bench.x_names):
                raise ValueError(
                    f"{bench.plot_name}: expected {len(bench.x_names)} values for a point, got {len(values)}"
                )
            row: list[Any] = list(values)
            for line in bench.line_vals:
                named = dict(zip(bench.x_names, values, strict=True))
                result = self.fn(**named, **{bench.line_arg: line}, **bench.args, **kwargs)
                row += list(result) if isinstance(result, (list, tuple)) else [result, None, None]
            rows.append(row)
        return columns, rows

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run the benchmarks. Plots need matplotlib, ``return_df`` needs pandas; a table on the screen and the CSV and
        HTML files under ``save_path`` need neither."""
        many = isinstance(self.benchmarks, (list, tuple))
        benches: list[Benchmark] = list(self.benchmarks) if many else [self.benchmarks]
        frames = []
        for bench in benches:
            columns, rows = self.measure(bench, **kwargs)
            if show_plots or save_path:
                _plot(bench, columns, rows, show_plots, save_path)
            shown = [i for i, name in enumerate(columns) if not _is_bound(name, bench)]
            if print_data:
                print(bench.plot_name + ":")
                print(_table([columns[i] for i in shown], [[row[i] for i in shown] for row in rows]))
            if save_path:
                _write_csv(os.path.join(save_path, f"{bench.plot_name}.csv"), columns, rows, shown)
            if return_df:
                frames.append(_frame([columns[i] for i in shown], [[row[i] for i in shown] for row in rows]))
        if save_path:
            names = "".join(f'<image src="{bench.plot_name}.png"/>\n' for bench in benches)
            with open(os.path.join(save_path, "results.html"), "w", encoding="utf-8") as file:
                file.write(f"<html><body>\n{names}</body></html>\n")
        if return_df:
            return frames if many else frames[0]
        return None


def _is_bound(column: str, bench: Benchmark) -> bool:
    return any(column in (f"{name}-min", f"{name}-max") for name in bench.line_names)


def _text(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [["", *columns], *([str(i), *map(_text, row)] for i, row in enumerate(rows))]
    widths = [builtins.max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def _write_csv(path: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], shown: Sequence[int]) -> None:
    import csv  # only reports that are saved need it

    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([columns[i] for i in shown])
        writer.writerows([[_text(row[i]) for i in shown] for row in rows])


def _frame(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("return_df=True needs pandas, which is not installed") from None
    return pd.DataFrame(rows, columns=list(columns))


def _plot(bench: Benchmark, columns: list[str], rows: list[list[Any]], show: bool, save_path: str) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        if show:
            raise ImportError("show_plots=True needs matplotlib, which is not installed") from None
        return
    plt.figure()
    axes = plt.subplot()
    x = [row[0] for row in rows]
    for i, name in enumerate(bench.line_names):
        at = columns.index(name)
        colour, style = bench.styles[i] if bench.styles else (None, None)
        axes.plot(x, [row[at] for row in rows], label=name, color=colour, ls=style)
        low, high = [row[at + 1] for row in rows], [row[at + 2] for row in rows]
        if all(value is not None for value in (*low, *high)):
            axes.fill_between(x, low, high, alpha=0.15, color=colour)
    axes.legend()
    axes.set_xlabel(bench.xlabel or bench.x_names[0])
    axes.set_ylabel(bench.ylabel)
    axes.set_xscale("log" if bench.x_log else "linear")
    axes.set_yscale("log" if bench.y_log else "linear")
    if save_path:
        os.makedirs(save_path, exist_ok=True)
        plt.savefig(os.path.join(save_path, f"{bench.plot_name}.png"))
    if show:
        plt.show()
    plt.close()


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorator: measure a function under ``benchmarks`` with its ``.run(...)``. The function returns one figure, or a
    figure with its lower and upper bound."""
    return lambda fn: Mark(fn, benchmarks)
