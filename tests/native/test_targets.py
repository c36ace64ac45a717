"""What the extension is: its LLVM, its code generators, its exported symbols."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from triton._C import libtriton


def test_version_is_one_that_is_supported() -> None:
    major, minor, patch = map(int, libtriton.llvm_version().split("."))
    assert 20 <= major <= 23
    assert minor >= 0 and patch >= 0


def test_targets_include_the_three_we_need() -> None:
    targets = libtriton.targets()
    assert {"X86", "NVPTX", "AMDGPU"} <= set(targets)
    assert list(targets) == sorted(targets)


def test_host_target_is_complete() -> None:
    triple, cpu, features = libtriton.host_target()
    assert triple.count("-") >= 2
    assert cpu
    assert all(f[0] in "+-" for f in features.split(",") if f)


def test_one_binary_for_every_python() -> None:
    assert Path(libtriton.__file__).name == ("libtriton.pyd" if sys.platform == "win32" else "libtriton.abi3.so")


@pytest.mark.skipif(sys.platform != "linux", reason="reads an ELF file")
def test_only_the_module_entry_is_exported() -> None:
    nm = subprocess.run(["nm", "-D", "--defined-only", libtriton.__file__], capture_output=True, text=True, check=False)
    if nm.returncode != 0:
        pytest.skip("no nm here: " + nm.stderr.strip())
    names = {line.split()[-1] for line in nm.stdout.splitlines() if re.search(r" [A-Z] ", line)}
    assert names == {"PyInit_libtriton"}


def test_import_does_not_load_a_gpu_driver() -> None:
    code = (
        "from triton._C import libtriton\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'libcuda' not in maps and 'amdhip' not in maps, maps\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
