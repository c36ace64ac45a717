"""Small cases taken from real bug reports, about launching, caching and tuning on the CPU; each test's name ends with
the case's number. Some more are in the files of their subject, under the same numbers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import triton
import triton.backends as backends
import triton.language as tl
from triton.errors import TritonError
from triton.runtime.errors import AutotunerError, LaunchError

SRC = str(Path(triton.__file__).parent.parent)
HEAD = "import os\nimport numpy as np\nimport triton\nimport triton.language as tl\n"


@pytest.fixture(autouse=True)
def cpu() -> Iterator[None]:
    """The CPU driver, active for one test."""
    before = triton.runtime.driver._active
    triton.runtime.driver.set_active(backends.in_tree_backends()["cpu"].driver())
    yield
    triton.runtime.driver._active = before


def start(folder: Path, body: str, cache: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(HEAD + textwrap.dedent(body))
    environment = {
        **os.environ,
        "PYTHONPATH": SRC,
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_DEFAULT_BACKEND": "cpu",
        "TRITON_CACHE_DIR": str(cache or folder / "cache"),
        **variables,
    }
    return subprocess.Popen(
        [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


EDITED = """
import helpers
from helpers import chosen

@triton.jit
def kernel(out, WHICH: tl.constexpr):
    if WHICH == "first":
        value = helpers.first(1)
    else:
        value = helpers.second(1)
    ones = tl.full((chosen(),), 1, tl.int32)
    tl.store(out, value + tl.sum(ones, 0) * 100 + helpers.chosen(3) * 10000)

for which in ("first", "second"):
    out = np.zeros(1, "i4")
    kernel[(1,)](out, WHICH=which)
    print(out[0])
"""
HELPERS = """
import triton
@triton.jit
def first(x):
    return x + {first}
@triton.jit
def second(x):
    return x + {second}
@triton.constexpr_function
def chosen(times=1):
    return {width} * times
"""


def test_edited_helpers_are_seen_G2_G3(tmp_path: Path) -> None:
    for first, second, width in ((1, 2, 4), (1, 3, 4), (1, 3, 8), (5, 3, 8), (1, 2, 4)):
        (tmp_path / "helpers.py").write_text(HELPERS.format(first=first, second=second, width=width))
        printed, _ = finish(start(tmp_path, EDITED))
        assert printed.split() == [str(1 + x + width * 100 + width * 30000) for x in (first, second)]


MANY = """
if os.environ.get("NO_CLEANUP"):
    import pathlib, shutil
    def refuse(*args, **kwargs):
        raise PermissionError("no cleaning up")
    shutil.rmtree = os.rmdir = os.remove = os.unlink = pathlib.Path.unlink = refuse

@triton.jit
def kernel(out, value, WHICH: tl.constexpr):
    tl.store(out, value * WHICH)

for which in range(20):
    out = np.zeros(1, "i4")
    kernel[(1,)](out, 7, WHICH=which)
    assert out[0] == 7 * which
"""


@pytest.mark.parametrize("cleanup", [True, False])
def test_sixteen_processes_on_an_empty_cache_G5(tmp_path: Path, cleanup: bool) -> None:
    cache = tmp_path / "cache"
    running = [start(tmp_path, MANY, cache, NO_CLEANUP="" if cleanup else "1") for _ in range(16 if cleanup else 8)]
    assert {finish(process) for process in running} == {("", "")}
    if cleanup:
        assert [p for p in cache.rglob("*") if ".tmp" in p.name] == []


def test_long_names_G7(tmp_path: Path) -> None:
    deep = tmp_path
    while len(str(deep)) < 180:
        deep = deep / "ein Ordner, größer 長い"
    name = "k" * 300
    body = f"""
    @triton.jit
    def {name}(out):
        tl.store(out, 3)

    out = np.zeros(1, "i4")
    {name}[(1,)](out)
    assert out[0] == 3
    """
    assert finish(start(tmp_path, body, deep)) == ("", "")
    written = {p: p.stat().st_ino for p in deep.rglob("*.obj")}
    assert len(written) == 1 and finish(start(tmp_path, body, deep)) == ("", "")
    assert {p: p.stat().st_ino for p in deep.rglob("*.obj")} == written
    assert max(len(p.name.encode()) for p in deep.rglob("*")) <= 100


def test_unusable_cache_folder_G8(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    body = """
    @triton.jit
    def kernel(out, WHICH: tl.constexpr):
        tl.store(out, WHICH)

    for which in range(3):
        out = np.zeros(1, "i4")
        kernel[(1,)](out, WHICH=which)
        print(out[0])
    """
    for folder in (blocked, blocked / "below"):
        out, err = finish(start(tmp_path, body, folder))
        assert out.split() == ["0", "1", "2"] and err.count("Warning") == 1
        assert "cannot write the cache folder" in err


class Clock:
    """A benchmark by which each configuration is slower than the one before it, and which counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, call: Any, quantiles: Any) -> list[float]:
        self.count += 1
        call()
        return [float(self.count)] * 3


