"""Tensor descriptors made on the host and passed to kernels as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..runtime.arguments import address_of, element_bytes, element_type


@dataclass
class TensorDescriptor:
    """A strided tensor that a kernel reads and writes in boxes of ``block_shape``.

    ``strides`` are in elements, the last one is 1 and the others span multiples of 16 bytes; ``padding`` is what lies
    outside (``zero`` or ``nan``).
    """

    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"TensorDescriptor: a tensor has 1 to 5 dimensions, got {rank}")
        if len(self.strides) != rank or len(self.block_shape) != rank:
            raise ValueError(
                f"TensorDescriptor: shape, strides and block_shape differ in length: "
                f"{rank}, {len(self.strides)}, {len(self.block_shape)}"
            )
        validate_block_shape(self.block_shape)
        if address_of(self.base) % 16:
            raise ValueError("TensorDescriptor: the base must be aligned to 16 bytes")
        size = element_bytes(element_type(self.base.dtype))
        for dim, stride in enumerate(self.strides[:-1]):
            if stride * size % 16:
                raise ValueError(
                    f"TensorDescriptor: stride {dim} is {stride} elements, {stride * size} bytes; "
                    "it must be a multiple of 16 bytes"
                )
        if self.strides[-1] != 1:
            raise ValueError(f"TensorDescriptor: the last stride must be 1, got {self.strides[-1]}")
        if self.padding not in ("zero", "nan"):
            raise ValueError(f"TensorDescriptor: padding is 'zero' or 'nan', got {self.padding!r}")
        if self.padding == "nan" and not element_type(self.base.dtype).startswith(("fp", "bf")):
            raise ValueError("TensorDescriptor: padding with nan needs floating-point elements")
        if self.round_f32_to_tf32 and element_type(self.base.dtype) != "fp32":
            raise ValueError("TensorDescriptor: round_f32_to_tf32 needs float32 elements")

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: list[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """A descriptor of a whole tensor or array, with its shape and strides."""
        if hasattr(tensor, "stride"):
            strides = list(tensor.stride())
        else:
            strides = [s // tensor.itemsize for s in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), strides, block_shape, padding, round_f32_to_tf32)


def validate_block_shape(shape: list[int]) -> int:
    """The number of elements of a box; raises for sizes that are no positive integers."""
    total = 1
    for dim, size in enumerate(shape):
        if not isinstance(size, int):
            raise TypeError(f"block_shape[{dim}] should be an integer, got {size!r}")
        if size < 1:
            raise ValueError(f"block_shape[{dim}] should be at least 1, got {size}")
        total *= size
    return total
