"""Types of the language: numbers, pointers, tiles, tuples and constants, as kernels see them.

A type that stands for a run-time value knows its tile-IR type as ``.ir``.
"""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Any, ClassVar

from triton.ir import types as ir

TRITON_MAX_TENSOR_NUMEL = 1048576


class base_type:
    """Base of every type of the language."""

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError(f"{type(self).__name__} has no equality")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def mangle(self) -> str:
        """A short name for the type, usable inside a function's name."""
        raise NotImplementedError(f"{type(self).__name__} cannot be mangled")


_IR_OF_NAME = {
    "int1": ir.i1,
    "int8": ir.i8,
    "int16": ir.i16,
    "int32": ir.i32,
    "int64": ir.i64,
    "uint8": ir.u8,
    "uint16": ir.u16,
    "uint32": ir.u32,
    "uint64": ir.u64,
    "fp8e4nv": ir.f8e4m3,
    "fp8e5": ir.f8e5m2,
    "fp8e4b15": ir.f8e4b15,
    "fp8e4b8": ir.f8e4b8,
    "fp8e5b16": ir.f8e5b16,
    "fp16": ir.f16,
    "bf16": ir.bf16,
    "fp32": ir.f32,
    "fp64": ir.f64,
}
# name -> (mantissa bits, storage bits, exponent bias)
_FLOATS = {
    "fp8e4b15": (3, 8, 15),
    "fp8e4nv": (3, 8, 7),
    "fp8e4b8": (3, 8, 8),
    "fp8e5": (2, 8, 15),
    "fp8e5b16": (2, 8, 16),
    "fp16": (10, 16, 15),
    "bf16": (7, 16, 127),
    "fp32": (23, 32, 127),
    "fp64": (52, 64, 1023),
}


