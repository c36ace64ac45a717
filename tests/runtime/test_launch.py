"""Launching jitted kernels: grids, arguments, specialisation, hooks, errors."""

from __future__ import annotations

import pickle
import sys
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kernels
import numpy as np
import pytest
from reference_backend import ReferenceBackend, ReferenceDriver

import triton
import triton.backends as backends
import triton.compiler.kernel
import triton.language as tl
import triton.runtime.driver
import triton.runtime.jit
from triton import knobs
from triton.errors import TritonError
from triton.runtime.errors import LaunchError

driver_module = sys.modules["triton.runtime.driver"]  # the package's attribute of that name is the object in it
jit_module = sys.modules["triton.runtime.jit"]
pytestmark = pytest.mark.usefixtures("device", "fresh")


@pytest.fixture
def fresh() -> None:
    """Forget what earlier tests compiled in this process."""
    for value in vars(kernels).values():
        if isinstance(value, triton.JITFunction):
            value.device_caches.clear()


def run_add(n: int = 100, block: int = 32, **options: Any) -> Any:
    x, y = np.arange(n, dtype="f4"), np.full(n, 2, "f4")
    out = np.zeros(n, "f4")
    kernel = kernels.add[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, n, BLOCK=block, **options)
    np.testing.assert_array_equal(out, x + y)
    return kernel


def test_a_launch_returns_its_kernel() -> None:
    kernel = run_add()
    assert kernel.name == "add"
    assert kernel.metadata.num_warps == 4
    assert run_add() is kernel
    assert run_add(num_warps=8) is not kernel
    assert run_add(num_warps=8).metadata.num_warps == 8


def test_tensors_and_arrays_share_code(torch: Any) -> None:
    x = torch.arange(64, dtype=torch.float32)
    out = torch.zeros(64)
    first = kernels.add[(2,)](x, x, out, 64, 32)
    assert torch.equal(out, 2 * x)
    z = np.zeros(64, "f4")
    again = kernels.add[(2,)](x.numpy(), x.numpy(), out.numpy(), 64, BLOCK=32)
    assert again is first
    assert z.sum() == 0


@pytest.mark.parametrize("grid", [(4,), (4, 3), (4, 3, 2), [4, 3], 4, (np.int64(4), 3)])
def test_grids_of_one_to_three_dimensions(grid: Any) -> None:
    sizes = [int(s) for s in (grid if isinstance(grid, (tuple, list)) else (grid,))] + [1, 1]
    out = np.zeros(24, "i4")
    kernels.coordinates[grid](out, WIDTH=0)
    z, y, x = np.meshgrid(range(sizes[2]), range(sizes[1]), range(sizes[0]), indexing="ij")
    expected = (x + 10 * y + 100 * z).ravel()
    np.testing.assert_array_equal(out[: expected.size], expected)


