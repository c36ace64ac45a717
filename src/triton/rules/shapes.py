"""Rules of ops that move elements: uniform tensors become splats of scalars, moves compose, what moves nothing goes."""

from __future__ import annotations

from math import prod

from ..ir.core import Op, Value
from ..ir.ops import OPS
from ..ir.types import TensorType, Type, element_of, shape_of
from .pattern import Result, Rewriter, collector, constant_of, defined_by

RULES, rule = collector()

_MOVES = "splat broadcast expand_dims reshape permute flip"


@rule(
    _MOVES + " sort",
    "moving the elements of a constant or a splat gives a constant or a splat",
    "() => %a = constant {value = 3} : i32\n%r = splat %a : 4xi32",
    "() => %a = constant {value = 3} : 4x1xi32\n%r = broadcast %a : 4x3xi32",
    "(%x: f32) => %a = splat %x : 4xf32\n%r = expand_dims %a {axis = 0} : 1x4xf32",
    "(%x: f32) => %a = splat %x : 4x6xf32\n%r = reshape %a : 8x3xf32",
    "(%x: f32) => %a = splat %x : 4x6xf32\n%r = permute %a {order = [1, 0]} : 6x4xf32",
    "(%x: f32) => %a = splat %x : 4xf32\n%r = flip %a {axis = 0} : 4xf32",
    "(%x: f32) => %r = expand_dims %x {axis = 0} : 1xf32",
    "(%x: f32) => %r = reshape %x : 1x1xf32",
)
def move_uniform(rewriter: Rewriter, op: Op) -> Result:
    value, type = op.operands[0], op.results[0].type
    number = constant_of(value)
    if number is not None:
        return rewriter.constant(number, type)
    scalar = uniform(value)
    if scalar is None or op.kind == "splat":
        return None
    return rewriter.emit("splat", [scalar], type) if isinstance(type, TensorType) else scalar


def uniform(value: Value) -> Value | None:
    """The scalar that a splat repeats; a scalar itself."""
    if not isinstance(value.type, TensorType):
        return value
    splat = defined_by(value, "splat")
    return splat.operands[0] if splat is not None else None


@rule(
    "broadcast reshape",
    "broadcast and reshape to the same type are nothing; twice is once",
    "(%x: 4xf32) => %r = reshape %x : 4xf32",
    "(%x: 4x6xf32) => %a = reshape %x : 24xf32\n%r = reshape %a : 8x3xf32",
    "(%x: 4x1xf32) => %r = broadcast %x : 4x1xf32",
    "(%x: 1x1xf32) => %a = broadcast %x : 4x1xf32\n%r = broadcast %a : 4x5xf32",
)
def move_twice(rewriter: Rewriter, op: Op) -> Result:
    value, type = op.operands[0], op.results[0].type
    if value.type == type and not op.attrs.get("reorder"):
        return value
    inner = defined_by(value, op.kind)
    if inner is None:
        return None
    attrs = {"reorder": True} if op.attrs.get("reorder") or inner.attrs.get("reorder") else {}
    return rewriter.emit(op.kind, inner.operands, type, attrs)


@rule(
    "reshape",
    "reshape(expand_dims(x)) = reshape(x), and expand_dims is a reshape that may lead back to x",
    "(%x: 4x6xf32) => %a = expand_dims %x {axis = 1} : 4x1x6xf32\n%r = reshape %a : 4x6xf32",
    "(%x: 4x6xf32) => %a = expand_dims %x {axis = 0} : 1x4x6xf32\n%r = reshape %a : 24xf32",
    needs="expand_dims",
)
def reshape_of_expand(rewriter: Rewriter, op: Op) -> Result:
    inner = defined_by(op.operands[0], "expand_dims")
    return None if inner is None else rewriter.emit("reshape", inner.operands, op.results[0].type, op.attrs)


@rule(
    "permute",
    "permute(permute(x)) is one permutation; the identity is nothing",
    "(%x: 4x6xf32) => %r = permute %x {order = [0, 1]} : 4x6xf32",
    "(%x: 4x6xf32) => %a = permute %x {order = [1, 0]} : 6x4xf32\n%r = permute %a {order = [1, 0]} : 4x6xf32",
    "(%x: 2x3x4xf32) => %a = permute %x {order = [1, 2, 0]} : 3x4x2xf32\n%r = permute %a {order = [1, 2, 0]} : "
    "4x2x3xf32",
)
def permute_twice(rewriter: Rewriter, op: Op) -> Result:
    order = op.attrs["order"]
    if order == tuple(range(len(order))):
        return op.operands[0]
    inner = defined_by(op.operands[0], "permute")
    if inner is None:
        return None
    first = inner.attrs["order"]
    return rewriter.emit("permute", inner.operands, None, {"order": tuple(first[i] for i in order)})


@rule(
    "flip",
    "flip(flip(x)) along one axis is x; an axis of size 1 has no other side",
    "(%x: 4x6xf32) => %a = flip %x {axis = 1} : 4x6xf32\n%r = flip %a {axis = 1} : 4x6xf32",
    "(%x: 4x1xf32) => %r = flip %x {axis = 1} : 4x1xf32",
)
def flip_twice(rewriter: Rewriter, op: Op) -> Result:
    axis = op.attrs["axis"]
    if shape_of(op.results[0].type)[axis] == 1:
        return op.operands[0]
    inner = defined_by(op.operands[0], "flip")
    return inner.operands[0] if inner is not None and inner.attrs["axis"] == axis else None


