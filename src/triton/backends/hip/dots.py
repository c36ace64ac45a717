"""Matrix products by instructions that multiply and add two or four neighbours of K, for operands without a matrix
instruction: ``v_dot2_f32_f16``, ``v_dot4_i32_i8``, ``v_dot4_u32_u8`` (RDNA 2 guide, CDNA guides: "VOP3P").

Operands lie in shared memory by groups of P neighbours along K: group, then row (or column), then the neighbours, so
that threads of neighbouring rows read neighbouring words. A K that P does not divide is filled with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.core import Op
from ...ir.types import ElementType, ScalarType, f16, f32, i32
from ...layouts.linear import LinearLayout
from ...lowering import convert as casts
from ...lowering.simt.context import Context, memory_bytes
from ...lowering.simt.dot import clamped, kind_of
from ...lowering.writer import Cell
from .capabilities import Chip


@dataclass(frozen=True, slots=True)
class Unit:
    """One instruction: ``name`` of the intrinsic, its operands' LLVM type, what they are converted to before (none: as
    they are), the type it adds up in."""

    name: str
    operand: str
    count: int
    cast: ScalarType | None
    wide: ScalarType


def unit(chip: Chip, a: ScalarType, b: ScalarType, acc: ScalarType, k: int) -> Unit | None:
    """The instruction for these types; None where there is none, or K has no two (four) neighbours."""
    if acc.is_integer and acc.bits == 32 and a.bits == b.bits == 8 and a.is_signed == b.is_signed and k >= 4:
        if chip.matrix.startswith("mfma") and a.is_signed:
            return None
        return Unit("sdot4" if a.is_signed else "udot4", "i32", 4, None, i32)
    halves = all(kind == f16 or kind.is_fp8 for kind in (a, b))
    if halves and not chip.matrix and acc.is_float and acc.bits <= 32 and k >= 2:
        return Unit("fdot2", "<2 x half>", 2, f16, f32)
    return None


def packed_dot(c: Context, op: Op, chip: Chip) -> list[Cell] | None:
    """The accumulator's registers after the product; None when no instruction fits."""
    w, (a, b, acc) = c.w, op.operands
    layout, kind = c.layout(op.results[0]), kind_of(acc)
    k = c.layout(a).shape[-1]
    chosen = unit(chip, kind_of(a), kind_of(b), kind, k)
    if chosen is None:
        return None
    rank, count = len(layout.shape), chosen.count
    groups = -(-k // count)
    (m, n), batch = layout.shape[-2:], layout.shape[0] if rank == 3 else 1
    second = -(-batch * groups * m * 4 // 16) * 16
    c.scratch_write(second + batch * groups * n * 4)
    _store(c, _converted(c, c.tile(a), chosen), c.layout(a), rank - 1, chosen, 0)
    _store(c, _converted(c, c.tile(b), chosen), c.layout(b), rank - 2, chosen, second)
    c.scratch_ready()
    rows: dict[str, str] = {}
    columns: dict[str, str] = {}
    places: list[tuple[str, str]] = []
    for r in range(layout.registers):
        i, j = clamped(c, layout, rank - 2, r), clamped(c, layout, rank - 1, r)
        z = clamped(c, layout, 0, r) if rank == 3 else "0"
        for found, at, size in ((rows, i, m), (columns, j, n)):
            if f"{z},{at}" not in found:
                before = w.emit(f"mul nuw nsw i32 {z}, {groups * size}") if z != "0" else "0"
                found[f"{z},{at}"] = w.emit(f"add nuw nsw i32 {before}, {at}")
        places.append((f"{z},{i}", f"{z},{j}"))
    start = [casts.cast(w, cell, chosen.wide) for cell in c.tile(acc)]

    def body(counter: str, carried: list[str]) -> list[str]:
        group = w.emit(f"trunc i64 {counter} to i32")
        left = _words(c, rows, w.emit(f"mul nuw nsw i32 {group}, {m}"), 0, chosen)
        right = _words(c, columns, w.emit(f"mul nuw nsw i32 {group}, {n}"), second, chosen)
        return [
            _multiply_add(c, chosen, left[row], right[column], old)
            for (row, column), old in zip(places, carried, strict=True)
        ]

    results = w.loop("0", str(groups), "1", body, [(s.type, s.text) for s in start], hint="dot", at_least_once=True)
    return [casts.cast(w, Cell(text, chosen.wide), kind) for text in results]


def _converted(c: Context, cells: list[Cell], chosen: Unit) -> list[Cell]:
    return [casts.cast(c.w, cell, chosen.cast) for cell in cells] if chosen.cast is not None else cells


def _words(c: Context, bases: dict[str, str], before: str, start: int, chosen: Unit) -> dict[str, str]:
    """The group's values of each row, one word each."""
    w, found = c.w, {}
    for key, base in bases.items():
        at = w.emit(f"shl nuw nsw i32 {w.emit(f'add nuw nsw i32 {before}, {base}')}, 2")
        found[key] = w.emit(f"load {chosen.operand}, {c.shared_at(at, start)}, align 4")
    return found


def _multiply_add(c: Context, chosen: Unit, a: str, b: str, acc: str) -> str:
    type, wide = chosen.operand, chosen.wide.name.replace("f32", "float")
    callee = c.w.module.declare(f"llvm.amdgcn.{chosen.name}", wide, [type, type, wide, "i1"])
    return c.w.emit(f"call {wide} {callee}({type} {a}, {type} {b}, {wide} {acc}, i1 false)")


def _store(c: Context, cells: list[Cell], layout: LinearLayout, k_axis: int, chosen: Unit, start: int) -> None:
    """Elements to their places; zeros behind the end of K."""
    w, count, k = c.w, chosen.count, layout.shape[k_axis]
    element: ElementType = cells[0].element
    width, zero = memory_bytes(element), c.constant(element, 0.0 if element.is_float else 0)
    rank = len(layout.shape)
    outer_axis = 2 * rank - 3 - k_axis
    outer, groups = layout.shape[outer_axis], -(-k // count)
    for r, cell in enumerate(cells):
        at, row = c.coordinate(layout, k_axis, r), c.coordinate(layout, outer_axis, r)
        wanted: str | None = None
        for axis, size in enumerate(layout.shape):
            end = groups * count if axis == k_axis else size
            if size & size - 1:
                place = c.coordinate(layout, axis, r)
                wanted = c.both(wanted, w.emit(f"icmp ult i32 {place}, {end}"))
        if k % count:
            cell = c.choose(w.emit(f"icmp ult i32 {at}, {k}"), cell, zero)
        group = w.emit(f"lshr i32 {at}, {count.bit_length() - 1}")
        index = w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {group}, {outer}')}, {row}")
        if rank == 3:
            z = w.emit(f"mul nuw nsw i32 {c.coordinate(layout, 0, r)}, {groups * outer}")
            index = w.emit(f"add nuw nsw i32 {z}, {index}")
        inner = w.emit(f"mul nuw nsw i32 {w.emit(f'and i32 {at}, {count - 1}')}, {width}")
        offset = w.emit(f"add nuw nsw i32 {w.emit(f'shl nuw nsw i32 {index}, 2')}, {inner}")
        if wanted is None:
            c.put_shared(c.shared_at(offset, start), [cell])
        else:
            with w.branch(wanted, "real"):
                c.put_shared(c.shared_at(offset, start), [cell])
