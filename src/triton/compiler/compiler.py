"""``triton.compile``: from a source and a target to a compiled kernel, through the cache."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping
from typing import Any

from .. import __version__, knobs
from ..analysis.written import written_arguments
from ..backends import BaseBackend, all_backends, make_backend
from ..backends.compiler import GPUTarget, Language
from ..diagnostics.bundle import write_bundle
from ..diagnostics.errors import CompilationError
from ..errors import TritonError
from ..ir.core import Module
from ..ir.parser import parse_module
from ..ir.printer import print_module
from ..ir.verifier import verify
from ..knobs import get_cache_invalidating_env_vars
from ..runtime import jit
from ..runtime.cache import (
    get_cache_key,
    get_cache_manager,
    get_dump_manager,
    get_override_manager,
    load_entry,
    read_file,
    short_name,
    store_entry,
    triton_key,
    warn_unwritable,
)
from ..runtime.driver import driver
from ..runtime.errors import InterpreterError, OutOfResources
from ..runtime.launch import flatten
from . import ir_view
from .errors import CodeGenerationError
from .kernel import AsmDict, CompiledKernel, KernelMetadata, LazyDict, set_recompile
from .sources import ASTSource, IRSource

try:
    from .._C import libtriton
except ImportError:
    pass  # the first launch tells
else:
    libtriton.ir = ir_view  # where PyTorch looks for it

__all__ = [
    "ASTSource",
    "AsmDict",
    "BaseBackend",
    "CompileTimer",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "KernelMetadata",
    "Language",
    "LazyDict",
    "OutOfResources",
    "compile",
    "get_cache_invalidating_env_vars",
    "get_cache_key",
    "make_backend",
    "max_shared_mem",
    "triton_key",
]


class CompileTimer:
    """Times of one compile, stage by stage."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.ir_initialization_end: float | None = None
        self.lowering_stage_ends: list[tuple[str, float]] = []
        self.store_results_end: float | None = None

    def finished_ir_initialization(self) -> None:
        self.ir_initialization_end = time.perf_counter()

    def stage_finished(self, stage_name: str) -> None:
        self.lowering_stage_ends.append((stage_name, time.perf_counter()))

    def end(self) -> knobs.CompileTimes:
        self.store_results_end = time.perf_counter()
        begin = self.start if self.ir_initialization_end is None else self.ir_initialization_end
        last = self.lowering_stage_ends[-1][1] if self.lowering_stage_ends else begin
        return knobs.CompileTimes(
            ir_initialization=round((begin - self.start) * 1e6),
            lowering_stages=[(name, round(seconds * 1e6)) for name, seconds in self.stages().items()],
            store_results=round((self.store_results_end - last) * 1e6),
        )

    def stages(self) -> dict[str, float]:
        """Seconds per lowering stage."""
        previous = self.start if self.ir_initialization_end is None else self.ir_initialization_end
        result = {}
        for name, end in self.lowering_stage_ends:
            result[name], previous = end - previous, end
        return result


def compile(
    src: Any, target: GPUTarget | None = None, options: Mapping[str, Any] | None = None, _env_vars: Any = None
) -> CompiledKernel:
    """Compile an ``ASTSource``, an ``IRSource`` or the path of an IR file for ``target`` (default: the active one).

    ``options`` are the back end's: ``num_warps``, ``num_stages``, ``debug``, ... The kernel is read from the cache when
    it was compiled before with the same source, options, tools and code-changing variables.

    Raises CompilationError with the guilty source line for what the language forbids, CodeGenerationError for what the
    back end cannot do.
    """
    timer = CompileTimer()
    if target is None:
        target = driver.active.get_current_target()
    backend = make_backend(target)
    if not isinstance(src, (ASTSource, IRSource)):
        src = IRSource(src, None, backend)
    parsed = backend.parse_options({**src.parse_options(), **(options or {})})
    env_vars = get_cache_invalidating_env_vars() if _env_vars is None else _env_vars
    key = hashlib.sha256(get_cache_key(src, backend, parsed, env_vars).encode()).hexdigest()
    name = short_name(src.name)
    manager = get_cache_manager(key)
    # A hook that changes the stages makes code that the key says nothing about.
    cached = not knobs.compilation.always_compile and knobs.runtime.add_stages_inspection_hook is None
    if cached and not knobs.compilation.override and not knobs.compilation.dump_ir:
        entry = load_entry(manager, name)
        if entry is not None:
            # Options that change no code share an entry; a kernel tells the ones it was asked for.
            metadata = {**entry[0], **vars(parsed), "options": dict(vars(parsed))}
            kernel = CompiledKernel.from_parts(src, metadata, *entry[1:], key)
            _tell_listener(src, kernel, timer, True)
            return kernel
    metadata = _first_metadata(src, key, target, parsed, env_vars)
    outputs = _Stages(src, backend, parsed, metadata, timer, name).run()
    files = {f"{name}.{stage}": data for stage, data in outputs.items()}
    paths: dict[str, str] = {}
    if knobs.compilation.store_binary_only:
        files = {n: data for n, data in files.items() if n.endswith("." + backend.binary_ext)}
    if cached or knobs.compilation.always_compile:
        try:
            paths = store_entry(manager, name, metadata, files)
        except OSError as error:
            warn_unwritable(error)
    kernel = CompiledKernel.from_parts(src, metadata, files, paths, key)
    _tell_listener(src, kernel, timer, False)
    return kernel


