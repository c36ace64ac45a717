"""Loads, stores and atomics."""

from __future__ import annotations

from typing import Any

from triton.frontend import dtypes as dt
from triton.frontend.dtypes import get_block_type
from triton.frontend.semantic import TritonSemantic
from triton.frontend.values import builtin, describe, tensor, unwrap

from .block_pointers import block_pointer

_LOAD_CACHE = ("", ".ca", ".cg", ".cs", ".cv")
_STORE_CACHE = ("", ".wb", ".cg", ".cs", ".wt")
_EVICTION = ("", "evict_last", "evict_first", "evict_normal")
_SEM = ("acquire", "release", "acq_rel", "relaxed")
_SCOPE = ("gpu", "cta", "sys")


def _choice(value: Any, choices: tuple[str, ...], what: str) -> str:
    value = unwrap(value) or ""
    if value not in choices:
        raise ValueError(f"{what}: expected one of {', '.join(repr(c) for c in choices if c)}, got {value!r}")
    return value


def _pointer(pointer: Any, what: str) -> tensor:
    if not isinstance(pointer, tensor) or not pointer.dtype.is_ptr():
        hint = ""
        if unwrap(pointer) is None:
            hint = "; test `pointer is not None` first"
        raise TypeError(f"{what}: pointer: expected a pointer or a tensor of pointers, got {describe(pointer)}{hint}")
    return pointer


def _mask(mask: Any, what: str, s: TritonSemantic) -> tensor | None:
    given = unwrap(mask)
    if given is None:
        return None
    condition = s.to_tensor(given, f"{what}: mask")
    if not condition.dtype.is_int():
        raise TypeError(f"{what}: mask: expected booleans, got {describe(given)}")
    return s.truth(condition, what)


def _memory_type(pointee: dt.dtype) -> dt.dtype:
    """How a pointee lies in memory: pointers as 64-bit numbers."""
    return dt.uint64 if pointee.is_ptr() else pointee


def _widened(pointer: tensor, extras: list[Any], what: str, s: TritonSemantic) -> tensor:
    """The pointer stretched to the common shape with mask and value."""
    shape = pointer.type.shape
    for extra in extras:
        if extra is not None:
            shape = s.broadcast_shape(shape, extra.type.shape, what)
    return s.to_shape(pointer, shape)


@builtin
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
    _semantic: Any = None,
) -> tensor:
    """Reads memory: the pointees, in the shape of ``pointer``.

    ``mask``: booleans that broadcast with the pointer; where false, memory is not touched and the result is ``other``
    (0 when it is not given), converted to the pointee type. ``boundary_check`` and ``padding_option`` ("zero", "nan")
    are for block pointers. ``cache_modifier`` (".ca", ".cg", ".cs", ".cv"), ``eviction_policy`` ("evict_first",
    "evict_last") and ``volatile`` are hints to the memory system.
    """
    s = _semantic
    attrs: dict[str, Any] = {}
    if cache := _choice(cache_modifier, _LOAD_CACHE, "load: cache_modifier"):
        attrs["cache"] = cache
    if eviction := _choice(eviction_policy, _EVICTION, "load: eviction_policy"):
        attrs["eviction"] = eviction
    if unwrap(volatile):
        attrs["volatile"] = True
    if isinstance(pointer, block_pointer):
        if unwrap(mask) is not None or unwrap(other) is not None:
            raise ValueError(
                "load: mask and other cannot be used with a block pointer; use boundary_check and padding_option"
            )
        pointer, mask, other = pointer.access(boundary_check, padding_option, "load", s)
    elif unwrap(boundary_check) or unwrap(padding_option):
        raise ValueError("load: boundary_check and padding_option are for block pointers; use mask and other")
    pointer = _pointer(pointer, "load")
    pointee = pointer.dtype.element_ty
    condition, fallback = _mask(mask, "load", s), unwrap(other)
    if condition is None and fallback is not None:
        raise ValueError("load: other: needs a mask")
    if fallback is not None:
        fallback = _converted(fallback, _memory_type(pointee), "load: other", s)
    pointer = _widened(pointer, [condition, fallback], "load", s)
    shape = pointer.type.shape
    operands = [pointer.handle]
    if condition is not None:
        operands.append(s.to_shape(condition, shape).handle)
    if fallback is not None:
        operands.append(s.to_shape(fallback, shape).handle)
    memory = get_block_type(_memory_type(pointee), shape)
    result = tensor(s.op("load", operands, memory.ir, attrs or None), memory)
    return s.bitcast(result, pointee) if pointee.is_ptr() else result


