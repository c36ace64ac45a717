"""``@triton.jit`` and what it makes: a function that is compiled for its arguments at each launch.

At import this module needs only the source capture of the front end, so that the language's own library, which is
written with ``@jit``, can use it. The compiler registers itself with :func:`set_compiler` and is loaded at the first
launch.
"""

from __future__ import annotations

import importlib
import inspect
import json
import operator
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar, overload

from .. import knobs
from ..frontend.source import (
    BoundConstexprFunction,
    ConstexprFunction,
    JITCallable,
    KernelParam,
    constexpr_function,
)
from ..knobs import HookChain, get_cache_invalidating_env_vars
from ._async_compile import FutureKernel, active_mode
from .arguments import (
    as_array,
    device_index,
    device_of,
    mangle_type,
    native_specialize_impl,
    specialize_argument,
    type_canonicalisation_dict,
)
from .binding import (
    Binder,
    convert_to_tuple_if_list,
    find_paths_if,
    get_iterable_path,
    is_namedtuple,
    signature_of,
)
from .dispatch import bound_launch, make_dispatcher
from .driver import driver, on_device
from .errors import LaunchError
from .hooks import HookCall, JitFunctionInfo, from_json, serialize_specialization_data, tuples
from .tensors import MockTensor, TensorWrapper, reinterpret

__all__ = [
    "BoundConstexprFunction",
    "ConstexprFunction",
    "JITCallable",
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "TensorWrapper",
    "compute_cache_key",
    "constexpr_function",
    "convert_to_tuple_if_list",
    "find_paths_if",
    "get_cache_invalidating_env_vars",
    "get_full_name",
    "get_iterable_path",
    "is_namedtuple",
    "jit",
    "mangle_type",
    "native_specialize_impl",
    "reinterpret",
    "serialize_specialization_data",
    "specialize_argument",
    "type_canonicalisation_dict",
]

T = TypeVar("T")
# The environment as the process has it: looking a name up in os.environ costs a tenth of a launch.
_environment = getattr(os.environ, "_data", os.environ)
_INTERPRET = os.environ.encodekey("TRITON_INTERPRET") if _environment is not os.environ else "TRITON_INTERPRET"
TRITON_MODULE = "triton.language"
GLUON_MODULE = "triton.experimental.gluon.language"


# Options that tune code for one kind of target. Kernels written for it run elsewhere too, where they mean nothing.
OPTIONS_OF_SOME_TARGETS = frozenset(
    [
        "num_warps",
        "num_stages",
        "num_ctas",
        "maxnreg",
        "waves_per_eu",
        "matrix_instr_nonkdim",
        "kpack",
        "instruction_sched_variant",
        "schedule_hint",
        "launch_cooperative_grid",
        "launch_pdl",
        "enable_reflect_ftz",
        "num_consumer_groups",
        "num_buffers_warp_spec",
        "ptx_version",
        "ptx_options",
        "allow_flush_denorm",
        "llvm_fn_attrs",
        "wgp_cu_mode",
        "cluster_dims",
        "grf_mode",
        "ir_override",
        "enable_fp_fusion",
        "sanitize_overflow",
        "debug",
    ]
)


class Compiler(Protocol):
    """What the runtime asks of the compiler; ``compiler/compiler.py`` is it."""

    CompiledKernel: Any
    ASTSource: Any
    HOST: Any

    def compile(self, src: Any, target: Any = None, options: Any = None) -> Any: ...
    def make_backend(self, target: Any) -> Any: ...
    def interpret(self, src: Any, options: Any, grid: tuple[int, int, int], values: list[Any]) -> None: ...


_compiler: Compiler | None = None


def set_compiler(compiler: Compiler) -> None:
    """Called by the compiler's module when it is imported."""
    global _compiler
    _compiler = compiler


def get_compiler() -> Compiler:
    """The compiler, imported now if nobody did: importing it earlier would make ``import triton`` slow."""
    if _compiler is None:
        importlib.import_module("triton.compiler.compiler")
    if _compiler is None:
        raise RuntimeError("triton.compiler.compiler did not register itself")
    return _compiler


