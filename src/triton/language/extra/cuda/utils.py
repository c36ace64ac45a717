"""Registers and conversions of NVIDIA GPUs."""

from __future__ import annotations

from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, constexpr
from triton.language import core


def _register(text: str, constraint: str, dtype: dt.dtype, name: str, s: TritonSemantic) -> Any:
    if s.capabilities.backend != "cuda":
        raise NotImplementedError(f"{name}: needs an NVIDIA GPU; the target is {s.capabilities.backend}")
    return core.inline_asm_elementwise(text, constraint, [], dtype, is_pure=False, pack=1, _semantic=s)


@builtin
def globaltimer(_semantic: Any = None) -> Any:
    """The GPU's timer in nanoseconds, as int64."""
    return _register("mov.u64 $0, %globaltimer;", "=l", dt.int64, "globaltimer", _semantic)


@builtin
def smid(_semantic: Any = None) -> Any:
    """The number of the multiprocessor that runs the program, as int32."""
    return _register("mov.u32 $0, %smid;", "=r", dt.int32, "smid", _semantic)


@builtin
def num_threads(_semantic: Any = None) -> Any:
    """Threads of a program: 32 for each warp."""
    return constexpr(_semantic.options.num_warps * 32)


@builtin
def num_warps(_semantic: Any = None) -> Any:
    """Warps of a program."""
    return constexpr(_semantic.options.num_warps)


@builtin
def convert_fp8e4b15_to_float16(arg: Any, _semantic: Any = None) -> Any:
    """8-bit floats of bias 15 as float16."""
    return _semantic.cast(arg, dt.float16)


@builtin
def convert_float16_to_fp8e4b15(arg: Any, has_minx2: Any, _semantic: Any = None) -> Any:
    """float16 as 8-bit floats of bias 15."""
    return _semantic.cast(arg, dt.float8e4b15)


@builtin
def convert_custom_float8(
    arg: Any, dst_ty: Any, fp_downcast_rounding: Any, has_minx2: Any, _semantic: Any = None
) -> Any:
    """Conversion from or to 8-bit floats of bias 15."""
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)


@builtin
def convert_custom_float8_sm80(arg: Any, dst_ty: Any, fp_downcast_rounding: Any = None, _semantic: Any = None) -> Any:
    """Conversion from or to 8-bit floats of bias 15."""
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)


@builtin
def convert_custom_float8_sm70(arg: Any, dst_ty: Any, fp_downcast_rounding: Any = None, _semantic: Any = None) -> Any:
    """Conversion from or to 8-bit floats of bias 15."""
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)