class dtype(base_type):
    """A number type by name, for example ``dtype("fp16")``; use the instances ``tl.float16``, ``tl.int32``, ..."""

    SINT_TYPES: ClassVar = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES: ClassVar = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar = ["void"]

    class SIGNEDNESS(Enum):
        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    int_bitwidth: int
    primitive_bitwidth: int
    itemsize: int

    def __init__(self, name: str) -> None:
        name = getattr(name, "value", name)
        self.name = name
        self.ir: Any = _IR_OF_NAME.get(name)
        if name in _FLOATS:
            self.fp_mantissa_width, self.primitive_bitwidth, self.exponent_bias = _FLOATS[name]
        elif self.ir is not None:
            self.int_signedness = dtype.SIGNEDNESS.SIGNED if name in dtype.SINT_TYPES else dtype.SIGNEDNESS.UNSIGNED
            self.int_bitwidth = self.primitive_bitwidth = self.ir.bits
        elif name == "void":
            self.primitive_bitwidth = 0
        else:
            raise ValueError(f"dtype: unknown type name {name!r}")
        self.itemsize = (self.primitive_bitwidth + 7) // 8

    def is_fp8(self) -> bool:
        return "fp8" in self.name

    def is_fp8e4nv(self) -> bool:
        return self.name == "fp8e4nv"

    def is_fp8e4b8(self) -> bool:
        return self.name == "fp8e4b8"

    def is_fp8e4b15(self) -> bool:
        return self.name == "fp8e4b15"

    def is_fp8e5(self) -> bool:
        return self.name == "fp8e5"

    def is_fp8e5b16(self) -> bool:
        return self.name == "fp8e5b16"

    def is_fp16(self) -> bool:
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        return self.name == "fp64"

    def is_int1(self) -> bool:
        return self.name == "int1"

    def is_int8(self) -> bool:
        return self.name == "int8"

    def is_int16(self) -> bool:
        return self.name == "int16"

    def is_int32(self) -> bool:
        return self.name == "int32"

    def is_int64(self) -> bool:
        return self.name == "int64"

    def is_uint8(self) -> bool:
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        return self.name == "uint64"

    def is_floating(self) -> bool:
        return self.name in _FLOATS

    def is_standard_floating(self) -> bool:
        return self.name in dtype.STANDARD_FP_TYPES

    def is_int_signed(self) -> bool:
        return self.name in dtype.SINT_TYPES

    def is_int_unsigned(self) -> bool:
        return self.name in dtype.UINT_TYPES

    def is_int(self) -> bool:
        """True for every integer type, booleans included."""
        return self.name in dtype.SINT_TYPES or self.name in dtype.UINT_TYPES

    def is_bool(self) -> bool:
        return self.name == "int1"

    def kind(self) -> dtype.KIND:
        """Boolean, integral or floating: the first key of the promotion rules."""
        if self.name == "int1":
            return dtype.KIND.BOOLEAN
        if self.is_int():
            return dtype.KIND.INTEGRAL
        if self.is_floating():
            return dtype.KIND.FLOATING
        raise ValueError(f"kind: {self} is not a number type")

    def get_int_max_value(self) -> int:
        if self.is_int_signed():
            return (1 << self.int_bitwidth - 1) - 1
        if self.is_int_unsigned():
            return (1 << self.int_bitwidth) - 1
        raise ValueError(f"get_int_max_value: {self} is not an integer type")

    def get_int_min_value(self) -> int:
        if self.is_int_signed():
            return -(1 << self.int_bitwidth - 1)
        if self.is_int_unsigned():
            return 0
        raise ValueError(f"get_int_min_value: {self} is not an integer type")

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Whether ``type_str`` names a number type."""
        return type_str in _IR_OF_NAME or type_str in dtype.OTHER_TYPES

    def is_void(self) -> bool:
        return self.name == "void"

    @staticmethod
    def is_block() -> bool:
        return False

    @staticmethod
    def is_ptr() -> bool:
        return False

    @staticmethod
    def is_const() -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        other = getattr(other, "value", other)
        return self is other or (type(other) is dtype and type(self) is dtype and other.name == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def scalar(self) -> dtype:
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def numel(self) -> int:
        return 1

    def get_block_shapes(self) -> tuple[int, ...]:
        return ()

    def to_ir(self, builder: Any = None) -> Any:
        """The tile-IR type."""
        return self.ir

    def codegen_name(self) -> str:
        """The name under which ``triton.language`` has this type."""
        if self.name.startswith("fp"):
            return "float" + self.name[2:]
        return "bfloat" + self.name[2:] if self.name.startswith("bf") else self.name

    @property
    def cache_key_part(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"triton.language.{self.codegen_name()}"

    def mangle(self) -> str:
        if self.is_int():
            return ("i" if self.is_int_signed() else "u") + str(self.int_bitwidth)
        return "V" if self.is_void() else self.name

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """``element_ty`` itself: a scalar type has no shape to keep."""
        return element_ty


class pointer_type(dtype):
    """Pointer to global memory. ``const`` pointers cannot be stored through."""

    def __init__(self, element_ty: dtype, address_space: Any = "global", const: bool = False) -> None:
        element_ty = getattr(element_ty, "value", element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"pointer_type: element_ty must be a dtype, got {type(element_ty).__name__}")
        self.element_ty = element_ty
        self.address_space = getattr(address_space, "value", address_space)
        self.const = bool(getattr(const, "value", const))
        self.name = f"pointer<{element_ty}>" if not self.const else f"const_pointer<{element_ty}>"
        if isinstance(element_ty, pointer_type):
            # Memory holds addresses as 64-bit numbers; loads and stores convert.
            self.ir = ir.PointerType(ir.u64)
        else:
            self.ir = ir.PointerType(element_ty.ir if element_ty.ir is not None else ir.i8)
        self.primitive_bitwidth = 64
        self.itemsize = 8

    def __eq__(self, other: object) -> bool:
        other = getattr(other, "value", other)
        return self is other or (
            type(other) is pointer_type
            and self.element_ty == other.element_ty
            and self.address_space == other.address_space
            and self.const == other.const
        )

    def __hash__(self) -> int:
        return hash(self.name)

    @staticmethod
    def is_ptr() -> bool:
        return True

    def is_const(self) -> bool:  # type: ignore[override]
        return self.const

    def is_fp8(self) -> bool:
        return False

    def codegen_name(self) -> str:
        return f"pointer_type({self.element_ty!r})"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"triton.language.pointer_type({self.element_ty!r})"

    def mangle(self) -> str:
        return f"P{self.element_ty.mangle()}"


class block_type(dtype):
    """A tile of ``element_ty`` values; sizes are at least 1 and need not be powers of two."""

    def __init__(self, element_ty: dtype, shape: Any) -> None:
        self.element_ty = getattr(element_ty, "value", element_ty)
        sizes = tuple(getattr(s, "value", s) for s in getattr(shape, "values", shape))
        self._shape = sizes
        self._numel = validate_block_shape(sizes)
        self.name = f"<{sizes}, {self.element_ty}>".replace("(", "[").replace(",)", "]").replace(")", "]")
        self.ir = ir.TensorType(sizes, self.element_ty.ir)

    def __getattr__(self, name: str) -> Any:
        # What a tile shares with its elements: widths, signedness.
        if name in (
            "primitive_bitwidth",
            "itemsize",
            "int_signedness",
            "int_bitwidth",
            "fp_mantissa_width",
            "exponent_bias",
        ):
            return getattr(self.element_ty, name)
        raise AttributeError(name)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def numel(self) -> int:
        return self._numel

    @staticmethod
    def is_block() -> bool:
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        return self._shape

    def with_element_ty(self, scalar_ty: dtype) -> Any:
        """This shape with other elements."""
        return get_block_type(scalar_ty, self._shape)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, block_type) and self._shape == other._shape and self.element_ty == other.element_ty
        )

    def __hash__(self) -> int:
        return hash((self._shape, self.element_ty))

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def nbytes(self) -> int:
        return self._numel * (self.element_ty.primitive_bitwidth // 8)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def mangle(self) -> str:
        return f"{self.element_ty.mangle()}S{'_'.join(map(str, self._shape))}S"


def validate_block_shape(shape: Any, what: str = "shape") -> int:
    """The number of elements of a tile. Raises when a size is not a positive int or the tile is too large."""
    for i, size in enumerate(shape):
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"{what}: size {i} must be an int known at compile time, got {_described(size)}")
        if size < 1:
            raise ValueError(f"{what}: size {i} must be at least 1, got {size}")
    numel: int = prod(shape)
    if numel > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(
            f"{what}: {list(shape)}: numel ({numel}) exceeds triton maximum tensor numel "
            f"({TRITON_MAX_TENSOR_NUMEL})"
        )
    return numel


def _described(value: Any) -> str:
    value_type = getattr(value, "type", None)
    return str(value_type) if isinstance(value_type, base_type) else f"{type(value).__name__} {value!r}"


_block_types: dict[tuple[tuple[int, ...], dtype], block_type] = {}


def get_block_type(element: dtype, shape: tuple[int, ...]) -> Any:
    """The tile type of this shape; ``element`` itself for the empty shape. Cached."""
    if not shape:
        return element
    if type(element) is not dtype:
        return block_type(element, shape)
    found = _block_types.get((shape, element))
    if found is None:
        found = _block_types[(shape, element)] = block_type(element, shape)
    return found


class tuple_type(base_type):
    """Types of a tuple's members; ``fields`` names them when it came from a named tuple."""

    def __init__(self, types: Any, fields: Any = None) -> None:
        self.types = types
        self.fields = fields or [""] * len(types)

    @property
    def name(self) -> str:
        parts = [f"{k}:{v}" if k else str(v) for k, v in zip(self.fields, self.types, strict=True)]
        return "[" + ",".join(parts) + "]"

    def __str__(self) -> str:
        return self.name

    def __iter__(self) -> Any:
        return iter(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.types == other.types and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.name)

    def mangle(self) -> str:
        return "T" + "_".join(t.mangle() for t in self.types) + "T"