class KernelInterface(Generic[T]):
    """What can be launched with ``kernel[grid](...)``."""

    run: Any

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for these arguments without running. Element types may stand for tensors."""
        for param in getattr(self, "params", ()):
            if param.name in kwargs and not param.is_constexpr:  # a compile-time value may be an element type itself
                kwargs[param.name] = MockTensor.wrap_dtype(kwargs[param.name])
        return self.run(*map(MockTensor.wrap_dtype, args), grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> T:
        """``kernel[grid]``: a function that launches over ``grid``, a tuple of 1 to 3 sizes or a function of the bound
        arguments that returns one."""
        run = self.run

        def launch(*args: Any, **kwargs: Any) -> Any:
            return run(*args, grid=grid, warmup=False, **kwargs)

        return launch  # type: ignore[return-value]


def get_full_name(fn: Any) -> str:
    return f"{fn.__module__}.{fn.__qualname__}"


def compute_cache_key(kernel_key_cache: dict[Any, str], specialization: Any, options: Any) -> str:
    """The text that stands for a specialisation and options in hooks."""
    key = (tuple(specialization), str(options))
    text = kernel_key_cache.get(key)
    if text is None:
        text = kernel_key_cache[key] = str(specialization) + str(options)
    return text


def resolve_grid(
    grid: Any, names: list[str], values: list[Any], options: dict[str, Any], limits: tuple[int, int, int]
) -> tuple[int, int, int]:
    """A grid as three sizes; a function gets arguments and options by name. Raises LaunchError naming the dimension
    that is wrong."""
    if callable(grid):
        grid = grid({**dict(zip(names, values, strict=True)), **options})
    if not isinstance(grid, (tuple, list)):
        grid = (grid,)
    if not 1 <= len(grid) <= 3:
        raise LaunchError(f"a grid has 1 to 3 dimensions, got {len(grid)}: {tuple(grid)!r}")
    sizes = [1, 1, 1]
    for dim, size in enumerate(grid):
        try:
            sizes[dim] = operator.index(size)
        except TypeError:
            value = getattr(size, "value", size)
            if type(value) is not int:
                raise LaunchError(f"grid dimension {dim} should be an integer, got {size!r}") from None
            sizes[dim] = value
        if not 0 <= sizes[dim] <= limits[dim]:
            raise LaunchError(f"grid dimension {dim} is {sizes[dim]}; it must lie between 0 and {limits[dim]}")
    return sizes[0], sizes[1], sizes[2]


def globals_changed(fn: JITCallable) -> bool:
    """Whether a global that the function, or one it calls, was compiled with has another value now."""
    for (name, _), (value, scope) in fn.used_global_vals.items():
        now = scope.get(name, value)
        if now is not value and repr(now) != repr(value):
            return True
    return False


def forget_hashes(fn: JITCallable, seen: set[int]) -> None:
    """Let the function and those it calls be hashed anew, with the globals' values of today."""
    if id(fn) in seen or fn.fn is None:
        return
    seen.add(id(fn))
    fn.hash = None
    fn.used_global_vals = {}
    names = fn.fn.__code__.co_names + fn.fn.__code__.co_freevars
    values = [fn.lookup(name) for name in names]
    modules = [value for value in values if isinstance(value, ModuleType) and not value.__name__.startswith("triton.")]
    values += [getattr(module, name, None) for module in modules for name in names]
    for value in values:
        callee = value if isinstance(value, JITCallable) else getattr(value, "fn", None)
        if isinstance(callee, JITCallable):
            forget_hashes(callee, seen)


def check_options(binder: Binder, options: dict[str, Any], known: frozenset[str]) -> None:
    """Refuse keywords of a launch that are neither parameters nor options of any target."""
    for name in options:
        if name not in known and name not in OPTIONS_OF_SOME_TARGETS:
            raise TypeError(binder.unknown(name, known))


def driver_for(values: list[Any], active: Any) -> Any:
    """The driver for a launch: the active one, unless all arrays are on a device that another driver serves."""
    kind = None
    for value in _leaves(values):
        array = as_array(value) if hasattr(value, "dtype") or hasattr(value, "__dlpack__") else None
        if array is not None:
            here = device_of(array)
            if here in active.device_kinds or (kind is not None and here != kind):
                return active
            kind = here
    return active if kind is None else driver.for_arrays_on(kind)


