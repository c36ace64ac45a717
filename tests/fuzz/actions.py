"""More actions of the kernel generator: descriptors, atomics of all kinds, combine functions of tuples, scaled
products, functions of the C library, hints and polls. Every one leaves one defined result, like those of
``generator.py``.
"""

from __future__ import annotations

from math import prod

from exactness import EXACT, INEXACT, SIGN_OF_ZERO

from triton.ir.core import Block, Value
from triton.ir.types import (
    SCALARS,
    DescriptorType,
    ScalarType,
    TensorType,
    element_of,
    i1,
    i32,
    shape_of,
    with_shape,
)

F32, F64, F16, BF16 = (SCALARS[n] for n in ("f32", "f64", "f16", "bf16"))
I64, U32, U8, I8 = (SCALARS[n] for n in ("i64", "u32", "u8", "i8"))
FLOAT8 = tuple(t for t in SCALARS.values() if t.is_fp8)
EXACT_LIBM = ("fabs", "trunc", "rint", "copysign", "fmin", "fmax", "fdim", "nearbyint", "isnan", "isinf", "signbit")
FREE_LIBM = ("tanh", "tan", "atan", "atan2", "expm1", "log1p", "cbrt", "hypot", "erfc", "asinh", "pow", "sinh")
TWO_ARGUMENTS = frozenset({"copysign", "fmin", "fmax", "fdim", "atan2", "hypot", "pow"})


