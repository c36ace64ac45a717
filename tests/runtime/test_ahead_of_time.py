"""Kernels compiled ahead of time to C, joined, compiled by a C compiler and called."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import triton
from triton.backends.tools import find_programs
from triton.tools.compile import CompileArgs, CompileToolError, compile_kernel, split
from triton.tools.link import HeaderParser, KernelLinkerMeta, LinkerError, link

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

KERNELS = """
import triton, triton.language as tl

@triton.jit
def add(x, y, z, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + scale * tl.load(y + i, mask=i < n), mask=i < n)

@triton.autotune([triton.Config({"N": 8})], key=[])
@triton.jit
def places(z, wide, narrow, flag, N: tl.constexpr):
    at = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(z + at, wide + narrow + flag + N * at)

@triton.jit
def product(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + i, tl.dot(tl.load(x + i), tl.load(y + i)))

@triton.jit
def shows(x):
    tl.device_print("x", tl.load(x))
    tl.device_assert(tl.load(x) != 3, "three")

@triton.jit
def waits(x):
    tl.atomic_poll(x, 1)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(triton.__file__).parent.parent)}
ADD = "*fp32{0},*fp32{0},*fp32{0},i32{1},fp32,{2}"
BLOCKS = "(n + BLOCK - 1) / BLOCK,1,1"


@pytest.fixture
def build(tmp_path):
    """``build(kernel, signature, grid)``: compiles for the CPU and returns the C function's name."""
    (tmp_path / "kernels.py").write_text(KERNELS)

    def compile(name, signature, grid, target="cpu", **more):
        out = tmp_path / more.get("out_name", name)
        args = CompileArgs(str(tmp_path / "kernels.py"), name, signature, grid, target, out_path=out, **more)
        return compile_kernel(args)[0]

    return compile


def library(folder, *more, flags=()):
    """All C files and objects of a folder as one library."""
    files = [str(f) for f in [*folder.glob("*.c"), *folder.glob("*.o"), *more]]
    command = [
        COMPILER,
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        *flags,
        "-o",
        "all.so",
        *files,
        "-lm",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


@needs_compiler
@pytest.mark.parametrize("flags", [(), ("-fopenmp",)])
def test_one_kernel(build, tmp_path, flags):
    name = build("add", ADD.format("", "", 64), BLOCKS)
    x, y, z = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32), np.zeros(1000, np.float32)
    call = getattr(library(tmp_path, flags=flags), name)
    assert call(None, pointer(x), pointer(y), pointer(z), 990, ctypes.c_float(0.5)) == 0
    np.testing.assert_array_equal(z, np.where(np.arange(1000) < 990, x + 0.5, 0))


@needs_compiler
def test_arguments_and_grid(build, tmp_path):
    name = build("places", "*i64, i64, i8, i1, 1000", "3, wide - N, (narrow > 9 ? 7 : 2)", out_name="where")
    z = np.zeros(64, np.int64)
    call = getattr(library(tmp_path), name)
    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int8, ctypes.c_int8]
    assert call(None, z.ctypes.data, 1004, -5, 1) == 0
    np.testing.assert_array_equal(z, [1000 + 1000 * i if i < 24 else 0 for i in range(64)])
    assert call(None, z.ctypes.data, 1000, 0, 0) == 0  # an empty grid
    assert call(None, z.ctypes.data, 999, 0, 0) == 1  # a negative one


@needs_compiler
def test_scratch_memory(build, tmp_path):
    name = build("product", "*fp32,*fp32,*fp32,32", "1,1,1")
    x, y = (np.random.default_rng(i).integers(-9, 9, (32, 32)).astype(np.float32) for i in range(2))
    z = np.zeros((32, 32), np.float32)
    assert getattr(library(tmp_path), name)(None, pointer(x), pointer(y), pointer(z)) == 0
    np.testing.assert_array_equal(z, x @ y)


