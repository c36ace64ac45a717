"""Matrix products by WMMA (RDNA) and MFMA (CDNA): in which layouts, and their emission.

The instructions (``instructions.py``) make a tile D = X Y + C of 16x16, CDNA's also of 32x32. Seen from lane l with
h = l / 16 (32x32: l / 32), register i:

    X, Y    row (X) or column (Y) l % 16; the k of this lane are a run of consecutive ones, the h-th run of all
            (RDNA 3: every lane has all 16, both halves of the wave the same; 8-bit floats of CDNA 4 in two such runs)
    C, D    column l % 16 and row       i + 8h (RDNA 4)     2i + h (RDNA 3)     4h + i (CDNA)     4i + h (CDNA, f64)
            column l % 32 and row       8 (i / 4) + 4h + i % 4 (CDNA)
    scale   row or column l % 16, the h-th 32 of K

Rows are taken for N and columns for M (that is, b comes first), so that a thread holds neighbours along the tile's
last axis and stores them together. A product does not care in which order K is summed, so a thread may own any k as
long as a and b agree: each owns runs of consecutive k as long as 16 bytes, which makes its reads of shared memory
wide. Sizes smaller than an instruction's are filled with replicas along M and N and with zeros along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.core import Op
from ...ir.types import ScalarType, TensorType, bf16, f16, f32, f64, i32, shape_of
from ...layouts.axes import axes_of, log2, real
from ...layouts.linear import LinearLayout, bit_positions
from ...lowering import convert as casts
from ...lowering.elementwise import arithmetic
from ...lowering.simt.context import Context
from ...lowering.writer import Cell
from ...passes.assign_layouts import DotChoice, LayoutOptions, default_layout
from .capabilities import Chip
from .instructions import Matrix, Operand, choose, largest_side, scaled

SCALE_GROUP = 32
"""How many elements of K share a scale (OCP Microscaling Formats)."""


@dataclass(frozen=True, slots=True)
class Products:
    """How the products of one kernel are made. ``side``: of the instructions' tiles, 0 for what fits."""

    chip: Chip
    warps: int
    side: int = 0

    def matrix(self, op: Op) -> Matrix | None:
        """The instruction for ``op``; None: multiply and add in ordinary arithmetic."""
        a, b, acc = (v.type.element for v in op.operands[:3])  # type: ignore[union-attr]
        assert isinstance(a, ScalarType) and isinstance(b, ScalarType) and isinstance(acc, ScalarType)
        side = self._side(shape_of(op.operands[2].type), acc)
        if op.kind == "dot_scaled":
            return scaled(self.chip, op.attrs["a_format"], op.attrs["b_format"], side)
        k = shape_of(op.operands[0].type)[-1]
        return choose(self.chip, a, b, acc, op.attrs.get("precision", "ieee"), side, k)

    def takes_scaled(self, op: Op) -> bool:
        """Whether a ``dot_scaled`` has an instruction as it is: formats, packing along K, a scale for each 32."""
        attrs = op.attrs
        packs = [attrs.get(f"{n}_k_pack", True) or attrs[f"{n}_format"] != "e2m1" for n in "ab"]
        if not all(packs) or self.matrix(op) is None:
            return False
        k = shape_of(op.operands[0].type)[-1] * (2 if attrs["a_format"] == "e2m1" else 1)
        return all(shape_of(scale.type)[-1] * SCALE_GROUP == k for scale in op.operands[3:])

    def _side(self, shape: Sequence[int], acc: ScalarType) -> int:
        """32 where every warp has a tile of that size to itself."""
        batch, m, n = [1, *shape] if len(shape) == 2 else list(shape)
        if largest_side(self.chip, acc) == 16 or self.side == 16 or min(m, n) < 32:
            return 16
        tiles = log2(batch) + log2(m) + log2(n) - 2 * log2(32)
        return 32 if tiles >= log2(self.warps) or self.side == 32 else 16


# Layouts -------------------------------------------------------------------------------------------------------------


def warp_axes(shape: Sequence[int], warps: int, side: int = 16) -> list[str]:
    """Which axis each warp bit takes: batch first, then whichever of M and N leaves the more square piece; "" for a
    replica."""
    batch, m, n = [1, *shape] if len(shape) == 2 else list(shape)
    left = {"b": log2(batch), "m": max(0, log2(m) - log2(side)), "n": max(0, log2(n) - log2(side))}
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


