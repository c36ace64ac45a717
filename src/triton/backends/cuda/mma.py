"""Matrix products by ``mma.sync``: which instruction, in which layouts, and its emission.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions". In all shapes used here (m16n8kK with 32-bit
operand registers that pack p values, K = 8p; and m8n8k4 for f64) lane = 4 * group + t, and

    accumulator:  rows group (+ 8), columns 2t, 2t + 1         a, b:  k = p * t + i (+ 4p);  a rows group (+ 8), b
    columns group.

A product does not care in which order K is summed, so a thread may own any k as long as a and b agree: here each thread
owns runs of consecutive k as long as 16 bytes, which makes its reads of shared memory wide. Sizes smaller than an
instruction's are filled with replicas along M and N and with zeros along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.core import Op
from ...ir.types import ScalarType, TensorType, bf16, f16, f32, f64, i32
from ...layouts.axes import Axis, axes_of, log2, real
from ...layouts.linear import LinearLayout, bit_positions
from ...lowering import convert as casts
from ...lowering.elementwise import arithmetic
from ...lowering.simt.context import Context
from ...lowering.writer import Cell, FunctionWriter
from ...passes.assign_layouts import LayoutOptions, default_layout


@dataclass(frozen=True, slots=True)
class Mma:
    """One instruction family. ``operand`` is the type a and b are converted to, ``terms`` how often the product is
    split for precision."""

    name: str
    operand: tuple[str, str]
    bits: int
    m: int
    acc: str
    split: str = ""

    @property
    def pack(self) -> int:
        """Values in one operand register."""
        return max(1, 32 // self.bits)

    @property
    def k(self) -> int:
        return 4 if self.bits == 64 else 8 * self.pack

    @property
    def groups(self) -> int:
        """Operand registers a thread has along K (for one row)."""
        return 1 if self.bits == 64 else 2


_FLOAT8 = {"f8e4m3": "e4m3", "f8e5m2": "e5m2"}


def choose(arch: int, a: ScalarType, b: ScalarType, acc: ScalarType, precision: str) -> Mma | None:
    """The instruction for these types on ``arch``; None: multiply and add in ordinary arithmetic."""
    kinds = {a.name, b.name}
    if acc.is_integer:
        if a.bits == b.bits == 8 and acc.bits == 32 and arch >= 80:
            names = tuple(("s" if t.is_signed else "u") + "8" for t in (a, b))
            return Mma("m16n8k32", (names[0], names[1]), 8, 16, "s32")
        return None
    if a.is_fp8 and b.is_fp8 and acc.bits <= 32:
        if arch >= 89 and kinds <= _FLOAT8.keys():
            return Mma("m16n8k32", (_FLOAT8[a.name], _FLOAT8[b.name]), 8, 16, "f32")
        return _sixteen(arch, "f16")
    if acc.bits == 64 or "f64" in kinds:
        return Mma("m8n8k4", ("f64", "f64"), 64, 8, "f64") if arch >= 80 and acc.bits == 64 else None
    if kinds == {"f32"} or (precision == "" and "f32" in kinds):
        if arch < 80 or precision == "ieee":
            return None
        if precision in ("tf32", "tf32x3"):
            return Mma("m16n8k8", ("tf32", "tf32"), 32, 16, "f32", precision if precision != "tf32" else "")
        return Mma("m16n8k16", ("bf16", "bf16"), 16, 16, "f32", precision)
    if "f32" in kinds:
        return None
    return _sixteen(arch, "bf16" if "bf16" in kinds else "f16")


def _sixteen(arch: int, name: str) -> Mma | None:
    if arch >= 80:
        return Mma("m16n8k16", (name, name), 16, 16, "f32")
    return None


def _of(op: Op, arch: int) -> Mma | None:
    a, b, acc = (v.type.element for v in op.operands[:3])  # type: ignore[union-attr]
    assert isinstance(a, ScalarType) and isinstance(b, ScalarType) and isinstance(acc, ScalarType)
    return choose(arch, a, b, acc, op.attrs.get("precision", "ieee"))


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a product of padded size [batch, M, N, K] is dealt to threads, as bit vectors within each axis (1 <<
    coordinate bit)."""

    batch: int
    m: int
    n: int
    k: int
    warp_axes: tuple[str, ...]  # which axis each warp bit takes: "b", "m", "n" or "" for a replica


