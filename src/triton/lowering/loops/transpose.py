"""Tiles that are read along one axis and written along another: square blocks are turned in registers.

    read row r along x       block in scratch        write column c along y
    v[r] = value[y+r, x:]    v[0] ... v[T-1]  ->     out[y:, x+c] = (v[0][c], ..., v[T-1][c])

log2(T) rounds of T shuffles take the place of T gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...ir.types import ElementType
from ..writer import Cell, scalar_type, vector
from .buffers import bytes_of
from .index import ZERO, Dim, Index, shuffle
from .nest import Survey, count

if TYPE_CHECKING:
    from .emit import FunctionEmitter


def wanted(found: Survey, shape: Sequence[int], x: int, y: int, size: int) -> bool:
    """Whether turning blocks of ``size`` pays: reads run along ``x``, writes along ``y``, and the blocks fit."""
    if shape[x] % size or shape[y] % size:
        return False
    if not all(access[x] in (0, 1, -1) for access in found.accesses):
        return False
    return any(access[x] in (1, -1) and access[y] not in (0, 1, -1) for access in found.accesses)


def turn(
    f: FunctionEmitter,
    shape: Sequence[int],
    x: int,
    y: int,
    size: int,
    element: ElementType,
    read: Callable[[Index], Cell],
    write: Callable[[Index, Cell], None],
) -> None:
    """``read`` gives vectors along axis ``x`` (elements of ``element``), ``write`` takes vectors along ``y``. Two
    axes."""
    e, w = f.e, f.w
    pointer, offset = f.arena.allocate(size * size * bytes_of(element))
    type = vector(scalar_type(element, memory=True), size)
    saved = e.lanes, e.active, e.count
    e.lanes, e.active, e.count = size, None, size
    mark = e.mark()

    def place(row: str) -> str:
        return w.emit(f"getelementptr {type}, ptr {pointer}, i64 {row}")

    def index(along_x: Dim, along_y: Dim) -> Index:
        dims = [ZERO, ZERO]
        dims[x], dims[y] = along_x, along_y
        return tuple(dims)

    def block(at_x: Dim, at_y: Dim) -> None:
        def row(r: Dim, _: list[str]) -> Sequence[str]:
            cell = read(index(at_x._replace(step=1), e.add(at_y, r)))
            w.line(f"store {type} {cell.text}, ptr {place(r.text)}, align {bytes_of(element) * size}")
            return ()

        count(e, size, row)
        rows = [w.emit(f"load {type}, ptr {place(str(r))}, align {bytes_of(element) * size}") for r in range(size)]
        for c, column in enumerate(transposed(f, rows, type, size)):
            along_x = e.add(at_x, Dim(str(c), 0, c))
            write(index(along_x, at_y._replace(step=1)), Cell(column, element, size))

    def outer(at_y: Dim, _: list[str]) -> Sequence[str]:
        def inner(at_x: Dim, _: list[str]) -> Sequence[str]:
            block(at_x, at_y)
            return ()

        count(e, shape[x], inner, step=size)
        return ()

    count(e, shape[y], outer, step=size)
    e.forget(mark)
    e.lanes, e.active, e.count = saved
    f.arena.free(offset)


def transposed(f: FunctionEmitter, rows: list[str], type: str, size: int) -> list[str]:
    """The columns of a square of ``size`` vectors: in round s, blocks of s x s change places across the diagonal."""
    w = f.w
    lanes = range(size)
    step = 1
    while step < size:
        first = shuffle([lane if not lane & step else size + lane - step for lane in lanes])
        second = shuffle([lane + step if not lane & step else size + lane for lane in lanes])
        following = list(rows)
        for i in lanes:
            if not i & step:
                a, b = rows[i], rows[i + step]
                following[i] = w.emit(f"shufflevector {type} {a}, {type} {b}, {first}")
                following[i + step] = w.emit(f"shufflevector {type} {a}, {type} {b}, {second}")
        rows = following
        step *= 2
    return rows
