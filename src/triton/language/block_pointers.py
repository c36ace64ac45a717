"""Block pointers: a box of a global tensor, moved by ``advance``. They are pointer arithmetic with masks underneath."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.descriptors import scalar_int
from triton.frontend.dtypes import base_type, get_block_type
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import base_value, builtin, constexpr, describe, tensor, unwrap
from triton.ir import Value
from triton.ir import types as ir


class block_pointer_type(base_type):
    """Pointer to a box of elements."""

    def __init__(self, block: Any) -> None:
        self.block = block

    @property
    def element_ty(self) -> Any:
        return self.block

    @property
    def scalar(self) -> Any:
        return self.block.element_ty

    def __eq__(self, other: object) -> bool:
        return isinstance(other, block_pointer_type) and self.block == other.block

    def __hash__(self) -> int:
        return hash(("block_pointer", self.block))

    @staticmethod
    def is_block() -> bool:
        return False

    @staticmethod
    def is_ptr() -> bool:
        return True

    def __str__(self) -> str:
        return f"pointer<{self.block}>"

    def mangle(self) -> str:
        return f"P{self.block.mangle()}"


class block_pointer(base_value):
    """Base, sizes, strides and offsets of a box; sizes, strides and offsets are 64-bit scalars."""

    def __init__(
        self, base: tensor, shape: list[tensor], strides: list[tensor], offsets: list[tensor], block: Any, order: Any
    ) -> None:
        self.base, self.shape, self.strides, self.offsets = base, shape, strides, offsets
        self.block, self.order = block, order
        self.type: Any = block_pointer_type(block)

    @property
    def dtype(self) -> Any:
        return self.base.dtype

    def flatten(self, leaves: list[Value]) -> None:
        for part in (self.base, *self.shape, *self.strides, *self.offsets):
            part.flatten(leaves)

    def rebuild(self, leaves: Iterator[Value]) -> block_pointer:
        base = self.base.rebuild(leaves)
        shape, strides, offsets = (
            [v.rebuild(leaves) for v in part] for part in (self.shape, self.strides, self.offsets)
        )
        return block_pointer(base, shape, strides, offsets, self.block, self.order)

    @builtin
    def advance(self, offsets: Any, _semantic: Any = None) -> Any:
        """This block pointer moved by ``offsets`` elements along each axis."""
        return _advance(self, offsets, _semantic)

    def access(
        self, boundary_check: Any, padding_option: Any, what: str, s: TritonSemantic
    ) -> builtins.tuple[Any, Any, Any]:
        """Pointers of the box's elements, the mask of the checked axes (or None) and the padding (or None)."""
        sizes = self.block.shape
        rank = len(sizes)
        checked = {_checked_axis(axis, rank, what) for axis in _axes(boundary_check)}
        padding = unwrap(padding_option) or ""
        if padding not in ("", "zero", "nan"):
            raise ValueError(f"{what}: padding_option: expected 'zero' or 'nan', got {padding!r}")
        if padding == "nan" and not self.block.element_ty.is_floating():
            raise ValueError(
                f"{what}: padding_option: 'nan' needs floating-point elements, got {self.block.element_ty}"
            )
        total = mask = None
        for axis in range(rank):
            index = s.add(_along(axis, sizes, s), self.offsets[axis], what)
            term = s.mul(index, self.strides[axis], what)
            total = term if total is None else s.add(total, term, what)
            if axis in checked:
                inside = s.bitwise(
                    "and", s.compare("ge", index, 0, what), s.compare("lt", index, self.shape[axis], what), what
                )
                mask = inside if mask is None else s.bitwise("and", mask, inside, what)
        pointers = s.to_shape(s.offset(self.base, total, what), sizes)
        if mask is None:
            return pointers, None, None
        mask = s.to_shape(mask, sizes)
        fallback = None
        if padding:
            fallback = s.constant(float("nan") if padding == "nan" else 0, get_block_type(self.block.element_ty, sizes))
        return pointers, mask, fallback


def _axes(boundary_check: Any) -> list[Any]:
    axes = unwrap(boundary_check)
    if axes is None:
        return []
    return list(axes) if isinstance(axes, (list, builtins.tuple)) else [axes]


