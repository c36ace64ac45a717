"""Functions of the language that are also methods of tensors, and the tensor's operators."""

from __future__ import annotations

from typing import Any

from triton.frontend.expressions import TENSOR_METHODS
from triton.frontend.values import tensor

from . import arith, block_pointers, core, math, shapes, standard

_FROM = {
    core: (
        "associative_scan",
        "atomic_add",
        "atomic_and",
        "atomic_cas",
        "atomic_load",
        "atomic_max",
        "atomic_min",
        "atomic_or",
        "atomic_poll",
        "atomic_store",
        "atomic_xchg",
        "atomic_xor",
        "broadcast_to",
        "cast",
        "expand_dims",
        "gather",
        "histogram",
        "permute",
        "reduce",
        "reshape",
        "split",
        "store",
        "trans",
        "view",
        "item",
    ),
    math: ("abs", "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sin", "sqrt", "sqrt_rn"),
    standard: (
        "argmax",
        "argmin",
        "cdiv",
        "cumprod",
        "cumsum",
        "flip",
        "max",
        "min",
        "ravel",
        "reduce_or",
        "sigmoid",
        "softmax",
        "sort",
        "sum",
        "xor_sum",
    ),
    block_pointers: ("advance",),
    arith: ("to",),
}


class _Transposed:
    """``x.T`` for readers of the class; kernels get it from the compiler."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        raise ValueError("T: can only be used inside a function decorated with @triton.jit")


def _install() -> None:
    arith.install_operators()
    for module, names in _FROM.items():
        for name in names:
            fn = getattr(module, name)
            TENSOR_METHODS[name] = fn
            setattr(tensor, name, fn)
    for name in ("__getitem__", "logical_and", "logical_or", "__not__"):
        TENSOR_METHODS[name] = shapes.subscript if name == "__getitem__" else getattr(tensor, name)
    tensor.__getitem__ = shapes.subscript  # type: ignore[misc]
    tensor.T = _Transposed()  # type: ignore[attr-defined]


_install()