def tiling(mma: Mma, shape: Sequence[int], k: int, warps: int) -> Tiling:
    """Warps share batch first, then whichever of M and N leaves the more square piece to a warp."""
    batch, m, n = [1, *shape] if len(shape) == 2 else list(shape)
    left = {"b": log2(batch), "m": max(0, log2(m) - log2(mma.m)), "n": max(0, log2(n) - 3)}
    size = {"m": log2(m), "n": log2(n)}
    axes: list[str] = []
    for _ in range(log2(warps)):
        if left["b"]:
            axis = "b"
        else:
            axis = max(("m", "n"), key=lambda x: (left[x] > 0, size[x], x == "m"))
            if not left[axis]:
                axes.append("")
                continue
            size[axis] -= 1
        left[axis] -= 1
        axes.append(axis)
    return Tiling(log2(batch), log2(m), log2(n), log2(k), tuple(axes))


def layouts(op: Op, options: LayoutOptions, arch: int) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """Layouts of a, b and the accumulator for the instruction that ``choose`` picks."""
    a, b, acc = (v.type for v in op.operands[:3])
    assert isinstance(a, TensorType) and isinstance(b, TensorType) and isinstance(acc, TensorType)
    mma = _of(op, arch)
    if mma is None:
        return tuple(default_layout(t.shape, options) for t in (a, b, acc))  # type: ignore[return-value]
    plan = tiling(mma, acc.shape, a.shape[-1], options.warps)
    return _operand(a, mma, plan, "bmk"), _operand(b, mma, plan, "bkn"), _accumulator(acc, mma, plan)


