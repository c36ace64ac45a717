"""Copies by loads that write to shared memory themselves (CDNA: ``global_load_lds_dword``, gfx950 also ``_dwordx4``).

Such a load puts the bytes of lane l at a common address + l * 4 (or 16), so it can only fill shared memory in the order
of lanes. Tiles that are copied ahead of products lie swizzled there (``layouts/placement.py``); that placement is
linear, so its inverse is a layout: lane l is given the element that belongs at the l-th place. Rows stay whole, so the
accesses to global memory stay as coalesced as they were.
Sources: CDNA 3 and 4 guides ("Memory Instructions That Use LDS"), LLVM's ``llvm.amdgcn.global.load.lds``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...analysis import axis as axis_analysis
from ...analysis.access import access_width
from ...analysis.effects import is_pure
from ...ir.core import Block, Function, Op, Value
from ...ir.types import PointerType, TensorType, element_of, shape_of
from ...layouts.axes import log2
from ...layouts.linear import LinearLayout, bit_counts, solve
from ...layouts.placement import placement, tile_bytes
from ...lowering.simt.machine import SHARED_SPACE
from ...lowering.writer import FunctionWriter
from ...passes.pipeline_loads import PipelineOptions
from .capabilities import Chip

WIDTHS = (16, 4)
"""Bytes of a lane that an instruction writes, the best first."""
MOST_LOADS, MOST_SHARED = 63, 15
"""How many loads, and accesses to shared memory, ``s_waitcnt`` can count on CDNA."""
GLOBAL, SHARED = "ptr addrspace(1)", f"ptr addrspace({SHARED_SPACE})"


def direct_layouts(function: Function, chip: Chip, warps: int, options: PipelineOptions) -> dict[Op, LinearLayout]:
    """The layout for each load that may be copied to shared memory without going through registers: one that
    ``pipeline_loads`` will copy ahead."""
    if not chip.copy_bytes:
        return {}
    users: dict[Value, list[Op]] = {}
    for op in function.body.walk():
        for value in op.operands:
            users.setdefault(value, []).append(op)
    facts = axis_analysis.analyse(function)
    found = {}
    for loop in _loops(function.body, options.stages):
        chosen = {}
        for load in loop.regions[0].ops:
            if load.kind == "load" and _feeds_product(load.results[0], users) and _runs_ahead(load, loop.regions[0]):
                layout = _layout(load, facts, chip, warps)
                if layout is not None:
                    chosen[load] = layout
        sizes = [
            tile_bytes(shape_of(load.results[0].type), element_of(load.results[0].type).bits // 8) for load in chosen
        ]
        if 2 * sum(sizes) <= options.shared_bytes:
            found.update(chosen)
    return found


def _loops(block: Block, stages: int) -> Iterator[Op]:
    """Innermost loops that are pipelined."""
    for op in block.ops:
        inner = [o for region in op.regions for o in region.ops]
        if op.kind == "for" and not any(o.kind in ("for", "while", "if") for o in inner):
            step = op.operands[2].op
            forward = step is not None and step.kind == "constant" and step.attrs["value"] > 0
            if forward and (op.attrs.get("num_stages") or stages) > 1:
                yield op
        else:
            for region in op.regions:
                yield from _loops(region, stages)


def _runs_ahead(load: Op, body: Block) -> bool:
    """Whether addresses and mask can be computed before the loop gets there: no memory, no regions on the way."""
    inside, seen, pending = set(body.ops), set(), list(load.operands[:2])
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.op
        if op is None and value.owner is body and value.index > 0:
            pending.append(body.terminator.operands[value.index - 1])
        elif op in inside:
            if not is_pure(op) or op.regions:
                return False
            pending += op.operands
    return not load.attrs.get("volatile")


def _feeds_product(value: Value, users: dict[Value, list[Op]]) -> bool:
    """Whether a tile only goes, transposed or not, to a product's a or b."""
    while len(users.get(value, [])) == 1:
        (user,) = users[value]
        if user.kind in ("dot", "dot_scaled"):
            return value in user.operands[:2]
        if user.kind != "permute":
            return False
        value = user.results[0]
    return False


