"""Launches on the CPU back end, through the native dispatcher and past it."""

from __future__ import annotations

import sys
import threading
from collections import namedtuple
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kernels
import numpy as np
import pytest

import triton
import triton.backends as backends
import triton.language as tl
from triton import knobs
from triton.errors import TritonError
from triton.runtime.errors import LaunchError


@pytest.fixture(autouse=True)
def cpu() -> Iterator[Any]:
    """The CPU driver, active for one test; nothing compiled yet in this process."""
    before = triton.runtime.driver._active
    driver = backends.in_tree_backends()["cpu"].driver()
    triton.runtime.driver.set_active(driver)
    for value in vars(kernels).values():
        if isinstance(value, triton.JITFunction):
            value.device_caches.clear()
            value._native = value._native_driver = None
    yield driver
    triton.runtime.driver._active = before


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def run_add(n: int = 1000, block: int = 128, **options: Any) -> Any:
    x, y = np.arange(n, dtype="f4"), np.full(n, 2, "f4")
    out = np.zeros(n, "f4")
    kernel = kernels.add[grid](x, y, out, n, BLOCK=block, **options)
    np.testing.assert_array_equal(out, x + y)
    return kernel


def test_first_and_later_launches_agree() -> None:
    kernel = run_add()
    assert kernels.add._native is not None
    for _ in range(3):
        assert run_add() is kernel
    assert len(kernels.add._native) == 1
    assert run_add(num_warps=8) is not kernel
    assert run_add(1024) is not kernel
    assert run_add(1024) is run_add(2048)
    assert set(kernel.asm) >= {"source", "ttir", "llir", "obj"}
    magic = b"\x64\x86" if sys.platform == "win32" else b"\x7fELF"  # COFF for x86-64
    assert "add" in kernel.asm["asm"] and kernel.asm["obj"].startswith(magic)


def test_torch_and_numpy(torch: Any) -> None:
    x = torch.arange(64, dtype=torch.float32)
    out = torch.zeros(64)
    for _ in range(3):
        kernels.add[(2,)](x, x, out, 64, 32)
        assert torch.equal(out, 2 * x)
        out.zero_()
        kernels.add[(2,)](x.numpy(), x, out.numpy(), 64, BLOCK=32)
        assert torch.equal(out, 2 * x)
        out.zero_()


@pytest.mark.parametrize("sizes", [(4,), (4, 3), (4, 3, 2), (1, 65537), (1, 1, 70000), (0,), (3, 0)])
def test_grids(sizes: tuple[int, ...]) -> None:
    total = int(np.prod(sizes))
    full = (*sizes, 1, 1)[:3]
    z, y, x = np.meshgrid(range(full[2]), range(full[1]), range(full[0]), indexing="ij")
    for _ in range(2):
        out = np.full(max(total, 1), -1, "i4")
        kernels.coordinates[sizes](out, WIDTH=0)
        np.testing.assert_array_equal(out[:total], (x + 10 * y + 100 * z).ravel())
        assert total or out[0] == -1


@pytest.mark.parametrize("bad", [(), (1, 1, 1, 1), (1, -3), (1, 2**31), (1.5,), lambda meta: (-1,)])
def test_bad_grids(bad: Any) -> None:
    out = np.zeros(1, "i4")
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match="grid"):
            kernels.put[bad](out, 3)
        kernels.put[(1,)](out, 3)


def test_values_select_code() -> None:
    out = np.zeros(1, "i4")
    seen = []
    for value in (1, 5, 16, 17, 32, 1):
        seen.append(kernels.put[(1,)](out, value))
        assert out[0] == value
    assert seen[0] is seen[5] and seen[1] is seen[3] and seen[2] is seen[4]
    for value in (2**31, -(2**40), 2**63):
        wide = np.zeros(1, "u8" if value > 0 else "i8")
        kernels.put[(1,)](wide, value)
        assert wide[0] == value


def test_none_booleans_tuples_defaults_annotations() -> None:
    data, out = np.arange(8, dtype="i4"), np.zeros(8, "i4")
    Pair = namedtuple("Pair", ["left", "right"])
    for _ in range(2):
        for x in (None, data, None):
            kernels.optional[(1,)](x, out, 8, BLOCK=8)
            np.testing.assert_array_equal(out, data if x is not None else np.full(8, -1))
        for on, expected in ((True, 1), (False, 2)):
            kernels.flag[(1,)](out, on)
            assert out[0] == expected
        for pair in ((4, 5), Pair(6, 1)):
            kernels.pairs[(1,)](out, pair, 9)
            np.testing.assert_array_equal(out[:3], [*pair, 9])
        kernels.with_defaults[(1,)](out)
        assert out[0] == 21
        half = np.zeros(1, "f2")
        kernels.annotated[(1,)](half, 42)
        assert half[0] == 42
        assert kernels.nothing[(3,)]() is not None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: kernels.put[(1,)](out), "missing.*'value'"),
        (lambda out: kernels.put[(1,)](out, 1, out=out), "'out'"),
        (lambda out: kernels.put[(1,)](out, 1, num_warp=4), "did you mean 'num_warps'"),
        (lambda out: kernels.put[(1,)](out, 1, 2), "2 .*3 "),
        (lambda out: kernels.put[(1,)](out, object()), "'value'.*object"),
    ],
)
def test_wrong_calls(call: Any, message: str) -> None:
    out = np.zeros(1, "i4")
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            call(out)
        kernels.put[(1,)](out, 1)


