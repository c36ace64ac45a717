"""Kernel launches on a GPU with NumPy arrays: their memory is copied to the device, the kernel runs, and it is copied
back.

Arrays that share memory keep sharing it on the device, at the same distances, so that views and overlaps mean the same.
"""

from __future__ import annotations

import ctypes
import functools
import os
from copy import copy as same
from typing import Any

import numpy as np


class DevicePointer:
    """An argument that lies on the GPU."""

    device = "cuda"

    def __init__(self, address: int, dtype: Any) -> None:
        self.address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self.address


def _clusters() -> dict[str, int]:
    """Every program a cluster of TRITON_TEST_CTAS thread blocks, where that is set."""
    given = os.environ.get("TRITON_TEST_CTAS")
    return {"num_ctas": int(given)} if given else {}


@functools.cache
def missing() -> str:
    """Why kernels cannot run on a GPU here; empty when they can."""
    from triton.backends import all_backends

    backends = all_backends()
    if "cuda" not in backends or not backends["cuda"].driver.is_active():
        return "no NVIDIA GPU"
    try:
        import torch
    except ImportError:
        return "torch, which moves the data, is not installed"
    return "" if torch.cuda.is_available() else "torch has no CUDA"


class Memory:
    """The device's copies of the arrays of one launch."""

    def __init__(self) -> None:
        self.spans: dict[tuple[int, int], Any] = {}

    def pointer(self, array: np.ndarray, dtype: Any) -> DevicePointer:
        import torch

        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        low, high = np.lib.array_utils.byte_bounds(root)
        span = self.spans.get((low, high))
        if span is None:
            host = (
                np.frombuffer((ctypes.c_uint8 * (high - low)).from_address(low), np.uint8)
                if high > low
                else np.zeros(0, np.uint8)
            )
            space = torch.empty(high - low + 16, dtype=torch.uint8, device="cuda")
            shift = low % 16  # the same alignment as on the host, so that misaligned arguments stay so
            copy = space[shift : shift + high - low]
            copy.copy_(torch.from_numpy(host.copy()))
            span = self.spans[low, high] = copy
        return DevicePointer(span.data_ptr() + array.__array_interface__["data"][0] - low, dtype)

    def copy_back(self) -> None:
        for (low, high), span in self.spans.items():
            if high > low:
                data = np.ascontiguousarray(span.cpu().numpy())
                ctypes.memmove(low, data.ctypes.data, high - low)


def launch(kernel: Any, grid: Any, args: tuple[Any, ...], meta: dict[str, Any]) -> None:
    """``kernel[grid](*args, **meta)`` on the GPU; NumPy arrays and ``triton.reinterpret`` of them are moved."""
    import torch

    import triton
    from triton.backends import all_backends
    from triton.tools.tensor_descriptor import TensorDescriptor

    memory = Memory()
    meta = {**_clusters(), **meta}

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(moved, value))
        if isinstance(value, TensorDescriptor):
            there = same(value)  # as it is: a new one would be checked anew
            there.base = moved(value.base)
            return there
        if isinstance(value, np.ndarray):
            return memory.pointer(value, value.dtype)
        if isinstance(value, triton.TensorWrapper) and isinstance(value.base, np.ndarray):
            return memory.pointer(value.base, value.dtype)
        return value

    driver = triton.runtime.driver
    before = driver.active
    torch.cuda.init()
    driver.set_active(_driver(all_backends()["cuda"]))
    try:
        kernel[grid](*map(moved, args), **{name: moved(value) for name, value in meta.items()})
        torch.cuda.synchronize()
        memory.copy_back()
    finally:
        driver.set_active(before)


@functools.cache
def _driver(backend: Any) -> Any:
    return backend.driver()


class Compiled(Exception):
    """Ends a test of which only the compilation is wanted."""


def compile_only(kernel: Any, grid: Any, args: tuple[Any, ...], meta: dict[str, Any], arch: int) -> None:
    """Compiles for compute capability ``arch`` down to machine code, without a GPU, and ends the test."""
    compiled = _warm_up(kernel, grid, args, meta, arch)
    # A tuned kernel gives one for each configuration.
    for one in compiled if isinstance(compiled, list) else [compiled]:
        assert one.asm["cubin"]
    raise Compiled


def interpret_laid_out(kernel: Any, grid: Any, args: tuple[Any, ...], meta: dict[str, Any], arch: int) -> None:
    """Runs the laid-out IR of compute capability ``arch`` in the interpreter, where copies land as late as they may."""
    from triton import interpreter
    from triton.ir import parse_module, verify
    from triton.runtime.launch import flatten

    compiled = _warm_up(kernel, grid, args, meta, arch)
    module = parse_module(compiled.asm["ttgir"])
    verify(module, "layout")
    signature = compiled.src.signature
    values = [*args, *(meta[name] for name in list(signature)[len(args) :])]
    slots, _, _ = flatten(signature, values, ("cpu",))
    maps = [0] * (len(module.kernel.args) - len(slots))
    interpreter.run(module, [*slots, *maps], grid)


def _warm_up(kernel: Any, grid: Any, args: tuple[Any, ...], meta: dict[str, Any], arch: int) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class Nowhere(DriverBase):
        device_kinds = ("cpu",)

        @classmethod
        def is_active(cls) -> bool:
            return False

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", arch, 32)

        def load(self, name: str, binary: bytes, metadata: Any) -> Any:
            raise AssertionError("compile-only: nothing is loaded")

        def launch(self, function: Any, grid: Any, stream: int, args: bytes, metadata: Any) -> None:
            raise AssertionError("compile-only: nothing is launched")

        def get_benchmarker(self) -> Any:
            raise AssertionError("compile-only: nothing is timed")

    driver = triton.runtime.driver
    before = driver.active
    driver.set_active(Nowhere())
    try:
        return kernel.warmup(*args, grid=grid, **{**_clusters(), **meta})
    finally:
        driver.set_active(before)
