"""The program's place in the grid, hints, diagnosis, assembly and library functions, descriptors' constructors."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.descriptors import check_strides, scalar_int, tensor_descriptor, tensor_descriptor_base
from triton.frontend.dtypes import get_block_type
from triton.frontend.generator import Generator
from triton.frontend.semantic import StaticAssertionFailed, TritonSemantic
from triton.frontend.values import builtin, describe, tensor, tuple, unwrap

from .shapes import element_type


@builtin
def program_id(axis: Any, _semantic: Any = None) -> tensor:
    """This program's index along grid axis 0, 1 or 2, as int32."""
    return _grid("program_id", axis, _semantic)


@builtin
def num_programs(axis: Any, _semantic: Any = None) -> tensor:
    """The grid's size along axis 0, 1 or 2, as int32."""
    return _grid("num_programs", axis, _semantic)


def _grid(kind: str, axis: Any, s: TritonSemantic) -> tensor:
    place = s.constexpr_int(axis, f"{kind}: axis")
    if place not in (0, 1, 2):
        raise ValueError(f"{kind}: axis: expected 0, 1 or 2, got {place}")
    return tensor(s.op(kind, [], dt.int32.ir, {"axis": place}), dt.int32)


# Hints --------------------------------------------------------------------------------------------------------------


def _hint(input: Any, values: Any, name: str, what: str, s: TritonSemantic) -> Any:
    x = s.to_tensor(unwrap(input), f"{what}: input")
    given = unwrap(values)
    numbers = builtins.tuple(
        s.constexpr_int(v, f"{what}: values") for v in (given if isinstance(given, (list, builtins.tuple)) else [given])
    )
    rank = max(1, len(x.type.shape))
    if len(numbers) != rank:
        raise ValueError(f"{what}: values: expected {rank}, one for each axis, got {len(numbers)}")
    if min(numbers) < 1:
        raise ValueError(f"{what}: values: must be at least 1, got {min(numbers)}")
    return tensor(s.op("hint", [x.handle], x.type.ir, {name: numbers}), x.type)


@builtin
def multiple_of(input: Any, values: Any, _semantic: Any = None) -> tensor:
    """``input``, with the promise that along each axis the first value of each contiguous group is a multiple of
    ``values``."""
    return _hint(input, values, "divisible", "multiple_of", _semantic)


@builtin
def max_contiguous(input: Any, values: Any, _semantic: Any = None) -> tensor:
    """``input``, with the promise that along each axis groups of ``values`` elements count up by one."""
    return _hint(input, values, "contiguous", "max_contiguous", _semantic)


@builtin
def max_constancy(input: Any, values: Any, _semantic: Any = None) -> tensor:
    """``input``, with the promise that along each axis groups of ``values`` elements are equal."""
    return _hint(input, values, "constant", "max_constancy", _semantic)


@builtin
def assume(cond: Any, _semantic: Any = None) -> None:
    """The promise that ``cond``, a scalar, holds."""
    s = _semantic
    condition = s.truth(unwrap(cond), "assume: cond")
    if condition.type.is_block():
        raise TypeError(f"assume: cond: expected a scalar, got {describe(condition)}")
    if s.known(condition) is None:
        s.builder.emit("assume", [condition.handle], [])


@builtin
def expect_zero(x: Any, mask: Any, _semantic: Any = None) -> Any:
    """``x``; a note for checking tools that it is 0 where ``mask`` does not hold."""
    return x


# Diagnosis ----------------------------------------------------------------------------------------------------------


@builtin
def debug_barrier(_semantic: Any = None) -> None:
    """All threads of the program meet."""
    _semantic.builder.emit("barrier", [], [])


@builtin
def static_assert(cond: Any, msg: Any = "", _semantic: Any = None) -> None:
    """Fails the compilation with ``msg`` unless ``cond``, a compile-time value, holds."""
    value = unwrap(cond)
    if isinstance(value, tensor):
        known = _semantic.known(value)
        if known is None or value.type.is_block():
            raise TypeError(
                f"static_assert: cond: expected a compile-time value, got {describe(value)}; use tl.device_assert"
            )
        value = known
    if not value:
        text = unwrap(msg)
        raise StaticAssertionFailed(f"static assertion failed: {text}" if text else "static assertion failed")


@builtin
def static_print(
    *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False, _semantic: Any = None
) -> None:
    """Prints while the kernel is compiled: constants by value, tensors by type."""
    print(
        *[unwrap(v) for v in values],
        sep=unwrap(sep),
        end=unwrap(end),
        file=unwrap(file) or sys.stdout,
        flush=unwrap(flush),
    )