def _operand(type: TensorType, mma: Mma, plan: Tiling, names: str) -> LinearLayout:
    axes = axes_of(type.shape, names)
    outer = "m" if "m" in names else "n"
    absent = "n" if outer == "m" else "m"
    own = 64 if mma.bits == 64 else mma.bits
    run = min(log2(128 // own), max(log2(mma.pack * mma.groups), plan.k - 2))
    low = axes["k"].take(run)  # consecutive k of one thread
    lane = axes["k"].take(2) + axes[outer].take(3)
    rows = axes[outer].take(1) if outer == "m" and mma.m == 16 else []
    warp = tuple(0 if x == absent else v for x, v in zip(plan.warp_axes, _dealt(plan, axes, absent), strict=True))
    register = [*low, *rows, *axes["k"].rest(), *axes[outer].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


def _dealt(plan: Tiling, axes: dict[str, Axis], absent: str) -> list[int]:
    return [axes[x].take(1)[0] if x and x != absent else 0 for x in plan.warp_axes]


def _accumulator(type: TensorType, mma: Mma, plan: Tiling) -> LinearLayout:
    axes = axes_of(type.shape, "bmn")
    register = axes["n"].take(1)
    lane = axes["n"].take(2) + axes["m"].take(3)
    register += axes["m"].take(1) if mma.m == 16 else []
    warp = tuple(_dealt(plan, axes, ""))
    register += [*axes["n"].rest(), *axes["m"].rest(), *axes["b"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), warp)


# Emission -----------------------------------------------------------------------------------------------------------


class _Product:
    """Emits one dot op."""

    def __init__(self, c: Context, op: Op, mma: Mma) -> None:
        self.c, self.op, self.mma, self.w = c, op, mma, c.w
        self.layouts = [c.layout(v) for v in op.operands[:3]]
        self.k = self.layouts[0].shape[-1]
        self.rank = len(self.layouts[2].shape)

    def run(self) -> list[Cell]:
        c, mma = self.c, self.mma
        acc_kind = self.op.operands[2].type.element  # type: ignore[union-attr]
        wide = {"f32": f32, "f64": f64, "s32": i32}[mma.acc]
        acc = [casts.cast(self.w, cell, wide) for cell in c.tile(self.op.operands[2])]
        parts_a = self.split(self.masked(0))
        parts_b = self.split(self.masked(1))
        where = [{layout(r): r for r in range(layout.registers)} for layout in self.layouts]
        names = "bmk", "bkn", "bmn"
        bits = [
            dict(zip(n[-self.rank :], bit_positions(x.shape), strict=True))
            for n, x in zip(names, self.layouts, strict=True)
        ]
        tiles = [
            (tile, [where[2][self.flat(bits[2], self.inner(tile, row, column))] for row, column in self.places()])
            for tile in self.tiles(bits[2])
        ]
        # Steps along K outermost: what is read for one of them need not be held until all tiles have had it.
        for step in range(self.steps()):
            for tile, registers in tiles:
                cells = [acc[r] for r in registers]
                for x, y in self.terms():
                    a = _picked(parts_a[x], where[0], self.fragment(bits[0], "m", tile, step))
                    b = _picked(parts_b[y], where[1], self.fragment(bits[1], "n", tile, step))
                    cells = self.issue(a, b, cells)
                for r, cell in zip(registers, cells, strict=True):
                    acc[r] = cell
        return [casts.cast(self.w, cell, acc_kind) for cell in acc]

    # Which elements -------------------------------------------------------------------------------------------------

    def flat(self, bits: dict[str, range], at: dict[str, int]) -> int:
        """The index at lane 0, warp 0 of coordinates by axis name; bits the axis does not have are dropped."""
        flat = 0
        for name, places in bits.items():
            value = at.get(name, 0) & (1 << len(places)) - 1
            flat |= value << (places[0] if places else 0)
        return flat

    def tiles(self, bits: dict[str, range]) -> list[dict[str, int]]:
        """The coordinates of each instruction tile that one warp computes."""
        layout = self.layouts[2]
        inner = {1 << places[0] for name, places in bits.items() if name == "n" and places}
        if self.mma.m == 16 and len(bits["m"]) > 3:
            inner.add(1 << bits["m"][3])
        outer = [v for v in layout.register if v not in inner]
        found = []
        for number in range(1 << len(outer)):
            flat = 0
            for i, v in enumerate(outer):
                flat ^= v if number >> i & 1 else 0
            found.append({name: flat >> (p[0] if p else 0) & (1 << len(p)) - 1 for name, p in bits.items()})
        return found

    def places(self) -> list[tuple[int, int]]:
        """Row and column within a tile of each accumulator register of the instruction."""
        return [(row, column) for row in ((0, 8) if self.mma.m == 16 else (0,)) for column in (0, 1)]

    def inner(self, tile: dict[str, int], row: int, column: int) -> dict[str, int]:
        return {**tile, "m": tile["m"] | row, "n": tile["n"] | column}

    def steps(self) -> int:
        return max(1, (1 << log2(self.k)) // self.mma.k)

    def fragment(self, bits: dict[str, range], outer: str, tile: dict[str, int], step: int) -> list[int | None]:
        """The operand's element (at lane 0) for each value of the instruction's fragment, in register order; None:
        zero."""
        mma = self.mma
        layout = self.layouts[0 if outer == "m" else 1]
        places = bits["k"]
        mine = [
            v
            for v in layout.register
            if places and v >> places[0] & (1 << len(places)) - 1 and v in {1 << p for p in places}
        ]
        found: list[int | None] = []
        rows = (0, 8) if outer == "m" and mma.m == 16 else (0,)
        for group in range(mma.groups):
            for row in rows:
                for i in range(mma.pack):
                    number = step * mma.groups * mma.pack + group * mma.pack + i
                    if number >> len(mine):
                        found.append(None)
                        continue
                    k = 0
                    for bit, vector in enumerate(mine):
                        k |= vector if number >> bit & 1 else 0
                    at = {name: value for name, value in tile.items() if name in bits}
                    at[outer] = at.get(outer, 0) | row
                    found.append(self.flat(bits, at) | k)
        return found

    # Values ---------------------------------------------------------------------------------------------------------

    def masked(self, which: int) -> list[Cell]:
        """The operand's cells with zeros where k is outside K: padding, and lanes beyond a K of fewer than four
        threads."""
        c, w = self.c, self.w
        value, layout = self.op.operands[which], self.layouts[which]
        cells = c.tile(value)
        axis = self.rank - 1 if which == 0 else self.rank - 2
        kind = cells[0].element
        zero = c.constant(kind, 0.0 if kind.is_float else 0)
        free = [i for i in range(2) if layout.lane[i] == 0]
        beyond: str | None = None
        if free:
            mask = sum(1 << i for i in free)
            with w.at(c.entry):
                beyond = w.emit(f"icmp eq i32 {w.emit(f'and i32 {c.lane}, {mask}')}, 0")
        if not self.k & self.k - 1:
            return cells if beyond is None else [c.choose(beyond, cell, zero) for cell in cells]
        result = []
        for r, cell in enumerate(cells):
            inside = w.emit(f"icmp ult i32 {c.coordinate(layout, axis, r)}, {self.k}")
            result.append(c.choose(c.both(inside, beyond) or inside, cell, zero))
        return result

    def split(self, cells: list[Cell]) -> list[list[Cell]]:
        """The operand in the instruction's type, or in parts that add up to it."""
        mma, w = self.mma, self.w
        if mma.split.startswith("bf16"):
            parts, rest = [], cells
            for n in range(2 if mma.split == "bf16x3" else 3):
                part = [casts.cast(w, cell, bf16) for cell in rest]
                parts.append(part)
                if n < 2:
                    rest = [
                        arithmetic(w, "fsub", cell, casts.cast(w, p, f32)) for cell, p in zip(rest, part, strict=True)
                    ]
            return parts
        if mma.operand[0] == "tf32":
            high = [round_tf32(w, cell) for cell in cells]
            if mma.split != "tf32x3":
                return [high]
            low = [round_tf32(w, arithmetic(w, "fsub", cell, h)) for cell, h in zip(cells, high, strict=True)]
            return [high, low]
        target = {"f16": f16, "bf16": bf16, "f64": f64}.get(mma.operand[0])
        return [[casts.cast(w, cell, target) if target is not None else cell for cell in cells]]

    def terms(self) -> Sequence[tuple[int, int]]:
        """Which parts of a and b are multiplied, the smallest products first."""
        split = self.mma.split
        if split == "tf32x3" or split == "bf16x3":
            return (1, 0), (0, 1), (0, 0)
        if split == "bf16x6":
            return (2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)
        return ((0, 0),)

    def issue(self, a: Sequence[Cell | None], b: Sequence[Cell | None], acc: Sequence[Cell]) -> list[Cell]:
        mma, w = self.mma, self.w
        type, constraint = {"f64": ("double", "d"), "f32": ("float", "f"), "s32": ("i32", "r")}[mma.acc]
        operand, mark = ("double", "d") if mma.bits == 64 else ("i32", "r")
        operands = [*self.packed(a), *self.packed(b)]
        n = len(acc)
        count_a = len(a) // mma.pack
        names = [f"${i}" for i in range(2 * n + len(operands))]
        d, rest = names[:n], names[n:]
        groups = d, rest[:count_a], rest[count_a : len(operands)], rest[len(operands) :]
        text = ", ".join("{" + ", ".join(g) + "}" for g in groups)
        opcode = f"mma.sync.aligned.{mma.name}.row.col.{mma.acc}.{mma.operand[0]}.{mma.operand[1]}.{mma.acc}"
        marks = ",".join(["=" + constraint] * n + [mark] * len(operands) + [constraint] * n)
        result = "{" + ", ".join([type] * n) + "}"
        args = ", ".join([f"{operand} {x}" for x in operands] + [f"{type} {x.text}" for x in acc])
        call = w.emit(f'call {result} asm sideeffect "{opcode} {text};", "{marks}"({args})')
        return [Cell(w.emit(f"extractvalue {result} {call}, {i}"), acc[i].element) for i in range(n)]

    def packed(self, values: Sequence[Cell | None]) -> list[str]:
        """Fragment values as operand registers."""
        w, mma = self.w, self.mma
        known = next(v for v in values if v is not None)
        kind = known.element
        cells = [v if v is not None else self.c.constant(kind, 0.0 if kind.is_float else 0) for v in values]
        if mma.bits == 64:
            return [x.text for x in cells]
        found = []
        for start in range(0, len(cells), mma.pack):
            found.append(register(w, cells[start : start + mma.pack]))
        return found


def _picked(cells: Sequence[Cell], where: dict[int, int], elements: Sequence[int | None]) -> list[Cell | None]:
    return [None if element is None else cells[where[element]] for element in elements]


def round_tf32(w: FunctionWriter, cell: Cell) -> Cell:
    """PTX ISA "cvt": f32 rounded to tf32, ties away from zero."""
    text = w.emit(f'call i32 asm "cvt.rna.tf32.f32 $0, $1;", "=r,f"(float {cell.text})')
    return Cell(w.emit(f"bitcast i32 {text} to float"), f32)


def register(w: FunctionWriter, cells: Sequence[Cell]) -> str:
    """Cells side by side in one 32-bit register, the first in the low bits."""
    type = cells[0].type
    if len(cells) == 1:
        return cells[0].text if type == "i32" else w.emit(f"bitcast {cells[0].typed} to i32")
    full, vector = f"<{len(cells)} x {type}>", "poison"
    for i, cell in enumerate(cells):
        vector = w.emit(f"insertelement {full} {vector}, {cell.typed}, i32 {i}")
    return w.emit(f"bitcast {full} {vector} to i32")


def mma_dot(c: Context, op: Op, arch: int) -> list[Cell] | None:
    """The accumulator's registers after the product; None when no instruction fits."""
    mma = _of(op, arch)
    return None if mma is None else _Product(c, op, mma).run()