@pytest.mark.parametrize("grid", [(0,), (4, 0), (3, 2, 0), lambda meta: (0,)])
def test_an_empty_grid_launches_nothing(grid: Any, device: ReferenceDriver) -> None:
    out = np.zeros(1, "i4")
    assert kernels.coordinates[grid](out, WIDTH=5) is not None
    assert device.launches == [] and out[0] == 0


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ((), "1 to 3 dimensions, got 0"),
        ((1, 1, 1, 1), "1 to 3 dimensions, got 4"),
        ((1, -3), "grid dimension 1 is -3"),
        ((1, 2**31), "grid dimension 1 is 2147483648; it must lie between 0 and 2147483647"),
        ((1.5,), "grid dimension 0 should be an integer, got 1.5"),
    ],
)
def test_bad_grids_are_named(grid: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        kernels.put[grid](np.zeros(1, "i4"), 3)


def test_values_that_are_one_or_divisible_select_code() -> None:
    out = np.zeros(1, "i4")
    seen = []
    for value in (1, 5, 16, 17, 32, 1):
        seen.append(kernels.put[(1,)](out, value))
        assert out[0] == value
    one, five, sixteen, seventeen, thirtytwo, again = seen
    assert one is again and five is seventeen and sixteen is thirtytwo
    assert len({id(one), id(five), id(sixteen)}) == 3


def test_alignment_of_pointers_selects_code() -> None:
    out = np.zeros(64, "i4")
    start = (-out.ctypes.data // 4) % 4
    aligned = kernels.put[(1,)](out[start:], 3)
    assert kernels.put[(1,)](out[start + 4 :], 3) is aligned
    assert kernels.put[(1,)](out[start + 1 :], 3) is not aligned


def test_none_is_part_of_the_key() -> None:
    data = np.arange(8, dtype="i4")
    out = np.zeros(8, "i4")
    for x in (None, data, None):
        kernels.optional[(1,)](x, out, 8, BLOCK=8)
        np.testing.assert_array_equal(out, data if x is not None else np.full(8, -1))


def test_constants_do_not_shift_arguments() -> None:
    a, b = np.zeros(1, "i4"), np.zeros(1, "i4")
    kernels.mixed[(1,)](a, 10, 1, b, 20, 5)
    assert (a[0], b[0]) == (11, 25)
    kernels.mixed[(1,)](a, 10, 2, b, B=20, n=1)
    assert (a[0], b[0]) == (12, 21)


def test_defaults_and_no_parameters() -> None:
    out = np.zeros(1, "i4")
    kernels.with_defaults[(1,)](out)
    assert out[0] == 21
    kernels.with_defaults[(1,)](out, SCALE=2)
    assert out[0] == 14
    assert kernels.nothing[(3,)]() is not None


def test_booleans_are_bits() -> None:
    out = np.zeros(1, "i4")
    for on, expected in ((True, 1), (False, 2), (np.bool_(True), 1)):
        kernel = kernels.flag[(1,)](out, on)
        assert out[0] == expected
        assert kernel.src.signature["on"] == "u1"


def test_tuples_and_named_tuples() -> None:
    Pair = namedtuple("Pair", ["left", "right"])
    out = np.zeros(3, "i4")
    for pair in ((4, 5), Pair(6, 1)):
        kernels.pairs[(1,)](out, pair, 9)
        np.testing.assert_array_equal(out, [*pair, 9])


def test_unspecialized_arguments_share_code() -> None:
    out = np.zeros(1, "i4")
    used = {id(kernels.unspecialized[(1,)](out, value)) for value in (1, 2, 16, 48)}
    assert len(used) == 1


@pytest.mark.parametrize("value", [42, 42.0, np.float32(42)])
def test_annotated_types_convert(value: Any) -> None:
    out = np.zeros(1, "f2")
    kernels.annotated[(1,)](out, value)
    assert out[0] == 42


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda out: kernels.put[(1,)](out), TypeError, r"put\(\) is missing argument 'value'"),
        (lambda out: kernels.put[(1,)](out, 1, out=out), TypeError, "got argument 'out' twice"),
        (lambda out: kernels.put[(1,)](out, 1, num_warp=4), TypeError, "did you mean 'num_warps'"),
        (lambda out: kernels.put[(1,)](out, 1, 2), TypeError, "takes 2 arguments, 3 were given"),
        (lambda out: kernels.put[(1,)](out, object()), TypeError, "argument 'value': a value of type object"),
        (lambda out: kernels.put(out, 1), RuntimeError, r"launch it with put\[grid\]"),
    ],
)
def test_wrong_calls_are_explained(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(np.zeros(1, "i4"))


def test_options_of_other_targets_are_accepted() -> None:
    out = np.zeros(1, "i4")
    kernels.put[(1,)](out, 3, waves_per_eu=2, matrix_instr_nonkdim=16)
    assert out[0] == 3


def test_readonly_arrays_may_be_read_but_not_written() -> None:
    x = np.ones(8, "f4")
    x.flags.writeable = False
    out = np.zeros(8, "f4")
    kernels.add[(1,)](x, x, out, 8, BLOCK=8)
    np.testing.assert_array_equal(out, 2)
    with pytest.raises(LaunchError, match="add writes argument 'out', whose array is read-only"):
        kernels.add[(1,)](out, out, x, 8, BLOCK=8)


def test_arrays_elsewhere_are_refused_by_name() -> None:
    class OnCuda:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (8,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }

    x = np.ones(8, "f4")
    with pytest.raises(LaunchError, match="argument 'y' is on device 'cuda', the launch needs 'cpu'"):
        kernels.add[(1,)](x, OnCuda(), x, 8, BLOCK=8)


def test_overlapping_written_arrays_get_careful_code(device: ReferenceDriver) -> None:
    data = np.ones(64, "f4")
    x, y, out = data[:16], data[16:32], data[32:48]
    kernels.add[(1,)](x, y, out, 16, BLOCK=16)
    kernels.add[(1,)](x, x, out, 16, BLOCK=16)
    assert [m.may_alias for _, m in device.launches] == [False, False], "reading one array twice is no overlap"
    kernels.add[(1,)](x, y, x, 16, BLOCK=16)
    kernels.add[(1,)](x, y, data[8:24], 16, BLOCK=16)
    kernels.add[(1,)](data[::2], y, data[1::2], 16, BLOCK=16)
    kernels.add[(1,)](x, y, out, 16, BLOCK=16)
    assert [m.may_alias for _, m in device.launches[2:]] == [True, True, True, False]


def test_warmup_takes_types_of_torch(torch: Any) -> None:
    kernel = kernels.add.warmup(torch.float32, torch.float32, np.dtype("f4"), 64, BLOCK=32, grid=(2,))
    assert kernel is kernels.add.warmup(*3 * [np.dtype("f4")], 64, BLOCK=32, grid=(2,))


def test_warmup_compiles_without_running(device: ReferenceDriver) -> None:
    kernel = kernels.add.warmup(*3 * [np.dtype("f4")], 64, BLOCK=32, grid=(2,))
    assert kernel.asm["ttir"] and device.launches == []
    assert run_add(64) is kernel


def test_pre_run_hooks_see_the_arguments() -> None:
    @triton.jit
    def local(out, value):  # type: ignore[no-untyped-def]
        tl.store(out, value)

    seen = []
    local.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[1:], kwargs)))
    local[(1,)](np.zeros(1, "i4"), 5, num_warps=2)
    assert seen == [((5,), {"num_warps": 2})]


