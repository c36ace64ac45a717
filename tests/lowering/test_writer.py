"""The text that the writers produce: shared declarations, constants and helpers; loops; code put in earlier places."""

from __future__ import annotations

import ctypes

import pytest

from triton._C import libtriton
from triton.ir import types as T
from triton.lowering.elementwise import emit_constant
from triton.lowering.writer import Cell, FunctionWriter, ModuleWriter, llvm_type, splat


def call(module: ModuleWriter, name: str, *args: int) -> int:
    """Compiles ``i64 name(i64...)`` and calls it."""
    triple, cpu, features = libtriton.host_target()
    out = libtriton.compile_ir(module.text(), triple=triple, cpu=cpu, features=features, passes="", emit=("obj",))
    code = libtriton.jit_load(out["obj"])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(code.address(name))
    return int(function(*args))


def test_types_of_cells() -> None:
    assert llvm_type(T.i1) == "i1" and llvm_type(T.i1, 8, memory=True) == "<8 x i8>"
    assert llvm_type(T.u32, 4) == "<4 x i32>" and llvm_type(T.bf16) == "bfloat" and llvm_type(T.f8e5m2, 2) == "<2 x i8>"
    assert llvm_type(T.PointerType(T.f32)) == "ptr"
    assert llvm_type(T.PointerType(T.f32, 3), 4) == "<4 x ptr addrspace(3)>"
    assert Cell("%x", T.f32, 4).typed == "<4 x float> %x"


def test_everything_is_written_once() -> None:
    module = ModuleWriter()
    assert module.declare("f", "void", ["i32"]) == module.declare("f", "void", ["i32"]) == "@f"
    assert module.declare("odd name", "void", []) == '@"odd name"'
    first = module.string('a"\\\n')
    assert module.string(b'a"\\\n') == first
    assert module.array("i32", ["1", "2"]) == module.array("i32", ["1", "2"])
    assert module.attributes("nounwind") == module.attributes("nounwind") == "#0"
    assert module.metadata("!{i32 1}") == module.metadata("!{i32 1}") == "!0"
    assert module.distinct_metadata("!0") == "!1"

    def build(inner: ModuleWriter) -> FunctionWriter:
        w = FunctionWriter(inner, "twice", "i64", ["i64 %x"], linkage="internal")
        w.ret("i64 " + w.emit("add i64 %x, %x"))
        return w

    w = module.function("main", "i64", ["i64 %x"])
    for _ in range(2):
        callee = module.helper("twice", build)
    w.ret("i64 " + w.call("i64", callee, ["i64 %x"]))
    text = module.text()
    assert text.count("declare void @f(i32)") == text.count("define internal i64 @twice") == 1
    assert 'c"a\\22\\5C\\0A"' in text and "!1 = distinct !{!1, !0}" in text
    libtriton.verify_ir(text)
    assert call(module, "main", 21) == 42


@pytest.mark.parametrize("at_least_once", [False, True])
def test_loop_carries_values(at_least_once: bool) -> None:
    module = ModuleWriter()
    w = module.function("sum", "i64", ["i64 %n"])

    def body(index: str, carried: list[str]) -> list[str]:
        total = w.emit(f"add i64 {carried[0]}, {index}")
        with w.branch(w.emit(f"icmp eq i64 {index}, 5"), "five"):  # the latch is then another block than the head
            w.comment("nothing to do")
        return [total, carried[0]]

    total, before = w.loop("0", "%n", "1", body, [("i64", "0"), ("i64", "-1")], at_least_once=at_least_once)
    w.ret("i64 " + w.emit(f"sub i64 {w.emit(f'mul i64 {total}, 1000')}, {before}"))
    assert call(module, "sum", 10) == 45 * 1000 - 36
    if not at_least_once:
        assert call(module, "sum", 0) == 1


def test_code_at_an_earlier_point() -> None:
    module = ModuleWriter()
    w = module.function("late", "i64", ["i64 %n"])
    before = w.point()
    slot = w.alloca("i64", align=8)

    def body(index: str, carried: list[str]) -> list[str]:
        with w.at(before):
            step = w.emit("mul i64 %n, 3")
        w.line(f"store i64 {step}, ptr {slot}, align 8")
        return [w.emit(f"add i64 {carried[0]}, {w.emit(f'load i64, ptr {slot}, align 8')}")]

    (total,) = w.loop("0", "%n", "1", body, [("i64", "0")])
    w.ret(f"i64 {total}")
    assert call(module, "late", 7) == 7 * 21
    assert module.text().index("mul i64 %n, 3") < module.text().index("loop.")


def test_a_point_takes_no_blocks() -> None:
    w = ModuleWriter().function("f", "void", [])
    here = w.point()
    w.br("next")
    w.label("next")
    with pytest.raises(AssertionError, match="straight-line"), w.at(here):
        w.label("other")


def test_splat_keeps_known_values() -> None:
    w = ModuleWriter().function("f", "void", [])
    assert splat(w, emit_constant(T.i32, 3), 4) == Cell("splat (i32 3)", T.i32, 4, 3)
    assert splat(w, emit_constant(T.f32, 0.5), 2).text == "splat (float 0x3FE0000000000000)"
    vector = Cell("%v", T.f32, 8)
    assert splat(w, vector, 8) is vector
    assert splat(w, Cell("%s", T.f32), 8).lanes == 8
