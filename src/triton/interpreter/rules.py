"""What each op does: one rule for each row of the op table, or the reason why there is none.

A rule gets the machine, the op and its operands' values and returns the result, a list of results, or None. Control
flow (for, while, if, call and the terminators) is the machine's own business: see ``machine.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from triton.ir.core import Block, Op
from triton.ir.ops import OPS
from triton.ir.types import DescriptorType, PointerType, ScalarType, TensorType, Type, element_of, shape_of

from . import mathematics, numeric, tiles
from .errors import AssertionFailed, Blocked, InterpreterError, Unsupported
from .floats import from_python, storage_dtype, widen

if TYPE_CHECKING:
    from .machine import Machine

Array = npt.NDArray[Any]
Rule = Callable[["Machine", Op, list[Any]], Any]

RULES: dict[str, Rule] = {}
UNSUPPORTED = {
    "extern": "functions of device bitcode libraries cannot be run by the interpreter",
    "inline_asm": "target assembly cannot be run by the interpreter",
}
CONTROL = frozenset({"for", "while", "if", "call", "yield", "condition", "return"})


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Registers a rule for some kinds of op."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            assert kind in OPS and kind not in RULES
            RULES[kind] = function
        return function

    return register


def scalar_element(value: Any) -> ScalarType:
    element = element_of(value.type)
    assert isinstance(element, ScalarType)
    return element


def _attr(op: Op, name: str) -> Any:
    return OPS[op.kind].attr(op, name)


# Constants and shapes -----------------------------------------------------------------------------------------------


@rule("constant")
def _constant(m: Machine, op: Op, args: list[Any]) -> Array:
    type = op.results[0].type
    return np.broadcast_to(from_python(op.attrs["value"], element_of(type)), shape_of(type))


@rule("arange")
def _arange(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.arange(op.attrs["start"], op.attrs["end"], dtype=np.int32)


@rule("splat", "broadcast")
def _broadcast(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.broadcast_to(args[0], shape_of(op.results[0].type))


@rule("expand_dims")
def _expand_dims(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.expand_dims(args[0], op.attrs["axis"])


@rule("reshape")
def _reshape(m: Machine, op: Op, args: list[Any]) -> Array:
    result: Array = args[0].reshape(shape_of(op.results[0].type))
    return result


@rule("permute")
def _permute(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.transpose(args[0], op.attrs["order"])


@rule("flip")
def _flip(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.flip(args[0], op.attrs["axis"])


@rule("join")
def _join(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.stack(args, axis=-1)


@rule("split")
def _split(m: Machine, op: Op, args: list[Any]) -> list[Array]:
    return [args[0][..., 0], args[0][..., 1]]


@rule("cat")
def _cat(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.concatenate(args, axis=op.attrs["axis"])


@rule("gather")
def _gather(m: Machine, op: Op, args: list[Any]) -> Array:
    return tiles.gather(args[0], args[1], op.attrs["axis"])


@rule("sort")
def _sort(m: Machine, op: Op, args: list[Any]) -> Array:
    return tiles.sort(args[0], scalar_element(op.operands[0]), op.attrs["axis"], _attr(op, "descending"))


@rule("histogram")
def _histogram(m: Machine, op: Op, args: list[Any]) -> Array:
    return tiles.histogram(args[0], args[1] if len(args) > 1 else None, op.attrs["bins"])


# Elementwise --------------------------------------------------------------------------------------------------------


@rule(*numeric.BINARY)
def _binary(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.BINARY[op.kind](args[0], args[1], scalar_element(op.operands[0]))


@rule("min", "max")
def _extremum(m: Machine, op: Op, args: list[Any]) -> Array:
    element = scalar_element(op.operands[0])
    return numeric.extremum(args[0], args[1], element, op.kind == "max", _attr(op, "propagate_nan"))


@rule("cmp")
def _cmp(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.compare(args[0], args[1], element_of(op.operands[0].type), op.attrs["pred"])


@rule("neg")
def _neg(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.negate(args[0], scalar_element(op.operands[0]))


@rule("abs")
def _abs(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.absolute(args[0], scalar_element(op.operands[0]))


@rule("fma")
def _fma(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.fused_multiply_add(args[0], args[1], args[2], scalar_element(op.operands[0]))


@rule("select")
def _select(m: Machine, op: Op, args: list[Any]) -> Any:
    if isinstance(op.operands[1].type, DescriptorType):
        return args[1] if args[0] else args[2]
    return np.where(args[0], args[1], args[2])


@rule("cast")
def _cast(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.cast(args[0], scalar_element(op.operands[0]), scalar_element(op.results[0]), _attr(op, "rounding"))


@rule("bitcast")
def _bitcast(m: Machine, op: Op, args: list[Any]) -> Array:
    return numeric.bitcast(args[0], element_of(op.results[0].type))


@rule(*mathematics.UNARY)
def _unary(m: Machine, op: Op, args: list[Any]) -> Array:
    return mathematics.unary(op.kind, args[0], scalar_element(op.operands[0]))


@rule("libm")
def _libm(m: Machine, op: Op, args: list[Any]) -> Array:
    return mathematics.libm(
        op.attrs["function"], args, [scalar_element(v) for v in op.operands], scalar_element(op.results[0])
    )


# Memory -------------------------------------------------------------------------------------------------------------


def _pointee_size(type: Any) -> int:
    pointer = element_of(type)
    assert isinstance(pointer, PointerType)
    return np.dtype(storage_dtype(pointer.pointee)).itemsize


@rule("addptr")
def _addptr(m: Machine, op: Op, args: list[Any]) -> Array:
    size = np.uint64(_pointee_size(op.operands[0].type))
    return np.asarray(args[0] + args[1].astype(np.int64).astype(np.uint64) * size)


def _active(addresses: Array, mask: Array | None) -> Array:
    """Flat positions at which the mask holds."""
    if mask is None:
        return np.arange(addresses.size)
    return np.flatnonzero(np.broadcast_to(mask, addresses.shape))


@rule("load")
def _load(m: Machine, op: Op, args: list[Any]) -> Array:
    addresses = args[0]
    dtype = storage_dtype(op.results[0].type)
    if len(args) == 1:
        return np.asarray(m.memory.read(addresses.reshape(-1), dtype).reshape(addresses.shape))
    result: Array = np.zeros(addresses.shape, dtype=dtype) if len(args) == 2 else np.array(args[2], order="C")
    active = _active(addresses, args[1])
    result.reshape(-1)[active] = m.memory.read(addresses.reshape(-1)[active], dtype)
    return result


@rule("store")
def _store(m: Machine, op: Op, args: list[Any]) -> None:
    active = _active(args[0], args[2] if len(args) > 2 else None)
    m.memory.write(args[0].reshape(-1)[active], args[1].reshape(-1)[active])


def _rounds(addresses: Array) -> list[Array]:
    """Positions split so that no round holds an address twice; equal addresses come in row-major order."""
    order = np.argsort(addresses, kind="stable")
    arranged = addresses[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = arranged[1:] != arranged[:-1]
    starts = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - starts
    return [np.sort(order[turn == k]) for k in range(int(turn.max(initial=-1)) + 1)]


def _combine_atomically(
    m: Machine, addresses: Array, values: Array, mask: Array | None, step: Callable[[Array, Array, Array], Array]
) -> Array:
    """``step(old, value, positions)`` gives what is written; returns the old values, 0 where the mask is false."""
    flat, given = addresses.reshape(-1), values.reshape(-1)
    old = np.zeros(flat.shape, dtype=values.dtype)
    active = _active(addresses, mask)
    for turn in _rounds(flat[active]):
        here = active[turn]
        old[here] = m.memory.read(flat[here], values.dtype.type)
        m.memory.write(flat[here], step(old[here], given[here], here).astype(values.dtype))
    return old.reshape(addresses.shape)


def _update(name: str, element: ScalarType) -> Callable[[Array, Array, Array], Array]:
    if name == "xchg":
        return lambda old, value, at: value
    if name in ("min", "max"):
        return lambda old, value, at: numeric.extremum(old, value, element, name == "max", False)
    if name == "inc":
        return lambda old, value, at: np.where(old >= value, old.dtype.type(0), old + old.dtype.type(1))
    if name == "dec":
        return lambda old, value, at: np.where((old == 0) | (old > value), value, old - old.dtype.type(1))
    return lambda old, value, at: numeric.BINARY[name](old, value, element)


@rule("atomic_rmw")
def _atomic_rmw(m: Machine, op: Op, args: list[Any]) -> Array:
    mask = args[2] if len(args) > 2 else None
    return _combine_atomically(m, args[0], args[1], mask, _update(op.attrs["op"], scalar_element(op.operands[1])))


@rule("atomic_cas")
def _atomic_cas(m: Machine, op: Op, args: list[Any]) -> Array:
    expected = args[1].reshape(-1)

    def step(old: Array, value: Array, at: Array) -> Array:
        bits = f"u{old.dtype.itemsize}"  # floats are compared by their bits, as machines do
        return np.where(old.view(bits) == np.ascontiguousarray(expected[at]).view(bits), value, old)

    return _combine_atomically(m, args[0], args[2], None, step)


@rule("atomic_poll")
def _atomic_poll(m: Machine, op: Op, args: list[Any]) -> Array:
    if m.waiting is not op:
        m.waiting = op
        m.deadline = time.monotonic() + int(args[2]) * 1e-9 if len(args) > 2 else None
    seen = m.memory.read(args[0].reshape(-1), args[1].dtype.type)[0] == args[1]
    if not seen and (m.deadline is None or time.monotonic() < m.deadline):
        raise Blocked
    m.waiting = None
    m.waits += 1
    return np.asarray(seen, bool)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The value of a tensor descriptor."""

    base: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str