def test_launch_hooks() -> None:
    @triton.jit(launch_metadata=lambda grid, kernel, args: {"name": f"{kernel.name} of {args['value']}", "grid": grid})
    def local(out, value):  # type: ignore[no-untyped-def]
        tl.store(out, value)

    events: list[Any] = []
    enter = lambda metadata: events.append(("enter", metadata.get()))  # noqa: E731
    leave = lambda metadata: events.append(("exit", metadata.get()["name"]))  # noqa: E731
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(enter)
        knobs.runtime.launch_exit_hook.add(leave)
        try:
            local[(2,)](np.zeros(1, "i4"), 5)
        finally:
            knobs.runtime.launch_enter_hook.remove(enter)
            knobs.runtime.launch_exit_hook.remove(leave)
    assert [kind for kind, _ in events] == ["enter", "exit"]
    assert events[0][1]["name"] == "local of 5" and events[0][1]["grid"] == (2, 1, 1) and events[0][1]["stream"] == 0
    local[(2,)](np.zeros(1, "i4"), 5)
    assert len(events) == 2


def test_compile_hooks_can_decline() -> None:
    calls: list[dict[str, Any]] = []

    def hook(**kwargs: Any) -> bool:
        calls.append(kwargs)
        return kwargs["compile"]["num_warps"] == 8

    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = hook
        knobs.runtime.jit_post_compile_hook = hook
        out = np.zeros(1, "i4")
        assert kernels.put[(1,)](out, 3) is not None
        assert kernels.put[(1,)](out, 3, num_warps=8) is None
    assert [c["already_compiled"] for c in calls] == [False, True, False]
    assert calls[0]["fn"].jit_function is kernels.put and calls[0]["fn"].name == "put"
    assert "put[num_warps=4" in calls[0]["repr"] and out[0] == 3


def test_preload_makes_what_a_launch_would() -> None:
    saved: list[str] = []

    def hook(**kwargs: Any) -> None:
        saved.append(kwargs["compile"]["specialization_data"])

    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = hook
        kernel = run_add()
    kernels.add.device_caches.clear()
    again = kernels.add.preload(saved[0])
    assert again.hash == kernel.hash
    with pytest.raises(RuntimeError, match="'add'"):
        kernels.put.preload(saved[0])