def place_of(values: list[Any], active: Any) -> tuple[Any, int]:
    """The driver and device for a launch: where its first array is that tells, else the driver's current device."""
    chosen = driver_for(values, active)
    for value in _leaves(values):
        if hasattr(value, "device") and device_of(value) != "cpu" and device_of(value) in chosen.device_kinds:
            index = device_index(value)
            if index is not None:
                return chosen, index
    return chosen, chosen.get_current_device()


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _leaves(value)
        elif hasattr(value, "block_shape") and hasattr(value, "base"):
            yield value.base  # a tensor descriptor's
        else:
            yield value


@dataclass(slots=True)
class _DeviceCache:
    """What a kernel keeps per device. Unpacks like the tuple that PyTorch's exporter reads."""

    kernels: dict[Any, Any]
    keys: dict[Any, str]
    target: Any
    backend: Any
    binder: Binder
    driver: Any
    option_names: frozenset[str]
    texts: dict[Any, str]
    loaded: list[Any]  # code that the native dispatcher may jump to

    def __getitem__(self, index: int) -> Any:
        if index == 0:  # by the text of the key, in which PyTorch's exporter looks for compile-time values
            return {self.texts.get(key, str(key)): kernel for key, kernel in self.kernels.items()}
        return (self.kernels, self.keys, self.target, self.backend, self.binder)[index]


