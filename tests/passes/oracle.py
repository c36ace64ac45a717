"""Runs one function of the tile IR on random values through the interpreter: the oracle of the rule tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from triton.interpreter.floats import from_python, narrow, storage_dtype, widen
from triton.interpreter.machine import Machine
from triton.interpreter.memory import Memory
from triton.ir import Function, Module
from triton.ir.types import PointerType, ScalarType, Type, element_of, shape_of

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")


class Data:
    """Random values with a liking for the awkward ones; small whole numbers only, when ``tame``.

    Pointers lead into a buffer of random bytes.
    """

    def __init__(self, seed: int, tame: bool = False) -> None:
        self.tame = tame
        self.rng = np.random.default_rng(seed)
        self.buffer = self.rng.integers(0, 256, 1 << 16, dtype=np.uint8)

    def values(self, type: Type) -> Any:
        element, shape = element_of(type), shape_of(type)
        if isinstance(element, PointerType):
            offsets = self.rng.integers(64, 4096, shape) * 8 + self.buffer.ctypes.data
            return np.asarray(offsets, dtype=np.uint64)
        assert isinstance(element, ScalarType)
        dtype = storage_dtype(element)
        if element.is_bool:
            return np.asarray(self.rng.integers(0, 2, shape).astype(bool))
        raw = self.rng.integers(0, 256, (*shape, element.bits // 8), dtype=np.uint8)
        bits = raw.view(f"u{element.bits // 8}")[..., 0]
        small = self.rng.integers(-3, 4, shape)
        if self.tame:
            return np.asarray(narrow(small.astype(np.float32), element) if element.is_float else small.astype(dtype))
        if element.is_float:
            special = self._floats(element, shape)
            return np.asarray(np.where(self.rng.random(shape) < 0.6, special, bits.view(dtype)), dtype=dtype)
        ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype=dtype)[self.rng.integers(0, 2, shape)]
        choice = self.rng.random(shape)
        some = np.where(choice < 0.5, small.astype(dtype), bits.view(dtype))
        return np.asarray(np.where(choice > 0.9, ends, some), dtype=dtype)

    def _floats(self, element: ScalarType, shape: tuple[int, ...]) -> Any:
        pool = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-3, 7.25, 100.0, math.inf, -math.inf, math.nan]
        coded = np.array([from_python(v, element) for v in pool])
        return coded[self.rng.integers(0, len(pool), shape)]


def run(module: Module, function: Function, args: list[Any]) -> list[Any]:
    """The function's results; memory is read and written without checks."""
    machine = Machine(module, Memory(None), (1, 1, 1), print)
    with np.errstate(all="ignore"):
        return machine.run_function(function, args)


def same(a: Any, b: Any, type: Type) -> bool:
    """Bitwise equality, except that NaNs are one value."""
    element = element_of(type)
    if np.shape(a) != np.shape(b):
        return False
    if not element.is_float:
        return bool(np.array_equal(a, b))
    assert isinstance(element, ScalarType)
    with np.errstate(all="ignore"):
        x, y = (widen(np.asarray(v), element).astype(np.float64) for v in (a, b))
    return bool(np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))))
