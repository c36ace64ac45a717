"""cpu_launch: every program once, failures as exceptions, many callers, fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from triton._C import libtriton

Load = Callable[..., libtriton.Code]
Slots = Callable[..., bytes]
KERNEL = "void @kernel(ptr %args, i64 %begin, i64 %end, ptr %ctx)"
FINISH = "\n  ret void\n}\n"


def launch_count(kernel: int, slots: Slots, grid: tuple[int, int, int], **options: int) -> np.ndarray:
    counts = np.zeros(grid[0] * grid[1] * grid[2], np.int32)
    libtriton.cpu_launch(kernel, slots(counts.ctypes.data), grid, 0, **options)
    return counts


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    "grid", [(1, 1, 1), (2, 1, 1), (5, 1, 1), (64, 1, 1), (1009, 1, 1), (17, 13, 11), (100003, 1, 3)]
)
def test_every_program_runs_once(
    count_kernel: int, slots: Slots, threads: Callable[[int], None], count: int, grid: tuple[int, int, int]
) -> None:
    threads(count)
    for _ in range(3):  # the first launch shares its work, later ones may stay on this thread
        assert (launch_count(count_kernel, slots, grid) == 1).all()


def test_threads_argument_limits(count_kernel: int, slots: Slots) -> None:
    assert (launch_count(count_kernel, slots, (1000, 1, 1), threads=1) == 1).all()
    assert (launch_count(count_kernel, slots, (1000, 1, 1), threads=2) == 1).all()


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (5, 5, 0), (0, 0, 0)])
def test_empty_grid_does_nothing(count_kernel: int, grid: tuple[int, int, int]) -> None:
    libtriton.cpu_launch(count_kernel, b"", grid, 0)  # would fault if it ran


RANGES = f"""
define {KERNEL} {{
  %total = load ptr, ptr %args
  %n = sub i64 %end, %begin
  %old = atomicrmw add ptr %total, i64 %n monotonic
  ret void
}}
"""


@pytest.mark.parametrize("grid", [(2**31 - 1, 65535, 1), (2**31 - 1, 2**20, 2**10), (1, 2**31 - 1, 2**31 - 1)])
def test_totals_beyond_32_bits(load: Load, slots: Slots, grid: tuple[int, int, int]) -> None:
    """The ranges handed out cover the whole grid; the kernel only adds up their lengths."""
    code = load(RANGES)
    total = np.zeros(1, np.int64)
    libtriton.cpu_launch(code.address("kernel"), slots(total.ctypes.data), grid, 0)
    assert int(total[0]) == grid[0] * grid[1] * grid[2]


@pytest.mark.parametrize(
    ("grid", "error", "expected"),
    [
        ((-1, 1, 1), ValueError, "grid dimension 0 is -1; it must lie between 0 and 2147483647"),
        ((1, 2**31, 1), ValueError, "grid dimension 1 is 2147483648"),
        ((2**31 - 1, 2**31 - 1, 2**31 - 1), ValueError, "more than 2\\^62 programs"),
        ((1, 1), TypeError, "tuple of three"),
        ((1, 1, "x"), TypeError, "str"),
    ],
)
def test_bad_grids(count_kernel: int, grid: tuple[object, ...], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        libtriton.cpu_launch(count_kernel, b"", grid, 0)


def test_bad_arguments(count_kernel: int) -> None:
    with pytest.raises(ValueError, match="fn is 0"):
        libtriton.cpu_launch(0, b"", (1, 1, 1), 0)
    with pytest.raises(TypeError, match="misses the argument 'scratch'"):
        libtriton.cpu_launch(count_kernel, b"", (1, 1, 1))
    with pytest.raises(TypeError, match="unexpected or repeated argument 'extra'"):
        libtriton.cpu_launch(count_kernel, b"", (1, 1, 1), 0, extra=1)
    with pytest.raises(ValueError, match="at least 1"):
        libtriton.set_num_threads(0)


CONTEXT = f"""
; out[8 * begin ...] = grid_x, grid_y, grid_z, thread_id, scratch & 63, scratch != 0, end - begin
define {KERNEL} {{
  %out = load ptr, ptr %args
  %offset = mul i64 %begin, 8
  %o = getelementptr i32, ptr %out, i64 %offset
  %head = load <4 x i32>, ptr %ctx, align 4
  store <4 x i32> %head, ptr %o, align 4
  %ps = getelementptr i8, ptr %ctx, i64 16
  %scratch = load ptr, ptr %ps
  %bits = ptrtoint ptr %scratch to i64
  %low = and i64 %bits, 63
  %low32 = trunc i64 %low to i32
  %o4 = getelementptr i32, ptr %o, i64 4
  store i32 %low32, ptr %o4
  %last = getelementptr i8, ptr %scratch, i64 99999
  store i8 1, ptr %last
  ret void
}}
"""


def test_context_has_grid_thread_and_aligned_scratch(load: Load, slots: Slots, threads: Callable[[int], None]) -> None:
    threads(3)
    code = load(CONTEXT)
    out = np.full((3 * 2 * 5, 8), -1, np.int32)
    libtriton.cpu_launch(code.address("kernel"), slots(out.ctypes.data), (3, 2, 5), 100000)
    started = out[out[:, 0] != -1]
    assert (started[:, :3] == [3, 2, 5]).all()
    assert set(started[:, 3]) <= {0, 1, 2}
    assert (started[:, 4] == 0).all()


ASSERT_AT = f"""
declare void @tl_assert_fail(ptr, ptr, i64) noreturn
@text = private constant [14 x i8] c"index < length"
define {KERNEL} {{
entry:
  %counts = load ptr, ptr %args
  %pbad = getelementptr i64, ptr %args, i64 1
  %bad = load i64, ptr %pbad
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %more ]
  %hit = icmp eq i64 %i, %bad
  br i1 %hit, label %fail, label %more
fail:
  call void @tl_assert_fail(ptr %ctx, ptr @text, i64 14)
  unreachable
more:
  %p = getelementptr i32, ptr %counts, i64 %i
  store i32 1, ptr %p
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %end
  br i1 %again, label %loop, label %done
done:
  ret void
}}
"""


@pytest.mark.parametrize("count", [1, 2, 4])
def test_assertion_becomes_an_exception(load: Load, slots: Slots, threads: Callable[[int], None], count: int) -> None:
    threads(count)
    code = load(ASSERT_AT)
    counts = np.zeros(100000, np.int32)
    for bad in (0, 5, 77777):
        with pytest.raises(libtriton.DeviceAssertError, match=r"^index < length$"):
            libtriton.cpu_launch(code.address("kernel"), slots(counts.ctypes.data, bad), (100000, 1, 1), 0)
    counts[:] = 0
    libtriton.cpu_launch(code.address("kernel"), slots(counts.ctypes.data, 2**63), (100000, 1, 1), 0)
    assert (counts == 1).all()


def test_assertion_abandons_the_rest(load: Load, slots: Slots, threads: Callable[[int], None]) -> None:
    threads(1)
    code = load(ASSERT_AT)
    counts = np.zeros(1000, np.int32)
    with pytest.raises(libtriton.DeviceAssertError):
        libtriton.cpu_launch(code.address("kernel"), slots(counts.ctypes.data, 10), (1000, 1, 1), 0)
    assert counts.sum() == 10


def test_assertion_is_both_kinds_of_error() -> None:
    assert issubclass(libtriton.DeviceAssertError, AssertionError)
    assert issubclass(libtriton.DeviceAssertError, RuntimeError)


FAULTS = {
    "read": ("  %p = inttoptr i64 4660 to ptr\n  %v = load volatile i32, ptr %p", "segmentation fault at 0x1234"),
    "write": ("  %p = inttoptr i64 4096 to ptr\n  store volatile i32 1, ptr %p", "segmentation fault at 0x1000"),
    "divide": (
        '  %z = call i32 asm sideeffect "xorl $0, $0", "=r,~{dirflag},~{fpsr},~{flags}"()\n  %d = sdiv i32 7, %z\n'
        "  %p = alloca i32\n  store volatile i32 %d, ptr %p",
        "integer division by zero",
    ),
    "trap": ("  call void @llvm.trap()", "illegal instruction at 0x"),
    "recursion": (
        "  %m = alloca [8192 x i8]\n  store volatile i8 1, ptr %m\n"
        "  call void @kernel(ptr %m, i64 %begin, i64 %end, ptr %ctx)\n  store volatile i8 2, ptr %m",
        "segmentation fault at 0x",
    ),
}


@pytest.mark.parametrize("grid", [(1, 1, 1), (500, 2, 1)])
@pytest.mark.parametrize("name", FAULTS)
def test_fault_becomes_an_exception(
    load: Load, count_kernel: int, slots: Slots, threads: Callable[[int], None], name: str, grid: tuple[int, int, int]
) -> None:
    threads(3)
    body, expected = FAULTS[name]
    code = load(f"declare void @llvm.trap()\ndefine {KERNEL} {{\n{body}{FINISH}")
    for _ in range(3):
        with pytest.raises(libtriton.KernelFault, match=expected):
            libtriton.cpu_launch(code.address("kernel"), b"", grid, 0)
    assert (launch_count(count_kernel, slots, (1000, 1, 1)) == 1).all()


def test_fault_on_every_python_thread(load: Load) -> None:
    code = load(f"define {KERNEL} {{\n{FAULTS['recursion'][0]}{FINISH}")
    caught = []

    def run() -> None:
        try:
            libtriton.cpu_launch(code.address("kernel"), b"", (1, 1, 1), 0)
        except libtriton.KernelFault as error:
            caught.append(str(error))

    for _ in range(4):
        workers = [threading.Thread(target=run) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(caught) == 16


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


LAUNCH_SOMETHING = f"""
from triton._C import libtriton as n
t, c, f = n.host_target()
ir = '''define {KERNEL} {{
  ret void
}}'''
code = n.jit_load(n.compile_ir(ir, triple=t, cpu=c, features=f, emit=("obj",))["obj"])
k = code.address("kernel")
n.set_num_threads(4)
for _ in range(20):
    n.cpu_launch(k, b"", (1000, 1, 1), 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there ctypes turns faults into OSError")
def test_a_fault_outside_a_kernel_still_ends_the_process() -> None:
    """Our handler passes on what is not a kernel's: faulthandler reports it and the process dies of the signal."""
    done = run_python(LAUNCH_SOMETHING + "import ctypes\nctypes.string_at(8)\n")
    assert done.returncode == -11
    assert "Segmentation fault" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is one chain of handlers, and ours stays in front")
def test_a_fault_of_a_kernel_is_survived_when_another_handler_was_installed_later() -> None:
    bad = LAUNCH_SOMETHING.replace("  ret void", "  store i8 1, ptr inttoptr (i64 8 to ptr)\n  ret void")
    bad = bad.replace("for _ in range(20):\n    n.cpu_launch", "for i in range(3):\n    launch")
    head = (
        "import faulthandler\nfaulthandler.disable()\n"
        + LAUNCH_SOMETHING
        + "faulthandler.enable()\n"
        + "def launch(*args):\n    try:\n        n.cpu_launch(*args)\n"
        + "    except n.KernelFault:\n        print('survived')\n"
    )
    done = run_python(head + bad)
    assert (done.returncode, done.stdout) == (0, "survived\n" * 3), done.stderr


def test_print_goes_to_the_sink_and_to_stdout(load: Load, capfd: pytest.CaptureFixture[str]) -> None:
    code = load(
        f"""
declare void @tl_print(ptr, ptr, i64)
declare i64 @tl_fmt_i64(ptr, i64, i32)
define {KERNEL} {{
entry:
  %buf = alloca [32 x i8]
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %n = call i64 @tl_fmt_i64(ptr %buf, i64 %i, i32 0)
  call void @tl_print(ptr %ctx, ptr %buf, i64 %n)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    )
    lines: list[str] = []
    libtriton.set_print_sink(lines.append)
    try:
        libtriton.cpu_launch(code.address("kernel"), b"", (300, 1, 1), 0)
    finally:
        libtriton.set_print_sink(None)
    assert sorted(map(int, lines)) == list(range(300))
    libtriton.cpu_launch(code.address("kernel"), b"", (20, 1, 1), 0)
    assert sorted(map(int, capfd.readouterr().out.split())) == list(range(20))


def test_print_sink_may_launch(load: Load, count_kernel: int, slots: Slots) -> None:
    """A launch inside a print inside a launch: scratch memory of the outer one is left alone."""
    code = load(
        f"""
declare void @tl_print(ptr, ptr, i64)
@text = private constant [2 x i8] c"hi"
define {KERNEL} {{
  %out = load ptr, ptr %args
  %ps = getelementptr i8, ptr %ctx, i64 16
  %scratch = load ptr, ptr %ps
  store volatile i64 12345, ptr %scratch
  call void @tl_print(ptr %ctx, ptr @text, i64 2)
  %v = load volatile i64, ptr %scratch
  store i64 %v, ptr %out
  ret void
}}
"""
    )
    touch = load(
        f"define {KERNEL} {{\n  %ps = getelementptr i8, ptr %ctx, i64 16\n  %scratch = load ptr, ptr %ps\n"
        f"  store volatile i64 -1, ptr %scratch{FINISH}"
    )
    inner: list[int] = []

    def sink(line: str) -> None:
        libtriton.cpu_launch(touch.address("kernel"), b"", (1, 1, 1), 64)
        inner.append(int(launch_count(count_kernel, slots, (100, 1, 1)).sum()))

    out = np.zeros(1, np.int64)
    libtriton.set_print_sink(sink)
    try:
        libtriton.cpu_launch(code.address("kernel"), slots(out.ctypes.data), (1, 1, 1), 64)
    finally:
        libtriton.set_print_sink(None)
    assert inner == [100] and out[0] == 12345


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("i64 @tl_fmt_i64(ptr %b, i64 -42, i32 0)", "-42"),
        ("i64 @tl_fmt_i64(ptr %b, i64 -1, i32 8)", "0xffffffff"),
        ("i64 @tl_fmt_i64(ptr %b, i64 255, i32 4)", "0x00ff"),
        ("i64 @tl_fmt_u64(ptr %b, i64 -1, i32 0)", "18446744073709551615"),
        ("i64 @tl_fmt_u64(ptr %b, i64 -1, i32 16)", "0xffffffffffffffff"),
        ("i64 @tl_fmt_f64(ptr %b, double 1.5)", "1.5"),
        ("i64 @tl_fmt_f64(ptr %b, double -1.0e300)", "-1e+300"),
        ("i64 @tl_fmt_f64(ptr %b, double 0x7FF0000000000000)", "inf"),
        ("i64 @tl_fmt_f64(ptr %b, double 0x7FF8000000000000)", "nan"),
        ("i64 @tl_fmt_ptr(ptr %b, ptr inttoptr (i64 4660 to ptr))", "0x0000000000001234"),
    ],
)
def test_formatting(load: Load, call: str, expected: str) -> None:
    name = call.split("@")[1].split("(")[0]
    operands = {"tl_fmt_f64": "ptr, double", "tl_fmt_ptr": "ptr, ptr"}.get(name, "ptr, i64, i32")
    code = load(
        f"""
declare i64 @{name}({operands})
declare void @tl_print(ptr, ptr, i64)
define {KERNEL} {{
  %b = alloca [32 x i8]
  %n = call {call}
  call void @tl_print(ptr %ctx, ptr %b, i64 %n){FINISH}"""
    )
    lines: list[str] = []
    libtriton.set_print_sink(lines.append)
    try:
        libtriton.cpu_launch(code.address("kernel"), b"", (1, 1, 1), 0)
    finally:
        libtriton.set_print_sink(None)
    assert lines == [expected]


def test_launches_from_several_threads(count_kernel: int, slots: Slots, threads: Callable[[int], None]) -> None:
    threads(4)
    wrong: list[int] = []

    def run(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(60):
            size = int(random.integers(1, 20000))
            if not (launch_count(count_kernel, slots, (size, 1, 1)) == 1).all():
                wrong.append(size)

    workers = [threading.Thread(target=run, args=(seed,)) for seed in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_a_failure_stays_with_its_launch(
    load: Load, count_kernel: int, slots: Slots, threads: Callable[[int], None]
) -> None:
    threads(4)
    failing = load(ASSERT_AT)
    scratch = np.zeros(5000, np.int32)
    outcomes: dict[str, int] = {"good": 0, "failed": 0}

    def good() -> None:
        for _ in range(50):
            outcomes["good"] += int((launch_count(count_kernel, slots, (5000, 1, 1)) == 1).all())

    def bad() -> None:
        for _ in range(50):
            try:
                libtriton.cpu_launch(failing.address("kernel"), slots(scratch.ctypes.data, 2500), (5000, 1, 1), 0)
            except libtriton.DeviceAssertError:
                outcomes["failed"] += 1

    workers = [threading.Thread(target=good), threading.Thread(target=bad)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert outcomes == {"good": 50, "failed": 50}


def test_the_gil_is_free_while_a_kernel_runs(load: Load) -> None:
    code = load(
        f"""
define {KERNEL} {{
entry:
  %slot = alloca i64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store volatile i64 %i, ptr %slot
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 300000000
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    )
    kernel = code.address("kernel")
    worker = threading.Thread(target=libtriton.cpu_launch, args=(kernel, b"", (1, 1, 1), 0))
    worker.start()
    ticks = 0
    while worker.is_alive():
        time.sleep(0)  # any longer may be 16 ms on Windows
        ticks += 1
    assert ticks >= 5


SLOW_COUNT = f"""
define {KERNEL} {{
entry:
  %total = load ptr, ptr %args
  %slot = alloca i64
  br label %program
program:
  %i = phi i64 [ %begin, %entry ], [ %following, %finished ]
  br label %spin
spin:
  %j = phi i64 [ 0, %program ], [ %next, %spin ]
  store volatile i64 %j, ptr %slot
  %next = add i64 %j, 1
  %more = icmp slt i64 %next, 500000
  br i1 %more, label %spin, label %finished
finished:
  %old = atomicrmw add ptr %total, i64 1 monotonic
  %following = add i64 %i, 1
  %again = icmp slt i64 %following, %end
  br i1 %again, label %program, label %done
done:
  ret void
}}
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
@pytest.mark.parametrize("count", [1, 2])
def test_a_long_launch_can_be_interrupted(load: Load, slots: Slots, threads: Callable[[int], None], count: int) -> None:
    """An exception from a signal handler, as Ctrl-C raises it, ends the launch between two chunks."""
    threads(count)
    kernel = load(SLOW_COUNT)
    total = np.zeros(1, np.int64)
    libtriton.cpu_launch(kernel.address("kernel"), slots(total.ctypes.data), (8, 1, 1), 0)
    assert total[0] == 8

    class Interrupt(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Interrupt):
            libtriton.cpu_launch(kernel.address("kernel"), slots(total.ctypes.data), (100000, 1, 1), 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 8 < total[0] < 100000


ENDLESS = f"""
declare void @tl_check(ptr, i32)
define {KERNEL} {{
entry:
  %total = load ptr, ptr %args
  %place = getelementptr i8, ptr %ctx, i64 32
  br label %spin
spin:
  %left = load i32, ptr %place
  %next = sub i32 %left, 1
  store i32 %next, ptr %place
  %due = icmp slt i32 %next, 1
  br i1 %due, label %check, label %again
check:
  %old = atomicrmw add ptr %total, i64 1 monotonic
  call void @tl_check(ptr %ctx, i32 1)
  br label %again
again:
  br label %spin
}}
"""


def interrupted(launch: Callable[[], object], after: float) -> float:
    """Seconds from a timer's signal, whose handler raises, to the end of the launch."""

    class Interrupt(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    start = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        with pytest.raises(Interrupt):
            launch()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return time.perf_counter() - start - after


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
@pytest.mark.parametrize("programs", [1, 5])
@pytest.mark.parametrize("waits", [False, True])
def test_an_endless_loop_can_be_interrupted(
    load: Load, slots: Slots, threads: Callable[[int], None], programs: int, waits: bool
) -> None:
    threads(2)
    kernel, total = load(ENDLESS), np.zeros(1, np.int64)
    arguments = kernel.address("kernel"), slots(total.ctypes.data), (programs, 1, 1), 0
    late = interrupted(lambda: libtriton.cpu_launch(*arguments, waits=waits), 0.2)
    assert late < 2
    assert 10 < total[0] < 100_000  # asked about every millisecond


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
def test_an_interruption_does_not_wait_for_a_long_chunk(
    load: Load, slots: Slots, threads: Callable[[int], None]
) -> None:
    """Nothing is known about this kernel's cost, and a sixteenth of the grid takes a minute."""
    threads(2)
    kernel, total = load(SLOW_COUNT), np.zeros(1, np.int64)
    arguments = kernel.address("kernel"), slots(total.ctypes.data), (10_000_000, 1, 1), 0
    assert interrupted(lambda: libtriton.cpu_launch(*arguments), 0.1) < 2


POLL = f"""
declare i32 @tl_poll(ptr, ptr, i64, i32, i64, ptr, i64)
define {KERNEL} {{
  %flag = load ptr, ptr %args
  %seen = call i32 @tl_poll(ptr %ctx, ptr %flag, i64 1, i32 32, i64 -1, ptr null, i64 0){FINISH}"""


def test_somebody_else_may_write_what_programs_wait_for(
    load: Load, slots: Slots, threads: Callable[[int], None]
) -> None:
    threads(2)
    kernel, flag = load(POLL), np.zeros(1, np.int32)
    timer = threading.Timer(0.3, lambda: flag.__setitem__(0, 1))
    timer.start()
    libtriton.cpu_launch(kernel.address("kernel"), slots(flag.ctypes.data), (40, 1, 1), 0, waits=True)
    assert flag[0] == 1
    timer.join()


def test_programs_that_wait_for_ever_end_with_an_error(
    load: Load, slots: Slots, threads: Callable[[int], None]
) -> None:
    threads(2)
    kernel, flag = load(POLL), np.zeros(1, np.int32)
    with pytest.raises(libtriton.KernelFault, match="every program waits, none is left to write"):
        libtriton.cpu_launch(kernel.address("kernel"), slots(flag.ctypes.data), (3, 1, 1), 0, waits=True)
    flag[0] = 1
    libtriton.cpu_launch(kernel.address("kernel"), slots(flag.ctypes.data), (3, 1, 1), 0, waits=True)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
def test_a_wait_can_be_interrupted(load: Load, slots: Slots, threads: Callable[[int], None]) -> None:
    threads(2)
    kernel, flag = load(POLL), np.zeros(1, np.int32)
    arguments = kernel.address("kernel"), slots(flag.ctypes.data), (5, 1, 1), 0
    assert interrupted(lambda: libtriton.cpu_launch(*arguments, waits=True), 0.1) < 2


def test_impossible_scratch_is_a_memory_error(count_kernel: int, slots: Slots) -> None:
    with pytest.raises(MemoryError, match="scratch"):
        libtriton.cpu_launch(count_kernel, slots(0), (1, 1, 1), 2**60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_working_pool() -> None:
    code = LAUNCH_SOMETHING + (
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "for _ in range(5):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        for _ in range(20): n.cpu_launch(k, b'', (100000, 1, 1), 0)\n"
        "        obj = n.compile_ir(ir, triple=t, cpu=c, features=f, emit=('obj',))['obj']\n"
        "        fresh = n.jit_load(obj)\n"
        "        n.cpu_launch(fresh.address('kernel'), b'', (1000, 1, 1), 0)\n"
        "        os._exit(7)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "    n.cpu_launch(k, b'', (1000, 1, 1), 0)\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_number_of_threads_from_the_environment() -> None:
    code = "from triton._C import libtriton\nprint(libtriton.get_num_threads())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TRITON_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "3"


def test_an_empty_launch_is_cheap(load: Load) -> None:
    """Well under 1 µs; the bound leaves room for a busy machine."""
    code = load(f"define {KERNEL} {{{FINISH}")
    kernel = code.address("kernel")
    best = min(time_launches(kernel, 2000) for _ in range(20))
    assert best < 1.5e-6


def time_launches(kernel: int, count: int) -> float:
    launch = libtriton.cpu_launch
    start = time.perf_counter()
    for _ in range(count):
        launch(kernel, b"", (1, 1, 1), 0)
    return (time.perf_counter() - start) / count