def _layout(load: Op, facts: dict[Value, axis_analysis.AxisInfo], chip: Chip, warps: int) -> LinearLayout | None:
    type, pointer = load.results[0].type, load.operands[0]
    if not isinstance(type, TensorType) or len(type.shape) != 2 or pointer not in facts:
        return None
    element = element_of(type)
    if isinstance(element, PointerType) or element.bits not in (8, 16, 32) or element.is_bool:
        return None
    mask = facts.get(load.operands[1]) if len(load.operands) > 1 else None
    if len(load.operands) > 1 and mask is None:
        return None
    inner = max((0, 1), key=lambda d: (facts[pointer].contiguity[d], d))
    size = element.bits // 8
    for width in WIDTHS:
        if width > chip.copy_bytes or width < size:
            continue
        layout = in_order(type.shape, inner, size, width, chip.lanes, warps)
        if layout is not None and access_width(layout, facts[pointer], mask, size) * size >= width:
            return layout
    return None


def in_order(
    shape: tuple[int, ...], inner: int, element_bytes: int, width: int, lanes: int, warps: int
) -> LinearLayout | None:
    """The layout whose lanes lie ``width`` bytes apart in a slot of shared memory; None where there are too few
    elements, or ``width`` is more than the swizzle keeps together."""
    bits = sum(bit_counts(shape))
    basis = [at // element_bytes for at in placement(shape, inner, element_bytes)]
    own, spread = log2(width // element_bytes), log2(lanes)
    if bits < own + spread:
        return None
    order = []
    for bit in range(bits):
        found = solve(basis, 1 << bit)
        if found is None:
            return None
        order.append(found)
    rest = order[own + spread :]
    warp = [rest.pop(0) if rest else 0 for _ in range(log2(warps))]
    return LinearLayout(shape, (*order[:own], *rest), tuple(order[own : own + spread]), tuple(warp))


class DirectCopies:
    """The loads to shared memory of one kernel while it is written, and the waits for them."""

    def __init__(self) -> None:
        self.groups = [0]  # loads in each group of copies, the last one still open
        self.note = ""
        self.under_way = False

    def load(self, w: FunctionWriter, target: str, source: str, bytes: int) -> None:
        """``target``: where this lane's bytes go; the instruction is given the first lane's place."""
        call(w, "global.load.lds", [
            f"{GLOBAL} {source}", f"{SHARED} {call(w, 'readfirstlane.p3', [f'{SHARED} {target}'], SHARED)}",
            f"i32 {bytes}", "i32 0", "i32 0",
        ], note=self._note(w))  # fmt: skip
        self.groups[-1] += 1
        self.under_way = True

    def commit(self) -> None:
        self.groups.append(0)

    def wait(self, w: FunctionWriter, pending: int) -> None:
        """Loads end in order (``vmcnt``), and the groups of a loop are alike: as many as the last groups have may be
        under way."""
        if any(self.groups):
            waitcnt(w, min(pending * self.groups[-2], MOST_LOADS), MOST_SHARED)
        if not pending:
            self.under_way = False

    def _note(self, w: FunctionWriter) -> str:
        """Metadata of these loads. Reads of shared memory get some that tells them apart, or code generation would let
        each read wait for every such load; ``wait`` and the barrier after it do that."""
        if not self.note:
            module = w.module
            domain = module.distinct_metadata('!"copies"')
            scopes = [module.distinct_metadata(f'{domain}, !"{name}"') for name in ("to", "from")]
            to, other = (module.metadata(f"!{{{scope}}}") for scope in scopes)
            self.note = f", !alias.scope {to}"
            w.shared_note = f", !alias.scope {other}, !noalias {to}"
        return self.note


def waitcnt(w: FunctionWriter, loads: int, shared: int) -> None:
    """``s_waitcnt``: at most so many are left (``vmcnt`` in bits 0 to 3, 14, 15; ``expcnt`` 4 to 6; ``lgkmcnt`` 8 to
    11)."""
    call(w, "s.waitcnt", [f"i32 {loads & 15 | loads >> 4 << 14 | 7 << 4 | shared << 8}"])


def call(w: FunctionWriter, name: str, args: Sequence[str], result: str = "void", note: str = "") -> str:
    """A call of ``llvm.amdgcn.name``; the operand that it gives."""
    callee = w.module.declare(f"llvm.amdgcn.{name}", result, [a.rsplit(" ", 1)[0] for a in args])
    text = f"call {result} {callee}({', '.join(args)}){note}"
    if result != "void":
        return w.emit(text)
    w.line(text)
    return ""
