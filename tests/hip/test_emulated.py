"""The kernels of the bundles run in the emulator (``emulator.py``) and give what the interpreter gives, on every
family of processors.

The whole list runs in the tool; here each processor runs a part of it.
"""

import re
import zlib
from dataclasses import replace

import emulator
import features
import numpy as np
import pytest
from hip_tools import compiled

from triton._C import libtriton
from triton.backends.compiler import GPUTarget
from triton.backends.hip import capabilities as chips
from triton.backends.hip import codegen, instructions
from triton.compiler import compile
from triton.tools import hip_bundle
from triton.tools.hip_check import differences
from triton.tools.hip_kernels import cases

PROCESSORS = ("gfx1030", "gfx1100", "gfx1201", "gfx90a", "gfx942", "gfx950")
CASES = {case.name: case for case in cases()}


def chosen():
    for name in CASES:
        number = zlib.crc32(name.encode())
        for i, arch in enumerate(PROCESSORS):
            if number % 8 == i or (name.startswith(("dot", "matmul")) and (number // 7 + i) % 4 == 0):
                yield pytest.param(arch, name, id=f"{arch}-{name}")


def optimised(text, arch):
    """The IR as code generation gets it; as it was where LLVM has used what the emulator does not know."""
    made = libtriton.compile_ir(
        text, triple=codegen.TRIPLE, cpu=arch, features="", passes=codegen.PASSES, emit=("ll",)
    )["ll"]
    return text if " switch " in made or "llvm.is.fpclass" in made else made


def run(arch, case):
    """What is wrong with the results; empty when nothing is."""
    target = GPUTarget("hip", arch, 0)
    kernel = compile(hip_bundle.source_of(case), target=target, options=hip_bundle.options_of(case))
    text = optimised(kernel.asm["llir"], arch)
    machine = emulator.Emulator(text, arch, chips.chip_of(arch).lanes, kernel.metadata.threads)
    names = [n for n in case.kernel.arg_names if n in case.arrays or n in case.scalars]
    args = [case.arrays[n][1] if n in case.arrays else case.scalars[n][1] for n in names]
    after = machine.run(kernel.metadata.name, args, case.grid)
    want = hip_bundle.expected(case, target)
    wrong = []
    for got, name in zip(after, (n for n in names if n in case.arrays), strict=True):
        places = differences(got, want[name].reshape(-1), case.arrays[name][0], *case.tolerance)
        if len(places):
            i = int(places[0])
            wrong.append(
                f"{name}[{i}] is {got[i]}, expected {want[name].reshape(-1)[i]} ({len(places)} of {len(got)} differ)"
            )
    return wrong


@pytest.mark.parametrize("arch, name", list(chosen()))
def test_case(arch, name):
    assert run(arch, CASES[name]) == []


@pytest.mark.parametrize(
    "arch, family, case",
    [
        ("gfx1100", "wmma11", "dot_fp16_fp32_16x16x16"),
        ("gfx1201", "wmma12", "dot_fp16_fp32_16x16x16"),
        ("gfx942", "mfma", "dot_fp16_fp32_16x16x16"),
        ("gfx942", "mfma32", "dot_fp16_fp32_32x32x64"),
        ("gfx90a", "f64", "dot_fp64_fp64_16x16x16"),
    ],
)
def test_a_wrong_fragment_layout_is_seen(arch, family, case, monkeypatch):
    """The check of the check: with two rows of the accumulator exchanged the results are wrong."""
    rows = instructions.ROWS[family]
    monkeypatch.setitem(instructions.ROWS, family, (rows[1], rows[0], *rows[2:]))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    assert run(arch, CASES[case])


def test_a_wrong_order_of_scaled_values_is_seen(monkeypatch):
    """8-bit floats lie in two runs of 16; as one run of 32 they would meet other scales."""
    name = "dot_scaled_e4m3_e4m3_16x16x128"
    assert run("gfx950", CASES[name]) == []
    scaled = instructions.scaled

    def wrong(*args):
        found = scaled(*args)
        return replace(found, a=replace(found.a, chunk=5), b=replace(found.b, chunk=5))

    monkeypatch.setattr("triton.backends.hip.matrix.scaled", wrong)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    assert run("gfx950", CASES[name])


def test_a_missing_barrier_is_seen(monkeypatch):
    feature = features.FEATURES["reduce"]
    text = compiled(feature.kernel, "gfx1100", feature.signature, {"M": 64, "N": 16}).asm["llir"]
    x, z = np.arange(64 * 16, dtype=np.float32), np.zeros(16, np.float32)
    emulator.Emulator(text, "gfx1100", 32, 128).run("reduce_kernel", [x, z], (1, 1, 1))
    without = text.replace("call void @llvm.amdgcn.s.barrier()", "fence release")
    with pytest.raises(emulator.EmulationError, match="without a barrier"):
        emulator.Emulator(without, "gfx1100", 32, 128).run("reduce_kernel", [x, z], (1, 1, 1))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_a_missing_wait_for_copies_is_seen(arch):
    """Loads to shared memory end when they are waited for: without that, or with one left too many, or without the
    barrier behind, tiles are read too early."""
    case = CASES["matmul_fp16_48x64x160_stages3"]
    kernel = compile(hip_bundle.source_of(case), target=GPUTarget("hip", arch, 0), options=hip_bundle.options_of(case))
    text, target = kernel.asm["llir"], GPUTarget("hip", arch, 0)
    assert "llvm.amdgcn.global.load.lds" in text
    args = [*(array for _, array in case.arrays.values()), *(value for _, value in case.scalars.values())]

    def outcome(changed):
        after = emulator.Emulator(changed, arch, 64, 256).run(kernel.metadata.name, args, case.grid)
        return np.array_equal(after[2], hip_bundle.expected(case, target)["c"].reshape(-1))

    assert outcome(text)
    waits = re.findall(r"  call void @llvm.amdgcn.s.waitcnt\(i32 (\d+)\)\n", text)
    in_loop = next(number for number in waits if int(number) & 15 and int(number) >> 14 == 0)
    line = f"  call void @llvm.amdgcn.s.waitcnt(i32 {in_loop})\n"
    for changed in (
        text.replace(line, ""),
        text.replace(line, line.replace(in_loop, str(int(in_loop) + 1))),
        text.replace("call void @llvm.amdgcn.s.barrier()", "fence release"),
    ):
        with pytest.raises(emulator.EmulationError, match="shared memory"):
            outcome(changed)


def test_an_access_outside_is_seen():
    feature = features.FEATURES["vector add"]
    text = compiled(feature.kernel, "gfx942", feature.signature, {"BLOCK": 1024}).asm["llir"]
    arrays = [np.zeros(100, np.float32) for _ in range(3)]
    emulator.Emulator(text, "gfx942", 64, 256).run("add_kernel", [*arrays, 100], (1, 1, 1))
    with pytest.raises(emulator.EmulationError, match="outside of the buffers"):
        emulator.Emulator(text, "gfx942", 64, 256).run("add_kernel", [*arrays, 101], (1, 1, 1))