def _checked_axis(axis: Any, rank: int, what: str) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"{what}: boundary_check: axis {axis!r} is outside a block of rank {rank}")
    return axis % rank


def _along(axis: int, sizes: builtins.tuple[int, ...], s: TritonSemantic) -> tensor:
    """0, 1, ... along one axis, of size 1 along the others, as int64."""
    lane = get_block_type(dt.int32, (sizes[axis],))
    x = tensor(s.op("arange", [], lane.ir, {"start": 0, "end": sizes[axis]}), lane)
    shape = tuple_of_ones(len(sizes), axis, sizes[axis])
    if len(sizes) > 1:
        x = tensor(s.op("reshape", [x.handle], ir.TensorType(shape, ir.i32)), get_block_type(dt.int32, shape))
    return s.cast(x, dt.int64)


def tuple_of_ones(rank: int, axis: int, size: int) -> builtins.tuple[int, ...]:
    """The shape with ``size`` at ``axis`` and 1 elsewhere."""
    return builtins.tuple(size if i == axis else 1 for i in range(rank))


def _scalars(values: Any, name: str, what: str, s: TritonSemantic) -> list[tensor]:
    members = getattr(values, "values", values)
    if isinstance(values, constexpr):
        members = values.value
    if not isinstance(members, (list, builtins.tuple)):
        members = [members]
    return [scalar_int(v, f"{what}: {name}[{i}]", dt.int64, s) for i, v in enumerate(members)]


@builtin
def make_block_ptr(
    base: Any,
    shape: Any,
    strides: Any,
    offsets: Any,
    block_shape: Any,
    order: Any,
    _semantic: Any = None,
) -> block_pointer:
    """A pointer to the box of ``block_shape`` at ``offsets`` in a tensor of ``shape`` and ``strides`` (in elements)
    at ``base``.

    ``order`` lists the axes from the fastest in memory to the slowest; it is a hint. The box's sizes are compile-time
    values.
    """
    s, what = _semantic, "make_block_ptr"
    if not isinstance(base, tensor) or base.type.is_block() or not base.dtype.is_ptr():
        raise TypeError(f"{what}: base: expected a pointer, got {describe(base)}")
    sizes = s.shape_argument(block_shape, f"{what}: block_shape")
    block = get_block_type(base.dtype.element_ty, sizes)  # type: ignore[attr-defined]
    parts = [_scalars(v, n, what, s) for v, n in ((shape, "shape"), (strides, "strides"), (offsets, "offsets"))]
    given_order = list(unwrap(order)) if not isinstance(unwrap(order), int) else [unwrap(order)]
    for name, part in zip(("shape", "strides", "offsets", "order"), (*parts, given_order), strict=True):
        if len(part) != len(sizes):
            raise ValueError(f"{what}: {name}: expected {len(sizes)} values, as block_shape has, got {len(part)}")
    if sorted(given_order) != list(range(len(sizes))):
        raise ValueError(f"{what}: order: expected a permutation of the axes 0 to {len(sizes) - 1}, got {given_order}")
    return block_pointer(base, parts[0], parts[1], parts[2], block, given_order)


def _advance(base: Any, offsets: Any, s: TritonSemantic) -> block_pointer:
    if not isinstance(base, block_pointer):
        raise TypeError(f"advance: base: expected a block pointer, got {describe(base)}")
    moves = _scalars(offsets, "offsets", "advance", s)
    if len(moves) != len(base.offsets):
        raise ValueError(f"advance: offsets: expected {len(base.offsets)} values, got {len(moves)}")
    moved = [o if s.known(m) == 0 else s.add(o, m, "advance") for o, m in zip(base.offsets, moves, strict=True)]
    return block_pointer(base.base, base.shape, base.strides, moved, base.block, base.order)


@builtin
def advance(base: Any, offsets: Any, _semantic: Any = None) -> block_pointer:
    """``base``, a block pointer, moved by ``offsets`` elements along each axis."""
    return _advance(base, offsets, _semantic)
