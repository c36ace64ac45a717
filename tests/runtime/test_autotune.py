"""Autotuning and heuristics."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import pytest
from reference_backend import ReferenceDriver

import triton
import triton.language as tl
from triton import knobs
from triton.runtime.errors import AutotunerError, LaunchError

pytestmark = pytest.mark.usefixtures("device")


class Clock:
    """A benchmark that gives each block size a known time and counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, call: Any, quantiles: Any) -> list[float]:
        self.count += 1
        call()
        return [float(self.count), float(self.count), float(self.count)]


def configs(*blocks: int, **options: Any) -> list[triton.Config]:
    return [triton.Config({"BLOCK": block}, **options) for block in blocks]


def tuned(clock: Clock, chosen: list[triton.Config], **options: Any) -> Any:
    options.setdefault("key", ["n"])
    return triton.autotune(configs=chosen, do_bench=clock, **options)(triton.JITFunction(kernels.increment.fn))


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def test_the_fastest_configuration_is_kept_per_key() -> None:
    clock = Clock()
    kernel = tuned(clock, configs(16, 32), restore_value=["x"])
    x = np.zeros(40, "f4")
    kernel[grid](x, 40)
    assert clock.count == 2 and kernel.best_config.kwargs == {"BLOCK": 16}
    np.testing.assert_array_equal(x, 1)
    kernel[grid](x, 40)
    kernel[grid](x, n=40)
    np.testing.assert_array_equal(x, 3)
    assert clock.count == 2
    kernel[grid](x, 39)
    kernel[grid](x.astype("f8"), 40)
    assert clock.count == 6 and len(kernel.cache) == 3
    assert set(kernel.configs_timings) == set(kernel.configs)


def test_arguments_can_be_reset_or_restored() -> None:
    x = np.full(8, 5, "f4")
    tuned(Clock(), configs(8, 16), reset_to_zero=["x"])[grid](x, 8)
    np.testing.assert_array_equal(x, 1)
    x[:] = 5
    tuned(Clock(), configs(8, 16))[grid](x, 8)
    np.testing.assert_array_equal(x, 8)


def test_tensors_of_torch_are_restored() -> None:
    torch = pytest.importorskip("torch")
    x = torch.full((8,), 5.0)
    tuned(Clock(), configs(8, 16), restore_value=["x"])[grid](x, 8)
    assert torch.equal(x, torch.full((8,), 6.0))


def test_hooks_around_measured_runs() -> None:
    events: list[str] = []
    kernel = tuned(
        Clock(),
        [triton.Config({"BLOCK": 8}, pre_hook=lambda args: events.append(f"config {args['BLOCK']}")), *configs(16)],
        pre_hook=lambda args, reset_only=False: events.append("reset" if reset_only else "pre"),
        post_hook=lambda args, exception: events.append(f"post {exception}"),
    )
    kernel[grid](np.zeros(8, "f4"), 8)
    assert events[:5] == ["config 8", "pre", "post None", "pre", "post None"]
    assert events[-1] == "config 8"


def test_one_configuration_is_not_measured() -> None:
    clock = Clock()
    kernel = tuned(clock, configs(8))
    x = np.zeros(8, "f4")
    kernel[grid](x, 8)
    pruned = tuned(
        clock, configs(8, 16, 32), prune_configs_by={"early_config_prune": lambda configs, args, **kw: configs[2:]}
    )
    pruned[grid](x, 8)
    assert clock.count == 0 and pruned.best_config.kwargs == {"BLOCK": 32}
    np.testing.assert_array_equal(x, 2)


def test_pruning_by_model() -> None:
    clock = Clock()
    seen: list[dict[str, Any]] = []

    def model(**args: Any) -> float:
        seen.append(args)
        return -float(args["BLOCK"])

    for top, measured in ((2, 2), (0.5, 2), (1, 0)):
        clock.count = 0
        kernel = tuned(clock, configs(8, 16, 32, 64), prune_configs_by={"perf_model": model, "top_k": top})
        kernel[grid](np.zeros(8, "f4"), 8)
        assert clock.count == measured and kernel.best_config.kwargs["BLOCK"] == 64
    assert seen[0]["n"] == 8 and seen[0]["num_warps"] == 4
    with pytest.raises(ValueError, match="top_k as a fraction"):
        tuned(clock, configs(8, 16), prune_configs_by={"perf_model": model, "top_k": 1.5})
    with pytest.raises(AutotunerError, match="left no configuration"):
        tuned(clock, configs(8, 16), prune_configs_by={"early_config_prune": lambda *a, **k: []})[grid](np.zeros(8), 8)


def test_configurations_that_fail_are_passed_over_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    bad = triton.Config({"BLOCK": 8, "fail": "code"})
    greedy = triton.Config({"BLOCK": 8, "fail": "shared"})
    kernel = tuned(Clock(), [bad, *configs(16), greedy, *configs(32)], restore_value=["x"])
    x = np.zeros(8, "f4")
    with knobs.autotuning.scope():
        knobs.autotuning.print = True
        kernel[grid](x, 8)
    np.testing.assert_array_equal(x, 1)
    assert kernel.best_config.kwargs == {"BLOCK": 16}
    assert set(kernel.failures) == {bad, greedy}
    assert "cannot be coded" in str(kernel.failures[bad]) and "shared memory" in str(kernel.failures[greedy])
    assert kernel.configs_timings[bad][0] == float("inf")
    printed = capsys.readouterr().out
    assert "cannot use BLOCK: 8" in printed and "best config selected: BLOCK: 16" in printed
    with pytest.raises(AutotunerError, match=r"no configuration can be used\n.*cannot be coded"):
        tuned(Clock(), [bad, greedy])[grid](x, 8)


