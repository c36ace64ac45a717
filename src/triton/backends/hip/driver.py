"""AMD GPUs, through the HIP runtime (experimental)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..._C import libtriton
from ..compiler import GPUTarget
from ..driver import LoadedKernel
from ..gpu_driver import NativeGPUDriver
from .codegen import is_linked


class HIPDriver(NativeGPUDriver):
    """AMD GPUs. Kernels' shared memory is part of their code objects, so launches ask for none."""

    device_kinds: ClassVar[tuple[str, ...]] = ("cuda", "hip")  # ROCm builds of torch call their devices cuda
    gpu: ClassVar[libtriton.GpuDriver] = libtriton.hip

    @staticmethod
    def target_of(facts: Mapping[str, Any]) -> GPUTarget:
        return GPUTarget("hip", str(facts["arch"]).split(":")[0], int(facts["warpSize"]))

    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        if not is_linked(binary):
            raise RuntimeError(
                f"kernel {name!r} is not linked: no ld.lld of LLVM 15 or newer was found when it was compiled "
                "(install lld, or set TRITON_HIP_LLD_PATH)"
            )
        return super().load(name, binary, metadata)