def test_overlapping_arrays() -> None:
    @triton.jit
    def smear(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        offsets = tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out + offsets, tl.load(x + offsets, mask=mask) + 1, mask=mask)

    for _ in range(2):
        for shift in (0, 1, 7, -3):
            data = np.arange(600, dtype="i4")
            x, out = data[10:522], data[10 + shift : 522 + shift]
            expected = data.copy()
            expected[10 + shift : 522 + shift] = x + 1
            smear[(1,)](x, out, 512, BLOCK=512)
            np.testing.assert_array_equal(data, expected)


def test_reading_one_array_twice_needs_no_second_version() -> None:
    x, out = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    kernels.add[(1,)](x, x, out, 64, BLOCK=64)
    np.testing.assert_array_equal(out, 2 * x)


def test_readonly_arrays() -> None:
    x, out = np.ones(8, "f4"), np.zeros(8, "f4")
    x.flags.writeable = False
    for _ in range(2):
        kernels.add[(1,)](x, x, out, 8, BLOCK=8)
        np.testing.assert_array_equal(out, 2)
        with pytest.raises(LaunchError, match="add writes argument 'out', whose array is read-only"):
            kernels.add[(1,)](out, out, x, 8, BLOCK=8)


def test_arrays_elsewhere() -> None:
    class OnCuda:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (8,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }

    x = np.ones(8, "f4")
    for _ in range(2):
        with pytest.raises(LaunchError, match="argument 'y' is on device 'cuda', the launch needs 'cpu'"):
            kernels.add[(1,)](x, OnCuda(), x, 8, BLOCK=8)
        run_add(8, 8)


def test_hooks_come_and_go() -> None:
    seen: list[Any] = []
    run_add()
    with knobs.runtime.scope():
        hook = lambda metadata: seen.append(metadata.get()["name"])  # noqa: E731
        knobs.runtime.launch_enter_hook.add(hook)
        run_add()
        knobs.runtime.launch_enter_hook.remove(hook)
    run_add()
    assert seen == ["add"]


def test_a_launch_that_is_kept_sees_hooks_set_later() -> None:
    """Whatever holds when ``kernel[grid]`` is called counts, not what held when it was made."""
    out, seen = np.zeros(1, "f4"), []
    put = kernels.put[(1,)]
    for value in (1.0, 2.0, 3.0):
        with knobs.runtime.scope():
            if value == 2.0:
                knobs.runtime.launch_enter_hook = lambda metadata: seen.append(metadata.get()["name"])
            put(out, value)
        assert out[0] == value
    assert seen == ["put"]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        put(out)


def test_debug_and_interpretation_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run_add()
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert run_add() is not plain
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert run_add() is None
    monkeypatch.delenv("TRITON_INTERPRET")
    assert run_add() is plain


WIDTH: Any = None


@triton.jit
def reads_global(out):  # type: ignore[no-untyped-def]
    tl.store(out, WIDTH)


def test_changed_globals_are_seen() -> None:
    global WIDTH
    out = np.zeros(1, "i4")
    for value in (3, 4, 4, 3):
        WIDTH = tl.constexpr(value)
        reads_global[(1,)](out)
        assert out[0] == value


def test_threads() -> None:
    barrier = threading.Barrier(16)

    def work(i: int) -> bool:
        out = np.zeros(1, "i4")
        barrier.wait()
        for _ in range(20):
            kernels.put[(1,)](out, 3 + i)
        return bool(out[0] == 3 + i)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_autotuned_from_many_threads() -> None:
    measured = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        measured.append(1)
        return [float(len(measured))] * 3

    kernel = triton.autotune(
        configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (32, 64) for w in (1, 4)],
        key=["n"],
        restore_value=["x"],
        do_bench=bench,
    )(triton.JITFunction(kernels.increment.fn))
    barrier = threading.Barrier(16)

    def work(i: int) -> bool:
        x = np.zeros(100 + i % 2, "f4")
        barrier.wait()
        kernel[grid](x, x.size)
        return bool((x == 1).all())

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))
    assert len(measured) == 4, "two keys, two block sizes; the number of warps is nothing to a CPU"


