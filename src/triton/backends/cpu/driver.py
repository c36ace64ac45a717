"""Runs object files in this process, on the native thread pool."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..._C import libtriton
from ..compiler import GPUTarget
from ..driver import Benchmarker, DriverBase, LoadedKernel, Scratch
from .capabilities import host


class CPUDriver(DriverBase):
    """The only device is the machine itself; a launch returns when the grid has run."""

    device_kinds: ClassVar[tuple[str, ...]] = ("cpu",)
    max_grid: ClassVar[tuple[int, int, int]] = (2**31 - 1, 2**31 - 1, 2**31 - 1)
    checks_overlap: ClassVar[bool] = True
    native_launch: ClassVar[bool] = True

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", "", 32)

    def __init__(self) -> None:
        super().__init__()
        # Half the last cache: what a launch writes is left in it, for the next one, while there is room for the rest.
        libtriton.set_streaming_bytes(last_cache_bytes() // 2)

    def load(self, name: str, binary: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
        code = libtriton.jit_load(binary)
        scratch, waits = int(metadata.get("scratch_bytes", 0)), bool(metadata.get("waits"))
        return LoadedKernel(code, (code.address(name), scratch, waits))

    def launch(self, function: Any, grid: tuple[int, int, int], stream: int, args: bytes, metadata: Any) -> None:
        address, scratch, waits = function
        libtriton.cpu_launch(address, args, grid, scratch, waits=waits)

    def native_kernel(self, module: Any, function: Any, metadata: Any, owner: Any, scratch: Scratch | None) -> Any:
        address, scratch_bytes, waits = function
        return libtriton.CpuKernel(address, scratch_bytes, owner, waits=waits)

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return {
            "name": host().cpu,
            "max_shared_mem": 1 << 30,
            "max_num_regs": 1 << 16,
            "multiprocessor_count": os.cpu_count() or 1,
            "warpSize": 32,
        }

    def get_benchmarker(self) -> Benchmarker:
        return benchmark


def last_cache_bytes(folder: str = "/sys/devices/system/cpu/cpu0/cache") -> int:
    """The size of the largest cache, as far as the system tells; else a common one."""
    sizes = []
    for path in Path(folder).glob("index*/size"):
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        number, unit = text.rstrip("KMG"), text[len(text.rstrip("KMG")) :]
        if number.isdigit():
            sizes.append(int(number) << {"": 0, "K": 10, "M": 20, "G": 30}.get(unit, 0))
    return max(sizes, default=32 << 20)


def benchmark(
    kernel_call: Callable[[], Any], *, quantiles: Sequence[float], warmup: float = 25, rep: float = 100, **kwargs: Any
) -> Sequence[float]:
    """Milliseconds of a call: its quantiles over about ``rep`` milliseconds, after ``warmup``."""
    kernel_call()
    start = time.perf_counter()
    kernel_call()
    estimate = max(time.perf_counter() - start, 1e-7) * 1e3
    for _ in range(min(1000, int(warmup / estimate))):
        kernel_call()
    times = []
    for _ in range(max(3, min(10000, int(rep / estimate)))):
        start = time.perf_counter()
        kernel_call()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    return [times[min(len(times) - 1, int(q * (len(times) - 1) + 0.5))] for q in quantiles]
