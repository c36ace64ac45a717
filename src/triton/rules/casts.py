"""Rules of ``cast`` and ``bitcast``. A cast is *lossless* when every value of the source is one of the target."""

from __future__ import annotations

from ..ir.core import Op
from ..ir.numbers import FORMATS
from ..ir.types import ElementType, ScalarType, element_of, f8e5m2
from .pattern import Result, Rewriter, collector, constant_of, defined_by

RULES, rule = collector()


def lossless(source: ElementType, target: ElementType) -> bool:
    """Whether ``cast`` from source to target keeps every value apart (NaN stays NaN, infinities infinite)."""
    if not isinstance(source, ScalarType) or not isinstance(target, ScalarType):
        return False
    if source == target:
        return True
    if source.is_float:
        if not target.is_float or target.bits == 8:
            return False
        a, b = FORMATS[source.name], FORMATS[target.name]
        return a.precision <= b.precision and a.lowest_exponent >= b.lowest_exponent and a.largest <= b.largest
    digits = source.bits - 1 if source.is_signed else source.bits
    if target.is_float:
        # -2^n needs one digit, and 2^n must not overflow: f16 ends at 65504, the 8-bit formats earlier.
        return target.bits > 8 and digits <= FORMATS[target.name].precision
    if target.is_bool:
        return False
    if source.is_signed:
        return target.is_signed and target.bits >= source.bits
    return digits <= (target.bits - 1 if target.is_signed else target.bits)


@rule("cast", "cast to the same type is nothing", "(%x: 4xi32) => %r = cast %x : 4xi32")
def same_type(rewriter: Rewriter, op: Op) -> Result:
    return op.operands[0] if op.operands[0].type == op.results[0].type else None


@rule(
    "cast",
    "cast(cast(x)) = cast(x) when the inner cast is lossless, or both only drop high bits",
    "(%x: 4xi8) => %a = cast %x : 4xi32\n%r = cast %a : 4xi64",
    "(%x: 4xi8) => %a = cast %x : 4xf32\n%r = cast %a : 4xi8",
    "(%x: 4xf16) => %a = cast %x : 4xf32\n%r = cast %a : 4xbf16",
    '(%x: 4xf16) => %a = cast %x : 4xf64\n%r = cast %a {rounding = "rtz"} : 4xf8e5m2',
    "(%x: 4xf8e4m3) => %a = cast %x : 4xbf16\n%r = cast %a : 4xf8e4m3",
    "(%x: 4xi64) => %a = cast %x : 4xu16\n%r = cast %a : 4xi8",
    "(%x: 4xi1) => %a = cast %x : 4xi32\n%r = cast %a : 4xi1",
    "(%x: 4xu16) => %a = cast %x : 4xi32\n%r = cast %a : 4xf16",
    needs="cast",
)
def cast_of_cast(rewriter: Rewriter, op: Op) -> Result:
    inner = defined_by(op.operands[0], "cast")
    if inner is None:
        return None
    source, middle, target = (element_of(v.type) for v in (inner.operands[0], inner.results[0], op.results[0]))
    if not lossless(source, middle):
        drops = source.kind in ("int", "uint") and middle.kind in ("int", "uint") and target.kind in ("int", "uint")
        if not (drops and target.bits <= middle.bits):
            return None
    if source == target == f8e5m2:
        return None  # its infinities saturate on the way back
    if middle.is_float and not source.is_float and target.kind in ("int", "uint") and not lossless(source, target):
        return None  # floats saturate where integers wrap
    return rewriter.emit("cast", inner.operands, op.results[0].type, op.attrs)


@rule(
    "cast",
    "cast(select(c, A, B)) = select(c, cast(A), cast(B)); to i1 of i1-made numbers: x != 0 is x",
    "(%c: 4xi1) => %a = constant {value = 1} : 4xi32\n%b = constant {value = 300} : 4xi32\n"
    "%s = select %c, %a, %b : 4xi32\n%r = cast %s : 4xi8",
    needs="select",
)
def cast_of_select(rewriter: Rewriter, op: Op) -> Result:
    select = defined_by(op.operands[0], "select")
    if select is None or constant_of(select.operands[1]) is None or constant_of(select.operands[2]) is None:
        return None
    choices = [rewriter.emit("cast", [v], op.results[0].type, op.attrs) for v in select.operands[1:]]
    return rewriter.emit("select", [select.operands[0], *choices])


