"""Bundles: what is written, and that the check runs them, against the stand-in for the HIP runtime."""

import json

import numpy as np
import pytest
from hip_tools import ARCHITECTURES  # noqa: F401  (makes the folder importable for the process below)
from test_driver import library, run  # noqa: F401

from triton.backends.hip import codegen, codeobject
from triton.tools import hip_bundle
from triton.tools.hip_check import differences, scalar_bytes
from triton.tools.hip_kernels import cases

CASES = {case.name: case for case in cases()}
SOME = ("add_fp32", "grid", "dot_bf16_fp32_16x16x16", "atomic_add_i32", "softmax_fp16")


def test_there_are_enough_cases_of_every_kind():
    names = list(CASES)
    assert len(names) >= 300 and len(set(names)) == len(names)
    kinds = {kind for case in CASES.values() for kind, _ in case.arrays.values()}
    assert kinds >= {
        "fp16",
        "bf16",
        "fp32",
        "fp64",
        "i8",
        "i16",
        "i32",
        "i64",
        "u8",
        "u16",
        "u32",
        "u64",
        "fp8e4nv",
        "fp8e5",
        "fp8e4b8",
        "fp8e5b16",
    }
    assert all(c.kernel.arg_names for c in CASES.values())


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_manifest(arch, tmp_path):
    manifest = hip_bundle.write_bundle(arch, tmp_path, [CASES[name] for name in SOME])
    assert manifest == json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["arch"] == arch and manifest["lanes"] == (32 if arch == "gfx1100" else 64)
    for entry in manifest["kernels"]:
        binary = (tmp_path / entry["file"]).read_bytes()
        note = codeobject.read_note(binary, entry["kernel"])
        assert entry["linked"] == codegen.is_linked(binary) and entry["kernarg_size"] == note.kernarg_size
        case = CASES[entry["name"]]
        after = [a for a in entry["arguments"] if "after" in a]
        assert after and all({"rtol", "atol"} <= a.keys() for a in after)
        for argument in entry["arguments"]:
            assert argument["offset"] + argument["size"] <= entry["kernarg_size"]
            if argument["kind"] == "global_buffer":
                assert np.load(tmp_path / argument["before"]).tobytes() == case.arrays[argument["name"]][1].tobytes()
    grid = next(e for e in manifest["kernels"] if e["name"] == "grid")
    counts = [a["value"] for a in grid["arguments"] if a["kind"].startswith("hidden_block_count")]
    assert counts == [4, 3, 2]
    add = next(e for e in manifest["kernels"] if e["name"] == "add_fp32")  # asks for nothing that it does not use
    assert [a["name"] for a in add["arguments"]] == ["x", "y", "z", "n"] and add["kernarg_size"] == 28
    want = np.load(tmp_path / "grid.z.after.npy")
    assert want[5] == 1 + 10 + 4000 + 30000 + 200000


def test_hidden_arguments():
    assert [
        hip_bundle.hidden_value(f"hidden_{k}", (4, 3, 1), 128)
        for k in ("block_count_y", "group_size_x", "group_size_z")
    ] == [3, 128, 1]
    assert hip_bundle.hidden_value("hidden_grid_dims", (4, 3, 1), 128) == 2
    assert hip_bundle.hidden_value("hidden_printf_buffer", (1, 1, 1), 32) is None


def test_comparison():
    a = np.array([1.0, np.nan, 2.0, 3.0], np.float32)
    b = np.array([1.0, np.nan, 2.001, np.inf], np.float32)
    assert list(differences(a, b, "fp32", 1e-2, 0.0)) == [3]
    assert list(differences(a, b, "fp32", 0.0, 0.0)) == [2, 3]
    assert list(
        differences(np.array([0x3F80, 0x3F81], np.uint16), np.array([0x3F80, 0x4000], np.uint16), "bf16", 0.01, 0.0)
    ) == [1]
    assert scalar_bytes("i32", -1) == b"\xff" * 8 and scalar_bytes("fp32", 1.0)[:4] == b"\x00\x00\x80\x3f"


def test_check_runs_a_bundle(library, tmp_path):  # noqa: F811
    """The stand-in's launch adds two arrays: that kernel passes, one that multiplies fails with the place in words."""
    if codegen.find_linker() is None:
        pytest.skip("no ld.lld of LLVM 15 or newer")
    hip_bundle.write_bundle("gfx1100", tmp_path, [CASES["add_fp32"], CASES["mul_fp32"]])
    out = run(
        f"""
        import numpy as np
        from pathlib import Path
        from triton.tools.hip_check import check_bundle
        @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint), ctypes.c_uint)
        def add(params, grid, threads):
            slots = [ctypes.c_uint64.from_address(params[i]).value for i in range(4)]
            x, y, z = (np.ctypeslib.as_array((ctypes.c_float * slots[3]).from_address(s)) for s in slots[:3])
            z[:] = x + y
        fake.fake_run(add)
        passed, failures = check_bundle(Path({str(tmp_path)!r}))
        assert passed == 1 and len(failures) == 1, failures
        assert failures[0].startswith("mul_fp32: z[") and "expected" in failures[0], failures
        assert check_bundle(Path({str(tmp_path)!r}), ["add_fp32"]) == (1, [])
        """,
        library,
    )
    assert out == ""


def test_check_without_a_gpu_says_so(tmp_path):
    import os
    import subprocess
    import sys

    hip_bundle.write_bundle("gfx1100", tmp_path, [CASES["grid"]])
    env = {**os.environ, "TRITON_LIBHIP_PATH": "/nowhere/libamdhip64.so"}
    command = [sys.executable, "-m", "triton.tools.hip_check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 1 and done.stderr.startswith(
        "hip_check: no HIP runtime: /nowhere/libamdhip64.so cannot be opened"
    )
