"""Rules of pointers, loads, stores, masks, choices and hints."""

from __future__ import annotations

from ..ir.core import Op
from ..ir.numbers import limits
from ..ir.types import ScalarType, TensorType, element_of
from .pattern import Result, Rewriter, collector, constant_of, defined_by, is_constant
from .shapes import elementwise_of_broadcast, elementwise_of_uniform, uniform

RULES, rule = collector()

_MASK_AT = {"load": 1, "store": 2, "atomic_rmw": 2, "assert": 1, "histogram": 1}


@rule(
    "addptr",
    "addptr(p, 0) = p",
    "(%p: ptr<f32>) => %z = constant {value = 0} : i32\n%r = addptr %p, %z : ptr<f32>",
    needs="constant",
)
def no_offset(rewriter: Rewriter, op: Op) -> Result:
    return op.operands[0] if is_constant(op.operands[1], 0) else None


@rule(
    "addptr",
    "addptr(addptr(p, A), B) = addptr(p, A + B) when the sum fits the offset's type, or has 64 bits and wraps as "
    "pointers do",
    "(%p: ptr<f32>) => %a = constant {value = 5} : i32\n%b = constant {value = -7} : i32\n"
    "%q = addptr %p, %a : ptr<f32>\n%r = addptr %q, %b : ptr<f32>",
    "(%p: ptr<f32>) => %a = constant {value = 5} : i64\n%b = constant {value = 11} : i64\n"
    "%q = addptr %p, %a : ptr<f32>\n%r = addptr %q, %b : ptr<f32>",
    needs="addptr",
)
def join_offsets(rewriter: Rewriter, op: Op) -> Result:
    inner = defined_by(op.operands[0], "addptr")
    if inner is None:
        return None
    first, second = inner.operands[1], op.operands[1]
    a, b = constant_of(first), constant_of(second)
    if a is None or b is None or first.type != second.type:
        return None  # of other offsets the addition saved here would be made there
    element = element_of(first.type)
    assert isinstance(element, ScalarType)
    low, high = limits(element)
    if element.bits < 64 and not low <= int(a) + int(b) <= high:
        return None
    return rewriter.emit("addptr", [inner.operands[0], rewriter.emit("add", [first, second])])


@rule(
    "load store atomic_rmw assert histogram",
    "a mask that always holds is no mask",
    "(%p: 4xptr<f32>) => %m = constant {value = true} : 4xi1\n%r = load %p, %m : 4xf32",
    "(%p: 4xptr<f32>, %x: 4xf32) => %m = constant {value = true} : 4xi1\nstore %p, %x, %m",
    needs="constant",
)
def full_mask(rewriter: Rewriter, op: Op) -> Result:
    at = _MASK_AT[op.kind]
    if len(op.operands) > at and is_constant(op.operands[at], 1):
        del op.operands[at:]  # with the mask goes the value for where it does not hold
    return None


@rule(
    "load",
    "a load under a mask that never holds is `other`, or 0",
    "(%p: 4xptr<f32>) => %m = constant {value = false} : 4xi1\n%r = load %p, %m : 4xf32",
    "(%p: 4xptr<f32>, %x: 4xf32) => %m = constant {value = false} : 4xi1\n%r = load %p, %m, %x : 4xf32",
    needs="constant",
)
def empty_load(rewriter: Rewriter, op: Op) -> Result:
    if len(op.operands) < 2 or not is_constant(op.operands[1], 0):
        return None
    if len(op.operands) > 2:
        return op.operands[2]
    return rewriter.constant(0, op.results[0].type)


@rule(
    "load",
    "`other` = 0 is what a masked load gives without it",
    "(%p: 4xptr<f32>, %m: 4xi1) => %z = constant {value = 0.0} : 4xf32\n%r = load %p, %m, %z : 4xf32",
    needs="constant",
)
def other_is_zero(rewriter: Rewriter, op: Op) -> Result:
    if len(op.operands) > 2 and is_constant(op.operands[2], 0):
        del op.operands[2:]
    return None


@rule(
    "load",
    "load(splat(p)) = splat(load(p)), load(broadcast(p)) = broadcast(load(p)): each address is read once",
    "(%p: ptr<f32>) => %q = splat %p : 4xptr<f32>\n%r = load %q : 4xf32",
    "(%p: 4x1xptr<f32>, %m: 4x1xi1) => %q = broadcast %p : 4x3xptr<f32>\n%n = broadcast %m : 4x3xi1\n%r = load %q, %n "
    ": 4x3xf32",
    needs="splat broadcast",
)
def uniform_load(rewriter: Rewriter, op: Op) -> Result:
    if op.attrs.get("volatile") or not isinstance(op.results[0].type, TensorType):
        return None
    if defined_by(op.operands[0], "splat") is None:
        return elementwise_of_broadcast(rewriter, op) if defined_by(op.operands[0], "broadcast") is not None else None
    return elementwise_of_uniform(rewriter, op)


@rule(
    "select",
    "select(splat(c), x, y) = select(c, x, y)",
    "(%c: i1, %x: 4xf32, %y: 4xf32) => %m = splat %c : 4xi1\n%r = select %m, %x, %y : 4xf32",
)
def uniform_choice(rewriter: Rewriter, op: Op) -> Result:
    condition, yes, no = op.operands
    scalar = uniform(condition)
    if scalar is None or scalar is condition:
        number = constant_of(condition)
        return None if number is None else yes if number else no
    return rewriter.emit("select", [scalar, yes, no])