@rule("make_desc")
def _make_desc(m: Machine, op: Op, args: list[Any]) -> Descriptor:
    rank = (len(args) - 1) // 2
    numbers = [int(a) for a in args[1:]]
    return Descriptor(int(args[0]), tuple(numbers[:rank]), tuple(numbers[rank:]), _attr(op, "padding"))


def _box(desc: Descriptor, shape: Sequence[int], offsets: Sequence[Any], size: int) -> tuple[Array, Array]:
    """Addresses of a box and which of them are inside the tensor. The box has as many last axes as the tensor."""
    addresses = np.full(tuple(shape), desc.base, dtype=np.uint64)
    inside = np.ones(tuple(shape), dtype=bool)
    for axis, (n, limit, stride, offset) in enumerate(zip(shape, desc.sizes, desc.strides, offsets, strict=True)):
        index = np.arange(n, dtype=np.int64) + int(offset)
        column = [1] * len(shape)
        column[axis] = n
        inside &= ((index >= 0) & (index < limit)).reshape(column)
        addresses += (index * (stride * size)).astype(np.uint64).reshape(column)
    return addresses, inside


@rule("desc_load")
def _desc_load(m: Machine, op: Op, args: list[Any]) -> Array:
    return read_box(m, args[0], op.results[0].type, args[1:])