@rule(
    "cmp",
    "cmp(cast(x), cast(y)) = cmp(x, y) when both casts are lossless and from one type",
    '(%x: 4xi8, %y: 4xi8) => %a = cast %x : 4xi32\n%b = cast %y : 4xi32\n%r = cmp %a, %b {pred = "lt"} : 4xi1',
    '(%x: 4xf16, %y: 4xf16) => %a = cast %x : 4xf32\n%b = cast %y : 4xf32\n%r = cmp %a, %b {pred = "ne"} : 4xi1',
    needs="cast",
)
def compare_casts(rewriter: Rewriter, op: Op) -> Result:
    a, b = (defined_by(v, "cast") for v in op.operands)
    if a is None or b is None or a.operands[0].type != b.operands[0].type:
        return None
    if not lossless(element_of(a.operands[0].type), element_of(op.operands[0].type)):
        return None
    return rewriter.emit("cmp", [a.operands[0], b.operands[0]], None, op.attrs)


@rule(
    "cmp",
    "cast(x: i1) != 0 is x, cast(x: i1) == 0 is not x",
    '(%x: 4xi1) => %a = cast %x : 4xi32\n%z = constant {value = 0} : 4xi32\n%r = cmp %a, %z {pred = "ne"} : 4xi1',
    '(%x: 4xi1) => %a = cast %x : 4xf32\n%z = constant {value = 0.0} : 4xf32\n%r = cmp %a, %z {pred = "eq"} : 4xi1',
    needs="cast",
)
def compare_boolean(rewriter: Rewriter, op: Op) -> Result:
    inner = defined_by(op.operands[0], "cast")
    if inner is None or not element_of(inner.operands[0].type).is_bool or constant_of(op.operands[1]) != 0:
        return None
    if op.attrs["pred"] == "ne":
        return inner.operands[0]
    if op.attrs["pred"] != "eq":
        return None
    return rewriter.emit("xor", [inner.operands[0], rewriter.constant(True, inner.operands[0].type)])


@rule(
    "floor ceil",
    "floor(cast(x)) = cast(x) for an integer x",
    "(%x: 4xi32) => %a = cast %x : 4xf32\n%r = floor %a : 4xf32",
    needs="cast",
)
def whole_already(rewriter: Rewriter, op: Op) -> Result:
    inner = defined_by(op.operands[0], "cast")
    return op.operands[0] if inner is not None and element_of(inner.operands[0].type).is_integer else None


@rule(
    "bitcast",
    "bitcast(bitcast(x)) = bitcast(x); to the same type it is nothing",
    "(%x: 4xi32) => %r = bitcast %x : 4xi32",
    "(%x: 4xf32) => %a = bitcast %x : 4xi32\n%r = bitcast %a : 4xu32",
    "(%x: 4xf16) => %a = bitcast %x : 4xi16\n%r = bitcast %a : 4xf16",
)
def bitcast_of_bitcast(rewriter: Rewriter, op: Op) -> Result:
    if op.operands[0].type == op.results[0].type:
        return op.operands[0]
    inner = defined_by(op.operands[0], "bitcast")
    return None if inner is None else rewriter.emit("bitcast", inner.operands, op.results[0].type)


@rule(
    "cast",
    "cast between integers of one width is bitcast's twin: cast(bitcast(x)) = cast(x) when both are integers of the "
    "width",
    "(%x: 4xi32) => %a = bitcast %x : 4xu32\n%r = cast %a : 4xi32",
    needs="bitcast",
)
def cast_of_bitcast(rewriter: Rewriter, op: Op) -> Result:
    inner = defined_by(op.operands[0], "bitcast")
    if inner is None:
        return None
    source, middle, target = (element_of(v.type) for v in (inner.operands[0], inner.results[0], op.results[0]))
    if any(e.kind not in ("int", "uint") for e in (source, middle, target)) or target.bits > source.bits:
        return None
    return rewriter.emit("cast", inner.operands, op.results[0].type)
