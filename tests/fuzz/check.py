"""Runs one random kernel in every way there is and compares what it leaves in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from exactness import EXACT, INEXACT, SIGN_OF_ZERO, Levels, perturbed_rules, ulps
from generator import Buffer, Kernel

from triton import interpreter
from triton.interpreter.floats import from_python, narrow, storage_dtype, widen
from triton.interpreter.machine import Machine
from triton.interpreter.memory import Memory
from triton.ir import parse_module, print_module, verify
from triton.ir.core import Module
from triton.ir.equal import equal

GUARD = 64
"""Bytes before and after each buffer that no kernel may touch."""

Executor = Callable[[list, tuple[int, int, int], list], None]
"""Runs a kernel: arguments, grid, and the memory that the arguments own."""


class Mismatch(AssertionError):
    """Two executions of one kernel disagree, or an invariant of the IR is broken. ``stage`` says where."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage


@dataclass
class Memories:
    """The buffers of one run, each with guard bytes around it."""

    raw: list[np.ndarray]
    kernel: Kernel

    def view(self, index: int) -> np.ndarray:
        buffer = self.kernel.buffers[index]
        dtype = np.uint8 if buffer.element.is_bool else storage_dtype(buffer.element)
        size = total(self.kernel, buffer) * np.dtype(dtype).itemsize
        return self.raw[index][GUARD : GUARD + size].view(dtype)

    def arguments(self) -> list:
        numbers = {name: value for name, _, value in self.kernel.scalars}
        numbers |= {b.name: self.view(i).ctypes.data for i, b in enumerate(self.kernel.buffers)}
        return [numbers[a.name] for a in self.kernel.module.kernel.args]

    def ranges(self) -> list[interpreter.Range]:
        views = [self.view(i) for i in range(len(self.raw))]
        names = [b.name for b in self.kernel.buffers]
        return [interpreter.Range(v.ctypes.data, v.nbytes, n) for v, n in zip(views, names, strict=True)]


def total(kernel: Kernel, buffer: Buffer) -> int:
    """How many elements a buffer has: programs write into parts of their own."""
    return buffer.count * (1 if buffer.role == "input" else prod(kernel.grid))


def contents(buffer: Buffer, n: int, seed: int) -> np.ndarray:
    """What a buffer holds at first; special floats in one kernel of three."""
    rng = np.random.default_rng([seed, zlib.crc32(buffer.name.encode())])
    element = buffer.element
    if element.is_bool:
        return rng.integers(0, 2, n).astype(np.uint8)
    dtype = np.dtype(storage_dtype(element))
    if not element.is_float:
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        small = rng.integers(max(info.min, -9), 10, n).astype(dtype)
        return np.where(rng.random(n) < 0.5, wide, small)
    values = rng.standard_normal(n) * rng.choice([0.25, 1.0, 16.0])
    if seed % 3 == 0:
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 300.0, -448.0, 1.0], n)
        values = np.where(rng.random(n) < 0.15, special, values)
    with np.errstate(all="ignore"):
        return narrow(values, element)


def memories(kernel: Kernel) -> Memories:
    """Fresh memory for one run: the same contents every time, 16-byte aligned where the kernel was promised so."""
    raw = []
    result = Memories(raw, kernel)
    for index, buffer in enumerate(kernel.buffers):
        dtype = np.dtype(np.uint8 if buffer.element.is_bool else storage_dtype(buffer.element))
        count = total(kernel, buffer)
        block = np.full(2 * GUARD + count * dtype.itemsize + 64, 0xA5, dtype=np.uint8)
        shift = -(block.ctypes.data + GUARD) % 64
        raw.append(block[shift : shift + 2 * GUARD + count * dtype.itemsize])
        result.view(index)[:] = contents(buffer, count, kernel.seed)
    return result


def interpret(module: Module, args: list, grid: tuple[int, int, int], ranges=None, rules=None) -> None:
    if rules is None:
        interpreter.run(module, args, grid, ranges, output=lambda line: None)
        return
    machine = Machine(module, Memory(ranges), grid, lambda line: None)
    machine.rules = rules
    values = [from_python(a, p.type) for a, p in zip(args, module.kernel.args, strict=True)]
    with np.errstate(all="ignore"):
        for z, y, x in np.ndindex(grid[::-1]):
            machine.program = (x, y, z)
            machine.run_function(module.kernel, values)


