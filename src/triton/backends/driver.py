"""What the runtime asks of a driver: find the device, load machine code, launch it.

A driver knows nothing of kernels' parameters: the runtime hands it arguments already packed, one 8-byte slot each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from .compiler import GPUTarget

_LARGER_THAN_CACHES = 256 << 20  # bytes


class Benchmarker(Protocol):
    def __call__(
        self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float], **kwargs: Any
    ) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """Machine code made ready on a device. ``module`` keeps it alive; ``function`` is what ``launch`` takes."""

    module: Any
    function: Any
    n_regs: int = 0
    n_spills: int = 0
    n_max_threads: int = 0


@dataclass(frozen=True, slots=True)
class Scratch:
    """Global memory that a kernel gets as its last argument: ``bytes`` for each program of the grid.

    ``allocate(bytes, alignment, stream)`` gives something with ``data_ptr()``; it is let go once the launch is queued.
    """

    bytes: int
    alignment: int
    allocate: Callable[[int, int, int | None], Any]


class DriverBase(ABC):
    """One kind of device.

    ``device_kinds``      what arrays on its devices call themselves (``cpu``, ``cuda``, ...).
    ``max_grid``          the largest grid, per dimension.
    ``native_launch``     whether ``native_kernel`` works.
    ``gpu``               the native core's driver of these devices, where they are GPUs that it knows.
    ``checks_overlap``    whether the code relies on tensor arguments not overlapping, unless compiled to allow it.
    """

    device_kinds: ClassVar[tuple[str, ...]] = ()
    max_grid: ClassVar[tuple[int, int, int]] = (2**31 - 1, 65535, 65535)
    native_launch: ClassVar[bool] = False
    gpu: ClassVar[Any] = None
    checks_overlap: ClassVar[bool] = False

    def __init__(self) -> None:
        return None

    @classmethod
    @abstractmethod
    def is_active(cls) -> bool:
        """Whether a device of this kind can be used. Must not raise and must not load anything when it need not."""

    @abstractmethod
    def get_current_target(self) -> GPUTarget:
        """The target that code for the current device is made for."""

    @abstractmethod
    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        """Make the kernel ``name`` of a code object ready to run on the current device."""

    @abstractmethod
    def launch(self, function: Any, grid: tuple[int, int, int], stream: int, args: bytes, metadata: Any) -> None:
        """Run every program of a grid that is not empty. ``args`` holds one 8-byte slot per kernel argument: pointers,
        integers extended to 64 bits, floats in the low bytes."""

    def native_kernel(self, module: Any, function: Any, metadata: Any, owner: Any, scratch: Scratch | None) -> Any:
        """The object by which the native dispatcher launches loaded code without Python; None where it cannot.

        ``metadata`` is what ``launch`` gets. Launches of that kernel return ``owner``.
        """
        return None

    def reaches(self, address: int) -> bool:
        """Whether kernels may use this address in host memory although their device is another."""
        return False

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return None

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def synchronize(self) -> None:
        """Wait for the launches made so far; nothing to do where a launch returns when it is done."""
        return None

    def get_device_properties(self, device: int) -> dict[str, Any]:
        """Facts about a device, for example ``max_shared_mem`` and ``multiprocessor_count``."""
        return {}

    @property
    def utils(self) -> DriverUtils:
        return DriverUtils(self)

    def get_active_torch_device(self) -> Any:
        """The ``torch.device`` of the current device."""
        import torch  # only a caller that uses torch asks

        return torch.device(self.device_kinds[0])

    @abstractmethod
    def get_benchmarker(self) -> Benchmarker:
        """A function that times a call in milliseconds."""

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than the device's caches: writing it (``clear_cache``) empties them between measured runs."""
        import torch  # only a caller that uses torch asks

        return torch.empty(_LARGER_THAN_CACHES // 4, dtype=torch.int, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Writes the buffer of ``get_empty_cache_for_benchmark``."""
        cache.zero_()

    def get_device_interface(self) -> Any:
        """The torch module of the device (``torch.cuda`` for GPUs)."""
        import torch  # only a caller that uses torch asks

        return getattr(torch, self.device_kinds[0])

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of a signature's type name."""
        if ty.startswith("*") or ty.startswith("tensordesc"):
            return "void*"
        names = {"u1": "int8_t", "i1": "int8_t", "fp16": "double", "bf16": "double", "fp32": "double", "fp64": "double"}
        return names.get(ty) or f"{'u' if ty[0] == 'u' else ''}int{ty[1:]}_t"

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: int | None) -> Any:
        return None


@dataclass(frozen=True, slots=True)
class DriverUtils:
    """The part of a driver that PyTorch reaches as ``driver.active.utils``."""

    driver: DriverBase

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return self.driver.get_device_properties(device)

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """``(module, function, registers, spills, most threads)`` of a code object made ready."""
        loaded = self.driver.load(name, binary, {"name": name, "shared": shared})
        return loaded.module, loaded.function, loaded.n_regs, loaded.n_spills, loaded.n_max_threads


GPUDriver = DriverBase