class JITFunction(JITCallable, KernelInterface[T]):
    """A jitted Python function. Launch it with ``fn[grid](...)``; call it, without a grid, only from other kernels."""

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Any = None,
        do_not_specialize_on_alignment: Any = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(fn)
        self.module = fn.__module__
        self.version = version
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        self._repr = repr
        self.launch_metadata = launch_metadata
        self._mark_params()
        self.debug = debug
        self.noinline = bool(noinline)
        self.arg_names = [p.name for p in self.params]
        self.constexprs = [p.num for p in self.params if p.is_constexpr]
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self.kernel = None
        self._init_runtime_state()

    def _mark_params(self) -> None:
        names = {p.name for p in self.params} | {p.num for p in self.params}
        for chosen in (*self.do_not_specialize, *self.do_not_specialize_on_alignment):
            if chosen not in names:
                raise ValueError(f"{self.__name__} has no parameter {chosen!r} to leave unspecialised")
        for param in self.params:
            param.do_not_specialize = param.num in self.do_not_specialize or param.name in self.do_not_specialize
            param.do_not_specialize_on_alignment = (
                param.num in self.do_not_specialize_on_alignment or param.name in self.do_not_specialize_on_alignment
            )

    def _init_runtime_state(self) -> None:
        self.device_caches: dict[Any, _DeviceCache] = {}
        self._native: Any = None  # the native dispatcher, for the driver beside it
        self._native_driver: Any = None
        self._lock = threading.Lock()
        self._hash_lock: Any = None  # PyTorch saves, clears and restores it around pickling
        self._in_flight: dict[Any, threading.Event] = {}

    def _unsafe_update_src(self, new_src: str) -> None:
        super()._unsafe_update_src(new_src)
        self._init_runtime_state()

    # Compiled kernels, locks and hooks belong to the process, so they do not travel.
    def __getstate__(self) -> dict[str, Any]:
        dropped = ("device_caches", "_lock", "_in_flight", "_native", "_native_driver")
        return {name: value for name, value in self.__dict__.items() if name not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._init_runtime_state()

    def repr(self, specialization: Any) -> str:
        """The name of the compiled kernel."""
        return str(self.__name__) if self._repr is None else self._repr(specialization)

    def is_gluon(self) -> bool:
        return False

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call ``hook(*args, **kwargs)`` before every launch."""
        self.pre_run_hooks.append(hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"Cannot call @triton.jit'd outside of the scope of a kernel: launch it with {self.__name__}[grid](...)"
        )

    def __repr__(self) -> str:
        return f"JITFunction({self.module}:{self.__qualname__})"

    # ---- launching --------------------------------------------------------------------------------------------------

    def create_binder(self) -> tuple[dict[Any, Any], dict[Any, str], Any, Any, Binder]:
        """Kernel cache, key cache, target, back end and binder for the current device."""
        cache = self._make_cache(driver.active)
        return cache.kernels, cache.keys, cache.target, cache.backend, cache.binder

    def _make_cache(self, active: Any) -> _DeviceCache:
        compiler = get_compiler()
        self.CompiledKernel = compiler.CompiledKernel
        self.compile = compiler.compile
        self.ASTSource = compiler.ASTSource
        target = active.get_current_target()
        backend = compiler.make_backend(target)
        names = frozenset(vars(backend.parse_options({})))
        return _DeviceCache({}, {}, target, backend, Binder(self.__name__, self.params), active, names, {}, [])

    def _cache_for(self, active: Any, device: int) -> _DeviceCache:
        # Plain numbers for the devices of the usual driver, as PyTorch expects.
        key = device if active is driver.active else (active.device_kinds, device)
        cache = self.device_caches.get(key)
        if cache is None or cache.driver is not active:
            if not self.device_caches or self._native_driver is not driver.active:
                self._make_native(driver.active)
            cache = self.device_caches[key] = self._make_cache(active)
        return cache

    def __getitem__(self, grid: Any) -> T:
        if "run" in self.__dict__ or _INTERPRET in _environment:  # replaced by the user; no need of the native core
            return super().__getitem__(grid)
        return bound_launch()(self._fast_path, self._python_launch, grid)  # type: ignore[no-any-return]

    def _python_launch(self, grid: Any) -> Any:
        return super().__getitem__(grid)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Bind, compile if needed and, unless ``warmup``, launch. Returns the compiled kernel."""
        if not warmup:
            native = self._fast_path()
            if native is not None:
                return native.run(grid, args, kwargs)
        if knobs.runtime.interpret:
            return self._interpret(args, kwargs, grid, warmup)
        return self._run(args, kwargs, grid, warmup)

    def _fast_path(self) -> Any:
        """The native dispatcher, or None where the driver has none or this launch needs Python: hooks, debugging,
        interpretation, a changed global."""
        settings = knobs.runtime.__dict__
        enter, leave = settings["launch_enter_hook"], settings["launch_exit_hook"]
        if (
            self._native_driver is None
            or driver._active is not self._native_driver
            or self.pre_run_hooks
            or self.debug
            or settings["debug"]
            or (enter.calls if enter.__class__ is HookChain else enter)  # asking the chain itself takes a call
            or (leave.calls if leave.__class__ is HookChain else leave)
            or _INTERPRET in _environment
            or "interpret" in settings
        ):
            return None
        if self.used_global_vals and globals_changed(self):
            return None
        return self._native

    def _make_native(self, active: Any) -> None:
        """Set up the native dispatcher for launches to come, where the driver can use one."""
        self._native_driver = self._native = None
        if active.native_launch:
            self._native = make_dispatcher(self.__name__, self.params, self._on_miss, active.gpu)
            self._native_driver = active

    def _on_miss(
        self, key: bytes, bound: tuple[Any, ...], classes: Any, options: dict[str, Any], overlap: bool, grid: Any
    ) -> Any:
        """Called by the native dispatcher for arguments of kinds it has not seen: the kernel to launch from now on."""
        values = list(bound)
        chosen, device = place_of(values, driver.active)
        with on_device(chosen, device):
            return self._kernel_for(chosen, device, values, options, overlap, grid)

    def _kernel_for(
        self, active: Any, device: int, values: list[Any], options: dict[str, Any], overlap: bool, grid: Any
    ) -> Any:
        """What the native dispatcher asked for, on the device where the arguments are."""
        cache = self._cache_for(active, device)
        kernel = self._find(cache, values, options, device, False)
        if kernel is None:
            return None
        if isinstance(kernel, FutureKernel):
            kernel = kernel.result()
        run = kernel.run
        try:
            chosen = run.native_choice(values, overlap)
        except LaunchError:
            resolve_grid(grid, cache.binder.names, values, options, active.max_grid)
            raise
        if chosen is None or not active.native_launch:  # the native side cannot pass such arguments
            return self._launch_over(kernel, grid, cache, values, options, active, device)
        cache.loaded.append(chosen.module)
        return run.native_kernel(chosen, kernel)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, warmup: bool) -> Any:
        active = driver.active
        device = active.get_current_device()
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        if self.used_global_vals and globals_changed(self):
            forget_hashes(self, set())
            self.device_caches.clear()
        cache = self._cache_for(active, device)
        values, options = cache.binder.bind(args, kwargs)
        if not warmup:
            active, device = place_of(values, active)
        with on_device(active, device):
            cache = self._cache_for(active, device)
            kernel = self._find(cache, values, options, device, warmup)
            if kernel is None or warmup:
                return kernel
            return self._launch_over(kernel, grid, cache, values, options, active, device)

    def _find(self, cache: _DeviceCache, values: list[Any], options: dict[str, Any], device: int, warmup: bool) -> Any:
        """The kernel for these values, compiled if need be; None when a hook declined."""
        if self.debug or knobs.runtime.debug:
            options = {**options, "debug": True}
        specialization = cache.binder.specialize(values)
        key = (specialization, tuple(options.items())) if options else (specialization, ())
        kernel = cache.kernels.get(key)
        if kernel is None:
            kernel = self._compile_once(cache, key, values, options, device, warmup)
        return kernel

    def _launch_over(
        self,
        kernel: Any,
        grid: Any,
        cache: _DeviceCache,
        values: list[Any],
        options: dict[str, Any],
        active: Any,
        device: int,
    ) -> Any:
        sizes = resolve_grid(grid, cache.binder.names, values, options, active.max_grid)
        if 0 in sizes:
            return kernel
        if isinstance(kernel, FutureKernel):
            kernel = kernel.result()
        self._launch(kernel, sizes, active.get_current_stream(device), values)
        return kernel

    def _launch(self, kernel: Any, sizes: tuple[int, int, int], stream: int, values: list[Any]) -> None:
        enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        metadata = kernel.launch_metadata(sizes, stream, *values) if enter or leave else None
        kernel.run(
            *sizes, stream, kernel.function, kernel.packed_metadata, metadata, enter or None, leave or None, *values
        )

    def _interpret(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, warmup: bool) -> None:
        """Run through the reference interpreter; options that only tune code are accepted and ignored."""
        compiler = get_compiler()
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        binder = Binder(self.__name__, self.params)
        values, options = binder.bind(args, kwargs)
        if self.debug or knobs.runtime.debug:
            options = {**options, "debug": True}
        check_options(binder, options, frozenset(vars(compiler.make_backend(compiler.HOST).parse_options({}))))
        signature, constexprs, attrs = signature_of(self.params, values, binder.specialize(values))
        source = compiler.ASTSource(self, signature, constexprs, attrs)
        sizes = resolve_grid(grid, binder.names, values, options, (2**31 - 1,) * 3)
        if not warmup and 0 not in sizes:
            compiler.interpret(source, options, sizes, values)

    # ---- compiling --------------------------------------------------------------------------------------------------

    def _compile_once(
        self, cache: _DeviceCache, key: Any, values: list[Any], options: dict[str, Any], device: int, warmup: bool
    ) -> Any:
        """Compile one specialisation; threads that need the same one wait for the first."""
        while True:
            with self._lock:
                kernel = cache.kernels.get(key)
                if kernel is not None:
                    return kernel
                waiting = self._in_flight.get(key)
                if waiting is None:
                    done = self._in_flight[key] = threading.Event()
                    break
            waiting.wait()
        try:
            kernel = self._do_compile(cache, key, values, options, device, warmup)
            if kernel is not None:
                cache.kernels[key] = kernel
            return kernel
        finally:
            with self._lock:
                del self._in_flight[key]
            done.set()

    def _do_compile(
        self, cache: _DeviceCache, key: Any, values: list[Any], options: dict[str, Any], device: int, warmup: bool
    ) -> Any:
        check_options(cache.binder, options, cache.option_names)
        parsed = cache.backend.parse_options({n: v for n, v in options.items() if n in cache.option_names})
        signature, constexprs, attrs = signature_of(self.params, values, key[0])
        shown = tuple((kind, v if kind == "constexpr" else k) for (kind, k), v in zip(key[0], values, strict=True))
        text = cache.texts[key] = f"{shown}{options}"
        hooks = HookCall(self, text, signature, device, constexprs, parsed, attrs, warmup, cache.target)
        if hooks.call(knobs.runtime.jit_cache_hook, False):
            return None
        source = self.ASTSource(self, signature, constexprs, attrs)
        mode = active_mode.get()
        if mode is None:
            kernel = self.compile(source, target=cache.target, options=parsed.__dict__).launched_by(cache.driver)
            hooks.call(knobs.runtime.jit_post_compile_hook, True)
            return kernel

        def finish(kernel: Any) -> None:
            cache.kernels[key] = kernel
            hooks.call(knobs.runtime.jit_post_compile_hook, True)

        return mode.submit(
            f"{self.cache_key}-{text}",
            lambda: self.compile(source, target=cache.target, options=parsed.__dict__).launched_by(cache.driver),
            finish,
            lambda: cache.kernels.pop(key, None),
        )

    def preload(self, specialization_data: str) -> Any:
        """Compile from the text that hooks get as ``specialization_data``, as a launch with those arguments would."""
        data = json.loads(specialization_data)
        if data["name"] != self.__name__:
            raise RuntimeError(f"specialization data is for {data['name']!r}, this kernel is {self.__name__!r}")
        device = driver.active.get_current_device()
        cache = self._cache_for(driver.active, device)
        constexprs = {tuple(p): from_json(v) for p, v in zip(data["constant_keys"], data["constant_vals"], strict=True)}
        attrs = {tuple(p): [tuple(a) for a in v] for p, v in zip(data["attrs_keys"], data["attrs_vals"], strict=True)}
        signature = {name: tuples(kind) for name, kind in data["signature"].items()}
        options = {name: tuples(value) for name, value in data["options"].items()}
        kernel = self.compile(self.ASTSource(self, signature, constexprs, attrs), target=cache.target, options=options)
        cache.kernels[data["key"]] = kernel
        return kernel


