"""Axis facts and ranges: what they say of the patterns kernels use, and that it is true of random index arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from triton.analysis import axis, ranges
from triton.analysis.axis import AxisInfo
from triton.interpreter.machine import Machine
from triton.interpreter.memory import Memory
from triton.ir import Builder, Function, Module, Value, parse_module, print_module, verify
from triton.ir.types import PointerType, ScalarType, TensorType, element_of, i1, i32, i64, shape_of, u32

BIG = 1 << 30


def facts(
    body: str, args: str = "%p: ptr<f32> {divisible = 16}, %s: i32 {divisible = 16}, %n: i32"
) -> dict[str, AxisInfo]:
    module = parse_module(f"module {{\nfunc @f({args}) {{\n{body}\n return\n}}\n}}")
    verify(module)
    found = axis.analyse(module.functions["f"])
    return {v.name: info for v, info in found.items() if v.name}


TILE = """
  %pid = program_id {axis = 0} : i32
  %c64 = constant {value = 64} : i32
  %base = mul %pid, %c64 : i32
  %a = arange {start = 0, end = 64} : 64xi32
  %b = splat %base : 64xi32
  %offs = add %b, %a : 64xi32
"""

PATTERNS = [
    ("arange", TILE, "a", ((64,), (BIG,), (1,))),
    ("arange from 12", "  %a = arange {start = 12, end = 32} : 20xi32", "a", ((20,), (4,), (1,))),
    ("pid * BLOCK + arange", TILE, "offs", ((64,), (64,), (1,))),
    ("offs < n, n unknown", TILE + '%m = splat %n : 64xi32\n%r = cmp %offs, %m {pred = "lt"} : 64xi1', "r", ((1,), (1,),
    (1,))),
    ("offs < n, 16 | n", TILE + '%m = splat %s : 64xi32\n%r = cmp %offs, %m {pred = "lt"} : 64xi1', "r", ((1,), (1,),
    (16,))),
    ("n > offs, 16 | n", TILE + '%m = splat %s : 64xi32\n%r = cmp %m, %offs {pred = "gt"} : 64xi1', "r", ((1,), (1,),
    (16,))),
    ("offs <= n is not as good", TILE + '%m = splat %s : 64xi32\n%r = cmp %offs, %m {pred = "le"} : 64xi1', "r", ((1,),
    (1,), (1,))),
    ("pointer", TILE + "%q = splat %p : 64xptr<f32>\n%r = addptr %q, %offs : 64xptr<f32>", "r", ((64,), (16,), (1,))),
    ("pointer to f16 at an odd element", TILE + "%o = constant {value = 1} : i32\n%q = addptr %p, %o : ptr<f32>", "q",
    ((1,), (4,), (1,))),
    ("offs % 48", TILE + "%m = constant {value = 48} : 64xi32\n%r = rem %offs, %m : 64xi32", "r", ((16,), (16,), (1,))),
    ("offs / 48", TILE + "%m = constant {value = 48} : 64xi32\n%r = div %offs, %m : 64xi32", "r", ((1,), (1,), (16,))),
    ("offs % s, 16 | s", TILE + "%m = splat %s : 64xi32\n%z = constant {value = 0} : 64xi32\n%t = max %m, %z : 64xi32\n"
     "%r = rem %offs, %t : 64xi32", "r", ((16,), (16,), (1,))),
    ("offs & 31", TILE + "%m = constant {value = 31} : 64xi32\n%r = and %offs, %m : 64xi32", "r", ((32,), (32,), (1,))),
    ("offs & -32", TILE + "%m = constant {value = -32} : 64xi32\n%r = and %offs, %m : 64xi32", "r", ((1,), (32,), (32,
    ))),
    ("offs >> 3", TILE + "%m = constant {value = 3} : 64xi32\n%r = shr %offs, %m : 64xi32", "r", ((1,), (1,), (8,))),
    ("offs << 3", TILE + "%m = constant {value = 3} : 64xi32\n%r = shl %offs, %m : 64xi32", "r", ((1,), (8,), (1,))),
    ("offs / 1", TILE + "%m = constant {value = 1} : 64xi32\n%r = div %offs, %m : 64xi32", "r", ((64,), (64,), (1,))),
    ("negative offs / 32 truncates", "  %a = arange {start = -64, end = -56} : 8xi32\n%m = constant {value = 32} : "
    "8xi32\n"
     "%r = div %a, %m : 8xi32", "r", ((1,), (1,), (1,))),
    ("sign extension", TILE + "%r = cast %offs : 64xi64", "r", ((64,), (64,), (1,))),
    ("zero extension", TILE + "%u = cast %offs : 64xu32\n%r = cast %u : 64xu64", "r", ((64,), (64,), (1,))),
    ("offs - 3", TILE + "%m = constant {value = 3} : 64xi32\n%r = sub %offs, %m : 64xi32", "r", ((64,), (1,), (1,))),
    ("3 - offs", TILE + "%m = constant {value = 3} : 64xi32\n%r = sub %m, %offs : 64xi32", "r", ((1,), (1,), (1,))),
    ("select of a uniform condition", TILE + '%z = constant {value = 0} : i32\n%c = cmp %n, %z {pred = "lt"} : i1\n'
     "%r = select %c, %offs, %a : 64xi32", "r", ((64,), (64,), (1,))),
    ("select of a mask", TILE + '%m = splat %s : 64xi32\n%c = cmp %offs, %m {pred = "lt"} : 64xi1\n'
     "%r = select %c, %offs, %a : 64xi32", "r", ((16,), (16,), (1,))),
    ("min with something larger", TILE + "%m = constant {value = 64} : 64xi32\n%r = min %a, %m : 64xi32", "r", ((64,),
    (BIG,), (1,))),
    ("min", TILE + "%m = constant {value = 8} : 64xi32\n%r = min %a, %m : 64xi32", "r", ((1,), (1,), (1,))),
    ("reshape to rows", TILE + "%r = reshape %offs : 4x16xi32", "r", ((1, 16), (1, 16), (1, 1))),
    ("reshape of rows", "  %a = arange {start = 0, end = 12} : 12xi32\n%e = expand_dims %a {axis = 0} : 1x12xi32\n"
     "%b = broadcast %e : 5x12xi32\n%r = reshape %b : 60xi32", "r", ((12,), (BIG,), (1,))),
    ("reshape of columns", "  %a = arange {start = 0, end = 12} : 12xi32\n%e = expand_dims %a {axis = 1} : 12x1xi32\n"
     "%b = broadcast %e : 12x5xi32\n%r = reshape %b : 60xi32", "r", ((1,), (1,), (5,))),
    ("permute", TILE + "%e = expand_dims %offs {axis = 0} : 1x64xi32\n%r = permute %e {order = [1, 0]} : 64x1xi32", "r",
     ((64, 1), (64, 1), (1, 1))),
    ("hints", "  %x = splat %n : 64xi32\n%a = arange {start = 0, end = 64} : 64xi32\n%t = mul %a, %x : 64xi32\n"
     "%r = hint %t {divisible = [16], contiguous = [64]} : 64xi32", "r", ((64,), (16,), (1,))),
    ("hint after hint", "  %x = splat %n : 64xi32\n%a = arange {start = 0, end = 64} : 64xi32\n%t = mul %a, %x : "
    "64xi32\n"
     "%h = hint %t {divisible = [16]} : 64xi32\n%r = hint %h {contiguous = [64]} : 64xi32", "r", ((64,), (16,), (1,))),
    ("load through equal pointers", TILE + "%q = splat %p : 64xptr<f32>\n%r = load %q : 64xf32", "r", ((1,), (1,), (64,
    ))),
    ("size 12, step of groups", "  %a = arange {start = 0, end = 12} : 12xi32\n%m = constant {value = 8} : 12xi32\n"
     "%r = div %a, %m : 12xi32", "r", ((1,), (1,), (8,))),
    ("bool to int", TILE + '%m = splat %s : 64xi32\n%c = cmp %offs, %m {pred = "lt"} : 64xi1\n%r = cast %c : 64xi32',
    "r",
     ((1,), (1,), (16,))),
]  # fmt: skip


@pytest.mark.parametrize("body, name, expected", [p[1:] for p in PATTERNS], ids=[p[0] for p in PATTERNS])
def test_pattern(body: str, name: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert facts(body)[name][:3] == expected


MATMUL = """
  %rows = arange {start = 0, end = 32} : 32xi32
  %cols = arange {start = 0, end = 64} : 64xi32
  %r1 = expand_dims %rows {axis = 1} : 32x1xi32
  %st = splat %s : 32x1xi32
  %r2 = mul %r1, %st : 32x1xi32
  %r3 = broadcast %r2 : 32x64xi32
  %c1 = expand_dims %cols {axis = 0} : 1x64xi32
  %c2 = broadcast %c1 : 32x64xi32
  %o = add %r3, %c2 : 32x64xi32
  %q = splat %p : 32x64xptr<f32>
  %ptrs = addptr %q, %o : 32x64xptr<f32>
  %zero = constant {value = 0} : i32
  %step = constant {value = 64} : i32
  %one = constant {value = 1} : i32
  %move = constant {value = 64} : 32x64xi32
  %end, %k = for %zero, %n, %step, %ptrs, %zero : 32x64xptr<f32>, i32 (%i: i32, %cur: 32x64xptr<f32>, %count: i32) {
    %x = load %cur : 32x64xf32
    %next = addptr %cur, %move : 32x64xptr<f32>
    %more = add %count, %one : i32
    yield %next, %more
  }
