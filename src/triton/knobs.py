"""Settings, each with the environment variable it reads.

``triton.knobs.<group>.<name>`` reads the variable every time, so a changed environment is seen at once. Assigning sets
the value for the process and, while ``propagate_env`` is true, exports it to ``os.environ`` so that child processes see
it. ``del`` and assigning ``triton.knobs.env`` go back to the environment. An empty variable counts as unset, except for
flags, which it makes false.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypedDict, TypeVar, cast

GetType = TypeVar("GetType")
SetType = TypeVar("SetType")
ClassType = TypeVar("ClassType")
knobs_type = TypeVar("knobs_type", bound="base_knobs")
F = TypeVar("F", bound=Callable[..., Any])

KernelAttr = list[Any]

propagate_env: bool = True

_NVIDIA = os.path.join(os.path.dirname(__file__), "backends", "nvidia")
_TRUE = frozenset({"1", "true", "on", "yes", "y"})


class Env:
    """The type of ``env``: assign it to a knob to go back to the environment variable."""

    def __repr__(self) -> str:
        return "<knobs.env>"


env = Env()


def getenv(key: str) -> str | None:
    """The variable, or None when it is unset."""
    return os.environ.get(key)


def getenv_text(key: str) -> str | None:
    """The variable, or None when it is unset or empty."""
    return os.environ.get(key) or None


def getenv_bool(key: str, default: bool) -> bool:
    """The variable as a flag: 1, true, on, yes and y (any case) are true, anything else is false."""
    value = os.environ.get(key)
    return default if value is None else value.strip().lower() in _TRUE


def toenv(val: Any) -> tuple[str | None] | None:
    """``(text,)`` for what can be exported (None means: unset the variable), None for what cannot."""
    if val is None:
        return (None,)
    if isinstance(val, bool):
        return ("1" if val else "0",)
    if isinstance(val, (str, int)):
        return (str(val),)
    return None


def setenv(key: str, value: str | None) -> None:
    """Set or unset an environment variable while ``propagate_env`` is true."""
    if not propagate_env:
        return
    if value is None:
        os.environ.pop(key, None)
    else:
        os.environ[key] = value


@functools.cache
def warn_once(message: str) -> None:
    """Warn the first time this text is given in this process."""
    warnings.warn(message, stacklevel=2)


class env_base(Generic[SetType, GetType]):
    """A knob backed by the environment variable ``key``."""

    name: str

    def __init__(self, key: str) -> None:
        self.key = key

    def __set_name__(self, objclass: type[object], name: str) -> None:
        self.name = name

    def __get__(self, obj: object | None, objclass: type[object] | None = None) -> GetType:
        if obj is None:
            return cast(GetType, self)
        values = obj.__dict__
        if self.name in values:
            return self.transform(values[self.name])
        return self.get()

    def __set__(self, obj: object, value: SetType | Env) -> None:
        if isinstance(value, Env):
            obj.__dict__.pop(self.name, None)
            return
        obj.__dict__[self.name] = value
        exported = toenv(value)
        if exported is not None:
            setenv(self.key, exported[0])

    def __delete__(self, obj: object) -> None:
        obj.__dict__.pop(self.name, None)

    def get(self) -> GetType:
        raise NotImplementedError

    def transform(self, val: SetType) -> GetType:
        return cast(GetType, val)


class env_str(env_base[str, str]):
    def __init__(self, key: str, default: str) -> None:
        super().__init__(key)
        self.default = default

    def get(self) -> str:
        return getenv_text(self.key) or self.default


class env_str_callable_default(env_base[str, str]):
    def __init__(self, key: str, default_factory: Callable[[], str]) -> None:
        super().__init__(key)
        self.default_factory = default_factory

    def get(self) -> str:
        return getenv_text(self.key) or self.default_factory()


class env_bool(env_base[bool, bool]):
    def __init__(self, key: str, default: bool = False) -> None:
        super().__init__(key)
        self.default = default

    def get(self) -> bool:
        return getenv_bool(self.key, self.default)


class env_int(env_base[int, int]):
    def __init__(self, key: str, default: int = 0) -> None:
        super().__init__(key)
        self.default = default

    def get(self) -> int:
        value = getenv_text(self.key)
        if value is None:
            return self.default
        try:
            return int(value)
        except ValueError:
            raise RuntimeError(f"environment variable {self.key}={value!r} is not an integer") from None


class env_opt_str(env_base["str | None", "str | None"]):
    def get(self) -> str | None:
        return getenv_text(self.key)


class env_opt_bool(env_base["bool | None", "bool | None"]):
    def get(self) -> bool | None:
        return None if getenv(self.key) is None else getenv_bool(self.key, False)


class env_size(env_base["int | str | None", "int | None"]):
    """A number of bytes: ``1000``, ``64k``, ``500M``, ``2G`` (powers of 1024); None when unset."""

    def get(self) -> int | None:
        value = getenv_text(self.key)
        return None if value is None else self.transform(value)

    def transform(self, val: int | str | None) -> int | None:
        if val is None or isinstance(val, int):
            return val
        match = re.fullmatch(r"\s*(\d+)\s*([kKmMgGtT]?)(?:i?[bB])?\s*", val)
        if match is None:
            raise RuntimeError(f"environment variable {self.key}={val!r} is not a size such as 500M or 2G")
        return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match[2].lower()]


class env_class(env_base[Any, Any]):
    """``MODULE:CLASS``; the class is imported when the knob is read."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def get(self) -> Any:
        value = getenv_text(self.key)
        if value is None:
            return None
        module, separator, name = value.partition(":")
        if not separator:
            raise RuntimeError(f"environment variable {self.key}={value!r} should read MODULE:CLASS")
        found = getattr(importlib.import_module(module), name, None)
        if not isinstance(found, type) or self.type not in {c.__name__ for c in found.__mro__}:
            raise RuntimeError(f"environment variable {self.key}={value!r} does not name a subclass of {self.type}")
        return found


