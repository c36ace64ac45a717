"""Random kernels as source text, from the front end on: ``python tests/fuzz/programs.py --count 1000 --seed 0``.

Each text runs three times: by the interpreter, by the CPU, and by Python itself with ``model.py`` for ``tl``. All must
leave the same in memory, to the bit.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
from many import failures, usable_cpus
from model import MODEL, Pointer, V, model_range

WORDS = ("int32", "int32", "int64", "uint32", "float32")
NARROW = ("int16", "uint8")
HEAD = "import triton\nimport triton.language as tl\n\n"
HELPERS = '''
@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def last_set(a, b):
    return tl.where(b != 0, b, a)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit(noinline=True)
def collatz(n, limit):
    steps = n * 0
    n = tl.where(n < 1, 1, n)
    while n != 1 and steps < limit:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@triton.jit
def pick(which, a, b):
    if which == 0:
        return a
    elif which == 1:
        return b
    return a + b


@triton.jit
def both(a, b, SWAP: tl.constexpr):
    if SWAP:
        return b, a
    return a, b


@triton.jit
def powers(x, N: tl.constexpr):
    result = x * 0 + 1
    for _ in tl.static_range(N):
        result *= x
    return result


@triton.language.core._aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @triton.jit
    def __init__(self, first, second):
        self.first = first
        self.second = second

    @triton.jit
    def total(self):
        return self.first + self.second

    @triton.jit
    def turned(self):
        return Pair(self.second, self.first)


'''


@dataclass(frozen=True)
class Variable:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Program:
    """A kernel's text and its arguments: arrays by name (the outputs last), then numbers."""

    seed: int
    text: str = ""
    grid: int = 1
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


