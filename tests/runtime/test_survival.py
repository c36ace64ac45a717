"""Kernels that cannot be right: one clear sentence, and the process goes on."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest

import triton
import triton.language as tl
from triton._C import libtriton
from triton.runtime.errors import InterpreterError


@pytest.fixture(params=["cpu", "interpreter"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    if request.param == "interpreter":
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    return request.param


@triton.jit
def read_kernel(address, z):
    tl.store(z, tl.load(address.to(tl.pointer_type(tl.float32))))


@triton.jit
def write_kernel(address):
    tl.store(address.to(tl.pointer_type(tl.float32)), 1.0)


def still_works() -> None:
    x, z = np.full(1, 7, np.float32), np.zeros(1, np.float32)
    read_kernel[(1,)](x.ctypes.data, z)
    assert z[0] == 7


CODE = ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is mapped is known on Linux")
@pytest.mark.parametrize("address", [8, 0x1000, 1 << 46, 1 << 61, -8])
def test_reading_wild_addresses(place: str, address: int) -> None:
    error, text = (
        (InterpreterError, r"test_survival.py:\d+:\d+: access to address 0x[0-9a-f]+, which cannot be read")
        if place == "interpreter"
        else (libtriton.KernelFault, "^kernel 'read_kernel': segmentation fault")
    )
    with pytest.raises(error, match=text):
        read_kernel[(1,)](address, np.zeros(1, np.float32))
    still_works()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is mapped is known on Linux")
@pytest.mark.parametrize("address", [8, 1 << 46, CODE])
def test_writing_wild_addresses(place: str, address: int) -> None:
    error, text = (
        (InterpreterError, "which cannot be written")
        if place == "interpreter"
        else (libtriton.KernelFault, "^kernel 'write_kernel': segmentation fault at|non-canonical")
    )
    with pytest.raises(error, match=text):
        write_kernel[(1,)](address)
    still_works()


def test_memory_mapped_later_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter looks again before it refuses."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    still_works()
    arrays = [np.full(1 << 22, i, np.float32) for i in range(4)]
    z = np.zeros(1, np.float32)
    for i, array in enumerate(arrays):
        read_kernel[(1,)](array.ctypes.data + 4 * (array.size - 1), z)
        assert z[0] == i


@pytest.mark.parametrize("depth", [65, 5000])
def test_tuples_without_end(place: str, depth: int) -> None:
    value: object = (1,)
    for _ in range(depth):
        value = (value,)
    cyclic: list[object] = [1]
    cyclic.append(cyclic)

    @triton.jit
    def kernel(x, t):
        tl.store(x, 1.0)

    for wrong in (value, cyclic):
        with pytest.raises(TypeError, match="argument 't': tuples are nested more than 64 deep"):
            kernel[(1,)](np.zeros(1, np.float32), wrong)


def test_a_grid_without_end_uses_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")

    @triton.jit
    def kernel(x):
        tl.device_assert(tl.program_id(0) < 2, "enough")

    with pytest.raises(InterpreterError, match="enough"):
        kernel[(2**31 - 1, 2**31 - 1, 2**31 - 1)](np.zeros(1, np.float32), debug=True)