@builtin
def device_print(prefix: Any, *args: Any, hex: Any = False, _semantic: Any = None) -> None:
    """Prints ``prefix`` and every element of the arguments, with the program's and the element's index, when the
    kernel runs.

    ``hex``: numbers by their bits.
    """
    s = _semantic
    text = unwrap(prefix)
    if not isinstance(text, str):
        raise TypeError(f"device_print: prefix: expected a string, got {describe(prefix)}")
    leaves = []
    for i, arg in enumerate(args):
        for value in arg.values if isinstance(arg, tuple) else [arg]:
            leaves.append(s.to_tensor(unwrap(value), f"device_print: args[{i}]").handle)
    if leaves and text:
        text = text.rstrip(" ").rstrip(":") + ": "
    attrs: dict[str, Any] = {"prefix": text}
    if unwrap(hex):
        attrs["hex"] = True
    s.builder.emit("print", leaves, [], attrs)


def python_print(g: Generator, *args: Any, **kwargs: Any) -> None:
    """Python's ``print`` in a kernel: device_print, with the leading strings as prefix."""
    args = builtins.tuple(args)
    strings = []
    while args and isinstance(unwrap(args[0]), str):
        strings.append(unwrap(args[0]))
        args = args[1:]
    device_print(" ".join(strings), *args, _semantic=g.semantic, **{k: v for k, v in kwargs.items() if k == "hex"})


@builtin
def device_assert(cond: Any, msg: Any = "", mask: Any = None, _semantic: Any = None) -> None:
    """Stops the launch with ``msg`` when ``cond`` fails anywhere ``mask`` holds; only in kernels compiled with debug
    on."""
    _emit_assert(cond, msg, mask, _semantic)


def _emit_assert(cond: Any, msg: Any, mask: Any, s: TritonSemantic) -> None:
    text = unwrap(msg)
    if isinstance(text, builtins.tuple):
        text = " ".join(map(str, text))
    if not isinstance(text, str):
        raise TypeError(f"device_assert: msg: expected a string, got {describe(msg)}")
    if not getattr(s.options, "debug", False):
        return
    condition = s.truth(unwrap(cond), "device_assert: cond")
    if s.known(condition) is True:
        return
    operands = [condition]
    if unwrap(mask) is not None:
        operands = s.broadcast_all([condition, s.truth(unwrap(mask), "device_assert: mask")], "device_assert")
    s.builder.emit("assert", [v.handle for v in operands], [], {"message": text})


def statement_assert(g: Generator, test: Any, message: Any) -> None:
    """``assert`` in a kernel: decided now for compile-time values, else device_assert."""
    if not isinstance(test, tensor):
        static_assert(test, message, _semantic=g.semantic)
        return
    _emit_assert(test, message, None, g.semantic)


Generator.emit_assert = statement_assert


# Descriptors --------------------------------------------------------------------------------------------------------


@builtin
def make_tensor_descriptor(
    base: Any,
    shape: Any,
    strides: Any,
    block_shape: Any,
    padding_option: Any = "zero",
    _semantic: Any = None,
) -> tensor_descriptor:
    """A descriptor of the tensor of ``shape`` and ``strides`` (in elements) at ``base``, read and written in boxes of
    ``block_shape``.

    ``base`` is aligned to 16 bytes, strides are multiples of 16 bytes except the last, which is 1: of other strides
    the compiler complains, or the launch when they are known only then. What a load reads outside the tensor is 0, or
    NaN with ``padding_option="nan"``.
    """
    s, what = _semantic, "make_tensor_descriptor"
    if not isinstance(base, tensor) or base.type.is_block() or not base.dtype.is_ptr():
        raise TypeError(f"{what}: base: expected a pointer, got {describe(base)}")
    element = base.dtype.element_ty  # type: ignore[attr-defined]
    box = s.shape_argument(block_shape, f"{what}: block_shape")
    padding = unwrap(padding_option)
    if padding not in ("zero", "nan"):
        raise ValueError(f"{what}: padding_option: expected 'zero' or 'nan', got {padding!r}")
    if padding == "nan" and not element.is_floating():
        raise ValueError(f"{what}: padding_option: 'nan' needs floating-point elements, got {element}")
    parts = []
    for name, given, type in (("shape", shape, dt.int32), ("strides", strides, dt.int64)):
        members = getattr(given, "values", unwrap(given))
        if not isinstance(members, (list, builtins.tuple)) or len(members) != len(box):
            raise ValueError(f"{what}: {name}: expected {len(box)} values, as block_shape has, got {describe(given)}")
        parts.append([scalar_int(v, f"{what}: {name}[{i}]", type, s) for i, v in enumerate(members)])
    if not 1 <= len(box) <= 5:
        raise ValueError(f"{what}: block_shape: expected 1 to 5 axes, got {len(box)}")
    if box[-1] * element.primitive_bitwidth < 128:
        raise ValueError(
            f"{what}: block_shape: the last axis must span 16 bytes or more, got {box[-1]} elements of "
            f"{element.primitive_bitwidth // 8} bytes"
        )
    check_strides(parts[1], element, what, s)
    made = tensor_descriptor(None, tuple(parts[0]), tuple(parts[1]), get_block_type(element, box))
    made.base, made.padding = base, padding
    made.make(s)
    return made


