"""Tensor descriptors: a global tensor (base, sizes, strides) read and written in boxes of one shape."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from triton.ir import Value
from triton.ir import types as ir

from . import dtypes as dt
from .dtypes import base_type, block_type, get_block_type
from .semantic import TritonSemantic
from .values import base_value, builtin, describe, tensor, tuple, unwrap


class tensor_descriptor_base_type(base_type):
    """The type of a descriptor: the box that one load gives."""

    def __init__(self, block_type: block_type) -> None:
        self.block_type = block_type

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.block_type == other.block_type

    def __hash__(self) -> int:
        return hash(str(self))

    def __neq__(self, other: object) -> bool:
        return self != other

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}"


class tensor_descriptor_type(tensor_descriptor_base_type):
    """The type of a descriptor with the types of its sizes and strides."""

    def __init__(self, block_type: block_type, shape_type: Any, strides_type: Any) -> None:
        super().__init__(block_type)
        self.shape_type, self.strides_type = shape_type, strides_type

    def __eq__(self, other: object) -> bool:
        return (
            super().__eq__(other)
            and self.shape_type == other.shape_type  # type: ignore[attr-defined]
            and self.strides_type == other.strides_type  # type: ignore[attr-defined]
        )

    __hash__ = tensor_descriptor_base_type.__hash__


class tensor_descriptor_base(base_value):
    """What both kinds of descriptors share: boxes are loaded, stored and combined at element offsets."""

    def __init__(self, handle: Any, block_type: block_type) -> None:
        self.handle = handle
        self.type: Any = tensor_descriptor_base_type(block_type)

    @property
    def block_type(self) -> block_type:
        return self.type.block_type  # type: ignore[no-any-return]

    @property
    def block_shape(self) -> Any:
        return list(self.type.block_type.shape)

    @property
    def dtype(self) -> dt.dtype:
        return self.type.block_type.element_ty  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(self.type)

    @builtin
    def load(self, offsets: Any, _semantic: Any = None) -> Any:
        """The box at these element offsets; outside the tensor it holds the descriptor's padding."""
        operands = [self.handle, *offset_leaves(self, offsets, "load", _semantic)]
        return tensor(_semantic.op("desc_load", operands, self.block_type.ir), self.block_type)

    @builtin
    def store(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Writes a box at these element offsets; what lies outside the tensor is dropped."""
        return _write(self, offsets, value, "store", _semantic)

    @builtin
    def atomic_add(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Adds a box to memory, each element atomically."""
        return _write(self, offsets, value, "add", _semantic)

    @builtin
    def atomic_min(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Minimum of a box with memory, each element atomically."""
        return _write(self, offsets, value, "min", _semantic)

    @builtin
    def atomic_max(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Maximum of a box with memory, each element atomically."""
        return _write(self, offsets, value, "max", _semantic)

    @builtin
    def atomic_and(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Bitwise and of a box with memory, each element atomically."""
        return _write(self, offsets, value, "and", _semantic)

    @builtin
    def atomic_or(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Bitwise or of a box with memory, each element atomically."""
        return _write(self, offsets, value, "or", _semantic)

    @builtin
    def atomic_xor(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Bitwise exclusive or of a box with memory, each element atomically."""
        return _write(self, offsets, value, "xor", _semantic)

    @builtin
    def gather(self, *args: Any, _semantic: Any = None) -> Any:
        """``gather(x_offsets, y_offset)``: the rows ``x_offsets`` from column ``y_offset`` on, for descriptors of
        boxes [1, n]."""
        if len(args) != 2:
            raise TypeError(f"gather: expected x_offsets and y_offset, got {len(args)} arguments")
        pointers, mask = _rows(self, args[0], args[1], "gather", _semantic)
        result = get_block_type(self.dtype, pointers.type.shape)
        return tensor(_semantic.op("load", [pointers.handle, mask.handle], result.ir), result)

    @builtin
    def scatter(self, value: Any, *args: Any, _semantic: Any = None) -> Any:
        """``scatter(value, x_offsets, y_offset)``: writes the rows of ``value`` to rows ``x_offsets``; see gather."""
        if len(args) != 2:
            raise TypeError(f"scatter: expected value, x_offsets and y_offset, got {1 + len(args)} arguments")
        pointers, mask = _rows(self, args[0], args[1], "scatter", _semantic)
        value = _semantic.to_shape(_semantic.cast(value, self.dtype), pointers.type.shape)
        _semantic.builder.emit("store", [pointers.handle, value.handle, mask.handle], [])
        return None


class tensor_descriptor(tensor_descriptor_base):
    """A descriptor whose sizes and strides the kernel can read."""

    base: Any = None
    padding = "zero"
    regular = False  # known to be as `make_desc` says

    def __init__(self, handle: Any, shape: Any, strides: Any, block_type: block_type) -> None:
        self.handle = handle
        self.shape = shape if isinstance(shape, tuple) else tuple(shape)
        self.strides = strides if isinstance(strides, tuple) else tuple(strides)
        self.type = tensor_descriptor_type(block_type, self.shape.type, self.strides.type)

    def make(self, semantic: TritonSemantic) -> None:
        """Emits the op that makes the descriptor from its base, sizes and strides."""
        operands = [self.base.handle]
        for group in (self.shape, self.strides):
            operands += [v.handle for v in group.values]
        attrs: dict[str, Any] = {"padding": self.padding} if self.padding != "zero" else {}
        if self.regular:
            attrs["regular"] = True
        self.handle = semantic.op("make_desc", operands, ir.DescriptorType(self.block_type.ir), attrs)

    def flatten(self, leaves: list[Value]) -> None:
        leaves.append(self.handle)
        for part in (self.base, self.shape, self.strides):
            part.flatten(leaves)

    def rebuild(self, leaves: Iterator[Value]) -> tensor_descriptor:
        handle = next(leaves)
        base = self.base.rebuild(leaves)
        made = tensor_descriptor(handle, self.shape.rebuild(leaves), self.strides.rebuild(leaves), self.block_type)
        made.base, made.padding = base, self.padding
        return made


def offset_leaves(descriptor: tensor_descriptor_base, offsets: Any, what: str, semantic: TritonSemantic) -> list[Value]:
    """The offsets as scalar i32 values."""
    given = getattr(offsets, "values", offsets)
    rank = len(descriptor.block_type.shape)
    if not isinstance(given, (list, builtins.tuple)) or len(given) != rank:
        count = len(given) if isinstance(given, (list, builtins.tuple)) else describe(offsets)
        raise ValueError(f"{what}: offsets: expected {rank}, one for each axis of the descriptor, got {count}")
    return [scalar_int(v, f"{what}: offsets[{i}]", dt.int32, semantic).handle for i, v in enumerate(given)]


def scalar_int(value: Any, what: str, type: dt.dtype, semantic: TritonSemantic) -> tensor:
    """A scalar integer of this type."""
    value = semantic.to_tensor(unwrap(value), what)
    if value.type.is_block() or not value.dtype.is_int():
        raise TypeError(f"{what}: expected a scalar integer, got {describe(value)}")
    return semantic.cast(value, type)


def check_strides(strides: list[tensor], element: dt.dtype, what: str, s: TritonSemantic) -> None:
    """The last one is 1, the others are multiples of 16 bytes: known now, or asserted at run time."""
    bytes = element.primitive_bitwidth // 8
    for i, stride in enumerate(strides):
        last, name = i + 1 == len(strides), f"{what}: strides[{i}]"
        rule = "must be 1, as the last one" if last else "must be a multiple of 16 bytes"
        known, divisor = s.known(stride), 16 // bytes
        if known is None:
            if last or not _is_multiple(stride.handle, divisor, s):
                rest = s.sub(stride, 1) if last else s.binary("rem", stride, divisor, what)
                s.builder.emit("assert", [s.compare("eq", rest, 0, what).handle], [], {"message": f"{name}: {rule}"})
        elif known != 1 if last else known % divisor:
            raise ValueError(f"{name}: {rule}, got {known} elements of {bytes} bytes")


def _is_multiple(value: Value, divisor: int, s: TritonSemantic) -> bool:
    """Whether ``value`` is certain to be a multiple, by what the launch found of the kernel's arguments."""
    op = value.op
    if op is None:
        kernel = s.generator.module.kernel
        return value in kernel.args and kernel.arg_attrs[value.index].get("divisible", 1) % divisor == 0
    if op.kind == "constant":
        return int(op.attrs["value"]) % divisor == 0
    if op.kind == "cast":
        return _is_multiple(op.operands[0], divisor, s)
    return op.kind == "mul" and any(_is_multiple(v, divisor, s) for v in op.operands)


def _write(descriptor: tensor_descriptor_base, offsets: Any, value: Any, op: str, semantic: TritonSemantic) -> None:
    what = op if op == "store" else f"atomic_{op}"
    leaves = offset_leaves(descriptor, offsets, what, semantic)
    value = semantic.to_tensor(unwrap(value), f"{what}: value")
    shape = descriptor.block_type.shape
    if value.type.shape not in ((), shape):
        raise ValueError(f"{what}: value: expected shape {list(shape)}, got {list(value.type.shape)}")
    value = semantic.to_shape(semantic.cast(value, descriptor.dtype), shape)
    attrs = {"op": op} if op != "store" else None
    semantic.builder.emit("desc_store", [descriptor.handle, value.handle, *leaves], [], attrs)


def _rows(descriptor: Any, rows: Any, column: Any, what: str, s: TritonSemantic) -> Any:
    """Pointers and mask of whole rows."""
    shape = descriptor.block_type.shape
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(f"{what}: needs a descriptor of boxes [1, n], this one has {list(shape)}")
    if not isinstance(rows, tensor) or len(rows.type.shape) != 1 or not rows.dtype.is_int():
        raise TypeError(f"{what}: x_offsets: expected a tensor of integers of rank 1, got {describe(rows)}")
    count = rows.type.shape[0]
    x = tensor(
        s.op("expand_dims", [rows.handle], ir.TensorType((count, 1), rows.dtype.ir), {"axis": 1}),
        get_block_type(rows.dtype, (count, 1)),
    )
    x = s.cast(x, dt.int64)
    lane = get_block_type(dt.int32, (shape[1],))
    steps = tensor(s.op("arange", [], lane.ir, {"start": 0, "end": shape[1]}), lane)
    y = s.add(s.cast(steps, dt.int64), s.cast(s.to_tensor(unwrap(column), f"{what}: y_offset"), dt.int64))
    offset = s.add(s.mul(x, descriptor.strides.values[0]), s.mul(y, descriptor.strides.values[1]))
    height, width = (s.cast(v, dt.int64) for v in descriptor.shape.values)
    inside_x = s.bitwise("and", s.compare("ge", x, 0, what), s.compare("lt", x, height, what), what)
    inside_y = s.bitwise("and", s.compare("ge", y, 0, what), s.compare("lt", y, width, what), what)
    mask = s.bitwise("and", inside_x, inside_y, what)
    return s.offset(descriptor.base, offset, what), mask
