"""Runs one element-wise op of the tile IR over NumPy arrays: lowered, compiled for this machine, called through
ctypes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from triton._C import libtriton
from triton.backends.cpu.capabilities import host
from triton.backends.cpu.lowering import features
from triton.ir.core import Block, Op
from triton.ir.types import ElementType, PointerType, ScalarType
from triton.lowering.elementwise import emit_elementwise
from triton.lowering.writer import Cell, Features, ModuleWriter, llvm_type, scalar_type

NUMPY = {
    "i1": np.uint8,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
}
PLAIN = Features()
HOST = features(host(), fusion=False)
PASSES = "always-inline,function(instcombine<no-verify-fixpoint>,early-cse,simplifycfg)"


def numpy_type(element: ElementType) -> Any:
    if isinstance(element, PointerType):
        return np.uint64
    return NUMPY.get(element.name, np.uint8)


class Compiled:
    """``kind`` over arrays of any length; arguments whose position is in ``constants`` are constants instead."""

    def __init__(
        self,
        kind: str,
        arguments: Sequence[ElementType],
        results: Sequence[ElementType],
        attrs: dict[str, Any] | None = None,
        *,
        lanes: int = 8,
        features: Features = HOST,
        constants: dict[int, Cell] | None = None,
        plain_cpu: bool = False,
    ) -> None:
        self.arguments, self.results, self.lanes = arguments, results, lanes
        self.constants = constants or {}
        op = Op(kind, Block(list(arguments)).args, list(results), attrs or {})
        module = ModuleWriter(features)
        w = module.function("run", "void", ["ptr %arrays", "i64 %count"])
        pointers = [
            w.emit(f"load ptr, ptr {w.emit(f'getelementptr ptr, ptr %arrays, i64 {i}')}")
            for i in range(len(arguments) + len(results))
        ]

        def body(index: str, carried: list[str]) -> list[str]:
            args = [
                self.constants[i] if i in self.constants else self._load(w, pointers[i], index, e)
                for i, e in enumerate(arguments)
            ]
            outputs = emit_elementwise(w, op, args, lanes)
            for pointer, element, out in zip(pointers[len(arguments) :], results, outputs, strict=True):
                assert (out.element, out.lanes) == (element, lanes), f"{kind} gave {out}"
                self._store(w, pointer, index, out)
            return []

        w.loop("0", "%count", str(lanes or 1), body)
        w.ret()
        self.ir = module.text()
        triple, cpu, target_features = libtriton.host_target()
        if plain_cpu:
            cpu, target_features = "x86-64", ""
        out = libtriton.compile_ir(
            self.ir, triple=triple, cpu=cpu, features=target_features, passes=PASSES, emit=("obj", "asm")
        )
        self.asm = out["asm"]
        self.code = libtriton.jit_load(out["obj"])
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self.code.address("run"))

    def _load(self, w: Any, pointer: str, index: str, element: ElementType) -> Cell:
        address = w.emit(f"getelementptr {scalar_type(element, memory=True)}, ptr {pointer}, i64 {index}")
        memory = llvm_type(element, self.lanes, memory=True)
        value = w.emit(f"load {memory}, ptr {address}, align 1")
        if isinstance(element, ScalarType) and element.is_bool:
            value = w.emit(f"trunc {memory} {value} to {llvm_type(element, self.lanes)}")
        return Cell(value, element, self.lanes)

    def _store(self, w: Any, pointer: str, index: str, cell: Cell) -> None:
        address = w.emit(f"getelementptr {scalar_type(cell.element, memory=True)}, ptr {pointer}, i64 {index}")
        value, memory = cell.text, llvm_type(cell.element, self.lanes, memory=True)
        if isinstance(cell.element, ScalarType) and cell.element.is_bool:
            value = w.emit(f"zext {cell.typed} to {memory}")
        w.line(f"store {memory} {value}, ptr {address}, align 1")

    def __call__(self, *arrays: np.ndarray) -> Any:
        """The results (one array, or a list). Inputs have the memory form of their element type."""
        given = iter(arrays)
        count = arrays[0].size
        unit = self.lanes or 1
        padded = -(-count // unit) * unit
        buffers = []
        for i, element in enumerate(self.arguments):
            buffer = np.ones(padded, numpy_type(element))
            if i not in self.constants:
                buffer[:count] = next(given)
            buffers.append(buffer)
        outputs = [np.zeros(padded, numpy_type(e)) for e in self.results]
        slots = (ctypes.c_void_p * len(buffers + outputs))(*(b.ctypes.data for b in buffers + outputs))
        self.function(ctypes.addressof(slots), padded)
        cut = [o[:count] for o in outputs]
        return cut[0] if len(cut) == 1 else cut


def run(kind: str, element: ElementType, result: ElementType, *arrays: np.ndarray, **options: Any) -> Any:
    """``kind`` on arguments of one type."""
    attrs = options.pop("attrs", None)
    return Compiled(kind, [element] * len(arrays), [result], attrs, **options)(*arrays)
