"""What a launch needs to know about one argument: its type name, its specialisation, its address and its extent.

Type names are those of signatures: ``*fp32`` a pointer, ``i32``, ``u1``, ``fp32`` scalars, ``constexpr`` a compile-time
value, tuples of these for tuples. Nothing here imports an array library: arrays are told by what they can do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

# Every spelling of an element type that array libraries and users write, and the name signatures use.
type_canonicalisation_dict: dict[str, str] = {
    "bool": "u1",
    "int1": "u1",
    "uint1": "u1",
    "i1": "u1",
    "bool_": "u1",
    "float8e4nv": "fp8e4nv",
    "float8_e4m3fn": "fp8e4nv",
    "float8e5": "fp8e5",
    "float8_e5m2": "fp8e5",
    "float8e4b15": "fp8e4b15",
    "float8e4b8": "fp8e4b8",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8e5b16": "fp8e5b16",
    "float8_e5m2fnuz": "fp8e5b16",
    "half": "fp16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float": "fp32",
    "float32": "fp32",
    "double": "fp64",
    "float64": "fp64",
    "int8": "i8",
    "int16": "i16",
    "int": "i32",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "void": "void",
}
for _name in [
    "u1",
    "fp8e4nv",
    "fp8e5",
    "fp8e4b15",
    "fp8e4b8",
    "fp8e5b16",
    "fp16",
    "bf16",
    "fp32",
    "fp64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]:
    type_canonicalisation_dict[_name] = _name

DIVISIBILITY = 16  # bytes for pointers, units for integers: what an alignment promise means

_element_names: dict[Any, str] = {}


_ELEMENT_BYTES = {"u1": 1, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "void": 0}
_ELEMENT_BYTES |= {f"{sign}{bits}": bits // 8 for sign in "iu" for bits in (8, 16, 32, 64)}


def element_bytes(name: str) -> int:
    """The bytes that one element of a type takes in memory."""
    return 1 if name.startswith("fp8") else _ELEMENT_BYTES[name]


class ArgumentError(TypeError):
    """An argument that cannot be passed; the launcher adds the parameter's name."""


def element_type(dtype: Any) -> str:
    """The signature name of an array's element type, for example ``fp32`` for ``torch.float32``."""
    try:
        return _element_names[dtype]
    except (KeyError, TypeError):
        pass
    text = str(dtype)
    name = type_canonicalisation_dict.get(text.rsplit(".", 1)[-1])
    if name is None:
        name = type_canonicalisation_dict.get(str(getattr(dtype, "name", "")))
    if name is None:
        raise ArgumentError(f"arrays of dtype {text} cannot be passed to a kernel")
    byteorder = getattr(dtype, "byteorder", "=")
    if byteorder in (">", "<") and not getattr(dtype, "isnative", True):
        raise ArgumentError(
            f"arrays of dtype {text} cannot be passed to a kernel: their byte order is not the machine's"
        )
    _element_names[dtype] = name
    return name


def is_namedtuple(val: Any) -> bool:
    return isinstance(val, tuple) and hasattr(val, "_fields")