@rule(
    "select",
    "select(c, true, false) = c, select(c, false, true) = not c",
    "(%c: 4xi1) => %t = constant {value = true} : 4xi1\n%f = constant {value = false} : 4xi1\n%r = select %c, %t, %f : "
    "4xi1",
    "(%c: 4xi1) => %t = constant {value = true} : 4xi1\n%f = constant {value = false} : 4xi1\n%r = select %c, %f, %t : "
    "4xi1",
    needs="constant",
)
def boolean_choice(rewriter: Rewriter, op: Op) -> Result:
    condition, yes, no = op.operands
    if condition.type != yes.type:
        return None
    chosen = constant_of(yes), constant_of(no)
    if chosen == (True, False):
        return condition
    if chosen != (False, True):
        return None
    return rewriter.emit("xor", [condition, rewriter.constant(True, condition.type)])


@rule(
    "cmp",
    "a constant stands on the right: A < x is x > A",
    '(%x: 4xi32) => %a = constant {value = 3} : 4xi32\n%r = cmp %a, %x {pred = "lt"} : 4xi1',
    needs="constant",
)
def constant_on_the_right(rewriter: Rewriter, op: Op) -> Result:
    a, b = op.operands
    if constant_of(a) is None or constant_of(b) is not None:
        return None
    mirrored = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
    return rewriter.emit("cmp", [b, a], None, {"pred": mirrored[op.attrs["pred"]]})


@rule(
    "xor",
    "not (x < y) is x >= y, of integers",
    '(%x: 4xi32, %y: 4xi32) => %a = cmp %x, %y {pred = "lt"} : 4xi1\n%t = constant {value = true} : 4xi1\n%r = xor %a, '
    "%t : 4xi1",
    needs="cmp",
)
def not_of_comparison(rewriter: Rewriter, op: Op) -> Result:
    compare = defined_by(op.operands[0], "cmp")
    if compare is None or not is_constant(op.operands[1], 1):
        return None
    element = element_of(compare.operands[0].type)
    if element.is_float:
        return None
    opposite = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
    return rewriter.emit("cmp", compare.operands, None, {"pred": opposite[compare.attrs["pred"]]})


@rule(
    "rem",
    "x rem y = x when 0 <= x < y",
    "() => %x = arange {start = 2, end = 6} : 4xi32\n%y = constant {value = 6} : 4xi32\n%r = rem %x, %y : 4xi32",
)
def small_dividend(rewriter: Rewriter, op: Op) -> Result:
    a, b = (rewriter.range_of(v) for v in op.operands)
    return op.operands[0] if a is not None and b is not None and a[0] >= 0 and a[1] < b[0] else None


@rule(
    "div",
    "x / y = 0 when 0 <= x < y",
    "() => %x = arange {start = 2, end = 6} : 4xi32\n%y = constant {value = 6} : 4xi32\n%r = div %x, %y : 4xi32",
)
def no_quotient(rewriter: Rewriter, op: Op) -> Result:
    a, b = (rewriter.range_of(v) for v in op.operands)
    fits = a is not None and b is not None and a[0] >= 0 and a[1] < b[0]
    return rewriter.constant(0, op.results[0].type) if fits else None


@rule(
    "min max",
    "min(x, y) = x when no x is above any y",
    "() => %x = arange {start = 2, end = 6} : 4xi32\n%y = constant {value = 5} : 4xi32\n%r = min %x, %y : 4xi32",
    "() => %x = arange {start = 2, end = 6} : 4xi32\n%y = constant {value = 1} : 4xi32\n%r = max %x, %y : 4xi32",
)
def ordered_extremum(rewriter: Rewriter, op: Op) -> Result:
    a, b = (rewriter.range_of(v) for v in op.operands)
    if a is None or b is None:
        return None
    if a[1] <= b[0]:
        return op.operands[0 if op.kind == "min" else 1]
    if b[1] <= a[0]:
        return op.operands[1 if op.kind == "min" else 0]
    return None


@rule(
    "hint",
    "hints on one value join; those on constants say nothing new",
    "(%x: 16xi32) => %a = hint %x {divisible = [16]} : 16xi32\n%r = hint %a {contiguous = [16]} : 16xi32",
    "() => %a = constant {value = 16} : 16xi32\n%r = hint %a {divisible = [16]} : 16xi32",
)
def joined_hints(rewriter: Rewriter, op: Op) -> Result:
    if constant_of(op.operands[0]) is not None or not any(op.attrs.values()):
        return op.operands[0]
    inner = defined_by(op.operands[0], "hint")
    if inner is None:
        return None
    attrs = dict(inner.attrs)
    for name, promises in op.attrs.items():
        attrs[name] = _stronger(attrs.get(name, ()), promises)
    return rewriter.emit("hint", inner.operands, None, attrs)


def _stronger(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return tuple(max(x, y) for x, y in zip(longer, shorter + (1,) * (len(longer) - len(shorter)), strict=True))


@rule(
    "add",
    "dot(x, y, 0) + z = dot(x, y, z) when the product is not used otherwise; the order of a dot's additions is free",
    "(%x: 4x3xf32, %y: 3x8xf32, %z: 4x8xf32) => %c = constant {value = 0.0} : 4x8xf32\n"
    "%a = dot %x, %y, %c : 4x8xf32\n%r = add %a, %z : 4x8xf32",
    "(%x: 4x3xi8, %y: 3x8xi8, %z: 4x8xi32) => %c = constant {value = 0} : 4x8xi32\n"
    "%a = dot %x, %y, %c : 4x8xi32\n%r = add %z, %a : 4x8xi32",
    needs="dot",
)
def accumulate(rewriter: Rewriter, op: Op) -> Result:
    for product, other in (op.operands, op.operands[::-1]):
        dot = defined_by(product, "dot")
        if dot is None or not is_constant(dot.operands[2], 0) or not rewriter.is_used_once(product):
            continue
        return rewriter.emit("dot", [*dot.operands[:2], other], None, dot.attrs)
    return None