@triton.jit
def width_kernel(out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.int32) + n)


@pytest.mark.parametrize(
    "prune",
    [
        {"early_config_prune": lambda configs, args, **kw: configs[1:2]},
        {"perf_model": lambda **args: abs(args["BLOCK"] - 2), "top_k": 1},
    ],
)
def test_one_configuration_left_is_not_measured_G10(prune: dict[str, Any]) -> None:
    clock = Clock()
    configs = [triton.Config({"BLOCK": b}) for b in (1, 2, 4)]
    kernel = triton.autotune(configs, key=["n"], do_bench=clock, prune_configs_by=prune)(width_kernel)
    out = np.zeros(4, "i4")
    kernel[(1,)](out, 9)
    assert out.tolist() == [9, 9, 0, 0] and clock.count == 0


@triton.jit
def picky_kernel(out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.static_assert(KIND != "refused")
    if KIND == "assembly":
        n = tl.inline_asm_elementwise("nop", "={no such register},r", [n], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.int32) + n)


def test_configurations_that_cannot_be_compiled_G12() -> None:
    bad = [
        triton.Config({"KIND": "refused", "BLOCK": 4}),
        triton.Config({"KIND": "good", "BLOCK": 1 << 40}),
        triton.Config({"KIND": "assembly", "BLOCK": 4}),
    ]
    good = [triton.Config({"KIND": "good", "BLOCK": b}) for b in (2, 4)]
    kernel = triton.autotune([bad[0], good[0], bad[1], good[1], bad[2]], key=["n"], do_bench=Clock())(picky_kernel)
    out = np.zeros(4, "i4")
    kernel[(1,)](out, 7)
    assert kernel.best_config == good[0] and out.tolist() == [7, 7, 7, 7]
    assert set(kernel.failures) == set(bad)
    assert "static assertion failed" in str(kernel.failures[bad[0]])
    with pytest.raises(AutotunerError, match="no configuration can be used"):
        triton.autotune(bad, key=["n"], do_bench=Clock())(picky_kernel)[(1,)](out, 7)


def test_no_gpu_and_no_driver_G13(tmp_path: Path) -> None:
    body = """
    import sys

    @triton.autotune([triton.Config({"BLOCK": 8})], key=[])
    @triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})
    @triton.jit
    def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        tl.store(x, n + EVEN)

    assert "triton._C.libtriton" not in sys.modules

    class OnGPU:
        device = "cuda:0"
        dtype = np.dtype("f4")
        shape = (4,)
        def data_ptr(self):
            return 4096

    x = np.zeros(4, "f4")
    kernel[(1,)](x, 8)
    assert x[0] == 9
    for _ in range(2):
        try:
            kernel[(1,)](OnGPU(), 8)
        except triton.runtime.errors.LaunchError as error:
            print(error)
    """
    out, _ = finish(start(tmp_path, body))
    assert out.splitlines() == ["argument 'x' is on device 'cuda:0', the launch needs 'cpu'"] * 2


@triton.jit
def store_kernel(out, value):  # type: ignore[no-untyped-def]
    tl.store(out, value)


