"""``triton.testing``: timing, comparing, reports."""

from __future__ import annotations

import builtins
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from reference_backend import ReferenceDriver

import triton.testing as testing


def test_bench_measures_calls(device: ReferenceDriver) -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        until = time.perf_counter() + 0.002  # Windows may sleep for 16 ms at least
        while time.perf_counter() < until:
            pass

    start = time.perf_counter()
    mean = testing.do_bench(work, warmup=2, rep=20)
    elapsed = (time.perf_counter() - start) * 1e3
    assert 2 <= mean < elapsed and 4 <= len(calls) <= elapsed / 2  # how many there are depends on what else is running
    times = testing.do_bench(work, warmup=1, rep=10, return_mode="all")
    low, high = (testing.do_bench(work, warmup=1, rep=10, return_mode=m) for m in ("min", "max"))
    assert len(times) >= 1 and min(times) >= 2 and low >= 2 and high >= 2
    ordered = testing.do_bench(work, warmup=1, rep=10, quantiles=[0.2, 0.5, 0.8])
    assert ordered == sorted(ordered)
    assert isinstance(testing.do_bench(work, warmup=1, rep=5, quantiles=[0.5]), float)
    with pytest.raises(ValueError, match="return_mode must be one of"):
        testing.do_bench(work, return_mode="middle")


def test_bench_drops_gradients(device: ReferenceDriver) -> None:
    tensor = SimpleNamespace(grad=5)
    testing.do_bench(lambda: None, warmup=0, rep=0.01, grad_to_none=[tensor])
    assert tensor.grad is None


def test_quantiles_interpolate() -> None:
    assert testing._summarize([4.0, 1.0, 3.0, 2.0], [0.0, 0.5, 1.0], "mean") == [1.0, 2.5, 4.0]
    assert testing._summarize([4.0, 1.0], None, "all") == [4.0, 1.0]
    assert testing._summarize([4.0, 1.0, 1.5], None, "median") == 1.5
    with pytest.raises(ValueError, match="between 0 and 1"):
        testing._summarize([1.0], [1.5], "mean")


def test_close_values() -> None:
    torch = pytest.importorskip("torch")
    x = np.array([1.0, np.nan, 3.0], "f4")
    testing.assert_close(x, x + np.float32(0.005))
    testing.assert_close(torch.from_numpy(x), x, atol=0, rtol=0)
    testing.assert_close(torch.ones(3, dtype=torch.bfloat16), np.ones(3))
    testing.assert_close(np.arange(3), torch.arange(3), atol=0, rtol=0)
    testing.assert_close(np.ones((2, 2)), 1.0)
    for bad in (x + 1, np.array([1.0, 2.0, 3.0]), np.ones(4)):
        with pytest.raises(AssertionError):
            testing.assert_close(x, bad)
    with pytest.raises(AssertionError, match="mine"):
        testing.assert_close(np.arange(3), np.arange(3) + 1, atol=0, rtol=0, err_msg="mine")


def benchmark(**changes: Any) -> testing.Benchmark:
    options: dict[str, Any] = {
        "x_names": ["n"],
        "x_vals": [1, 2],
        "line_arg": "how",
        "line_vals": ["plain", "double"],
        "line_names": ["Plain", "Double"],
        "plot_name": "scaling",
        "args": {"offset": 0.5},
    }
    return testing.Benchmark(**{**options, **changes})


def measured(n: int, how: str, offset: float, extra: float = 0.0) -> Any:
    value = n * (2 if how == "double" else 1) + offset + extra
    return value if how == "plain" else (value, value - 1, value + 1)


def test_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = testing.perf_report(benchmark())(measured)
    report.run(print_data=True, save_path=str(tmp_path), extra=1.0)
    printed = capsys.readouterr().out
    assert "scaling:" in printed and "Plain" in printed and "2.500000" in printed
    lines = (tmp_path / "scaling.csv").read_text().splitlines()
    assert lines == ["n,Plain,Double", "1,2.500000,3.500000", "2,3.500000,5.500000"]
    assert "scaling.png" in (tmp_path / "results.html").read_text()


def test_data_frames_need_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    report = testing.perf_report([benchmark(), benchmark(plot_name="other")])(measured)
    real = builtins.__import__

    def no_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match="return_df=True needs pandas"):
        report.run(return_df=True)


def test_points_of_several_values() -> None:
    mark = testing.perf_report(benchmark(x_names=["n", "extra"], x_vals=[(1, 2.0), (2, 3.0)]))(measured)
    columns, rows = mark.measure(mark.benchmarks)
    assert columns[:3] == ["n", "extra", "Plain"] and [row[2] for row in rows] == [3.5, 5.5]
    with pytest.raises(ValueError, match="expected 2 values for a point, got 1"):
        mark.measure(benchmark(x_names=["n", "extra"], x_vals=[(1,)]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: testing.do_bench_cudagraph(lambda: None),
        lambda: testing.do_bench_proton(lambda: None),
        lambda: testing.get_max_tensorcore_tflops("fp16", 1e6),
        lambda: testing.get_max_simd_tflops("fp16", 1e6),
        lambda: testing.set_gpu_clock().__enter__(),
        lambda: testing.get_dram_gbps(),
    ],
)
def test_what_needs_cuda_says_so(call: Any, device: ReferenceDriver) -> None:
    with pytest.raises(RuntimeError, match="needs a CUDA device"):
        call()