def _converted(value: Any, element: dt.dtype, what: str, s: TritonSemantic) -> tensor:
    """A value on its way to memory, in the element type."""
    value = unwrap(value)
    if isinstance(value, tensor):
        if value.dtype.is_ptr() and element == dt.uint64:
            return s.bitcast(value, dt.uint64)
        return s.cast(value, element)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return s.cast(s.to_tensor(value, what), element)
    if element.is_bool():
        return s.constant(value != 0, element)
    if element.is_int() and isinstance(value, float):
        return s.cast(s.to_tensor(value, what), element)
    if element.is_int():  # wraps, as a run-time value would: -1 fills unsigned memory with ones
        return s.constant(_wrapped(value, element, what, s), element)
    return s.constant(value, element)


def _wrapped(value: Any, element: dt.dtype, what: str, s: TritonSemantic) -> int:
    s.scalar_type(value, what)  # raises for what no type holds
    return (int(value) - element.get_int_min_value()) % (1 << element.primitive_bitwidth) + element.get_int_min_value()


@builtin
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    _semantic: Any = None,
) -> None:
    """Writes ``value``, converted to the pointee type and broadcast to the pointer's shape, where ``mask`` holds.

    Where several elements go to one address, one of them wins. Block pointers take ``boundary_check`` instead of a
    mask.
    """
    s = _semantic
    attrs: dict[str, Any] = {}
    if cache := _choice(cache_modifier, _STORE_CACHE, "store: cache_modifier"):
        attrs["cache"] = cache
    if eviction := _choice(eviction_policy, _EVICTION, "store: eviction_policy"):
        attrs["eviction"] = eviction
    if isinstance(pointer, block_pointer):
        if unwrap(mask) is not None:
            raise ValueError("store: mask cannot be used with a block pointer; use boundary_check")
        pointer, mask, _ = pointer.access(boundary_check, "", "store", s)
    elif unwrap(boundary_check):
        raise ValueError("store: boundary_check is for block pointers; use mask")
    pointer = _pointer(pointer, "store")
    if pointer.dtype.is_const():
        raise ValueError("store: Cannot store to a constant pointer")
    pointee = _memory_type(pointer.dtype.element_ty)
    data = _converted(value, pointee, "store: value", s)
    condition = _mask(mask, "store", s)
    if not pointer.type.is_block() and data.type.is_block():
        raise ValueError(f"store: value: has shape {list(data.type.shape)}, but the pointer is a scalar")
    pointer = _widened(pointer, [condition, data], "store", s)
    shape = pointer.type.shape
    operands = [pointer.handle, s.to_shape(data, shape).handle]
    if condition is not None:
        operands.append(s.to_shape(condition, shape).handle)
    s.builder.emit("store", operands, [], attrs)


# Atomics ------------------------------------------------------------------------------------------------------------


def _order(sem: Any, scope: Any, what: str) -> dict[str, Any]:
    attrs = {}
    if given := _choice(sem, ("", *_SEM), f"{what}: sem"):
        attrs["sem"] = given
    if given := _choice(scope, ("", *_SCOPE), f"{what}: scope"):
        attrs["scope"] = given
    return attrs


def _atomic_pointer(pointer: Any, what: str) -> tensor:
    pointer = _pointer(pointer, what)
    if pointer.dtype.is_const():
        raise ValueError(f"{what}: Cannot store to a constant pointer")
    if pointer.dtype.element_ty.is_ptr():
        raise TypeError(f"{what}: pointer: expected a pointer to numbers, got {describe(pointer)}")
    return pointer


