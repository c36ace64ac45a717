"""Runs a piece of tile IR on tiles read from memory, under the CPU back end and the interpreter, and compares."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from triton import interpreter
from triton._C import libtriton
from triton.backends.cpu import codegen, lowering
from triton.backends.cpu.capabilities import Processor, host
from triton.interpreter.floats import from_python, narrow, storage_dtype, widen
from triton.ir import parse_module, parse_type, verify
from triton.ir.core import Module
from triton.ir.types import PointerType, TensorType, element_of, shape_of


@dataclass(frozen=True)
class Options:
    may_alias: bool = False
    enable_fp_fusion: bool = True


@dataclass
class Built:
    """A module compiled for the host."""

    module: Module
    text: str
    code: Any
    address: int
    scratch: int
    timings: dict[str, float] = field(default_factory=dict)

    def run(self, args: Sequence[Any], grid: tuple[int, int, int] = (1, 1, 1), threads: int = 0) -> None:
        """``args``: arrays for pointers, numbers otherwise."""
        data = b""
        for value, parameter in zip(args, self.module.kernel.args, strict=True):
            element = element_of(parameter.type)
            if isinstance(element, PointerType):
                address = value.ctypes.data if isinstance(value, np.ndarray) else value
                data += struct.pack("<Q", address)
            elif element.is_float:
                data += np.asarray(from_python(value, element)).reshape(1).tobytes().ljust(8, b"\0")
            else:
                data += struct.pack("<Q", int(value) & (2**64 - 1))
        libtriton.cpu_launch(self.address, data, grid, self.scratch, threads)


def build(source: str | Module, options: Options = Options(), cpu: Processor | None = None) -> Built:
    module = parse_module(source) if isinstance(source, str) else source
    verify(module)
    cpu = cpu or host()
    lowered = lowering.lower(module, cpu, options)
    made = codegen.compile(lowered.text, cpu)
    code = libtriton.jit_load(made["obj"])
    return Built(module, lowered.text, code, code.address(lowered.name), lowered.scratch, made["timings"])


def compare(
    source: str,
    args: Sequence[Any],
    grid: tuple[int, int, int] = (1, 1, 1),
    ulps: float = 0,
    options: Options = Options(),
    cpu: Processor | None = None,
) -> list[Any]:
    """Runs both and compares every array; floats within ``ulps`` units of the last place of the largest value."""
    mine = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    reference = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    built = build(source, options, cpu)
    interpreter.run(built.module, [a.ctypes.data if isinstance(a, np.ndarray) else a for a in reference], grid)
    built.run(mine, grid)
    for i, (a, b, p) in enumerate(zip(mine, reference, built.module.kernel.args, strict=True)):
        if isinstance(a, np.ndarray):
            element = element_of(p.type)
            assert isinstance(element, PointerType)
            same(a, b, element.pointee, ulps, f"argument {i}")
    return mine


def same(a: np.ndarray, b: np.ndarray, element: Any, ulps: float, what: str) -> None:
    if not element.is_float:
        np.testing.assert_array_equal(a, b, err_msg=what)
        return
    x, y = widen(a, element).astype(np.float64), widen(b, element).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(x), np.isnan(y), err_msg=what)
    x, y = np.where(np.isnan(x), 0, x), np.where(np.isnan(y), 0, y)
    if not ulps:
        np.testing.assert_array_equal(x, y, err_msg=what)
        return
    eps = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}.get(str(element), 0.25)
    size = max(1.0, float(np.max(np.abs(y[np.isfinite(y)]), initial=0)))
    np.testing.assert_allclose(x, y, rtol=ulps * eps, atol=ulps * eps * size, err_msg=what)


def random(type: str, rng: np.random.Generator, low: int = -100, high: int = 100) -> np.ndarray:
    """The contents of a tile of this type, in memory form."""
    t = parse_type(type)
    element, n = element_of(t), prod(shape_of(t))
    if element.is_bool:
        return rng.integers(0, 2, n).astype(np.uint8)
    if element.is_float:
        return narrow(rng.standard_normal(n), element)
    dtype = np.dtype(storage_dtype(element))
    info = np.iinfo(dtype)
    return rng.integers(max(low, info.min), min(high, info.max), n).astype(dtype)


def kernel(inputs: Sequence[str], body: str, outputs: Sequence[tuple[str, str]], extra: str = "") -> str:
    """A kernel that reads tiles %a, %b, ..., runs ``body`` and writes the named results.

    Tiles lie in memory in row-major order; scalars in the first element. ``extra`` is put before the kernel.
    """
    params, before, after = [], [], []
    for i, type in enumerate(inputs):
        name = "abcdefgh"[i]
        params.append(f"%p{name}: ptr<{element_of(parse_type(type))}>")
        before += _read(name, type)
    for i, (name, type) in enumerate(outputs):
        params.append(f"%o{i}: ptr<{element_of(parse_type(type))}>")
        after += _write(i, name, type)
    lines = "\n".join("  " + line for line in [*before, *body.strip().splitlines(), *after, "return"])
    return f"module {{\n{extra}\nfunc @kernel({', '.join(params)}) {{kernel = true}} {{\n{lines}\n}}\n}}\n"


def _read(name: str, type: str) -> list[str]:
    t = parse_type(type)
    element = element_of(t)
    if not isinstance(t, TensorType):
        return [f"%{name} = load %p{name} : {element}"]
    n = t.numel
    lines = [
        f"%{name}.r = arange {{start = 0, end = {n}}} : {n}xi32",
        f"%{name}.s = splat %p{name} : {n}xptr<{element}>",
        f"%{name}.p = addptr %{name}.s, %{name}.r : {n}xptr<{element}>",
    ]
    if len(t.shape) == 1:
        return [*lines, f"%{name} = load %{name}.p : {type}"]
    return [*lines, f"%{name}.l = load %{name}.p : {n}x{element}", f"%{name} = reshape %{name}.l : {type}"]


def _write(i: int, name: str, type: str) -> list[str]:
    t = parse_type(type)
    element = element_of(t)
    if not isinstance(t, TensorType):
        return [f"store %o{i}, {name}"]
    n = t.numel
    lines = [
        f"%o{i}.r = arange {{start = 0, end = {n}}} : {n}xi32",
        f"%o{i}.s = splat %o{i} : {n}xptr<{element}>",
        f"%o{i}.p = addptr %o{i}.s, %o{i}.r : {n}xptr<{element}>",
    ]
    if len(t.shape) == 1:
        return [*lines, f"store %o{i}.p, {name}"]
    return [*lines, f"%o{i}.f = reshape {name} : {n}x{element}", f"store %o{i}.p, %o{i}.f"]


def check(
    inputs: Sequence[str],
    body: str,
    outputs: Sequence[tuple[str, str]],
    *,
    ulps: float = 0,
    seed: int = 0,
    low: int = -100,
    high: int = 100,
    extra: str = "",
    data: Sequence[np.ndarray | None] = (),
) -> list[np.ndarray]:
    """Runs ``body`` both ways, with and without the promise that arguments do not overlap; returns the outputs."""
    rng = np.random.default_rng(seed)
    args = [random(t, rng, low, high) for t in inputs]
    args = [given if given is not None else a for given, a in zip([*data, *[None] * len(args)], args, strict=False)]
    for _, type in outputs:
        t = parse_type(type)
        element = element_of(t)
        dtype = np.uint8 if element.is_bool else storage_dtype(element)
        args.append(np.zeros(prod(shape_of(t)), dtype))
    source = kernel(inputs, body, outputs, extra)
    for options in (Options(), Options(may_alias=True)):
        results = compare(source, args, ulps=ulps, options=options)
    return results[len(inputs) :]