def test_autotuning_by_the_clock() -> None:
    kernel = triton.autotune(
        configs=[triton.Config({"BLOCK": b}) for b in (16, 1024)], key=["n"], warmup=1, rep=2, restore_value=["x"]
    )(triton.JITFunction(kernels.increment.fn))
    x = np.zeros(20000, "f4")
    kernel[grid](x, x.size)
    assert (x == 1).all()
    assert all(0 < t[0] < 1e4 for t in kernel.configs_timings.values())


def test_failed_assertions_name_their_message_and_leave_the_process_usable() -> None:
    @triton.jit(debug=True)
    def checked(out, limit):  # type: ignore[no-untyped-def]
        tl.device_assert(limit < 10, "limit is too large")
        tl.store(out, limit)

    out = np.zeros(1, "i4")
    checked[(1,)](out, 5)
    with pytest.raises(AssertionError, match="limit is too large"):
        checked[(1,)](out, 50)
    checked[(1,)](out, 6)
    assert out[0] == 6


def test_errors_of_the_kernel_show_its_line() -> None:
    with pytest.raises(TritonError, match="no_such_name") as caught:
        kernels.bad[(1,)](np.zeros(1, "i4"))
    assert "kernels.py" in str(caught.value)
    run_add()


def test_impossible_assembly_is_an_exception_with_its_line() -> None:
    @triton.jit
    def impossible(out):  # type: ignore[no-untyped-def]
        x = tl.inline_asm_elementwise("nop", "={no such register},r", [3], dtype=tl.int32, is_pure=True, pack=1)
        tl.store(out, x)

    with pytest.raises(TritonError, match=r"test_cpu_launch.py:\d+"):
        impossible[(1,)](np.zeros(1, "i4"))
    run_add()


def test_assembly_of_another_machine_is_told_apart() -> None:
    """Kernels with PTX: what LLVM says of it, if anything, names neither the text nor the reason."""

    @triton.jit
    def foreign(out):  # type: ignore[no-untyped-def]
        x = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [0.5], dtype=tl.float32, is_pure=True, pack=1)
        tl.store(out, x)

    message = r"(?s)test_cpu_launch.py:\d+.*assembly must be that of the target, here cpu: 'tanh"
    with pytest.raises(TritonError, match=message):
        foreign[(1,)](np.zeros(1, "f4"))
    run_add()


def test_what_is_wrong_with_assembly_is_said_once() -> None:
    @triton.jit
    def halves(x, out):  # type: ignore[no-untyped-def]
        i = tl.arange(0, 16)
        half = tl.inline_asm_elementwise("nop", "=h,r", [tl.load(x + i)], dtype=tl.int16, is_pure=True, pack=1)
        tl.store(out + i, half)

    with pytest.raises(TritonError, match="here cpu: 'nop'") as caught:
        halves[(1,)](np.zeros(16, "i4"), np.zeros(16, "i2"))
    assert str(caught.value).count("constraint") == 1
    run_add()


def test_a_tensor_descriptor_argument() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def through(source, out, n: tl.constexpr):  # type: ignore[no-untyped-def]
        tile = source.load([0, 2])
        offsets = tl.arange(0, 4)[:, None] * n + tl.arange(0, n)[None, :]
        tl.store(out + offsets, tile)

    memory = np.zeros(4 * 16 + 4, "f4")
    start = (-memory.ctypes.data // 4) % 4
    base = memory[start : start + 64].reshape(4, 16)
    base[:] = np.arange(64).reshape(4, 16)
    out = np.zeros((4, 8), "f4")
    for _ in range(2):
        through[(1,)](TensorDescriptor.from_tensor(base, [4, 8]), out, n=8)
        np.testing.assert_array_equal(out, base[:, 2:10])
        out[:] = 0
    with pytest.raises(ValueError, match="multiple of 16 bytes"):
        TensorDescriptor.from_tensor(base[:, :15].copy(), [4, 8])


def test_a_fast_launch() -> None:
    import timeit

    x = [np.ones(64, "f4") for _ in range(5)]

    @triton.jit
    def ten(a, b, c, d, out, n, m, k, alpha, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        tl.store(out + tl.arange(0, BLOCK), tl.load(a + tl.arange(0, BLOCK)))

    launch = lambda: ten[(1,)](*x, 64, 3, 5, 2.5, BLOCK=64)  # noqa: E731
    launch()
    seconds = min(timeit.repeat(launch, number=200, repeat=20)) / 200
    assert seconds < 50e-6, "ten times what an idle machine needs"