def test_mistakes_of_the_caller_are_not_failures_of_configurations() -> None:
    with pytest.raises(LaunchError, match="grid dimension 0"):
        tuned(Clock(), configs(8, 16))[(-1,)](np.zeros(8, "f4"), 8)
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned(Clock(), configs(8, 16))[(1,)](np.zeros(8, "f4"), 8, BLOCK=4)
    with pytest.raises(ValueError, match="reset_to_zero contains names that are not kernel arguments: m"):
        tuned(Clock(), configs(8, 16), reset_to_zero=["m"])


def test_names_in_the_key_that_no_parameter_has_add_nothing() -> None:
    clock = Clock()
    kernel = tuned(clock, configs(8, 16), key=["gone", "n"])
    kernel[grid](np.zeros(8, "f4"), 8)
    kernel[grid](np.zeros(8, "f4"), 8)
    assert clock.count == 2 and len(kernel.cache) == 1
    kernel[grid](np.zeros(8, "f4"), 7)
    assert clock.count == 4 and len(kernel.cache) == 2


def test_results_on_disk(monkeypatch: pytest.MonkeyPatch, cache_dir: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_AUTOTUNING", "1")
    clock = Clock()
    heard: list[dict[str, Any]] = []
    with knobs.autotuning.scope():
        knobs.autotuning.listener = lambda **kwargs: heard.append(kwargs)
        tuned(clock, configs(16, 32))[grid](np.zeros(8, "f4"), 8)
        again = tuned(clock, configs(16, 32))
        again[grid](np.zeros(8, "f4"), 8)
        assert clock.count == 2 and again.best_config.kwargs == {"BLOCK": 16}
        for path in cache_dir.rglob("*.autotune.json"):
            path.write_text("{broken")
        tuned(clock, configs(16, 32))[grid](np.zeros(8, "f4"), 8)
        tuned(clock, configs(16, 64))[grid](np.zeros(8, "f4"), 8)
    assert clock.count == 6
    assert [h["cache_hit"] for h in heard] == [False, True, False, False]
    assert heard[0]["best_config"] == configs(16)[0] and heard[1]["duration"] is None


def test_one_tuning_per_key_among_threads() -> None:
    clock = Clock()
    kernel = tuned(clock, configs(8, 16, 32), restore_value=["x"])
    barrier = threading.Barrier(16)

    def work(i: int) -> bool:
        n = 8 + i % 2
        x = np.zeros(n, "f4")
        barrier.wait()
        kernel[grid](x, n)
        return bool((x == 1).all())

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))
    assert clock.count == 6


def test_warmup_compiles_every_configuration(device: ReferenceDriver) -> None:
    compiled = tuned(Clock(), configs(8, 16)).warmup(np.dtype("f4"), 8, grid=(1,))
    assert len({k.hash for k in compiled}) == 2 and device.launches == []


def test_heuristics_see_the_arguments() -> None:
    kernel = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(kernels.increment)
    x = np.zeros(20, "f4")
    compiled = kernel[(1,)](x, 20)
    np.testing.assert_array_equal(x, 1)
    assert compiled.src.constants[(2,)] == 32


def test_heuristics_under_autotune() -> None:
    inner = triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(even)
    kernel = triton.autotune(configs=configs(8, 16), key=["n"], do_bench=Clock())(inner)
    out = np.zeros(1, "i4")
    kernel[(1,)](out, 16)
    assert out[0] == 1 and kernel.base_fn is even
    kernel[(1,)](out, 17)
    assert out[0] == 0


@triton.jit
def even(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, EVEN + n * 0 + BLOCK * 0)


def test_booleans_in_tuned_kernels() -> None:
    @triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (1, 2)], key=["on"], do_bench=Clock())
    @triton.jit
    def local(out, on):  # type: ignore[no-untyped-def]
        if on:
            tl.store(out, 1)
        else:
            tl.store(out, 2)

    out = np.zeros(1, "i4")
    for on in (True, False):
        local[(1,)](out, on)
        assert out[0] == 2 - on


def test_configurations_are_values() -> None:
    one = triton.Config({"A": 1}, num_warps=8, num_stages=2, maxnreg=128)
    assert one == triton.Config({"A": 1}, num_warps=8, num_stages=2, maxnreg=128)
    assert one != triton.Config({"A": 1}, num_warps=8, num_stages=2)
    assert hash(one) == hash(pickle.loads(pickle.dumps(one))) and pickle.loads(pickle.dumps(one)) == one
    assert str(one) == "A: 1, num_warps: 8, num_ctas: 1, num_stages: 2, maxnreg: 128"
    assert one.all_kwargs() == {"A": 1, "num_warps": 8, "num_ctas": 1, "num_stages": 2, "maxnreg": 128}
    hash(triton.Config({"A": [1, 2]}))


def test_the_drivers_clock_is_used_by_default() -> None:
    kernel = triton.autotune(configs=configs(8, 16), key=["n"])(triton.JITFunction(kernels.increment.fn))
    x = np.zeros(8, "f4")
    kernel[grid](x, 8)
    assert all(0 < t[0] < 1e5 for t in kernel.configs_timings.values())
