"""Devices, loading and launching through the HIP runtime, which the native core opens when it is first needed
(experimental)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from ..._C import libtriton
from ..compiler import GPUTarget
from ..driver import Benchmarker, DriverBase, LoadedKernel
from .codegen import is_linked


class HIPDriver(DriverBase):
    """AMD GPUs. The current device and stream are torch's where a ROCm build of torch uses one, else the runtime's."""

    device_kinds: ClassVar[tuple[str, ...]] = ("cuda", "hip")  # ROCm builds of torch call their devices cuda
    max_grid: ClassVar[tuple[int, int, int]] = (2**31 - 1, 65535, 65535)

    def __init__(self) -> None:
        super().__init__()
        libtriton.hip_device_count()  # raises with the reason
        self._targets: dict[int, GPUTarget] = {}

    @classmethod
    def is_active(cls) -> bool:
        try:
            return libtriton.hip_device_count() > 0
        except libtriton.HipError:
            return False

    def get_current_device(self) -> int:
        torch = _torch()
        return torch.cuda.current_device() if torch is not None else libtriton.hip_current_device()

    def set_current_device(self, device: int) -> None:
        torch = _torch()
        if torch is not None:
            torch.cuda.set_device(device)
        else:
            libtriton.hip_set_current_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        torch = _torch()
        if torch is None:
            return 0
        return int(torch._C._cuda_getCurrentRawStream(self.get_current_device() if device is None else device))

    def get_current_target(self) -> GPUTarget:
        device = self.get_current_device()
        target = self._targets.get(device)
        if target is None:
            facts = libtriton.hip_device_attributes(device)
            target = self._targets[device] = GPUTarget("hip", str(facts["arch"]).split(":")[0], int(facts["warpSize"]))
        return target

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return dict(libtriton.hip_device_attributes(device))

    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        if not is_linked(binary):
            raise RuntimeError(
                f"kernel {name!r} is not linked: no ld.lld of LLVM 15 or newer was found when it was compiled "
                "(install lld, or set TRITON_HIP_LLD_PATH)"
            )
        kernel = libtriton.hip_load(binary, name, self.get_current_device())
        return LoadedKernel(kernel, kernel.function, kernel.registers, kernel.local_bytes, kernel.max_threads)

    def launch(self, function: Any, grid: tuple[int, int, int], stream: int, args: bytes, metadata: Any) -> None:
        threads, cooperative = metadata
        libtriton.hip_launch(function, grid, threads, 0, stream, args, cooperative)

    def synchronize(self) -> None:
        libtriton.hip_synchronize()

    def get_active_torch_device(self) -> Any:
        import torch  # only a caller that uses torch asks

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> Any:
        import torch  # only a caller that uses torch asks

        return torch.cuda

    def get_benchmarker(self) -> Benchmarker:
        from ...testing import do_bench  # testing imports the runtime, which imports the drivers

        return cast(Benchmarker, do_bench)


def _torch() -> Any:
    """A ROCm build of torch, when it is loaded and uses its GPU: it then owns the current device and stream."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized() or getattr(torch.version, "hip", None) is None:
        return None
    return torch