def _descriptor(desc: Any, what: str) -> Any:
    if not isinstance(desc, tensor_descriptor_base):
        raise TypeError(f"{what}: desc: expected a tensor descriptor, got {describe(desc)}")
    return desc


@builtin
def load_tensor_descriptor(desc: Any, offsets: Any, _semantic: Any = None) -> tensor:
    """``desc.load(offsets)``."""
    return _descriptor(desc, "load_tensor_descriptor").load(offsets, _semantic=_semantic)


@builtin
def store_tensor_descriptor(desc: Any, offsets: Any, value: Any, _semantic: Any = None) -> Any:
    """``desc.store(offsets, value)``."""
    return _descriptor(desc, "store_tensor_descriptor").store(offsets, value, _semantic=_semantic)


# Assembly and libraries ---------------------------------------------------------------------------------------------


@builtin
def inline_asm_elementwise(
    asm: Any,
    constraints: Any,
    args: Any,
    dtype: Any,
    is_pure: Any,
    pack: Any,
    _semantic: Any = None,
) -> Any:
    """Target assembly applied to ``pack`` elements of the broadcast ``args`` at a time.

    ``constraints`` is in LLVM's syntax, outputs first. ``dtype`` is the result's type, or a tuple of several results'
    types.
    """
    s, what = _semantic, "inline_asm_elementwise"
    text, rules, per_call = unwrap(asm), unwrap(constraints), s.constexpr_int(pack, f"{what}: pack")
    if per_call < 1:
        raise ValueError(f"{what}: pack: must be at least 1, got {per_call}")
    members = args.values if isinstance(args, tuple) else list(args)
    values = s.broadcast_all([s.to_tensor(unwrap(a), f"{what}: args") for a in members], what)
    shape = values[0].type.shape if values else ()
    wanted = unwrap(dtype)
    several = isinstance(wanted, (list, builtins.tuple))
    types = [get_block_type(element_type(d, f"{what}: dtype"), shape) for d in (wanted if several else [wanted])]
    attrs = {"text": text, "constraints": rules, "pack": per_call, "pure": bool(unwrap(is_pure))}
    results = s.builder.emit("inline_asm", [v.handle for v in values], [t.ir for t in types], attrs).results
    made = [tensor(r, t) for r, t in zip(results, types, strict=True)]
    return tuple(made) if several else made[0]


def dispatch(
    func: Any,
    lib_name: Any,
    lib_path: Any,
    args: Any,
    arg_type_symbol_dict: Any,
    ret_type: Any,
    is_pure: Any,
    _semantic: Any = None,
) -> tensor:
    """The symbol for these argument types, as an ``extern`` op."""
    s = _semantic
    elements = builtins.tuple(a.dtype for a in args)
    if elements not in arg_type_symbol_dict:
        known = ", ".join("(" + ", ".join(map(str, k)) + ")" for k in arg_type_symbol_dict)
        raise ValueError(f"extern_elementwise: no function for ({', '.join(map(str, elements))}); there is {known}")
    symbol, result = arg_type_symbol_dict[elements]
    type = get_block_type(unwrap(result), args[0].type.shape if args else ())
    attrs = {
        "symbol": symbol,
        "library": unwrap(lib_name) or "",
        "path": unwrap(lib_path) or "",
        "pure": bool(unwrap(is_pure)),
    }
    return tensor(s.op("extern", [a.handle for a in args], type.ir, attrs), type)


@builtin
def extern_elementwise(
    lib_name: Any,
    lib_path: Any,
    args: Any,
    arg_type_symbol_dict: Any,
    is_pure: Any,
    _semantic: Any = None,
) -> tensor:
    """A function of a bitcode library on each element; ``arg_type_symbol_dict`` maps argument types to (symbol,
    result type)."""
    s = _semantic
    values = [s.to_tensor(unwrap(a), "extern_elementwise: args") for a in args]
    if len(values) == 2:
        values = list(s.pair(values[0], values[1], "extern_elementwise", pointers=True))
    return dispatch(
        None, lib_name, lib_path, s.broadcast_all(values, "extern_elementwise"), arg_type_symbol_dict, None, is_pure, s
    )


def extern(fn: Any) -> Any:
    """Decorator of functions that wrap a library's function; the same as ``builtin``."""
    return builtin(fn)


def must_use_result(x: Any, s: Any = True) -> Any:
    """Decorator of functions whose result should not be ignored; a note for readers here."""
    return x if callable(x) else lambda fn: fn