@dataclass
class NvidiaTool:
    """A tool of the CUDA toolkit: where it is and the version it reports."""

    path: str
    version: str

    @staticmethod
    @functools.cache
    def from_path(path: str) -> NvidiaTool | None:
        import subprocess  # costs as much to import as this whole module; only GPU tools need it

        try:
            text = subprocess.check_output([path, "--version"], stderr=subprocess.STDOUT, text=True)
        except (OSError, subprocess.SubprocessError):
            return None
        match = re.search(r"release (\d+\.\d+)", text)
        return NvidiaTool(path, match[1]) if match else None


class env_nvidia_tool(env_base[str, NvidiaTool]):
    def __init__(self, binary: str) -> None:
        self.binary = binary + (".exe" if sys.platform == "win32" else "")
        self.default_path = os.path.join(_NVIDIA, "bin", self.binary)
        super().__init__(f"TRITON_{binary.upper().replace('-', '_')}_PATH")

    def get(self) -> NvidiaTool:
        return self.transform(getenv(self.key) or "")

    def transform(self, path: str) -> NvidiaTool:
        for candidate in (path, self.default_path):
            if candidate and os.access(candidate, os.X_OK):
                tool = NvidiaTool.from_path(candidate)
                if tool is not None:
                    return tool
        raise RuntimeError(f"{self.binary} was not found; set {self.key} to where it is")


@dataclass(frozen=True)
class CompileTimes:
    """Microseconds of one compile: building the IR, each lowering stage, storing the results."""

    ir_initialization: int
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @property
    def total_lowering(self) -> int:
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        return self.ir_initialization + self.total_lowering + self.store_results


class CompilationListener(Protocol):
    def __call__(
        self,
        *,
        src: Any,
        metadata: dict[str, Any],
        metadata_group: dict[str, str],
        times: CompileTimes,
        cache_hit: bool,
    ) -> None: ...


class AutotuneListener(Protocol):
    def __call__(
        self,
        *,
        fn: Any,
        key: tuple[Any, ...],
        best_config: Any,
        configs_timings: dict[Any, list[float]],
        duration: float | None,
        cache_hit: bool,
    ) -> None: ...


class BuildImpl(Protocol):
    def __call__(
        self,
        name: str,
        src: str,
        srcdir: str,
        library_dirs: list[str],
        include_dirs: list[str],
        libraries: list[str],
        /,
    ) -> str: ...


class JITHookCompileInfo(TypedDict):
    key: str
    signature: dict[Any, str]
    device: int
    constants: Any
    num_warps: int
    num_ctas: int
    num_stages: int
    enable_fp_fusion: bool
    launch_cooperative_grid: bool
    extern_libs: tuple[tuple[str, str], ...]
    configs: list[dict[tuple[int, ...], list[KernelAttr]]]
    specialization_data: str
    is_warmup: bool


class JITHook(Protocol):
    def __call__(
        self,
        *,
        key: str,
        repr: str,
        fn: Any,
        compile: JITHookCompileInfo,
        is_manual_warmup: bool,
        already_compiled: bool,
    ) -> bool | None: ...


class LaunchHook(Protocol):
    def __call__(self, metadata: Any) -> None: ...


