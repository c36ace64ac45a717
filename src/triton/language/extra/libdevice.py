"""The mathematical library beyond ``tl.math``, under the names of CUDA's libdevice, for every target.

Floating-point functions take float32 and float64; other arguments are converted (integers and 16-bit floats to
float32), and two arguments meet in the wider type. Functions of the C library are computed by it or to its accuracy.
What neither the C library nor a short formula gives says so when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, describe, tensor, unwrap
from triton.language import math as core_math

from . import special

S = TritonSemantic


# Building blocks ----------------------------------------------------------------------------------------------------


def _float(x: Any, name: str, s: S) -> tensor:
    """An argument as float32 or float64."""
    x = s.to_tensor(unwrap(x), name)
    if x.dtype.is_ptr():
        raise TypeError(f"{name}: expected numbers, got {describe(x)}")
    return x if x.dtype.is_floating() and x.dtype.primitive_bitwidth >= 32 else s.cast(x, dt.float32)


def _floats(args: Any, name: str, s: S) -> list[tensor]:
    """All arguments as one float type and one shape."""
    values = [_float(a, name, s) for a in args]
    if any(v.dtype.is_fp64() for v in values):
        values = [s.cast(v, dt.float64) for v in values]
    return s.broadcast_all(values, name)


def _int(x: Any, name: str, s: S, wide: bool = False) -> tensor:
    x = s.to_tensor(unwrap(x), name)
    if not x.dtype.is_int():
        raise TypeError(f"{name}: expected integers, got {describe(x)}")
    if wide and x.dtype.int_bitwidth == 64:
        return x
    return x if x.dtype.int_bitwidth == 32 else s.cast(x, dt.int32)


def _libm(function: str, values: list[tensor], result: dt.dtype, s: S) -> tensor:
    type = values[0].type.with_element_ty(result)
    return tensor(s.op("libm", [v.handle for v in values], type.ir, {"function": function}), type)


def _shaped(count: int, emit: Callable[..., Any]) -> Any:
    """``emit`` as a function of ``count`` arguments named as in the table of libdevice's functions."""
    if count == 1:
        return lambda arg0, _semantic=None: emit(_semantic, arg0)
    if count == 2:
        return lambda arg0, arg1, _semantic=None: emit(_semantic, arg0, arg1)
    if count == 3:
        return lambda arg0, arg1, arg2, _semantic=None: emit(_semantic, arg0, arg1, arg2)
    return lambda arg0, arg1, arg2, arg3, _semantic=None: emit(_semantic, arg0, arg1, arg2, arg3)


def _define(name: str, count: int, doc: str, emit: Callable[..., Any]) -> None:
    """Makes ``name(arg0, ...)`` of this module."""
    function = _shaped(count, emit)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    globals()[name] = builtin(function)


def _library(name: str, count: int = 1, c_name: str = "", result: dt.dtype | None = None) -> None:
    """A function of the C library on floats."""
    c_function = c_name or name

    def emit(s: S, *args: Any) -> tensor:
        values = _floats(args, name, s)
        return _libm(c_function, values, result or values[0].dtype, s)

    _define(name, count, f"C's ``{c_function}``.", emit)


def _op(name: str, kind: str, count: int = 1, doc: str = "") -> None:
    """An op of the IR on floats."""

    def emit(s: S, *args: Any) -> tensor:
        values = _floats(args, name, s)
        return tensor(s.op(kind, [v.handle for v in values], values[0].type.ir), values[0].type)

    _define(name, count, doc or f"See ``tl.math.{kind}``.", emit)


for _name in (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cosh",
    "exp10",
    "expm1",
    "erfc",
    "j0",
    "j1",
    "lgamma",
    "log10",
    "log1p",
    "logb",
    "nearbyint",
    "rint",
    "round",
    "sinh",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "y0",
    "y1",
):
    _library(_name)
