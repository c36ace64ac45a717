"""Matrix products."""

from __future__ import annotations

import builtins
from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.dtypes import get_block_type
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, describe, tensor, unwrap

from .shapes import element_type


def _precision(input_precision: Any, allow_tf32: Any, s: TritonSemantic) -> str:
    given, tf32 = unwrap(input_precision), unwrap(allow_tf32)
    if given is not None and tf32 is not None:
        raise ValueError("dot: input_precision and allow_tf32 cannot be given together")
    if tf32 is not None:
        given = "tf32" if tf32 else "ieee"
    allowed = s.capabilities.dot_precisions
    if given is None:
        return getattr(s.options, "default_dot_input_precision", None) or s.capabilities.default_precision
    if not isinstance(given, str) or given.lower() not in allowed:
        raise ValueError(f"dot: input_precision: expected one of {', '.join(map(repr, allowed))}, got {given!r}")
    return given.lower()


def _check_shapes(a: Any, b: Any) -> builtins.tuple[int, ...]:
    x, y = a.type.shape, b.type.shape
    if len(x) != len(y) or len(x) not in (2, 3):
        raise ValueError(
            f"dot: expected two tensors of rank 2, or 3 with a batch axis, got shapes {list(x)} and {list(y)}"
        )
    if x[:-2] != y[:-2]:
        raise ValueError(f"dot: the batch sizes of shapes {list(x)} and {list(y)} differ")
    if x[-1] != y[-2]:
        raise ValueError(f"dot: the inner sizes of shapes {list(x)} and {list(y)} differ: {x[-1]} and {y[-2]}")
    return (*x[:-1], y[-1])


def _accumulator_type(a: dt.dtype, b: dt.dtype, out: Any) -> dt.dtype:
    """The type in which products are added up."""
    if not (a.is_fp8() and b.is_fp8()) and a != b:
        raise TypeError(f"dot: the operands differ in type: {a} and {b}; cast one of them")
    if a.is_int():
        if a.int_bitwidth != 8:
            raise TypeError(f"dot: integer operands must be int8 or uint8, got {a}")
        if out is not None and out not in (dt.int32, dt.float32):
            raise TypeError(f"dot: out_dtype: products of {a} are added up in int32, got {out}")
        return dt.int32
    if out is None:
        return dt.float64 if a.is_fp64() else dt.float32
    if out.is_bf16() or not out.is_standard_floating():
        raise TypeError(f"dot: out_dtype: expected float16, float32 or float64, got {out}")
    if a.is_fp64():
        return dt.float64
    return dt.float32 if out.is_fp16() and not (a.is_fp16() or a.is_fp8()) else out


@builtin
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
    _semantic: Any = None,
) -> tensor:
    """The matrix product [M, K] x [K, N], or of batches of them, plus ``acc``. Any sizes.

    Both operands have one type: float16, bfloat16, float32, float64, 8-bit floats (which may differ), int8 or uint8.
    Products are added up in float32 (float64, int32; float16 when ``out_dtype`` asks for it). ``input_precision``
    permits float32 operands to be rounded ("tf32") or split ("tf32x3", "bf16x3", "bf16x6"); "ieee" keeps them;
    ``allow_tf32`` is its old spelling.
    """
    s = _semantic
    a, b = unwrap(input), unwrap(other)
    for name, value in (("input", a), ("other", b)):
        if not isinstance(value, tensor) or not value.type.is_block() or value.dtype.is_ptr():
            raise TypeError(f"dot: {name}: expected a tensor of numbers, got {describe(value)}")
    shape = _check_shapes(a, b)
    accumulator, start = unwrap(acc), None
    wanted = None if unwrap(out_dtype) is None else element_type(out_dtype, "dot: out_dtype")
    if isinstance(accumulator, tensor) and wanted is None and accumulator.dtype.is_fp16():
        wanted = dt.float16
    element = _accumulator_type(a.dtype, b.dtype, wanted)
    type = get_block_type(element, shape)
    if accumulator is None:
        start = s.constant(0, type)
    else:
        if not isinstance(accumulator, tensor) or accumulator.type.shape != shape:
            raise ValueError(f"dot: acc: expected a tensor of shape {list(shape)}, got {describe(accumulator)}")
        if accumulator.dtype != element:
            raise TypeError(f"dot: acc: expected {element}, got {accumulator.dtype}")
        start = accumulator
    attrs: dict[str, Any] = {}
    precision = _precision(input_precision, allow_tf32, s)
    if precision != "ieee" and a.dtype.is_fp32():
        attrs["precision"] = precision
    imprecise = unwrap(max_num_imprecise_acc)
    if imprecise is not None:
        attrs["max_imprecise"] = max(1, s.constexpr_int(imprecise, "dot: max_num_imprecise_acc"))
    result = tensor(s.op("dot", [a.handle, b.handle, start.handle], type.ir, attrs), type)
    return s.cast(result, wanted) if wanted is not None and wanted != element else result


_FORMATS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")


@builtin
def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = dt.float32,
    _semantic: Any = None,
) -> tensor:
    """The matrix product of block-scaled operands, in float32, plus ``acc``.

    ``lhs_format``/``rhs_format``: "e2m1" (two to a byte, along K unless ``*_k_pack`` is False), "e4m3", "e5m2",
    "bf16", "fp16". A scale is a power of two (uint8, the exponent plus 127) for each 32 elements of K: [M, K // 32]
    for lhs, [N, K // 32] for rhs; None stands for 1.
    """
    s = _semantic
    formats = [unwrap(f) for f in (lhs_format, rhs_format)]
    for name, given in zip(("lhs_format", "rhs_format"), formats, strict=True):
        if given not in _FORMATS:
            raise ValueError(f"dot_scaled: {name}: expected one of {', '.join(map(repr, _FORMATS))}, got {given!r}")
    sizes = []
    for name, value, form, pack, k_axis in (
        ("lhs", lhs, formats[0], lhs_k_pack, 1),
        ("rhs", rhs, formats[1], rhs_k_pack, 0),
    ):
        if not isinstance(value, tensor) or len(value.type.shape) != 2:
            raise TypeError(f"dot_scaled: {name}: expected a tensor of rank 2, got {describe(value)}")
        shape = list(value.type.shape)
        if form == "e2m1":
            shape[k_axis if unwrap(pack) else 1 - k_axis] *= 2
        sizes.append(shape)
    if sizes[0][1] != sizes[1][0]:
        raise ValueError(f"dot_scaled: the inner sizes {sizes[0][1]} and {sizes[1][0]} differ")
    type = get_block_type(dt.float32, (sizes[0][0], sizes[1][1]))
    start = s.constant(0, type) if unwrap(acc) is None else acc
    if not isinstance(start, tensor) or start.type != type:
        raise TypeError(f"dot_scaled: acc: expected {type}, got {describe(start)}")
    scales = [v for v in (unwrap(lhs_scale), unwrap(rhs_scale)) if v is not None]
    attrs = {
        "a_format": formats[0],
        "b_format": formats[1],
        "a_scaled": unwrap(lhs_scale) is not None,
        "b_scaled": unwrap(rhs_scale) is not None,
        "a_k_pack": bool(unwrap(lhs_k_pack)),
        "b_k_pack": bool(unwrap(rhs_k_pack)),
        "fast_math": bool(unwrap(fast_math)),
    }
    operands = [lhs.handle, rhs.handle, start.handle, *[v.handle for v in scales]]
    result = tensor(s.op("dot_scaled", operands, type.ir, attrs), type)
    return s.cast(result, element_type(out_dtype, "dot_scaled: out_dtype"))
