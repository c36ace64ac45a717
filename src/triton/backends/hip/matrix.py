"""Matrix products by WMMA (RDNA) and MFMA (CDNA): which instruction, in which layouts, and its emission.

Sources: the RDNA 3, RDNA 4, CDNA 2, 3 and 4 instruction set guides (matrix instructions), LLVM's intrinsics for them.
All instructions used here make a 16x16 tile D = X Y + C. Seen from lane l with h = l / 16, register i:

    X, Y    row (X) or column (Y) l % 16; the k of this lane are a run of consecutive ones, the h-th run of all
            (RDNA 3: every lane has all 16, both halves of the wave the same)
    C, D    column l % 16 and row       i + 8h (RDNA 4)     2i + h (RDNA 3)     4h + i (CDNA)     4i + h (CDNA, f64)

Rows are taken for N and columns for M (that is, b comes first), so that a thread holds neighbours along the tile's
last axis and stores them together. A product does not care in which order K is summed, so a thread may own any k as
long as a and b agree: each owns runs of consecutive k as long as 16 bytes, which makes its reads of shared memory
wide. Sizes smaller than an instruction's are filled with replicas along M and N and with zeros along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.core import Op
from ...ir.types import ScalarType, TensorType, bf16, f16, f32, f64, i32
from ...layouts.axes import axes_of, log2, real
from ...layouts.linear import LinearLayout, bit_positions
from ...lowering import convert as casts
from ...lowering.elementwise import arithmetic
from ...lowering.simt.context import Context
from ...lowering.writer import Cell
from ...passes.assign_layouts import LayoutOptions, default_layout
from .capabilities import Chip

SIDE = 16
_FLOAT8 = {"f8e4m3": "fp8", "f8e5m2": "bf8", "f8e4b8": "fp8", "f8e5b16": "bf8"}


@dataclass(frozen=True, slots=True)
class Matrix:
    """One instruction.

    ``name``      of the intrinsic; ``tail``: its last arguments.
    ``operand``   LLVM type of one operand, ``bits`` of one of its values; ``acc``: LLVM type of one result.
    ``run``       log2 of the k a lane has in one instruction.
    ``high``      how many lane bits number the runs.
    ``rows``      which row bit each of (register bits, then bits of h) is.
    ``cast``      the type that operands are converted to; none: they are taken as they are.
    ``signs``     whether a and b are signed, where the instruction asks.
    ``split``     how f32 operands are split into bf16 parts.
    """

    name: str
    operand: str
    bits: int
    run: int
    high: int
    rows: tuple[int, ...]
    acc: str = "float"
    cast: str = ""
    signs: tuple[bool, bool] | None = None
    split: str = ""
    tail: str = ""


_ROWS = {"wmma11": (1, 2, 3, 0), "wmma12": (0, 1, 2, 3), "mfma": (0, 1, 2, 3), "f64": (2, 3, 0, 1)}


def choose(chip: Chip, a: ScalarType, b: ScalarType, acc: ScalarType, precision: str) -> Matrix | None:
    """The instruction for these types; None: multiply and add in ordinary arithmetic."""
    if not chip.matrix:
        return None
    if acc.is_integer:
        return _bytes(chip, a, b) if a.bits == b.bits == 8 and acc.bits == 32 else None
    names = {a.name, b.name}
    if acc.bits == 64 or "f64" in names:
        return _f64() if chip.lanes == 64 and acc.bits == 64 and names == {"f64"} else None
    if a.is_fp8 and b.is_fp8:
        return _float8(chip, a, b) if names <= set(chip.float8) else _sixteen(chip, "f16")
    if "f32" in names:
        if names == {"f32"} and precision in ("bf16x3", "bf16x6"):
            return _sixteen(chip, "bf16", precision)
        return _f32() if chip.lanes == 64 and names == {"f32"} else None
    return _sixteen(chip, "bf16" if "bf16" in names else "f16")


_MODES = ", i32 0, i32 0, i32 0"


def _sixteen(chip: Chip, kind: str, split: str = "") -> Matrix:
    half = "half" if kind == "f16" else "i16"
    mark = "f16" if kind == "f16" else "i16"
    if chip.matrix == "wmma11":
        name = f"wmma.f32.16x16x16.{kind}.v8f32.v16{mark}"
        return Matrix(name, f"<16 x {half}>", 16, 4, 0, _ROWS["wmma11"], cast=kind, split=split)
    if chip.matrix == "wmma12":
        name = f"wmma.f32.16x16x16.{kind}.v8f32.v8{mark}"
        return Matrix(name, f"<8 x {half}>", 16, 3, 1, _ROWS["wmma12"], cast=kind, split=split)
    if chip.matrix == "mfma4":
        type = "<8 x half>" if kind == "f16" else "<8 x bfloat>"
        name = f"mfma.f32.16x16x32.{kind}"
        return Matrix(name, type, 16, 3, 2, _ROWS["mfma"], cast=kind, split=split, tail=_MODES)
    name = "mfma.f32.16x16x16f16" if kind == "f16" else "mfma.f32.16x16x16bf16.1k"
    return Matrix(name, f"<4 x {half}>", 16, 2, 2, _ROWS["mfma"], cast=kind, split=split, tail=_MODES)


def _bytes(chip: Chip, a: ScalarType, b: ScalarType) -> Matrix | None:
    signs = (a.is_signed, b.is_signed)
    if chip.matrix == "wmma11":
        name = "wmma.i32.16x16x16.iu8.v8i32.v4i32"
        return Matrix(name, "<4 x i32>", 8, 4, 0, _ROWS["wmma11"], "i32", signs=signs, tail=", i1 false")
    if chip.matrix == "wmma12":
        name = "wmma.i32.16x16x16.iu8.v8i32.v2i32"
        return Matrix(name, "<2 x i32>", 8, 3, 1, _ROWS["wmma12"], "i32", signs=signs, tail=", i1 false")
    if signs != (True, True):
        return None
    shapes = {
        "mfma2": ("16x16x16i8", "i32", 2),
        "mfma3": ("16x16x32.i8", "i64", 3),
        "mfma4": ("16x16x64.i8", "<4 x i32>", 4),
    }
    shape, type, run = shapes[chip.matrix]
    return Matrix(f"mfma.i32.{shape}", type, 8, run, 2, _ROWS["mfma"], "i32", tail=_MODES)


def _float8(chip: Chip, a: ScalarType, b: ScalarType) -> Matrix:
    first, second = _FLOAT8[b.name], _FLOAT8[a.name]
    if chip.matrix == "wmma12":
        name = f"wmma.f32.16x16x16.{first}.{second}.v8f32.v2i32"
        return Matrix(name, "<2 x i32>", 8, 3, 1, _ROWS["wmma12"])
    return Matrix(f"mfma.f32.16x16x32.{first}.{second}", "i64", 8, 3, 2, _ROWS["mfma"], tail=_MODES)


def _f32() -> Matrix:
    return Matrix("mfma.f32.16x16x4f32", "float", 32, 0, 2, _ROWS["mfma"], tail=_MODES)


def _f64() -> Matrix:
    return Matrix("mfma.f64.16x16x4f64", "double", 64, 0, 2, _ROWS["f64"], "double", tail=_MODES)


def _of(op: Op, chip: Chip) -> Matrix | None:
    a, b, acc = (v.type.element for v in op.operands[:3])  # type: ignore[union-attr]
    assert isinstance(a, ScalarType) and isinstance(b, ScalarType) and isinstance(acc, ScalarType)
    return choose(chip, a, b, acc, op.attrs.get("precision", "ieee"))


# Layouts -------------------------------------------------------------------------------------------------------------


def warp_axes(shape: Sequence[int], warps: int) -> list[str]:
    """Which axis each warp bit takes: batch first, then whichever of M and N leaves the more square piece; "" for a
    replica."""
    batch, m, n = [1, *shape] if len(shape) == 2 else list(shape)
    left = {"b": log2(batch), "m": max(0, log2(m) - log2(SIDE)), "n": max(0, log2(n) - log2(SIDE))}
    size = {"m": log2(m), "n": log2(n)}
    axes: list[str] = []
    for _ in range(log2(warps)):
        axis = "b" if left["b"] else max(("m", "n"), key=lambda x: (left[x] > 0, size[x], x == "m"))
        if not left[axis]:
            axes.append("")
            continue
        left[axis] -= 1
        if axis != "b":
            size[axis] -= 1
        axes.append(axis)
    return axes


def layouts(op: Op, options: LayoutOptions, chip: Chip) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """Layouts of a, b and the accumulator for the instruction that ``choose`` picks."""
    a, b, acc = (v.type for v in op.operands[:3])
    assert isinstance(a, TensorType) and isinstance(b, TensorType) and isinstance(acc, TensorType)
    matrix = _of(op, chip)
    if matrix is None:
        first, second, third = (default_layout(t.shape, options) for t in (a, b, acc))
        return first, second, third
    spread = log2(chip.lanes) - log2(SIDE)
    axes = warp_axes(acc.shape, options.warps)
    return (
        _operand(a, matrix, axes, "bmk", spread),
        _operand(b, matrix, axes, "bkn", spread),
        _accumulator(acc, matrix, axes, spread),
    )


def _operand(type: TensorType, matrix: Matrix, warps: Sequence[str], names: str, spread: int) -> LinearLayout:
    axes = axes_of(type.shape, names)
    outer, absent = ("m", "n") if "m" in names else ("n", "m")
    widest = log2(128 // max(8, matrix.bits))
    run = min(widest, max(matrix.run, len(axes["k"].bits) - matrix.high))
    low = axes["k"].take(max(run, matrix.run))  # consecutive k of one thread
    lane = axes[outer].take(4) + axes["k"].take(matrix.high) + [0] * (spread - matrix.high)
    warp = tuple(axes[x].take(1)[0] if x and x != absent else 0 for x in warps)
    register = [*low, *axes["k"].rest(), *axes[outer].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


def _accumulator(type: TensorType, matrix: Matrix, warps: Sequence[str], spread: int) -> LinearLayout:
    axes = axes_of(type.shape, "bmn")
    rows = axes["n"].take(4)
    placed = [rows[bit] for bit in matrix.rows]
    lane = axes["m"].take(4) + placed[len(placed) - spread :]
    warp = tuple(axes[x].take(1)[0] if x else 0 for x in warps)
    register = [*placed[: len(placed) - spread], *axes["n"].rest(), *axes["m"].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


# Emission ------------------------------------------------------------------------------------------------------------


class _Product:
    """Emits one dot op."""

    def __init__(self, c: Context, op: Op, matrix: Matrix, chip: Chip) -> None:
        self.c, self.op, self.matrix, self.w = c, op, matrix, c.w
        self.spread = log2(chip.lanes) - log2(SIDE)
        self.layouts = [c.layout(v) for v in op.operands[:3]]
        rank = len(self.layouts[2].shape)
        self.bits = [
            dict(zip(names[-rank:], bit_positions(layout.shape), strict=True))
            for names, layout in zip(("bmk", "bkn", "bmn"), self.layouts, strict=True)
        ]
        self.k = self.layouts[0].shape[-1]
        self.rank = rank

    def run(self) -> list[Cell]:
        matrix, w = self.matrix, self.w
        kind = self.op.operands[2].type.element  # type: ignore[union-attr]
        wide = {"float": f32, "double": f64, "i32": i32}[matrix.acc]
        acc = [casts.cast(w, cell, wide) for cell in self.c.tile(self.op.operands[2])]
        parts = [self.split(self.masked(0)), self.split(self.masked(1))]
        where = [{layout(r): r for r in range(layout.registers)} for layout in self.layouts]
        operands: dict[tuple[int, int, int, int], str] = {}

        def operand(which: int, part: int, tile: dict[str, int], step: int) -> str:
            base = self.flat(which, tile)
            key = (which, part, base, step)
            if key not in operands:
                registers = [None if k is None else where[which][base | k] for k in self.fragment(which, step)]
                operands[key] = self.packed(
                    [None if r is None else parts[which][part][r] for r in registers], parts[which][part][0]
                )
            return operands[key]

        for tile in self.tiles():
            registers = [where[2][self.flat(2, tile) | row] for row in self.rows()]
            value = self.vector([acc[r] for r in registers])
            for step in range(self.steps()):
                for x, y in self.terms():
                    value = self.issue(operand(1, y, tile, step), operand(0, x, tile, step), value)
            type = f"<{len(registers)} x {matrix.acc}>"
            for i, r in enumerate(registers):
                acc[r] = Cell(w.emit(f"extractelement {type} {value}, i32 {i}"), wide)
        return [casts.cast(w, cell, kind) for cell in acc]

    # Which elements: indices at lane 0, warp 0 ----------------------------------------------------------------------

    def flat(self, which: int, at: dict[str, int]) -> int:
        """The index of coordinates by axis name, of those axes that the operand has besides k."""
        found = 0
        for name, places in self.bits[which].items():
            if name != "k" and places:
                found |= (at.get(name, 0) & (1 << len(places)) - 1) << places[0]
        return found

    def rows(self) -> list[int]:
        """The index within a tile of each accumulator register of the instruction."""
        places = self.bits[2]["n"]
        own = self.matrix.rows[: len(self.matrix.rows) - self.spread]
        bits = [1 << places[bit] if bit < len(places) else 0 for bit in own]
        return [sum(v for i, v in enumerate(bits) if number >> i & 1) for number in range(1 << len(bits))]

    def tiles(self) -> list[dict[str, int]]:
        """The coordinates of each instruction tile that one warp computes."""
        inner = set(self.rows())
        outer = [v for v in self.layouts[2].register if v not in inner]
        found = []
        for number in range(1 << len(outer)):
            flat = sum(v for i, v in enumerate(outer) if number >> i & 1)
            found.append({name: flat >> p[0] & (1 << len(p)) - 1 if p else 0 for name, p in self.bits[2].items()})
        return found

    def own_k(self, which: int) -> list[int]:
        """The index vectors of the operand's register bits that belong to k, lowest first."""
        places = self.bits[which]["k"]
        return [v for v in self.layouts[which].register if v in {1 << p for p in places}]

    def steps(self) -> int:
        """How many instructions follow each other along k."""
        return max(1, 1 << len(self.own_k(0)) - self.matrix.run if len(self.own_k(0)) > self.matrix.run else 1)

    def fragment(self, which: int, step: int) -> list[int | None]:
        """The index of each value of a lane's operand within its row, in order; None: beyond K, a zero."""
        mine = self.own_k(which)
        found: list[int | None] = []
        for i in range(1 << self.matrix.run):
            number = step << self.matrix.run | i
            found.append(None if number >> len(mine) else sum(v for bit, v in enumerate(mine) if number >> bit & 1))
        return found

    # Values ---------------------------------------------------------------------------------------------------------

    def masked(self, which: int) -> list[Cell]:
        """The operand's cells with zeros where k is outside K: padding, and lanes beyond a K of fewer runs than the
        instruction's."""
        c, w = self.c, self.w
        value, layout = self.op.operands[which], self.layouts[which]
        cells = c.tile(value)
        axis = self.rank - 1 if which == 0 else self.rank - 2
        zero = c.constant(cells[0].element, 0.0 if cells[0].element.is_float else 0)
        free = sum(1 << 4 + i for i in range(self.matrix.high) if layout.lane[4 + i] == 0)
        beyond: str | None = None
        if free:
            with w.at(c.entry):
                beyond = w.emit(f"icmp eq i32 {w.emit(f'and i32 {c.lane}, {free}')}, 0")
        if not self.k & self.k - 1:
            return cells if beyond is None else [c.choose(beyond, cell, zero) for cell in cells]
        result = []
        for r, cell in enumerate(cells):
            inside = w.emit(f"icmp ult i32 {c.coordinate(layout, axis, r)}, {self.k}")
            result.append(c.choose(c.both(inside, beyond) or inside, cell, zero))
        return result

    def split(self, cells: list[Cell]) -> list[list[Cell]]:
        """The operand in the instruction's type, or in parts that add up to it."""
        w = self.w
        if self.matrix.split:
            parts, rest = [], cells
            for n in range(2 if self.matrix.split == "bf16x3" else 3):
                part = [casts.cast(w, cell, bf16) for cell in rest]
                parts.append(part)
                if n < 2:
                    rest = [
                        arithmetic(w, "fsub", cell, casts.cast(w, p, f32)) for cell, p in zip(rest, part, strict=True)
                    ]
            return parts
        target = {"f16": f16, "bf16": bf16}.get(self.matrix.cast)
        return [[casts.cast(w, cell, target) if target is not None else cell for cell in cells]]

    def terms(self) -> Sequence[tuple[int, int]]:
        """Which parts of a and b are multiplied, the smallest products first."""
        if self.matrix.split == "bf16x3":
            return (1, 0), (0, 1), (0, 0)
        if self.matrix.split == "bf16x6":
            return (2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)
        return ((0, 0),)

    def vector(self, cells: Sequence[Cell]) -> str:
        full, text = f"<{len(cells)} x {cells[0].type}>", "poison"
        for i, cell in enumerate(cells):
            text = self.w.emit(f"insertelement {full} {text}, {cell.typed}, i32 {i}")
        return text

    def packed(self, values: Sequence[Cell | None], like: Cell) -> str:
        """A lane's values as one operand of the instruction."""
        zero = self.c.constant(like.element, 0.0 if like.element.is_float else 0)
        cells = [v if v is not None else zero for v in values]
        if len(cells) == 1:
            return cells[0].text
        vector, given = self.vector(cells), f"<{len(cells)} x {cells[0].type}>"
        return (
            vector
            if given == self.matrix.operand
            else self.w.emit(f"bitcast {given} {vector} to {self.matrix.operand}")
        )

    def issue(self, x: str, y: str, acc: str) -> str:
        """X is b and Y is a, see the head of this file."""
        matrix, type = self.matrix, self.matrix.operand
        result = f"<{1 << len(matrix.rows) - self.spread} x {matrix.acc}>"
        signs = [f"i1 {'true' if s else 'false'}" for s in reversed(matrix.signs)] if matrix.signs else []
        args = [f"{type} {x}", f"{type} {y}"]
        if signs:
            args = [signs[0], args[0], signs[1], args[1]]
        args.append(f"{result} {acc}")
        tail = matrix.tail.split(", ")[1:] if matrix.tail else []
        kinds = [a.rsplit(" ", 1)[0] for a in (*args, *tail)]
        callee = self.w.module.declare(f"llvm.amdgcn.{matrix.name}", result, kinds, "convergent nounwind")
        return self.w.emit(f"call {result} {callee}({', '.join((*args, *tail))})")


def matrix_dot(c: Context, op: Op, chip: Chip) -> list[Cell] | None:
    """The accumulator's registers after the product; None when no instruction fits."""
    matrix = _of(op, chip)
    return None if matrix is None else _Product(c, op, matrix, chip).run()
