"""Random tile IR kernels that are valid, stay in their memory and have one defined result (see ``exactness.py``)."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from actions import Actions
from exactness import EXACT, INEXACT, SIGN_OF_ZERO, is_float, result_level

from triton.ir.builder import Builder
from triton.ir.core import Block, Function, Module, Value
from triton.ir.types import (
    SCALARS,
    PointerType,
    ScalarType,
    TensorType,
    Type,
    element_of,
    i1,
    i32,
    shape_of,
    with_shape,
)

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 64, 100, 127, 128, 257)
LARGEST = 2048
INTEGERS = tuple(t for t in SCALARS.values() if t.is_integer and not t.is_bool)
FLOATS = tuple(t for t in SCALARS.values() if t.is_float)
WIDE_FLOATS = tuple(SCALARS[n] for n in ("f32", "f64", "f16", "bf16"))
COMMON = (
    SCALARS["f32"],
    SCALARS["i32"],
    SCALARS["f16"],
    SCALARS["i64"],
    i1,
    SCALARS["bf16"],
    SCALARS["u8"],
    SCALARS["f64"],
)


@dataclass
class Buffer:
    """Memory behind one pointer argument: ``count`` elements, for each program where programs write.

    ``role``: input (only read), output (written once), scratch (only atomics), exact (read and written, but exact
    values only).
    """

    name: str
    element: ScalarType
    count: int
    role: str
    arg: Value


@dataclass
class Kernel:
    module: Module
    seed: int
    grid: tuple[int, int, int] = (1, 1, 1)
    buffers: list[Buffer] = field(default_factory=list)
    scalars: list[tuple[str, ScalarType, float | int | bool]] = field(default_factory=list)


class Generator(Actions):
    """``steps`` is roughly how many actions the kernel's body takes."""

    def __init__(self, seed: int, steps: int = 14) -> None:
        self.random = random.Random(seed)
        self.module = Module({"num_warps": 4})
        self.function = self.module.add(Function("kernel", attrs={"kernel": True}))
        self.b = Builder(self.function.body)
        self.kernel = Kernel(self.module, seed)
        self.levels: dict[Value, int] = {}
        self.scopes: list[list[Value]] = [[]]
        self.steps = steps
        self.depth = 0
        self.in_function = False
        self.in_map = False
        self.stores = 0
        self.shapes = [self.new_shape() for _ in range(3)]
        self.kernel.grid = self.random.choice(((1, 1, 1), (1, 1, 1), (3, 1, 1), (2, 2, 1)))
        self.program = self.program_number() if self.kernel.grid != (1, 1, 1) else None

    def program_number(self) -> Value:
        """x + 2 (y + z) or the like: the running program's place in the grid's order."""
        b, (gx, gy, _) = self.b, self.kernel.grid
        x, y, z = (b.program_id(axis=k) for k in range(3))
        rows = b.add(y, b.mul(z, b.const(gy, i32)))
        number = b.add(x, b.mul(rows, b.const(gx, i32)))
        self.add(x, number)
        return number

    # Small choices

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def new_shape(self) -> tuple[int, ...]:
        while True:
            rank = self.random.choice((1, 1, 2, 2, 2, 3))
            shape = tuple(self.random.choice(SIZES) for _ in range(rank))
            if prod(shape) <= LARGEST:
                return shape

    def shape(self) -> tuple[int, ...]:
        roll = self.random.random()
        if roll < 0.1:
            return ()
        return self.random.choice(self.shapes) if roll < 0.85 else self.new_shape()

    def element(self) -> ScalarType:
        return self.random.choice(COMMON) if self.chance(0.6) else self.random.choice(list(SCALARS.values()))

    def add(self, *values: Value) -> Value:
        """Makes values known; their level comes from the op that gave them."""
        for value in values:
            op = value.op
            if value not in self.levels:
                level = result_level(op, self.levels) if op is not None else EXACT
                self.levels[value] = level if is_float(value) else EXACT
            if not isinstance(element_of(value.type), PointerType):
                self.scopes[-1].append(value)
        return values[0]

    def level(self, value: Value) -> int:
        return self.levels[value]

    def known(self, test) -> Value | None:
        found = [v for scope in self.scopes for v in scope if test(v)]
        return self.random.choice(found[-12:]) if found else None

    def some(self, test=lambda v: True, element=None, shape=None) -> Value:
        """A known value that passes ``test``, or a new one of ``element`` and ``shape``."""
        value = self.known(test)
        return (
            value
            if value is not None
            else self.make(with_shape(shape if shape is not None else self.shape(), element or self.element()))
        )

    def like(self, type: Type, highest: int = INEXACT) -> Value:
        """A value of this very type, known or new."""
        value = self.known(lambda v: v.type == type and self.level(v) <= highest) if self.chance(0.75) else None
        return value if value is not None else self.make(type)

    # Sources

    def make(self, type: Type) -> Value:
        """A new exact value of a type: loaded, constant, or a converted arange."""
        shape, element = shape_of(type), element_of(type)
        roll = self.random.random()
        if self.in_function or roll < 0.2 or (not shape and roll < 0.5):
            return self.add(self.constant(type))
        if roll < 0.3 and len(shape) == 1:
            start = self.random.randint(-5, 100)
            x = self.add(self.b.arange(start=start, end=start + shape[0]))
            return x if element == i32 else self.add(self.b.cast(x, types=[type]))
        if not shape and self.chance(0.5):
            return self.scalar_argument(element)
        return self.load(shape, element)

    def number(self, element: ScalarType):
        if element.is_bool:
            return self.chance(0.5)
        if element.is_float:
            return self.random.choice((0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 0.25, 1.5))
        low, high = (
            (-(1 << element.bits - 1), (1 << element.bits - 1) - 1)
            if element.is_signed
            else (0, (1 << element.bits) - 1)
        )
        value = self.random.choice((0, 1, 2, 3, 5, 7, 8, 16, -1, -2, low, high, self.random.randint(low, high)))
        return min(max(value, low), high)

    def constant(self, type: Type, value=None) -> Value:
        return self.b.const(self.number(element_of(type)) if value is None else value, type)

    def argument(self, type: Type, name: str) -> Value:
        body = self.function.body
        value = Value(type, body, len(body.args), name)
        body.args.append(value)
        self.function.arg_attrs.append({})
        self.levels[value] = EXACT
        return value

    def scalar_argument(self, element: ScalarType) -> Value:
        value = self.argument(element, f"s{len(self.kernel.scalars)}")
        self.kernel.scalars.append((value.name, element, self.number(element)))
        self.scopes[0].append(value)
        return value

    def buffer(self, element: ScalarType, count: int, role: str) -> Buffer:
        if role == "input" and self.chance(0.5):
            for buffer in self.kernel.buffers:
                if buffer.role == role and buffer.element == element and buffer.count >= count:
                    return buffer
        name = f"{role}{len(self.kernel.buffers)}"
        arg = self.argument(PointerType(element), name)
        if self.chance(0.7):
            self.function.arg_attrs[-1]["divisible"] = 16
        extra = 0 if role == "output" else self.random.choice((0, 0, 1, 5))
        buffer = Buffer(name, element, count + extra, role, arg)
        self.kernel.buffers.append(buffer)
        return buffer

    def offsets(self, shape: tuple[int, ...], distinct: bool) -> tuple[Value, int]:
        """An i32 (or i64) index tensor, or a scalar, and one more than its largest entry."""
        index = i32 if self.chance(0.8) else SCALARS["i64"]
        base = self.random.choice((0, 0, 0, 1, 3, 16))
        if not shape:
            return self.constant(index, base), base + 1
        order = list(range(len(shape)))
        if self.chance(0.25):
            self.random.shuffle(order)
        strides, step = [0] * len(shape), self.random.choice((1, 1, 1, 1, 2))
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        if not distinct and self.chance(0.2):
            strides[self.random.randrange(len(shape))] = 0
        total, b = None, self.b
        for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)):
            x = b.arange(start=0, end=n)
            if index != i32:
                x = b.cast(x, types=[TensorType((n,), index)])
            for _ in range(axis):
                x = b.expand_dims(x, axis=0)
            for k in range(len(shape) - axis - 1):
                x = b.expand_dims(x, axis=axis + 1 + k)
            x = b.mul(x, b.const(stride, x.type)) if stride != 1 else x
            x = b.broadcast(x, types=[TensorType(shape, index)]) if x.type != TensorType(shape, index) else x
            total = x if total is None else b.add(total, x)
        if base:
            total = b.add(total, b.const(base, total.type))
        return total, base + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1

    def pointers(self, buffer: Buffer, offsets: Value) -> Value:
        shape = shape_of(offsets.type)
        pointer = buffer.arg
        if buffer.role != "input" and self.program is not None:
            pointer = self.b.addptr(pointer, self.b.mul(self.program, self.b.const(buffer.count, i32)))
        if shape:
            pointer = self.b.splat(pointer, types=[TensorType(shape, pointer.type)])
        return self.b.addptr(pointer, offsets)

    def mask(self, offsets: Value, need: int) -> tuple[Value | None, int]:
        """A mask and how many elements the buffer must have."""
        roll, shape = self.random.random(), shape_of(offsets.type)
        if roll < 0.4:
            return None, need
        if roll < 0.75:
            limit = self.random.choice((need, need - 1, need // 2, 1, 0))
            index = element_of(offsets.type)
            bound = (
                self.scalar_argument(index)
                if not self.in_function and self.chance(0.5)
                else self.constant(index, limit)
            )
            if bound.op is None:
                self.kernel.scalars[-1] = (*self.kernel.scalars[-1][:2], limit)
                self.scopes[0].remove(bound)  # used as a bound only: its value decides what is in range
            if shape:
                bound = self.b.splat(bound, types=[offsets.type])
            return self.b.cmp(offsets, bound, pred="lt"), max(limit, 1)
        return self.like(with_shape(shape, i1)), need

    def load(self, shape: tuple[int, ...], element: ScalarType) -> Value:
        offsets, need = self.offsets(shape, distinct=False)
        mask, count = self.mask(offsets, need)
        buffer = self.buffer(element, count, "input")
        other = None
        if mask is not None and self.chance(0.6):
            other = self.constant(with_shape(shape, element))
        return self.add(self.b.load(self.pointers(buffer, offsets), mask, other))

    # Actions

    def binary(self) -> None:
        x = self.some(lambda v: True)
        element = element_of(x.type)
        kinds = ["add", "sub", "mul", "min", "max", "add", "mul"]
        if element.is_integer:
            kinds += ["div", "rem", "mulhi", "and", "or", "xor", "shl", "shr"]
        y = self.like(x.type)
        if element.is_float and self.level(y) == EXACT:
            kinds.append("div")
            if self.level(x) == EXACT:
                kinds.append("rem")
        kind = self.random.choice(kinds)
        attrs = {"propagate_nan": True} if kind in ("min", "max") and element.is_float and self.chance(0.3) else {}
        if kind in ("shl", "shr") and self.chance(0.7):
            y = self.constant(x.type, self.random.randrange(element.bits))
        self.add(getattr(self.b, kind + "_" if kind in ("and", "or") else kind)(x, y, **attrs))

    def compare(self) -> None:
        x = self.some(lambda v: self.level(v) <= SIGN_OF_ZERO)
        y = self.like(x.type, SIGN_OF_ZERO)
        self.add(self.b.cmp(x, y, pred=self.random.choice(("eq", "ne", "lt", "le", "gt", "ge"))))

    def select(self) -> None:
        x = self.some()
        condition = self.like(i1 if self.chance(0.2) else with_shape(shape_of(x.type), i1))
        self.add(self.b.select(condition, x, self.like(x.type)))

    def cast(self) -> None:
        x = self.some()
        source, target = element_of(x.type), self.element()
        if self.level(x) == INEXACT and not target.is_float:
            target = self.random.choice(WIDE_FLOATS)
        if source == target or (self.level(x) and target.is_fp8):
            return
        rounding = {"rounding": "rtz"} if target.is_float and self.chance(0.25) else {}
        self.add(self.b.cast(x, types=[with_shape(shape_of(x.type), target)], **rounding))

    def bitcast(self) -> None:
        x = self.some(lambda v: self.level(v) == EXACT and not element_of(v.type).is_float)
        source = element_of(x.type)
        targets = [t for t in SCALARS.values() if t.bits == source.bits and t != source]
        if targets and self.level(x) == EXACT and not source.is_float:
            self.add(self.b.bitcast(x, types=[with_shape(shape_of(x.type), self.random.choice(targets))]))

    def unary(self) -> None:
        wide = self.chance(0.6)
        x = self.some(lambda v: element_of(v.type) in WIDE_FLOATS if wide else True)
        element = element_of(x.type)
        kinds = ["neg", "abs"]
        if element in WIDE_FLOATS:
            kinds += ["exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf"]
            kinds += ["floor", "ceil", "sqrt_rn"] * 2 if self.level(x) == EXACT else []
        kind = self.random.choice(kinds)
        if kind in ("rsqrt", "log", "log2") and self.level(x) == SIGN_OF_ZERO:
            kind = "abs"
        if kind in ("exp", "exp2", "sin", "cos") and self.level(x) == INEXACT:
            kind = "neg"  # a chain of steep functions would leave nothing to compare
        self.add(getattr(self.b, kind)(x))

    def fma(self) -> None:
        x = self.some(lambda v: element_of(v.type) in WIDE_FLOATS, element=self.random.choice(WIDE_FLOATS))
        self.add(self.b.fma(x, self.like(x.type), self.like(x.type)))

    def outer(self) -> None:
        """Two vectors broadcast against each other."""
        shape = self.random.choice([s for s in self.shapes if len(s) == 2] or [(5, 8)])
        element = self.element()
        row, column = self.like(TensorType(shape[1:], element)), self.like(TensorType(shape[:1], element))
        b = self.b
        x = b.broadcast(b.expand_dims(row, axis=0), types=[TensorType(shape, element)])
        y = b.broadcast(b.expand_dims(column, axis=1), types=[TensorType(shape, element)])
        self.levels[x], self.levels[y] = self.level(row), self.level(column)
        self.add(getattr(b, self.random.choice(("add", "mul", "sub", "max")))(x, y))

    def splat(self) -> None:
        x = self.some(lambda v: not shape_of(v.type), shape=())
        self.add(self.b.splat(x, types=[TensorType(self.random.choice(self.shapes), element_of(x.type))]))

    def tensor(self, rank: int = 1) -> Value:
        return self.some(
            lambda v: len(shape_of(v.type)) >= rank,
            shape=self.random.choice([s for s in self.shapes if len(s) >= rank] or [(6, 4, 3)]),
        )

    def reshape(self) -> None:
        x = self.tensor()
        sizes = list(shape_of(x.type))
        roll = self.random.random()
        if roll < 0.3:
            new = [prod(sizes)]
        elif roll < 0.6 and prod(sizes) % 2 == 0:
            new = [prod(sizes) // 2, 2] if self.chance(0.5) else [2, prod(sizes) // 2]
        else:
            self.random.shuffle(sizes)
            new = sizes
        self.add(self.b.reshape(x, types=[TensorType(tuple(new), element_of(x.type))]))

    def rearrange(self) -> None:
        x = self.tensor()
        shape, b = shape_of(x.type), self.b
        axis = self.random.randrange(len(shape))
        kind = self.random.choice(("permute", "flip", "expand", "broadcast", "join", "cat", "split"))
        if kind == "permute":
            order = list(range(len(shape)))
            self.random.shuffle(order)
            self.add(b.permute(x, order=tuple(order)))
        elif kind == "flip":
            self.add(b.flip(x, axis=axis))
        elif kind == "expand" and len(shape) < 4:
            self.add(b.expand_dims(x, axis=axis))
        elif kind == "broadcast" and 1 in shape:
            new = tuple(self.random.choice((1, 3, 4, 8)) if n == 1 else n for n in shape)
            if prod(new) <= LARGEST and new != shape:
                self.add(b.broadcast(x, types=[TensorType(new, element_of(x.type))]))
        elif kind == "join" and prod(shape) * 2 <= LARGEST and len(shape) < 4:
            self.add(b.join(x, self.like(x.type)))
        elif kind == "cat" and prod(shape) * 2 <= LARGEST:
            self.add(b.cat(x, self.like(x.type), axis=axis))
        elif kind == "split" and prod(shape) % 2 == 0 and prod(shape) > 2:
            pairs = b.reshape(x, types=[TensorType((prod(shape) // 2, 2), element_of(x.type))])
            self.levels[pairs] = self.level(x)
            self.add(*b.split(pairs))

    def gather(self) -> None:
        x = self.tensor()
        shape = shape_of(x.type)
        axis = self.random.randrange(len(shape))
        index_shape = list(shape)
        index_shape[axis] = self.random.choice((shape[axis], 1, 3, 8))
        if prod(index_shape) > LARGEST:
            return
        element = self.random.choice((i32, SCALARS["i64"], SCALARS["u32"]))
        raw = self.like(TensorType(tuple(index_shape), SCALARS["u32"]))
        index = self.b.rem(raw, self.b.const(shape[axis], raw.type))
        if element != SCALARS["u32"]:
            index = self.b.cast(index, types=[TensorType(tuple(index_shape), element)])
        result = self.b.gather(x, index, axis=axis)
        self.levels[result] = self.level(x)
        self.add(result)

    def sort(self) -> None:
        x = self.some(
            lambda v: shape_of(v.type) != () and self.level(v) <= SIGN_OF_ZERO, shape=self.random.choice(self.shapes)
        )
        if shape_of(x.type):
            axis = self.random.randrange(len(shape_of(x.type)))
            self.add(self.b.sort(x, axis=axis, descending=self.chance(0.5)))

    def histogram(self) -> None:
        x = self.some(lambda v: len(shape_of(v.type)) == 1 and element_of(v.type) in INTEGERS, element=i32, shape=(64,))
        bins = self.random.choice((1, 4, 16, 33))
        mask = self.like(TensorType(shape_of(x.type), i1)) if self.chance(0.4) else None
        self.add(self.b.histogram(x, mask, bins=bins, types=[TensorType((bins,), i32)]))

    def combine(self, element: ScalarType) -> Block:
        region = Block([element, element])
        kinds = ["add", "max", "min", "add"]
        if element.is_integer:
            kinds += ["and", "or", "xor", "mul"]
        if element.is_fp8:
            kinds = ["max", "min"]
        kind = self.random.choice(kinds)
        with self.b.inside(region):
            method = getattr(self.b, kind + "_" if kind in ("and", "or") else kind)
            self.b.yield_(method(*region.args))
        return region

    def reduce(self) -> None:
        x = self.tensor()
        axis = self.random.randrange(len(shape_of(x.type)))
        if self.chance(0.25) and self.level(x) <= SIGN_OF_ZERO:
            return self.argmax(x, axis)
        region = self.combine(element_of(x.type))
        if self.chance(0.3) and shape_of(x.type)[axis] <= 64:
            self.add(self.b.scan(x, axis=axis, reverse=self.chance(0.4), regions=[region]))
        else:
            self.add(self.b.reduce(x, axis=axis, regions=[region]))
        return None

    def argmax(self, x: Value, axis: int) -> None:
        """The largest value and its lowest index; NaN is skipped by making it the smallest."""
        b, shape, element = self.b, shape_of(x.type), element_of(x.type)
        if element.is_float:
            x = b.select(b.cmp(x, x, pred="eq"), x, b.const(-1.0, x.type))
            self.levels[x] = SIGN_OF_ZERO
        index = b.arange(start=0, end=shape[axis])
        for k in range(len(shape)):
            if k != axis:
                index = b.expand_dims(index, axis=k)
        if shape_of(index.type) != shape:
            index = b.broadcast(index, types=[TensorType(shape, i32)])
        region = Block([element, i32, element, i32])
        v1, i1_, v2, i2 = region.args
        with b.inside(region):
            better = b.cmp(v1, v2, pred="gt")
            first = b.and_(b.cmp(v1, v2, pred="eq"), b.cmp(i1_, i2, pred="lt"))
            take = b.or_(better, first)
            b.yield_(b.select(take, v1, v2), b.select(take, i1_, i2))
        value, at = b.reduce(x, index, axis=axis, regions=[region])
        self.add(value, at)

    def dot(self) -> None:
        m, n, k = (self.random.choice((1, 2, 3, 4, 7, 8, 16, 17, 20)) for _ in range(3))
        batch = (self.random.choice((1, 2, 3)),) if self.chance(0.2) else ()
        f32, f16, f64, i8 = SCALARS["f32"], SCALARS["f16"], SCALARS["f64"], SCALARS["i8"]
        left, right, out = self.random.choice((
            (f32, f32, f32), (f16, f16, f32), (SCALARS["bf16"], SCALARS["bf16"], f32), (f64, f64, f64), (i8, i8, i32),
            (f16, f16, f16), (SCALARS["u8"], SCALARS["u8"], i32), (SCALARS["f8e4m3"], SCALARS["f8e4m3"], f32),
            (SCALARS["f8e5m2"], SCALARS["f8e4m3"], f32),
        ))  # fmt: skip
        a, b = self.like(TensorType((*batch, m, k), left)), self.like(TensorType((*batch, k, n), right))
        acc = self.like(TensorType((*batch, m, n), out))
        self.add(self.b.dot(a, b, acc))

    @contextmanager
    def scope(self, block: Block):
        self.scopes.append([])
        self.depth += 1
        with self.b.inside(block):
            yield
        self.depth -= 1
        self.scopes.pop()

    def inner(self, types: list[Type], low: int = 1, high: int = 4) -> list[Value]:
        """Some actions in the present scope, then one value of each type."""
        for _ in range(self.random.randint(low, high)):
            self.act()
        values = []
        for type in types:
            value = self.known(lambda v, t=type: v.type == t)
            values.append(value if value is not None else self.make(type))
        return values

    def carried(self) -> list[Value]:
        return [self.some() for _ in range(self.random.choice((1, 1, 2, 3)))]

    def outcome(self, results: list[Value]) -> None:
        for value in results:
            self.levels[value] = INEXACT if is_float(value) else EXACT
        if results:
            self.add(*results)

    def for_loop(self) -> None:
        inits = self.carried()
        types = [v.type for v in inits]
        counter = self.random.choice((i32, i32, SCALARS["i64"], SCALARS["u32"]))
        low, trips, step = (
            self.random.randint(0, 5),
            self.random.choice((0, 1, 2, 3, 5)),
            self.random.choice((1, 1, 2, 3)),
        )
        bounds = [low, low + trips * step - self.random.randrange(step), step]
        if counter.is_signed and self.chance(0.2):
            bounds = [bounds[1], low, -step]
        values = []
        for number in bounds:
            if self.chance(0.3) and not self.in_function:
                value = self.scalar_argument(counter)
                self.scopes[0].remove(value)
                self.kernel.scalars[-1] = (value.name, counter, max(number, 0) if counter.kind == "uint" else number)
            else:
                value = self.constant(counter, max(number, 0) if counter.kind == "uint" else number)
            values.append(value)
        body = Block([counter, *types])
        with self.scope(body):
            self.outcome(body.args)
            self.b.yield_(*self.inner(types))
        op = self.b.emit("for", [*values, *inits], types, self.loop_attributes(), [body])
        self.outcome(op.results)

    def loop_attributes(self) -> dict:
        """What ``tl.range`` takes: it tunes code and changes no result."""
        attrs = {}
        if self.chance(0.3):
            attrs["num_stages"] = self.random.choice((1, 2, 3, 4))
        if self.chance(0.2):
            attrs["unroll"] = self.random.choice((1, 2, 4))
        for name in ("flatten", "warp_specialize", "disallow_acc_multi_buffer", "disable_licm"):
            if self.chance(0.1):
                attrs[name] = True
        return attrs

    def while_loop(self) -> None:
        inits = self.carried()
        types = [v.type for v in inits]
        before, after = Block([i32, *types]), Block([i32, *types])
        with self.scope(before):
            self.outcome(before.args)
            limit = self.b.const(self.random.choice((0, 1, 3)), i32)
            self.b.condition(self.b.cmp(before.args[0], limit, pred="lt"), *before.args)
        with self.scope(after):
            self.outcome(after.args)
            values = self.inner(types)
            self.b.yield_(self.b.add(after.args[0], self.b.const(1, i32)), *values)
        start = self.b.const(0, i32)
        op = self.b.emit("while", [start, *inits], [i32, *types], {}, [before, after])
        self.outcome(op.results)

    def if_(self) -> None:
        types = [v.type for v in self.carried()] if self.chance(0.9) else []
        condition = self.like(i1)
        branches = [Block(), Block()]
        for branch in branches:
            with self.scope(branch):
                self.b.yield_(*self.inner(types, low=0, high=3))
        op = self.b.emit("if", [condition], types, {}, branches)
        for k, result in enumerate(op.results):
            self.levels[result] = max(self.level(b.terminator.operands[k]) for b in branches)
        if op.results:
            self.add(*op.results)

    def map(self) -> None:
        x = self.tensor()
        body = Block([element_of(x.type)])
        with self.scope(body):
            outer, self.shapes, self.in_function, self.in_map = (self.scopes, self.shapes), [()], True, True
            scalars = [v for scope in self.scopes for v in scope if not shape_of(v.type)]
            self.scopes = [scalars]
            self.outcome(body.args)
            (value,) = self.inner([element_of(x.type)], 1, 3)
            self.b.yield_(value)
            (self.scopes, self.shapes), self.in_function, self.in_map = outer, False, False
        op = self.b.emit("map", [x], [x.type], {}, [body])
        self.outcome(op.results)

    def store(self) -> None:
        """To an output of its own."""
        x = self.some()
        offsets, need = self.offsets(shape_of(x.type), distinct=True)
        mask, count = self.mask(offsets, need)
        self.b.store(self.pointers(self.buffer(element_of(x.type), count, "output"), offsets), x, mask)

    def shared_buffer(self, element: ScalarType, need: int) -> Buffer:
        """A buffer that is read and written in many places of the kernel."""
        for buffer in self.kernel.buffers:
            if buffer.role == "exact" and buffer.element == element and buffer.count >= need and self.chance(0.8):
                return buffer
        return self.buffer(element, max(need, self.random.choice((1, 300, 700))), "exact")

    def read_shared(self) -> None:
        element = self.random.choice(COMMON[:4]) if self.chance(0.5) else self.shared_element()
        shape = self.shape()
        offsets, need = self.offsets(shape, distinct=False)
        buffer = self.shared_buffer(element, need)
        mask = self.like(with_shape(shape, i1)) if self.chance(0.2) else None
        value = self.b.load(self.pointers(buffer, offsets), mask)
        self.levels[value] = EXACT
        self.add(value)

    def shared_element(self) -> ScalarType:
        elements = [b.element for b in self.kernel.buffers if b.role == "exact"]
        return self.random.choice(elements) if elements else i32

    def write_shared(self) -> None:
        element = self.shared_element()
        x = self.some(lambda v: element_of(v.type) == element and self.level(v) == EXACT, element=element)
        if self.level(x) != EXACT or element_of(x.type) != element:
            return
        offsets, need = self.offsets(shape_of(x.type), distinct=True)
        mask = self.like(with_shape(shape_of(x.type), i1)) if self.chance(0.3) else None
        self.b.store(self.pointers(self.shared_buffer(element, need), offsets), x, mask)

    def read_scattered(self) -> None:
        """A load at places that are themselves data."""
        element, shape = self.element(), self.shape()
        buffer = self.buffer(element, self.random.choice((1, 7, 100, 256)), "input")
        raw = self.like(with_shape(shape, SCALARS["u32"]))
        at = self.b.rem(raw, self.b.const(buffer.count, raw.type))
        if self.chance(0.7):
            at = self.b.cast(at, types=[with_shape(shape, self.random.choice((i32, SCALARS["i64"])))])
        mask = self.like(with_shape(shape, i1)) if self.chance(0.3) else None
        self.add(self.b.load(self.pointers(buffer, at), mask))

    def pointer_loop(self) -> None:
        """Pointers carried around a loop, as in a sum over the rows of a matrix or a product over K."""
        b = self.b
        trips, element = self.random.choice((0, 1, 2, 3, 5)), self.random.choice((i32, SCALARS["f32"], SCALARS["f16"]))
        if self.chance(0.4):
            m, n, k = (self.random.choice((1, 3, 4, 8, 16, 17)) for _ in range(3))
            element = self.random.choice((SCALARS["f32"], SCALARS["f16"], SCALARS["i8"]))
            acc_type = TensorType((m, n), i32 if element.is_integer else SCALARS["f32"])
            tiles = [((m, k), k), ((k, n), k * n)]
        else:
            shape = self.random.choice(self.shapes)
            acc_type, tiles = TensorType(shape, element), [(shape, prod(shape))]
        starts, steps = [], []
        for shape, step in tiles:
            offsets, need = self.offsets(shape, distinct=False)
            starts.append(self.pointers(self.buffer(element, need + step * trips, "input"), offsets))
            steps.append(step)
        acc = self.like(acc_type)
        body = Block([i32, acc_type, *[p.type for p in starts]])
        with self.scope(body):
            counter, sum_, *pointers = body.args
            self.levels[sum_] = INEXACT if is_float(sum_) else EXACT
            self.levels[counter] = EXACT
            loaded = [self.add(b.load(p)) for p in pointers]
            self.add(counter, sum_)
            if len(loaded) == 2:
                next_sum = b.dot(*loaded, sum_)
            else:
                next_sum = getattr(b, self.random.choice(("add", "max", "sub")))(sum_, loaded[0])
            moved = [
                b.addptr(p, b.const(d, with_shape(shape_of(p.type), i32))) for p, d in zip(pointers, steps, strict=True)
            ]
            b.yield_(next_sum, *moved)
        bounds = [b.const(v, i32) for v in (0, trips, 1)]
        types = [v.type for v in (acc, *starts)]
        op = b.emit("for", [*bounds, acc, *starts], types, self.loop_attributes(), [body])
        self.outcome(op.results[:1])

    def atomic(self) -> None:
        x = self.some(lambda v: element_of(v.type).bits >= 32 and not element_of(v.type).is_float, element=i32)
        if element_of(x.type).bits < 32 or element_of(x.type).is_float:
            return
        offsets, need = self.offsets(shape_of(x.type), distinct=True)
        mask, _ = self.mask(offsets, need)
        buffer = self.buffer(element_of(x.type), need, "scratch")
        kind = self.random.choice(("add", "max", "min", "and", "or", "xor", "xchg"))
        self.add(self.b.atomic_rmw(self.pointers(buffer, offsets), x, mask, op=kind))
        self.stores += 1

    def call(self) -> None:
        """A function of its own, made on the spot and called once or twice."""
        args = self.carried()
        outer = (self.b, self.scopes, self.in_function)
        function = self.module.add(
            Function(f"helper{len(self.module.functions)}", [v.type for v in args], attrs={"noinline": True})
        )
        self.b, self.scopes, self.in_function = Builder(function.body), [[]], True
        self.outcome(function.args)
        self.depth += 1
        values = self.inner([self.random.choice(args).type], 1, 4)
        self.depth -= 1
        self.b.return_(*values)
        function.result_types = tuple(v.type for v in values)
        self.b, self.scopes, self.in_function = outer
        op = self.b.emit("call", args, list(function.result_types), {"callee": function.name})
        self.outcome(op.results)

    PURE = (
        (binary, 10), (compare, 3), (select, 3), (cast, 6), (bitcast, 1), (unary, 5), (fma, 1), (outer, 3), (splat, 1),
        (reshape, 2), (rearrange, 4), (gather, 1), (sort, 1), (histogram, 1), (reduce, 5), (dot, 2),
    )  # fmt: skip
    SCALAR = PURE[:7]
    NESTED = ((for_loop, 3), (while_loop, 1), (if_, 2), (map, 1), (call, 1), (pointer_loop, 2))
    EFFECTS = ((store, 2), (atomic, 1), (read_shared, 3), (write_shared, 3), (read_scattered, 1))

    def act(self) -> None:
        actions = list(self.SCALAR if self.in_map else self.PURE)
        if self.in_map and self.depth < 4:
            actions.append((Generator.if_, 1))
        else:
            actions += () if self.in_map else self.MORE_PURE
        if not self.in_function:
            actions += self.MORE_SCALAR
        if self.depth < 3 and not self.in_function:
            actions += self.NESTED
        if not self.in_function:
            actions += self.EFFECTS
            if not self.in_map:
                actions += self.MORE_EFFECTS
        functions, weights = zip(*actions, strict=True)
        self.random.choices(functions, weights)[0](self)

    def run(self) -> Kernel:
        for _ in range(self.steps):
            self.act()
        known = [v for v in self.scopes[0] if v.op is not None]
        self.random.shuffle(known)
        for value in known[:8]:
            offsets, need = self.offsets(shape_of(value.type), distinct=True)
            buffer = self.buffer(element_of(value.type), need, "output")
            self.b.store(self.pointers(buffer, offsets), value)
        self.b.return_()
        return self.kernel


def generate(seed: int, steps: int = 14) -> Kernel:
    """The kernel of a seed: the same one each time."""
    return Generator(seed, steps).run()
