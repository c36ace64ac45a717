"""compile_ir: forms, targets, passes, bitcode libraries, parallel use."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from triton._C import libtriton

ADD = """
define void @add(ptr %p, i32 %n) {
  %v = load i32, ptr %p
  %s = add i32 %v, %n
  %t = add i32 %s, 0
  store i32 %t, ptr %p
  ret void
}
"""
PTX_KERNEL = """
define ptx_kernel void @scale(ptr addrspace(1) %p, float %f) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %v = load float, ptr addrspace(1) %q
  %w = fmul float %v, %f
  store float %w, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""
AMD_KERNEL = """
define amdgpu_kernel void @scale(ptr addrspace(1) %p, float %f) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %v = load float, ptr addrspace(1) %q
  %w = fmul float %v, %f
  store float %w, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""
NVIDIA = {"triple": "nvptx64-nvidia-cuda", "features": ""}
AMD = {"triple": "amdgcn-amd-amdhsa", "features": ""}
X86 = {"triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64-v3", "features": ""}


def test_every_form_comes_back_in_its_type() -> None:
    result = libtriton.compile_ir(ADD, **X86, emit=("ll", "bc", "asm", "obj"))
    assert "define" in result["ll"] and 'target triple = "x86_64' in result["ll"]
    assert result["bc"][:4] == b"BC\xc0\xde"
    assert result["obj"][:4] == b"\x7fELF"
    assert "addl" in result["asm"]
    assert result["timings"].keys() == {"parse", "link", "optimise", "codegen"}
    assert all(0 <= seconds < 60 for seconds in result["timings"].values())
    assert result["warnings"] == ()


def test_only_what_was_asked_for_is_made() -> None:
    assert libtriton.compile_ir(ADD, **X86, emit=("asm",)).keys() == {"asm", "timings", "warnings"}
    assert libtriton.compile_ir(ADD, **X86, emit=()).keys() == {"timings", "warnings"}


def test_assembly_does_not_depend_on_the_object_being_made_too() -> None:
    alone = libtriton.compile_ir(ADD, **X86, emit=("asm",))["asm"]
    assert libtriton.compile_ir(ADD, **X86, emit=("asm", "obj"))["asm"] == alone


@pytest.mark.parametrize("cpu", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_ptx(cpu: str) -> None:
    ptx = libtriton.compile_ir(PTX_KERNEL, **NVIDIA, cpu=cpu, emit=("asm",))["asm"]
    assert f".target {cpu}" in ptx and ".entry scale" in ptx and "mul" in ptx


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"])
def test_amd_object(cpu: str) -> None:
    result = libtriton.compile_ir(AMD_KERNEL, **AMD, cpu=cpu, emit=("asm", "obj"))
    target = next(line for line in result["asm"].splitlines() if ".amdgcn_target" in line)
    assert target.endswith(f'-{cpu}"')
    assert result["obj"][:4] == b"\x7fELF" and int.from_bytes(result["obj"][18:20], "little") == 224  # EM_AMDGPU


@pytest.mark.skipif("AArch64" not in libtriton.targets(), reason="this LLVM has no AArch64")
def test_aarch64_object() -> None:
    obj = libtriton.compile_ir(ADD, triple="aarch64-unknown-linux-gnu", cpu="generic", features="", emit=("obj",))[
        "obj"
    ]
    assert int.from_bytes(obj[18:20], "little") == 183  # EM_AARCH64


def test_passes_are_those_given() -> None:
    untouched = libtriton.compile_ir(ADD, **X86, passes="", emit=("ll",))["ll"]
    simplified = libtriton.compile_ir(ADD, **X86, passes="instcombine", emit=("ll",))["ll"]
    assert untouched.count(" = add ") == 2
    assert simplified.count(" = add ") == 1


def test_same_input_same_bytes() -> None:
    first, second = (libtriton.compile_ir(ADD, **X86, emit=("obj", "bc")) for _ in range(2))
    assert first["obj"] == second["obj"] and first["bc"] == second["bc"]


LIBRARY = """
@table = constant [2 x i32] [i32 7, i32 9]
define i32 @helper(i32 %x) {
  %t = load i32, ptr getelementptr ([2 x i32], ptr @table, i64 0, i64 1)
  %r = call i32 @inner(i32 %x)
  %s = add i32 %r, %t
  ret i32 %s
}
define i32 @inner(i32 %x) {
  %r = mul i32 %x, 1000
  ret i32 %r
}
define i32 @unused(i32 %x) {
  ret i32 %x
}
"""
USER = """
declare i32 @helper(i32)
define i32 @entry(i32 %x) {
  %r = call i32 @helper(i32 %x)
  ret i32 %r
}
"""


def test_linking_takes_what_is_needed_and_hides_it() -> None:
    library = libtriton.compile_ir(LIBRARY, **X86, passes="", emit=("bc",))["bc"]
    linked = libtriton.compile_ir(USER, **X86, passes="", bitcode=(library,), emit=("ll",))["ll"]
    assert "define internal i32 @helper" in linked and "define internal i32 @inner" in linked
    assert "@table = internal" in linked
    assert "@unused" not in linked
    assert "define i32 @entry" in linked
    inlined = libtriton.compile_ir(USER, **X86, bitcode=(library,), emit=("ll",))["ll"]
    assert "@helper" not in inlined and "1000" in inlined


def test_the_modules_own_definition_wins_over_the_librarys() -> None:
    library = libtriton.compile_ir(LIBRARY, **X86, passes="", emit=("bc",))["bc"]
    own = USER.replace("declare i32 @helper(i32)", "define i32 @helper(i32 %x) {\n  ret i32 5\n}")
    text = libtriton.compile_ir(own, **X86, passes="", bitcode=(library,), emit=("ll",))["ll"]
    assert "ret i32 5" in text and "@inner" not in text


def test_several_libraries_may_need_each_other() -> None:
    first, second = LIBRARY.split("define i32 @inner", 1)
    outer = libtriton.compile_ir(first + "declare i32 @inner(i32)", **X86, passes="", emit=("bc",))["bc"]
    inner = libtriton.compile_ir("define i32 @inner" + second, **X86, passes="", emit=("bc",))["bc"]
    text = libtriton.compile_ir(USER, **X86, bitcode=(outer, inner), emit=("ll",))["ll"]
    assert "declare i32 @inner" not in text and "1000" in text


def test_compiles_in_parallel_give_the_same_as_alone() -> None:
    jobs = [(ADD, X86), (PTX_KERNEL, {**NVIDIA, "cpu": "sm_90"}), (AMD_KERNEL, {**AMD, "cpu": "gfx942"})] * 8
    alone = [libtriton.compile_ir(ir, **where, emit=("asm",))["asm"] for ir, where in jobs[:3]]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda job: libtriton.compile_ir(job[0], **job[1], emit=("asm",))["asm"], jobs))
    assert together == alone * 8


def test_the_gil_is_free_while_llvm_works() -> None:
    """Another Python thread makes progress during one long compile."""
    body = "\n".join(
        f"  %v{i + 1} = mul i32 %v{i}, %v{i // 2}\n  store volatile i32 %v{i + 1}, ptr %p" for i in range(4000)
    )
    ir = f"define void @long(ptr %p) {{\n  %v0 = load volatile i32, ptr %p\n{body}\n  ret void\n}}"
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.0005):
            ticks += 1

    other = threading.Thread(target=tick)
    other.start()
    before = ticks
    libtriton.compile_ir(ir, **X86, emit=("obj",))
    during = ticks - before
    stop.set()
    other.join()
    assert during >= 3