"""


def test_row_major_tile_advanced_in_a_loop() -> None:
    found = facts(MATMUL)
    assert found["o"][:3] == ((1, 64), (1, 16), (1, 1))
    for name in ("ptrs", "cur", "next", "end"):
        assert found[name][:3] == ((1, 64), (4, 16), (1, 1)), name
    assert found["i"].divisibility == (64,)
    assert found["count"] == AxisInfo((1,), (1,), (1,), None)


def test_grouped_program_order_of_a_matrix_product() -> None:
    """Programs in groups of 8 rows, columns wrapped around at n: as in every matrix product that people write."""
    body = """
  %pid = program_id {axis = 0} : i32
  %c8 = constant {value = 8} : i32
  %c63 = constant {value = 63} : i32
  %c64 = constant {value = 64} : i32
  %n63 = add %s, %c63 : i32
  %blocks = div %n63, %c64 : i32
  %group = mul %blocks, %c8 : i32
  %g = div %pid, %group : i32
  %first = mul %g, %c8 : i32
  %left = sub %blocks, %first : i32
  %size = min %left, %c8 : i32
  %inside = rem %pid, %group : i32
  %row = rem %inside, %size : i32
  %pidm = add %first, %row : i32
  %pidn = div %inside, %size : i32
  %start = mul %pidn, %c64 : i32
  %a = arange {start = 0, end = 64} : 64xi32
  %b = splat %start : 64xi32
  %offs = add %b, %a : 64xi32
  %m = splat %s : 64xi32
  %wrapped = rem %offs, %m : 64xi32
  %startm = mul %pidm, %c64 : i32
  %bm = splat %startm : 64xi32
  %offsm = add %bm, %a : 64xi32
  %wrappedm = rem %offsm, %m : 64xi32
