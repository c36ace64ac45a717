"""Many processes on one cache, and sources edited between runs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import triton

HERE = Path(__file__).parent
SRC = str(Path(triton.__file__).parent.parent)
PRELUDE = """
import os, sys
import numpy as np
import triton, triton.language as tl
import triton.backends as backends
import triton.runtime.cache
triton.runtime.cache.triton_key = lambda: "one package"  # edits of the package between two runs are no part of this
from reference_backend import ReferenceBackend, ReferenceDriver
backends.all_backends()["reference"] = backends.Backend(ReferenceBackend, ReferenceDriver)
triton.runtime.driver.set_active(ReferenceDriver())
"""


def start(path: Path, cache: Path, **variables: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((SRC, str(HERE))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_CACHE_DIR": str(cache),
        **variables,
    }
    return subprocess.Popen(
        [sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str], expected: str = "none") -> str:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    warned = [line for line in err.splitlines() if "Warning" in line and expected not in line]
    assert warned == []
    return out


MANY = (
    PRELUDE
    + """
import shutil
if os.environ.get("NO_CLEANUP"):
    def refuse(*args, **kwargs):
        raise PermissionError("no cleaning up")
    shutil.rmtree = os.rmdir = refuse

@triton.jit
def kernel(out, value, WHICH: tl.constexpr):
    tl.store(out, value + WHICH)

for which in range(20):
    out = np.zeros(1, "i4")
    kernel[(1,)](out, 5, WHICH=which)
    assert out[0] == 5 + which
print(len(ReferenceBackend.stages_run))
"""
)


def test_processes_share_an_empty_cache(tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(MANY)
    for variables in ({}, {"NO_CLEANUP": "1", "TRITON_CACHE_SIZE": "20k"}):
        cache = tmp_path / f"cache{len(variables)}"
        running = [start(script, cache, **variables) for _ in range(6)]
        counts = [int(finish(process, "cannot be removed")) for process in running]
        assert all(count <= 20 for count in counts)
        if not variables:
            assert int(finish(start(script, cache))) == 0, "everything is there for a later process"
        left = [p.name for p in cache.rglob("*") if p.name.startswith(".tmp")]
        assert left == []


EDITED = (
    PRELUDE
    + """
import helpers

@triton.jit
def kernel(out, WHICH: tl.constexpr):
    if WHICH == "first":
        value = helpers.first()
    else:
        value = helpers.second()
    tl.store(out, value + helpers.width())

out = np.zeros(1, "i4")
kernel[(1,)](out, WHICH="first")
print(out[0], len(ReferenceBackend.stages_run))
"""
)
HELPERS = """
import triton, triton.language as tl
@triton.jit
def first():
    return {first}
@triton.jit
def second():
    return 2
@triton.constexpr_function
def width():
    return {width}
"""


def test_edited_helpers_give_new_results(tmp_path: Path) -> None:
    script = tmp_path / "edited.py"
    script.write_text(EDITED)
    cache = tmp_path / "cache"

    def result(first: int, width: int) -> str:
        (tmp_path / "helpers.py").write_text(textwrap.dedent(HELPERS.format(first=first, width=width)))
        return finish(start(script, cache)).strip()

    assert result(1, 100) == "101 1"
    assert result(1, 100) == "101 0"
    assert result(7, 100) == "107 1"
    assert result(7, 200) == "207 1"
    assert result(1, 100) == "101 0"


INTERPRETED = """
import numpy as np
import triton, triton.language as tl
@triton.jit
def kernel(x, out, n, SHIFT: tl.constexpr):
    offsets = tl.arange(0, 8)
    tl.store(out + offsets, tl.load(x + offsets + SHIFT, mask=offsets < n) * 2, mask=offsets < n)
x, out = np.arange(8, dtype="f4"), np.zeros(8, "f4")
kernel[(1,)](x, out, 8, SHIFT=0, num_warps=2)
print(out.tolist() == (2 * x).tolist())
kernel[(0,)](x, out, 8, SHIFT=0)
try:
    kernel[(1,)](x, out, 8, SHIFT=0, num_warp=2)
except TypeError as error:
    print(error)
try:
    kernel[(1,)](x, out, 8, SHIFT=1)
except triton.InterpreterError as error:
    print(error)
"""


def test_the_interpreter_runs_launches_and_finds_wild_accesses(tmp_path: Path) -> None:
    script = tmp_path / "interpreted.py"
    script.write_text(INTERPRETED)
    lines = finish(start(script, tmp_path / "cache", TRITON_INTERPRET="1")).splitlines()
    assert lines[0] == "True"
    assert "did you mean 'num_warps'" in lines[1]
    assert "interpreted.py:7" in lines[2] and "outside" in lines[2]
    assert not (tmp_path / "cache").exists()


ON_THE_CPU = """
import numpy as np
import triton, triton.language as tl
@triton.jit
def kernel(out, value, WHICH: tl.constexpr):
    tl.store(out, value + WHICH)
for which in range(5):
    out = np.zeros(1, "i4")
    kernel[(1,)](out, 5, WHICH=which)
    assert out[0] == 5 + which
"""


def test_processes_share_machine_code(tmp_path: Path) -> None:
    script = tmp_path / "cpu.py"
    script.write_text(ON_THE_CPU)
    cache = tmp_path / "cache"
    for process in [start(script, cache, TRITON_DEFAULT_BACKEND="cpu") for _ in range(3)]:
        finish(process)
    entries = [p for p in cache.iterdir() if not p.name.startswith(".")]
    assert len(entries) >= 5
    for victim in entries[:2]:
        for path in victim.glob("*.obj"):
            path.write_bytes(path.read_bytes()[:-64])
    finish(start(script, cache, TRITON_DEFAULT_BACKEND="cpu"))