@overload
def jit(fn: Callable[..., T]) -> JITFunction[T]: ...


@overload
def jit(
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Any = None,
    do_not_specialize_on_alignment: Any = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[..., T]], JITFunction[T]]: ...


def jit(
    fn: Any = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Any = None,
    do_not_specialize_on_alignment: Any = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Any:
    """Make a kernel, or a function that kernels call, of a Python function.

    Arguments of a launch that have ``data_ptr()``, an array interface or DLPack become pointers. The function may use
    Python's basic types, the names of ``triton`` and ``triton.language``, its arguments and other jitted functions.

    :param do_not_specialize: names or positions of arguments whose value never selects another compiled version.
    :param do_not_specialize_on_alignment: likewise, for whether they are multiples of 16 or 8.
    :param debug: keep device asserts and checks.
    :param noinline: keep calls of this function as calls.
    :param repr: gives the compiled kernel's name from its specialisation.
    :param launch_metadata: called with (grid, kernel, arguments) for the launch hooks.
    """

    def decorate(function: Any) -> Any:
        if not callable(function):
            raise TypeError(f"@triton.jit expects a function, got {type(function).__name__}")
        if getattr(function, "__name__", "") == "<lambda>" or inspect.iscoroutinefunction(function):
            raise TypeError("@triton.jit expects a function made with def, got a lambda or an async function")
        return JITFunction(
            function,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
        )

    return decorate if fn is None else decorate(fn)


def __getattr__(name: str) -> Any:
    if name == "get_cache_key":
        return importlib.import_module("triton.runtime.cache").get_cache_key
    if name == "BaseBackend":
        return importlib.import_module("triton.backends.compiler").BaseBackend
    if name == "DependenciesFinder":
        return importlib.import_module("triton.frontend.source").DependenciesFinder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
