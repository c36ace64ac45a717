"""The HIP driver against a stand-in for the runtime, ``fake_hip.c``, which writes down every call. Each test is a
process of its own, because a process finds its runtime once."""

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PRELUDE = """
import ctypes, os, sys
sys.path[:0] = {paths!r}
import triton
from triton._C import libtriton
fake = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])
fake.fake_lines.restype = ctypes.c_char_p
fake.fake_slots.argtypes = [ctypes.c_size_t]
fake.fake_pinned.argtypes = [ctypes.c_void_p]
class Array:
    def __init__(self, address, device=0):
        self.address, self.dtype = address, "float32"
        self.device = type("device", (), {{"type": "cuda", "index": device}})
    def data_ptr(self): return self.address
def launches():
    return [c for c in calls() if c.startswith("hipModuleLaunch")]
def calls():
    text = fake.fake_lines().decode().splitlines()
    fake.fake_forget()
    return text
ELF = b"\\x7fELF" + bytes(12) + (3).to_bytes(2, "little") + bytes(46)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    configured = (sysconfig.get_config_var("CC") or "").split()[:1]
    compiler = next(filter(None, map(shutil.which, (*configured, "cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform == "win32":
        pytest.skip("needs a C compiler")
    target = tmp_path_factory.mktemp("fake") / "libfakehip.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(HERE / "fake_hip.c"), "-o", str(target)], check=True)
    return target


def run(code, library, **env):
    text = PRELUDE.format(paths=[str(HERE), str(HERE.parent)]) + textwrap.dedent(code)
    full = {**os.environ, "TRITON_LIBHIP_PATH": str(library), **env}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=full)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_device_facts(library):
    run(
        """
        assert libtriton.hip.device_count() == 2 and libtriton.hip.current_device() == 0
        facts = libtriton.hip.device_attributes(1)
        assert facts["arch"] == "gfx942:sramecc+:xnack-" and facts["name"] == "Fake GPU 1"
        assert facts["warpSize"] == 64 and facts["multiprocessor_count"] == 96 and facts["max_shared_mem"] == 65536
        from triton.backends.hip.driver import HIPDriver
        driver = HIPDriver()
        assert HIPDriver.is_active() and driver.get_current_stream() == 0
        target = driver.get_current_target()
        assert (target.backend, target.arch, target.warp_size) == ("hip", "gfx1100", 32)
        driver.set_current_device(1)
        assert (driver.get_current_target().arch, driver.get_current_target().warp_size) == ("gfx942", 64)
        assert driver.utils.get_device_properties(0)["max_shared_mem"] == 65536
        try:
            driver.set_current_device(7)
        except libtriton.GpuError as error:
            assert str(error) == "there is no GPU 7; this machine has 2"
        else:
            raise AssertionError("no error")
        """,
        library,
    )


def test_load_launch_unload(library):
    run(
        """
        calls()
        kernel = libtriton.hip.load(ELF, "add", 0, 1)
        assert (kernel.registers, kernel.local_bytes, kernel.static_shared) == (40, 16, 512)
        assert (kernel.max_threads, kernel.device) == (1024, 1)
        assert calls() == [
            "hipInit 0", "hipSetDevice 1", "hipModuleLoadDataEx 0 on 1", "hipModuleGetFunction add", "hipSetDevice 0"
        ]
        fake.fake_slots(2)
        args = (0x7f12).to_bytes(8, "little") + (5).to_bytes(8, "little")
        libtriton.hip.launch(kernel.function, (4, 5, 6), 0xab, args, 256, shared=64)
        libtriton.hip.launch(kernel.function, (1, 1, 1), 0, args, 128, cooperative=True)
        assert calls() == [
            "hipModuleLaunchKernel grid 4 5 6 block 256 1 1 shared 64 stream ab on 0 args 7f12 5",
            "hipModuleLaunchCooperativeKernel grid 1 1 1 block 128 1 1 shared 0 stream 0 on 0 args 7f12 5",
        ]
        del kernel
        assert calls() == ["hipSetDevice 1", "hipModuleUnload on 1", "hipSetDevice 0"]
        """,
        library,
    )


@pytest.mark.parametrize(
    "call, failing, message",
    [
        (
            'libtriton.hip.load(b"junk" * 20, "add", 0, 0)',
            "",
            "refuses the code object: device kernel image is invalid (hipErrorInvalidImage)",
        ),
        ('libtriton.hip.load(ELF, "missing", 0, 0)', "", "missing: some error (hipErrorOther)"),
        ('libtriton.hip.load(ELF, "add", 0, 0)', "hipFuncGetAttribute", "what the kernel takes: some error"),
        ("libtriton.hip.synchronize()", "hipDeviceSynchronize", "a kernel failed: some error"),
        ("libtriton.hip.allocate(16)", "hipMalloc", "memory cannot be allocated: some error"),
        ("libtriton.hip.device_count()", "hipInit", "the HIP runtime does not start: some error"),
        ("libtriton.hip.device_attributes(0)", "hipDeviceGetAttribute", "some error"),
    ],
)
def test_errors_are_exceptions(library, call, failing, message):
    run(
        f"""
        fake.fake_fail({failing!r}.encode(), 719)
        try:
            {call}
        except libtriton.GpuError as error:
            assert {message!r} in str(error), error
        else:
            raise AssertionError("no error")
        """,
        library,
    )


def test_without_a_runtime_one_clear_message():
    code = """
        from triton._C import libtriton
        from triton.backends.hip.driver import HIPDriver
        assert not HIPDriver.is_active()
        try:
            HIPDriver()
        except libtriton.GpuError as error:
            assert str(error).startswith("no HIP runtime: /nowhere/libamdhip64.so cannot be opened ("), error
        else:
            raise AssertionError("no error")
        """
    env = {**os.environ, "TRITON_LIBHIP_PATH": "/nowhere/libamdhip64.so"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]


# A kernel whose code is loaded already, in a dispatcher: launches run without Python code in between.
LOADED = """
from triton.runtime.arguments import element_type
libtriton.set_dtype_resolver(element_type)
def dispatcher(launcher, *names):
    n, find = len(names), lambda *call: launcher
    return libtriton.Dispatcher("k", names, (0,) * n, (None,) * n, (...,) * n, find, ..., libtriton.hip)