def _first_metadata(src: Any, key: str, target: GPUTarget, options: Any, env_vars: Mapping[str, str]) -> dict[str, Any]:
    own = dict(vars(options))
    return {
        **own,
        **env_vars,
        "hash": key,
        "target": dict(vars(target)),
        "name": src.name,
        "options": own,
        "shared": 0,
        "num_warps": own.get("num_warps", 1),
        "num_ctas": own.get("num_ctas", 1),
        "global_scratch_size": 0,
        "global_scratch_align": 1,
        "profile_scratch_size": 0,
        "profile_scratch_align": 1,
        "tensordesc_meta": [],
        "written": [],
        "triton_version": __version__,
    }


def _tell_listener(src: Any, kernel: CompiledKernel, timer: CompileTimer, hit: bool) -> None:
    listener = knobs.compilation.listener
    if listener is not None:
        listener(
            src=src,
            metadata=kernel.metadata._asdict(),
            metadata_group=kernel.metadata_group,
            times=timer.end(),
            cache_hit=hit,
        )


class _Stages:
    """One walk through a back end's stages."""

    def __init__(
        self, src: Any, backend: BaseBackend, options: Any, metadata: dict[str, Any], timer: CompileTimer, name: str
    ) -> None:
        self.src = src
        self.backend = backend
        self.options = options
        self.metadata = metadata
        self.timer = timer
        self.name = name
        self.outputs: dict[str, bytes] = {}
        self.hint = ""  # end of the message about code that LLVM or an assembler refused
        self.stages: dict[str, Any] = {}
        backend.add_stages(self.stages, options, src.language)
        hook = knobs.runtime.add_stages_inspection_hook
        if hook is not None:
            hook(self.stages, options, src.language, backend.target)
        self.dump = get_dump_manager(src.hash()) if knobs.compilation.dump_ir else None
        self.override = get_override_manager(src.hash()) if knobs.compilation.override else None

    def run(self) -> dict[str, bytes]:
        """Bytes of every stage's output, in order."""
        value = self.build()
        self.timer.finished_ir_initialization()
        outputs = self.outputs
        names = list(self.stages)
        if self.src.ext not in names:
            raise ValueError(f"{self.src.path}: no stage is called {self.src.ext!r}; stages: {', '.join(names)}")
        for name in names[names.index(self.src.ext) :]:
            # A text of a later stage is that stage's output already; tile IR still goes through its passes.
            if isinstance(value, Module) or name != self.src.ext:
                value = self.stage(name, value)
            value = self.replaced(name, value)
            if isinstance(value, Module) and knobs.compilation.verify:
                verify(value, "layout" if "layouts" in value.attrs else "tile")
            if isinstance(value, Module):
                self.metadata["written"] = list(written_arguments(value))
            data = as_bytes(value)
            outputs[name] = data
            if self.dump is not None:
                self.dump.put(data, f"{self.name}.{name}")
            self.timer.stage_finished(name)
        timings = {"ir": (self.timer.ir_initialization_end or 0.0) - self.timer.start, **self.timer.stages()}
        self.metadata["timings"] = {stage: round(seconds, 6) for stage, seconds in timings.items()}
        return outputs

    def build(self) -> Any:
        try:
            module = self.src.build(self.options, self.backend.capabilities(self.options))
        except CompilationError as error:
            if not knobs.compilation.front_end_debugging:
                error.tell_causes()
            raise
        if self.dump is not None and isinstance(module, Module):
            self.dump.put(as_bytes(module), f"{self.name}.source")
        return module

    def stage(self, name: str, value: Any) -> Any:
        where = self.place(value)
        try:
            return self.stages[name](value, self.metadata)
        except TritonError:
            raise
        except RuntimeError as error:
            # The code generator's own exceptions say what went wrong, but not where.
            said = "\n".join(dict.fromkeys(str(error).splitlines()))  # assembly for lanes fails once for each
            message = f"{where}: kernel {self.src.name!r}: stage {name!r} failed: {said}{self.hint}"
            raise CodeGenerationError(message, name) from error
        except Exception as error:
            message = f"{where}: kernel {self.src.name!r}: the compiler itself failed in stage {name!r}: {error!r}"
            raise CodeGenerationError(message + self.bundle(name, value, error), name) from error

    def bundle(self, name: str, value: Any, error: BaseException) -> str:
        """Keep what is needed to look into a failure; where it lies, as the end of a sentence."""
        files = {
            "kernel.py": self.src.source_text(),
            "signature.txt": f"{self.src.signature}\n{self.src.constants}\n{self.src.attrs}\n",
            "options.txt": f"{self.backend.target}\n{self.options}\n{triton_key()}\n{self.metadata}\n",
            f"before_{name}.txt": as_bytes(value).decode(errors="replace"),
            **{f"{stage}.txt": data.decode(errors="replace") for stage, data in self.outputs.items()},
        }
        try:
            return f"; {write_bundle(knobs.cache.dump_dir, self.name, files, error)} holds what a report needs"
        except OSError as problem:
            return f"; no report could be kept: {problem}"

    def place(self, value: Any) -> str:
        """Where to look for the cause of a failure: the kernel's inline assembly or external call, else the kernel."""
        if isinstance(value, Module):
            op = next((op for op in value.walk() if op.kind in ("inline_asm", "extern") and op.loc is not None), None)
            self.suspect = None if op is None else str(op.loc)
            if op is not None and op.kind == "inline_asm":
                text = f"{' '.join(op.attrs['text'].split())!r} ({op.attrs['constraints']!r})"
                self.hint = f"; inline assembly must be that of the target, here {self.backend.target.backend}: {text}"
        found = getattr(self, "suspect", None)
        if found:
            return str(found)
        fn = self.src.fn
        return f"{fn.file}:{fn.def_file_line_number}" if fn is not None else str(self.src.path)

    def replaced(self, name: str, value: Any) -> Any:
        """A stage's output, or what the user put in its place."""
        path = None
        if self.override is not None:
            path = self.override.get_file(f"{self.name}.{name}")
        chosen = getattr(self.options, "ir_override", None)
        if chosen and str(chosen).endswith(f".{name}"):
            path = str(chosen)
        if path is None:
            return value
        print(f"\noverriding {name} of {self.src.name} with {path}", file=sys.stderr)
        data = read_file(path)
        if data is None:
            raise FileNotFoundError(f"{path}, which is to replace {name} of {self.src.name}, cannot be read")
        if isinstance(value, Module):
            return parse_module(data.decode())
        return data if isinstance(value, bytes) else data.decode()


