"""Types of the tile IR.

A type is immutable, compares by value and prints as the text that the parser reads back:

    f32                 scalar
    ptr<f32>            pointer to global memory; ptr<f32, 3> names another address space
    4x64xf32            tensor (a tile held by one program), row-major index order
    4x64xf32 #blocked0  the same, carrying a named layout (laid-out stage only)
    desc<64x32xf16>     tensor descriptor: base, shape and strides of a global tensor read in 64x32 boxes
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A number. ``kind`` is one of ``bool``, ``int`` (signed), ``uint``, ``float``; ``bits`` its storage width."""

    name: str
    kind: str
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_integer(self) -> bool:
        """True for every integer type, booleans included."""
        return self.kind != "float"

    @property
    def is_signed(self) -> bool:
        return self.kind == "int"

    @property
    def is_fp8(self) -> bool:
        return self.kind == "float" and self.bits == 8


@dataclass(frozen=True, slots=True)
class PointerType:
    pointee: ScalarType
    space: int = 1

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>" if self.space == 1 else f"ptr<{self.pointee}, {self.space}>"

    @property
    def bits(self) -> int:
        return 64

    @property
    def kind(self) -> str:
        return "ptr"

    @property
    def is_float(self) -> bool:
        return False

    @property
    def is_bool(self) -> bool:
        return False

    @property
    def is_integer(self) -> bool:
        return False

    @property
    def is_signed(self) -> bool:
        return False

    @property
    def is_fp8(self) -> bool:
        return False


ElementType = ScalarType | PointerType


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tile of ``element`` values. Rank is at least 1; every size is at least 1 and need not be a power of two."""

    shape: tuple[int, ...]
    element: ElementType
    layout: str | None = None

    def __str__(self) -> str:
        text = "x".join(map(str, self.shape)) + "x" + str(self.element)
        return text if self.layout is None else f"{text} #{self.layout}"

    @property
    def numel(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class DescriptorType:
    block: TensorType

    def __str__(self) -> str:
        return f"desc<{self.block}>"


@dataclass(frozen=True, slots=True)
class SharedType:
    """``slots`` tiles in memory that the threads of a program share; ``block`` is one of them. ``shared<3 of
    128x64xf16>``"""

    slots: int
    block: TensorType

    def __str__(self) -> str:
        return f"shared<{self.slots} of {self.block}>"


Type = ScalarType | PointerType | TensorType | DescriptorType | SharedType

i1 = ScalarType("i1", "bool", 1)
i8, i16, i32, i64 = (ScalarType(f"i{b}", "int", b) for b in (8, 16, 32, 64))
u8, u16, u32, u64 = (ScalarType(f"u{b}", "uint", b) for b in (8, 16, 32, 64))
f16 = ScalarType("f16", "float", 16)
bf16 = ScalarType("bf16", "float", 16)
f32 = ScalarType("f32", "float", 32)
f64 = ScalarType("f64", "float", 64)
f8e4m3 = ScalarType("f8e4m3", "float", 8)  # OCP E4M3: no infinity, 0x7f/0xff are NaN ("e4nv")
f8e5m2 = ScalarType("f8e5m2", "float", 8)  # OCP E5M2: IEEE-like ("e5")
f8e4b15 = ScalarType("f8e4b15", "float", 8)  # E4M3 with bias 15, no NaN or infinity
f8e4b8 = ScalarType("f8e4b8", "float", 8)  # E4M3 FNUZ, bias 8, 0x80 is NaN
f8e5b16 = ScalarType("f8e5b16", "float", 8)  # E5M2 FNUZ, bias 16, 0x80 is NaN

SCALARS: dict[str, ScalarType] = {
    t.name: t
    for t in (i1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2, f8e4b15, f8e4b8, f8e5b16)
}


def element_of(type: Type) -> ElementType:
    """The element type of a tensor, or the scalar type itself."""
    if isinstance(type, TensorType):
        return type.element
    if isinstance(type, (DescriptorType, SharedType)):
        return type.block.element
    return type


def shape_of(type: Type) -> tuple[int, ...]:
    """The shape of a tensor; the empty tuple for a scalar."""
    return type.shape if isinstance(type, TensorType) else ()


def with_shape(shape: tuple[int, ...], element: ElementType) -> Type:
    """The tensor type of this shape, or the scalar type itself when the shape is empty."""
    return TensorType(shape, element) if shape else element


def with_element(type: Type, element: ElementType) -> Type:
    """``type`` with another element type: same shape, same layout."""
    return TensorType(type.shape, element, type.layout) if isinstance(type, TensorType) else element
