"""The ``libm`` op: functions of C's mathematical library, and of GPU libraries under their usual names, on cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.core import Op
from ..ir.table import IRError
from ..ir.types import ElementType, element_of, f32, f64, i32, i64
from . import convert, directed
from .calls import per_lane
from .math import FORMS
from .values import Num, num
from .vectormath import INF
from .writer import Cell, FunctionWriter

Rule = Callable[[FunctionWriter, str, Sequence[Cell], ElementType], Cell]

#: Other names of functions in ``math.FORMS``.
_ALIASES = {
    "fast_expf": "exp", "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10", "fast_exp10f": "exp10",
    "fast_sinf": "sin", "fast_cosf": "cos", "fast_tanf": "tan", "fast_tanhf": "tanh", "fast_powf": "pow", "powi": "pow",
    "fast_dividef": "div", "abs": "fabs",
}  # fmt: skip


def _classify(test: Callable[[Num], Num]) -> Callable[[Num], Num]:
    return lambda x: test(x).convert("zext", "i32")


_FINITE = _classify(lambda x: x.abs().lt(INF))
#: Questions answered by i32 0 or 1.
_PREDICATES: dict[str, Callable[[Num], Num]] = {
    "isnan": _classify(lambda x: x.isnan()),
    "isinf": _classify(lambda x: x.abs().eq(INF)),
    "signbit": _classify(lambda x: x.to_bits().lt(0)),
    **dict.fromkeys(("isfinite", "finite", "finitef", "isfinited"), _FINITE),
}


def rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> Cell:
    """The result of a ``libm`` op. Raises IRError for a function that is not known or does not take these arguments."""
    name, to = str(op.attrs["function"]), element_of(op.results[0].type)
    if name in _PREDICATES:
        x = num(w, convert.to_wide(w, _floats(name, args, 1)[0]))
        return convert.cast(w, _PREDICATES[name](x).cell(i32), to)
    other = _OTHERS.get(name) or directed.rule(name)
    if other is not None:
        return other(w, name, args, to)
    form = FORMS.get(_ALIASES.get(name, name))
    if form is None:
        raise IRError(f"no lowering for the mathematical function {name!r}")
    if name in ("pow", "powi") and len(args) == 2 and args[1].element.is_integer:
        wide_exponent = convert.cast(w, args[1], f64)
        args = [convert.cast(w, args[0], f64), wide_exponent]
    wide = [convert.to_wide(w, a) for a in _floats(name, args, form[0])]
    if len({a.element for a in wide}) > 1:
        raise IRError(f"the arguments of {name!r} differ in type: {', '.join(str(a.element) for a in args)}")
    result = form[1](*(num(w, a) for a in wide))
    return convert.cast(w, result.cell(f64 if result.base == "double" else f32), to)


def _counted(name: str, args: Sequence[Cell], count: int) -> Sequence[Cell]:
    if len(args) != count:
        raise IRError(f"{name!r} takes {count} argument{'s' * (count != 1)}, got {len(args)}")
    return args


def _floats(name: str, args: Sequence[Cell], count: int) -> Sequence[Cell]:
    for a in _counted(name, args, count):
        if not a.element.is_float:
            raise IRError(f"{name!r} takes floating-point arguments, got {a.element}")
    return args


def _double(w: FunctionWriter, a: Cell) -> Num:
    return num(w, convert.cast(w, a, f64))


def _scale(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    """ldexp: exact in double for f32 and narrower, so that only the final rounding counts."""
    x, n = _counted(name, args, 2)
    return convert.cast(w, per_lane("ldexp", [_double(w, x), num(w, convert.cast(w, n, i32))], "double").cell(f64), to)


def _exponent(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    (x,) = _floats(name, args, 1)
    return convert.cast(w, per_lane("ilogb", [_double(w, x)], "i32").cell(i32), to)


def _round_to_integer(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    (x,) = _floats(name, args, 1)
    wide = convert.to_wide(w, x)
    whole = num(w, wide).call("rint" if name.endswith("rint") else "round")
    return convert.cast(w, convert.cast(w, whole.cell(wide.element), i64), to)


def _bessel(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    n, x = _counted(name, args, 2)
    return convert.cast(w, per_lane(name, [num(w, convert.cast(w, n, i32)), _double(w, x)], "double").cell(f64), to)


def _next_after(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    """The neighbour of x in the direction of y, in their own type (f32 for anything narrower)."""
    wide = [convert.to_wide(w, a) for a in _floats(name, args, 2)]
    x, y = (num(w, a) for a in wide)
    bits = x.to_bits()
    outward = y.gt(x).compare("eq", bits.compare("sge", 0))
    moved = outward.select(bits + 1, bits - 1)
    from_zero = (y.to_bits() & -(1 << (x.bits - 1))) | 1
    stepped = x.eq(0.0).select(from_zero, moved).bitcast(x.base)
    result = x.eq(y).select(y, x.compare("uno", y).select(x + y, stepped))
    return convert.cast(w, result.cell(wide[0].element), to)


# Bits and integers


def _integers(name: str, args: Sequence[Cell], count: int) -> Sequence[Cell]:
    for a in _counted(name, args, count):
        if not a.element.is_integer:
            raise IRError(f"{name!r} takes integer arguments, got {a.element}")
    return args


def _intrinsic_with_flag(x: Num, name: str) -> Num:
    """``ctlz``/``cttz``, defined for zero."""
    callee = x.w.module.intrinsic(name, x.base, x.lanes, [x.type, "i1"])
    return Num(x.w, x.w.call(x.type, callee, [x.typed, "i1 false"]), x.base, x.lanes)


def _bit_function(compute: Callable[[Num], Num]) -> Rule:
    def apply(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
        (x,) = _integers(name, args, 1)
        return convert.cast(w, compute(num(w, x)).cell(x.element), to)

    return apply


def _averaged(up: int) -> Rule:
    """hadd, rhadd: (a + b) / 2 without overflow, rounded down or up."""

    def apply(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
        a, b = _integers(name, args, 2)
        wide, signed = f"i{2 * a.element.bits}", a.element.is_signed
        total = num(w, a).resize(wide, signed) + num(w, b).resize(wide, signed) + up
        return total.ashr(1).resize(f"i{a.element.bits}").cell(to)

    return apply


def _byte_permute(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    """Four bytes picked from the eight of (b, a) by the low nibbles of the selector."""
    a, b, selector = (num(w, v).resize("i64") for v in _integers(name, args, 3))
    both = a | (b << 32)
    result = a.const(0)
    for k in range(4):
        index = (selector >> (4 * k)) & 7
        result = result | (((both >> (index << 3)) & 255) << (8 * k))
    return result.resize("i32").cell(to)


def _multiply_24(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    a, b = _integers(name, args, 2)
    x, y = num(w, a) << 8, num(w, b) << 8
    if a.element.is_signed:
        return (x.ashr(8) * y.ashr(8)).cell(to)
    return ((x >> 8) * (y >> 8)).cell(to)


def _sum_of_difference(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    """sad: |a - b| + c."""
    a, b, c = _integers(name, args, 3)
    x, y = num(w, a), num(w, b)
    larger, smaller = ("smax", "smin") if a.element.is_signed else ("umax", "umin")
    return ((x.call(larger, y) - x.call(smaller, y)) + num(w, c)).cell(to)


def _double_word(shift: int) -> Rule:
    def apply(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
        (x,) = _floats(name, args, 1)
        return (_double(w, x).to_bits() >> shift).resize("i32").cell(to)

    return apply


def _from_words(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    high, low = (num(w, a).resize("i64") for a in _integers(name, args, 2))
    return ((high << 32) | low).bitcast("double").cell(to)


def _reinterpreted(w: FunctionWriter, name: str, args: Sequence[Cell], to: ElementType) -> Cell:
    return convert.bitcast(w, _counted(name, args, 1)[0], to)


_OTHERS: dict[str, Rule] = {
    **dict.fromkeys(("ldexp", "scalbn"), _scale),
    "ilogb": _exponent,
    **dict.fromkeys(("lrint", "llrint", "lround", "llround"), _round_to_integer),
    **dict.fromkeys(("jn", "yn"), _bessel),
    "nextafter": _next_after,
    "brev": _bit_function(lambda x: x.call("bitreverse")),
    "popc": _bit_function(lambda x: x.call("ctpop")),
    "clz": _bit_function(lambda x: _intrinsic_with_flag(x, "ctlz")),
    "ffs": _bit_function(lambda x: x.eq(0).select(0, _intrinsic_with_flag(x, "cttz") + 1)),
    "hadd": _averaged(0),
    "rhadd": _averaged(1),
    "byte_perm": _byte_permute,
    "mul24": _multiply_24,
    "sad": _sum_of_difference,
    "double2hiint": _double_word(32),
    "double2loint": _double_word(0),
    "hiloint2double": _from_words,
    **dict.fromkeys(
        ("double_as_longlong", "longlong_as_double", "float_as_int", "float_as_uint", "int_as_float", "uint_as_float"),
        _reinterpreted,
    ),
}
