"""jit_load: machine code in this process."""

from __future__ import annotations

import ctypes
import gc
import math
import struct
import sys
from collections.abc import Callable

import numpy as np
import pytest

from triton._C import libtriton

Load = Callable[..., libtriton.Code]
CALL_SIN = """
declare double @{name}(double)
define double @f(double %x) {{
  %r = call double @{name}(double %x)
  ret double %r
}}
"""
ROUND = """
define i16 @f({source} %x) {{
  %h = fptrunc {source} %x to {target}
  %b = bitcast {target} %h to i16
  ret i16 %b
}}
"""


def test_call_through_ctypes(load: Load) -> None:
    code = load("define i64 @add(i64 %a, i64 %b) {\n  %r = add i64 %a, %b\n  ret i64 %r\n}")
    add = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(code.address("add"))
    assert add(2**40, -3) == 2**40 - 3
    assert code.address("add") == code.address("add")


@pytest.mark.parametrize("name", ["sin", "exp", "log2", "erf", "tanh", "cbrt"])
def test_libm_is_found(load: Load, name: str) -> None:
    code = load(
        f"declare double @{name}(double)\n"
        f"define double @f(double %x) {{\n  %r = call double @{name}(double %x)\n  ret double %r\n}}"
    )
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))
    expected = {"log2": math.log2, "cbrt": lambda x: x ** (1 / 3)}.get(name) or getattr(math, name)
    assert f(0.7) == pytest.approx(expected(0.7), rel=1e-15)


def test_process_symbols_are_found(load: Load) -> None:
    name = "GetCurrentProcessId" if sys.platform == "win32" else "getpid"
    code = load(f"declare i32 @{name}()\ndefine i32 @f() {{\n  %r = call i32 @{name}()\n  ret i32 %r\n}}")
    import os

    assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("f"))() == os.getpid()


def test_given_symbols_come_first(load: Load) -> None:
    answer = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x + 100)
    address = ctypes.cast(answer, ctypes.c_void_p).value
    ir = CALL_SIN.format(name="sin")
    replaced = load(ir, {"sin": address})
    plain = load(ir)
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    assert call(replaced.address("f"))(0.5) == 100.5
    assert call(plain.address("f"))(0.5) == math.sin(0.5)


def test_missing_symbols_are_named(load: Load) -> None:
    with pytest.raises(libtriton.LLVMError, match="nowhere"):
        load("define void @f() {\n  ret void\n}").address("nowhere")
    code = load("declare void @missing_helper()\ndefine void @f() {\n  call void @missing_helper()\n  ret void\n}")
    with pytest.raises(libtriton.LLVMError, match="missing_helper"):
        code.address("f")
    assert load("define void @g() {\n  ret void\n}").address("g")


@pytest.mark.parametrize("data", [b"", b"not an object file", b"\x7fELF" + bytes(60)])
def test_bad_object_is_an_error(data: bytes) -> None:
    with pytest.raises(libtriton.LLVMError):
        libtriton.jit_load(data).address("f")


def test_truncated_object_is_an_error(build: Callable[[str], bytes], load: Load) -> None:
    ir = CALL_SIN.format(name="llvm.sin.f64")
    obj = build(ir)
    for size in range(64, len(obj) - 1, 97):
        with pytest.raises(libtriton.LLVMError):
            libtriton.jit_load(obj[:size]).address("f")
    assert load(ir).address("f")


def test_same_name_in_two_modules(load: Load) -> None:
    codes = [load(f"define i32 @f() {{\n  ret i32 {i}\n}}") for i in range(5)]
    assert [ctypes.CFUNCTYPE(ctypes.c_int32)(c.address("f"))() for c in codes] == [0, 1, 2, 3, 4]


def test_global_data_and_constants(load: Load) -> None:
    code = load(
        "@counter = internal global i64 40\n"
        "define i64 @bump() {\n  %v = load i64, ptr @counter\n  %w = add i64 %v, 1\n"
        "  store i64 %w, ptr @counter\n  ret i64 %w\n}"
    )
    bump = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("bump"))
    assert [bump(), bump()] == [41, 42]


def test_freed_code_makes_room_for_other_code(load: Load) -> None:
    for i in range(30):
        code = load(f"define i32 @f{i}() {{\n  ret i32 {i}\n}}")
        assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address(f"f{i}"))() == i
        del code
        gc.collect()


def test_code_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        libtriton.Code()


HALF_VALUES = [
    0.0,
    -0.0,
    1.0,
    65504.0,
    65519.9,
    65520.0,
    1e9,
    6e-8,
    2.9e-8,
    3e-8,
    6.1e-5,
    -1.0009765625,
    0.1,
    2049.0,
    2051.0,
    math.inf,
    math.nan,
]


@pytest.mark.parametrize("source", ["float", "double"])
def test_half_helpers_round_to_nearest_even(load: Load, source: str) -> None:
    """The compiler's helper calls, made on a CPU without half instructions, agree with NumPy."""
    width = 32 if source == "float" else 64
    ir = ROUND.format(source=source, target="half")
    triple = libtriton.host_target()[0]
    obj = libtriton.compile_ir(ir, triple=triple, cpu="x86-64", features="", emit=("obj",))["obj"]
    code = libtriton.jit_load(obj)
    ctype = ctypes.c_float if width == 32 else ctypes.c_double
    f = ctypes.CFUNCTYPE(ctypes.c_uint16, ctype)(code.address("f"))
    numpy_type = np.float32 if width == 32 else np.float64
    random = np.random.default_rng(0).standard_normal(2000) * 10.0 ** np.random.default_rng(1).integers(-9, 6, 2000)
    with np.errstate(over="ignore"):
        for value in [*HALF_VALUES, *random]:
            given = numpy_type(value)
            expected = int(given.astype(np.float16).view(np.uint16))
            got = f(float(given))
            if math.isnan(value):
                assert got & 0x7C00 == 0x7C00 and got & 0x3FF
            else:
                assert got == expected, value


def test_half_widening_is_exact(load: Load) -> None:
    ir = "define float @f(i16 %b) {\n  %h = bitcast i16 %b to half\n  %x = fpext half %h to float\n  ret float %x\n}\n"
    obj = libtriton.compile_ir(ir, triple=libtriton.host_target()[0], cpu="x86-64", features="", emit=("obj",))["obj"]
    code = libtriton.jit_load(obj)
    f = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(code.address("f"))
    for bits in range(0, 65536, 7):
        expected = float(np.uint16(bits).view(np.float16))
        got = f(bits)
        assert struct.pack("f", got) == struct.pack("f", expected) or (math.isnan(got) and math.isnan(expected))


def test_bfloat_helpers_round_to_nearest_even(load: Load) -> None:
    ir = ROUND.format(source="float", target="bfloat")
    obj = libtriton.compile_ir(ir, triple=libtriton.host_target()[0], cpu="x86-64", features="", emit=("obj",))["obj"]
    code = libtriton.jit_load(obj)
    f = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_float)(code.address("f"))
    for value in np.random.default_rng(0).standard_normal(2000).astype(np.float32):
        bits = int(value.view(np.uint32))
        expected = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        assert f(float(value)) == expected