def read_box(m: Machine, desc: Descriptor, type: Type, offsets: Sequence[Any]) -> Array:
    """The box of ``type`` at these offsets."""
    element, dtype = element_of(type), storage_dtype(type)
    addresses, inside = _box(desc, shape_of(type), offsets, np.dtype(dtype).itemsize)
    padding = float("nan") if desc.padding == "nan" and element.is_float else 0
    result = np.array(np.broadcast_to(from_python(padding, element), shape_of(type)))
    result[inside] = m.memory.read(addresses[inside], dtype)
    return result


@rule("desc_store")
def _desc_store(m: Machine, op: Op, args: list[Any]) -> None:
    desc, value, *offsets = args
    write_box(m, desc, value, scalar_element(op.operands[1]), offsets, _attr(op, "op"))


def write_box(
    m: Machine, desc: Descriptor, value: Array, element: ScalarType, offsets: Sequence[Any], update: str
) -> None:
    """Writes a box at these offsets, or combines it with what is there."""
    addresses, inside = _box(desc, value.shape, offsets, value.dtype.itemsize)
    if update == "store":
        m.memory.write(addresses[inside], value[inside])
    else:
        _combine_atomically(m, addresses, value, inside, _update(update, element))


# Matrix product, reduction, scan ------------------------------------------------------------------------------------


@rule("dot")
def _dot(m: Machine, op: Op, args: list[Any]) -> Array:
    return tiles.dot(args[0], args[1], args[2], [scalar_element(v) for v in op.operands[:3]])