def _atomic(op: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any, s: TritonSemantic) -> tensor:
    what = f"atomic_{op}"
    pointer = _atomic_pointer(pointer, what)
    element = pointer.dtype.element_ty
    if op in ("and", "or", "xor") and not element.is_int():
        raise TypeError(f"{what}: expected a pointer to integers, got {describe(pointer)}")
    if element.is_bool() or element.is_fp8():
        raise TypeError(f"{what}: not supported on {element}")
    value, condition = _converted(val, element, f"{what}: val", s), _mask(mask, what, s)
    pointer = _widened(pointer, [value, condition], what, s)
    shape = pointer.type.shape
    operands = [pointer.handle, s.to_shape(value, shape).handle]
    if condition is not None:
        operands.append(s.to_shape(condition, shape).handle)
    result = get_block_type(element, shape)
    return tensor(s.op("atomic_rmw", operands, result.ir, {"op": op, **_order(sem, scope, what)}), result)


def _atomic_doc(verb: str) -> str:
    return (
        f"{verb} each pointee atomically where ``mask`` holds and gives the old values, of the pointee type.\n\n"
        '    ``sem``: "acq_rel" (default), "acquire", "release", "relaxed"; ``scope``: "gpu" (default), "cta", "sys".'
    )


@builtin
def atomic_add(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("add", pointer, val, mask, sem, scope, _semantic)


@builtin
def atomic_max(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("max", pointer, val, mask, sem, scope, _semantic)


@builtin
def atomic_min(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("min", pointer, val, mask, sem, scope, _semantic)


@builtin
def atomic_and(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("and", pointer, val, mask, sem, scope, _semantic)


@builtin
def atomic_or(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("or", pointer, val, mask, sem, scope, _semantic)


@builtin
def atomic_xor(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("xor", pointer, val, mask, sem, scope, _semantic)


@builtin
def atomic_xchg(
    pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None
) -> tensor:
    return _atomic("xchg", pointer, val, mask, sem, scope, _semantic)


for _fn, _verb in (
    (atomic_add, "Adds ``val`` to"),
    (atomic_max, "Takes the maximum of ``val`` and"),
    (atomic_min, "Takes the minimum of ``val`` and"),
    (atomic_and, "Bitwise and of ``val`` into"),
    (atomic_or, "Bitwise or of ``val`` into"),
    (atomic_xor, "Bitwise exclusive or of ``val`` into"),
    (atomic_xchg, "Puts ``val`` into"),
):
    _fn.__doc__ = _atomic_doc(_verb)


@builtin
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None, _semantic: Any = None) -> tensor:
    """Puts ``val`` where the pointee equals ``cmp``, atomically, and gives the old values. Compares bits."""
    s = _semantic
    pointer = _atomic_pointer(pointer, "atomic_cas")
    element = pointer.dtype.element_ty
    if element.primitive_bitwidth not in (16, 32, 64):
        raise TypeError(f"atomic_cas: expected a pointer to elements of 16, 32 or 64 bits, got {describe(pointer)}")
    expected = _converted(cmp, element, "atomic_cas: cmp", s)
    value = _converted(val, element, "atomic_cas: val", s)
    pointer = _widened(pointer, [expected, value], "atomic_cas", s)
    shape = pointer.type.shape
    operands = [pointer.handle, s.to_shape(expected, shape).handle, s.to_shape(value, shape).handle]
    result = get_block_type(element, shape)
    return tensor(s.op("atomic_cas", operands, result.ir, _order(sem, scope, "atomic_cas")), result)


@builtin
def atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None, _semantic: Any = None) -> tensor:
    """Reads each pointee atomically where ``mask`` holds; ``sem``: "acquire" (default) or "relaxed"."""
    s, what = _semantic, "atomic_load"
    order = _order(sem, scope, what)
    if order.setdefault("sem", "acquire") not in ("acquire", "relaxed"):
        raise ValueError(f"{what}: sem: expected 'acquire' or 'relaxed', got {order['sem']!r}")
    pointer = _atomic_pointer(pointer, what)
    # Adding or or-ing nothing reads the old value in the same order.
    return _neutral_rmw(pointer, mask, order, what, s)


def _neutral_rmw(pointer: tensor, mask: Any, order: dict[str, Any], what: str, s: TritonSemantic) -> tensor:
    element = pointer.dtype.element_ty  # type: ignore[attr-defined]
    if (element.primitive_bitwidth < 32 and element.is_int()) or element.is_fp8():
        raise TypeError(f"{what}: expected elements of 16 bits (floats), 32 or 64 bits, got {describe(pointer)}")
    condition = _mask(mask, what, s)
    pointer = _widened(pointer, [condition], what, s)
    # -0.0 is the neutral element of floating-point addition.
    neutral = s.constant(-0.0 if element.is_floating() else 0, get_block_type(element, pointer.type.shape))
    operands = [pointer.handle, neutral.handle]
    if condition is not None:
        operands.append(s.to_shape(condition, pointer.type.shape).handle)
    op = "add" if element.is_floating() else "or"
    return tensor(s.op("atomic_rmw", operands, neutral.type.ir, {"op": op, **order}), neutral.type)


@builtin
def atomic_store(
    pointer: Any,
    val: Any,
    mask: Any = None,
    sem: Any = None,
    scope: Any = None,
    _semantic: Any = None,
) -> None:
    """Writes each pointee atomically where ``mask`` holds; ``sem``: "release" (default) or "relaxed"."""
    given = unwrap(sem) or "release"
    if given not in ("release", "relaxed"):
        raise ValueError(f"atomic_store: sem: expected 'release' or 'relaxed', got {given!r}")
    _atomic("xchg", pointer, val, mask, given, scope, _semantic)


@builtin
def atomic_poll(
    pointer: Any,
    expected_value: Any,
    sem: Any = None,
    scope: Any = None,
    timeout_ns: Any = None,
    _semantic: Any = None,
) -> tensor:
    """Waits until the pointee equals ``expected_value``; gives true, or false when ``timeout_ns`` nanoseconds went by
    before it did.

    ``pointer``: a scalar pointer to integers of 16, 32 or 64 bits. ``sem``: "acquire" (default: what was written before
    the value was released is seen afterwards) or "relaxed"; ``scope``: "gpu" (default), "cta", "sys". A timeout of 0
    looks once; without a timeout there is none. On the CPU and in the interpreter other programs of the grid run
    meanwhile; when all of them wait for 10 seconds and none is left to start, the launch ends with an error.
    """
    s, what = _semantic, "atomic_poll"
    order = _order(sem, scope, what)
    if order.setdefault("sem", "acquire") not in ("acquire", "relaxed"):
        raise ValueError(f"{what}: sem: expected 'acquire' or 'relaxed', got {order['sem']!r}")
    pointer = _pointer(pointer, what)
    element = pointer.dtype.element_ty
    if not element.is_int() or element.primitive_bitwidth not in (16, 32, 64) or pointer.type.is_block():
        raise TypeError(f"{what}: expected a scalar pointer to integers of 16, 32 or 64 bits, got {describe(pointer)}")
    expected = _converted(expected_value, element, f"{what}: expected_value", s)
    if expected.type.is_block():
        raise TypeError(f"{what}: expected_value: expected a scalar, got {describe(expected)}")
    operands = [pointer.handle, expected.handle]
    if unwrap(timeout_ns) is not None:
        timeout = s.to_tensor(timeout_ns, f"{what}: timeout_ns")
        if not timeout.dtype.is_int() or timeout.type.is_block():
            raise TypeError(f"{what}: timeout_ns: expected an integer or None, got {describe(timeout_ns)}")
        operands.append(s.cast(timeout, dt.int64).handle)
    return tensor(s.op("atomic_poll", operands, dt.int1.ir, order), dt.int1)