def test_tensors_without_memory_are_named_G13_C18() -> None:
    torch = pytest.importorskip("torch")
    for _ in range(2):
        with pytest.raises(LaunchError, match="argument 'out' is on device 'meta', the launch needs 'cpu'"):
            store_kernel[(1,)](torch.zeros(4, device="meta"), 5)
        with pytest.raises(TypeError, match="argument 'out': it has no memory that a kernel could use"):
            store_kernel[(1,)](torch.zeros(4).to_sparse(), 5)
        x = torch.zeros(4)
        store_kernel[(1,)](x, 5)
        assert x[0] == 5


@triton.jit
def number_kernel(out):  # type: ignore[no-untyped-def]
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out + at, at)


@pytest.mark.parametrize("grid", [(1, 65536), (1, 1, 70000), (2, 40000)])
def test_large_grids_G15(grid: tuple[int, ...]) -> None:
    out = np.full(np.prod(grid), -1, "i4")
    number_kernel[grid](out)
    np.testing.assert_array_equal(out, np.arange(out.size))


@triton.jit
def sum_kernel(out, value, MORE: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, value + MORE)


def in_threads(works: list[Any]) -> None:
    failures: list[BaseException] = []

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_first_launch_in_a_new_thread_G17() -> None:
    def work() -> None:
        for more in (0, 1):
            out = np.zeros(1, "i4")
            sum_kernel[(1,)](out, 3, MORE=more)
            assert out[0] == 3 + more

    work()
    in_threads([work])


@triton.jit
def bump_kernel(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_one_tuning_per_key_among_threads_G18() -> None:
    clock = Clock()
    configs = [triton.Config({"BLOCK": b}) for b in (8, 16)]
    kernel = triton.autotune(configs, key=["n"], do_bench=clock, reset_to_zero=["x"])(bump_kernel)
    barrier = threading.Barrier(16)

    def work(n: int) -> None:
        x = np.zeros(n, "i4")
        barrier.wait()
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
        assert (x == 1).all()

    in_threads([lambda n=64 + i % 3: work(n) for i in range(16)])  # type: ignore[misc]
    assert clock.count == 6


@triton.jit
def assembly_kernel(out, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [3], dtype=tl.int32, is_pure=True, pack=1))


@pytest.mark.parametrize(
    "text, constraints",
    [("nop", "={no such register},r"), ("no such instruction $0, $1", "=r,r"), ("mov $0, $7", "=r,r")],
)
def test_what_cannot_be_coded_is_an_exception_with_its_line_G20(text: str, constraints: str) -> None:
    with pytest.raises(TritonError, match=r"test_cases.py:\d+"):
        assembly_kernel[(1,)](np.zeros(1, "i4"), TEXT=text, CONSTRAINTS=constraints)
    out = np.zeros(1, "i4")
    store_kernel[(1,)](out, 5)
    assert out[0] == 5


def test_packed_assembly_is_refused_with_its_line_G20() -> None:
    with pytest.raises(TritonError, match=r"test_cases.py:(?s:.*)pack > 1\) is not supported"):
        packed_kernel[(1,)](np.zeros(4, "i1"))


@triton.jit
def packed_kernel(out):  # type: ignore[no-untyped-def]
    i = tl.arange(0, 4)
    x = tl.load(out + i)
    tl.store(out + i, tl.inline_asm_elementwise("nop", "=r,r", [x], dtype=tl.int8, is_pure=True, pack=4))


def test_a_class_is_no_argument() -> None:
    with pytest.raises(TypeError, match="argument 'out': a value of type type cannot be passed to a kernel"):
        store_kernel[(1,)](int, 1)


@triton.jit
def byte_kernel(out, value: tl.int8):  # type: ignore[no-untyped-def]
    tl.store(out, value)


def test_a_whole_float_for_an_integer_parameter_B12() -> None:
    for value in (42, 42.0, -3.0, np.float32(7), 42.0, 16.0, 42):
        out = np.zeros(1, "i1")
        byte_kernel[(1,)](out, value)
        assert out[0] == value
    for wrong in (42.5, float("nan"), float("inf"), np.float64(0.5)):
        with pytest.raises(TypeError, match=r"argument 'value': expected an integer for type i8, got "):
            byte_kernel[(1,)](out, wrong)
    for large in (300, 300.0, -129.0):
        with pytest.raises(TypeError, match=rf"argument 'value': {large:.0f} does not fit type i8"):
            byte_kernel[(1,)](out, large)
