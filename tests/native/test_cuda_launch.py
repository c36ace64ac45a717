"""The CUDA driver, loading and launches, on GPUs that write down what they are asked (see fake_gpu)."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from fake_gpu import MEMORY, Gpu, Tensor, on_fake_gpu

import triton
import triton.language as tl
from triton._C import libtriton
from triton.runtime.arguments import element_type


def load(device: int = 0, shared: int = 0) -> libtriton.GpuKernel:
    libtriton.cuda.set_current_device(device)
    return libtriton.cuda.load(b"image\0", "kernel", shared, device)


def dispatcher(launcher: Any, *names: str, gpu: bool = True) -> libtriton.Dispatcher:
    n, driver = len(names), libtriton.cuda if gpu else None
    libtriton.set_dtype_resolver(element_type)
    return libtriton.Dispatcher("k", names, (0,) * n, (None,) * n, (...,) * n, lambda *call: launcher, ..., driver)


def bits(text: str, value: float) -> int:
    return int.from_bytes(struct.pack(text, value), "little")


@triton.jit
def five_and_five(a, b, c, d, e, n, m, o, p, q):
    tl.store(a, n + m + o + p + q)


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def sums(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def number_only(n):
    tl.static_assert(True)


# ---- the driver -----------------------------------------------------------------------------------------------------


@on_fake_gpu
def test_facts(gpu: Gpu) -> None:
    assert libtriton.cuda.device_count() == 2 and libtriton.cuda.version() == 13000
    facts = libtriton.cuda.device_attributes(1)
    assert facts["name"] == "Fake GPU 1" and (facts["major"], facts["minor"]) == (8, 0)
    assert facts["max_shared_mem"] == 232448 and facts["multiprocessor_count"] == 101 and facts["warpSize"] == 32
    libtriton.cuda.set_current_device(1)
    assert libtriton.cuda.current_device() == 1
    with pytest.raises(libtriton.GpuError, match="there is no GPU 2; this machine has 2"):
        libtriton.cuda.set_current_device(2)


@on_fake_gpu
def test_a_loaded_kernel_lives_in_its_devices_context(gpu: Gpu) -> None:
    kernel = load(1, shared=100 * 1024)
    assert kernel.device == 1 and kernel.registers == 40 and kernel.max_threads == 1024
    assert "cuModuleLoadDataEx on 1 starts im" in gpu.calls and "cuFuncSetAttribute 8 102400" in gpu.calls
    libtriton.cuda.set_current_device(0)
    gpu.forget()
    del kernel
    assert next(c for c in gpu.calls if "Unload" in c).endswith("on 1")
    assert libtriton.cuda.current_device() == 0


FAILURES = [
    ("cuDeviceGet", lambda: libtriton.cuda.device_attributes(0)),
    ("cuDeviceGetName", lambda: libtriton.cuda.device_attributes(0)),
    ("cuDeviceGetAttribute", lambda: libtriton.cuda.device_attributes(0)),
    ("cuCtxGetCurrent", libtriton.cuda.current_device),
    ("cuCtxSetCurrent", lambda: libtriton.cuda.set_current_device(1)),
    ("cuCtxSynchronize", libtriton.cuda.synchronize),
    ("cuModuleLoadDataEx", load),
    ("cuModuleGetFunction", load),
    ("cuFuncGetAttribute", load),
    ("cuFuncSetAttribute", lambda: load(shared=50 * 1024)),
]


@on_fake_gpu
@pytest.mark.parametrize("place", range(len(FAILURES)))
@pytest.mark.parametrize("result", [1, 2, 209, 700])
def test_failures_carry_the_drivers_words(place: int, result: int, gpu: Gpu) -> None:
    call, action = FAILURES[place]
    libtriton.cuda.set_current_device(0)
    gpu.fail(call, result)
    with pytest.raises(
        libtriton.GpuError, match=rf"what the driver says of {result} \(CUDA_ERROR_{result}\)"
    ) as caught:
        action()
    if call == "cuModuleLoadDataEx":
        assert str(caught.value).endswith("line 7: the log says why")
    gpu.fail("", 0)
    action()  # and nothing is broken for good


@on_fake_gpu
@pytest.mark.parametrize("result", [1, 701, 719])
def test_failed_launches(result: int, gpu: Gpu) -> None:
    plain = dispatcher(libtriton.GpuLauncher(load(), "plain", 128), "n")
    wide = dispatcher(libtriton.GpuLauncher(load(), "wide", 128, cluster=(2, 1, 1)), "n")
    for run, call in ((plain, "cuLaunchKernel"), (wide, "cuLaunchKernelEx")):
        gpu.fail(call, result)
        with pytest.raises(
            libtriton.GpuError, match=f"the kernel cannot be launched: what the driver says of {result}"
        ):
            run[(1,)](5)
        gpu.fail("", 0)
        assert run[(1,)](5) in ("plain", "wide")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/nowhere/libcuda.so.1", "no NVIDIA driver: /nowhere/libcuda.so.1 cannot be opened"),
        (None, "the NVIDIA driver has no cu"),
    ],
)
def test_no_driver(path: str | None, expected: str) -> None:
    """None: a library that is not the driver."""
    code = (
        "import triton\nfrom triton._C import libtriton\n"
        "try:\n    libtriton.cuda.device_count()\nexcept libtriton.GpuError as error:\n    print(error)\n"
        "print(type(triton.runtime.driver.active).__name__)"
    )
    environment = {**os.environ, "TRITON_LIBCUDA_PATH": path or libtriton.__file__}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert re.search(expected, shown) and "CPUDriver" in shown, shown


# ---- launchers ------------------------------------------------------------------------------------------------------


@on_fake_gpu
def test_arguments_arrive_in_their_slots(gpu: Gpu) -> None:
    launcher = libtriton.GpuLauncher(load(), "owner", 256, shared=64)
    names = ("pointer", "one", "small", "large", "negative", "real", "flag", "none", "pair")
    run = dispatcher(launcher, *names)
    gpu.slots(8)
    assert run[(3, 2)](Tensor(16), 1, 7, 2**40, -5, 2.5, True, None, (Tensor(32), 9)) == "owner"
    (launch,) = gpu.launches
    assert launch["call"] == "cuLaunchKernel" and launch["grid"] == (3, 2, 1) and launch["block"] == (256, 1, 1)
    assert launch["shared"] == 64 and launch["stream"] == 0 and launch["device"] == 0
    assert launch["slots"] == [MEMORY + 16, 7, 2**40, 2**64 - 5, bits("<f", 2.5), 1, MEMORY + 32, 9]


@on_fake_gpu
def test_more_arguments_than_fit_the_stack(gpu: Gpu) -> None:
    names = tuple(f"a{i}" for i in range(100))
    gpu.slots(100)
    dispatcher(libtriton.GpuLauncher(load(), None, 32), *names)[(1,)](*range(100, 200))
    assert gpu.launches[0]["slots"] == list(range(100, 200))


@on_fake_gpu
def test_a_launch_makes_two_calls(gpu: Gpu) -> None:
    """Nothing is allocated or waited for, so a stream under capture takes it."""
    run = dispatcher(libtriton.GpuLauncher(load(), None, 32), "x", "n")
    run[(1,)](Tensor(), 5)
    gpu.forget()
    run[(1,)](Tensor(), 6)
    assert [c.split()[0] for c in gpu.calls] == ["cuCtxGetCurrent", "cuLaunchKernel"]


@on_fake_gpu
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"cluster": (2, 1, 1)}, "cluster 2,1,1"),
        ({"cooperative": True}, "attribute-2 1"),
        ({"overlap": True}, "attribute-6 1"),
        ({"cluster": (1, 4, 2), "cooperative": True, "overlap": True}, "attribute-2 1 cluster 1,4,2 attribute-6 1"),
    ],
)
def test_launch_attributes(options: dict[str, Any], expected: str, gpu: Gpu) -> None:
    dispatcher(libtriton.GpuLauncher(load(), None, 32, **options), "n")[(8, 8, 8)](5)
    (launch,) = gpu.launches
    assert launch["call"] == "cuLaunchKernelEx" and launch["more"] == expected and launch["grid"] == (8, 8, 8)


@on_fake_gpu
def test_tensor_maps_are_made_of_the_descriptors_slots(gpu: Gpu) -> None:
    """Axes are named last first, strides in bytes; the map is a parameter behind the others."""
    slots = (1, 2, 3, 4, 5, -1, 7, 0, 0, 0, 0)
    plan = struct.pack("<20i11q", 3, 6, 3, 1, 64, 8, 2, 0, 0, *slots, 0, 0, 0, 0, 0, 104, 0, 0, 0, 0, 0)
    launcher = libtriton.GpuLauncher(load(), None, 32, maps=plan)
    gpu.slots(9)
    names = tuple("nabcdefg")
    dispatcher(launcher, *names)[(1,)](7, 0x1000, 5, 30, 100, 4000, 99, 2)
    (call,) = [x for x in gpu.calls if x.startswith("cuTensorMapEncodeTiled")]
    assert call == (
        "cuTensorMapEncodeTiled aligned 1 type 6 rank 3 base 1000 sizes 100,30,5 strides 208,8000 box 64,8,2 "
        "step 1 interleave 0 swizzle 3 fill 1"
    )
    (launch,) = gpu.launches
    assert launch["slots"] == [7, 0x1000, 5, 30, 100, 4000, 99, 2, 0x5A5A5A5A5A5A5A5A]
    dispatcher(launcher, *names)[(1,)](7, 0, 5, 0, 100, 4000, 99, 2)
    empty = [x for x in gpu.calls if x.startswith("cuTensorMapEncodeTiled")][-1]
    assert " sizes 1,1,1 " in empty and " base 0 " not in empty and "cuMemAlloc 256" in gpu.calls
    gpu.fail("cuTensorMapEncodeTiled", 1)
    with pytest.raises(libtriton.GpuError, match="a tensor descriptor cannot be passed: what the driver says of 1"):
        dispatcher(launcher, *names)[(1,)](7, 0x1000, 5, 30, 100, 4000, 104, 2)
    with pytest.raises(ValueError, match="maps has a part of a plan"):
        libtriton.GpuLauncher(load(), None, 32, maps=plan[:-1])


@on_fake_gpu
def test_grids_count_programs(gpu: Gpu) -> None:
    run = dispatcher(libtriton.GpuLauncher(load(), None, 32, blocks=4, cluster=(4, 1, 1)), "n")
    run[(5, 6, 7)](5)
    libtriton.cuda.launch(1, (5, 6, 7), 0, b"", 32, blocks=4, cluster=(4, 1, 1))
    assert [x["grid"] for x in gpu.launches] == [(20, 6, 7)] * 2
    message = "grid dimension 0 is 536870912; it must lie between 0 and 536870911 for programs of 4 blocks each"
    with pytest.raises(ValueError, match=message):
        run[(2**29,)](5)
    with pytest.raises(ValueError, match=message):
        libtriton.cuda.launch(1, (2**29, 1, 1), 0, b"", 32, blocks=4)
    with pytest.raises(ValueError, match="blocks is 0"):
        libtriton.GpuLauncher(load(), None, 32, blocks=0)


@on_fake_gpu
def test_device_memory(gpu: Gpu) -> None:
    pointer = libtriton.cuda.allocate(64)
    libtriton.cuda.copy_in(pointer, b"abc")
    assert libtriton.cuda.copy_out(pointer, 3) == b"abc"
    libtriton.cuda.release(pointer)
    assert [c for c in gpu.calls if c.startswith("cuMem")] == [
        "cuMemAlloc 64",
        "cuMemcpyHtoD 3",
        "cuMemcpyDtoH 3",
        "cuMemFree",
    ]
    gpu.fail("cuMemAlloc_v2", 2)
    with pytest.raises(libtriton.GpuError, match="memory cannot be allocated: what the driver says of 2"):
        libtriton.cuda.allocate(64)


@on_fake_gpu
def test_large_clusters_are_asked_for(gpu: Gpu) -> None:
    libtriton.GpuLauncher(load(), None, 32, cluster=(16, 1, 1))
    assert "cuFuncSetAttribute 14 1" in gpu.calls
    gpu.fail("cuFuncSetAttribute", 801)
    with pytest.raises(
        libtriton.GpuError, match="does not allow clusters of more than 8 blocks: what the driver says of 801"
    ):
        libtriton.GpuLauncher(load(), None, 32, cluster=(16, 1, 1))


@on_fake_gpu
def test_constructor_checks(gpu: Gpu) -> None:
    with pytest.raises(TypeError, match="expected a GpuKernel, got 5"):
        libtriton.GpuLauncher(5, None, 32)
    with pytest.raises(ValueError, match="threads is 0"):
        libtriton.GpuLauncher(load(), None, 0)
    with pytest.raises(TypeError, match="a kernel with scratch needs allocate"):
        libtriton.GpuLauncher(load(), None, 32, scratch=8)


@on_fake_gpu
@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ((1, 65536), "grid dimension 1 is 65536; it must lie between 0 and 65535"),
        ((1, 1, 65536), "grid dimension 2 is 65536; it must lie between 0 and 65535"),
        ((2**31,), "grid dimension 0 is 2147483648; it must lie between 0 and 2147483647"),
        ((1, -1), "grid dimension 1 is -1; it must lie between 0 and 65535"),
    ],
)
def test_grid_limits(grid: tuple[int, ...], expected: str, gpu: Gpu) -> None:
    run = dispatcher(libtriton.GpuLauncher(load(), None, 32), "n")
    for _ in range(2):
        with pytest.raises(ValueError, match=f"^{expected}$"):
            run[grid](5)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"^{expected}$"):
            number_only[grid](5)
    run[(2**31 - 1, 65535, 65535)](5)
    run[(0,)](5)
    run[(4, 0)](5)
    assert [launch["grid"] for launch in gpu.launches] == [(2**31 - 1, 65535, 65535)]


@on_fake_gpu
def test_scratch_memory(gpu: Gpu) -> None:
    asked: list[tuple[int, int, int]] = []

    def allocate(size: int, alignment: int, stream: int) -> Tensor:
        asked.append((size, alignment, stream))
        return Tensor(0x5000)

    run = dispatcher(libtriton.GpuLauncher(load(), None, 32, scratch=48, alignment=128, allocate=allocate), "x", "n")
    gpu.slots(3)
    run.run((3, 5, 2), (Tensor(16), 7), {}, 77)
    assert asked == [(48 * 30, 128, 77)]
    assert gpu.launches[0]["slots"] == [MEMORY + 16, 7, MEMORY + 0x5000] and gpu.launches[0]["stream"] == 77

    def refuse(*asked: int) -> Tensor:
        raise MemoryError("no memory left")

    run = dispatcher(libtriton.GpuLauncher(load(), None, 32, scratch=48, alignment=128, allocate=refuse), "n")
    with pytest.raises(MemoryError, match="no memory left"):
        run[(1,)](5)


# ---- kernels --------------------------------------------------------------------------------------------------------


@on_fake_gpu
def test_ten_arguments(gpu: Gpu) -> None:
    tensors = [Tensor(256 * i) for i in range(5)]
    gpu.slots(10)
    kernels = [five_and_five[(2, 3, 4)](*tensors, 7, 17, 2**40, -1, 1000) for _ in range(3)]
    assert kernels[0] is kernels[1] is kernels[2]
    slots = [t.data_ptr() for t in tensors] + [7, 17, 2**40, 2**64 - 1, 1000]
    assert [(x["grid"], x["block"], x["slots"]) for x in gpu.launches] == [((2, 3, 4), (128, 1, 1), slots)] * 3


@on_fake_gpu
def test_launch_options_reach_the_driver(gpu: Gpu) -> None:
    for _ in range(3):
        copy[(8,)](
            Tensor(0),
            Tensor(4096),
            64,
            B=64,
            num_warps=2,
            cluster_dims=(2, 1, 1),
            launch_cooperative_grid=True,
            launch_pdl=True,
        )
    assert {x["more"] for x in gpu.launches} == {"attribute-2 1 cluster 2,1,1 attribute-6 1"} and gpu.launches[0][
        "block"
    ] == (64, 1, 1)


@on_fake_gpu
def test_launch_overhead(gpu: Gpu) -> None:
    """About 2 µs with a driver that does nothing; the bound leaves room for a busy machine."""
    tensors = [Tensor(256 * i) for i in range(5)]
    gpu.library.fake_quiet(1)
    for _ in range(3):
        five_and_five[(4,)](*tensors, 7, 17, 33, 100, 1000)
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(500):
            five_and_five[(4,)](*tensors, 7, 17, 33, 100, 1000)
        best = min(best, (time.perf_counter() - start) / 500)
    assert best < 15e-6, best


def check_devices(gpu: Gpu) -> None:
    libtriton.cuda.set_current_device(0)
    for device in (0, 1, 1, 0, 1):
        gpu.forget()
        kernel = copy[(1,)](Tensor(0, device), Tensor(4096, device), 64, B=64)
        assert kernel.metadata.target.arch == (90, 80)[device]
        (launch,) = gpu.launches
        assert launch["device"] == launch["function"] == device  # the function is that device's
        assert libtriton.cuda.current_device() == 0  # and the thread's device stays
    assert len({id(cache) for cache in copy.device_caches.values()}) >= 2


@on_fake_gpu
def test_launches_go_to_the_arrays_device(gpu: Gpu) -> None:
    check_devices(gpu)


@on_fake_gpu(torch=True)
def test_launches_go_to_the_arrays_device_under_torch(gpu: Gpu) -> None:
    check_devices(gpu)


def check_current_device(gpu: Gpu) -> None:
    """Arrays that do not tell their device, and launches without arrays: the current device."""
    for device in (0, 1, 1, 0):
        gpu.library.fake_set_current_device(device)
        gpu.forget()
        copy[(1,)](Tensor(0, device, told=False), Tensor(64, device, told=False), 64, B=64)
        number_only[(1,)](5)
        assert [(x["device"], x["function"]) for x in gpu.launches] == [(device, device)] * 2


@on_fake_gpu
def test_launches_without_a_device_go_to_the_current_one(gpu: Gpu) -> None:
    check_current_device(gpu)


@on_fake_gpu(torch=True)
def test_launches_without_a_device_go_to_torchs_current_one(gpu: Gpu) -> None:
    check_current_device(gpu)


@on_fake_gpu(torch=True)
def test_streams(gpu: Gpu) -> None:
    gpu.streams.update({0: 0x100, 1: 0x200})
    for _ in range(3):
        copy[(1,)](Tensor(0), Tensor(4096), 64, B=64)
        kernel = copy[(1,)](Tensor(0, 1), Tensor(4096, 1), 64, B=64)
    assert [x["stream"] for x in gpu.launches] == [0x100, 0x200] * 3
    gpu.forget()
    gpu.library.fake_set_current_device(1)
    kernel[(5,)](Tensor(0, 1), Tensor(4096, 1), 64, 64)
    kernel[(5,)](Tensor(0, 1), Tensor(4096, 1), 64, 64, stream=0x300)
    kernel.run(
        5, 1, 1, 0, kernel.function, kernel.packed_metadata, None, None, None, Tensor(0, 1), Tensor(4096, 1), 64, 64
    )
    assert [(x["stream"], x["device"]) for x in gpu.launches] == [(0x200, 1), (0x300, 1), (0, 1)]


@on_fake_gpu
def test_arrays_on_two_gpus(gpu: Gpu) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="argument 'y' is on device 'cuda:1', the launch needs 'cuda:0'"):
            copy[(1,)](Tensor(0), Tensor(0, 1), 64, B=64)
    kernel = copy[(1,)](Tensor(0), Tensor(64), 64, B=64)
    for _ in range(2):
        with pytest.raises(ValueError, match="argument 'x' is on device 'cuda:1', the launch needs 'cuda:0'"):
            kernel[(1,)](Tensor(0, 1), Tensor(64, 1), 64, 64)
    assert len(gpu.launches) == 1


@on_fake_gpu
def test_host_memory_in_a_gpu_launch(gpu: Gpu) -> None:
    host = np.zeros(64, np.float32)
    for _ in range(2):
        with pytest.raises(ValueError, match="argument 'x' is on device 'cpu', the launch needs 'cuda:0'"):
            copy[(1,)](host, Tensor(0), 64, B=64)
        with pytest.raises(ValueError, match="argument 'y' is on device 'cpu', the launch needs 'cuda:0'"):
            copy[(1,)](Tensor(0), host, 64, B=64)
    gpu.library.fake_pinned(host.ctypes.data)
    gpu.slots(2)
    for _ in range(3):
        copy[(1,)](host, Tensor(0), 64, B=64)
    assert [x["slots"] for x in gpu.launches] == [[host.ctypes.data, MEMORY]] * 3
    other = np.zeros(64, np.float32)  # of the same kind, but a GPU cannot reach it
    for _ in range(2):
        with pytest.raises(ValueError, match="argument 'x' is on device 'cpu', the launch needs 'cuda:0'"):
            copy[(1,)](other[:], Tensor(0), 64, B=64)


@on_fake_gpu
def test_host_arrays_run_on_the_cpu_beside_a_gpu(gpu: Gpu) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    for start in (0, 1, 2):
        y[:] = 0
        copy[(1,)](x[start:], y[start:], 64 - start, B=64)
        assert (y[start:] == x[start:]).all()
    copy[(1,)](Tensor(0), Tensor(4096), 64, B=64)
    copy[(1,)](x, y, 64, B=64)
    assert len(gpu.launches) == 1
    # Unless the user chose a driver.
    driver = triton.runtime.driver
    chosen = type(driver.active)()
    driver.set_active(chosen)
    try:
        with pytest.raises(ValueError, match="argument 'x' is on device 'cpu', the launch needs 'cuda:0'"):
            copy[(1,)](x, y, 64, B=64)
    finally:
        driver.reset_active()
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.default_backend = "cuda"
        with pytest.raises(ValueError, match="argument 'x' is on device 'cpu', the launch needs 'cuda:0'"):
            sums[(1,)](x, y, N=64)


@on_fake_gpu
def test_hooks_see_gpu_launches(gpu: Gpu) -> None:
    seen: list[str] = []
    copy[(1,)](Tensor(0), Tensor(4096), 64, B=64)
    gpu.forget()
    gpu.slots(2)
    libtriton.cuda.set_current_device(0)
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.launch_enter_hook = lambda metadata: seen.append("enter " + metadata.get()["name"])
        triton.knobs.runtime.launch_exit_hook = lambda metadata: seen.append("exit")
        copy[(3,)](Tensor(0, 1), Tensor(4096, 1), 64, B=64)
    assert seen == ["enter copy", "exit"]
    (launch,) = gpu.launches
    assert (
        launch["device"] == 1
        and launch["grid"] == (3, 1, 1)
        and launch["slots"] == [MEMORY + 2**32, MEMORY + 2**32 + 4096]
    )
    assert libtriton.cuda.current_device() == 0


@on_fake_gpu
def test_threads_without_a_context(gpu: Gpu) -> None:
    errors: list[BaseException] = []

    def work(device: int) -> None:
        try:
            for _ in range(50):
                copy[(1,)](Tensor(0, device), Tensor(4096, device), 64, B=64)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    launches = gpu.launches
    assert len(launches) == 200 and all(x["device"] == x["function"] for x in launches)


def with_metadata(stages: dict[str, Any], **values: int) -> None:
    """Let compiled kernels have these values in their metadata."""
    inner = stages["cubin"]

    def cubin(ptx: str, metadata: dict[str, Any]) -> bytes:
        metadata.update(values)
        return inner(ptx, metadata)

    stages["cubin"] = cubin


@on_fake_gpu
def test_out_of_resources_before_the_launch(gpu: Gpu) -> None:
    def enlarge(stages: dict[str, Any], options: Any, *rest: Any) -> None:
        with_metadata(stages, shared=300_000)

    with triton.knobs.runtime.scope():
        triton.knobs.runtime.add_stages_inspection_hook = enlarge
        with pytest.raises(triton.OutOfResources, match="shared memory: required 300000, the limit is 232448"):
            sums[(1,)](Tensor(0), Tensor(4096), N=128)
    gpu.library.fake_max_threads(64)
    with pytest.raises(triton.OutOfResources, match="threads: required 128, the limit is 64"):
        sums[(1,)](Tensor(0), Tensor(4096), N=32)
    assert not gpu.launches


@on_fake_gpu
@pytest.mark.parametrize("hooked", [False, True])
def test_allocator(hooked: bool, gpu: Gpu) -> None:
    """A kernel whose metadata asks for global memory gets it from the allocator, as its last argument."""

    def ask(stages: dict[str, Any], options: Any, *rest: Any) -> None:
        with_metadata(stages, global_scratch_size=64, global_scratch_align=256)

    asked: list[Any] = []

    def allocate(size: int, alignment: int, stream: int | None) -> Tensor:
        asked.append((size, alignment, stream))
        return Tensor(0x9000)

    gpu.slots(3)
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.add_stages_inspection_hook = ask
        sizes = {"N": 256 if hooked else 512}
        if hooked:
            triton.knobs.runtime.launch_enter_hook = lambda metadata: None
        with pytest.raises(RuntimeError, match=r"call triton\.set_allocator"):
            sums[(6,)](Tensor(0), Tensor(4096), **sizes)
        triton.set_allocator(allocate)
        try:
            for _ in range(2):
                sums[(6,)](Tensor(0), Tensor(4096), **sizes)
        finally:
            triton.set_allocator(None)
    assert asked == [(64 * 6, 256, 0)] * 2
    assert [x["slots"] for x in gpu.launches] == [[MEMORY, MEMORY + 4096, MEMORY + 0x9000]] * 2