class InitHandleHook(Protocol):
    def __call__(
        self,
        module: object | None,
        function: Callable[..., Any] | None,
        name: str,
        metadata_group: dict[str, str],
        hash: str,
    ) -> None: ...


class PipelineStagesHook(Protocol):
    def __call__(self, stages: Any, options: Any, language: Any, capability: Any) -> Any: ...


class HookChain(Generic[F]):
    """Functions called one after the other. An empty chain is false, so that a launch can skip its hooks cheaply."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[F] = []
        self.reversed = reversed

    def add(self, func: F) -> None:
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: F) -> None:
        if func in self.calls:
            self.calls.remove(func)

    def __bool__(self) -> bool:
        return bool(self.calls)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for call in self.calls if not self.reversed else self.calls[::-1]:
            call(*args, **kwargs)


class base_knobs:
    """A group of knobs."""

    @property
    def knob_descriptors(self) -> dict[str, env_base[Any, Any]]:
        return {name: v for cls in type(self).__mro__ for name, v in vars(cls).items() if isinstance(v, env_base)}

    @property
    def knobs(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self: knobs_type) -> knobs_type:
        """A group with the same values set."""
        result = type(self)()
        result.__dict__.update(self.__dict__)
        return result

    def reset(self: knobs_type) -> knobs_type:
        """Forget every assigned value."""
        self.__dict__.clear()
        type(self).__init__(self)
        return self

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Undo, at the end of a ``with`` block, what was assigned inside it, environment variables included."""
        values = dict(self.__dict__)
        keys = [descriptor.key for descriptor in self.knob_descriptors.values()]
        saved = {key: getenv(key) for key in keys}
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(values)
            for key, value in saved.items():
                if getenv(key) != value:
                    setenv(key, value)


class build_knobs(base_knobs):
    """Kept for programs that set them: nothing here is built with a C compiler at run time."""

    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    impl: BuildImpl | None = None

    @property
    def backend_dirs(self) -> set[str]:
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


class cache_knobs(base_knobs):
    home_dir = env_str("TRITON_HOME", os.path.expanduser("~/"))
    dump_dir = env_str_callable_default("TRITON_DUMP_DIR", lambda: _triton_dir("dump"))
    override_dir = env_str_callable_default("TRITON_OVERRIDE_DIR", lambda: _triton_dir("override"))
    dir = env_str_callable_default("TRITON_CACHE_DIR", lambda: _triton_dir("cache"))
    size = env_size("TRITON_CACHE_SIZE")
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, dirname: str) -> str:
        return os.path.join(self.home_dir, ".triton", dirname)


class compilation_knobs(base_knobs):
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    always_compile = env_bool("TRITON_ALWAYS_COMPILE")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    fpsan_homomorphic_casts = env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS")
    verify = env_bool("TRITON_VERIFY_IR")
    instrumentation_mode: str
    listener: CompilationListener | None = None

    def __init__(self) -> None:
        self.instrumentation_mode = getenv("TRITON_INSTRUMENTATION_MODE") or ""


class autotuning_knobs(base_knobs):
    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    listener: AutotuneListener | None = None


class runtime_knobs(base_knobs):
    interpret = env_bool("TRITON_INTERPRET")
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")
    default_backend = env_opt_str("TRITON_DEFAULT_BACKEND")
    debug: bool
    launch_enter_hook: HookChain[LaunchHook]
    launch_exit_hook: HookChain[LaunchHook]
    kernel_load_start_hook: HookChain[InitHandleHook]
    kernel_load_end_hook: HookChain[InitHandleHook]
    kernel_unload_hook: HookChain[InitHandleHook]
    jit_cache_hook: JITHook | None = None
    jit_post_compile_hook: JITHook | None = None
    add_stages_inspection_hook: PipelineStagesHook | None = None

    def __init__(self) -> None:
        self.debug = getenv_bool("TRITON_DEBUG", False)
        self.launch_enter_hook = HookChain()
        self.launch_exit_hook = HookChain(reversed=True)
        self.kernel_load_start_hook = HookChain()
        self.kernel_load_end_hook = HookChain(reversed=True)
        self.kernel_unload_hook = HookChain()


FP_FUSION_DEFAULT_WARNING = "enable_fp_fusion was not given and TRITON_DEFAULT_FP_FUSION turns contraction off"


class language_knobs(base_knobs):
    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)
    force_disable_fp_fusion = env_bool("TRITON_FORCE_DISABLE_FP_FUSION")

    def fp_fusion_enabled(self, requested: bool | None) -> bool:
        """Whether multiply-add contraction is on, given what the launch asked for (None: nothing)."""
        if self.force_disable_fp_fusion:
            return False
        return self.default_fp_fusion if requested is None else requested