def as_bytes(value: Any) -> bytes:
    """What is stored of a stage's output."""
    if isinstance(value, Module):
        return print_module(value).encode()
    return value if isinstance(value, bytes) else str(value).encode()


def _recompile(kernel: CompiledKernel, options: dict[str, Any]) -> CompiledKernel:
    """The kernel with other options: from its function where that is at hand, else from its tile IR."""
    target = kernel.metadata.target
    if isinstance(kernel.src, IRSource) or getattr(kernel.src.fn, "fn", None) is not None:
        return compile(kernel.src, target, options)
    backend = make_backend(target)
    parsed = backend.parse_options(options)
    key = hashlib.sha256(f"{kernel.hash}-{sorted(options.items())!r}".encode()).hexdigest()
    metadata = {**kernel.metadata._asdict(), **vars(parsed), "options": dict(vars(parsed)), "hash": key}
    value: Any = parse_module(kernel.asm["ttir"])
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, Language.TRITON)
    files = {f"{kernel.name}.ttir": kernel.asm["ttir"].encode()}
    for name in list(stages)[1:]:
        value = stages[name](value, metadata)
        files[f"{kernel.name}.{name}"] = as_bytes(value)
    return CompiledKernel.from_parts(kernel.src, metadata, files, {}, key)


set_recompile(_recompile)


def max_shared_mem(device: int) -> int:
    """Bytes of shared memory that one program may use on a device."""
    return int(driver.active.get_device_properties(device)["max_shared_mem"])


HOST = GPUTarget("cpu", "", 32)


class _Interpretation:
    """Modules made for the interpreter, by source and options."""

    def __init__(self) -> None:
        self.modules: dict[str, Module] = {}

    def run(self, src: ASTSource, options: dict[str, Any], grid: tuple[int, int, int], values: list[Any]) -> None:
        """Run a kernel on host arrays through the reference interpreter. Raises InterpreterError where the kernel has
        no defined result: an access outside its arguments, a failed assertion."""
        from .. import interpreter  # NumPy is needed only by those who interpret
        from ..runtime.arguments import byte_range, is_readonly

        backend = make_backend(HOST)
        parsed = backend.parse_options(options)
        key = f"{src.hash()}-{sorted(vars(parsed).items())!r}"
        module = self.modules.get(key)
        if module is None:
            module = self.modules[key] = src.build(parsed, backend.capabilities(parsed))
        slots, _, pointers = flatten(src.signature, values, ("cpu",))
        ranges = []
        for pointer in pointers:
            low, high = byte_range(pointer.array)
            ranges.append(interpreter.Range(low, high - low, pointer.name))
        written = written_arguments(module)
        for pointer in pointers:
            if pointer.index in written and is_readonly(pointer.array):
                raise InterpreterError(f"{src.name} writes argument {pointer.name!r}, whose array is read-only")
        try:
            interpreter.run(module, slots, grid, ranges)
        except interpreter.InterpreterError as error:
            raise InterpreterError(str(error)) from error


interpret = _Interpretation().run
jit.set_compiler(sys.modules[__name__])


def __getattr__(name: str) -> Any:
    if name == "backends":
        return all_backends()
    if name in ("get_sass",):
        from ..tools.disasm import get_sass

        return get_sass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
