"""Two GPUs that run nothing, for tests of the CUDA driver and launches where there is no GPU.

``native/fake_cuda.c`` stands in for the driver's library and writes down every call. A process finds its driver once,
so tests marked with :func:`on_fake_gpu` run in a worker process of their own: one for tests with a stand-in for torch,
one for those without.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.util
import inspect
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent / "native" / "fake_cuda.c"
MEMORY = 0x7F0000000000  # where GPU 0's memory starts; GPU 1's is 2**32 further


@functools.cache
def library() -> Path | None:
    """The stand-in, compiled; None where there is no C compiler."""
    configured = (sysconfig.get_config_var("CC") or "").split()[:1]
    compiler = next(filter(None, map(shutil.which, (*configured, "cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform == "win32":
        return None
    folder = tempfile.mkdtemp(prefix="triton-fake-cuda-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder) / "libfakecuda.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(SOURCE), "-o", str(target), "-lpthread"], check=True)
    return target


class Device:
    def __init__(self, index: int | None) -> None:
        self.type, self.index = "cuda", index


class Tensor:
    """An array on a GPU, as far as launches look."""

    def __init__(self, offset: int = 0, device: int = 0, dtype: str = "float32", told: bool = True) -> None:
        self.address = MEMORY + (device << 32) + offset
        self.device = Device(device if told else None)
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self.address


class Gpu:
    """What a test does with the stand-in."""

    def __init__(self, path: str, with_torch: bool) -> None:
        self.library = ctypes.CDLL(path)
        self.library.fake_lines.restype = ctypes.c_char_p
        self.library.fake_pinned.argtypes = [ctypes.c_uint64]
        self.streams = {0: 0, 1: 0}
        if with_torch:
            self._pretend_torch()

    def _pretend_torch(self) -> None:
        torch, core, cuda = (types.ModuleType(name) for name in ("torch", "torch._C", "torch.cuda"))
        current = self.library.fake_current_device
        core._cuda_getDevice = cuda.current_device = lambda: max(0, current())
        core._cuda_getCurrentRawStream = lambda device: self.streams[device]
        cuda.is_initialized = lambda: True
        cuda.set_device = self.library.fake_set_current_device
        torch._C, torch.cuda = core, cuda
        sys.modules.update({"torch": torch, "torch._C": core, "torch.cuda": cuda})

    def reset(self) -> None:
        self.library.fake_reset()
        self.library.fake_set_current_device(-1)
        self.streams.update({0: 0, 1: 0})

    def fail(self, call: str, result: int) -> None:
        """Let a function of the driver fail from now on; 0: no more."""
        self.library.fake_fail(call.encode(), result)

    def slots(self, count: int) -> None:
        """How many arguments launches are to be written down with."""
        self.library.fake_parameters(count)

    @property
    def calls(self) -> list[str]:
        return self.library.fake_lines().decode().splitlines()

    def forget(self) -> None:
        """Start the list of calls anew."""
        self.library.fake_forget()

    @property
    def launches(self) -> list[dict[str, Any]]:
        pattern = (
            r"(?P<call>cuLaunchKernel(Ex)?) on (?P<device>-?\d+) function (?P<function>\d+) grid (?P<grid>[\d,]+) "
            r"block (?P<block>[\d,]+) shared (?P<shared>\d+) stream (?P<stream>\d+) "
            r"slots (?P<slots>[\da-f,]*)(?P<more>.*)"
        )
        found = [match.groupdict() for match in map(re.compile(pattern).fullmatch, self.calls) if match]
        for launch in found:
            for name in ("device", "function", "shared", "stream"):
                launch[name] = int(launch[name])
            for name in ("grid", "block"):
                launch[name] = tuple(map(int, launch[name].split(",")))
            launch["slots"] = [int(text, 16) for text in launch["slots"].split(",") if text]
            launch["more"] = launch["more"].strip()
        return found


# ---- in the worker --------------------------------------------------------------------------------------------------

_gpu: Gpu | None = None
_modules: dict[str, Any] = {}


def _start(path: str, with_torch: bool) -> None:
    global _gpu
    os.environ["TRITON_LIBCUDA_PATH"] = path
    os.environ.pop("TRITON_DEFAULT_BACKEND", None)
    os.environ.pop("TRITON_INTERPRET", None)
    _gpu = Gpu(path, with_torch)


def _call(file: str, name: str, arguments: dict[str, Any]) -> None:
    if file not in _modules:
        spec = importlib.util.spec_from_file_location("fake_gpu_" + Path(file).stem, file)
        assert spec is not None and spec.loader is not None
        _modules[file] = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_modules[file])
    assert _gpu is not None
    _gpu.reset()
    try:
        getattr(_modules[file], name).__wrapped__(**arguments, gpu=_gpu)
    finally:
        _gpu.reset()


# ---- in the tests' process ------------------------------------------------------------------------------------------


@functools.cache
def _worker(with_torch: bool) -> ProcessPoolExecutor:
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start, (str(library()), with_torch))
    atexit.register(pool.shutdown)
    return pool


def on_fake_gpu(test: Callable[..., None] | None = None, *, torch: bool = False) -> Any:
    """Run the test in a process whose GPUs are the stand-ins; the test gets ``gpu``, a :class:`Gpu`. With ``torch``, a
    module of that name owns the current device and streams."""
    if test is None:
        return functools.partial(on_fake_gpu, torch=torch)
    file, name = test.__code__.co_filename, test.__name__

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        if library() is None:
            pytest.skip("no C compiler, which makes the stand-in for the CUDA driver")
        _worker(torch).submit(_call, file, name, arguments).result(timeout=120)

    # pytest passes what the signature names: everything but gpu.
    names = [p for p in test.__code__.co_varnames[: test.__code__.co_argcount] if p != "gpu"]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return run
