"""A compiled kernel: its code, every stage's text, its metadata, and the handles that launch it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import knobs
from ..backends import make_backend
from ..backends.compiler import GPUTarget
from ..runtime.cache import load_entry
from ..runtime.driver import driver
from ..runtime.errors import OutOfResources
from ..runtime.launch import Launcher


class KernelMetadata:
    """What is known of a compiled kernel, by attribute or by name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the kernel's metadata has no {name!r}; it has {', '.join(self.__dict__)}")

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def keys(self) -> Any:
        return self.__dict__.keys()

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self.__dict__)

    def _asdict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __repr__(self) -> str:
        return f"KernelMetadata({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class LazyDict:
    """A dictionary for launch hooks, completed by functions that run only if a hook looks at it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]] = []

    def get(self) -> dict[str, Any]:
        for func, args in self.extras:
            self.data = {**self.data, **func(*args)}
        self.extras.clear()
        return self.data

    def add(self, func: Callable[..., dict[str, Any]], args: tuple[Any, ...]) -> None:
        self.extras.append((func, args))


class AsmDict(dict[str, Any]):
    """The output of every stage by name. Texts that are not made on the way to the code are made when asked for."""

    target: GPUTarget
    options: dict[str, Any]

    def __missing__(self, key: str) -> Any:
        target = getattr(self, "target", None)
        if target is not None:
            backend = make_backend(target)
            text = backend.render(key, self, backend.parse_options(dict(self.options)))
            if text is not None:
                self[key] = text
                return text
        raise KeyError(f"{key!r} is none of this kernel's stages: {', '.join(self)}")

    def __reduce__(self) -> Any:
        return _restore_asm, (dict(self), getattr(self, "target", None), getattr(self, "options", {}))


def _restore_asm(items: dict[str, Any], target: GPUTarget | None, options: dict[str, Any]) -> AsmDict:
    asm = AsmDict(items)
    if target is not None:
        asm.target, asm.options = target, options
    return asm


class CompiledKernel:
    """One kernel for one specialisation and target.

    ``metadata``, ``asm`` (every stage's text), ``hash`` and ``src`` are there at once; the code is loaded on the device
    at the first launch, or by reading ``run``. Everything in ``__dict__`` apart from ``module`` and ``function`` can be
    pickled; a copy without them loads the code again.
    """

    # What belongs to the process stays out of __dict__, which PyTorch sends to other processes.
    __slots__ = ("__dict__", "__weakref__", "_driver", "_run")
    _run: Launcher | None
    _driver: Any

    def __init__(self, src: Any, metadata_group: dict[str, str], hash: str) -> None:
        (index,) = (path for name, path in metadata_group.items() if name.endswith(".json"))
        folder = _Folder(metadata_group)
        entry = load_entry(folder, os.path.splitext(os.path.basename(index))[0])  # type: ignore[arg-type]
        if entry is None:
            raise RuntimeError(f"the cached kernel {index} is damaged")
        metadata, files, paths = entry
        self._set(src, metadata, files, paths, hash)

    @classmethod
    def from_parts(
        cls, src: Any, metadata: dict[str, Any], files: Mapping[str, bytes], paths: dict[str, str], hash: str
    ) -> CompiledKernel:
        """A kernel from the contents of its files."""
        kernel = cls.__new__(cls)
        kernel._set(src, metadata, files, paths, hash)
        return kernel

    def _set(
        self, src: Any, metadata: dict[str, Any], files: Mapping[str, bytes], paths: dict[str, str], hash: str
    ) -> None:
        target = metadata["target"]
        if isinstance(target, dict):
            target = GPUTarget(**target)
        metadata = {**metadata, "target": target}
        self._run = None
        self.src = src
        self.hash = hash
        self.metadata = KernelMetadata(metadata)
        self.name: str = metadata["name"]
        backend = make_backend(target)
        self.packed_metadata = backend.pack_metadata(self.metadata)
        self.metadata_group = paths
        self.asm = AsmDict()
        self.asm.target, self.asm.options = target, dict(metadata["options"])
        self.asm["source"] = src.source_text()
        for name, data in files.items():
            stage = name.rsplit(".", 1)[-1]
            self.asm[stage] = data if stage == backend.binary_ext else data.decode()
        self.kernel: bytes = self.asm[backend.binary_ext]
        self.module: Any = None
        self.function: Any = None
        self.n_regs = self.n_spills = self.n_max_threads = 0

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a program uses."""
        return int(self.metadata.shared)

    @property
    def num_warps(self) -> int:
        return int(self.metadata.num_warps)

    @property
    def run(self) -> Launcher:
        """The launcher: ``run(grid_0, grid_1, grid_2, stream, function, packed_metadata, launch_metadata, enter_hook,
        exit_hook, *args)`` with every parameter in order. Loads the code on the current device if need be."""
        launcher = getattr(self, "_run", None)
        if launcher is None or self.module is None:
            self._init_handles()
            launcher = self._run
        assert launcher is not None
        return launcher

    def _init_handles(self) -> None:
        """Load the code on the current device."""
        if self.module is not None and getattr(self, "_run", None) is not None:
            return
        active = getattr(self, "_driver", None) or driver.for_target(self.metadata.target)
        limit = active.get_device_properties(active.get_current_device()).get("max_shared_mem")
        if limit is not None and self.shared > limit:
            raise OutOfResources(self.shared, limit, "shared memory")
        hooks = knobs.runtime.kernel_load_start_hook
        if hooks:
            hooks(None, None, self.name, self.metadata_group, self.hash)
        loaded = active.load(self.name, self.kernel, self.metadata._asdict())
        self.module, self.function = loaded.module, loaded.function
        self.n_regs, self.n_spills, self.n_max_threads = loaded.n_regs, loaded.n_spills, loaded.n_max_threads
        threads = int(getattr(self.metadata, "threads", 0))
        if 0 < self.n_max_threads < threads:
            self.module = self.function = None
            raise OutOfResources(threads, self.n_max_threads, "threads")
        self._run = Launcher(self, active)
        hooks = knobs.runtime.kernel_load_end_hook
        if hooks:
            hooks(self.module, self.function, self.name, self.metadata_group, self.hash)

    def launched_by(self, chosen: Any) -> CompiledKernel:
        """Bind the kernel to a driver; without this, the active one that fits its target is used."""
        self._driver = chosen
        return self

    def recompile(self, **options: Any) -> CompiledKernel:
        """The same kernel with some options changed."""
        chosen = {**self.metadata.options, **options}
        return _recompile(self, chosen).launched_by(getattr(self, "_driver", None))

    def launch_metadata(self, grid: tuple[int, ...], stream: int, *args: Any) -> LazyDict | None:
        """What launch hooks get; None while no hook is set."""
        if not knobs.runtime.launch_enter_hook and not knobs.runtime.launch_exit_hook:
            return None
        result = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        describe = getattr(self.src.fn, "launch_metadata", None)
        if describe is not None:
            named = dict(zip(self.src.signature, args, strict=True))
            result.add(describe, (grid, self.metadata, named))
        return result

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """``kernel[grid](*args)``: launch this very kernel, without looking at the arguments' types."""
        sizes = (*grid, 1, 1)[:3] if isinstance(grid, (tuple, list)) else (grid, 1, 1)

        def launch(*args: Any, stream: int | None = None) -> None:
            run = self.run
            if stream is None:
                stream = run.current_stream()
            enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
            metadata = self.launch_metadata(sizes, stream, *args)
            run(*sizes, stream, self.function, self.packed_metadata, metadata, enter or None, leave or None, *args)

        return launch

    def close(self) -> None:
        """Let go of the code on the device."""
        if self.module is not None and knobs.runtime.kernel_unload_hook:
            knobs.runtime.kernel_unload_hook(self.module, self.function, self.name, self.metadata_group, self.hash)
        self._run = self.module = self.function = None

    def __del__(self) -> None:
        # At interpreter exit the knobs may be gone already.
        if getattr(self, "module", None) is not None and getattr(knobs, "runtime", None) is not None:
            self.close()


class _Folder:
    """Files by name, for reading a kernel from a list of paths."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths

    def get_file(self, filename: str) -> str | None:
        return self.paths.get(filename)


_recompile: Callable[[CompiledKernel, dict[str, Any]], CompiledKernel]


def set_recompile(function: Callable[[CompiledKernel, dict[str, Any]], CompiledKernel]) -> None:
    """Called by the compiler, which this module cannot import because the compiler makes its objects."""
    global _recompile
    _recompile = function