@rule("dot_scaled")
def _dot_scaled(m: Machine, op: Op, args: list[Any]) -> Array:
    return tiles.dot_scaled(args, [scalar_element(v) for v in op.operands[:3]], op.attrs)


def _region(m: Machine, block: Block) -> tiles.Region:
    """The region as a function of arrays: all elements at once when its ops are elementwise on scalars, else one by
    one."""

    def whole(values: Sequence[Array]) -> Sequence[Array]:
        return m.run_region(block, values)

    def on_scalars(o: Op) -> bool:
        known = OPS[o.kind].elementwise or o.kind in ("constant", "yield")
        return known and not any(isinstance(r.type, TensorType) for r in o.results)

    if all(map(on_scalars, block.ops)):
        return whole
    dtypes = [storage_dtype(v.type) for v in block.terminator.operands]
    return lambda values: tiles.each_element(values, whole, dtypes)


@rule("reduce")
def _reduce(m: Machine, op: Op, args: list[Any]) -> list[Array]:
    return tiles.reduce(args, op.attrs["axis"], _region(m, op.regions[0]))


@rule("scan")
def _scan(m: Machine, op: Op, args: list[Any]) -> list[Array]:
    return tiles.scan(args, op.attrs["axis"], _attr(op, "reverse"), _region(m, op.regions[0]))


@rule("map")
def _map(m: Machine, op: Op, args: list[Any]) -> list[Array]:
    dtypes = [storage_dtype(r.type) for r in op.results]
    return tiles.map_elements(args, _attr(op, "pack"), dtypes, _region(m, op.regions[0]))


# Program, hints, diagnosis ------------------------------------------------------------------------------------------


@rule("program_id")
def _program_id(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.array(m.program[op.attrs["axis"]], dtype=np.int32)


@rule("num_programs")
def _num_programs(m: Machine, op: Op, args: list[Any]) -> Array:
    return np.array(m.grid[op.attrs["axis"]], dtype=np.int32)


@rule("hint", "convert_layout")
def _hint(m: Machine, op: Op, args: list[Any]) -> Any:
    return args[0]


@rule("assume")
def _assume(m: Machine, op: Op, args: list[Any]) -> None:
    if not args[0]:
        raise InterpreterError("an assumption of the kernel does not hold")


@rule("assert")
def _assert(m: Machine, op: Op, args: list[Any]) -> None:
    holds = args[0] if len(args) == 1 else args[0] | ~args[1]
    if not np.all(holds):
        raise AssertionFailed(f"assertion failed: {op.attrs['message']}")


def format_value(value: Any, element: Any, hexadecimal: bool) -> str:
    """One element as device_print writes it: decimal, ``%g``, pointers in hexadecimal; or all bits as hexadecimal."""
    raw = np.asarray(value)
    if hexadecimal or isinstance(element, PointerType):
        size = raw.dtype.itemsize
        return f"0x{int(raw.view(f'u{size}')):0{2 * size}x}"
    if element.is_float:
        number = float(widen(raw, element))
        return "nan" if number != number else f"{number:g}"
    return str(int(raw))


@rule("print")
def _print(m: Machine, op: Op, args: list[Any]) -> None:
    where, prefix, hexadecimal = "pid ({}, {}, {}) ".format(*m.program), op.attrs["prefix"], _attr(op, "hex")
    if not args:
        m.output(where + prefix)
    for k, (value, operand) in enumerate(zip(args, op.operands, strict=True)):
        tag = f"(operand {k}) " if len(args) > 1 else ""
        for index in product(*map(range, value.shape)):
            text = format_value(value[index], element_of(operand.type), hexadecimal)
            place = ", ".join(str(i).rjust(len(str(size - 1))) for i, size in zip(index, value.shape, strict=True))
            m.output(f"{where}idx ({place}) {prefix}{tag}{text}")


@rule("barrier")
def _barrier(m: Machine, op: Op, args: list[Any]) -> None:
    return None


def _refuse(kind: str) -> Rule:
    def refuse(m: Machine, op: Op, args: list[Any]) -> None:
        raise Unsupported(UNSUPPORTED[kind])

    return refuse


for _kind in UNSUPPORTED:
    RULES[_kind] = _refuse(_kind)
