"""The op table of the tile IR: every op, once.

Builder, printer, parser, verifier, the reference page and the lowering dispatch are derived from these rows. A row's
example is ``(arguments) => ops``; every example is parsed, verified and printed back by the tests.

Conventions. Integer ops wrap. ``div`` and ``rem`` of integers truncate toward zero; a zero divisor counts as 1. Shift
amounts are read as unsigned; from the width on, the result is 0, of ``shr`` of signed types the sign. Signedness is in
the type: ``shr`` of ``u32`` is logical. Optional operands are trailing, so their number tells which are there. A scalar
is a value of rank 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import table as t
from .table import Attr, IRError, Operand, OpInfo
from .types import (
    DescriptorType,
    PointerType,
    ScalarType,
    SharedType,
    TensorType,
    element_of,
    i32,
    shape_of,
    u8,
    u64,
    with_shape,
)

if TYPE_CHECKING:
    from .core import Block, Op

OPS: dict[str, OpInfo] = {}
_group = ""


def _op(kind: str, meaning: str, *operands: Operand, effects: Iterable[str] = (), **fields: Any) -> None:
    stages = frozenset(fields.pop("stages", ("tile", "layout")))
    OPS[kind] = OpInfo(
        kind, meaning, operands, effects=frozenset(effects), stages=stages, group=_group, **fields
    )


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise IRError(message)


def _types(values: Iterable[Any]) -> list[Any]:
    return [v.type for v in values]


def _listing(types: Iterable[Any]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def _check_yields(region: Block, types: list[Any], what: str, terminator: str = "yield") -> None:
    end = region.terminator
    given = _types(end.operands[1:] if terminator == "condition" else end.operands)
    _check(end.kind == terminator, f"{what} must end with {terminator}, not {end.kind}")
    _check(given == types, f"{what} ends with {_listing(given)}, expected {_listing(types)}")


# Constants and shapes -----------------------------------------------------------------------------------------------
_group = "Constants and shapes"


def _check_constant(op: Op) -> None:
    element, value = element_of(op.results[0].type), op.attrs["value"]
    _check(not isinstance(op.results[0].type, DescriptorType), "a descriptor cannot be a constant")
    if isinstance(element, PointerType):
        _check(value == 0 and not isinstance(value, bool), f"a pointer constant must be 0, got {value!r}")
    elif element.is_float:
        _check(isinstance(value, float), f"a constant of {element} must be a float, got {value!r}")
    elif element.is_bool:
        _check(isinstance(value, bool), f"a constant of i1 must be true or false, got {value!r}")
    else:
        low, high = (-(1 << element.bits - 1), 1 << element.bits - 1) if element.is_signed else (0, 1 << element.bits)
        fits = isinstance(value, int) and not isinstance(value, bool) and low <= value < high
        _check(fits, f"constant {value!r} does not fit {element}")


def _check_splat(op: Op) -> None:
    source, result = op.operands[0].type, op.results[0].type
    _check(isinstance(result, TensorType) and element_of(result) == source, f"cannot splat {source} to {result}")


def _check_broadcast(op: Op) -> None:
    source, result = op.operands[0].type, op.results[0].type
    a, b = shape_of(source), shape_of(result)
    fits = len(a) == len(b) and all(x in (1, y) for x, y in zip(a, b, strict=True))
    _check(fits and element_of(source) == element_of(result), f"cannot broadcast {source} to {result}")


def _check_reshape(op: Op) -> None:
    source, result = op.operands[0].type, op.results[0].type
    sizes = [1, 1]
    for k, type in enumerate((source, result)):
        for n in shape_of(type):
            sizes[k] *= n
    _check(sizes[0] == sizes[1] and element_of(source) == element_of(result), f"cannot reshape {source} to {result}")


def _arange_type(types: Any, attrs: dict[str, Any]) -> list[Any]:
    _check(attrs["end"] > attrs["start"], f"arange needs end > start, got {attrs['start']} and {attrs['end']}")
    return [with_shape((attrs["end"] - attrs["start"],), i32)]


def _check_axis(op: Op) -> None:
    axis, rank = op.attrs["axis"], len(shape_of(op.operands[0].type))
    _check(0 <= axis < rank, f"axis {axis} is outside a tensor of rank {rank}")


def _check_histogram(op: Op) -> None:
    result = op.results[0].type
    _check(len(shape_of(op.operands[0].type)) == 1, "histogram takes a tensor of rank 1")
    fits = shape_of(result) == (op.attrs["bins"],) and element_of(result) == i32
    _check(fits, f"histogram gives {op.attrs['bins']}xi32, not {result}")
    if len(op.operands) > 1:
        _check(shape_of(op.operands[1].type) == shape_of(op.operands[0].type), "mask and input differ in shape")


_op("constant", "A known number; as a tensor, the same number everywhere. Pointers: 0 is null.",
    attrs={"value": Attr("number")}, check=_check_constant, results=1,
    example="() => %r = constant {value = 1.5} : 4xf32")
_op("arange", "start, start + 1, ..., end - 1.", attrs={"start": Attr("int"), "end": Attr("int")}, infer=_arange_type,
    example="() => %r = arange {start = 0, end = 12} : 12xi32")
_op("splat", "A tensor that holds one scalar everywhere.", Operand("value", t.SCALAR), check=_check_splat, results=1,
    example="(%x: f32) => %r = splat %x : 4x8xf32")
_op("broadcast", "Axes of size 1 are repeated to the result's sizes; the rank stays.", Operand("value", t.TENSOR),
    check=_check_broadcast, results=1, example="(%x: 4x1xf32) => %r = broadcast %x : 4x8xf32")
_op("expand_dims", "Puts in an axis of size 1.", Operand("value", t.DATA), attrs={"axis": Attr("int")},
    infer=t.expand_rule,
    example="(%x: 4xf32) => %r = expand_dims %x {axis = 1} : 4x1xf32")
_op("reshape", "The same elements, in row-major order, in another shape. With `reorder` any order will do.",
    Operand("value", t.DATA), attrs={"reorder": Attr("bool", False)}, check=_check_reshape, results=1,
    example="(%x: 4x6xf32) => %r = reshape %x : 3x8xf32")
_op("permute", "Axis i of the result is axis order[i] of the operand.", Operand("value", t.TENSOR),
    attrs={"order": Attr("ints")}, infer=t.permute_rule,
    example="(%x: 4x6xf32) => %r = permute %x {order = [1, 0]} : 6x4xf32")
_op("flip", "Reverses one axis.", Operand("value", t.TENSOR), attrs={"axis": Attr("int")}, infer=t.like(0),
    check=_check_axis, example="(%x: 4x6xf32) => %r = flip %x {axis = 1} : 4x6xf32")
_op("join", "Two tensors side by side along a new last axis.", Operand("first", t.DATA), Operand("second", t.DATA),
    infer=t.join_rule,
    example="(%x: 4xf32, %y: 4xf32) => %r = join %x, %y : 4x2xf32")
_op("split", "The two halves of a last axis of size 2; undoes join.", Operand("value", t.TENSOR), infer=t.split_rule,
    example="(%x: 4x2xf32) => %a, %b = split %x : 4xf32, 4xf32")
_op("cat", "The second tensor after the first along an axis.", Operand("first", t.TENSOR), Operand("second", t.TENSOR),
    attrs={"axis": Attr("int")}, infer=t.cat_rule,
    example="(%x: 4xf32, %y: 2xf32) => %r = cat %x, %y {axis = 0} : 6xf32")
_op("gather", "result[..., i, ...] = source[..., index[..., i, ...], ...] along an axis. Indices must be in range.",
    Operand("source", t.TENSOR), Operand("index", t.INT), attrs={"axis": Attr("int")}, infer=t.gather_rule,
    example="(%x: 8xf32, %i: 4xi32) => %r = gather %x, %i {axis = 0} : 4xf32")
_op("sort", "Sorts along an axis; NaN counts as larger than every number.", Operand("value", t.NUM),
    attrs={"axis": Attr("int"), "descending": Attr("bool", False)}, infer=t.like(0), check=_check_axis,
    example="(%x: 4x8xf32) => %r = sort %x {axis = 1, descending = true} : 4x8xf32")
_op("histogram", "How many of the elements (where the mask holds) equal 0, 1, ..., bins - 1; others are not counted.",
    Operand("value", t.INT), Operand("mask", t.BOOL, "optional"), attrs={"bins": Attr("int")}, check=_check_histogram,
    results=1,
    example="(%x: 64xi32) => %r = histogram %x {bins = 16} : 16xi32")

# Arithmetic ---------------------------------------------------------------------------------------------------------
_group = "Arithmetic"


def _binary(kind: str, meaning: str, constraint: t.Constraint, type: str, **fields: Any) -> None:
    fields.setdefault("infer", t.all_same)
    operands = Operand("lhs", constraint), Operand("rhs", constraint)
    result = "4xi1" if fields["infer"] is t.boolean_like else f"4x{type}"
    attrs = ' {pred = "lt"}' if kind == "cmp" else ""
    example = f"(%x: 4x{type}, %y: 4x{type}) => %r = {kind} %x, %y{attrs} : {result}"
    _op(kind, meaning, *operands, elementwise=True, example=example, **fields)


_NAN = {"propagate_nan": Attr("bool", False)}
_binary("add", "Sum.", t.NUM, "f32", commutative=True)
_binary("sub", "Difference.", t.NUM, "i32")
_binary("mul", "Product.", t.NUM, "f32", commutative=True)
_binary("div", "Quotient; integers truncate toward zero. `approx` permits a relative error of 2^-22 in f32.", t.NUM,
        "i32", attrs={"approx": Attr("bool", False)})
_binary("rem", "Remainder with the sign of the dividend, as C's % and fmod.", t.NUM, "i32")
_binary("mulhi", "The high half of the double-width product.", t.INT, "u32", commutative=True)
_binary("and", "Bitwise and.", t.INT, "i32", commutative=True)
_binary("or", "Bitwise or.", t.INT, "i32", commutative=True)
_binary("xor", "Bitwise exclusive or.", t.INT, "i32", commutative=True)
_binary("shl", "Shift left.", t.INT, "i32")
_binary("shr", "Shift right: logical for unsigned types, arithmetic for signed ones.", t.INT, "u32")
_binary("min", "The smaller one. A NaN loses against a number unless propagate_nan.", t.NUM, "f32", attrs=_NAN,
        commutative=True)
_binary("max", "The larger one. A NaN loses against a number unless propagate_nan.", t.NUM, "f32", attrs=_NAN,
        commutative=True)
_binary("cmp", "Comparison to i1; with a NaN only ne is true.", t.DATA, "f32", infer=t.boolean_like,
        attrs={"pred": Attr("str", choices=("eq", "ne", "lt", "le", "gt", "ge"))})
_op("neg", "Sign change; integers wrap.", Operand("value", t.NUM), infer=t.like(0), elementwise=True,
    example="(%x: f32) => %r = neg %x : f32")
_op("fma", "a * b + c with one rounding.", Operand("a", t.FLOAT), Operand("b", t.FLOAT), Operand("c", t.FLOAT),
    infer=t.all_same, elementwise=True, example="(%x: 4xf32) => %r = fma %x, %x, %x : 4xf32")
_op("select", "`yes` where the condition holds, else `no`. The condition may be a scalar.", Operand("condition",
    t.BOOL),
    Operand("yes", t.DATA), Operand("no", t.DATA), infer=t.select_rule, elementwise=True,
    example="(%c: 4xi1, %x: 4xf32) => %r = select %c, %x, %x : 4xf32")


def _check_cast(op: Op) -> None:
    source, result = op.operands[0].type, op.results[0].type
    _check(shape_of(source) == shape_of(result), f"cast keeps the shape; got {source} to {result}")
    _check(isinstance(element_of(result), ScalarType), f"cast gives a number, not {result}; bitcast changes pointers")


def _check_bitcast(op: Op) -> None:
    source, result = op.operands[0].type, op.results[0].type
    bits = element_of(source).bits, element_of(result).bits
    fits = shape_of(source) == shape_of(result) and bits[0] == bits[1]
    _check(fits, f"bitcast keeps shape and width; got {source} to {result}")


_op("cast", "Value conversion. To float: nearest-even, or toward zero with rtz. Float to integer truncates; integers "
    "keep the low bits; to i1 asks != 0.", Operand("value", t.NUM),
    attrs={"rounding": Attr("str", "rtne", choices=("rtne", "rtz"))}, check=_check_cast, results=1, elementwise=True,
    example='(%x: 4xf32) => %r = cast %x {rounding = "rtz"} : 4xf16')
_op("bitcast", "The same bits as another type of the same width; pointers count as 64 bits.", Operand("value", t.DATA),
    check=_check_bitcast, results=1, elementwise=True, example="(%x: 4xf32) => %r = bitcast %x : 4xu32")

# Mathematical functions ---------------------------------------------------------------------------------------------
_group = "Mathematical functions"

UNARY_MATH = {
    "exp": "e to the power x.",
    "exp2": "2 to the power x; denormal results are kept, or with `flush` may be zero.", "log": "Natural logarithm.",
    "log2": "Binary logarithm.", "sin": "Sine of radians.", "cos": "Cosine of radians.",
    "sqrt": "Square root; may differ from the correctly rounded one in the last place.",
    "sqrt_rn": "Square root, correctly rounded.", "rsqrt": "1 / sqrt(x).", "erf": "Error function.",
    "floor": "Largest integral value not above x.", "ceil": "Smallest integral value not below x.",
}
for _kind, _meaning in UNARY_MATH.items():
    _op(_kind, _meaning, Operand("value", t.FLOAT), infer=t.like(0), elementwise=True,
        attrs={"flush": Attr("bool", False)} if _kind == "exp2" else {},
        example=f"(%x: 4xf32) => %r = {_kind} %x : 4xf32")
_op("abs", "Absolute value; the smallest signed integer stays itself.", Operand("value", t.NUM), infer=t.like(0),
    elementwise=True, example="(%x: 4xi32) => %r = abs %x : 4xi32")


def _check_elementwise_call(op: Op) -> None:
    shapes = {shape_of(v.type) for v in (*op.operands, *op.results)}
    _check(len(shapes) <= 1, f"operands and results differ in shape: {_listing(_types(op.operands))}")


_op("libm", "A function of the mathematical library by its C name without suffix (tanh, pow, atan2, ...); also isnan, "
    "isinf, signbit, which give i32.", Operand("values", t.NUM, "many"), attrs={"function": Attr("str")},
    check=_check_elementwise_call, results=1, elementwise=True,
    example='(%x: 4xf32, %y: 4xf32) => %r = libm %x, %y {function = "pow"} : 4xf32')
_op("extern", "A function of a bitcode library, applied to each element.", Operand("values", t.ANY, "many"),
    attrs={"symbol": Attr("str"), "library": Attr("str", ""), "path": Attr("str", ""), "pure": Attr("bool", True)},
    check=_check_elementwise_call, results=1, elementwise=True, effects=("read", "write"),
    example='(%x: 4xf32) => %r = extern %x {symbol = "__nv_tanhf", library = "libdevice"} : 4xf32')
_op("inline_asm", "Target assembly, applied to `pack` elements at a time.", Operand("values", t.ANY, "many"),
    attrs={"text": Attr("str"), "constraints": Attr("str"), "pack": Attr("int", 1), "pure": Attr("bool", True)},
    check=_check_elementwise_call, elementwise=True, effects=("read", "write"),
    example='(%x: 4xi32) => %r = inline_asm %x {text = "mov $0, $1;", constraints = "=r,r"} : 4xi32')

# Memory -------------------------------------------------------------------------------------------------------------
_group = "Memory"
_CACHE = {
    "cache": Attr("str", "", choices=("", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt")),
    "eviction": Attr("str", "", choices=("", "evict_first", "evict_last", "evict_normal")),
}
_SYNC = {
    "sem": Attr("str", "acq_rel", choices=("relaxed", "acquire", "release", "acq_rel")),
    "scope": Attr("str", "gpu", choices=("cta", "gpu", "sys")),
}
_POINTER, _MASK = Operand("pointer", t.PTR), Operand("mask", t.BOOL, "optional")

_op("addptr", "Pointer moved by `offset` pointees.", Operand("pointer", t.PTR), Operand("offset", t.INT),
    infer=t.addptr_rule, elementwise=True, example="(%p: 4xptr<f32>, %i: 4xi32) => %r = addptr %p, %i : 4xptr<f32>")
_op("load", "Reads where the mask holds (everywhere without one); elsewhere gives `other`, or 0 without it.", _POINTER,
    _MASK, Operand("other", t.ANY, "optional"), attrs={**_CACHE, "volatile": Attr("bool", False)}, infer=t.load_rule,
    effects=("read",), example="(%p: 4xptr<f32>, %m: 4xi1) => %r = load %p, %m : 4xf32")
_op("store", "Writes where the mask holds. Every load before it in the program has read the old contents.", _POINTER,
    Operand("value"), _MASK, attrs=_CACHE, infer=t.store_rule, effects=("write",),
    example="(%p: 4xptr<f32>, %x: 4xf32) => store %p, %x")
_op("atomic_rmw", "Atomic read-modify-write where the mask holds; gives the old values (0 where it does not).",
    _POINTER,
    Operand("value"), _MASK, attrs={"op": Attr("str", choices=("add", "max", "min", "and", "or", "xor", "xchg")),
    **_SYNC},
    infer=t.atomic_rule, effects=("read", "write"),
    example='(%p: ptr<f32>, %x: f32) => %r = atomic_rmw %p, %x {op = "add"} : f32')
_op("atomic_cas", "Atomic compare and swap; gives the old values.", _POINTER, Operand("expected"), Operand("value"),
    attrs=_SYNC, infer=t.cas_rule, effects=("read", "write"),
    example="(%p: ptr<i32>, %x: i32) => %r = atomic_cas %p, %x, %x : i32")
_op("atomic_poll", "Waits until the pointee equals `expected`; false when `timeout` nanoseconds went by first. Reads "
    "at least once. Without a timeout, a back end that can tell that nobody will write may end the launch.",
    _POINTER, Operand("expected", t.INT), Operand("timeout", t.INT, "optional"),
    attrs={"sem": Attr("str", "acquire", choices=("relaxed", "acquire")), "scope": _SYNC["scope"]}, infer=t.poll_rule,
    effects=("read", "write", "stop"), example="(%p: ptr<i32>, %x: i32, %t: i64) => %r = atomic_poll %p, %x, %t : i1")


def _check_make_desc(op: Op) -> None:
    type = op.results[0].type
    if not isinstance(type, DescriptorType):
        raise IRError(f"make_desc gives a descriptor, not {type}")
    rank = len(type.block.shape)
    _check(len(op.operands) == 1 + 2 * rank, f"make_desc of rank {rank} takes a base, {rank} sizes and {rank} strides")
    pointer = op.operands[0].type
    fits = isinstance(pointer, PointerType) and pointer.pointee == type.block.element
    _check(fits, f"descriptor elements are {type.block.element}, the base is {pointer}")


def _block_of(types: Any, attrs: dict[str, Any]) -> list[Any]:
    return [types[0].block]


def _desc_store_rule(types: Any, attrs: dict[str, Any]) -> list[Any]:
    block, value = types[:2]
    fits = block.block.shape == shape_of(value) and block.block.element == element_of(value)
    _check(fits, f"cannot store {types[1]} through {types[0]}")
    return []


_op("make_desc", "Descriptor of a global tensor: base, sizes, strides (in elements). `regular` promises that the base "
    "and all strides but the last are multiples of 16 bytes, the last stride is 1 and sizes are 1 to 2^31 - 1.",
    Operand("base", t.PTR), Operand("sizes_and_strides", t.SCALAR_INT, "many"),
    attrs={"padding": Attr("str", "zero", choices=("zero", "nan")), "regular": Attr("bool", False)},
    check=_check_make_desc, results=1,
    example="(%p: ptr<f32>, %n: i32, %s: i64) => %r = make_desc %p, %n, %n, %s, %s : desc<8x16xf32>")
_op("desc_load", "Reads one box at the given element offsets; outside the tensor gives the padding.",
    Operand("descriptor", t.DESC), Operand("offsets", t.SCALAR_INT, "many"), attrs=_CACHE, infer=_block_of,
    effects=("read",), example="(%d: desc<8x16xf32>, %i: i32) => %r = desc_load %d, %i, %i : 8x16xf32")
_op("desc_store", "Writes one box at the given element offsets; outside the tensor nothing is written. `op` other than "
    "store combines atomically with what is there.", Operand("descriptor", t.DESC), Operand("value", t.TENSOR),
    Operand("offsets", t.SCALAR_INT, "many"),
    attrs={"op": Attr("str", "store", choices=("store", "add", "min", "max", "and", "or", "xor", "inc", "dec"))},
    infer=_desc_store_rule, effects=("read", "write"),
    example="(%d: desc<8x16xf32>, %x: 8x16xf32, %i: i32) => desc_store %d, %x, %i, %i")

def _check_convert(op: Op) -> None:
    source, result = op.operands[0].type, op.results[0].type
    fits = shape_of(source) == shape_of(result) and element_of(source) == element_of(result)
    _check(fits, f"convert_layout keeps shape and elements; got {source} to {result}")


_group = "Layouts"
_op("convert_layout", "The same tile, held in another layout.", Operand("value", t.TENSOR), check=_check_convert,
    stages=("layout",), example="(%x: 4x8xf32 #L0) => %r = convert_layout %x : 4x8xf32 #L1")

_group = "Shared memory and asynchronous work"


def _shared_block(op: Op) -> TensorType:
    type = op.operands[0].type
    assert isinstance(type, SharedType)
    return type.block


def _check_shared_tile(op: Op) -> None:
    """The tile that is loaded, stored or pointed to has the shape and elements of one slot."""
    block = _shared_block(op)
    value = (op.results[0] if op.results else op.operands[2]).type
    element = element_of(value)
    element = element.pointee if isinstance(element, PointerType) else element
    fits = shape_of(value) == block.shape and element == block.element
    _check(fits, f"{value} does not fit a slot of {op.operands[0].type}")


def _check_alloc(op: Op) -> None:
    type = op.results[0].type
    _check(isinstance(type, SharedType), f"alloc_shared gives shared memory, not {type}")
    assert isinstance(type, SharedType)
    inner, rank = op.attrs["inner"], len(type.block.shape)
    _check(0 <= inner < rank, f"axis {inner} is outside a tile of rank {rank}")


_SLOT = Operand("slot", t.SCALAR_INT)
_BUFFER = Operand("buffer", t.SHARED)
_LAYOUT_ONLY = ("layout",)
_op("alloc_shared", "Room for tiles in shared memory. `inner` is the axis whose elements lie side by side; rows of 128 "
    "bytes are swizzled so that columns do not meet in banks. In a cluster each block has the part of the tiles that "
    "the bits `block` of its index tell from the others.",
    attrs={"inner": Attr("int"), "block": Attr("ints", None)}, check=_check_alloc,
    effects=("write",), results=1, stages=_LAYOUT_ONLY,
    example="() => %r = alloc_shared {inner = 1} : shared<3 of 16x64xf16>")
_op("async_copy", "Begins to copy a tile from global memory to a slot; where the mask fails the slot gets zeros.",
    _BUFFER, _SLOT,
    Operand("pointer", t.PTR), Operand("mask", t.BOOL, "optional"), infer=t.none, check=_check_shared_tile,
    effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 16x64xf16>, %i: i32, %p: ptr<f16>) => %q = splat %p : 16x64xptr<f16> #L0\n"
    "async_copy %b, %i, %q")
_op("async_commit", "The copies begun since the last commit are one group.", infer=t.none, effects=("write",),
    stages=_LAYOUT_ONLY, example="() => async_commit")
_op("async_wait", "All but the last `pending` groups are there, for all threads of the program.",
    attrs={"pending": Attr("int")}, infer=t.none, effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="() => async_wait {pending = 1}")
_op("shared_load", "A tile read from a slot.", _BUFFER, _SLOT, check=_check_shared_tile, effects=("read",), results=1,
    stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 16x64xf16>, %i: i32) => %r = shared_load %b, %i : 16x64xf16 #L0")
_op("shared_store", "A tile written to a slot, where all threads see it after the op.", _BUFFER, _SLOT,
    Operand("value", t.TENSOR), infer=t.none, check=_check_shared_tile, effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 16x64xf16>, %i: i32, %x: f16) => %y = splat %x : 16x64xf16 #L0\nshared_store %b, %i, %y")


def _check_barriers(op: Op) -> None:
    type = op.results[0].type
    fits = isinstance(type, SharedType) and type.block == TensorType((1,), u64)
    _check(fits, f"alloc_barriers gives shared<n of 1xu64>, not {type}")


def _check_box(op: Op) -> None:
    block, place, before = _shared_block(op), *{"box_load": (4, 7)}.get(op.kind, (2, 4))
    type = op.operands[place].type
    assert isinstance(type, DescriptorType)
    _check(type.block == block, f"boxes of {type} do not fit a slot of {op.operands[0].type}")
    offsets = len(op.operands) - before
    _check(offsets == len(block.shape), f"{op.kind} of rank {len(block.shape)} has {offsets} offsets")


_MAP = Operand("map", t.PTR)
_OFFSETS = Operand("offsets", t.SCALAR_INT, "many")
_op("box_map", "Where the descriptor lies in the form by which the machine copies boxes: what the kernel's argument of "
    "this number holds.", Operand("descriptor", t.DESC), attrs={"argument": Attr("int")},
    infer=lambda types, attrs: [PointerType(u8)], stages=_LAYOUT_ONLY,
    example="(%d: desc<8x16xf32>) => %m = box_map %d {argument = 7} : ptr<u8>")
_op("alloc_barriers", "Barriers in shared memory. A phase of a barrier ends when `copies` copies that name it are "
    "there; every copy begun must be waited for.", attrs={"copies": Attr("int")}, check=_check_barriers,
    effects=("write",), results=1, stages=_LAYOUT_ONLY,
    example="() => %r = alloc_barriers {copies = 2} : shared<3 of 1xu64>")
_op("box_load", "Begins to copy a box to a slot where `wanted` holds; outside the tensor the slot gets the padding. "
    "Barrier `index` tells when it is there.", _BUFFER, _SLOT, Operand("barriers", t.SHARED),
    Operand("index", t.SCALAR_INT), Operand("descriptor", t.DESC), _MAP, Operand("wanted", t.SCALAR_BOOL), _OFFSETS,
    infer=t.none, check=_check_box,
    effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 8x16xf32>, %d: desc<8x16xf32>, %m: ptr<u8>, %i: i32, %w: i1) => "
    "%s = alloc_barriers {copies = 1} : shared<2 of 1xu64>\nbox_load %b, %i, %s, %i, %d, %m, %w, %i, %i")
_op("barrier_wait", "The copies of the barrier's next phase, counted from the last wait, are there for all threads.",
    Operand("barriers", t.SHARED), Operand("index", t.SCALAR_INT), infer=t.none, effects=("read", "write"),
    stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 8x16xf32>, %d: desc<8x16xf32>, %m: ptr<u8>, %i: i32, %w: i1) => "
    "%s = alloc_barriers {copies = 1} : shared<2 of 1xu64>\nbox_load %b, %i, %s, %i, %d, %m, %w, %i, %i\n"
    "barrier_wait %s, %i")
_op("box_copy", "As async_copy, of a box, by all threads: where `wanted` fails and outside the tensor the slot gets "
    "zeros. The tensor's rows and the box's place in them are aligned to 16 bytes.", _BUFFER, _SLOT,
    Operand("descriptor", t.DESC), Operand("wanted", t.SCALAR_BOOL), _OFFSETS, infer=t.none, check=_check_box,
    effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 8x16xf32>, %d: desc<8x16xf32>, %i: i32, %w: i1) => box_copy %b, %i, %d, %w, %i, %i")
_op("box_store", "Writes a slot, which `shared_store` has filled, to a box, or combines it atomically with what is "
    "there; outside the tensor nothing is written.", _BUFFER, _SLOT, Operand("descriptor", t.DESC), _MAP, _OFFSETS,
    attrs={"op": Attr("str", "store", choices=("store", "add", "min", "max", "and", "or", "xor"))}, infer=t.none,
    check=_check_box, effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="(%b: shared<2 of 8x16xf32>, %d: desc<8x16xf32>, %m: ptr<u8>, %i: i32) => box_store %b, %i, %d, %m, %i, %i")


def _check_dot_shared(op: Op) -> None:
    types = op.operands[0].type, op.operands[2].type
    shapes = [type.block.shape if isinstance(type, SharedType) else shape_of(type) for type in types]
    if op.attrs.get("a_transposed"):
        shapes[0] = shapes[0][::-1]
    if op.attrs.get("b_transposed"):
        shapes[1] = shapes[1][::-1]
    acc = shape_of(op.operands[4].type)
    fits = len(acc) == 2 and shapes[0][1] == shapes[1][0] and (shapes[0][0], shapes[1][1]) == acc
    _check(fits, f"a {shapes[0]} x b {shapes[1]} does not give {op.operands[4].type}")


_op("dot_shared", "Begins a x b + acc with b, and a unless it is a tile in registers, in shared memory. The "
    "accumulator must not be touched before dot_wait.", Operand("a"), Operand("a_slot", t.SCALAR_INT),
    Operand("b", t.SHARED), Operand("b_slot", t.SCALAR_INT), Operand("acc", t.NUM),
    attrs={"a_transposed": Attr("bool", False), "b_transposed": Attr("bool", False)}, infer=t.like(4),
    check=_check_dot_shared, effects=("read", "write"), stages=_LAYOUT_ONLY,
    example="(%a: shared<2 of 64x16xf16>, %b: shared<2 of 16x8xf16>, %i: i32, %z: f32) => "
    "%c = splat %z : 64x8xf32 #L0\n%r = dot_shared %a, %i, %b, %i, %c : 64x8xf32 #L0")
_op("dot_wait", "The accumulators as they are when all but the last `pending` products are done.",
    Operand("values", t.TENSOR, "many"),
    attrs={"pending": Attr("int", 0)}, infer=lambda types, attrs: list(types), effects=("read", "write"),
    stages=_LAYOUT_ONLY, example="(%z: f32) => %c = splat %z : 64x8xf32 #L0\n%r = dot_wait %c : 64x8xf32 #L0")

# Matrix product, reduction, scan ------------------------------------------------------------------------------------
_group = "Matrix product, reduction, scan"


def _check_combine(op: Op) -> None:
    elements = [element_of(v.type) for v in op.operands]
    (region,) = op.regions
    given = _types(region.args)
    _check(given == elements * 2, f"combine takes {_listing(given)}, expected {_listing(elements * 2)}")
    _check_yields(region, elements, "combine")


def _check_map(op: Op) -> None:
    (region,) = op.regions
    pack = op.attrs.get("pack", 1)
    expected = [element_of(v.type) for v in op.operands for _ in range(pack)]
    _check(_types(region.args) == expected, f"map region takes {_listing(_types(region.args))}, not "
        f"{_listing(expected)}")
    _check_yields(region, [element_of(r.type) for r in op.results for _ in range(pack)], "map region")


_op("dot", "a x b + acc over the last two axes; a leading axis is a batch. Products and sums are in the accumulator's "
    "type; `precision` permits f32 inputs to be rounded (tf32) or split.", Operand("a", t.NUM), Operand("b", t.NUM),
    Operand("acc", t.NUM),
    attrs={"precision": Attr("str", "ieee", choices=("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")),
           "max_imprecise": Attr("int", 0)}, infer=t.dot_rule,
    example="(%a: 4x3xf16, %b: 3x8xf16, %c: 4x8xf32) => %r = dot %a, %b, %c : 4x8xf32")
_op("dot_scaled", "dot of block-scaled operands; scales (8-bit exponents) follow, one for each 32 elements of K.",
    Operand("a", t.NUM), Operand("b", t.NUM), Operand("acc", t.FLOAT), Operand("scales", t.NUM, "many"),
    attrs={"a_format": Attr("str"), "b_format": Attr("str"), "a_scaled": Attr("bool"), "b_scaled": Attr("bool"),
           "a_k_pack": Attr("bool", True), "b_k_pack": Attr("bool", True), "fast_math": Attr("bool", False)},
    infer=t.like(2), example="(%a: 4x32xf8e4m3, %b: 32x8xf8e4m3, %c: 4x8xf32, %s: 4x1xu8) => "
    '%r = dot_scaled %a, %b, %c, %s {a_format = "e4m3", b_format = "e4m3", a_scaled = true, '
    'b_scaled = false} : 4x8xf32')
_op("reduce", "Combines along an axis, in any order of association; the region gets two groups of elements.",
    Operand("values", t.TENSOR, "many"), attrs={"axis": Attr("int")}, regions=("combine",), infer=t.reduce_rule,
    check=_check_combine, example="(%x: 4x8xf32) => %r = reduce %x {axis = 1} : 4xf32 (%a: f32, %b: f32) {\n"
    "  %s = add %a, %b : f32\n  yield %s\n}")
_op("scan", "Inclusive prefix combination along an axis (from the end with `reverse`); the region gets the earlier "
    "group first.",
    Operand("values", t.TENSOR, "many"), attrs={"axis": Attr("int"), "reverse": Attr("bool", False)},
    regions=("combine",), infer=t.scan_rule, check=_check_combine,
    example="(%x: 8xi32) => %r = scan %x {axis = 0} : 8xi32 (%a: i32, %b: i32) {\n"
    "  %s = add %a, %b : i32\n  yield %s\n}")
_op("map", "Runs a scalar region for each element (for each `pack` elements); control flow inside is allowed.",
    Operand("values", t.TENSOR, "many"), attrs={"pack": Attr("int", 1)}, regions=("body",), check=_check_map,
    example="(%x: 8xf32) => %r = map %x : 8xf32 (%a: f32) {\n  %s = neg %a : f32\n  yield %s\n}")

# Control flow -------------------------------------------------------------------------------------------------------
_group = "Control flow"


def _check_for(op: Op) -> None:
    low, high, step, *inits = op.operands
    (body,) = op.regions
    _check(isinstance(low.type, ScalarType) and low.type.is_integer, f"loop bounds are integers, not {low.type}")
    _check(low.type == high.type == step.type, f"loop bounds differ in type: {low.type}, {high.type}, {step.type}")
    carried = _types(inits)
    _check(_types(body.args) == [low.type, *carried], f"loop body takes {_listing(_types(body.args))}")
    _check(_types(op.results) == carried, f"loop gives {_listing(_types(op.results))}, expected {_listing(carried)}")
    _check_yields(body, carried, "loop body")


def _check_while(op: Op) -> None:
    before, after = op.regions
    _check(_types(before.args) == _types(op.operands), "the before region takes the initial values")
    results = _types(op.results)
    _check(_types(after.args) == results, "the after region takes the loop's results")
    _check_yields(before, results, "before region", "condition")
    _check_yields(after, _types(op.operands), "after region")


def _check_if(op: Op) -> None:
    for region in op.regions:
        _check(not region.args, "the branches of an if take no arguments")
        _check_yields(region, _types(op.results), "branch")


_op("for", "Counts from `low` to `high` (not included) by `step`, downward when step is negative; the region gets the "
    "counter and the carried values. No trip when the range is empty or step is 0. With `in_flight` (laid-out stage) "
    "slots are refilled one trip later, so that a product may still run when its trip ends.",
    Operand("low", t.SCALAR_INT),
    Operand("high", t.SCALAR_INT), Operand("step", t.SCALAR_INT), Operand("inits", t.ANY, "many"), regions=("body",),
    attrs={"num_stages": Attr("int", None), "unroll": Attr("int", None), "flatten": Attr("bool", False),
           "warp_specialize": Attr("bool", False), "disallow_acc_multi_buffer": Attr("bool", False),
           "disable_licm": Attr("bool", False), "in_flight": Attr("bool", False)},
    check=_check_for, example="(%n: i32, %x: 4xf32) => %r = for %n, %n, %n, %x {num_stages = 2} : 4xf32 "
    "(%i: i32, %a: 4xf32) {\n  yield %a\n}")
_op("while", "Runs `before`, which ends with condition; while that holds, `after` runs on its values and yields the "
    "next ones.",
    Operand("inits", t.ANY, "many"), regions=("before", "after"), attrs={"disable_licm": Attr("bool", False)},
    check=_check_while, example="(%n: i32) => %r = while %n : i32 (%a: i32) {\n"
    '  %c = cmp %a, %n {pred = "lt"} : i1\n  condition %c, %a\n} (%b: i32) {\n  yield %b\n}')
_op("if", "One of two branches; both yield the results.", Operand("condition", t.SCALAR_BOOL), regions=("then", "else"),
    check=_check_if, example="(%c: i1, %x: f32, %y: f32) => %r = if %c : f32 () {\n  yield %x\n} () {\n  yield %y\n}")
_op("call", "Calls a function of the module.", Operand("args", t.ANY, "many"), attrs={"callee": Attr("str")},
    effects=("read", "write", "stop"), example="(%x: f32) => %r = call %x {callee = \"example\"} : f32")
_op("yield", "Ends a region with its results.", Operand("values", t.ANY, "many"), infer=t.none, terminator=True)
_op("condition", "Ends the before region of a while.", Operand("condition", t.SCALAR_BOOL),
    Operand("values", t.ANY, "many"), infer=t.none, terminator=True)
_op("return", "Ends a function.", Operand("values", t.ANY, "many"), infer=t.none, terminator=True)

# Program, hints, diagnosis ------------------------------------------------------------------------------------------
_group = "Program, hints, diagnosis"


def _index(types: Any, attrs: dict[str, Any]) -> list[Any]:
    _check(0 <= attrs["axis"] <= 2, f"axis must be 0, 1 or 2, got {attrs['axis']}")
    return [i32]


_op("program_id", "This program's index in the grid.", attrs={"axis": Attr("int")}, infer=_index,
    example="() => %r = program_id {axis = 0} : i32")
_op("num_programs", "The grid's size.", attrs={"axis": Attr("int")}, infer=_index,
    example="() => %r = num_programs {axis = 0} : i32")
_op("hint", "The value itself, with promises for each axis: values are multiples of `divisible`, run in steps of 1 "
    "over groups of `contiguous`, are equal over groups of `constant`.", Operand("value", t.DATA),
    attrs={"divisible": Attr("ints", ()), "contiguous": Attr("ints", ()), "constant": Attr("ints", ())},
    infer=t.like(0), example="(%x: 16xi32) => %r = hint %x {divisible = [16]} : 16xi32")
_op("assume", "A promise that the condition holds.", Operand("condition", t.SCALAR_BOOL), infer=t.none,
    effects=("write",),
    example="(%c: i1) => assume %c")
_op("assert", "Stops the launch with the message if the condition fails anywhere the mask holds.", Operand("condition",
    t.BOOL),
    Operand("mask", t.BOOL, "optional"), attrs={"message": Attr("str")}, infer=t.none, effects=("write", "stop"),
    example='(%c: 4xi1) => assert %c {message = "x is positive"}')
_op("print", "Prints the prefix and every element of each value.", Operand("values", t.ANY, "many"),
    attrs={"prefix": Attr("str"), "hex": Attr("bool", False)}, infer=t.none, effects=("write",),
    example='(%x: 4xf32) => print %x {prefix = "x: "}')
_op("barrier", "All threads of the program meet.", infer=t.none, effects=("read", "write"), example="() => barrier")


def is_pure(op: Op) -> bool:
    """True when the op may be removed if unused and shared with an equal one, its regions included."""
    info = OPS[op.kind]
    if info.effects:
        return op.kind in ("extern", "inline_asm") and bool(op.attrs.get("pure", True))
    if info.terminator:
        return False
    return all(is_pure(inner) for region in op.regions for inner in region.ops[:-1])


def has_effect(op: Op, effect: str) -> bool:
    """True when the op or any op in its regions has the effect."""
    if effect in OPS[op.kind].effects and not (op.kind in ("extern", "inline_asm") and op.attrs.get("pure", True)):
        return True
    return any(has_effect(inner, effect) for region in op.regions for inner in region.ops)