@needs_compiler
def test_prints_and_asserts(build, tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.runtime, "debug", True)
    name = build("shows", "*i32", "1,1,1")
    library(tmp_path)
    run = (
        f"import ctypes, sys; print(ctypes.CDLL('./all.so').{name}(None, ctypes.byref(ctypes.c_int(int(sys.argv[1])))))"
    )
    good = subprocess.run([sys.executable, "-c", run, "5"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"x: 5\n", good.stdout)
    bad = subprocess.run([sys.executable, "-c", run, "3"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert bad.returncode < 0
    assert "three" in bad.stderr


@needs_compiler
def test_joined(build, tmp_path):
    """Which version ran shows in the objects: each is called through the dispatcher and directly."""
    for pointers, n, block in [("", "", 64), (":16", ":16", 64), ("", ":1", 64), ("", "", 128), ("", "", 32)]:
        build("add", ADD.format(pointers, n, block), BLOCKS)
    headers = sorted(tmp_path.glob("add.*.h"), key=lambda f: "BLOCK = 64" not in f.read_text())
    link(headers, tmp_path / "joined")
    lib = library(tmp_path)
    assert lib.load_add() == 0
    assert lib.add_get_num_algos() == 3
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    for algo in (0, 1, 2):
        for n, shift in [(1, 0), (992, 0), (990, 0), (992, 1)]:
            z = np.zeros(1000, np.float32)
            arrays = pointer(x[shift:]), pointer(y[shift:]), pointer(z[shift:])
            assert lib.add(None, *arrays, n, ctypes.c_float(2), algo) == 0
            np.testing.assert_array_equal(z[shift : shift + n], x[shift : shift + n] + 2)
            assert not z[:shift].any()
            assert not z[shift + n :].any()
    assert lib.add_default(None, pointer(x), pointer(y), pointer(x), 5, ctypes.c_float(1)) == 0
    np.testing.assert_array_equal(x[:7], [1, 2, 3, 4, 5, 5, 6])
    for algo in (-1, 3):
        assert lib.add(None, pointer(x), pointer(y), pointer(x), 5, ctypes.c_float(1), algo) == 1
    lib.unload_add()


@needs_compiler
def test_the_most_special_version_runs(build, tmp_path):
    """Fakes in place of the kernels say which one was called."""
    build("add", ADD.format(":16", "", 64), BLOCKS)
    build("add", ADD.format(":16", ":1", 64), BLOCKS)
    for file in [*tmp_path.glob("add.*.c"), *tmp_path.glob("*.o")]:
        file.unlink()
    link(list(tmp_path.glob("add.*.h")), tmp_path / "joined")
    for file in tmp_path.glob("add.*.h"):
        text = file.read_text()
        body = (
            text[text.index("#pragma") :].replace("(void);", "(void) {return 0;}", 1).replace("(void);", "(void) {}", 1)
        )
        result = 7 if "3c" in file.name else 8
        body = body.replace("#pragma once", "").replace(
            "scale);", f"scale) {{return {result} + 0 * (x == y || z == stream || scale);}}"
        )
        (tmp_path / f"{file.name}.c").write_text(body)
    lib = library(tmp_path, flags=["-Wno-unused-parameter"])
    calls = [
        lib.add_default(None, *[ctypes.c_void_p(a)] * 3, n, ctypes.c_float(0)) for a, n in [(32, 1), (32, 2), (8, 1)]
    ]
    assert calls == [7, 8, 1]


FAKE_CUDA = """#pragma once
#include <stddef.h>
#include <string.h>
typedef int CUresult; typedef void *CUstream, *CUmodule, *CUfunction; typedef unsigned long long CUdeviceptr;
enum {CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8};
static char log_[64]; static unsigned long long seen[9];
static CUresult cuModuleLoadData(CUmodule *m, const void *code) { *m = (void *)code; return 0; }
static CUresult cuModuleUnload(CUmodule m) { (void)m; return 0; }
static CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  strncpy(log_, name, 63); *f = m; return 0;
}
static CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
    unsigned bz, unsigned shared, CUstream s, void **args, void **extra) {
  (void)by; (void)bz; (void)s; (void)extra; (void)shared;
  seen[0] = gx; seen[1] = gy; seen[2] = gz; seen[3] = bx; seen[4] = *(unsigned long long *)args[2];
  seen[5] = (unsigned)*(int *)args[3]; memcpy(&seen[6], f, 4); seen[7] = (unsigned long long)(*(float *)args[4] * 4);
  return 0;
}
unsigned long long *seen_(void) { return seen; }
char *name_(void) { return log_; }
"""


@needs_compiler
@pytest.mark.skipif(not find_programs("ptxas", "TRITON_PTXAS_PATH", ()), reason="no ptxas")
def test_cuda_launches(build, tmp_path):
    name = build("add", ADD.format(":16", "", 64), BLOCKS, target="cuda:80:32", num_warps=2)
    (tmp_path / "cuda.h").write_text(FAKE_CUDA)
    lib = library(tmp_path, flags=["-I."])
    address = ctypes.c_uint64(1 << 40)
    assert getattr(lib, name)(None, address, address, address, 130, ctypes.c_float(0.5)) == 0
    lib.seen_.restype, lib.name_.restype = ctypes.POINTER(ctypes.c_uint64), ctypes.c_char_p
    assert lib.seen_()[:8] == [3, 1, 1, 64, 1 << 40, 130, int.from_bytes(b"\x7fELF", "little"), 2]
    assert lib.name_().decode() == f"{name}_code"
    getattr(lib, f"unload_{name}")()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"signature": "*fp32, i32"}, r"add has 6 parameters \(x, y, z, n, scale, BLOCK\), 2 are given"),
        ({"signature": ADD.format(":8", "", 64)}, "x: the hint is 16, or 1 for an integer, got '\\*fp32:8'"),
        ({"signature": ADD.format("", "", "i32")}, "BLOCK is a constexpr, expected its value, got type 'i32'"),
        ({"signature": ADD.format("", "", "what")}, "BLOCK: expected a type such as .*, got 'what'"),
        ({"signature": "*fp32,*fp32,*fp32,i32,fp16,64"}, "scale: C has no arguments of type fp16"),
        ({"grid": "1,1"}, "grid: expected three expressions .*, got '1,1'"),
        ({"target": "sm_90"}, "target: expected cpu, cuda:90:32 or hip:gfx942:64, got 'sm_90'"),
        ({"kernel_name": "missing"}, "has no kernel 'missing'"),
        ({"kernel_name": "tl"}, "has no kernel 'tl'"),
        ({"path": "nowhere.py"}, "'nowhere.py' is no file"),
        ({"out_name": "a-b"}, "out_name: 'a-b' is no name of a C function"),
        ({"kernel_name": "waits", "signature": "*i32"}, "waits waits for other programs"),
    ],
)
def test_what_is_refused(tmp_path, change, message):
    (tmp_path / "kernels.py").write_text(KERNELS)
    given = {"path": str(tmp_path / "kernels.py"), "kernel_name": "add", "signature": ADD.format("", "", 64)}
    given |= {"grid": BLOCKS, "target": "cpu", **change}
    with pytest.raises(CompileToolError, match=message):
        compile_kernel(CompileArgs(**given))
    assert not list(tmp_path.glob("*.c"))


