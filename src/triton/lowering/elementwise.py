"""Element-wise ops of the tile IR as LLVM instructions on cells: one rule for each op kind, looked up in ``RULES``.

The arguments of a rule are all scalars or all vectors of one length. Floats narrower than f32 are computed in f32 and
rounded once to their type after each op, unless the target has arithmetic on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.core import Op
from ..ir.table import IRError
from ..ir.types import ElementType, PointerType, ScalarType, element_of, f32, f64, i1
from . import convert, extern, integers, libm, math
from .values import Num, literal, num
from .writer import Cell, FunctionWriter, scalar_type, splat_text

Rule = Callable[[FunctionWriter, Op, Sequence[Cell]], Cell | list[Cell]]
FloatRule = Callable[..., Num]


def emit_elementwise(w: FunctionWriter, op: Op, args: Sequence[Cell], lanes: int) -> list[Cell]:
    """The results of ``op`` for ``args``, which have ``lanes`` lanes each (0: scalars); a select's condition may be
    scalar.
    """
    rule = RULES.get(op.kind)
    if rule is None:
        raise IRError(f"no element-wise lowering for {op.kind}")
    result = rule(w, op, args)
    return [result] if isinstance(result, Cell) else result


def emit_constant(element: ElementType, value: bool | int | float, lanes: int = 0) -> Cell:
    """A constant cell. Floats are rounded to nearest even, 8-bit floats as ``cast`` does."""
    if isinstance(element, PointerType):
        return Cell("zeroinitializer" if lanes else "null", element, lanes, 0)
    base = scalar_type(element)
    if element.is_fp8 or element.name == "bf16":
        code = convert.encode_number(float(value), element.name)
        text = f"0xR{code:04X}" if element.name == "bf16" else literal(code, base)
        return Cell(splat_text(text, base, lanes), element, lanes, value)
    return Cell(literal(value, base, lanes), element, lanes, value)


def widened(compute: FloatRule) -> Rule:
    """A float rule for every float type: ``compute(*nums)`` on half/float/double, small floats through f32."""

    def rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
        return apply_wide(w, compute, args)

    return rule


def apply_wide(w: FunctionWriter, compute: FloatRule, args: Sequence[Cell]) -> Cell:
    """``compute`` on f32 or f64 values, the result rounded to the first argument's type."""
    element = args[0].element
    assert isinstance(element, ScalarType)
    wide = [convert.to_wide(w, a) for a in args]
    result = compute(*(num(w, a) for a in wide))
    return convert.from_wide(w, result.cell(wide[0].element), element)


def arithmetic(w: FunctionWriter, opcode: str, a: Cell, b: Cell) -> Cell:
    """``fadd``, ``fsub``, ``fmul``, ``fdiv`` of two float cells, rounded to their type."""
    element = a.element
    if element in (f32, f64):
        flags = "contract " if w.features.contract and opcode != "fdiv" else ""
        return w.cell(f"{opcode} {flags}{a.typed}, {b.text}", element, a.lanes)
    if element.name == "f16" and w.features.half_arith:  # type: ignore[union-attr]
        return w.cell(f"{opcode} {a.typed}, {b.text}", element, a.lanes)
    return apply_wide(w, lambda x, y: x.binary(opcode, y), (a, b))


def _arithmetic_rule(float_opcode: str, integer_rule: Callable[[FunctionWriter, Cell, Cell], Cell]) -> Rule:
    def rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
        a, b = args
        return arithmetic(w, float_opcode, a, b) if a.element.is_float else integer_rule(w, a, b)

    return rule


def _integer(opcode: str) -> Callable[[FunctionWriter, Cell, Cell], Cell]:
    return lambda w, a, b: w.cell(f"{opcode} {a.typed}, {b.text}", a.element, a.lanes)


def _integer_rule(compute: Callable[[FunctionWriter, Cell, Cell], Cell]) -> Rule:
    return lambda w, op, args: compute(w, args[0], args[1])


# Floats


def remainder(w: FunctionWriter, a: Cell, b: Cell) -> Cell:
    """C's % or fmod."""
    if a.element.is_float:
        return apply_wide(w, math.FORMS["fmod"][1], (a, b))
    return integers.remainder(w, a, b)


def extremum(w: FunctionWriter, a: Cell, b: Cell, largest: bool, propagate_nan: bool) -> Cell:
    """min or max of two cells. For floats, a NaN loses against a number unless ``propagate_nan``."""
    element = a.element
    if not element.is_float:
        name = ("smax" if largest else "smin") if element.is_signed else ("umax" if largest else "umin")
        return num(w, a).call(name, num(w, b)).cell(element)
    if element not in (f32, f64):
        wide = extremum(w, convert.to_wide(w, a), convert.to_wide(w, b), largest, propagate_nan)
        return convert.from_wide(w, wide, element)  # type: ignore[arg-type]
    known = b.value is not None and b.value == b.value
    if known and not propagate_nan:  # one machine instruction on any target: b if a is a NaN
        return num(w, a).compare("ogt" if largest else "olt", num(w, b)).select(num(w, a), num(w, b)).cell(element)
    if known:
        return num(w, b).compare("ogt" if largest else "olt", num(w, a)).select(num(w, b), num(w, a)).cell(element)
    return math.extremum(num(w, a), num(w, b), largest, propagate_nan).cell(element)