def test_debug_is_an_option_of_the_function_and_of_the_process() -> None:
    @triton.jit(debug=True)
    def local(out, value):  # type: ignore[no-untyped-def]
        tl.store(out, value)

    out = np.zeros(1, "i4")
    assert local[(1,)](out, 5).metadata.debug is True
    assert kernels.put[(1,)](out, 5).metadata.debug is False
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert kernels.put[(1,)](out, 5).metadata.debug is True


def test_the_compiled_name_can_be_chosen() -> None:
    @triton.jit(repr=lambda specialization: f"local_{specialization.signature['value']}")
    def local(out, value):  # type: ignore[no-untyped-def]
        tl.store(out, value)

    kernel = local[(1,)](np.zeros(1, "i4"), 5)
    assert kernel.name == kernel.metadata.name == "local_i32"


def test_errors_show_the_line_and_the_process_goes_on() -> None:
    with pytest.raises(TritonError, match="no_such_name") as caught:
        kernels.bad[(1,)](np.zeros(1, "i4"))
    assert "kernels.py" in str(caught.value) and "^" in str(caught.value)
    run_add()


def test_many_threads_compile_each_version_once() -> None:
    barrier = threading.Barrier(16)

    def work(i: int) -> bool:
        barrier.wait()
        out = np.zeros(1, "i4")
        kernels.put[(1,)](out, 3 + 16 * (i % 2) + i % 2 * 13)
        return bool(out[0])

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))
    assert ReferenceBackend.stages_run.count("put") == 2


def test_first_launch_in_a_new_thread() -> None:
    run_add()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            run_add()
            run_add(block=16)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == []


def test_async_compile() -> None:
    out = np.zeros(1, "i4")
    with ThreadPoolExecutor(2) as pool:
        with triton.AsyncCompileMode(pool):
            futures = [kernels.put.warmup(np.dtype("i4"), value, grid=(1,)) for value in (5, 16, 7)]
        assert isinstance(futures[0], triton.FutureKernel)
        assert futures[0] is futures[2]
    assert futures[0].result().name == "put" and futures[1].asm["ttir"]
    kernel = kernels.put[(1,)](out, 5)
    assert out[0] == 5 and kernel is futures[0].result()
    assert ReferenceBackend.stages_run.count("put") == 2


def test_async_errors() -> None:
    with ThreadPoolExecutor(1) as pool:
        with triton.AsyncCompileMode(pool, ignore_errors=True):
            kernels.bad.warmup(np.dtype("i4"), grid=(1,))
        with pytest.raises(TritonError, match="no_such_name"), triton.AsyncCompileMode(pool):
            kernels.bad.warmup(np.dtype("i4"), grid=(1,))
    with pytest.raises(TritonError, match="no_such_name"):
        kernels.bad[(1,)](np.zeros(1, "i4"))


def test_jitted_functions_pickle() -> None:
    twin = pickle.loads(pickle.dumps(kernels.nothing)) if _pickles(kernels.nothing) else None
    assert twin is None or twin.arg_names == []


def _pickles(fn: Any) -> bool:
    # As PyTorch does: what belongs to this process is taken off first.
    saved = fn.fn, fn.__globals__, fn.used_global_vals, fn.repr, fn._hash_lock
    fn.fn = fn.__globals__ = fn.used_global_vals = fn._hash_lock = None
    fn.repr = "repr"
    try:
        twin = pickle.loads(pickle.dumps(fn))
        assert twin.arg_names == fn.arg_names and twin.device_caches == {}
    finally:
        fn.fn, fn.__globals__, fn.used_global_vals, fn.repr, fn._hash_lock = saved
    return False


def test_changed_globals_are_seen() -> None:
    scope: dict[str, Any] = {"triton": triton, "tl": tl, "WIDTH": tl.constexpr(3)}

    global WIDTH
    WIDTH = tl.constexpr(3)
    out = np.zeros(1, "i4")
    reads_global[(1,)](out)
    assert out[0] == 3 and scope
    WIDTH = tl.constexpr(4)
    reads_global[(1,)](out)
    assert out[0] == 4


WIDTH: Any = None


