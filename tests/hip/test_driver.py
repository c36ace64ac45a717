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
        assert libtriton.hip_device_count() == 2 and libtriton.hip_current_device() == 0
        facts = libtriton.hip_device_attributes(1)
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
        except libtriton.HipError as error:
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
        kernel = libtriton.hip_load(ELF, "add", 1)
        assert (kernel.registers, kernel.local_bytes, kernel.static_shared) == (40, 16, 512)
        assert (kernel.max_threads, kernel.device) == (1024, 1)
        assert calls() == [
            "hipInit 0", "hipSetDevice 1", "hipModuleLoadDataEx 0 on 1", "hipModuleGetFunction add", "hipSetDevice 0"
        ]
        fake.fake_slots(2)
        args = (0x7f12).to_bytes(8, "little") + (5).to_bytes(8, "little")
        libtriton.hip_launch(kernel.function, (4, 5, 6), 256, 64, 0xab, args, False)
        libtriton.hip_launch(kernel.function, (1, 1, 1), 128, 0, 0, args, True)
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
            'libtriton.hip_load(b"junk" * 20, "add", 0)',
            "",
            "refuses the code object: device kernel image is invalid (hipErrorInvalidImage)",
        ),
        ('libtriton.hip_load(ELF, "missing", 0)', "", "missing: some error (hipErrorOther)"),
        ('libtriton.hip_load(ELF, "add", 0)', "hipFuncGetAttribute", "hipFuncGetAttribute: some error"),
        ("libtriton.hip_synchronize()", "hipDeviceSynchronize", "a kernel failed: some error"),
        ("libtriton.hip_allocate(16)", "hipMalloc", "hipMalloc: some error"),
        ("libtriton.hip_device_count()", "hipInit", "the HIP runtime does not start: some error"),
        ("libtriton.hip_device_attributes(0)", "hipDeviceGetAttribute", "some error"),
    ],
)
def test_errors_are_exceptions(library, call, failing, message):
    run(
        f"""
        fake.fake_fail({failing!r}.encode(), 719)
        try:
            {call}
        except libtriton.HipError as error:
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
        except libtriton.HipError as error:
            assert str(error).startswith("no HIP runtime: /nowhere/libamdhip64.so cannot be opened ("), error
        else:
            raise AssertionError("no error")
        """
    env = {**os.environ, "TRITON_LIBHIP_PATH": "/nowhere/libamdhip64.so"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_kernel_is_compiled_loaded_and_launched(library):
    """The whole way: ``kernel[grid](...)`` picks the GPU's architecture, compiles, loads and launches with its
    arguments."""
    run(
        """
        import features
        from triton.backends.hip import codegen
        from triton.backends.hip.driver import HIPDriver
        class Array:
            def __init__(self, address):
                self.address, self.dtype = address, "float32"
                class device: type, index = "hip", 0
                self.device = device
            def data_ptr(self): return self.address
        triton.runtime.driver.set_active(HIPDriver())
        fake.fake_slots(4)
        x, y, z = (Array(0x1000 * i) for i in (1, 2, 3))
        try:
            kernel = features.add_kernel[(7,)](x, y, z, 1000, BLOCK=256, num_warps=2)
        except RuntimeError as error:
            assert codegen.find_linker() is None and "is not linked: no ld.lld of LLVM 15 or newer" in str(error), error
            sys.exit(0)
        assert kernel.asm["hsaco"][:4] == b"\\x7fELF" and "gfx1100" in kernel.asm["amdgcn"]
        (line,) = [c for c in calls() if c.startswith("hipModuleLaunchKernel")]
        launch = "hipModuleLaunchKernel grid 7 1 1 block 64 1 1 shared 0 stream 0 on 0"
        assert line == launch + " args 1000 2000 3000 3e8", line
        """,
        library,
    )