def _extremum_rule(largest: bool) -> Rule:
    def rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
        return extremum(w, args[0], args[1], largest, bool(op.attrs.get("propagate_nan", False)))

    return rule


_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def compare(w: FunctionWriter, predicate: str, a: Cell, b: Cell) -> Cell:
    """``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge`` as i1; with a NaN only ne holds."""
    if a.element.is_float:
        x, y = num(w, convert.to_wide(w, a)), num(w, convert.to_wide(w, b))
        return x.compare(_FLOAT_PREDICATES[predicate], y).cell(i1)
    if predicate not in ("eq", "ne"):
        predicate = ("s" if a.element.is_signed else "u") + predicate
    return num(w, a).compare(predicate, num(w, b)).cell(i1)


def _compare_rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
    return compare(w, op.attrs["pred"], args[0], args[1])


def negate(w: FunctionWriter, a: Cell) -> Cell:
    """Sign change: the sign bit of floats, two's complement of integers."""
    element = a.element
    if element.is_bool:
        return a
    if element.is_float and element not in (f32, f64):
        if element.name in ("f8e4b8", "f8e5b16"):  # type: ignore[union-attr]
            return apply_wide(w, lambda x: -x, (a,))
        bits = _code(w, a)
        return (bits ^ (1 << (element.bits - 1))).bitcast(scalar_type(element)).cell(element)
    return (-num(w, a)).cell(element)


def absolute(w: FunctionWriter, a: Cell) -> Cell:
    """Absolute value; MIN stays MIN."""
    element = a.element
    if element in (f32, f64):
        return num(w, a).abs().cell(element)
    if element.is_float:
        if element.name in ("f8e4b8", "f8e5b16"):  # type: ignore[union-attr]
            return apply_wide(w, lambda x: x.abs(), (a,))
        return (_code(w, a) & ((1 << (element.bits - 1)) - 1)).bitcast(scalar_type(element)).cell(element)
    if not element.is_signed:
        return a
    type = a.type
    callee = w.module.intrinsic("abs", scalar_type(element), a.lanes, [type, "i1"])
    return w.cell(f"call {type} {callee}({a.typed}, i1 false)", element, a.lanes)


def _code(w: FunctionWriter, a: Cell) -> Num:
    return num(w, a).bitcast(f"i{a.element.bits}")


def select(w: FunctionWriter, condition: Cell, yes: Cell, no: Cell) -> Cell:
    return w.cell(f"select {condition.typed}, {yes.typed}, {no.typed}", yes.element, yes.lanes)


def add_pointer(w: FunctionWriter, pointer: Cell, offset: Cell) -> Cell:
    """``pointer`` moved by ``offset`` elements; the offset is extended by its signedness."""
    element = pointer.element
    assert isinstance(element, PointerType)
    index = num(w, offset)
    if not offset.element.is_signed and index.bits < 64:
        index = index.resize("i64")
    pointee = llvm_pointee(element)
    return w.cell(f"getelementptr {pointee}, {pointer.typed}, {index.typed}", element, pointer.lanes)


def llvm_pointee(pointer: PointerType) -> str:
    """The type in memory behind ``pointer``."""
    return scalar_type(pointer.pointee, memory=True)


def _cast_rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
    to = element_of(op.results[0].type)
    return convert.cast(w, args[0], to, str(op.attrs.get("rounding", "rtne")))


def _bitcast_rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
    return convert.bitcast(w, args[0], element_of(op.results[0].type))


def _math_rule(kind: str) -> Rule:
    compute = math.UNARY[kind]
    return lambda w, op, args: apply_wide(w, compute, args)


RULES: dict[str, Rule] = {
    "add": _arithmetic_rule("fadd", _integer("add")),
    "sub": _arithmetic_rule("fsub", _integer("sub")),
    "mul": _arithmetic_rule("fmul", _integer("mul")),
    "div": _arithmetic_rule("fdiv", integers.quotient),
    "rem": lambda w, op, args: remainder(w, args[0], args[1]),
    "mulhi": _integer_rule(integers.multiply_high),
    "and": _integer_rule(_integer("and")),
    "or": _integer_rule(_integer("or")),
    "xor": _integer_rule(_integer("xor")),
    "shl": _integer_rule(integers.shift_left),
    "shr": _integer_rule(integers.shift_right),
    "min": _extremum_rule(largest=False),
    "max": _extremum_rule(largest=True),
    "cmp": _compare_rule,
    "neg": lambda w, op, args: negate(w, args[0]),
    "abs": lambda w, op, args: absolute(w, args[0]),
    "fma": lambda w, op, args: math.fused_multiply_add(w, args[0], args[1], args[2]),
    "select": lambda w, op, args: select(w, args[0], args[1], args[2]),
    "cast": _cast_rule,
    "bitcast": _bitcast_rule,
    "addptr": lambda w, op, args: add_pointer(w, args[0], args[1]),
    **{kind: _math_rule(kind) for kind in math.UNARY},
    "libm": libm.rule,
    "extern": extern.extern_rule,
    "inline_asm": extern.assembly_rule,
}
