"""NVIDIA GPUs, through the CUDA driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..._C import libtriton
from ..compiler import GPUTarget
from ..gpu_driver import NativeGPUDriver
from .capabilities import WARP


class CUDADriver(NativeGPUDriver):
    """NVIDIA GPUs."""

    device_kinds: ClassVar[tuple[str, ...]] = ("cuda",)
    gpu: ClassVar[libtriton.GpuDriver] = libtriton.cuda

    @staticmethod
    def target_of(facts: Mapping[str, Any]) -> GPUTarget:
        return GPUTarget("cuda", facts["major"] * 10 + facts["minor"], WARP)