"""
    found = facts(body)
    assert found["wrapped"][:3] == ((16,), (16,), (1,))
    assert found["wrappedm"][:3] == ((16,), (16,), (1,))


def test_while_and_if_meet_both_ways() -> None:
    body = """
  %c = constant {value = 32} : i32
  %d = constant {value = 48} : i32
  %z = constant {value = 0} : i32
  %b = cmp %n, %z {pred = "lt"} : i1
  %x = if %b : i32 () {
    yield %c
  } () {
    yield %d
  }
  %w = while %x : i32 (%u: i32) {
    %t = cmp %u, %n {pred = "lt"} : i1
    condition %t, %u
  } (%v: i32) {
    %y = add %v, %s : i32
    yield %y
  }
"""
    found = facts(body)
    assert found["x"].divisibility == (16,) and found["x"].value is None
    assert found["w"].divisibility == found["u"].divisibility == (16,)


def test_values_are_known_after_wrapping() -> None:
    found = facts("  %a = constant {value = 100} : i8\n  %b = add %a, %a : i8\n  %c = mul %b, %b : i8", "")
    assert (found["b"].value, found["c"].value) == (-56, 64)


# Ranges -------------------------------------------------------------------------------------------------------------


def bounds(body: str, args: str = "%n: i32, %m: i32", no_wrap: bool = False) -> dict[str, ranges.Range]:
    module = parse_module(f"module {{\nfunc @f({args}) {{\n{body}\n return\n}}\n}}")
    verify(module)
    return {v.name: r for v, r in ranges.analyse(module.functions["f"], no_wrap).items() if v.name}


TOP = (1 << 31) - 1


def test_ranges_of_indices() -> None:
    body = TILE + "%k = constant {value = 7} : 64xi32\n%r = rem %offs, %k : 64xi32\n"
    body += '%l = cmp %a, %k {pred = "ge"} : 64xi1\n'
    found = bounds(body)
    assert found["pid"] == (0, TOP - 1) and found["a"] == (0, 63)
    assert found["offs"] == (-TOP - 1, TOP), "the product may wrap"
    assert found["r"] == (-6, 6) and found["l"] == (0, 1)
    assert bounds(body, no_wrap=True)["offs"] == (0, TOP)
    assert bounds(body, no_wrap=True)["r"] == (0, 6)


def test_assume_and_conditions_narrow_what_follows() -> None:
    body = """
  %z = constant {value = 0} : i32
  %t = constant {value = 10} : i32
  %c = cmp %n, %z {pred = "gt"} : i1
  %d = cmp %n, %t {pred = "le"} : i1
  %e = and %c, %d : i1
  assume %e
  %x = add %n, %t : i32
  %f = cmp %m, %x {pred = "lt"} : i1
  %r = if %f : i32 () {
    %u = min %m, %t : i32
    yield %u
  } () {
    %v = max %m, %z : i32
    yield %v
  }
