"""Which matrix products use ``wgmma``, and in which layouts their operands are loaded for it."""

from __future__ import annotations

from ...analysis import axis as axis_analysis
from ...ir.core import Function, Module, Op, Value
from ...ir.types import TensorType, element_of
from ...layouts.axes import real
from ...layouts.linear import LinearLayout, bit_positions
from ...passes.assign_layouts import DotChoice, LayoutOptions, dot_part
from . import mma, wgmma
from .capabilities import WARP


class Products:
    """The choice for each product of a module, made once, before layouts are assigned.

    Operands that are not of 16 bits must lie in shared memory with K inside. Asynchronous copies put 32-bit elements
    there from any order; bytes they take as they lie in global memory, so a right operand that lies the other way goes
    with the other kind of product (a left one may stay in registers).
    """

    def __init__(self, module: Module, warps: int, arch: int, blocks: int) -> None:
        self.warps, self.arch, self.blocks = warps, arch, blocks
        self.asynchronous: set[Op] = set()
        self.loads: dict[Op, LinearLayout] = {}
        for function in module.functions.values():
            orders = _Orders(function)
            for op in function.body.walk():
                if op.kind == "dot" and self.fits(op, orders):
                    self.asynchronous.add(op)

    def fits(self, op: Op, orders: _Orders) -> bool:
        """Whether ``wgmma`` computes a product; in clusters, what each block computes of one of 16-bit operands."""
        if self.blocks > 1:
            return self.fits_alone(dot_part(op, self.blocks))
        return wgmma.fits(op, self.warps, self.arch) and (not wgmma.k_inside(op) or self.can_lie(op, orders))

    def fits_alone(self, part: Op) -> bool:
        return wgmma.fits(part, self.warps, self.arch) and not wgmma.k_inside(part)

    def can_lie(self, op: Op, orders: _Orders) -> bool:
        """Whether the right operand can come to lie with K inside; notes loads that must be turned for it."""
        bits = element_of(op.operands[1].type).bits
        for place in (0, 1):
            load, k = orders.source(op.operands[place], 1 - place)
            inside = load is not None and orders.inner(load) == k
            if bits == 8 and place == 1 and not inside:
                return False
            if bits == 32 and load is not None and load.kind == "load" and not inside:
                type = load.results[0].type
                assert isinstance(type, TensorType)
                self.loads[load] = turning_layout(type.shape, k, self.warps)
        return True

    def layouts(self, op: Op, options: LayoutOptions) -> DotChoice:
        if op in self.asynchronous or (self.blocks > 1 and self.fits_alone(op)):
            return wgmma.layouts(op, options)
        return mma.layouts(op, options, self.arch)

    def read_asynchronously(self, op: Op) -> bool:
        return op in self.asynchronous

    def k_inside(self, op: Op) -> bool:
        return op in self.asynchronous and wgmma.k_inside(op)


class _Orders:
    """Where tiles come from and which of their axes is contiguous in memory."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.facts: dict[Value, axis_analysis.AxisInfo] | None = None

    def source(self, value: Value, axis: int) -> tuple[Op | None, int]:
        """The load that ``value`` is, transposed or not, and which axis of it ``axis`` is."""
        op = value.op
        while op is not None and op.kind == "permute" and op.attrs["order"] == (1, 0):
            axis, op = 1 - axis, op.operands[0].op
        return (op if op is not None and op.kind in ("load", "desc_load") else None), axis

    def inner(self, load: Op) -> int:
        if load.kind == "desc_load":
            return 1
        if self.facts is None:
            self.facts = axis_analysis.analyse(self.function)
        facts = self.facts[load.operands[0]]
        return max((0, 1), key=lambda d: (facts.contiguity[d], d))


def turning_layout(shape: tuple[int, ...], k: int, warps: int) -> LinearLayout:
    """A warp reads 16 neighbours of the outer axis, whole sectors of memory, at 2 places of K, and writes each bank of
    shared memory twice, in rows of K: measured better than 8 at 4 places (no bank twice) and 32 at one."""
    bits = [[1 << b for b in places] for places in bit_positions(shape)]
    outer, inner = bits[1 - k], bits[k]

    def take(source: list[int], count: int) -> list[int]:
        taken = source[:count]
        del source[:count]
        return taken + [0] * (count - len(taken))

    lane = take(outer, 4) + take(inner, WARP.bit_length() - 5)
    warp = [(outer or inner or [0]).pop(0) if outer or inner else 0 for _ in range(warps.bit_length() - 1)]
    return LinearLayout(shape, real([*inner, *outer]), tuple(lane), tuple(warp))