class Reference:
    """The interpreter's result for a kernel, with how far each element of each buffer may be off."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.plain = memories(kernel)
        interpret(kernel.module, self.plain.arguments(), kernel.grid, self.plain.ranges())
        stored = {arg.name: level for arg, level in Levels(kernel.module).stored.items()}
        self.levels = [stored.get(b.name, EXACT) if b.element.is_float else EXACT for b in kernel.buffers]
        self.slack: dict[int, np.ndarray] = {}
        if INEXACT in self.levels:
            self.measure_slack()

    def measure_slack(self) -> None:
        rng = np.random.default_rng(self.kernel.seed)
        for _ in range(3):
            shaken = memories(self.kernel)
            rules = perturbed_rules(self.kernel.module, rng)
            interpret(self.kernel.module, shaken.arguments(), self.kernel.grid, shaken.ranges(), rules)
            for i, level in enumerate(self.levels):
                if level == INEXACT:
                    a, b = self.values(self.plain, i), self.values(shaken, i)
                    with np.errstate(all="ignore"):
                        off = np.where(
                            np.isfinite(a) & np.isfinite(b), np.abs(a - b), np.where(same(a, b), 0.0, np.inf)
                        )
                    self.slack[i] = np.maximum(self.slack.get(i, 0.0), off)

    def values(self, run: Memories, i: int) -> np.ndarray:
        with np.errstate(all="ignore"):
            return widen(run.view(i), self.kernel.buffers[i].element).astype(np.float64)

    def compare(self, other: Memories, stage: str) -> None:
        """Raises Mismatch when a buffer or a guard differs."""
        for i, buffer in enumerate(self.kernel.buffers):
            whole = other.raw[i]
            if (whole[:GUARD] != 0xA5).any() or (whole[len(whole) - GUARD :] != 0xA5).any():
                raise Mismatch(stage, f"wrote outside {buffer.name}")
            if buffer.element.is_float:
                good = self.close(other, i)
            else:
                good = self.plain.view(i) == other.view(i)
            if not good.all():
                at = int(np.flatnonzero(~good)[0])
                want, got = (
                    self.values(m, i)[at] if buffer.element.is_float else m.view(i)[at] for m in (self.plain, other)
                )
                level = ("exact", "sign of zero free", "inexact")[self.levels[i]]
                raise Mismatch(
                    stage, f"{buffer.name}[{at}] is {got!r}, the interpreter has {want!r} "
                    f"({int((~good).sum())} of {good.size} differ, {level}, {buffer.element})"
                )  # fmt: skip

    def close(self, other: Memories, i: int) -> np.ndarray:
        name = self.kernel.buffers[i].element.name
        a, b = self.values(self.plain, i), self.values(other, i)
        if self.levels[i] == EXACT:
            return same(a, b) & ((np.signbit(a) == np.signbit(b)) | np.isnan(a))
        if self.levels[i] == SIGN_OF_ZERO:
            return same(a, b)
        slack = self.slack[i]
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= 16 * slack + 8 * ulps(a, name)
        return near | same(a, b) | ~np.isfinite(slack)


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def copy(module: Module) -> Module:
    return parse_module(print_module(module))


def check(kernel: Kernel, passes=(), executors: dict[str, Callable[[Module], Executor]] | None = None) -> Reference:
    """Interpreter before passes = after each pass = every executor. ``passes``: (name, function), run in turn."""
    verify(kernel.module)
    text = print_module(kernel.module)
    again = parse_module(text)
    if not equal(again, kernel.module) or print_module(again) != text:
        raise Mismatch("text", "parsing what was printed gives another module")
    reference = Reference(kernel)
    module = again
    for name, function in passes:
        before = print_module(module)
        try:
            module = function(module)
            verify(module)
        except Exception as error:
            raise Mismatch(name, f"{type(error).__name__}: {error}") from error
        if print_module(module) == before:
            continue
        run = memories(kernel)
        try:
            interpret(module, run.arguments(), kernel.grid, run.ranges())
        except interpreter.InterpreterError as error:
            raise Mismatch(name, f"the interpreter stops: {error}") from error
        reference.compare(run, name)
        if not equal(copy(module), module):
            raise Mismatch(name, "parsing what was printed gives another module")
    for name, make in (executors or {}).items():
        run = memories(kernel)
        try:
            make(copy(kernel.module))(run.arguments(), kernel.grid, run.ranges())
        except Mismatch:
            raise
        except Exception as error:
            raise Mismatch(name, f"{type(error).__name__}: {error}") from error
        reference.compare(run, name)
    return reference