@rule(
    "split",
    "split(join(x, y)) = x, y; split of a uniform tensor gives two uniform ones",
    "(%x: 4xf32, %y: 4xf32) => %a = join %x, %y : 4x2xf32\n%r, %s = split %a : 4xf32, 4xf32",
    "(%x: f32) => %a = splat %x : 4x2xf32\n%r, %s = split %a : 4xf32, 4xf32",
    "() => %a = constant {value = 7} : 4x2xi8\n%r, %s = split %a : 4xi8, 4xi8",
)
def split_of_join(rewriter: Rewriter, op: Op) -> Result:
    value, type = op.operands[0], op.results[0].type
    join = defined_by(value, "join")
    if join is not None:
        return list(join.operands)
    number = constant_of(value)
    if number is not None:
        return [rewriter.constant(number, type)] * 2
    scalar = uniform(value)
    if scalar is None:
        return None
    return [rewriter.emit("splat", [scalar], type) if isinstance(type, TensorType) else scalar] * 2


@rule(
    "join cat",
    "join of both halves of split(x) is x; join and cat of one uniform value are uniform",
    "(%x: 4x2xf32) => %a, %b = split %x : 4xf32, 4xf32\n%r = join %a, %b : 4x2xf32",
    "() => %a = constant {value = 7} : 4xi8\n%b = constant {value = 7} : 4xi8\n%r = join %a, %b : 4x2xi8",
    "(%x: i8) => %a = splat %x : 4xi8\n%b = splat %x : 2xi8\n%r = cat %a, %b {axis = 0} : 6xi8",
)
def join_of_split(rewriter: Rewriter, op: Op) -> Result:
    first, second = op.operands
    split = defined_by(first, "split")
    if split is not None and op.kind == "join" and op.operands == split.results:
        return split.operands[0]
    number, other = constant_of(first), constant_of(second)
    if number is not None and number == other and repr(number) == repr(other):
        return rewriter.constant(number, op.results[0].type)
    scalar = uniform(first)
    if scalar is not None and scalar is uniform(second):
        return rewriter.emit("splat", [scalar], op.results[0].type)
    return None


@rule(
    "reduce",
    "reduce along an axis of size 1 only drops the axis",
    "(%x: 4x1xf32) => %r = reduce %x {axis = 1} : 4xf32 (%a: f32, %b: f32) {\n  %s = add %a, %b : f32\n  yield %s\n}",
)
def reduce_of_one(rewriter: Rewriter, op: Op) -> Result:
    if shape_of(op.operands[0].type)[op.attrs["axis"]] != 1 or any(
        not isinstance(r.type, TensorType) for r in op.results
    ):
        return None
    return [rewriter.emit("reshape", [v], r.type) for v, r in zip(op.operands, op.results, strict=True)]


@rule(
    "scan",
    "scan along an axis of size 1 is nothing",
    "(%x: 4x1xf32) => %r = scan %x {axis = 1} : 4x1xf32 (%a: f32, %b: f32) {\n  %s = add %a, %b : f32\n  yield %s\n}",
)
def scan_of_one(rewriter: Rewriter, op: Op) -> Result:
    return list(op.operands) if shape_of(op.operands[0].type)[op.attrs["axis"]] == 1 else None


def elementwise_of_uniform(rewriter: Rewriter, op: Op) -> Result:
    """f(splat(x), splat(y), constant) = splat(f(x, y, constant)): one scalar op in place of a tensor op."""
    result = op.results[0].type
    if not isinstance(result, TensorType) or len(op.results) != 1:
        return None
    scalars: list[Value] = []
    for value in op.operands:
        scalar = uniform(value)
        if scalar is None:
            number = constant_of(value)
            if number is None:
                return None
            scalar = rewriter.constant(number, element_of(value.type))
        scalars.append(scalar)
    made = rewriter.emit(op.kind, scalars, result.element, op.attrs)
    return rewriter.emit("splat", [made], result)


def elementwise_of_broadcast(rewriter: Rewriter, op: Op) -> Result:
    """f(broadcast(x), broadcast(y), splat(z)) = broadcast(f(x, y, splat(z))): fewer elements to compute."""
    result = op.results[0].type
    sources = [defined_by(v, "broadcast") for v in op.operands]
    shapes = {shape_of(source.operands[0].type) for source in sources if source is not None}
    if len(shapes) != 1 or len(op.results) != 1 or not isinstance(result, TensorType):
        return None
    (shape,) = shapes
    if prod(shape) >= prod(result.shape):
        return None
    for value, source in zip(op.operands, sources, strict=True):
        if source is None and uniform(value) is None and constant_of(value) is None:
            return None
    operands = []
    for value, source in zip(op.operands, sources, strict=True):
        operands.append(source.operands[0] if source is not None else _narrow(rewriter, value, shape))
    made = rewriter.emit(op.kind, operands, TensorType(shape, result.element), op.attrs)
    return rewriter.emit("broadcast", [made], result)


def _narrow(rewriter: Rewriter, value: Value, shape: tuple[int, ...]) -> Value:
    """A uniform tensor in another shape; a scalar stays."""
    if not isinstance(value.type, TensorType):
        return value
    type: Type = TensorType(shape, value.type.element)
    number = constant_of(value)
    if number is not None:
        return rewriter.constant(number, type)
    scalar = uniform(value)
    assert scalar is not None
    return rewriter.emit("splat", [scalar], type)


def is_elementwise(op: Op) -> bool:
    """Each result element depends on the operands' elements at its place alone, and on nothing else."""
    info = OPS[op.kind]
    return info.elementwise and (
        not info.effects or (bool(op.attrs.get("pure", True)) and op.attrs.get("pack", 1) == 1)
    )
