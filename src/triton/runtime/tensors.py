"""Stand-ins for tensors: a tensor seen with another element type, and an argument of ``warmup`` with only a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import address_of, byte_range, element_bytes, element_type, type_canonicalisation_dict


class TensorWrapper:
    """``base`` read by kernels as if its elements were of ``dtype``, without a copy."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.dtype = dtype
        self.base = base
        self.data = getattr(base, "data", base)
        self.device = getattr(base, "device", "cpu")
        self.shape = base.shape

    def data_ptr(self) -> int:
        return address_of(self.base)

    def byte_range(self) -> tuple[int, int]:
        return byte_range(self.base)

    def stride(self, *args: int) -> Any:
        return self.base.stride(*args)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"

    def element_size(self) -> int:
        return int(self.base.element_size())

    def cpu(self) -> TensorWrapper:
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Sequence[int]) -> TensorWrapper:
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """``tensor`` with its bytes read as ``dtype``, for example 8-bit integers as a float8 type of the same width."""
    if isinstance(tensor, TensorWrapper):
        if dtype == tensor.base.dtype:
            return tensor.base
        return TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr") or hasattr(tensor, "__array_interface__"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"cannot reinterpret a value of type {type(tensor).__name__}: it is not a tensor")


class MockTensor:
    """An argument of ``warmup`` in place of a tensor of ``dtype``: 16-byte aligned, without storage."""

    def __init__(self, dtype: Any, shape: Sequence[int] | None = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else list(shape)

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A mock tensor when ``arg`` is an element type (torch's, NumPy's or triton's), else ``arg``."""
        if type(arg).__name__ == "dtype" and (type(arg).__module__ in ("torch", "numpy") or _is_language_dtype(arg)):
            return MockTensor(arg)
        if type(arg).__module__.startswith("numpy.dtypes"):
            return MockTensor(arg)
        return arg

    def stride(self) -> list[int]:
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.append(strides[-1] * size)
        return strides[::-1]

    def element_size(self) -> int:
        return element_bytes(element_type(self.dtype))

    @staticmethod
    def data_ptr() -> int:
        return 0

    @staticmethod
    def ptr_range() -> int:
        return 0


def _is_language_dtype(arg: Any) -> bool:
    return str(arg) in type_canonicalisation_dict
