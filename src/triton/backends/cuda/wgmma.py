"""Matrix products by ``wgmma``: four warps multiply 64 rows at a time, b (and usually a) read from shared memory.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (fragment layouts, matrix
descriptors, swizzling modes). Of m64nNkK, warp w of a group holds rows 16 w + group (+ 8), columns 8 j + 2 t (+ 1) of
the accumulator, with lane = 4 * group + t, and of a k = p t + i (+ 4 p), i < p, where a register packs p values. A step
along K takes 32 bytes of a row. Operands of 16 bits may lie either way in shared memory; others only with K inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...analysis.rooms import slot_shape
from ...ir.core import Op, Value
from ...ir.types import ElementType, ScalarType, SharedType, TensorType, f32, i32
from ...layouts.axes import Axis, axes_of, log2, real
from ...layouts.linear import LinearLayout
from ...layouts.placement import panel_bytes
from ...lowering.simt.context import SHARED, Context
from ...lowering.simt.shared_tiles import inner_axis, slot_address
from ...lowering.writer import Cell, FunctionWriter
from ...passes.assign_layouts import DotChoice, LayoutOptions, default_layout
from .mma import register, round_tf32

GROUP_WARPS = 4
ROWS = 64
MAX_COLUMNS = 256
STEP_BYTES = 32
ADDRESS_FIELD = 0x3FFF  # 14 bits, in units of 16 bytes
_FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f8e4m3": "e4m3", "f8e5m2": "e5m2"}
_SWIZZLE_CODE = {128: 1, 64: 2, 32: 3, 16: 0}


def fits(op: Op, warps: int, arch: int) -> bool:
    """Whether the instruction can compute this product: its types, at least 64 rows, at least four warps."""
    a, b, acc = (v.type for v in op.operands[:3])
    assert isinstance(a, TensorType) and isinstance(b, TensorType) and isinstance(acc, TensorType)
    if arch // 10 != 9 or warps < GROUP_WARPS or len(acc.shape) != 2:
        return False
    (m, n), k = acc.shape, a.shape[1]
    powers = all(size & size - 1 == 0 for size in (m, n, k))
    kinds = [x.element for x in (a, b, acc)]
    assert all(isinstance(kind, ScalarType) for kind in kinds)
    large = m >= ROWS and n >= 16 and k * kinds[0].bits >= 8 * STEP_BYTES
    return powers and large and _types_fit(op, *kinds)  # type: ignore[arg-type]


def _types_fit(op: Op, a: ScalarType, b: ScalarType, acc: ScalarType) -> bool:
    if acc.is_integer:
        return acc.bits == 32 and a.is_integer and b.is_integer and a.bits == b.bits == 8
    if acc != f32 or not (a.name in _FLOATS and b.name in _FLOATS):
        return False
    if a.is_fp8 and b.is_fp8:
        # The instruction adds up in fewer bits than f32 has; who limits that gets the other kind of product.
        limit = op.attrs.get("max_imprecise", 0)
        return bool(limit == 0 or limit >= op.operands[0].type.shape[1])  # type: ignore[union-attr]
    return a == b and (a.bits == 16 or op.attrs.get("precision", "ieee") == "tf32")


def k_inside(op: Op) -> bool:
    """Whether operands in shared memory must have K as their inner axis."""
    element = op.operands[1].type.element  # type: ignore[union-attr]
    return bool(element.bits != 16)


def _split(acc: Sequence[int], warps: int) -> list[str]:
    """The axis that each bit of the warp number beyond a group takes."""
    left_m, axes = log2(acc[0]) - log2(ROWS), []
    left_n = log2(acc[1]) - 3
    for _ in range(log2(warps) - 2):
        if left_m:
            axes.append("m")
            left_m -= 1
        elif left_n > 1:
            axes.append("n")
            left_n -= 1
        else:
            axes.append("")
    return axes


def layouts(op: Op, options: LayoutOptions) -> DotChoice:
    """a as a fragment (for when it stays in registers), b anywhere, the accumulator as the instruction has it."""
    a, b, acc = (v.type for v in op.operands[:3])
    assert isinstance(a, TensorType) and isinstance(b, TensorType) and isinstance(acc, TensorType)
    split = _split(acc.shape, options.warps)
    return _fragment(a, split), default_layout(b.shape, options), _accumulator(acc, split)


def _accumulator(type: TensorType, split: Sequence[str]) -> LinearLayout:
    axes = axes_of(type.shape, "mn")
    high_n = [axes["n"].bits.pop() for x in split if x == "n"]
    first = axes["n"].take(1)
    lane = axes["n"].take(2) + axes["m"].take(3)
    rows = axes["m"].take(1)
    warp = axes["m"].take(2)
    columns = iter([1 << b for b in high_n])
    warp += [axes["m"].take(1)[0] if x == "m" else next(columns) if x == "n" else 0 for x in split]
    register = [*first, *rows, *axes["n"].rest(), *axes["m"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), tuple(warp))


def _fragment(type: TensorType, split: Sequence[str]) -> LinearLayout:
    axes: dict[str, Axis] = axes_of(type.shape, "mk")
    first = axes["k"].take(log2(32 // type.element.bits))
    lane = axes["k"].take(2) + axes["m"].take(3)
    rows = axes["m"].take(1)
    warp = axes["m"].take(2)
    warp += [axes["m"].take(1)[0] if x == "m" else 0 for x in split]
    register = [*first, *rows, *axes["k"].rest(), *axes["m"].rest()]
    return LinearLayout(type.shape, real(register), tuple(lane), tuple(warp))


@dataclass(frozen=True, slots=True)
class _Shared:
    """An operand in shared memory: ``rows`` by ``panel`` bytes stand together; ``outer_inner``: M or N is the inner
    axis."""

    base: str
    element: ScalarType
    rows: int
    panel: int
    outer_inner: bool

    @property
    def fixed_bits(self) -> int:
        """The descriptor's constant part: leading and stride byte offsets, swizzling mode."""
        leading = self.rows * self.panel if self.outer_inner else 16
        stride = 8 * self.panel
        offsets = (leading >> 4 & ADDRESS_FIELD) << 16 | (stride >> 4 & ADDRESS_FIELD) << 32
        return offsets | _SWIZZLE_CODE[self.panel] << 62

    def offset(self, outer: int, k: int) -> int:
        """Bytes from the operand's start to row (column) ``outer`` and k-index ``k``; multiples of what a descriptor
        may start at."""
        inner, row = (outer, k) if self.outer_inner else (k, outer)
        at = inner * self.element.bits // 8
        return at // self.panel * self.rows * self.panel + row * self.panel + at % self.panel