def launcher(device=0, **options):
    return libtriton.GpuLauncher(libtriton.hip.load(ELF, "add", 0, device), "owner", 64, **options)
"""


def test_native_launches(library):
    run(
        LOADED
        + textwrap.dedent(
            """
        k = dispatcher(launcher(1), "x", "n")
        fake.fake_slots(2)
        calls()
        for n in (7, 8):
            assert k[(n, 2)](Array(0x1000, 1), n) == "owner"
        one = "hipModuleLaunchKernel grid {0} 2 1 block 64 1 1 shared 0 stream 0 on 1 args 1000 {0}"
        there, back = "hipSetDevice 1", "hipSetDevice 0"  # this thread's device stays
        assert calls() == [there, one.format(7), back, there, one.format(8), back]
        k.run((1,), (Array(0x1000, 1), 5), {}, 0xabc)
        assert "stream abc" in launches()[0]
        try:
            k[(1,)](Array(0x1000, 0), 5)
        except ValueError as error:
            assert str(error) == "the kernel is loaded on device 'cuda:1', its arguments are on 'cuda:0'"
        else:
            raise AssertionError("no error")
        fake.fake_slots(1)
        dispatcher(launcher(cooperative=True), "n")[(1,)](5)
        assert launches()[0].startswith("hipModuleLaunchCooperativeKernel")
        for options in ({"blocks": 2}, {"cluster": (2, 1, 1)}, {"overlap": True}):
            try:
                launcher(**options)
            except libtriton.GpuError as error:
                assert str(error) == "AMD GPUs have no clusters of workgroups and no dependent launches"
            else:
                raise AssertionError("no error")
        """
        ),
        library,
    )


def test_native_launches_go_to_torchs_device_and_stream(library):
    """A ROCm build of torch goes by CUDA's names; one for CUDA has no say about AMD GPUs."""
    code = """
        import types
        torch, core, cuda, version = (types.ModuleType(n) for n in ("torch", "torch._C", "torch.cuda", "torch.version"))
        core._cuda_getDevice = lambda: 1
        core._cuda_getCurrentRawStream = lambda device: 0x100 * (device + 1)
        cuda.is_initialized, version.hip = lambda: True, os.environ.get("ROCM")
        torch._C, torch.cuda, torch.version = core, cuda, version
        sys.modules.update({"torch": torch, "torch._C": core, "torch.cuda": cuda})
        first, second = launcher(0), launcher(1)
        devices = []
        def choose(key, values, *rest):
            devices.append(key[1])
            return second if key[1] == 1 else first
        k = libtriton.Dispatcher("k", ("n",), (0,), (None,), (...,), choose, ..., libtriton.hip)
        k[(1,)](5)
        print(launches()[0].split("stream ")[1].split(" args")[0], devices)
        """
    assert run(LOADED + textwrap.dedent(code), library, ROCM="6.3.1").strip() == "200 on 1 [1]"
    assert run(LOADED + textwrap.dedent(code), library).strip() == "0 on 0 [0]"