def layouts(op: Op, options: LayoutOptions, products: Products) -> DotChoice:
    """Layouts of a, b, the accumulator and the scales for the instruction that the product takes."""
    types = [v.type for v in op.operands]
    a, b, acc, *scales = types
    assert isinstance(a, TensorType) and isinstance(b, TensorType) and isinstance(acc, TensorType)
    matrix = products.matrix(op)
    if matrix is None:
        return tuple(default_layout(shape_of(t), options) for t in types)
    spread = log2(products.chip.lanes) - log2(matrix.side)
    axes = warp_axes(acc.shape, options.warps, matrix.side)
    found = [
        _operand(a, matrix.a, matrix, axes, "bmk", spread),
        _operand(b, matrix.b, matrix, axes, "bkn", spread),
        _accumulator(acc, matrix, axes, spread),
    ]
    names = [name for name, flag in (("m", "a_scaled"), ("n", "b_scaled")) if op.attrs.get(flag)]
    for name, type in zip(names, scales, strict=True):
        assert isinstance(type, TensorType)
        found.append(_scale(type, matrix, axes, name))
    return tuple(found)


def _operand(
    type: TensorType, operand: Operand, matrix: Matrix, warps: Sequence[str], names: str, spread: int
) -> LinearLayout:
    axes = axes_of(type.shape, names)
    outer, absent = ("m", "n") if "m" in names else ("n", "m")
    widest = log2(128 // max(8, operand.bits))
    run = min(widest, max(operand.run, len(axes["k"].bits) - matrix.high))
    low = axes["k"].take(operand.chunk or max(run, operand.run))  # consecutive k of one thread
    lane = axes[outer].take(log2(matrix.side)) + axes["k"].take(matrix.high) + [0] * (spread - matrix.high)
    warp = tuple(axes[x].take(1)[0] if x and x != absent else 0 for x in warps)
    register = [*low, *axes["k"].rest(), *axes[outer].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


def _accumulator(type: TensorType, matrix: Matrix, warps: Sequence[str], spread: int) -> LinearLayout:
    axes = axes_of(type.shape, "bmn")
    rows = axes["n"].take(log2(matrix.side))
    placed = [rows[bit] for bit in matrix.rows]
    lane = axes["m"].take(log2(matrix.side)) + placed[len(placed) - spread :]
    warp = tuple(axes[x].take(1)[0] if x else 0 for x in warps)
    register = [*placed[: len(placed) - spread], *axes["n"].rest(), *axes["m"].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


def _scale(type: TensorType, matrix: Matrix, warps: Sequence[str], outer: str) -> LinearLayout:
    """One scale a lane and instruction: rows and groups of K lie as rows and runs of the operand do."""
    axes = axes_of(type.shape, f"b{outer}k")
    lane = axes[outer].take(log2(matrix.side)) + axes["k"].take(matrix.high)
    warp = tuple(axes[x].take(1)[0] if x in ("b", outer) else 0 for x in warps)
    register = [*axes["k"].rest(), *axes[outer].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


# Emission ------------------------------------------------------------------------------------------------------------


class _Product:
    """Emits one dot op."""

    def __init__(self, c: Context, op: Op, matrix: Matrix, chip: Chip) -> None:
        self.c, self.op, self.matrix, self.w = c, op, matrix, c.w
        self.sides = (matrix.a, matrix.b)
        self.spread = log2(chip.lanes) - log2(matrix.side)
        self.values = list(op.operands[:3])
        self.layouts = [c.layout(v) for v in op.operands[:3]]
        self.rank = len(self.layouts[2].shape)
        names = ["bmk", "bkn", "bmn"]
        self.scales: list[int | None] = [None, None]  # which of the values scales a, b
        rest = iter(op.operands[3:])
        for which, (flag, name) in enumerate((("a_scaled", "bmk"), ("b_scaled", "bnk"))):
            if op.attrs.get(flag):
                value = next(rest)
                self.scales[which] = len(self.values)
                self.values.append(value)
                self.layouts.append(c.layout(value))
                names.append(name)
        self.bits = [
            dict(zip(name[-self.rank :], bit_positions(layout.shape), strict=True))
            for name, layout in zip(names, self.layouts, strict=True)
        ]

    def run(self) -> list[Cell]:
        matrix, w = self.matrix, self.w
        kind = self.op.operands[2].type.element  # type: ignore[union-attr]
        wide = {"float": f32, "double": f64, "i32": i32}[matrix.acc]
        acc = [casts.cast(w, cell, wide) for cell in self.c.tile(self.op.operands[2])]
        self.parts = [self.split(self.masked(0)), self.split(self.masked(1))]
        self.where = [{layout(r): r for r in range(layout.registers)} for layout in self.layouts]
        self.made: dict[tuple[int, int, int, int], str] = {}
        self.factors = [self.scale_words(which) for which in (0, 1)]
        for tile in self.tiles():
            registers = [self.where[2][self.flat(2, tile) | row] for row in self.rows()]
            value = self.vector([acc[r] for r in registers])
            for step in range(self.steps()):
                for x, y in self.terms():
                    operands = self.operand(1, y, tile, step), self.operand(0, x, tile, step)
                    value = self.issue(*operands, value, tile, step)
            type = f"<{len(registers)} x {matrix.acc}>"
            for i, r in enumerate(registers):
                acc[r] = Cell(w.emit(f"extractelement {type} {value}, i32 {i}"), wide)
        return [casts.cast(w, cell, kind) for cell in acc]

    def operand(self, which: int, part: int, tile: dict[str, int], step: int) -> str:
        """An operand of one instruction, packed once for all tiles that use it."""
        base, cells = self.flat(which, tile), self.parts[which][part]
        key = (which, part, base, step)
        if key not in self.made:
            where = self.where[which]
            places = [None if k is None else where[base | k] for k in self.fragment(which, step)]
            self.made[key] = self.packed([None if r is None else cells[r] for r in places], cells[0], which)
        return self.made[key]

    def scale_words(self, which: int) -> list[str]:
        """The scales of an operand, one register each, as i32."""
        value = self.scales[which]
        if value is None:
            return []
        cells = self.masked(value, 127)
        return [self.w.emit(f"zext {cell.typed} to i32") for cell in cells]

    def scale(self, which: int, tile: dict[str, int], step: int) -> str:
        """What the lane gives as the scale of an operand in one instruction; 127 stands for 1."""
        value = self.scales[which]
        if value is None:
            return "127"
        own = self.own_k(value)
        k = sum(v for bit, v in enumerate(own) if step >> bit & 1)
        return self.factors[which][self.where[value][self.flat(value, tile) | k]]

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
        return 1 << max(0, len(self.own_k(0)) - self.matrix.a.run)

    def fragment(self, which: int, step: int) -> list[int | None]:
        """The index of each value of a lane's operand within its row, in order; None: beyond K, a zero."""
        mine = self.own_k(which)
        found: list[int | None] = []
        run = self.sides[which].run
        for i in range(1 << run):
            number = step << run | i
            found.append(None if number >> len(mine) else sum(v for bit, v in enumerate(mine) if number >> bit & 1))
        return found

    # Values ---------------------------------------------------------------------------------------------------------

    def masked(self, which: int, neutral: int = 0) -> list[Cell]:
        """The operand's cells (or a scale's) with zeros (or ``neutral``) where k is outside K: padding, and lanes
        beyond a K of fewer runs than the instruction's."""
        c, w = self.c, self.w
        value, layout = self.values[which], self.layouts[which]
        cells = c.tile(value)
        axis = self.rank - 2 if which == 1 else self.rank - 1
        k = layout.shape[axis]
        zero = c.constant(cells[0].element, 0.0 if cells[0].element.is_float else neutral)
        first = log2(self.matrix.side)
        free = sum(1 << first + i for i in range(self.matrix.high) if layout.lane[first + i] == 0)
        beyond: str | None = None
        if free:
            with w.at(c.entry):
                beyond = w.emit(f"icmp eq i32 {w.emit(f'and i32 {c.lane}, {free}')}, 0")
        if not k & k - 1:
            return cells if beyond is None else [c.choose(beyond, cell, zero) for cell in cells]
        result = []
        for r, cell in enumerate(cells):
            inside = w.emit(f"icmp ult i32 {c.coordinate(layout, axis, r)}, {k}")
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

    def packed(self, values: Sequence[Cell | None], like: Cell, which: int) -> str:
        """A lane's values as one operand of the instruction."""
        zero = self.c.constant(like.element, 0.0 if like.element.is_float else 0)
        cells = [v if v is not None else zero for v in values]
        if len(cells) == 1:
            return cells[0].text
        vector, given, wanted = self.vector(cells), f"<{len(cells)} x {cells[0].type}>", self.sides[which].type
        return vector if given == wanted else self.w.emit(f"bitcast {given} {vector} to {wanted}")

    def issue(self, x: str, y: str, acc: str, tile: dict[str, int], step: int) -> str:
        """X is b and Y is a, see the head of this file."""
        matrix = self.matrix
        result = f"<{1 << len(matrix.rows) - self.spread} x {matrix.acc}>"
        args = [f"{matrix.b.type} {x}", f"{matrix.a.type} {y}"]
        if matrix.signs:
            signs = [f"i1 {'true' if s else 'false'}" for s in reversed(matrix.signs)]
            args = [signs[0], args[0], signs[1], args[1]]
        args.append(f"{result} {acc}")
        if matrix.formats is not None:
            args += [f"i32 {number}" for number in reversed(matrix.formats)]
            plain = self.op.kind == "dot"  # zeros: the instruction without scales
            for which in (1, 0):
                args += ["i32 0", f"i32 {0 if plain else self.scale(which, tile, step)}"]
        args += matrix.tail.split(", ")[1:] if matrix.tail else []
        kinds = [a.rsplit(" ", 1)[0] for a in args]
        callee = self.w.module.declare(f"llvm.amdgcn.{matrix.name}", result, kinds, "convergent nounwind")
        return self.w.emit(f"call {result} {callee}({', '.join(args)})")


def matrix_dot(c: Context, op: Op, products: Products) -> list[Cell] | None:
    """The accumulator's registers after the product; None when no instruction fits."""
    matrix = products.matrix(op)
    return None if matrix is None else _Product(c, op, matrix, products.chip).run()