for _name in ("atan2", "copysign", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder"):
    _library(_name, 2)
for _name in ("isnan", "isinf", "signbit", "ilogb"):
    _library(_name, result=dt.int32)
for _name in ("llrint", "llround"):
    _library(_name, result=dt.int64)
_library("finitef", c_name="isfinite", result=dt.int32)
_library("isfinited", c_name="isfinite", result=dt.int32)
for _name in ("ceil", "floor", "cos", "sin", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "erf", "sqrt_rn"):
    _op(_name, _name)
for _name, _kind in (("add_rn", "add"), ("sub_rn", "sub"), ("mul_rn", "mul"), ("div_rn", "div")):
    _op(_name, _kind, 2, f"IEEE {_kind}, to nearest even.")
for _name in ("fma", "fma_rn"):
    _op(_name, "fma", 3)
# Fast variants may be less accurate; they are not here.
for _name, _kind in (
    ("fast_cosf", "cos"),
    ("fast_sinf", "sin"),
    ("fast_expf", "exp"),
    ("fast_logf", "log"),
    ("fast_log2f", "log2"),
):
    _op(_name, _kind)
_op("fast_dividef", "div", 2)
_library("fast_exp10f", c_name="exp10")
_library("fast_log10f", c_name="log10")
_library("fast_tanf", c_name="tan")
_library("fast_tanhf", c_name="tanh")
_library("fast_powf", 2, "pow")


def _mixed(name: str, c_function: str, int_first: bool) -> None:
    """A C function of one float and one int."""

    def emit(s: S, a: Any, b: Any) -> tensor:
        number, whole = (b, a) if int_first else (a, b)
        x, n = _float(number, name, s), _int(whole, name, s)
        x, n = s.broadcast(x, n, name)
        return _libm(c_function, [n, x] if int_first else [x, n], x.dtype, s)

    _define(name, 2, f"C's ``{c_function}``.", emit)


for _name in ("ldexp", "scalbn"):
    _mixed(_name, _name, False)
for _name in ("jn", "yn"):
    _mixed(_name, _name, True)


# Formulas -----------------------------------------------------------------------------------------------------------


def _formula(name: str, count: int, doc: str) -> Callable[[Callable[..., Any]], None]:
    """Registers a function of float tensors of one type and shape."""

    def register(emit: Callable[..., Any]) -> None:
        _define(name, count, doc, lambda s, *args: emit(s, *_floats(args, name, s)))

    return register


def _norm(s: S, *xs: tensor) -> tensor:
    """sqrt(sum of squares), scaled against overflow by repeated hypot."""
    total = xs[0]
    for x in xs[1:]:
        total = _libm("hypot", [total, x], total.dtype, s)
    return total


def _reciprocal(s: S, x: tensor) -> tensor:
    return s.binary("div", 1.0, x, "reciprocal")


def _unary(s: S, kind: str, x: tensor) -> tensor:
    return tensor(s.op(kind, [x.handle], x.type.ir), x.type)


_formula("norm3d", 3, "sqrt(a*a + b*b + c*c) without undue overflow.")(_norm)
_formula("norm4d", 4, "sqrt(a*a + b*b + c*c + d*d) without undue overflow.")(_norm)
_formula("rhypot", 2, "1 / hypot(a, b).")(lambda s, *xs: _reciprocal(s, _norm(s, *xs)))
_formula("rnorm3d", 3, "1 / norm3d(a, b, c).")(lambda s, *xs: _reciprocal(s, _norm(s, *xs)))
_formula("rnorm4d", 4, "1 / norm4d(a, b, c, d).")(lambda s, *xs: _reciprocal(s, _norm(s, *xs)))
_formula("rcbrt", 1, "1 / cbrt(x).")(lambda s, x: _reciprocal(s, _libm("cbrt", [x], x.dtype, s)))
_formula("rcp_rn", 1, "1 / x, correctly rounded.")(_reciprocal)
_formula("rsqrt_rn", 1, "1 / sqrt(x).")(lambda s, x: _unary(s, "rsqrt", x))


for _special in (
    special.erfcx,
    special.erfinv,
    special.erfcinv,
    special.normcdfinv,
    special.cyl_bessel_i0,
    special.cyl_bessel_i1,
):
    _formula(_special.__name__, 1, _special.__doc__ or "")(_special)


@_formula("saturatef", 1, "x limited to 0..1; NaN gives 0.")
def _saturate(s: S, x: tensor) -> tensor:
    return s.min_max("min", s.min_max("max", x, 0.0, "saturatef", False), 1.0, "saturatef", False)


@_formula("normcdf", 1, "The standard normal distribution function, erfc(-x / sqrt(2)) / 2.")
def _normcdf(s: S, x: tensor) -> tensor:
    return s.mul(_libm("erfc", [s.mul(x, -0.7071067811865476)], x.dtype, s), 0.5)


def _of_half_turns(name: str, kind: str, doc: str) -> None:
    """sin or cos of pi * x, exact at whole numbers: x is first reduced to -1..1."""

    def emit(s: S, x: tensor) -> tensor:
        # x - 2 * rint(x / 2) is exact.
        turns = _libm("rint", [s.mul(x, 0.5)], x.dtype, s)
        rest = s.sub(x, s.mul(turns, 2.0))
        if kind == "sin":
            # sin(pi r) = sin(pi (1 - r)) keeps the argument within a quarter turn, so that whole numbers give 0.
            size = _unary(s, "abs", rest)
            folded = s.select(s.compare("gt", size, 0.5, name), s.sub(1.0, size), size)
            return _libm("copysign", [_unary(s, "sin", s.mul(folded, 3.141592653589793)), rest], x.dtype, s)
        size = s.sub(0.5, _unary(s, "abs", rest))
        return _unary(s, "sin", s.mul(size, 3.141592653589793))

    _formula(name, 1, doc)(emit)


_of_half_turns("sinpi", "sin", "sin(pi * x).")
_of_half_turns("cospi", "cos", "cos(pi * x).")


# Integers -----------------------------------------------------------------------------------------------------------


def _unsigned(x: tensor, s: S) -> tensor:
    return s.bitcast(x, dt.get_int_dtype(x.dtype.int_bitwidth, False))


def _population(x: tensor, s: S) -> tensor:
    """Set bits of unsigned integers, in parallel sums of 2, 4, 8 and more bits."""
    width = x.dtype.int_bitwidth
    ones = (1 << width) - 1
    x = s.sub(x, s.bitwise("and", s.shift("shr", x, 1, "popc"), ones // 3, "popc"))
    low = ones // 5
    x = s.add(s.bitwise("and", x, low, "popc"), s.bitwise("and", s.shift("shr", x, 2, "popc"), low, "popc"))
    x = s.bitwise("and", s.add(x, s.shift("shr", x, 4, "popc")), ones // 17, "popc")
    return s.shift("shr", s.mul(x, ones // 255), width - 8, "popc")


def _smeared(x: tensor, s: S) -> tensor:
    """Every bit below the highest set one set too."""
    step = 1
    while step < x.dtype.int_bitwidth:
        x = s.bitwise("or", x, s.shift("shr", x, step, "clz"), "clz")
        step *= 2
    return x


def _integer(name: str, count: int, doc: str, wide: bool = False) -> Callable[[Callable[..., Any]], None]:
    """Registers a function of integers of 32 bits (or 64 when ``wide``), brought to one type and shape."""

    def register(emit: Callable[..., Any]) -> None:
        def call(s: S, *args: Any) -> tensor:
            values = [_int(a, name, s, wide) for a in args]
            common = values[0].dtype
            for value in values[1:]:
                common = s.promoted(common, value.dtype, False, name)
            return emit(s, *s.broadcast_all([s.cast(v, common) for v in values], name))

        _define(name, count, doc, call)

    return register


@_integer("popc", 1, "How many bits are set, as int32.", True)
def _popc(s: S, x: tensor) -> tensor:
    return s.cast(_population(_unsigned(x, s), s), dt.int32)


@_integer("clz", 1, "How many leading bits are 0, as int32.", True)
def _clz(s: S, x: tensor) -> tensor:
    return s.cast(_population(s.invert(_smeared(_unsigned(x, s), s)), s), dt.int32)


@_integer("ffs", 1, "The place of the lowest set bit, from 1; 0 when there is none. As int32.", True)
def _ffs(s: S, x: tensor) -> tensor:
    u = _unsigned(x, s)
    below = s.bitwise("and", s.invert(u), s.sub(u, 1), "ffs")  # the trailing zeros
    place = s.add(s.cast(_population(below, s), dt.int32), 1)
    return s.select(s.compare("eq", u, 0, "ffs"), s.constant(0, place.type), place)


@_integer("brev", 1, "The bits in reverse order.", True)
def _brev(s: S, x: tensor) -> tensor:
    width, element = x.dtype.int_bitwidth, x.dtype
    u = _unsigned(x, s)
    step = 1
    while step < width:
        mask = ((1 << width) - 1) // ((1 << step) + 1)
        high = s.bitwise("and", s.shift("shr", u, step, "brev"), mask, "brev")
        u = s.bitwise("or", high, s.shift("shl", s.bitwise("and", u, mask, "brev"), step, "brev"), "brev")
        step *= 2
    return s.bitcast(u, element)


@_integer(
    "byte_perm",
    3,
    "Four bytes chosen from (arg1:arg0) by the low three bits of each nibble of arg2; bit 3 replicates the sign.",
)
def _byte_perm(s: S, x: tensor, y: tensor, choice: tensor) -> tensor:
    element = x.dtype
    both = s.bitwise(
        "or",
        s.cast(_unsigned(x, s), dt.uint64),
        s.shift("shl", s.cast(_unsigned(y, s), dt.uint64), 32, "byte_perm"),
        "byte_perm",
    )
    result = None
    for i in range(4):
        nibble = s.bitwise("and", s.shift("shr", _unsigned(choice, s), 4 * i, "byte_perm"), 15, "byte_perm")
        bits = s.shift("shl", s.cast(s.bitwise("and", nibble, 7, "byte_perm"), dt.uint64), 3, "byte_perm")
        byte = s.cast(s.bitwise("and", s.shift("shr", both, bits, "byte_perm"), 255, "byte_perm"), dt.uint32)
        sign = s.select(s.compare("ge", byte, 128, "byte_perm"), s.constant(255, byte.type), s.constant(0, byte.type))
        byte = s.select(s.compare("ge", nibble, 8, "byte_perm"), sign, byte)
        part = s.shift("shl", byte, 8 * i, "byte_perm")
        result = part if result is None else s.bitwise("or", result, part, "byte_perm")
    assert result is not None
    return s.bitcast(result, element)


@_integer("mulhi", 2, "The upper half of the double-width product.", True)
def _mulhi(s: S, x: tensor, y: tensor) -> tensor:
    return tensor(s.op("mulhi", [x.handle, y.handle], x.type.ir), x.type)


@_integer("mul24", 2, "The product of the low 24 bits of each.")
def _mul24(s: S, x: tensor, y: tensor) -> tensor:
    a, b = (s.shift("shr", s.shift("shl", v, 8, "mul24"), 8, "mul24") for v in (x, y))
    return s.mul(a, b)


@_integer("hadd", 2, "(a + b) / 2 rounded down, without overflow.")
def _hadd(s: S, x: tensor, y: tensor) -> tensor:
    return s.add(s.bitwise("and", x, y, "hadd"), s.shift("shr", s.bitwise("xor", x, y, "hadd"), 1, "hadd"))


@_integer("rhadd", 2, "(a + b + 1) / 2 rounded down, without overflow.")
def _rhadd(s: S, x: tensor, y: tensor) -> tensor:
    return s.sub(s.bitwise("or", x, y, "rhadd"), s.shift("shr", s.bitwise("xor", x, y, "rhadd"), 1, "rhadd"))


def _sad(s: S, a: Any, b: Any, c: Any) -> tensor:
    x, y = s.pair(_int(a, "sad", s), _int(b, "sad", s), "sad")
    difference = s.sub(s.min_max("max", x, y, "sad", False), s.min_max("min", x, y, "sad", False))
    return s.bitcast(s.add(_unsigned(difference, s), _unsigned(_int(c, "sad", s), s)), x.dtype)


_define("sad", 3, "|a - b| + c.", _sad)


def _absolute(s: S, x: Any) -> tensor:
    return core_math.abs(x, _semantic=s)


_define("abs", 1, "Absolute value.", _absolute)


# Conversions --------------------------------------------------------------------------------------------------------

_TYPES = {
    "double": dt.float64,
    "float": dt.float32,
    "int": dt.int32,
    "uint": dt.uint32,
    "ll": dt.int64,
    "ull": dt.uint64,
}
_ROUND = {"rn": "rint", "rd": "floor", "ru": "ceil"}


def _conversion(source: str, target: str, mode: str) -> None:
    """float -> integer, integer -> float and float64 -> float32 with any rounding."""
    name, a, b = f"{source}2{target}_{mode}", _TYPES[source], _TYPES[target]

    def emit(s: S, x: Any) -> tensor:
        value = s.cast(s.to_tensor(unwrap(x), name), a)
        if b.is_int():
            if mode == "rn":
                value = _libm("rint", [value], a, s)
            elif mode != "rz":
                value = _unary(s, _ROUND[mode], value)
            return s.cast(value, b)
        exact = a.is_int() and a.int_bitwidth <= b.fp_mantissa_width
        if (not exact and mode not in ("rn", "rz")) or (mode == "rz" and a.is_int() and not exact):
            return _libm(name, [value], b, s)
        return s.cast(value, b, "rtz" if mode == "rz" and not exact else None)

    _define(name, 1, f"{source} to {target}, rounding mode {mode}.", emit)


for _source, _target in (
    ("double", "int"),
    ("double", "uint"),
    ("double", "ll"),
    ("double", "ull"),
    ("double", "float"),
    ("float", "int"),
    ("float", "uint"),
    ("float", "ll"),
    ("float", "ull"),
    ("int", "float"),
    ("uint", "float"),
    ("ll", "float"),
    ("ull", "float"),
    ("ll", "double"),
    ("ull", "double"),
):
    for _mode in ("rd", "rn", "ru", "rz"):
        _conversion(_source, _target, _mode)
_conversion("int", "double", "rn")
_conversion("uint", "double", "rn")


def _reinterpret(name: str, source: dt.dtype, target: dt.dtype) -> None:
    _define(
        name,
        1,
        f"The bits of {source} as {target}.",
        lambda s, x: s.bitcast(s.cast(s.to_tensor(unwrap(x), name), source), target),
    )


for _name, _source_type, _target_type in (
    ("double_as_longlong", dt.float64, dt.int64),
    ("longlong_as_double", dt.int64, dt.float64),
    ("float_as_int", dt.float32, dt.int32),
    ("float_as_uint", dt.float32, dt.uint32),
    ("int_as_float", dt.int32, dt.float32),
    ("uint_as_float", dt.uint32, dt.float32),
):
    _reinterpret(_name, _source_type, _target_type)


def _high_word(s: S, x: Any) -> tensor:
    bits = s.bitcast(s.cast(s.to_tensor(unwrap(x), "double2hiint"), dt.float64), dt.uint64)
    return s.bitcast(s.cast(s.shift("shr", bits, 32, "double2hiint"), dt.uint32), dt.int32)


def _low_word(s: S, x: Any) -> tensor:
    bits = s.bitcast(s.cast(s.to_tensor(unwrap(x), "double2loint"), dt.float64), dt.uint64)
    return s.bitcast(s.cast(bits, dt.uint32), dt.int32)


def _join_words(s: S, high: Any, low: Any) -> tensor:
    a, b = (_unsigned(_int(v, "hiloint2double", s), s) for v in (high, low))
    a, b = s.broadcast(s.cast(a, dt.uint64), s.cast(b, dt.uint64), "hiloint2double")
    return s.bitcast(s.bitwise("or", s.shift("shl", a, 32, "hiloint2double"), b, "hiloint2double"), dt.float64)


_define("double2hiint", 1, "The high 32 bits of a float64 as int32.", _high_word)
_define("double2loint", 1, "The low 32 bits of a float64 as int32.", _low_word)
_define("hiloint2double", 2, "The float64 of two 32-bit halves, high first.", _join_words)


for _base, _count in (("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("fma", 3), ("sqrt", 1), ("rcp", 1)):
    for _mode in ("rd", "ru", "rz"):
        _library(f"{_base}_{_mode}", _count)


def _rcp64h(s: S, x: Any) -> tensor:
    """PTX ISA "rcp.approx.ftz.f64": of the high words, with 20 bits of mantissa."""
    name = "rcp64h"
    value = s.cast(s.to_tensor(unwrap(x), name), dt.float64)

    def high(v: tensor) -> tensor:
        bits = s.bitwise("and", s.bitcast(v, dt.uint64), 0xFFFFFFFF00000000, name)
        exponent = s.bitwise("and", bits, 0x7FF0000000000000, name)
        sign = s.bitwise("and", bits, 0x8000000000000000, name)
        return s.bitcast(s.select(s.compare("eq", exponent, 0, name), sign, bits), dt.float64)

    result = high(s.binary("div", 1.0, high(value), name))
    return s.select(s.compare("ne", value, value, name), value, result)


_define(
    "rcp64h", 1,
    "A rough 1 / x of float64: the low 32 bits of x count as 0, those of the result are 0, and denormals are zeros.",
    _rcp64h,
)  # fmt: skip

del _special, _name, _kind, _source, _target, _mode, _source_type, _target_type, _base, _count