@triton.jit
def reads_global(out):  # type: ignore[no-untyped-def]
    tl.store(out, WIDTH)


def test_the_arrays_choose_the_driver(monkeypatch: pytest.MonkeyPatch, device: ReferenceDriver) -> None:
    class GPUDriver(ReferenceDriver):
        device_kinds = ("gpu",)

        @classmethod
        def is_active(cls) -> bool:
            return True

    class HostDriver(ReferenceDriver):
        @classmethod
        def is_active(cls) -> bool:
            return True

    class OnGPU:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array, self.dtype, self.device = array, array.dtype, "gpu"
            self.shape = array.shape

        def data_ptr(self) -> int:
            return int(self.array.ctypes.data)

        def byte_range(self) -> tuple[int, int]:
            return self.data_ptr(), self.data_ptr() + self.array.nbytes

    known = {
        "gpu": backends.Backend(ReferenceBackend, GPUDriver),
        "host": backends.Backend(ReferenceBackend, HostDriver),
    }
    monkeypatch.setattr(backends, "_in_tree", known)
    monkeypatch.setattr(backends, "_all", {**backends.all_backends(), **known})
    config = driver_module.DriverConfig()
    monkeypatch.setattr(jit_module, "driver", config)
    monkeypatch.setattr(driver_module, "_ORDER", ("gpu", "host"))
    monkeypatch.setattr(triton.compiler.kernel, "driver", config)
    assert isinstance(config.active, GPUDriver)
    x, out = np.ones(8, "f4"), np.zeros(8, "f4")
    kernels.add[(1,)](OnGPU(x), OnGPU(x), OnGPU(out), 8, BLOCK=8)
    kernels.add[(1,)](x, x, out, 8, BLOCK=8)
    np.testing.assert_array_equal(out, 2)
    used = [(type(cache.driver), len(cache.driver.launches)) for cache in kernels.add.device_caches.values()]
    assert used == [(GPUDriver, 1), (HostDriver, 1)]
    with pytest.raises(LaunchError, match="argument 'y' is on device 'cpu', the launch needs 'gpu:0'"):
        kernels.add[(1,)](OnGPU(x), x, OnGPU(out), 8, BLOCK=8)
    config.set_active(GPUDriver())
    with pytest.raises(LaunchError, match="argument 'x' is on device 'cpu', the launch needs 'gpu"):
        kernels.add[(1,)](x, x, out, 8, BLOCK=8)


def test_grid_functions_get_arguments_and_options() -> None:
    seen: list[dict[str, Any]] = []
    out = np.zeros(1, "i4")
    kernels.with_defaults[lambda meta: seen.append(dict(meta)) or (1,)](out, 5, num_warps=2)
    assert seen == [{"out": out, "value": 5, "SCALE": 3, "num_warps": 2}]


def test_a_replaced_run_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(kernels.put, "run", lambda *args, **kwargs: calls.append(kwargs), raising=False)
    kernels.put[(1,)](np.zeros(1, "i4"), 5)
    assert calls == [{"grid": (1,), "warmup": False}]


def test_a_broken_back_end_does_not_break_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ReferenceDriver):
        @classmethod
        def is_active(cls) -> bool:
            raise OSError("its library is damaged")

    class Whole(ReferenceDriver):
        @classmethod
        def is_active(cls) -> bool:
            return True

    known = {name: backends.Backend(ReferenceBackend, cls) for name, cls in (("a", Broken), ("b", Whole))}
    monkeypatch.setattr(backends, "_in_tree", known)
    with pytest.warns(UserWarning, match="back end 'a' cannot be used: OSError"):
        assert isinstance(driver_module.create_driver(), Whole)


def test_a_core_that_cannot_be_loaded_is_told_of(monkeypatch):
    """The launch error carries the loader's reason, which names the library that is missing."""
    module = sys.modules["triton.runtime.driver"]  # the package's attribute of that name is the driver itself
    monkeypatch.setattr(module, "active_drivers", lambda: iter(()))
    monkeypatch.setitem(sys.modules, "triton._C.libtriton", None)
    monkeypatch.delattr("triton._C.libtriton", raising=False)
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    with pytest.raises(LaunchError, match=r"compiled core cannot be loaded \(.*libtriton"):
        module.create_driver()
