"""Python modules made from bitcode libraries."""

import importlib.util
import os
import shutil
import sys

import pytest

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools.build_extern import (
    ExternLibrary,
    Libdevice,
    LLVMDisassembler,
    Symbol,
    build,
    convert_type,
    extern_libs,
    to_unsigned,
)

LIBRARY = """
define float @__nv_sinf(float %a) #0 {
define double @__nv_sin(double %a) #0 {
define internal float @helper(float %a) {
define dso_local double @__nv_pow(double %a, double %b) {
define double @__nv_powi(double, i32 %b) {
define i32 @__nv_umulhi(i32 %x, i32 %y) {
define i64 @__nv_mul64hi(i64 %x, i64 %y) {
define double @__nv_llround(double %a) {
define double @__nv_frexp(double %a, ptr %b) {
define double @__nv_dadd_rn(double %a, double %lambda) {
declare float @__nv_cosf(float)
"""


def overloads(library):
    return {name: [(s.name, s.arg_types, s.ret_type) for s in group] for name, group in library._symbol_groups.items()}


def parsed(tmp_path, text):
    (tmp_path / "lib.ll").write_text(text)
    library = Libdevice("lib.bc")
    library.parse_symbols(str(tmp_path / "lib.ll"))
    return library


def test_functions_are_grouped_by_what_they_do(tmp_path):
    library = parsed(tmp_path, LIBRARY)
    assert overloads(library) == {
        "sin": [("__nv_sin", ["fp64"], "fp64"), ("__nv_sinf", ["fp32"], "fp32")],
        "pow": [("__nv_pow", ["fp64", "fp64"], "fp64"), ("__nv_powi", ["fp64", "int32"], "fp64")],
        "mulhi": [
            ("__nv_umulhi", ["uint32", "uint32"], "uint32"),
            ("__nv_mul64hi", ["int64", "int64"], "int64"),
        ],
        "llround": [("__nv_llround", ["fp64"], "fp64")],
        "add_rn": [("__nv_dadd_rn", ["fp64", "fp64"], "fp64")],
    }
    assert library.symbols["__nv_powi"].arg_names == ["arg0", "b"]
    assert (library.name, library.path, library.grouping, library.is_pure) == ("libdevice", "lib.bc", True, True)


def test_no_functions(tmp_path):
    with pytest.raises(ValueError, match="defines no function of libdevice"):
        parsed(tmp_path, "define float @sinf(float %a) {")


def test_types():
    assert [convert_type(t) for t in ("i32", "i64", "float", "double", "u32", "ptr", "<2 x i32>")] == [
        "int32", "int64", "fp32", "fp64", "uint32", None, None,
    ]  # fmt: skip
    assert [to_unsigned(t) for t in ("int32", "int64", "fp32", "uint32")] == ["uint32", "uint64", "fp32", "uint32"]
    symbol = Symbol("__nv_f", "f", "fp32", ["a"], ["int32"])
    assert (symbol.name, symbol.op_name, symbol.ret_type) == ("__nv_f", "f", "fp32")
    assert extern_libs == ["libdevice"]
    with pytest.raises(TypeError):
        ExternLibrary("a", "b")


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for llvm-dis is a shell script")
def test_disassembler(tmp_path):
    """A stand-in for llvm-dis, whose "bitcode" is text already."""
    program = tmp_path / "llvm-dis"
    program.write_text('#!/bin/sh\n[ "$2" = -o ] && cp "$1" "$3"\n')
    program.chmod(0o755)
    (tmp_path / "lib.bc").write_text(LIBRARY)
    build(str(program), str(tmp_path / "lib.bc"), "libdevice", str(tmp_path / "out"))
    text = (tmp_path / "out" / "libdevice.py").read_text()
    compile(text, "libdevice.py", "exec")
    assert "def add_rn(a, lambda_, _semantic=None):" in text
    assert '(core.dtype("fp64"), core.dtype("int32"),): ("__nv_powi", core.dtype("fp64")),' in text
    with pytest.raises(RuntimeError, match=r"llvm-dis cannot read .*nothing.bc"):
        LLVMDisassembler(str(program)).disasm(str(tmp_path / "nothing.bc"))
    with pytest.raises(RuntimeError, match="no-such cannot be run"):
        LLVMDisassembler(str(tmp_path / "no-such")).disasm("lib.bc")
    with pytest.raises(ValueError, match="lib_name is one of libdevice, got 'other'"):
        build(str(program), "lib.bc", "other", str(tmp_path))


def libdevice():
    from triton.backends.cuda.codegen import find_libdevice

    try:
        return find_libdevice(80)
    except FileNotFoundError:
        return None


DISASSEMBLER = os.environ.get("TRITON_TEST_LLVM_DIS") or shutil.which("llvm-dis")


@pytest.mark.skipif(DISASSEMBLER is None, reason="no llvm-dis")
def test_the_real_library(tmp_path):
    path = libdevice()
    if path is None:
        pytest.skip("no libdevice")
    build(DISASSEMBLER, str(path), "libdevice", str(tmp_path))
    spec = importlib.util.spec_from_file_location("made_libdevice", tmp_path / "libdevice.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    names = {n for n in vars(tl.extra.cuda.libdevice) if not n.startswith("_")}
    assert len(names & set(vars(made))) > 150

    @triton.jit
    def kernel(x, z):
        tl.store(z, made.atan2(tl.load(x), tl.load(x + 1)))

    source = ASTSource(kernel, {"x": "*fp32", "z": "*fp32"})
    assert "__nv_atan2f" in triton.compile(source, GPUTarget("cuda", 80, 32)).asm["llir"]