def test_command_lines(tmp_path):
    def tool(name, *arguments):
        command = [sys.executable, "-m", f"triton.tools.{name}", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)

    (tmp_path / "kernels.py").write_text(KERNELS)
    common = ["kernels.py", "-n", "add", "-t", "cpu", "-g", BLOCKS, "-on", "total"]
    for block in (64, 32):
        assert tool("compile", *common, "-s", ADD.format("", "", block)).returncode == 0
    headers = [f.name for f in tmp_path.glob("total.*.h")]
    assert len(headers) == 2
    assert tool("link", *headers, "-o", "all").returncode == 0
    assert "int total_get_num_algos(void);" in (tmp_path / "all.h").read_text()
    bad = tool("compile", *common, "-s", "i32")
    assert bad.returncode == 1
    assert bad.stderr.startswith("python -m triton.tools.compile: signature: add has 6 parameters")
    why = "a header has no line tt-linker; was it made by triton.tools.compile?"
    assert tool("link", "kernels.py", "-o", "b").stderr == f"python -m triton.tools.link: kernels.py: {why}\n"


LINE = "// tt-linker: {} f({}) abc {}\n"


def test_what_the_linker_reads():
    parser = HeaderParser()
    parser.extract_linker_meta(LINE.format("cuda", ", ".join(f"int32_t a{i}" for i in range(12)), "0d12c3456789d1011c"))
    (meta,) = parser.kernels["f"]
    sizes = [16, None, 1, None, None, None, None, None, None, 16, None, 1]
    assert meta == KernelLinkerMeta(
        "f",
        [f"a{i}" for i in range(12)],
        ["int32_t"] * 12,
        sizes,
        "abc",
        "abc_0d12c3456789d1011c",
        "0d12c3456789d1011c",
        4,
    )


@pytest.mark.parametrize(
    "text, message",
    [
        (LINE.format("metal", "int a", "0"), "no back end is called 'metal'"),
        (LINE.format("cpu", "int a", "0") + LINE.format("cuda", "int a", "0"), "f is for cuda, others are for cpu"),
        (LINE.format("cpu", "int a", "01"), "suffix '01' does not fit 1 arguments"),
        (LINE.format("cpu", "int a", "0x"), "suffix '0x' does not fit"),
        (LINE.format("cpu", "int", "0"), "parameter 'int'"),
        (LINE.format("cpu", "int a", "0") * 2, "two headers declare f_abc_0"),
        (LINE.format("cpu", "int a", "0") + LINE.format("cpu", "int b", "0d"), "different arguments"),
        ("// tt-linker: what\n", "not understood: '// tt-linker: what'"),
        ("", "no line tt-linker"),
    ],
)
def test_headers_that_do_not_fit(text, message):
    with pytest.raises(LinkerError, match=message):
        HeaderParser().extract_linker_meta(text)


def test_commas_in_brackets_and_quotes():
    assert split("a, (b, c), 'd,(', [e]") == ["a", " (b, c)", " 'd,('", " [e]"]
