"""Devices, loading and launching through the CUDA driver, which the native core opens when it is first needed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from ..._C import libtriton
from ..compiler import GPUTarget
from ..driver import Benchmarker, DriverBase, LoadedKernel, Scratch
from .capabilities import WARP


class CUDADriver(DriverBase):
    """NVIDIA GPUs. The current device and stream are torch's where torch uses CUDA, else those of the thread's
    context."""

    device_kinds: ClassVar[tuple[str, ...]] = ("cuda",)
    max_grid: ClassVar[tuple[int, int, int]] = (2**31 - 1, 65535, 65535)
    native_launch: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        libtriton.cuda_device_count()  # raises with the reason
        self._targets: dict[int, GPUTarget] = {}

    @classmethod
    def is_active(cls) -> bool:
        try:
            return libtriton.cuda_device_count() > 0
        except libtriton.CudaError:
            return False

    def get_current_device(self) -> int:
        torch = _torch()
        return torch.cuda.current_device() if torch is not None else libtriton.cuda_current_device()

    def set_current_device(self, device: int) -> None:
        torch = _torch()
        if torch is not None:
            torch.cuda.set_device(device)
        else:
            libtriton.cuda_set_current_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        torch = _torch()
        if torch is None:
            return 0
        return int(torch._C._cuda_getCurrentRawStream(self.get_current_device() if device is None else device))

    def get_current_target(self) -> GPUTarget:
        device = self.get_current_device()
        target = self._targets.get(device)
        if target is None:
            facts = libtriton.cuda_device_attributes(device)
            target = self._targets[device] = GPUTarget("cuda", facts["major"] * 10 + facts["minor"], WARP)
        return target

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return dict(libtriton.cuda_device_attributes(device))

    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        shared = int(metadata.get("shared", 0))
        kernel = libtriton.cuda_load(binary, name, shared, self.get_current_device())
        return LoadedKernel(kernel, kernel.function, kernel.registers, kernel.local_bytes, kernel.max_threads)

    def launch(self, function: Any, grid: tuple[int, int, int], stream: int, args: bytes, metadata: Any) -> None:
        threads, blocks, cluster, shared, cooperative, overlap = metadata
        x, y, z = grid
        if x * blocks > self.max_grid[0]:
            limit = self.max_grid[0] // blocks
            raise ValueError(
                f"grid dimension 0 is {x}; it must lie between 0 and {limit} for programs of {blocks} blocks each"
            )
        libtriton.cuda_launch(
            function, (x * blocks, y, z), threads, cluster, shared, stream, args, cooperative, overlap
        )

    def native_kernel(self, module: Any, function: Any, metadata: Any, owner: Any, scratch: Scratch | None) -> Any:
        threads, blocks, cluster, shared, cooperative, overlap = metadata
        memory = (scratch.bytes, scratch.alignment, scratch.allocate) if scratch is not None else (0, 1, None)
        options = (threads, cluster, shared, cooperative, overlap)
        return libtriton.CudaLauncher(module, owner, *options, *memory, blocks=blocks)

    def reaches(self, address: int) -> bool:
        return libtriton.cuda_host_pointer_mapped(address)

    def synchronize(self) -> None:
        libtriton.cuda_synchronize()

    def get_benchmarker(self) -> Benchmarker:
        from ...testing import do_bench  # testing imports the runtime, which imports the drivers

        return cast(Benchmarker, do_bench)


def _torch() -> Any:
    """torch, when it is loaded and uses CUDA: it then owns the current device and stream."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None
