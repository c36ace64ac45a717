"""Matrix product without matrix instructions: operands lie in shared memory, each thread adds up its own results.

The loop over K is a real loop; code size does not grow with K.
"""

from __future__ import annotations

from ...ir.core import Op, Value
from ...ir.types import ScalarType, element_of, f32, f64, i32, i64, u32
from ...layouts.linear import LinearLayout
from .. import convert as casts
from ..writer import Cell
from .context import Context, memory_bytes


def fma_dot(c: Context, op: Op) -> list[Cell]:
    """``dot`` for every type and shape. Products and sums are in the accumulator's type (f16 and bf16 accumulators: in
    f32)."""
    w = c.w
    a, b, acc = op.operands
    layout = c.layout(op.results[0])
    rank = len(layout.shape)
    m_axis, n_axis = rank - 2, rank - 1
    (m, n), k = layout.shape[-2:], c.layout(a).shape[-1]
    batch = layout.shape[0] if rank == 3 else 1
    kind = kind_of(acc)
    wide = _wide(kind)
    sizes = [batch * m * k, batch * k * n]
    kinds = [kind_of(v) for v in (a, b)]
    second = -(-sizes[0] * memory_bytes(kinds[0]) // 16) * 16
    c.scratch_write(second + sizes[1] * memory_bytes(kinds[1]), wide=False)
    _store_row_major(c, c.tile(a), c.layout(a), 0)
    _store_row_major(c, c.tile(b), c.layout(b), second)
    c.scratch_ready()
    rows: dict[str, str] = {}
    columns: dict[str, str] = {}
    places: list[tuple[str, str]] = []
    for r in range(layout.registers):
        i, j = clamped(c, layout, m_axis, r), clamped(c, layout, n_axis, r)
        z = clamped(c, layout, 0, r) if rank == 3 else "0"
        row, column = f"{z},{i}", f"{z},{j}"
        if row not in rows:
            at = i if z == "0" else w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {z}, {m}')}, {i}")
            rows[row] = w.emit(f"mul nuw nsw i32 {at}, {k}")
        if column not in columns:
            columns[column] = (
                j if z == "0" else w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {z}, {k * n}')}, {j}")
            )
        places.append((row, column))
    start = [casts.cast(w, cell, wide) for cell in c.tile(acc)]

    def body(counter: str, carried: list[str]) -> list[str]:
        at = w.emit(f"trunc i64 {counter} to i32")
        left = {
            key: _element(c, kinds[0], w.emit(f"add nuw nsw i32 {base}, {at}"), 0, wide) for key, base in rows.items()
        }
        below = w.emit(f"mul nuw nsw i32 {at}, {n}")
        right = {
            key: _element(c, kinds[1], w.emit(f"add nuw nsw i32 {base}, {below}"), second, wide)
            for key, base in columns.items()
        }
        return [
            _multiply_add(c, left[row], right[column], old, wide)
            for (row, column), old in zip(places, carried, strict=True)
        ]

    results = w.loop("0", str(k), "1", body, [(s.type, s.text) for s in start], hint="dot", at_least_once=True)
    return [casts.cast(w, Cell(text, wide), kind) for text in results]


def kind_of(value: Value) -> ScalarType:
    """The numbers that a tensor holds."""
    kind = element_of(value.type)
    assert isinstance(kind, ScalarType)
    return kind


def _wide(kind: ScalarType) -> ScalarType:
    if kind.is_float:
        return f64 if kind.bits == 64 else f32
    return i64 if kind.bits == 64 else u32 if kind == u32 else i32


def _multiply_add(c: Context, a: Cell, b: Cell, acc: str, wide: ScalarType) -> str:
    if wide.is_float:
        return c.w.intrinsic("fma", a.type, 0, a.text, b.text, acc)
    return c.w.emit(f"add {a.type} {c.w.emit(f'mul {a.type} {a.text}, {b.text}')}, {acc}")


def _element(c: Context, kind: ScalarType, index: str, base: int, wide: ScalarType) -> Cell:
    width = memory_bytes(kind)
    offset = c.w.emit(f"mul nuw nsw i32 {index}, {width}") if width > 1 else index
    (cell,) = c.get_shared(c.shared_at(offset, base), kind, 1)
    return casts.cast(c.w, cell, wide)


def clamped(c: Context, layout: LinearLayout, axis: int, register: int) -> str:
    at, size = c.coordinate(layout, axis, register), layout.shape[axis]
    return c.w.intrinsic("umin", "i32", 0, at, str(size - 1)) if size & size - 1 else at


def _store_row_major(c: Context, cells: list[Cell], layout: LinearLayout, base: int) -> None:
    w = c.w
    width = memory_bytes(cells[0].element)
    for r, cell in enumerate(cells):
        index = "0"
        for axis, size in enumerate(layout.shape):
            at = c.coordinate(layout, axis, r)
            index = at if axis == 0 else w.emit(f"add nuw nsw i32 {w.emit(f'mul nuw nsw i32 {index}, {size}')}, {at}")
        offset = w.emit(f"mul nuw nsw i32 {index}, {width}") if width > 1 else index
        predicate = c.in_range(layout, r)
        if predicate is None:
            c.put_shared(c.shared_at(offset, base), [cell])
        else:
            with w.branch(predicate, "real"):
                c.put_shared(c.shared_at(offset, base), [cell])