"""
    found = bounds(body)
    assert found["n"] == (1, 10) and found["x"] == (11, 20)
    assert found["u"] == (-TOP - 1, 10) and found["v"] == (11, TOP)
    assert found["m"] == (-TOP - 1, TOP), "what an if adds is forgotten behind it"
    assert found["r"] == (-TOP - 1, TOP)


def test_loops_widen() -> None:
    body = """
  %z = constant {value = 0} : i32
  %t = constant {value = 10} : i32
  %o = constant {value = 1} : i32
  %a, %b, %c = for %z, %t, %o, %z, %z, %t : i32, i32, i32 (%i: i32, %x: i32, %y: i32, %w: i32) {
    %x1 = add %x, %o : i32
    %y1 = min %x1, %t : i32
    yield %x1, %y1, %w
  }
"""
    found = bounds(body)
    assert found["i"] == (0, 9)
    assert found["a"] == (-TOP - 1, TOP), "wraps"
    assert found["b"] == (-TOP - 1, TOP), "a bound that moves goes to the end of the type"
    assert found["c"] == (10, 10)
    assert bounds(body, no_wrap=True)["a"] == (0, TOP)


# Truth --------------------------------------------------------------------------------------------------------------


class _Indices:
    """A random function of index arithmetic as kernels write it; small enough numbers not to wrap signed indices."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.function = Function("f", [i32, i32, PointerType(element_of(u32))], (), ["n", "s", "p"])  # type: ignore[arg-type]
        self.function.arg_attrs[1] = {"divisible": 16}
        self.function.arg_attrs[2] = {"divisible": 16}
        self.b = Builder(self.function.body)
        self.pool: list[Value] = [self.function.args[0], self.function.args[1]]
        for _ in range(26):
            value = self.step()
            if value is not None:
                self.pool.append(value)
        self.b.return_()
        self.module = Module()
        self.module.add(self.function)

    def pick(self, *, tensor: bool | None = None) -> Value | None:
        known = [v for v in self.pool if tensor is None or isinstance(v.type, TensorType) is tensor]
        return known[int(self.rng.integers(len(known)))] if known else None

    def small(self) -> int:
        return int(self.rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]))

    def step(self) -> Value | None:
        choice = int(self.rng.integers(0, 13))
        if choice <= 1:
            start = int(self.rng.choice([0, 0, 0, 8, 12, -16, 3]))
            return self.b.arange(start=start, end=start + int(self.rng.choice([4, 8, 12, 16, 24, 32])))
        x = self.pick(tensor=True)
        if x is None or not isinstance(x.type, TensorType):
            return None
        if choice <= 7:
            return self.arithmetic(x)
        shape = x.type.shape
        if choice == 8 and len(shape) < 3:
            y = self.b.expand_dims(x, axis=int(self.rng.integers(0, len(shape) + 1)))
            sizes = tuple(int(self.rng.choice([1, 3, 4, 8])) if n == 1 else n for n in y.type.shape)
            return self.b.broadcast(y, types=[TensorType(sizes, y.type.element)]) if x.type.numel < 400 else y
        if choice == 9:
            target = self.reshaped(x.type.numel)
            return self.b.reshape(x, types=[TensorType(target, x.type.element)])
        if choice == 10:
            return self.b.permute(x, order=tuple(int(i) for i in self.rng.permutation(len(shape))))
        if choice == 11:
            return self.b.flip(x, axis=int(self.rng.integers(0, len(shape))))
        if element_of(x.type) != i32:
            return None
        target_type = [i64, u32][int(self.rng.integers(0, 2))]
        return self.b.cast(x, types=[TensorType(shape, target_type)])

    def reshaped(self, n: int) -> tuple[int, ...]:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        a = int(self.rng.choice(divisors))
        return (n,) if self.rng.random() < 0.3 else (a, n // a)

    def arithmetic(self, x: Value) -> Value:
        assert isinstance(x.type, TensorType)
        kind = str(self.rng.choice(["add", "sub", "mul", "div", "rem", "and", "or", "shl", "shr", "min", "max", "cmp",
        "select", "addptr", "add"]))  # fmt: skip
        same = [v for v in self.pool if v.type == x.type]
        y = same[int(self.rng.integers(len(same)))]
        if self.rng.random() < 0.6 or kind in ("shl", "shr", "mul", "rem", "div"):
            scalar = self.function.args[int(self.rng.integers(2))]
            if element_of(x.type) == i32 and kind not in ("shl", "shr", "mul") and self.rng.random() < 0.4:
                y = self.b.splat(scalar, types=[x.type])
            else:
                number = int(self.rng.integers(0, 4)) if kind in ("shl", "shr") else self.small()
                if kind == "and" and self.rng.random() < 0.5 and element_of(x.type).kind == "int":
                    number = -number
                y = self.b.const(number, x.type)
        if kind == "cmp":
            mask = self.b.cmp(x, y, pred=str(self.rng.choice(["eq", "ne", "lt", "le", "gt", "ge"])))
            return (
                self.b.select(mask, x, y)
                if self.rng.random() < 0.5
                else self.b.cast(mask, types=[TensorType(x.type.shape, i32)])
            )
        if kind == "select":
            return self.b.select(self.b.cmp(self.function.args[0], self.function.args[1], pred="lt"), x, y)
        if kind == "addptr":
            pointer = self.b.splat(self.function.args[2], types=[TensorType(x.type.shape, self.function.args[2].type)])
            self.b.addptr(pointer, x)
            return x
        return self.b.emit(kind, [x, y]).results[0]


def _check(value: Value, array: Any, info: AxisInfo) -> str | None:
    """What is wrong with the facts about a value that holds ``array``."""
    element = element_of(value.type)
    step = max(element.pointee.bits // 8, 1) if isinstance(element, PointerType) else 1
    numbers = np.asarray(array).astype(object) if not isinstance(element, ScalarType) or not element.is_float else None
    if numbers is None:
        return None
    if element == i1:
        numbers = np.asarray(array).astype(int).astype(object)
    numbers = numbers.reshape(shape_of(value.type) or (1,))
    if info.value is not None and not np.all(numbers == info.value):
        return f"value {info.value}"
    for d, n in enumerate(numbers.shape):
        rows = np.moveaxis(numbers, d, -1).reshape(-1, n)
        for start in range(0, n, info.contiguity[d]):
            group = rows[:, start : start + info.contiguity[d]]
            steps = group[:, 1:] - group[:, :-1]
            if np.any((steps % (1 << 32) if element == u32 else steps) != step):
                return f"contiguity along {d}"
            if np.any(group[:, 0] % info.divisibility[d] != 0):
                return f"divisibility along {d}"
        for start in range(0, n, info.constancy[d]):
            group = rows[:, start : start + info.constancy[d]]
            if np.any(group != group[:, :1]):
                return f"constancy along {d}"
    return None


@pytest.mark.parametrize("block", range(8))
def test_facts_and_ranges_are_true(block: int) -> None:
    useful = 0
    for seed in range(block * 40, block * 40 + 40):
        case = _Indices(seed)
        verify(case.module)
        found = axis.analyse(case.function)
        limits = ranges.analyse(case.function)
        for n, s in ((5, 48), (1000, 16)):
            machine = Machine(case.module, Memory(None), (1, 1, 1), print)
            args = [np.asarray(n, dtype=np.int32), np.asarray(s, dtype=np.int32), np.asarray(4096, dtype=np.uint64)]
            with np.errstate(all="ignore"):
                machine.run_function(case.function, args)
            for value, array in machine.values.items():
                wrong = _check(value, array, found[value])
                where = f"seed {seed}, n={n}, s={s}: {value!r}"
                assert wrong is None, f"{where}: {wrong}: {found[value]}\n{print_module(case.module)}"
                if value in limits:
                    low, high = limits[value]
                    assert low <= int(np.min(array)) and int(np.max(array)) <= high, f"{where}: {limits[value]}"
                useful += max(found[value].contiguity) > 1 or max(found[value].constancy) > 1
    assert useful > 500
