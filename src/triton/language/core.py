"""The language's types, values and operations under one name; see the modules that define them."""

# ruff: noqa: F401 - the imports are the module

from __future__ import annotations

import importlib
import warnings
from typing import Any

from triton.frontend.descriptors import (
    tensor_descriptor,
    tensor_descriptor_base,
    tensor_descriptor_base_type,
    tensor_descriptor_type,
)
from triton.frontend.dtypes import (
    TRITON_MAX_TENSOR_NUMEL,
    base_type,
    bfloat16,
    block_type,
    const,
    constexpr_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    get_int_dtype,
    get_primitive_bitwidth,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    slice_type,
    str_to_ty,
    tuple_type,
    uint8,
    uint16,
    uint32,
    uint64,
    validate_block_shape,
    void,
)
from triton.frontend.loop_values import condition, range, static_range
from triton.frontend.semantic import TritonSemantic, promote_bfloat16
from triton.frontend.source import JITCallable
from triton.frontend.values import (
    CONSTEXPR_0,
    TRITON_BUILTIN,
    _unwrap_if_constexpr,
    _unwrap_shape,
    base_value,
    builtin,
    constexpr,
    is_builtin,
    slice,
    tensor,
    tuple,
)

from .aggregates import _aggregate, aggregate_replace
from .arith import (
    PROPAGATE_NAN,
    PropagateNan,
    add,
    binary_op_type_legalization,
    builtin_max,
    builtin_min,
    cast,
    check_bit_width,
    clamp,
    is_negative_zero,
    maximum,
    minimum,
    mul,
    sub,
    where,
)
from .block_pointers import advance, make_block_ptr
from .matmul import dot, dot_scaled
from .memory import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_poll,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    load,
    store,
)
from .program import (
    assume,
    debug_barrier,
    device_assert,
    device_print,
    dispatch,
    expect_zero,
    extern,
    extern_elementwise,
    inline_asm_elementwise,
    load_tensor_descriptor,
    make_tensor_descriptor,
    max_constancy,
    max_contiguous,
    multiple_of,
    must_use_result,
    num_programs,
    program_id,
    static_assert,
    static_print,
    store_tensor_descriptor,
)
from .reductions import associative_scan, map_elementwise, reduce
from .shapes import (
    CAT_CAN_REORDER_WARNING,
    RESHAPE_CAN_REORDER_WARNING,
    arange,
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    full,
    gather,
    histogram,
    item,
    join,
    permute,
    reshape,
    split,
    to_tensor,
    trans,
    view,
)

_experimental_make_tensor_descriptor = make_tensor_descriptor
_experimental_descriptor_load = load_tensor_descriptor
_experimental_descriptor_store = store_tensor_descriptor
_warned: set[str] = set()


@builtin
def _promote_bfloat16_to_float32(t: Any, _semantic: Any = None) -> Any:
    """bfloat16 as float32; anything else is itself."""
    return promote_bfloat16(t, _semantic)


def is_enabled(options: Any, name: str) -> bool:
    """Whether the kernel is compiled with this option on."""
    return bool(getattr(options, name, False))


def warn_once(message: str) -> None:
    """A Python warning, the first time this message is given."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=2)


def dataclass_transform(**kwargs: Any) -> Any:
    """``typing.dataclass_transform``, which Python 3.10 lacks: a note for type checkers."""
    return lambda decorated: decorated


def __getattr__(name: str) -> Any:
    # Modules that users of Triton reach through this one; none is needed to import the language.
    if name == "knobs":
        return importlib.import_module("triton.knobs")
    if name == "ir":
        return importlib.import_module("triton.ir")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    n
    for n in dir()
    if not n.startswith("_") and n not in ("annotations", "importlib", "warnings", "Any", "TritonSemantic")
]