class Writer:
    """``lines`` at the present indentation; ``known`` are the variables that may be used."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.program = Program(seed, grid=self.random.choice((1, 1, 3)))
        self.lines: list[str] = []
        self.depth = 1
        self.known: list[Variable] = []
        self.fixed: set[str] = set()  # loop counters and arguments
        self.names = 0
        self.loops: list[str] = []
        n, m = self.random.choice((4, 8, 16, 31, 64)), self.random.choice((2, 3, 4, 8))
        self.shapes = [(n,), (m, n), (n,)]

    # Names, text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new(self, dtype: str, shape: tuple[int, ...], text: str) -> Variable:
        self.names += 1
        variable = Variable(f"v{self.names}", dtype, shape)
        self.line(f"{variable.name} = {text}")
        self.known.append(variable)
        return variable

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def some(self, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> Variable:
        """A known variable, or a new one."""
        found = [
            v for v in self.known if (dtype is None or v.dtype == dtype) and (shape is None or v.shape == shape)
        ]
        if found and self.chance(0.85):
            return self.random.choice(found[-8:])
        shape = self.random.choice(self.shapes) if shape is None else shape
        return self.make(dtype or self.random.choice(WORDS), shape)

    def tile(self, dtype: str | None = None, rank: int | None = None) -> Variable:
        found = [v for v in self.known if v.shape and (dtype is None or v.dtype == dtype)]
        found = [v for v in found if rank is None or len(v.shape) == rank]
        if found and self.chance(0.85):
            return self.random.choice(found[-8:])
        shapes = [s for s in self.shapes if rank is None or len(s) == rank]
        return self.make(dtype or self.random.choice(WORDS), self.random.choice(shapes))

    # Memory

    def array(self, dtype: str, count: int) -> str:
        name = f"in{len(self.program.arrays)}"
        if dtype == "float32":
            data = self.data.integers(-8, 9, count).astype(np.float32)
        elif dtype == "int1":
            data = self.data.integers(0, 2, count).astype(bool)
        else:
            info = np.iinfo(dtype)
            wide = self.data.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
            data = np.where(self.data.random(count) < 0.5, wide, self.data.integers(0, 9, count).astype(dtype))
        self.program.arrays[name] = data
        return name

    def index(self, shape: tuple[int, ...]) -> str:
        if not shape:
            return "0"
        if len(shape) == 1:
            return f"tl.arange(0, {shape[0]})"
        return f"tl.arange(0, {shape[0]})[:, None] * {shape[1]} + tl.arange(0, {shape[1]})[None, :]"

    def make(self, dtype: str, shape: tuple[int, ...]) -> Variable:
        count = int(np.prod(shape, dtype=int))
        roll = self.random.random()
        if not shape and dtype == "int32" and roll < 0.4:
            name = f"n{len(self.program.numbers)}"
            self.program.numbers[name] = self.random.choice((0, 1, 2, 5, 16, -3, 100))
            variable = Variable(name, "int32", ())
            self.known.append(variable)
            self.fixed.add(name)
            if self.program.numbers[name] != 1:
                return variable
            return self.new("int32", (), f"{name} + tl.program_id(0) * 0")
        if roll < 0.25:
            value = self.random.choice((0, 1, 2, 3, 7, 100))
            return self.new(dtype, shape, f"tl.full({list(shape)}, {value}, tl.{dtype})")
        if roll < 0.35 and len(shape) == 1:
            return self.new(dtype, shape, f"tl.arange(0, {shape[0]}).to(tl.{dtype})")
        source = self.array(dtype, count + 3)
        if roll < 0.6 and shape and dtype != "int1":
            where = self.index_of(shape)
            limit = self.random.choice((0, 1, count // 2, count))
            other = self.random.choice((0, 0, 1, 5))
            return self.new(dtype, shape, f"tl.load({source} + {where}, mask={where} < {limit}, other={other})")
        return self.new(dtype, shape, f"tl.load({source} + {self.index_of(shape)})")

    # Expressions

    def condition(self) -> str:
        """Of scalars."""
        a = self.some("int32", ())
        b = self.random.choice((self.some("int32", ()).name, str(self.random.randint(-2, 9))))
        text = f"{a.name} {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {b}"
        if self.chance(0.25):
            c = self.some("int32", ())
            text = f"{text} {self.random.choice(('and', 'or'))} {c.name} > {self.random.randint(-2, 5)}"
        return f"not ({text})" if self.chance(0.15) else text

    def binary(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.some()
        kinds = ["+", "-", "*"] if x.dtype == "float32" else ["+", "-", "*", "//", "%", "&", "|", "^"]
        kind = self.random.choice(kinds)
        literal = str(self.random.choice((1, 2, 3, 7, 10)))
        y = literal if self.chance(0.3) else self.some(x.dtype, x.shape).name
        text = f"{x.name} {kind} {y}"
        if self.chance(0.1) and kind in "+-*":
            text = f"{literal} {kind} {x.name}"
        return self.tamed(text, x.dtype), x.dtype, x.shape

    def tamed(self, text: str, dtype: str) -> str:
        """Floats stay small whole numbers, so that every sum of them is exact."""
        return f"tl.minimum(tl.maximum({text}, -64.0), 64.0)" if dtype == "float32" else text

    def shift(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.some(self.random.choice(("int32", "int64", "uint32")))
        return f"{x.name} {self.random.choice(('<<', '>>'))} {self.random.randrange(31)}", x.dtype, x.shape

    def unary(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.some()
        kinds = ["-{}", "tl.abs({})"] if x.dtype != "uint32" else ["~{}"]
        if x.dtype.startswith("int"):
            kinds.append("~{}")
        return self.random.choice(kinds).format(x.name), x.dtype, x.shape

    def cast(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.some()
        target = self.random.choice((*WORDS, *NARROW))
        if target == "float32":
            target = "int64" if x.dtype != "int64" else "int32"
        if x.dtype == "float32" and target in ("uint32", "uint8"):
            target = "int32"
        return f"{x.name}.to(tl.{target})", target, x.shape

    def choose(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.tile()
        y = self.some(x.dtype, x.shape)
        c = self.some(None, x.shape)
        test = f"{c.name} {self.random.choice(('<', '>', '==', '!='))} {self.random.randint(0, 9)}"
        kind = self.random.choice(("where", "where", "minimum", "maximum"))
        if kind == "where":
            return f"tl.where({test}, {x.name}, {y.name})", x.dtype, x.shape
        return f"tl.{kind}({x.name}, {y.name})", x.dtype, x.shape

    def rearrange(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.tile()
        kind = self.random.choice(("flip", "trans", "ravel", "reshape", "join", "split", "interleave", "cat", "spread"))
        shape, size = x.shape, int(np.prod(x.shape))
        if kind == "flip":
            axis = self.random.randrange(len(shape))
            return f"tl.flip({x.name}, {axis})", x.dtype, shape
        if kind == "trans" and len(shape) == 2:
            return f"tl.trans({x.name})", x.dtype, shape[::-1]
        if kind == "reshape" and size % 2 == 0:
            return f"tl.reshape({x.name}, {size // 2}, 2)", x.dtype, (size // 2, 2)
        if kind == "split" and size % 2 == 0 and size > 2:
            half = self.random.randrange(2)
            return f"tl.split(tl.reshape({x.name}, {size // 2}, 2))[{half}]", x.dtype, (size // 2,)
        if kind in ("join", "interleave", "cat") and size <= 256 and len(shape) < 3:
            y = self.some(x.dtype, shape)
            if kind == "join":
                return f"tl.join({x.name}, {y.name})", x.dtype, (*shape, 2)
            if kind == "cat":
                return f"tl.cat({x.name}, {y.name}, dim=0)", x.dtype, (2 * shape[0], *shape[1:])
            return f"tl.interleave({x.name}, {y.name})", x.dtype, (*shape[:-1], 2 * shape[-1])
        if kind == "spread" and len(shape) == 1:
            return f"tl.broadcast_to({x.name}[None, :], 3, {shape[0]})", x.dtype, (3, shape[0])
        return f"tl.ravel({x.name})", x.dtype, (size,)

    def reduction(self) -> tuple[str, str, tuple[int, ...]]:
        x = self.tile(self.random.choice(WORDS))
        axis = self.random.randrange(len(x.shape))
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        integer = x.dtype != "float32"
        kinds = ["sum", "max", "min", "argmax", "argmin", "cumsum", "sort"]
        kinds += ["xor_sum", "reduce", "scan", "affine"] if integer else []
        kind = self.random.choice(kinds)
        reverse = self.chance(0.5)
        if kind in ("sum", "max", "min", "xor_sum"):
            return self.tamed(f"tl.{kind}({x.name}, {axis})", x.dtype), x.dtype, rest
        if kind in ("argmax", "argmin"):
            return f"tl.{kind}({x.name}, {axis})", "int32", rest
        if kind == "cumsum":
            return self.tamed(f"tl.cumsum({x.name}, {axis}, reverse={reverse})", x.dtype), x.dtype, x.shape
        if kind == "sort":
            return f"tl.sort({x.name}, {len(x.shape) - 1}, descending={reverse})", x.dtype, x.shape
        if kind == "reduce":
            function = self.random.choice(("plus", "last_set"))
            return f"tl.reduce({x.name}, {axis}, {function})", x.dtype, rest
        if kind == "scan":
            return f"tl.associative_scan({x.name}, {axis}, last_set, reverse={reverse})", x.dtype, x.shape
        y = self.some(x.dtype, x.shape)
        if self.chance(0.5):
            return f"tl.reduce(({x.name}, {y.name}), {axis}, affine)[1]", x.dtype, rest
        scan = f"tl.associative_scan(({x.name}, {y.name}), {axis}, affine, reverse={reverse})"
        return f"{scan}[{self.random.randrange(2)}]", x.dtype, x.shape

    def table(self) -> tuple[str, str, tuple[int, ...]]:
        kind = self.random.choice(("histogram", "gather", "topk", "dot", "umulhi", "clamped"))
        if kind == "histogram":
            x = self.tile("int32", 1)
            return f"tl.histogram({x.name} & 15, 16)", "int32", (16,)
        if kind == "gather":
            x = self.tile()
            axis = self.random.randrange(len(x.shape))
            i = self.some("uint32", x.shape)
            return f"tl.gather({x.name}, ({i.name} % {x.shape[axis]}).to(tl.int32), {axis})", x.dtype, x.shape
        if kind == "topk":
            x = self.tile(self.random.choice(WORDS))
            k = max(k for k in (1, 2, 4, 8) if k <= x.shape[-1])
            k = self.random.choice([v for v in (1, 2, 4, 8) if v <= k])
            return f"tl.topk({x.name}, {k}, descending={self.chance(0.5)})", x.dtype, (*x.shape[:-1], k)
        if kind == "dot":
            m, n, k = (self.random.choice((1, 2, 4, 8, 16, 17)) for _ in range(3))
            if self.chance(0.5):
                a, b = self.make("float32", (m, k)), self.make("float32", (k, n))
                text = f'tl.dot({a.name}, {b.name}, input_precision="ieee")'
                return self.tamed(text, "float32"), "float32", (m, n)
            a, b = self.make("int32", (m, k)), self.make("int32", (k, n))
            return f"tl.dot({a.name}.to(tl.int8), {b.name}.to(tl.int8))", "int32", (m, n)
        if kind == "umulhi":
            x = self.some(self.random.choice(("int32", "uint32", "int64")))
            return f"tl.umulhi({x.name}, {self.some(x.dtype, x.shape).name})", x.dtype, x.shape
        x = self.some("int32")
        return f"tl.cdiv({x.name}, {self.random.choice((2, 3, 16))})", "int32", x.shape

    def helper(self) -> tuple[str, str, tuple[int, ...]]:
        kind = self.random.choice(("collatz", "pick", "both", "powers", "pair", "ternary"))
        if kind == "collatz":
            n = self.some("int32", ())
            return f"collatz({n.name}, {self.random.choice((3, 10))})", "int32", ()
        x = self.some()
        if x.dtype == "float32" and kind in ("pick", "powers", "pair"):
            kind = "both"
        y = self.some(x.dtype, x.shape)
        if kind == "pick":
            return f"pick({self.some('int32', ()).name}, {x.name}, {y.name})", x.dtype, x.shape
        if kind == "both":
            swap, part = self.chance(0.5), self.random.randrange(2)
            return f"both({x.name}, {y.name}, {swap})[{part}]", x.dtype, x.shape
        if kind == "powers":
            return f"powers({x.name}, {self.random.choice((0, 1, 3))})", x.dtype, x.shape
        if kind == "ternary":
            return f"{x.name} if {self.condition()} else {y.name}", x.dtype, x.shape
        part = self.random.choice(("total()", "turned().first", "turned().turned().second"))
        return f"Pair({x.name}, {y.name}).{part}", x.dtype, x.shape

    def expression(self) -> tuple[str, str, tuple[int, ...]]:
        options = (
            (self.binary, 8), (self.shift, 1), (self.unary, 2), (self.cast, 3), (self.choose, 3), (self.rearrange, 4),
            (self.reduction, 5), (self.table, 3), (self.helper, 3),
        )  # fmt: skip
        for _ in range(20):
            text, dtype, shape = self.random.choices(*zip(*options, strict=True))[0]()
            if np.prod(shape, dtype=int) <= 1024 and len(shape) <= 3:
                return text, dtype, shape
        return "tl.full([], 1, tl.int32)", "int32", ()

    # Statements

    def assign(self) -> None:
        """A new variable, or a known one of the same type again."""
        text, dtype, shape = self.expression()
        old = [v for v in self.known if (v.dtype, v.shape) == (dtype, shape) and v.name not in self.fixed]
        if old and self.chance(0.5):
            self.line(f"{self.random.choice(old).name} = {text}")
        elif dtype in NARROW:
            wide = self.new(dtype, shape, text)
            self.known.remove(wide)
            self.new("int64", shape, f"{wide.name}.to(tl.int64) * 3")
        else:
            self.new(dtype, shape, text)

    def augment(self) -> None:
        old = [v for v in self.known if v.name not in self.fixed and v.dtype != "float32"]
        if old:
            v = self.random.choice(old)
            operator = self.random.choice(("+=", "-=", "*=", "^=", "|="))
            self.line(f"{v.name} {operator} {self.some(v.dtype, v.shape).name}")

    def swap(self) -> None:
        x = self.some()
        pairs = [v for v in self.known if (v.dtype, v.shape) == (x.dtype, x.shape) and v.name not in self.fixed]
        if len(pairs) > 1:
            a, b = self.random.sample(pairs, 2)
            self.line(f"{a.name}, {b.name} = {b.name}, {a.name}")

    def inner(self, low: int = 1, high: int = 3) -> None:
        """A block: what it defines is gone after it."""
        before = list(self.known)
        self.depth += 1
        start = len(self.lines)
        for _ in range(self.random.randint(low, high)):
            self.statement()
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1
        kept = set(before)
        self.known = [v for v in self.known if v in kept or v.name in self.program.numbers]

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.inner()
        if self.chance(0.3):
            test = self.inline_condition()
            self.line(f"elif {test}:")
            self.inner()
        if self.chance(0.5):
            self.line("else:")
            self.inner()

    def inline_condition(self) -> str:
        """A condition of what is there already: nothing may be computed before an elif or a while."""
        found = [v.name for v in self.known if (v.dtype, v.shape) == ("int32", ())]
        return f"{self.random.choice(found)} > {self.random.randint(-2, 5)}" if found else "tl.program_id(0) > 0"

    def loop(self) -> None:
        self.names += 1
        name = f"j{self.names}"
        trips = self.random.choice((0, 1, 2, 4))
        kind = self.random.choice(("range", "tl.range", "tl.static_range", "while", "down"))
        if kind == "while":
            self.line(f"{name} = tl.program_id(0) * 0")
            extra = f" and {self.inline_condition()}" if self.chance(0.3) else ""
            self.line(f"while {name} < {trips}{extra}:")
            self.depth += 1
            self.line(f"{name} += 1")
            self.depth -= 1
        elif kind == "down":
            self.line(f"for {name} in range({trips} + tl.program_id(0), 0, -1):")
        elif kind == "tl.range":
            attributes = self.random.choice(("", ", num_stages=3", ", loop_unroll_factor=2", ", flatten=True"))
            self.line(f"for {name} in tl.range(0, {trips} + tl.program_id(0), 1{attributes}):")
        else:
            self.line(f"for {name} in {kind}({trips}):")
        counter = Variable(name, "int32", ())
        if kind in ("while", "down", "tl.range"):
            self.known.append(counter)
            self.fixed.add(name)
        self.loops.append(kind)
        start = len(self.lines)
        self.inner(1, 4)
        self.loops.pop()
        if counter in self.known:
            self.known.remove(counter)
        assert len(self.lines) > start

    def leave(self) -> None:
        """break or continue, under a condition."""
        if not self.loops or self.loops[-1] == "tl.static_range":
            return self.assign()
        self.line(f"if {self.condition()}:")
        before = list(self.known)
        self.depth += 1
        self.assign()
        self.known = [v for v in self.known if v in before or v.name in self.program.numbers]
        self.line(self.random.choice(("break", "continue")))
        self.depth -= 1
        return None

    def compile_time(self) -> None:
        self.line(f"if N {self.random.choice(('>', '<', '=='))} {self.random.choice((4, 8, 16))}:")
        self.inner()

    def update(self) -> None:
        """An atomic whose old value nobody looks at."""
        x = self.some(self.random.choice(("int32", "uint32", "int64")))
        name = self.array(x.dtype, 16)
        at = f"({x.name} & 15).to(tl.int32)"
        kind = self.random.choice(("add", "max", "xor"))
        mask = f", mask={x.name} > 2" if self.chance(0.3) else ""
        self.line(f'tl.atomic_{kind}({name} + {at}, {x.name}{mask}, sem="relaxed")')

    def store_early(self) -> None:
        x = self.some()
        name = self.array(x.dtype, int(np.prod(x.shape, dtype=int)) * self.program.grid)
        size = int(np.prod(x.shape, dtype=int))
        self.line(f"tl.store({name} + tl.program_id(0) * {size} + {self.index_of(x.shape)}, {x.name})")

    def index_of(self, shape: tuple[int, ...]) -> str:
        if len(shape) < 3:
            return self.index(shape)
        return f"tl.reshape(tl.arange(0, {int(np.prod(shape))}), {', '.join(map(str, shape))})"

    def statement(self) -> None:
        options = [(self.assign, 10), (self.augment, 2), (self.swap, 1), (self.update, 1), (self.store_early, 1)]
        if self.loops:
            options.append((self.leave, 3))
        if self.depth < 4:
            options += [(self.branch, 2), (self.loop, 2), (self.compile_time, 1)]
        self.random.choices(*zip(*options, strict=True))[0]()

    def run(self, statements: int) -> Program:
        for _ in range(3):
            self.make(self.random.choice(WORDS), self.random.choice(self.shapes))
        self.new("int32", (), "tl.program_id(0)")
        for _ in range(statements):
            self.statement()
        if self.chance(0.2):
            self.line(f"if {self.condition()}:")
            before = list(self.known)
            self.depth += 1
            self.store_early()
            self.line("return")
            self.depth -= 1
            self.known = before
        for v in self.known[-10:]:
            size = int(np.prod(v.shape, dtype=int))
            name = self.array(v.dtype, size * self.program.grid)
            self.line(f"tl.store({name} + tl.program_id(0) * {size} + {self.index_of(v.shape)}, {v.name})")
        parameters = ", ".join([*self.program.arrays, *self.program.numbers, "N: tl.constexpr"])
        self.program.text = f"{HELPERS}@triton.jit\ndef kernel({parameters}):\n" + "\n".join(self.lines) + "\n"
        return self.program


def program(seed: int, statements: int = 12) -> Program:
    return Writer(seed).run(statements)


def by_model(made: Program) -> dict[str, np.ndarray]:
    """What Python makes of the text."""

    class Core:
        @staticmethod
        def _aggregate(cls):
            return cls

    class Triton:
        class language:
            core = Core

        @staticmethod
        def jit(fn=None, **options):
            return fn if fn is not None else (lambda function: function)

    MODEL.tensor = V  # type: ignore[attr-defined]
    MODEL.int8 = np.dtype("int8")  # type: ignore[attr-defined]
    names: dict = {"triton": Triton, "tl": MODEL, "range": model_range}
    exec(compile(made.text, f"<seed {made.seed}>", "exec"), names)
    arrays = {name: data.copy() for name, data in made.arrays.items()}
    numbers = {name: V(np.int32(value)) for name, value in made.numbers.items()}
    MODEL.grid = made.grid
    for pid in range(made.grid):
        MODEL.pid = pid
        names["kernel"](**{n: Pointer(a) for n, a in arrays.items()}, **numbers, N=8)
    return arrays


def load(made: Program, folder: Path) -> ModuleType:
    path = folder / f"program_{made.seed}.py"
    path.write_text(HEAD + made.text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_triton(made: Program, module: ModuleType, interpret: bool) -> dict[str, np.ndarray]:
    from triton import knobs

    arrays = {name: data.copy() for name, data in made.arrays.items()}
    with knobs.runtime.scope():
        knobs.runtime.interpret = interpret
        module.kernel[(made.grid,)](**arrays, **made.numbers, N=8, enable_fp_fusion=False)
    return arrays


def difference(seed: int, statements: int = 12) -> str | None:
    """How the runs of a seed's program differ, with its text."""
    made = program(seed, statements)
    kernel = made.text[made.text.index("@triton.jit\ndef kernel") :]
    expected = by_model(made)
    with tempfile.TemporaryDirectory() as folder:
        module = load(made, Path(folder))
        for interpret in (True, False):
            who = "interpreter" if interpret else "cpu"
            try:
                found = by_triton(made, module, interpret)
            except Exception as error:
                return f"seed {seed}: {who}: {type(error).__name__}: {error}\n{kernel}{made.numbers}"
            for name, data in expected.items():
                if not np.array_equal(data, found[name]):
                    at = int(np.flatnonzero(data != found[name])[0])
                    what = f"{name}[{at}] is {found[name][at]!r}, the model has {data[at]!r}"
                    return f"seed {seed}: {who}: {what}\n{kernel}{made.numbers}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=int, default=3, help="stop after this many")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0: one for each processor")
    options = parser.parse_args()
    found, start = 0, time.perf_counter()
    seeds = range(options.seed, options.seed + options.count)
    for text in failures(difference, seeds, options.jobs or usable_cpus(), options.failures):
        print(text, flush=True)
        found += 1
    print(f"{options.count} programs in {time.perf_counter() - start:.1f} s, {found} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
