"""Every way of failing is an exception with LLVM's message, and the process goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from triton._C import libtriton

X86 = {"triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64-v3", "features": ""}
NVIDIA = {"triple": "nvptx64-nvidia-cuda", "features": ""}
AMD = {"triple": "amdgcn-amd-amdhsa", "features": ""}
GOOD = "define i32 @f(i32 %x) {\n  %r = add i32 %x, 1\n  ret i32 %r\n}\n"


def failure(ir: str, emit: str = "asm", **options: object) -> str:
    with pytest.raises(libtriton.LLVMError) as caught:
        libtriton.compile_ir(ir, emit=(emit,), **options)
    return str(caught.value)


def test_error_is_a_runtime_error() -> None:
    assert issubclass(libtriton.LLVMError, RuntimeError)


def test_parse_error_has_place_and_caret() -> None:
    message = failure("define i32 @f() {\n  ret i33 bad\n}", **X86)
    assert message.startswith("kernel.ll:2:11: error: ")
    assert "  ret i33 bad" in message and "^" in message


@pytest.mark.parametrize(
    ("ir", "expected"),
    [
        ("define void @f(i32 %x) {\n  %y = add i32 %x, %z\n  ret void\n}", "use of undefined value '%z'"),
        ("define i32 @f() {\n  ret void\n}", "value doesn't match function result type 'i32'"),
        ("not a module", "expected top-level entity"),
        (
            "define void @f() {\n  call void @llvm.assume(i32 1)\n  ret void\n}\ndeclare void @llvm.assume(i32)",
            "llvm.assume",
        ),
    ],
)
def test_verify_ir_says_what_is_wrong(ir: str, expected: str) -> None:
    with pytest.raises(libtriton.LLVMError) as caught:
        libtriton.verify_ir(ir)
    assert expected in str(caught.value)


def test_verifier_failure() -> None:
    ir = (
        "define i32 @f(i1 %c) {\n  br i1 %c, label %a, label %b\n"
        "a:\n  %x = add i32 1, 2\n  br label %b\nb:\n  ret i32 %x\n}"
    )
    with pytest.raises(libtriton.LLVMError, match="Instruction does not dominate all uses"):
        libtriton.verify_ir(ir)
    assert "Instruction does not dominate all uses" in failure(ir, **X86)


def test_verify_ir_accepts_good_ir() -> None:
    assert libtriton.verify_ir(GOOD) is None


def test_unknown_triple() -> None:
    assert "nonsense" in failure(GOOD, triple="nonsense-unknown-none", cpu="", features="")


def test_unknown_pass() -> None:
    assert "unknown pass name 'no-such-pass'" in failure(GOOD, **X86, passes="no-such-pass")


def test_data_layout_of_another_target() -> None:
    message = failure('target datalayout = "e-p:32:32"\n' + GOOD, **X86)
    assert "'e-p:32:32'" in message and "x86_64" in message


def test_ptx_has_no_object_form() -> None:
    assert "emit a file of this type" in failure(GOOD, emit="obj", **NVIDIA, cpu="sm_80")


def test_bad_bitcode_is_named_by_its_place() -> None:
    good = libtriton.compile_ir("define void @g() {\n  ret void\n}", **X86, emit=("bc",))["bc"]
    assert "bitcode library 1" in failure(GOOD, **X86, bitcode=(good, b"BC\xc0\xde garbage"))


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({"emit": ("exe",)}, ValueError, "unknown form 'exe'"),
        ({"emit": ("asm",), "opt_level": 4}, ValueError, "opt_level is 4"),
        ({"emit": ("asm",), "reloc": "ropi"}, ValueError, "reloc is 'ropi'"),
        ({"emit": "asm"}, TypeError, "emit must be a tuple"),
        ({"emit": ("asm",), "bitcode": ("text",)}, TypeError, "bytes"),
        ({}, TypeError, "emit"),
    ],
)
def test_arguments_are_checked(options: dict[str, object], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        libtriton.compile_ir(GOOD, **X86, **options)


# ---- fatal errors: these end a process whose LLVM is used plainly ----

AMD_WRONG_CHIP = """
define amdgpu_kernel void @k(<4 x half> %a, <16 x float> %c, ptr addrspace(1) %out) {
  %z = call <16 x float> @llvm.amdgcn.mfma.f32.16x16x4f16(
    <4 x half> %a, <4 x half> %a, <16 x float> %c, i32 0, i32 0, i32 0)
  store <16 x float> %z, ptr addrspace(1) %out
  ret void
}
declare <16 x float> @llvm.amdgcn.mfma.f32.16x16x4f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
"""
NVIDIA_OLD_CHIP = """
define void @k(i32 %x, ptr %out) {
  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 -1)
  store i32 %r, ptr %out
  ret void
}
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
"""
X86_FOREIGN_INTRINSIC = """
define i32 @k() {
  %r = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ret i32 %r
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""
BAD_CONSTRAINT = (
    'define void @k(<64 x i64> %x) {\n  call void asm sideeffect "nop $0", "r"(<64 x i64> %x)\n  ret void\n}'
)
UNKNOWN_CONSTRAINT = 'define void @k(i64 %x) {\n  call void asm sideeffect "nop $0", "w"(i64 %x)\n  ret void\n}'
BAD_MNEMONIC = 'define void @k() {\n  call void asm sideeffect "frobnicate %eax", ""()\n  ret void\n}'

FATAL = {
    "amdgpu-intrinsic": (AMD_WRONG_CHIP, {**AMD, "cpu": "gfx1030"}, "obj", "annot select"),
    "nvptx-intrinsic": (NVIDIA_OLD_CHIP, {**NVIDIA, "cpu": "sm_70"}, "asm", "annot select"),
    "x86-intrinsic": (X86_FOREIGN_INTRINSIC, X86, "obj", "annot select"),
    "x86-constraint": (BAD_CONSTRAINT, X86, "obj", "allocate input reg for constraint 'r'"),
    "nvptx-constraint": (UNKNOWN_CONSTRAINT, {**NVIDIA, "cpu": "sm_80"}, "asm", "constraint"),
    "amdgpu-constraint": (UNKNOWN_CONSTRAINT, {**AMD, "cpu": "gfx942"}, "obj", "constraint"),
    "x86-mnemonic": (BAD_MNEMONIC, X86, "obj", "invalid instruction mnemonic 'frobnicate'"),
    "amdgpu-mnemonic": (BAD_MNEMONIC, {**AMD, "cpu": "gfx942"}, "obj", "invalid instruction"),
}


@pytest.mark.parametrize("name", FATAL)
def test_fatal_error_is_an_exception_each_time(name: str) -> None:
    ir, options, emit, expected = FATAL[name]
    messages = {failure(ir, emit, **options) for _ in range(3)}
    assert len(messages) == 1 or "annot select" in expected  # node numbers differ
    assert all(expected in message for message in messages), messages
    # The same target still works, in this process.
    assert libtriton.compile_ir(GOOD, **options, emit=("asm",))["asm"]


def test_nothing_is_written_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    for ir, options, emit, _ in FATAL.values():
        failure(ir, emit, **options)
    out, err = capfd.readouterr()
    assert out == "" and err == ""


def test_runaway_recursion_in_llvm_is_an_exception() -> None:
    """Nesting far deeper than any stack: LLVM's recursive parser runs out of it."""
    depth = 2_000_000
    ir = "@g = global " + "[1 x " * depth + "i8" + "]" * depth + " zeroinitializer\n"
    with pytest.raises(libtriton.LLVMError):
        libtriton.verify_ir(ir)
    assert libtriton.verify_ir(GOOD) is None


def test_timeout() -> None:
    body = "\n".join(
        f"  %v{i + 1} = mul i32 %v{i}, %v{i // 2}\n  store volatile i32 %v{i + 1}, ptr %p" for i in range(20000)
    )
    ir = f"define void @long(ptr %p) {{\n  %v0 = load volatile i32, ptr %p\n{body}\n  ret void\n}}"
    assert "did not finish within 5 ms" in failure(ir, **X86, timeout_ms=5)
    assert libtriton.compile_ir(GOOD, **X86, emit=("asm",), timeout_ms=60000)["asm"]


def test_messages_survive_non_ascii() -> None:
    with pytest.raises(libtriton.LLVMError, match="größe"):
        libtriton.verify_ir('define void @f() {\n  call void @"größe"()\n  ret void\n}')


GROWTH = """
from triton._C import libtriton as n
t, c, f = n.host_target()

def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4

def compile_some(count):
    for i in range(count):
        ir = "define i32 @f%d(i32 %%x) { %%r = add i32 %%x, 1 ret i32 %%r }" % i
        obj = n.compile_ir(ir, triple=t, cpu=c, features=f, emit=("ll", "asm", "obj"))["obj"]
        code = n.jit_load(obj)
        assert code.address("f%d" % i)
        try:
            n.compile_ir("define void @f() { ret i32 }", triple=t, cpu=c, features=f, emit=("obj",))
        except n.LLVMError:
            pass

compile_some(100)
before = resident_kib()
compile_some(200)
print(resident_kib() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_bounded_over_many_compiles() -> None:
    """200 compiles, loads and errors after a warm-up leave less than 20 KiB each behind, far below one module."""
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4096