def _shared_operand(c: Context, buffer: Value, slot: Value, outer_axis: int) -> _Shared:
    type = buffer.type
    assert isinstance(type, SharedType)
    inner = inner_axis(buffer)
    assert buffer.op is not None
    shape, element = slot_shape(buffer.op), type.block.element
    assert isinstance(element, ScalarType)
    base = slot_address(c, buffer, slot)
    start = c.w.emit(f"ptrtoint ptr addrspace(3) {SHARED} to i32")
    address = start if base == "0" else c.w.emit(f"add nuw nsw i32 {start}, {base}")
    panel = panel_bytes(shape, inner, element.bits // 8)
    return _Shared(address, element, shape[1 - inner], panel, inner == outer_axis)


class _Product:
    """Emits one ``dot_shared``."""

    def __init__(self, c: Context, op: Op) -> None:
        self.c, self.w, self.op = c, c.w, op
        a, a_slot, b, b_slot, acc = op.operands
        self.acc = c.tile(acc)
        self.layout = c.layout(acc)
        turned = bool(op.attrs.get("a_transposed")), bool(op.attrs.get("b_transposed"))
        self.b = _shared_operand(c, b, b_slot, 0 if turned[1] else 1)
        held = b.type
        assert isinstance(held, SharedType)
        self.element = self.b.element
        self.k = held.block.shape[1 if turned[1] else 0]
        self.step = 8 * STEP_BYTES // self.element.bits
        self.a_shared: _Shared | None = None
        self.a_cells: dict[int, Cell] = {}
        if isinstance(a.type, SharedType):
            self.a_shared = _shared_operand(c, a, a_slot, 1 if turned[0] else 0)
        else:
            fragment = c.layout(a)
            cells = [round_tf32(c.w, cell) if cell.element == f32 else cell for cell in c.tile(a)]
            self.a_cells = {fragment(r): cell for r, cell in enumerate(cells)}
            self.a_shape = fragment.shape
            self.a_element = cells[0].element
        self.n = self.layout.shape[1]
        self.starts: dict[tuple[str, str, int], str] = {}

    def run(self) -> list[Cell]:
        registers = {self.layout(r): r for r in range(self.layout.registers)}
        n_bits = log2(self.n)
        mine_n = [v for v in self.layout.register if v < self.n and v >= 8]  # columns of 8 that one warp holds
        width = min(MAX_COLUMNS, 8 << len(mine_n))
        outer_m = [v for v in self.layout.register if v >= ROWS << n_bits]
        acc = list(self.acc)
        tiles = [(m, n) for m in _spans(outer_m) for n in range(0, 8 << len(mine_n), width)]
        for number, (m, n) in enumerate(tiles):
            places = [
                registers[m ^ (n + 8 * j) ^ (8 << n_bits) * row ^ one]
                for j in range(width // 8)
                for row in (0, 1)
                for one in (0, 1)
            ]
            cells = self.issue([acc[p] for p in places], m >> n_bits, n, width, number == 0, number == len(tiles) - 1)
            for place, cell in zip(places, cells, strict=True):
                acc[place] = cell
        return acc

    def warp_rows(self) -> str:
        """The first row of this warp's group, as an i32 operand: what warp bits beyond the group add to m."""
        return self.warp_part(lambda v: v >> log2(self.n))

    def warp_columns(self) -> str:
        return self.warp_part(lambda v: v & self.n - 1)

    def warp_part(self, part: object) -> str:
        assert callable(part)
        vectors = [0, 0, *(part(v) for v in self.layout.warp[2:])]
        return self.c.thread_part((), vectors)

    def descriptor(self, operand: _Shared, outer: int, k: int, group: str) -> str:
        """A matrix descriptor for row (column) ``outer`` + ``group`` (an i32 operand) and k-index ``k``: one addition
        to a base that all steps share, for addresses in units of 16 bytes fit their field."""
        w, bits = self.w, operand.fixed_bits
        key = operand.base, group, bits
        base = self.starts.get(key)
        if base is None:
            address = operand.base
            if group != "0":
                address = w.emit(f"add nuw nsw i32 {address}, {self.group_offset(operand, group)}")
            # In a cluster the bits above say which block's shared memory it is; they are no part of the field.
            base = w.emit(f"and i32 {w.emit(f'lshr exact i32 {address}, 4')}, {ADDRESS_FIELD}")
            if bits & 0xFFFFFFFF:
                base = w.emit(f"or i32 {base}, {bits & 0xFFFFFFFF}")
            self.starts[key] = base
        shift = operand.offset(outer, k) >> 4
        low = w.emit(f"add nuw nsw i32 {base}, {shift}") if shift else base
        high = bits & ~0xFFFFFFFF
        return w.emit(f"or disjoint i64 {w.emit(f'zext i32 {low} to i64')}, {high - (1 << 64) if high >> 63 else high}")

    def group_offset(self, operand: _Shared, group: str) -> str:
        """How many bytes the rows (columns) of a group of warps lie behind the first group's."""
        w = self.w
        if not operand.outer_inner:
            return w.emit(f"mul nuw nsw i32 {group}, {operand.offset(ROWS, 0) // ROWS}")
        # whole panels lie between the groups' columns
        per = operand.panel * 8 // operand.element.bits
        panels = w.emit(f"udiv i32 {group}, {per}")
        moved = w.emit(f"mul nuw nsw i32 {panels}, {operand.rows * operand.panel}")
        inside = w.emit(f"mul nuw nsw i32 {w.emit(f'urem i32 {group}, {per}')}, {operand.element.bits // 8}")
        return w.emit(f"add nuw nsw i32 {moved}, {inside}")

    def issue(self, acc: Sequence[Cell], m: int, n: int, width: int, first: bool, last: bool) -> list[Cell]:
        """All steps along K of one tile, in one piece of assembly: nothing may come between them."""
        w = self.w
        count = len(acc)
        kinds = [_name(x) for x in (self.a_shared.element if self.a_shared else self.a_element, self.element)]
        result, mark = ("i32", "r") if acc[0].element == i32 else ("float", "f")
        total = "s32" if result == "i32" else "f32"
        name = f"wgmma.mma_async.sync.aligned.m64n{width}k{self.step}.{total}.{kinds[0]}.{kinds[1]}"
        target = "{" + ", ".join(f"${i}" for i in range(count)) + "}"
        lines = ["wgmma.fence.sync.aligned;"] if first else []
        operands: list[str] = []
        marks: list[str] = []
        group_m, group_n = self.warp_rows(), self.warp_columns()

        def operand(text: str, mark: str) -> str:
            operands.append(text)
            marks.append(mark)
            return f"${2 * count + len(operands) - 1}"

        for k in range(0, self.k, self.step):
            b = operand(f"i64 {self.descriptor(self.b, n, k, group_n)}", "l")
            if self.a_shared is not None:
                a = operand(f"i64 {self.descriptor(self.a_shared, m, k, group_m)}", "l")
                turned = [self.a_shared.outer_inner, self.b.outer_inner]
            else:
                parts = [operand(f"i32 {text}", "r") for text in self.fragment(m, k)]
                a, turned = "{" + ", ".join(parts) + "}", [self.b.outer_inner]
            # The accumulator counts; floats keep their signs; 16-bit operands say whether they are turned.
            ends = ["p"] + ([] if result == "i32" else ["1", "1"])
            ends += [str(int(x)) for x in turned] if self.element.bits == 16 else []
            lines.append(f"{name} {target}, {a}, {b}, {', '.join(ends)};")
        if last:
            lines.append("wgmma.commit_group.sync.aligned;")
        text = "{ .reg .pred p; setp.eq.u32 p, 1, 1; " + " ".join(lines) + " }"
        ties = ",".join(map(str, range(count)))
        results = "{" + ", ".join([result] * count) + "}"
        args = ", ".join([f"{result} {x.text}" for x in acc] + operands)
        constraints = f"{','.join(['=' + mark] * count)},{ties},{','.join(marks)},~{{memory}}"
        call = w.emit(f'call {results} asm sideeffect "{text}", "{constraints}"({args})')
        return [Cell(w.emit(f"extractvalue {results} {call}, {i}"), acc[0].element) for i in range(count)]

    def fragment(self, m: int, k: int) -> list[str]:
        """The four registers of a for one step: rows (+ 8) and the two halves of its k."""
        bits, pack = log2(self.a_shape[1]), self.step // 8
        found = []
        for high in (0, self.step // 2):
            for row in (0, 8):
                group = [self.a_cells[(m + row) << bits | k + high + i] for i in range(pack)]
                found.append(register(self.w, group))
        return found


def _name(element: ElementType) -> str:
    assert isinstance(element, ScalarType)
    return ("s8" if element.is_signed else "u8") if element.is_integer else _FLOATS[element.name]


def _spans(vectors: Sequence[int]) -> list[int]:
    """Every sum of the vectors."""
    found = [0]
    for v in vectors:
        found += [x ^ v for x in found]
    return found


def dot_shared(c: Context, op: Op) -> list[Cell]:
    """Begins the product; the result's cells are the accumulator registers while it runs."""
    return _Product(c, op).run()


def dot_wait(w: FunctionWriter, values: Sequence[Sequence[Cell]], pending: int) -> list[list[Cell]]:
    """The registers pass through the wait, so that nothing reads them before it."""
    cells = [cell for group in values for cell in group]
    count = len(cells)
    types = ["i32" if cell.element == i32 else "float" for cell in cells]
    outputs = ",".join("=r" if type == "i32" else "=f" for type in types)
    ties = ",".join(map(str, range(count)))
    result = types[0] if count == 1 else "{" + ", ".join(types) + "}"
    args = ", ".join(f"{type} {x.text}" for type, x in zip(types, cells, strict=True))
    asm = f"wgmma.wait_group.sync.aligned {pending};"
    call = w.emit(f'call {result} asm sideeffect "{asm}", "{outputs},{ties},~{{memory}}"({args})')
    fresh = iter([Cell(w.emit(f"extractvalue {result} {call}, {i}"), cell.element) for i, cell in enumerate(cells)])
    return [[next(fresh) for _ in group] for group in values]
