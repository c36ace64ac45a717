"""Instructions that multiply groups of narrow numbers and add the products up in 32-bit lanes.

| instruction | products | needs |
|---|---|---|
| vpdpbusd | 4 of an unsigned and a signed byte | AVX512-VNNI, AVX-VNNI |
| vpdpwssd | 2 of 16-bit integers | AVX512-VNNI, AVX-VNNI |
| pmaddwd | 2 of 16-bit integers, without the sum | SSE2, AVX2, AVX512-BW |
| vdpbf16ps | 2 of bf16 | AVX512-BF16 |
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.types import ElementType, bf16, f32, i8, i16, i32, u8, u16, u32
from ...lowering.loops.machine import GroupedProduct
from ...lowering.writer import FunctionWriter
from .capabilities import Processor

Select = Callable[[ElementType, ElementType, ElementType, int], GroupedProduct | None]


def grouped(cpu: Processor, floats: bool = True) -> Select:
    """What ``cpu`` has. Without ``floats`` only what is exact: vdpbf16ps takes denormals for zeros."""

    def select(left: ElementType, right: ElementType, acc: ElementType, lanes: int) -> GroupedProduct | None:
        bits = lanes * 32
        if not cpu.triple.startswith("x86_64") or bits not in (128, 256, 512) or bits > cpu.vector_bits:
            return None
        if acc == f32:
            return _floats(cpu, left, right) if floats else None
        return _integers(cpu, left, right, bits) if acc in (i32, u32) else None

    return select


def _floats(cpu: Processor, left: ElementType, right: ElementType) -> GroupedProduct | None:
    """bf16, and 8-bit floats, all of which bf16 holds exactly."""
    if not cpu.has("avx512bf16") or cpu.vector_bits < 512:
        return None
    if not all(t == bf16 or t.is_fp8 for t in (left, right)):
        return None
    return GroupedProduct(bf16, bf16, 2, _bf16_pairs)


def _integers(cpu: Processor, left: ElementType, right: ElementType, bits: int) -> GroupedProduct | None:
    if not {left, right} <= {i8, u8, i16, u16}:
        return None
    dots = cpu.has("avx512vnni") if cpu.vector_bits == 512 else cpu.has("avxvnni")
    bytes_only = {left, right} <= {i8, u8}
    if dots and bytes_only and right == i8:
        return GroupedProduct(left, right, 4, _bytes, shifted=left == i8)  # type: ignore[arg-type]
    if dots and bytes_only and left == i8:
        return GroupedProduct(left, right, 4, lambda w, acc, a, b, lanes: _bytes(w, acc, b, a, lanes))  # type: ignore[arg-type]
    if u16 in (left, right) or not (bits < 256 or cpu.has("avx2")):
        return None
    return GroupedProduct(i16, i16, 2, _words if dots else _multiply_add)


def _call(w: FunctionWriter, name: str, result: str, params: list[str], args: list[str]) -> str:
    callee = w.module.declare(name, result, params)
    return w.call(result, callee, [f"{type} {text}" for type, text in zip(params, args, strict=True)])


def _dot(w: FunctionWriter, name: str, acc: str, a: str, b: str, lanes: int) -> str:
    type = f"<{lanes} x i32>"
    return _call(w, f"llvm.x86.avx512.{name}.{32 * lanes}", type, [type] * 3, [acc, a, b])


def _bytes(w: FunctionWriter, acc: str, a: str, b: str, lanes: int) -> str:
    return _dot(w, "vpdpbusd", acc, a, b, lanes)


def _words(w: FunctionWriter, acc: str, a: str, b: str, lanes: int) -> str:
    return _dot(w, "vpdpwssd", acc, a, b, lanes)


_MULTIPLY_ADD = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


def _multiply_add(w: FunctionWriter, acc: str, a: str, b: str, lanes: int) -> str:
    type, narrow = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
    a, b = (w.emit(f"bitcast {type} {text} to {narrow}") for text in (a, b))
    products = _call(w, _MULTIPLY_ADD[lanes], type, [narrow] * 2, [a, b])
    return w.emit(f"add {type} {acc}, {products}")


def _bf16_pairs(w: FunctionWriter, acc: str, a: str, b: str, lanes: int) -> str:
    type, narrow = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>"
    a, b = (w.emit(f"bitcast <{lanes} x i32> {text} to {narrow}") for text in (a, b))
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    return _call(w, name, type, [type, narrow, narrow], [acc, a, b])