class constexpr_type(base_type):
    """The type of one compile-time value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def mangle(self) -> str:
        return "c" + (repr(self.value) if not hasattr(self.value, "mangle") else str(self.value.mangle()))


class slice_type(dtype):
    """The type of a slice object."""

    def __init__(self) -> None:
        self.name = "slice_type"
        self.ir = None


class const:
    """Annotation of a pointer parameter that is only read."""


void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(n) for n in ("int1", *dtype.SINT_TYPES))
uint8, uint16, uint32, uint64 = (dtype(n) for n in dtype.UINT_TYPES[1:])
float8e5, float8e5b16, float8e4nv, float8e4b8, float8e4b15 = (
    dtype(n) for n in ("fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15")
)
float16, bfloat16, float32, float64 = (dtype(n) for n in ("fp16", "bf16", "fp32", "fp64"))
pi32_t = pointer_type(int32)

# Names in kernel signatures ("*fp32", "i32", "u1", ...).
SIGNATURE_NAMES: dict[str, dtype] = {
    "i1": int1,
    "u1": int1,
    "i8": int8,
    "i16": int16,
    "i32": int32,
    "i64": int64,
    "u8": uint8,
    "u16": uint16,
    "u32": uint32,
    "u64": uint64,
    "fp8e4nv": float8e4nv,
    "fp8e5": float8e5,
    "fp8e4b15": float8e4b15,
    "fp8e4b8": float8e4b8,
    "fp8e5b16": float8e5b16,
    "fp16": float16,
    "bf16": bfloat16,
    "fp32": float32,
    "fp64": float64,
    "B": int1,
    "void": void,
}


def str_to_ty(name: str, c: Any = None) -> Any:
    """The type that a signature string names; ``c`` is the value for ``constexpr``."""
    if name == "constexpr":
        return constexpr_type(c)
    if name.startswith("*"):
        const_pointer = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if const_pointer else 1 :]), const=const_pointer)
    if name in SIGNATURE_NAMES:
        return SIGNATURE_NAMES[name]
    raise ValueError(f"signature: unknown type {name!r}")


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of this width and signedness."""
    bitwidth, signed = getattr(bitwidth, "value", bitwidth), getattr(signed, "value", signed)
    table = {
        (1, False): int1,
        (8, True): int8,
        (8, False): uint8,
        (16, True): int16,
        (16, False): uint16,
        (32, True): int32,
        (32, False): uint32,
        (64, True): int64,
        (64, False): uint64,
    }
    if (bitwidth, signed) not in table:
        raise ValueError(f"get_int_dtype: no integer of {bitwidth} bits with signed={signed}")
    return table[(bitwidth, signed)]


def get_primitive_bitwidth(dtype: Any) -> int:
    """Storage bits of a type given as a type or by its signature name."""
    known: Any = dtype if isinstance(dtype, base_type) else SIGNATURE_NAMES[dtype]
    return int(known.primitive_bitwidth)