def make_like(template: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """A tuple of ``items`` of the template's kind: named tuples stay named."""
    return type(template)(*items) if is_namedtuple(template) else tuple(items)


# ---- arrays that speak neither torch's nor NumPy's language ---------------------------------------------------------


class _DLDevice(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_DL_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_DL_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 4: "opencl", 7: "vulkan", 8: "metal", 10: "hip", 11: "cpu", 13: "cuda"}


class ForeignArray:
    """A view of an array given through DLPack or an array-interface dictionary; it keeps the array alive."""

    __slots__ = ("_address", "_itemsize", "_strides", "device", "dtype", "owner", "readonly", "shape")

    def __init__(
        self,
        owner: Any,
        dtype: str,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        itemsize: int,
        device: str,
        readonly: bool = False,
    ) -> None:
        self.owner = owner
        self.dtype = dtype
        self.shape = shape
        self.device = device
        self.readonly = readonly
        self._address = address
        self._strides = strides
        self._itemsize = itemsize

    def data_ptr(self) -> int:
        return self._address

    def byte_range(self) -> tuple[int, int]:
        return _strided_range(self._address, self.shape, self._strides, self._itemsize)


def _strided_range(
    address: int, shape: tuple[int, ...], byte_strides: tuple[int, ...], itemsize: int
) -> tuple[int, int]:
    low = high = address
    for size, stride in zip(shape, byte_strides, strict=True):
        if size == 0:
            return address, address
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + itemsize


def _packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return tuple(strides)


def _from_interface(arg: Any, fields: dict[str, Any], device: str) -> ForeignArray:
    typestr = fields["typestr"]
    kind = {"f": "float", "i": "int", "u": "uint", "b": "bool"}.get(typestr[1])
    itemsize = int(typestr[2:])
    if kind is None or typestr[0] == ">":
        raise ArgumentError(f"arrays of type {typestr} cannot be passed to a kernel")
    shape = tuple(fields["shape"])
    strides = fields.get("strides")
    address, readonly = fields["data"]
    name = kind if kind == "bool" else f"{kind}{itemsize * 8}"
    return ForeignArray(
        arg,
        element_type(name),
        address or 0,
        shape,
        tuple(strides) if strides is not None else _packed_strides(shape, itemsize),
        itemsize,
        device,
        bool(readonly),
    )


def _from_dlpack(arg: Any) -> ForeignArray:
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = arg.__dlpack__()
    tensor = _DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    if tensor.dtype.lanes != 1 or tensor.dtype.code not in _DL_CODES:
        raise ArgumentError("an array passed through DLPack has an element type that no kernel can use")
    bits = tensor.dtype.bits
    name = "bool" if tensor.dtype.code == 6 else f"{_DL_CODES[tensor.dtype.code]}{bits}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    itemsize = bits // 8
    if tensor.strides:
        strides = tuple(tensor.strides[i] * itemsize for i in range(tensor.ndim))
    else:
        strides = _packed_strides(shape, itemsize)
    device = _DL_DEVICES.get(tensor.device.kind, f"device kind {tensor.device.kind}")
    address = (tensor.data or 0) + tensor.byte_offset
    return ForeignArray((arg, capsule), element_type(name), address, shape, strides, itemsize, device)


def as_array(arg: Any) -> Any:
    """``arg`` itself when it is a torch tensor or NumPy array (or looks like one), a view of it when it speaks DLPack
    or an array interface, and None when it is no array at all."""
    if hasattr(arg, "data_ptr") or _is_ndarray(arg):
        return arg
    fields = getattr(arg, "__cuda_array_interface__", None)
    if fields is not None:
        return _from_interface(arg, fields, "cuda")
    fields = getattr(arg, "__array_interface__", None)
    if fields is not None:
        return _from_interface(arg, fields, "cpu")
    if hasattr(arg, "__dlpack__"):
        return _from_dlpack(arg)
    return None


_numpy_bases: dict[type, str] = {}


def _numpy_base(cls: type) -> str:
    """``ndarray``, ``generic`` or nothing: which of NumPy's base classes a class has, told without importing NumPy."""
    known = _numpy_bases.get(cls)
    if known is None:
        names = [c.__name__ for c in cls.__mro__ if c.__module__ == "numpy" and c.__name__ in ("ndarray", "generic")]
        known = _numpy_bases[cls] = names[0] if names else ""
    return known


def _is_ndarray(arg: Any) -> bool:
    return _numpy_base(type(arg)) == "ndarray"


def _is_numpy_scalar(arg: Any) -> bool:
    return _numpy_base(type(arg)) == "generic"


# ---- addresses ------------------------------------------------------------------------------------------------------


def address_of(array: Any) -> int:
    """The address of an array's first element."""
    pointer = getattr(array, "data_ptr", None)
    return int(pointer()) if pointer is not None else int(array.__array_interface__["data"][0])


def byte_range(array: Any) -> tuple[int, int]:
    """``[first, last)`` of the bytes that an array's elements occupy; empty when it has no elements."""
    own = getattr(array, "byte_range", None)
    if own is not None:
        low, high = own()
        return int(low), int(high)
    pointer = getattr(array, "data_ptr", None)
    if pointer is None:
        fields = array.__array_interface__
        return _strided_range(fields["data"][0], array.shape, array.strides, array.itemsize)
    itemsize = array.element_size() if hasattr(array, "element_size") else 1
    strides = tuple(s * itemsize for s in array.stride())
    return _strided_range(int(pointer()), tuple(array.shape), strides, itemsize)


def device_of(array: Any) -> str:
    """The kind of device that holds an array: ``cpu``, ``cuda``, ..."""
    device = getattr(array, "device", None)
    if device is None:
        return "cpu"
    kind = getattr(device, "type", device)
    return kind.partition(":")[0] if isinstance(kind, str) else "cpu"


def device_index(array: Any) -> int | None:
    """Which of the devices of its kind holds an array; None where the array does not tell."""
    device = getattr(array, "device", None)
    number = device.partition(":")[2] if isinstance(device, str) else getattr(device, "index", None)
    if isinstance(number, str):
        return int(number) if number.isdigit() else None
    return number if type(number) is int else None


def is_readonly(array: Any) -> bool:
    """Whether the array's owner forbids writing (NumPy's ``writeable`` flag)."""
    flags = getattr(array, "flags", None)
    if flags is None:
        return bool(getattr(array, "readonly", False))
    return not getattr(flags, "writeable", True)


# ---- specialisation -------------------------------------------------------------------------------------------------

Specialization = tuple[Any, Any]


def _specialize_int(value: int, specialize: bool, align: bool) -> Specialization:
    if specialize and value == 1:
        return "constexpr", 1
    if -(2**31) <= value < 2**31:
        name = "i32"
    elif -(2**63) <= value < 2**63:
        name = "i64"
    elif value < 2**64:
        name = "u64"
    else:
        raise ArgumentError(f"the integer {value} does not fit 64 bits")
    if not specialize:
        return name, None
    return name, int_key(value) if align else ""


PROMISES = {"D": DIVISIBILITY, "E": DIVISIBILITY // 2}


def int_key(value: int) -> str:
    """What is promised of an integer: ``D`` that 16 divides it, ``E`` that 8 does."""
    return "D" if value % DIVISIBILITY == 0 else "E" if value % (DIVISIBILITY // 2) == 0 else ""


def _specialize_array(array: Any, is_const: bool, specialize: bool, align: bool) -> Specialization:
    name = ("*k" if is_const else "*") + element_type(array.dtype)
    if not specialize:
        return name, None
    return name, "D" if align and address_of(array) % DIVISIBILITY == 0 else ""


_Rule = Callable[[Any, bool, bool, bool], Specialization]

_RULES: dict[type, _Rule] = {
    int: lambda arg, is_const, specialize, align: _specialize_int(arg, specialize, align),
    bool: lambda arg, is_const, specialize, align: ("u1", None),
    float: lambda arg, is_const, specialize, align: ("fp32", None),
    type(None): lambda arg, is_const, specialize, align: ("constexpr", None),
    str: lambda arg, is_const, specialize, align: ("constexpr", arg),
}


def specialize_argument(
    arg: Any, is_const: bool = False, specialize: bool = True, align: bool = True
) -> Specialization:
    """``(type, key)`` of an argument of a parameter that is not constexpr.

    ``key`` is ``D`` where divisibility by 16 is promised, ``E`` where that of an integer by 8 is, the value of a
    compile-time constant, else empty or None.
    """
    rule = _RULES.get(type(arg))
    if rule is not None:
        return rule(arg, is_const, specialize, align)
    if isinstance(arg, tuple):
        parts = [specialize_argument(item, is_const, specialize, align) for item in arg]
        return make_like(arg, [p[0] for p in parts]), make_like(arg, [p[1] for p in parts])
    if not _is_numpy_scalar(arg):
        array = as_array(arg)
        if array is not None:
            return _specialize_array(array, is_const, specialize, align)
    return _specialize_other(arg, is_const, specialize, align)


def _specialize_other(arg: Any, is_const: bool, specialize: bool, align: bool) -> Specialization:
    if isinstance(arg, list):
        return specialize_argument(tuple(arg), is_const, specialize, align)
    for cls in (bool, int, float, str):
        if isinstance(arg, cls):
            return _RULES[cls](cls(arg), is_const, specialize, align)
    key = getattr(arg, "cache_key", None)
    if key is not None:  # a jitted function passed as a value
        return "constexpr", key
    if hasattr(arg, "block_shape") and hasattr(arg, "base"):
        return _specialize_descriptor(arg, specialize and align)
    if type(arg).__name__ in ("constexpr", "dtype") and hasattr(type(arg), "__hash__"):
        return "constexpr", arg
    if _is_numpy_scalar(arg) and str(arg.dtype) == "bool":
        return "u1", None
    if hasattr(type(arg), "__index__"):  # NumPy's bool has it up to NumPy 2.2
        return _specialize_int(arg.__index__(), specialize, align)
    if hasattr(arg, "__float__") and _is_numpy_scalar(arg):
        return "fp32", None
    raise ArgumentError(f"a value of type {type(arg).__name__} cannot be passed to a kernel")


def _specialize_descriptor(arg: Any, align: bool) -> Specialization:
    """Element type, box and padding; ``D`` where the tensor is as machines that copy boxes want it: see `make_desc`."""
    element = element_type(arg.base.dtype)
    padding = ", nan" if getattr(arg, "padding", "zero") == "nan" else ""
    size = element_bytes(element)
    regular = (
        align
        and address_of(arg.base) % 16 == 0
        and arg.strides[-1] == 1
        and all(0 <= stride < 2**40 // size and stride * size % 16 == 0 for stride in arg.strides[:-1])
        and all(1 <= n < 2**31 for n in arg.shape)
    )
    return f"tensordesc<{element}{list(arg.block_shape)}{padding}>", "D" if regular else ""


def native_specialize_impl(
    backend: Any, arg: Any, is_const: bool = False, specialize: bool = True, align: bool = True
) -> Specialization:
    """``specialize_argument`` under the name and order of arguments that PyTorch calls."""
    return specialize_argument(arg, is_const, specialize, align)


def mangle_type(arg: Any, specialize: bool = False) -> Any:
    """The type name of an argument. Raises TypeError for text, which only constexpr parameters take."""
    if isinstance(arg, str):
        raise TypeError("text can only be passed to a tl.constexpr parameter")
    if isinstance(arg, tuple):
        return tuple(mangle_type(item, specialize) for item in arg)
    return specialize_argument(arg, False, specialize, specialize)[0]