class nvidia_knobs(base_knobs):
    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas = env_nvidia_tool("ptxas")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")
    enable_tma = env_bool("TRITON_ENABLE_TMA", True)


class amd_knobs(base_knobs):
    codegen_path = env_opt_str("TRITON_AMD_CODEGEN_PATH")
    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_opt_bool("TRITON_HIP_USE_ASYNC_COPY")
    use_coexec_scheduler = env_opt_bool("TRITON_HIP_USE_COEXEC_SCHEDULER")
    use_expert_scheduling = env_opt_bool("TRITON_HIP_USE_EXPERT_SCHEDULING")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")
    dump_mir = env_opt_str("TRITON_DUMP_MIR")
    swap_mir = env_opt_str("TRITON_SWAP_MIR")
    swap_mir_enable_misched = env_bool("TRITON_SWAP_MIR_ENABLE_MISCHED")


class proton_knobs(base_knobs):
    disable = env_bool("TRITON_PROTON_DISABLE")
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", os.path.join(_NVIDIA, "lib", "cupti"))
    cupti_lib_blackwell_dir = env_str(
        "TRITON_CUPTI_LIB_BLACKWELL_PATH", os.path.join(_NVIDIA, "lib", "cupti-blackwell")
    )
    hsa_runtime_path = env_opt_str("TRITON_HSA_RUNTIME_PATH")
    hsa_runtime_library = env_opt_str("TRITON_HSA_RUNTIME_LIBRARY")
    rocprofiler_sdk_include_path = env_opt_str("TRITON_ROCPROFILER_SDK_INCLUDE_PATH")
    rocprofiler_sdk_lib_path = env_opt_str("TRITON_ROCPROFILER_SDK_LIB_PATH")
    rocprofiler_sdk_library = env_opt_str("TRITON_ROCPROFILER_SDK_LIBRARY")
    roctracer_lib_path = env_opt_str("TRITON_ROCTRACER_LIB_PATH")
    roctracer_library = env_opt_str("TRITON_ROCTRACER_LIBRARY")
    roctx_lib_path = env_opt_str("TRITON_ROCTX_LIB_PATH")
    roctx_library = env_str("TRITON_ROCTX_LIBRARY", "libroctx64.so")
    profile_buffer_size = env_int("TRITON_PROFILE_BUFFER_SIZE", 64 << 20)
    profile_metric_buffer_size = env_int("TRITON_PROFILE_METRIC_BUFFER_SIZE", 64 << 20)
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)
    enable_hw_trace = env_bool("TRITON_ENABLE_HW_TRACE")


def _triton_dir(name: str) -> str:
    return cache.get_triton_dir(name)


build = build_knobs()
redis = redis_knobs()
cache: cache_knobs = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()

# Variables that change the code that is made; each one that is set becomes part of a kernel's cache key.
_CODE_VARIABLES: tuple[str, ...] = (
    "AMDGCN_ENABLE_DUMP",
    "AMDGCN_USE_BUFFER_ATOMICS",
    "AMDGCN_USE_BUFFER_OPS",
    "DISABLE_LLVM_OPT",
    "DISABLE_MMA_V3",
    "DISABLE_MMA_V5",
    "DISABLE_PTXAS_OPT",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES",
    "NVPTX_ENABLE_DUMP",
    "PTXAS_OPTIONS",
    "TRITON_DEFAULT_FP_FUSION",
    "TRITON_DISABLE_LINE_INFO",
    "TRITON_ENABLE_ASAN",
    "TRITON_ENABLE_TMA",
    "TRITON_F32_DEFAULT",
    "TRITON_FORCE_DISABLE_FP_FUSION",
    "TRITON_HIP_USE_ASYNC_COPY",
    "TRITON_HIP_USE_BLOCK_PINGPONG",
    "TRITON_HIP_USE_COEXEC_SCHEDULER",
    "TRITON_HIP_USE_EXPERT_SCHEDULING",
    "TRITON_HIP_USE_IN_THREAD_TRANSPOSE",
    "TRITON_OVERRIDE_ARCH",
    "USE_IR_LOC",
)


def get_cache_invalidating_env_vars() -> dict[str, str]:
    """The variables that are set and change the code that is made, with their values."""
    return {key: os.environ[key] for key in _CODE_VARIABLES if key in os.environ}


def refresh_knobs() -> None:
    """Read again what is otherwise read once, at import."""
    runtime.debug = getenv_bool("TRITON_DEBUG", False)
    compilation.instrumentation_mode = getenv("TRITON_INSTRUMENTATION_MODE") or ""
