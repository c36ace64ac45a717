"""What the drivers of GPUs have in common: devices, loading and launching through the maker's library, which the native
core opens when it is first needed."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from .._C import libtriton
from .compiler import GPUTarget
from .driver import Benchmarker, DriverBase, LoadedKernel, Scratch


class NativeGPUDriver(DriverBase):
    """One maker's GPUs. The current device and stream are torch's where torch uses them, else those of the thread.

    A kernel's packed metadata are the keyword arguments of ``GpuDriver.launch`` that are the same at each launch.
    """

    max_grid: ClassVar[tuple[int, int, int]] = (2**31 - 1, 65535, 65535)
    native_launch: ClassVar[bool] = True
    gpu: ClassVar[libtriton.GpuDriver]

    def __init__(self) -> None:
        super().__init__()
        self.gpu.device_count()  # raises with the reason
        self._targets: dict[int, GPUTarget] = {}

    @staticmethod
    @abstractmethod
    def target_of(facts: Mapping[str, Any]) -> GPUTarget:
        """The target that code for a device with these attributes is made for."""

    @classmethod
    def owns(cls, torch: Any) -> bool:
        """Whether the GPUs of this build of torch are this maker's. ROCm builds call theirs ``cuda`` too."""
        return (getattr(getattr(torch, "version", None), "hip", None) is not None) == (cls.gpu is libtriton.hip)

    @classmethod
    def torch(cls) -> Any:
        """torch, when it is loaded and uses these GPUs: it then owns the current device and stream."""
        torch = sys.modules.get("torch")
        return torch if torch is not None and torch.cuda.is_initialized() and cls.owns(torch) else None

    @classmethod
    def is_active(cls) -> bool:
        try:
            return cls.gpu.device_count() > 0
        except libtriton.GpuError:
            return False

    def get_current_device(self) -> int:
        torch = self.torch()
        return torch.cuda.current_device() if torch is not None else self.gpu.current_device()

    def set_current_device(self, device: int) -> None:
        torch = self.torch()
        if torch is not None:
            torch.cuda.set_device(device)
        else:
            self.gpu.set_current_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        torch = self.torch()
        if torch is None:
            return 0
        return int(torch._C._cuda_getCurrentRawStream(self.get_current_device() if device is None else device))

    def get_current_target(self) -> GPUTarget:
        device = self.get_current_device()
        target = self._targets.get(device)
        if target is None:
            target = self._targets[device] = self.target_of(self.gpu.device_attributes(device))
        return target

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return self.gpu.device_attributes(device)

    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        shared, cluster = int(metadata.get("shared", 0)), math.prod(metadata.get("cluster_dims", ()))
        kernel = self.gpu.load(binary, name, shared, self.get_current_device(), cluster)
        return LoadedKernel(kernel, kernel.function, kernel.registers, kernel.local_bytes, kernel.max_threads)

    def launch(self, function: Any, grid: tuple[int, int, int], stream: int, args: bytes, metadata: Any) -> None:
        self.gpu.launch(function, grid, stream, args, **metadata)

    def native_kernel(self, module: Any, function: Any, metadata: Any, owner: Any, scratch: Scratch | None) -> Any:
        if scratch is None:
            return libtriton.GpuLauncher(module, owner, **metadata)
        memory: dict[str, Any] = {"scratch": scratch.bytes, "alignment": scratch.alignment}
        memory["allocate"] = scratch.allocate
        return libtriton.GpuLauncher(module, owner, **metadata, **memory)

    def reaches(self, address: int) -> bool:
        return self.gpu.host_pointer_mapped(address)

    def synchronize(self) -> None:
        self.gpu.synchronize()

    def get_active_torch_device(self) -> Any:
        import torch  # only a caller that uses torch asks

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> Any:
        import torch  # only a caller that uses torch asks

        return torch.cuda

    def get_benchmarker(self) -> Benchmarker:
        from ..testing import do_bench  # testing imports the runtime, which imports the drivers

        return cast(Benchmarker, do_bench)