def test_native_launches_reach_pinned_host_memory_only(library):
    run(
        LOADED
        + textwrap.dedent(
            """
        import numpy as np
        host = np.zeros(4, np.float32)
        k = dispatcher(launcher(), "x")
        try:
            k[(1,)](host)
        except ValueError as error:
            assert str(error) == "argument 'x' is on device 'cpu', the launch needs 'cuda:0'"
        else:
            raise AssertionError("no error")
        fake.fake_pinned(host.ctypes.data)
        k[(1,)](host)
        assert len(launches()) == 1
        """
        ),
        library,
    )


def test_native_launches_are_fast(library):
    """About 2 µs with a runtime that does nothing; the bound leaves room for a busy machine."""
    run(
        LOADED
        + textwrap.dedent(
            """
        import time
        k = dispatcher(launcher(), *"abcdefghij")[(1,)]
        arrays = [Array(256 * i) for i in range(5)]
        fake.fake_quiet(1)
        best = 1.0
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(500):
                k(*arrays, 7, 17, 33, 100, 1000)
            best = min(best, (time.perf_counter() - start) / 500)
        assert best < 15e-6, best
        """
        ),
        library,
    )


def test_a_kernel_is_compiled_loaded_and_launched(library):
    """The whole way: ``kernel[grid](...)`` picks the GPU's architecture, compiles, loads and launches with its
    arguments."""
    run(
        """
        import features
        from triton.backends.hip import codegen
        from triton.backends.hip.driver import HIPDriver
        triton.runtime.driver.set_active(HIPDriver())
        fake.fake_slots(4)
        x, y, z = (Array(0x1000 * i) for i in (1, 2, 3))
        try:
            kernels = [features.add_kernel[(7,)](x, y, z, 1000, BLOCK=256, num_warps=2) for _ in range(3)]
        except RuntimeError as error:
            assert codegen.find_linker() is None and "is not linked: no ld.lld of LLVM 15 or newer" in str(error), error
            sys.exit(0)
        kernel = kernels[0]
        assert kernel.asm["hsaco"][:4] == b"\\x7fELF" and "gfx1100" in kernel.asm["amdgcn"]
        assert kernels == [kernel] * 3 and len(features.add_kernel._native) == 1  # found by the native dispatcher
        line, *others = launches()
        assert others == [line] * 2
        launch = "hipModuleLaunchKernel grid 7 1 1 block 64 1 1 shared 0 stream 0 on 0"
        assert line == launch + " args 1000 2000 3000 3e8", line
        """,
        library,
    )