class Actions:
    """Mixed into the generator."""

    # Products

    def any_dot(self) -> None:
        """Every pair of operand types that the language has, with every input precision."""
        m, n, k = (self.random.choice((1, 3, 4, 8, 15, 16, 32, 33)) for _ in range(3))
        integers = (I8, U8, SCALARS["i16"], SCALARS["u16"], i32)
        if self.chance(0.4):
            left = right = self.random.choice(integers)
            if left.bits == 8 and self.chance(0.4):
                right = I8 if left is U8 else U8
            out = self.random.choice((i32, U32, I64)) if left.bits < 32 else i32
            precision = "ieee"
        else:
            left, right = self.random.choice(FLOAT8), self.random.choice(FLOAT8)
            if self.chance(0.6):
                left = right = self.random.choice((F16, BF16, F32, F64))
            out = F64 if left is F64 else self.random.choice((F32, F32, F16)) if left.bits == 16 else F32
            precision = self.random.choice(("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"))
        a, b = self.like(TensorType((m, k), left)), self.like(TensorType((k, n), right))
        acc = self.like(TensorType((m, n), out))
        if m == k and k == n and left == right == out and self.chance(0.5):
            acc = a
        self.add(self.b.dot(a, b, acc, precision=precision))

    def scaled_dot(self) -> None:
        m, n, k = self.random.choice((1, 4, 16)), self.random.choice((2, 8, 16)), self.random.choice((32, 64))
        formats = {"e4m3": SCALARS["f8e4m3"], "e5m2": SCALARS["f8e5m2"], "e2m1": U8, "bf16": BF16, "fp16": F16}
        kinds = [self.random.choice(list(formats)) for _ in range(2)]
        if kinds.count("fp16") + kinds.count("bf16") == 2 and kinds[0] != kinds[1]:
            kinds[1] = kinds[0]
        a, b = (
            self.like(TensorType((rows, k // 2 if kind == "e2m1" else k), formats[kind]))
            for rows, kind in zip((m, n), kinds, strict=True)
        )
        b = self.b.permute(b, order=(1, 0))
        self.levels[b] = self.level(b.op.operands[0])
        scales, flags = [], []
        for rows, kind in zip((m, n), kinds, strict=True):
            flags.append(kind not in ("bf16", "fp16") or self.chance(0.5))
            if flags[-1]:
                raw = self.like(TensorType((rows, k // 32), U8))
                near = self.b.rem(raw, self.b.const(12, raw.type))  # 2^-6 to 2^5
                scales.append(self.b.add(near, self.b.const(121, raw.type)))
        attrs = {"a_format": kinds[0], "b_format": kinds[1], "a_scaled": flags[0], "b_scaled": flags[1]}
        self.add(self.b.dot_scaled(a, b, self.like(TensorType((m, n), F32)), *scales, **attrs))

    # Tuples

    def tuple_reduce(self) -> None:
        """Several values combined at once, by functions that are associative but do not commute."""
        b, shape = self.b, self.random.choice(self.shapes)
        axis = self.random.randrange(len(shape))
        element = self.random.choice((i32, I64, U32, U8, SCALARS["i16"]))
        kind = self.random.choice(("affine", "first", "last", "sum and max", "matrix"))
        count = {"affine": 2, "matrix": 4, "sum and max": 3}.get(kind, 2)
        elements = [element] * count
        if kind == "sum and max":
            elements = [self.random.choice((i32, I64, U32)) for _ in range(3)]
        operands = [self.like(TensorType(shape, e)) for e in elements]
        region = Block([*elements, *elements])
        x, y = region.args[:count], region.args[count:]
        with b.inside(region):
            if kind == "affine":  # x -> a x + b, the earlier one first
                out = [b.mul(x[0], y[0]), b.add(b.mul(x[1], y[0]), y[1])]
            elif kind == "matrix":
                out = [
                    b.add(b.mul(x[2 * i], y[j]), b.mul(x[2 * i + 1], y[2 + j])) for i in range(2) for j in range(2)
                ]
            elif kind == "sum and max":
                out = [b.add(x[0], y[0]), b.max(x[1], y[1]), b.xor(x[2], y[2])]
            else:  # the first or last non-zero key with its value
                zero = b.const(0, element)
                keep = b.cmp(x[0], zero, pred="ne") if kind == "first" else b.cmp(y[0], zero, pred="eq")
                out = [b.select(keep, p, q) for p, q in zip(x, y, strict=True)]
            b.yield_(*out)
        if self.chance(0.5):
            op = b.emit("scan", operands, None, {"axis": axis, "reverse": self.chance(0.5)}, [region])
        else:
            op = b.emit("reduce", operands, None, {"axis": axis}, [region])
        self.add(*op.results)

    def tuple_map(self) -> None:
        b, shape = self.b, self.random.choice(self.shapes)
        elements = [self.element(), self.random.choice((i32, I64, U8))]
        body = Block(elements)
        with b.inside(body):
            odd = b.cmp(b.and_(body.args[1], b.const(1, elements[1])), b.const(1, elements[1]), pred="eq")
            twice = b.add(body.args[1], body.args[1])
            b.yield_(body.args[0], b.select(odd, twice, body.args[1]))
        operands = [self.like(TensorType(shape, e)) for e in elements]
        op = b.emit("map", operands, [v.type for v in operands], {}, [body])
        self.levels[op.results[0]] = self.level(operands[0])
        self.levels[op.results[1]] = EXACT
        self.add(*op.results)

    # Functions

    def library(self) -> None:
        x = self.some(lambda v: element_of(v.type) in (F32, F64, F16), element=self.random.choice((F32, F64, F16)))
        if element_of(x.type) not in (F32, F64, F16):
            return
        exact = self.level(x) == EXACT
        name = self.random.choice(EXACT_LIBM if exact and self.chance(0.6) else FREE_LIBM)
        if self.level(x) == INEXACT and name in ("tan", "expm1", "pow", "sinh", "log1p"):
            name = "atan"
        if self.level(x) != EXACT and name in ("atan2", "pow"):
            name = "tanh"  # these tell zeros apart by their signs
        operands = [x]
        if name in TWO_ARGUMENTS:
            operands.append(self.like(x.type, EXACT))
            if self.level(operands[1]) != EXACT:
                return
        if name in ("copysign", "signbit"):  # a NaN's sign is free
            sign = operands[-1]
            operands[-1] = self.b.select(self.b.cmp(sign, sign, pred="eq"), sign, self.b.const(1.0, sign.type))
        predicate = name in ("isnan", "isinf", "signbit")
        type = with_shape(shape_of(x.type), i32) if predicate else x.type
        result = self.b.libm(*operands, function=name, types=[type])
        if name in ("fmin", "fmax", "fdim"):
            self.levels[result] = SIGN_OF_ZERO
        elif name in EXACT_LIBM:
            self.levels[result] = EXACT
        self.add(result)

    def promise(self) -> None:
        """Hints and assumptions that are true."""
        b = self.b
        x = self.some(lambda v: element_of(v.type) in (i32, I64, U32), element=i32)
        element, shape = element_of(x.type), shape_of(x.type)
        if element not in (i32, I64, U32):
            return
        if not shape:
            low = b.const(0, element)
            y = self.add(b.max(b.rem(x, b.const(100, element)), low))
            b.assume(b.cmp(y, low, pred="ge"))
            b.assume(b.cmp(y, b.const(100, element), pred="lt"))
            self.add(b.div(y, b.const(self.random.choice((1, 3, 7, 128)), element)))
            return
        divisor = self.random.choice((2, 4, 8, 16))
        y = b.mul(x, b.const(divisor, x.type))
        # Divisibility is of the first of each run of neighbours; every element alone is a multiple here.
        y = self.add(b.hint(y, divisible=(divisor,) * len(shape), contiguous=(1,) * len(shape)))
        self.add(b.rem(y, b.const(divisor, x.type)), b.div(y, b.const(divisor, x.type)))

    def sizes(self) -> None:
        self.add(self.b.num_programs(axis=self.random.randrange(3)))

    def true_assertion(self) -> None:
        x = self.some(lambda v: element_of(v.type).is_integer, element=i32)
        if element_of(x.type).is_integer:
            self.b.assert_(self.b.cmp(x, x, pred="le"), message="x <= x")

    # Descriptors

    def descriptor(self, role: str) -> tuple[Value, tuple[int, ...], tuple[int, ...], ScalarType]:
        """A descriptor of memory of its own, its sizes, its box and its element."""
        element = self.random.choice((F32, F16, i32, I64, U8, BF16, F64, SCALARS["f8e5m2"]))
        rank = self.random.choice((1, 2, 2, 3))
        box = (*(self.random.choice((1, 2, 4, 7, 16)) for _ in range(rank - 1)), self.random.choice((16, 32)))
        sizes = tuple(max(1, n + self.random.randint(-3, 5)) for n in box)
        strides, step = [1] * rank, -(-sizes[-1] // 16) * 16
        for axis in reversed(range(rank - 1)):
            strides[axis] = step
            step *= sizes[axis]
        need = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1
        buffer = self.buffer(element, need, role)
        base = buffer.arg
        if role != "input" and self.program is not None:
            base = self.b.addptr(base, self.b.mul(self.program, self.b.const(buffer.count, i32)))
        numbers = [self.b.const(n, i32) for n in sizes] + [self.b.const(s, I64) for s in strides]
        padding = "nan" if element.is_float and self.chance(0.4) else "zero"
        type = DescriptorType(TensorType(box, element))
        return self.b.make_desc(base, *numbers, padding=padding, types=[type]), sizes, box, element

    def corner(self, sizes: tuple[int, ...]) -> list[Value]:
        """Offsets of a box, beyond the edges too."""
        found = []
        for n in sizes:
            if self.program is not None and self.chance(0.2):
                found.append(self.program)
            else:
                found.append(self.b.const(self.random.choice((0, 0, 1, -1, -2, n - 1, n, n // 2)), i32))
        return found

    def read_box(self) -> None:
        descriptor, sizes, _, _ = self.descriptor("input")
        for _ in range(self.random.choice((1, 2))):
            value = self.b.desc_load(descriptor, *self.corner(sizes))
            self.levels[value] = EXACT
            self.add(value)

    def write_box(self) -> None:
        descriptor, sizes, box, element = self.descriptor("output")
        x = self.like(TensorType(box, element))
        self.b.desc_store(descriptor, x, *self.corner(sizes))

    def combine_box(self) -> None:
        descriptor, sizes, box, element = self.descriptor("output")
        if element not in (i32, I64, U32):
            return self.write_box()
        x = self.like(TensorType(box, element))
        kind = self.random.choice(("add", "min", "max", "and", "or", "xor"))
        self.b.desc_store(descriptor, x, *self.corner(sizes), op=kind)
        return None

    # Atomics

    def float_atomic(self) -> None:
        """One update of each place, so that there is one rounding."""
        element = self.random.choice((F32, F64, F16))
        x = self.like(with_shape(self.shape(), element), EXACT)
        if self.level(x) != EXACT:
            return
        kind = self.random.choice(("add", "xchg", "max", "min") if element is not F16 else ("add", "xchg"))
        offsets, need = self.offsets(shape_of(x.type), distinct=True)
        mask, _ = self.mask(offsets, need)
        old = self.b.atomic_rmw(
            self.pointers(self.buffer(element, need, "scratch"), offsets), x, mask, op=kind, **self.order()
        )
        self.levels[old] = INEXACT
        self.add(old)

    def order(self) -> dict:
        return {
            "sem": self.random.choice(("relaxed", "acquire", "release", "acq_rel")),
            "scope": self.random.choice(("cta", "gpu", "sys")),
        }

    def crowded_atomic(self) -> None:
        """Many updates of the same places, by operations that commute; the old values are not used."""
        element = self.random.choice((i32, I64, U32, SCALARS["u64"]))
        x = self.like(with_shape(self.shape(), element))
        shape = shape_of(x.type)
        places = self.random.choice((1, 3, 16))
        raw = self.like(with_shape(shape, U32))
        at = self.b.cast(self.b.rem(raw, self.b.const(places, raw.type)), types=[with_shape(shape, i32)])
        mask = self.like(with_shape(shape, i1)) if self.chance(0.4) else None
        kind = self.random.choice(("add", "max", "min", "and", "or", "xor"))
        buffer = self.buffer(element, places, "scratch")
        self.b.atomic_rmw(self.pointers(buffer, at), x, mask, op=kind, **self.order())

    def swap(self) -> None:
        element = self.random.choice((i32, I64, U32))
        shape = self.shape()
        new, expected = self.like(with_shape(shape, element)), self.like(with_shape(shape, element))
        offsets, need = self.offsets(shape, distinct=True)
        pointers = self.pointers(self.buffer(element, need, "scratch"), offsets)
        self.add(self.b.atomic_cas(pointers, expected, new, **self.order()))
        if self.chance(0.5):
            self.add(self.b.atomic_cas(pointers, new, expected))

    def poll(self) -> None:
        """Of a place that only this program writes: seen at once, or never in time."""
        element = self.random.choice((i32, I64, SCALARS["u16"], U32))
        value, expected = self.like(element), self.like(element)
        pointer = self.pointers(self.buffer(element, 1, "scratch"), self.constant(i32, 0))
        self.b.store(pointer, value)
        self.add(self.b.atomic_poll(pointer, value))
        timeout = self.b.const(self.random.choice((0, 0, -1, 1000)), I64)
        self.add(self.b.atomic_poll(pointer, expected, timeout, sem="relaxed", scope="sys"))

    def barrier(self) -> None:
        self.b.barrier()

    def big_gather(self) -> None:
        """Elements of one axis by an index that is the same along the others."""
        x = self.tensor(2)
        shape = shape_of(x.type)
        if len(shape) < 2 or prod(shape) > 1024:
            return
        axis = self.random.randrange(len(shape))
        index = self.b.arange(start=0, end=shape[axis])
        index = self.b.sub(self.b.const(shape[axis] - 1, index.type), index)
        for k in range(len(shape)):
            if k != axis:
                index = self.b.expand_dims(index, axis=k)
        index = self.b.broadcast(index, types=[TensorType(shape, i32)]) if shape_of(index.type) != shape else index
        result = self.b.gather(x, index, axis=axis)
        self.levels[result] = self.level(x)
        self.add(result)

    MORE_PURE = ((any_dot, 2), (scaled_dot, 1), (tuple_reduce, 3), (tuple_map, 1), (library, 4), (big_gather, 1))
    MORE_SCALAR = ((promise, 2), (sizes, 1))
    MORE_EFFECTS = (
        (read_box, 2), (write_box, 2), (combine_box, 1), (float_atomic, 1), (crowded_atomic, 1), (swap, 1), (poll, 1),
        (true_assertion, 1), (barrier, 1),
    )  # fmt: skip
