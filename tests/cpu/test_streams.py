"""Stores past the caches: where a launch's arrays are too large for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import triton
import triton.language as tl
from triton._C import libtriton
from triton.backends.cpu import codegen
from triton.backends.cpu.capabilities import Processor
from triton.backends.cpu.driver import last_cache_bytes


@triton.jit
def step(x_ptr, z_ptr, n, BLOCK: tl.constexpr, READ: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if READ:
        x += tl.load(z_ptr + at, mask=at < n)
    tl.store(z_ptr + at, x + 1, mask=at < n)


@triton.jit
def whole(x_ptr, z_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + at, tl.load(x_ptr + at) * 2)


@pytest.fixture(params=[0, 1 << 60], ids=["past the caches", "into the caches"])
def streaming(request: pytest.FixtureRequest) -> Iterator[None]:
    triton.runtime.driver.active.get_current_target()  # the driver sets its own limit when it is made
    before = libtriton.set_streaming_bytes(request.param)
    yield
    libtriton.set_streaming_bytes(before)


def array(size: int, dtype: str, offset: int) -> np.ndarray:
    """An array that starts ``offset`` bytes after a cache line does."""
    space = np.zeros(size * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -space.ctypes.data % 64 + offset
    return space[start : start + size * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
@pytest.mark.parametrize("offset", [0, 16, 8])
@pytest.mark.parametrize("n", [4096, 5001, 1000])
def test_values(streaming: None, dtype: str, offset: int, n: int) -> None:
    x, z = array(n, dtype, 0), array(n + 50, dtype, offset)
    x[:] = np.arange(n) % 50
    for _ in range(2):  # the second time without Python code in between
        z[:] = 7
        step[(triton.cdiv(n, 2048),)](x, z, n, BLOCK=2048, READ=False)
        np.testing.assert_array_equal(z[:n], x + 1)
        np.testing.assert_array_equal(z[n:], 7)
    whole[(n // 1000,)](x, z, BLOCK=1000)
    np.testing.assert_array_equal(z[: n // 1000 * 1000], x[: n // 1000 * 1000] * 2)


def llir(**meta: object) -> str:
    x, z = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    kernel = step[(2,)](x, z, 4096, **meta)
    return str(kernel.asm["llir"])


def test_only_what_is_long_and_not_read_again() -> None:
    assert "!nontemporal" in llir(BLOCK=2048, READ=False)
    assert "!nontemporal" not in llir(BLOCK=2048, READ=True)
    assert "!nontemporal" not in llir(BLOCK=64, READ=False)


@pytest.mark.skipif("AArch64" not in libtriton.targets(), reason="this LLVM has no AArch64")
def test_other_processors_compile_it() -> None:
    cpu = Processor("aarch64-unknown-linux-gnu", "generic", "+neon")
    text = llir(BLOCK=2048, READ=False).replace('"prefer-vector-width"="512" "min-legal-vector-width"="512"', "")
    assert codegen.compile(text, cpu)["obj"]


def test_size_of_the_last_cache(tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert last_cache_bytes(str(tmp_path)) == 32 << 20
    for i, text in enumerate(["32K", "1024K\n", "8M", "strange", ""]):
        (tmp_path / f"index{i}").mkdir()
        (tmp_path / f"index{i}" / "size").write_text(text)
    assert last_cache_bytes(str(tmp_path)) == 8 << 20
