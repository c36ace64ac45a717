"""``@triton.autotune``: try several configurations of a kernel, once per key, and keep the fastest."""

from __future__ import annotations

import builtins
import copy
import inspect
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from .. import knobs
from ..errors import TritonError
from ..knobs import get_cache_invalidating_env_vars
from .arguments import ArgumentError, as_array, element_type
from .cache import get_cache_manager, read_file, triton_key, warn_unwritable
from .driver import driver
from .errors import AutotunerError, LaunchError, OutOfResources, PTXASError
from .jit import JITFunction, KernelInterface, get_compiler

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]


class Config:
    """One configuration of a kernel.

    :param kwargs: values of the kernel's meta-parameters.
    :param num_warps: warps per program, where the target has warps.
    :param num_stages: depth of software pipelines.
    :param num_ctas: programs that share memory as one cluster.
    :param maxnreg: the most registers a thread may use.
    :param pre_hook: called with the arguments by name before each launch of this configuration.
    :param ir_override: a file of IR to compile in place of the kernel's.
    """

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
    ) -> None:
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_ctas = num_ctas
        self.num_stages = num_stages
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def __setstate__(self, state: dict[str, Any]) -> None:
        defaults = Config({})
        self.__dict__.update({**vars(defaults), **state})

    def all_kwargs(self) -> dict[str, Any]:
        """Meta-parameters and options, as keywords of a launch; what was left open is not there."""
        options = {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
            "ir_override": self.ir_override,
        }
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def _identity(self) -> tuple[Any, ...]:
        return (*self.all_kwargs().items(), self.pre_hook)

    def __str__(self) -> str:
        named = [f"{name}: {value}" for name, value in self.kwargs.items()]
        named += [f"{name}: {getattr(self, name)}" for name in ("num_warps", "num_ctas", "num_stages", "maxnreg")]
        return ", ".join(named)

    def __repr__(self) -> str:
        return f"Config({self})"

    def __hash__(self) -> int:
        return hash(tuple((n, v if getattr(v, "__hash__", None) else repr(v)) for n, v in self.all_kwargs().items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._identity() == other._identity()


_PLAIN = frozenset({int, float, bool, str, type(None)})
_FAILURES = (TritonError, RuntimeError, ValueError, TypeError, AssertionError, NotImplementedError)


class _Tuning:
    """A key that some thread is tuning; others wait for it."""

    __slots__ = ("done", "owner")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.owner = threading.get_ident()


class Autotuner(KernelInterface[Any]):
    """A kernel that picks its configuration by measuring. See :func:`autotune`.

    ``cache`` maps keys to their best configuration; ``best_config`` is the last one used; ``configs_timings`` holds the
    last tuning's figures; ``failures`` maps each configuration that could not be used to the exception it raised.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: list[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: dict[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ) -> None:
        self.configs = list(configs) or [Config({}, num_warps=4, num_stages=3, num_ctas=1)]
        self.keys = list(key)
        self.cache: dict[Any, Config] = {}
        self.arg_names = arg_names
        self._cache_results = cache_results
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        for names, what in ((self.reset_to_zero, "reset_to_zero"), (self.restore_value, "restore_value")):
            unknown = ", ".join(name for name in names if name not in arg_names)
            if unknown:
                raise ValueError(
                    f"autotune: {what} contains names that are not kernel arguments: {unknown}. Valid argument names "
                    f"are: {', '.join(arg_names)}"
                )
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook: Callable[..., Any] = pre_hook or self._reset_and_save
        self.post_hook: Callable[..., Any] = post_hook or self._restore
        pruning = prune_configs_by or {}
        self.perf_model = pruning.get("perf_model")
        self.configs_top_k = pruning.get("top_k", 1.0)
        if isinstance(self.configs_top_k, float) and self.configs_top_k > 1.0:
            raise ValueError(f"autotune: top_k as a fraction must be at most 1.0, got {self.configs_top_k}")
        self.early_config_prune = pruning.get("early_config_prune")
        self.fn = fn
        self.base_fn = _base(fn)
        self.__name__ = getattr(self.base_fn, "__name__", "kernel")
        self._do_bench = do_bench
        self.num_warmups = warmup
        self.num_reps = rep
        self.use_cuda_graph = use_cuda_graph
        self.nargs: dict[str, Any] = {}
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, Any] = {}
        self.failures: dict[Config, BaseException] = {}
        self.bench_time: float | None = None
        self._init_locks()

    def _init_locks(self) -> None:
        self._lock = threading.Lock()
        self._tuning_lock = threading.RLock()  # measurements taken side by side would disturb each other
        self._running: dict[Any, _Tuning] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in self.__dict__.items() if name not in ("_lock", "_tuning_lock", "_running")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._init_locks()

    @property
    def cache_results(self) -> bool:
        return self._cache_results or knobs.autotuning.cache

    @cached_property
    def do_bench(self) -> Callable[..., Any]:
        """``do_bench(call, quantiles=...)``: the figures of one configuration in milliseconds."""
        if self._do_bench is not None:
            return self._do_bench
        bench = driver.active.get_benchmarker()
        extra = {n: v for n, v in (("warmup", self.num_warmups), ("rep", self.num_reps)) if v is not None}
        return lambda call, quantiles: bench(call, quantiles=quantiles, **extra)

    # ---- benchmark runs leave the arguments as they were ------------------------------------------------------------

    def _reset_and_save(self, kwargs: dict[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            _fill_zero(kwargs[name])
        if not reset_only:
            self.restore_copies = {name: _copy(kwargs[name]) for name in self.restore_value}

    def _restore(self, kwargs: dict[str, Any], exception: BaseException | None = None) -> None:
        for name, saved in self.restore_copies.items():
            _assign(kwargs[name], saved)
        self.restore_copies = {}

    def _bench(
        self,
        nargs: dict[str, Any],
        config: Config,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        measured: dict[str, list[float]],
    ) -> list[float]:
        """Figures of one configuration; infinite, with the reason in ``failures``, when it cannot be used.

        ``measured`` holds figures by hash of the compiled kernel: configurations that differ in what means nothing to
        the target share them.
        """
        current = self._chosen(config, kwargs)
        full = {**nargs, **current}

        def call() -> None:
            if config.pre_hook is not None:
                config.pre_hook(full)
            self.pre_hook(full)
            try:
                self.fn.run(*args, **current)
            except BaseException as error:
                self.post_hook(full, exception=error)
                raise
            self.post_hook(full, exception=None)

        try:
            code = None
            if config.pre_hook is None:
                code = getattr(self.fn.run(*args, **{**current, "warmup": True}), "hash", None)
            if code in measured:
                return measured[code]
            figures = self.do_bench(call, quantiles=(0.5, 0.2, 0.8))
            self.failures.pop(config, None)
            found = [float(f) for f in figures] if isinstance(figures, (list, tuple)) else [float(figures)] * 3
            if code is not None:
                measured[code] = found
            return found
        except LaunchError:
            raise  # a bad argument or grid is the caller's mistake, not the configuration's
        except _FAILURES as error:
            self.failures[config] = error.with_traceback(None)
            if knobs.autotuning.print:
                builtins.print(f"Triton autotuning: {self.__name__} cannot use {config}: {error}")
            return [float("inf")] * 3

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def _key(self, nargs: dict[str, Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        given = {**nargs, **{name: value for name, value in kwargs.items() if name in self.arg_names}}
        key: list[Any] = []
        for name in self.keys:
            if name in given:
                value = given[name]
                key.append(value if type(value) in _PLAIN else _describe(value))
        key += [value.dtype for value in given.values() if type(value) not in _PLAIN and hasattr(value, "dtype")]
        return tuple(key)

    def _tune(self, key: Any, nargs: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        pruned = self.prune_configs({**nargs, **kwargs})
        if len(pruned) == 1:
            return pruned[0]
        timings: dict[Config, list[float]] = {}

        def benchmark() -> None:
            start = time.perf_counter()
            measured: dict[str, list[float]] = {}
            for config in pruned:
                timings[config] = self._bench(nargs, config, args, kwargs, measured)
            self.bench_time = time.perf_counter() - start
            if all(figures[0] == float("inf") for figures in timings.values()):
                raise AutotunerError(self._all_failed(pruned))
            self.cache[key] = builtins.min(timings, key=lambda config: timings[config])
            self._reset_and_save({**nargs, **kwargs, **self.cache[key].all_kwargs()}, reset_only=True)
            self.configs_timings = dict(timings)

        self.bench_time = None
        hit = self.cache_results and self.check_disk_cache(key, pruned, benchmark)
        if not self.cache_results:
            benchmark()
        best = self.cache[key]
        if knobs.autotuning.print and not hit:
            builtins.print(
                f"Triton autotuning for function {self.__name__}, with key as {key}, finished after "
                f"{self.bench_time or 0.0:.2f}s, best config selected: {best};"
            )
        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=self.base_fn,
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=self.bench_time,
                cache_hit=bool(hit),
            )
        return best

    def _chosen(self, config: Config, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of a launch with ``config``."""
        if not kwargs.keys().isdisjoint(config.kwargs):
            names = ", ".join(sorted(kwargs.keys() & config.kwargs.keys()))
            raise ValueError(
                f"{self.__name__}: Conflicting meta-parameters: {names}. Make sure that you don't re-define auto-tuned "
                "symbols: the configurations choose them"
            )
        return {**kwargs, **config.all_kwargs()}

    def _all_failed(self, configs: Iterable[Config]) -> str:
        lines = [f"  {config}: {self.failures.get(config)}" for config in configs]
        return "\n".join([f"{self.__name__}: no configuration can be used", *lines])

    def _choose(self, key: Any, nargs: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        """The configuration for a key; of several threads that need one, one tunes and the others wait."""
        while True:
            with self._lock:
                best = self.cache.get(key)
                if best is not None:
                    return best
                running = self._running.get(key)
                if running is None or running.owner == threading.get_ident():
                    mine = self._running[key] = _Tuning()
                    break
            running.done.wait()
        try:
            with self._tuning_lock:
                self.nargs = nargs
                best = self._tune(key, nargs, args, kwargs)
            self.cache[key] = best
            return best
        finally:
            with self._lock:
                self._running.pop(key, None)
            mine.done.set()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration for these arguments, tuning first when the key is new."""
        nargs = dict(zip(self.arg_names, args, strict=False))
        self.nargs = nargs
        if len(self.configs) == 1:
            config = self.configs[0]
        else:
            key = self._key(nargs, kwargs)
            config = self.cache.get(key) or self._choose(key, nargs, args, kwargs)
        self.best_config = config
        current = self._chosen(config, kwargs)
        if config.pre_hook is not None:
            config.pre_hook({**nargs, **current})
        return self.fn.run(*args, **current)

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compile every configuration for these arguments, without running any."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        return [
            self.fn.warmup(*args, **kwargs, **config.all_kwargs())
            for config in self.prune_configs({**self.nargs, **kwargs})
        ]

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configurations worth measuring for these arguments."""
        pruned = self.configs
        if self.early_config_prune is not None:
            pruned = list(self.early_config_prune(self.configs, self.nargs, **kwargs))
            if not pruned:
                raise AutotunerError(
                    f"{self.__name__}: early_config_prune left no configuration; it must keep at least one"
                )
        if self.perf_model is not None:
            top = self.configs_top_k
            if isinstance(top, float):
                top = int(len(self.configs) * top)
            if len(pruned) > top:
                estimates = {}
                for config in pruned:
                    estimates[config] = self.perf_model(**{**self.nargs, **kwargs, **config.all_kwargs()})
                pruned = sorted(estimates, key=lambda config: estimates[config])[: max(1, top)]
        return pruned

    # ---- results on disk --------------------------------------------------------------------------------------------

    def check_disk_cache(self, tuning_key: Any, configs: Sequence[Config], bench_fn: Callable[[], Any]) -> bool:
        """Take the figures of an earlier run, else run ``bench_fn`` and keep them. True when they were there."""
        if not tuning_key or any(config.pre_hook is not None for config in configs):
            bench_fn()
            return False
        manager = get_cache_manager(self._disk_key(tuning_key, configs))
        name = f"{self.__name__[:150]}.autotune.json"
        path = manager.get_file(name)
        stored = _read_json(path) if path is not None else None
        if stored is not None and len(stored.get("timings", ())) == len(configs):
            timings = dict(zip(configs, stored["timings"], strict=True))
            self.cache[tuning_key] = builtins.min(timings, key=lambda config: timings[config])
            self.configs_timings = timings
            return True
        bench_fn()
        data = {
            "key": [repr(part) for part in tuning_key],
            "configs": [str(config) for config in configs],
            "timings": [self.configs_timings[config] for config in configs],
        }
        try:
            manager.put(json.dumps(data), name, binary=False)
        except OSError as error:
            warn_unwritable(error)
        return False

    def _disk_key(self, tuning_key: Any, configs: Sequence[Config]) -> str:
        target = driver.active.get_current_target()
        backend = get_compiler().make_backend(target)
        parts = (
            triton_key(),
            backend.hash(),
            str(target),
            str(os.cpu_count()),
            self.base_fn.cache_key,
            repr(sorted(get_cache_invalidating_env_vars().items())),
            repr(tuning_key),
            *map(str, configs),
        )
        return "-".join(parts)


def _read_json(path: str) -> dict[str, Any] | None:
    try:
        data = json.loads(read_file(path) or b"")
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _base(fn: Any) -> Any:
    while hasattr(fn, "fn") and not isinstance(fn, JITFunction) and not inspect.isfunction(fn):
        fn = fn.fn
    return fn


def _describe(value: Any) -> Any:
    """What a value that is no plain number adds to a key."""
    array = as_array(value)
    if array is None:
        return repr(value)
    try:
        return element_type(array.dtype)
    except ArgumentError:
        return str(array.dtype)


# Torch tensors and NumPy arrays, each in its own way.


def _fill_zero(tensor: Any) -> None:
    if hasattr(tensor, "zero_"):
        tensor.zero_()
    else:
        tensor[...] = 0


def _copy(tensor: Any) -> Any:
    if hasattr(tensor, "clone"):
        return tensor.clone()
    return tensor.copy() if hasattr(tensor, "copy") else copy.deepcopy(tensor)


def _assign(tensor: Any, saved: Any) -> None:
    if hasattr(tensor, "copy_"):
        tensor.copy_(saved)
    else:
        tensor[...] = saved


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: dict[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
) -> Callable[[Any], Autotuner]:
    """Decorator for a jitted kernel: at the first launch with new values of ``key``, or new element types, run every
    configuration and keep the fastest.

    :param configs: the configurations. One alone is used without measuring.
    :param key: names of arguments whose change starts a new tuning. Names that no parameter has add nothing:
        libraries keep names here of parameters that their kernels have lost.
    :param prune_configs_by: ``early_config_prune(configs, named_args, **kwargs)`` returns the ones to keep;
        ``perf_model(**args)`` estimates a time, of which the ``top_k`` best (a number, or a fraction) are measured.
    :param reset_to_zero: names of arguments that are filled with zeros before each measured run.
    :param restore_value: names of arguments that get their contents back after each measured run.
    :param pre_hook: called as ``pre_hook(args, reset_only=False)`` before each measured run, in place of the above.
    :param post_hook: called as ``post_hook(args, exception=None)`` after each measured run, in place of the above.
    :param warmup: milliseconds of warm-up for each configuration.
    :param rep: milliseconds of measuring for each configuration.
    :param do_bench: ``do_bench(call, quantiles)`` in place of the driver's way of measuring.
    :param cache_results: keep the figures on disk for later processes.

    Configurations that cannot be compiled or launched are passed over; ``kernel.failures`` lists them.
    """

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(
            fn,
            fn.arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
        )

    return decorate


class Heuristics(KernelInterface[Any]):
    """A kernel some of whose meta-parameters are computed from the arguments. See :func:`heuristics`."""

    def __init__(self, fn: Any, arg_names: list[str], values: dict[str, Callable[[dict[str, Any]], Any]]) -> None:
        self.fn = fn
        self.values = values
        self.arg_names = arg_names
        self.__name__ = getattr(fn, "__name__", "kernel")

    def run(self, *args: Any, **kwargs: Any) -> Any:
        for name, compute in self.values.items():
            kwargs[name] = compute({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, **kwargs)


def heuristics(values: dict[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Decorator for a jitted kernel: ``values`` maps meta-parameters to functions of the arguments by name."""

    def decorate(fn: Any) -> Heuristics:
        return Heuristics(fn, fn.arg_names, values)

    return decorate
