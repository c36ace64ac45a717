"""``python -m triton.tools.doctor``: run as a user runs it, on whole and on broken installations."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_gpu
import pytest

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools import doctor

PACKAGE = Path(triton.__file__).parent
WITHOUT_TORCH = Path(__file__).parent / "without_torch"  # importing the real one takes seconds, for each process


@triton.jit
def double(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * 2)


def run(*words: str, path: Path = PACKAGE.parent, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{WITHOUT_TORCH}", **variables}
    command = [sys.executable, "-m", "triton.tools.doctor", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)


def report(**options: Any) -> tuple[dict[str, dict[str, tuple[str, str]]], bool]:
    """``{section: {name: (state, text)}}`` and whether all is well, which the exit status must say too."""
    done = run("--json", **options)
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["ok"] else 1), done.stderr
    sections = {t: {f["name"]: (f["state"], f["text"]) for f in found} for t, found in document["sections"].items()}
    return sections, document["ok"]


def test_page_of_a_whole_installation(tmp_path):
    done = run(TRITON_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert triton.__version__ in done.stdout and "result right" in done.stdout
    assert done.stdout.endswith("no problem found\n")
    # A page: what a person reads, and nothing written by looking.
    assert len(done.stdout.splitlines()) <= 70
    assert not (tmp_path / "cache").exists()


def test_json_has_each_part(tmp_path):
    sections, well = report(TRITON_CACHE_DIR=str(tmp_path))
    assert well and list(sections) == [
        "versions", "back ends", "tools and libraries", "cache", "PyTorch", "kernels", "environment variables"
    ]  # fmt: skip
    assert sections["back ends"]["cpu"][0] == "ok" and {"cuda", "hip"} <= set(sections["back ends"])
    assert {"ptxas", "libdevice", "ld.lld", "ocml", "libcuda", "libamdhip64"} <= set(sections["tools and libraries"])
    assert sections["environment variables"]["TRITON_CACHE_DIR"] == ("ok", str(tmp_path))


def test_native_module_that_cannot_be_loaded_is_said_first(tmp_path):
    copy = tmp_path / "triton"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "native", "*.so", "*.pyd"))
    name = "libtriton.pyd" if os.name == "nt" else "libtriton.abi3.so"
    (copy / "_C" / name).write_bytes(b"not a library")
    done = run(path=tmp_path)
    assert done.returncode == 1
    first = done.stdout.splitlines()[1]
    assert first.startswith(" X native module  cannot be loaded:") and name in first
    sections, well = report(path=tmp_path)
    assert not well and name in sections["versions"]["its folder"][1]
    # The rest of the page is there all the same.
    assert sections["back ends"]["cpu"] == ("absent", "needs the native module")
    assert sections["tools and libraries"]["ptxas"][0] in ("ok", "absent")
    assert "native module" in sections["kernels"]["kernels"][1]
    assert sections["versions"]["triton"][1].startswith(triton.__version__)


def test_missing_native_module(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "native", "libtriton.*")
    shutil.copytree(PACKAGE, tmp_path / "triton", ignore=ignored)
    sections, well = report(path=tmp_path)
    assert not well and "no extension module" in sections["versions"]["its folder"][1]


def test_variable_that_names_no_file_is_a_problem(tmp_path):
    sections, well = report(TRITON_PTXAS_PATH=str(tmp_path / "ptxas"))
    state, text = sections["tools and libraries"]["ptxas"]
    assert not well and state == "problem" and str(tmp_path / "ptxas") in text


def test_failing_back_end_is_a_problem_with_its_place(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "triton", ignore=shutil.ignore_patterns("__pycache__", "native"))
    driver = tmp_path / "triton/backends/cpu/driver.py"
    source = driver.read_text()
    assert source.count("libtriton.jit_load(binary)") == 1
    driver.write_text(source.replace("libtriton.jit_load(binary)", "libtriton.jit_load(b'no object')"))
    sections, well = report(path=tmp_path)
    state, text = sections["kernels"]["cpu"]
    assert not well and state == "problem" and "driver.py:" in text


def test_active_gpu_compiles_and_loads(tmp_path):
    library = fake_gpu.library()
    if library is None:
        pytest.skip("no C compiler for the stand-in of CUDA's driver")
    sections, well = report(TRITON_LIBCUDA_PATH=str(library))
    assert well and sections["back ends"]["cuda"] == ("ok", sections["back ends"]["cuda"][1])
    assert sections["back ends"]["cuda"][1].startswith("active: cuda 90 ")
    state, text = sections["kernels"]["cuda"]
    assert state == "ok" and "compiled in" in text and "loaded" in text
    if sys.platform == "linux":
        assert str(library) in sections["tools and libraries"]["libcuda"][1]


@pytest.fixture
def filled(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    source = ASTSource(double, {"x": "*fp32", "BLOCK": "constexpr"}, {(1,): 16})
    triton.compile(source, target=GPUTarget("cpu", "", 32))
    return tmp_path


def times(root: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}


def test_health_of_a_sound_cache(filled):
    before = times(filled)
    count = doctor.examine_cache(filled)
    assert count.entries >= 1 and count.damaged == [] and count.size > 0
    assert times(filled) == before


@pytest.mark.parametrize("suffix", [".json", ".cpu"])
def test_damaged_entries_are_found_and_left_alone(filled, suffix):
    index = next(path for path in filled.rglob("*.json") if not path.name.startswith("__grp__"))
    damaged = index
    if suffix != ".json":
        names = json.loads(index.read_text())["files"]
        damaged = index.parent / next(iter(names))
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    before = times(filled)
    assert doctor.examine_cache(filled).damaged == [f"{index.parent.name}/{index.name}"]
    sections, well = report(TRITON_CACHE_DIR=str(filled))
    # It heals by itself: worth a look, not a failure.
    assert well and sections["cache"]["health"][0] == "note" and index.name in sections["cache"]["health"][1]
    assert times(filled) == before


def test_a_part_that_fails_does_not_take_the_page_with_it(monkeypatch):
    def broken() -> Any:
        raise ValueError("unheard of")

    monkeypatch.setattr(doctor, "cache", broken)
    sections = {section.title: section.findings for section in doctor.diagnose()}
    assert [(f.state, "unheard of" in f.text) for f in sections["cache"]] == [("problem", True)]
    assert sections["kernels"][0].state == "ok"


def test_torch_is_told_of():
    sections, _ = report()
    assert sections["PyTorch"]["torch"] == ("note", "cannot be imported: hidden by a test")
    torch = pytest.importorskip("torch")
    found = {finding.name: finding for finding in doctor.pytorch()}
    assert found["torch"].state == "ok" and torch.__version__ in found["torch"].text


def test_reason_is_one_line():
    assert doctor._reason(RuntimeError("two\n  lines")) == "two lines"
    assert doctor._reason(KeyError()) == "KeyError"
