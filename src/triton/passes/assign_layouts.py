"""Gives every tensor a linear layout: from stage ``tile`` to stage ``layout``.

Requires: stage ``tile``; functions with tensor parameters or results are inlined.
Ensures: stage ``layout``. Every tensor type names a layout of ``module.attrs["layouts"]``; memory accesses are
coalesced; matrix products have the operand layouts that the target's hook asks for; elementwise ops agree on one
layout;
``convert_layout`` stands where a value is needed in another layout than it was made in. Values that cost little to make
again (constants, ranges, index arithmetic, broadcasts) are made again in the wanted layout instead of converted.

    %p = addptr %base, %offsets : 128xptr<f32>        %p = addptr %base, %offsets : 128xptr<f32> #L0
    %x = load %p : 128xf32                       =>   %x = load %p : 128xf32 #L0
    %s = reduce %x {axis = 0} : f32 ...               %s = reduce %x {axis = 0} : f32 ...

How: one walk finds for every value the layout its producer wants (memory: coalesced; dot: the target's; reduce: a
slice; the rest: that of an operand), repeated until loop-carried values agree; a second walk rebuilds the function,
asking for each operand in the layout its user needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Protocol

from ..analysis import axis as axis_analysis
from ..ir.core import Block, Function, Module, Op, Value
from ..ir.ops import OPS, is_pure
from ..ir.types import PointerType, TensorType, Type, element_of
from ..layouts.linear import LinearLayout, bit_positions, distribute, padded, part_shape, permuted_vectors

DotChoice = tuple[LinearLayout, ...]


class DotLayouts(Protocol):
    """The target's choice for a matrix product: layouts of a, b, the accumulator (and result), and scales if any."""

    def __call__(self, op: Op, options: LayoutOptions) -> DotChoice: ...


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """``lanes`` per warp, ``warps`` per block and ``blocks`` per program, powers of two; ``access_bits`` is the widest
    memory access of a thread; ``loads`` says in which layout some loads are to be made."""

    lanes: int
    warps: int
    dot_layouts: DotLayouts
    access_bits: int = 128
    blocks: int = 1
    loads: Mapping[Op, LinearLayout] = field(default_factory=dict)


_MEMORY = frozenset({"load", "store", "atomic_rmw", "atomic_cas", "desc_load", "desc_store"})
_SHAPE_ONLY = frozenset({"constant", "splat", "arange", "expand_dims", "broadcast", "permute"})
_OWN_LAYOUT = frozenset(
    {"reduce", "scan", "sort", "histogram", "print", "assert", "map"}
)  # take operands as they are, alike
_CONTROL = frozenset({"for", "while", "if"})
_SPREADS = frozenset({"expand_dims", "broadcast"})  # made again from the small operand, wherever that lies


def assign_layouts(module: Module, options: LayoutOptions) -> Module:
    """Rewrites every function of ``module``; see the head of this file."""
    table: dict[LinearLayout, str] = {}
    for function in module.functions.values():
        types = [*(v.type for v in function.args), *function.result_types]
        if any(isinstance(t, TensorType) for t in types):
            raise ValueError(f"@{function.name} has tensor parameters: inline it before assigning layouts")
        guesses = _Guess(function, options)
        guesses.run()
        _Rewrite(guesses, table).function(function)
    module.attrs["layouts"] = {name: layout_attrs(layout) for layout, name in table.items()}
    return module


def layout_attrs(layout: LinearLayout) -> dict[str, tuple[int, ...]]:
    """The layout as attributes of the module's text."""
    names = ("register", "lane", "warp", "block")
    return {"shape": layout.shape} | {name: getattr(layout, name) for name in names if getattr(layout, name)}


def layouts_of(module: Module) -> dict[str, LinearLayout]:
    """The layouts that ``module``'s tensor types name."""
    return {name: LinearLayout(**attrs) for name, attrs in module.attrs.get("layouts", {}).items()}


def name_layout(module: Module, layout: LinearLayout) -> str:
    """The name of ``layout`` in ``module``, given one when it is new."""
    attrs = layout_attrs(layout)
    table: dict[str, dict[str, tuple[int, ...]]] = module.attrs.setdefault("layouts", {})
    for name, known in table.items():
        if known == attrs:
            return name
    name = f"L{len(table)}"
    table[name] = attrs
    return name


def default_layout(shape: tuple[int, ...], options: LayoutOptions) -> LinearLayout:
    """Last axis fastest, one element a thread before any thread gets a second, then up to four neighbours."""
    return coalesced_layout(shape, tuple(reversed(range(len(shape)))), 4, options)


def coalesced_layout(
    shape: tuple[int, ...],
    order: Sequence[int],
    width: int,
    options: LayoutOptions,
    block: tuple[int, ...] | None = None,
) -> LinearLayout:
    """A blocked layout with up to ``width`` consecutive elements of axis ``order[0]`` a thread, fewer while threads are
    idle. ``block``: how the blocks of a cluster share the tile, if not in the usual way."""
    if block is not None:
        own = coalesced_layout(part_shape(shape, block), order, width, replace(options, blocks=1))
        return own.across(shape, block)
    spare = prod(padded(shape)) // (options.lanes * options.warps * options.blocks)
    per_thread = [1] * len(shape)
    per_thread[order[0]] = min(width, max(1, spare), padded(shape)[order[0]])
    return distribute(shape, order, per_thread, options.lanes, options.warps, options.blocks)


SQUARE = 64
"""Rows and columns that a block's part of a product keeps while its other axis is larger."""


def dot_choice(op: Op, options: LayoutOptions) -> DotChoice:
    """The target's layouts of a product. In a cluster the target is asked about the part that each block computes."""
    if options.blocks == 1:
        return options.dot_layouts(op, options)
    chosen = options.dot_layouts(dot_part(op, options.blocks), replace(options, blocks=1))
    blocks = _dot_blocks(op, options.blocks)
    a, b, c = (x.across(_shape(v), d) for x, v, d in zip(chosen, op.operands, blocks, strict=False))
    return a, b, c


def dot_part(op: Op, blocks: int) -> Op:
    """The product that each block of a cluster computes: of a part of the result's rows, or columns, with the operands
    that it needs for that."""
    if blocks == 1:
        return op
    parts = []
    for value, block in zip(op.operands, _dot_blocks(op, blocks), strict=False):
        assert isinstance(value.type, TensorType)
        parts.append(TensorType(part_shape(value.type.shape, block), value.type.element))
    return Op(op.kind, [Value(t, Block(), 0) for t in parts], [parts[2]], op.attrs, (), op.loc)


def _dot_blocks(op: Op, blocks: int) -> list[tuple[int, ...]]:
    """For a, b and the accumulator, the vectors of the bits of a block's number."""
    shapes = [_shape(v) for v in op.operands[:3]]
    m, n = len(shapes[2]) - 2, len(shapes[2]) - 1
    left = [list(map(list, bit_positions(shape))) for shape in shapes]
    found: list[list[int]] = [[], [], []]
    for axis in _dot_axes(padded(shapes[2]), blocks, m):
        for vectors, bits, absent in zip(found, left, (n, m, -1), strict=True):
            vectors.append(0 if axis in (-1, absent) else 1 << bits[axis].pop())
    return [tuple(reversed(vectors)) for vectors in found]  # parts are numbered in order, as of other tiles


def _dot_axes(acc: tuple[int, ...], blocks: int, m: int) -> list[int]:
    """The axis of the result that each bit of a block's number takes; -1: blocks compute the same. Batches first; rows
    before columns, both while large."""
    left, axes = list(acc), []
    n = m + 1
    for _ in range(blocks.bit_length() - 1):
        wishes = [(0, 1)] if m else []
        wishes += [(m, SQUARE), (n, SQUARE), (m, 16), (n, 8)]
        axis = next((axis for axis, least in wishes if left[axis] > least), -1)
        if axis >= 0:
            left[axis] //= 2
        axes.append(axis)
    return axes


def is_cheap(op: Op) -> bool:
    """Whether an op costs so little that making its value again beats moving it between threads."""
    if op.kind in _SHAPE_ONLY or (op.kind == "reshape" and _reshapes_in_place(op)):
        return True
    return OPS[op.kind].elementwise and is_pure(op) and op.kind not in ("extern", "inline_asm", "libm")


def _shape(value: Value) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def _reshapes_in_place(op: Op) -> bool:
    """Whether all sizes are powers of two, so that element numbers stay."""
    shapes = _shape(op.operands[0]), _shape(op.results[0])
    return all(s and padded(s) == s for s in shapes)


def _carried(op: Op) -> tuple[list[Value], list[Value]]:
    """The initial values and block arguments that a loop carries; both empty for an if."""
    if op.kind == "for":
        return op.operands[3:], op.regions[0].args[1:]
    return (op.operands, op.regions[0].args) if op.kind == "while" else ([], [])


def joined(layout: LinearLayout) -> LinearLayout:
    """The layout of join's result: the new last axis lies in the lowest register bit."""
    lane, warp, block = (tuple(v << 1 for v in getattr(layout, n)) for n in ("lane", "warp", "block"))
    return LinearLayout((*layout.shape, 2), (1, *(v << 1 for v in layout.register)), lane, warp, block)


class _Guess:
    """The layout each value's producer wants."""

    def __init__(self, function: Function, options: LayoutOptions) -> None:
        self.function = function
        self.options = options
        self.facts = axis_analysis.analyse(function)
        self.layouts: dict[Value, LinearLayout] = {}
        self.free: set[Value] = set()  # made from constants and scalars alone, at little cost
        self.spread: set[Value] = set()  # expanded or broadcast from something that is not free
        self.dots: dict[Op, DotChoice] = {}
        self.anchors: dict[Op, LinearLayout] = {}
        self.pointer_uses: dict[Value, Op] = {}
        self.users: dict[Value, list[Op]] = {}  # filled where programs are clusters
        self.changed = False

    def run(self) -> None:
        if self.options.blocks > 1:
            for op in self.function.body.walk():
                for value in op.operands:
                    self.users.setdefault(value, []).append(op)
        for op in self.function.body.walk():
            if op.kind in _MEMORY:
                shaped = next((v for v in (*op.operands, *op.results) if _is_tensor(v)), None)
                if shaped is not None:
                    self.anchors[op] = self.anchor(op, shaped)
                    self.pointer_uses.setdefault(op.operands[0], op)
        for _ in range(8):
            self.changed = False
            self.block(self.function.body)
            if not self.changed:
                return

    def anchor(self, op: Op, shaped: Value) -> LinearLayout:
        """The layout in which neighbouring threads touch neighbouring addresses, each with the widest aligned
        access."""
        if op in self.options.loads:
            return self.options.loads[op]
        pointer, shape = op.operands[0], _shape(shaped)
        element = element_of(shaped.type)
        bits = max(8, element.pointee.bits if isinstance(element, PointerType) else element.bits)
        widest = self.options.access_bits // bits
        axes = range(len(shape))
        block = None
        if self.options.blocks > 1:
            loads = op.kind in ("load", "desc_load")
            block = self.needed(op.results[0]) if loads else self.made(op.operands[1])
        if not _is_tensor(pointer):
            return coalesced_layout(shape, tuple(reversed(axes)), widest, self.options, block)
        facts = self.facts[pointer]
        order = sorted(axes, key=lambda d: (facts.contiguity[d] if shape[d] > 1 else 0, d), reverse=True)
        aligned = max(1, facts.divisibility[order[0]] * 8 // bits)
        width = max(1, min(facts.contiguity[order[0]], aligned, widest))
        return coalesced_layout(shape, order, 1 << width.bit_length() - 1, self.options, block)

    def needed(self, value: Value) -> tuple[int, ...] | None:
        """How the blocks of a cluster must share ``value`` so that each has what it needs of it for the product that is
        its only use; None where there is no such product."""
        users = self.users.get(value, [])
        if len(users) != 1:
            return None
        (op,) = users
        if op.kind == "dot":
            place = op.operands.index(value)
            return _dot_blocks(op, self.options.blocks)[place]
        if op.kind == "permute":
            block = self.needed(op.results[0])
            return block and permuted_vectors(block, _shape(op.results[0]), op.attrs["order"])
        if OPS[op.kind].elementwise and len(op.results) == 1 and _shape(op.results[0]) == _shape(value):
            return self.needed(op.results[0])
        return None

    def made(self, value: Value) -> tuple[int, ...] | None:
        """How the blocks of a cluster share ``value`` when it is a product, or made of one element by element."""
        op = value.op
        if op is None or not _is_tensor(value):
            return None
        if op.kind == "dot":
            return _dot_blocks(op, self.options.blocks)[2]
        if op.kind == "for":
            return self.made(op.regions[0].terminator.operands[value.index])
        if OPS[op.kind].elementwise:
            same = (self.made(v) for v in op.operands if _shape(v) == _shape(value))
            return next((block for block in same if block is not None), None)
        return None

    def set(self, value: Value, layout: LinearLayout | None) -> None:
        if layout is not None and _is_tensor(value) and self.layouts.get(value) != layout:
            self.layouts[value] = layout
            self.changed = True

    def layout(self, value: Value) -> LinearLayout:
        return self.layouts.get(value) or default_layout(_shape(value), self.options)

    def block(self, block: Block) -> None:
        for op in block.ops:
            if op.kind in _CONTROL:
                self.control(op)
            else:
                self.op(op)

    def op(self, op: Op) -> None:
        for region in op.regions:
            self.block(region)
        if not any(_is_tensor(r) for r in op.results):
            return
        tensors = [v for v in op.operands if _is_tensor(v)]
        if is_cheap(op) and all(v in self.free for v in tensors):
            self.free.update(op.results)
            return
        if op.kind in _SPREADS:
            self.spread.update(op.results)
            return
        for result in op.results:
            self.set(result, self.anchors[op] if op in self.anchors else self.produced(op, result, tensors))

    def produced(self, op: Op, result: Value, tensors: list[Value]) -> LinearLayout | None:
        """The layout in which ``op`` makes its result; None when any would do."""
        known = self.layouts.get(tensors[0]) if tensors else None
        if op.kind in ("dot", "dot_scaled"):
            if op not in self.dots:
                self.dots[op] = dot_choice(op, self.options)
            return self.dots[op][2]
        if op.kind == "reduce":
            return self.layout(tensors[0]).without_axis(op.attrs["axis"])
        if op.kind in ("scan", "sort", "map"):
            return self.layout(tensors[0])
        if op.kind == "split":
            return self.layout(tensors[0]).without_axis(len(_shape(tensors[0])) - 1)
        if op.kind == "join":
            return joined(self.layout(tensors[0]))
        if op.kind == "gather":
            return self.layouts.get(op.operands[1])
        if op.kind == "permute":
            return known and known.permuted(op.attrs["order"])
        if op.kind == "expand_dims":
            return known and known.with_axis(op.attrs["axis"])
        if op.kind == "reshape" and _reshapes_in_place(op):
            return known and known.reshaped(_shape(result))
        return next((self.layouts[v] for v in tensors if v in self.layouts and _shape(v) == _shape(result)), None)

    def control(self, op: Op) -> None:
        inits, args = _carried(op)
        for arg, init in zip(args, inits, strict=True):
            user = self.pointer_uses.get(arg)
            self.set(arg, self.layouts.get(arg) or (self.anchors[user] if user else self.layouts.get(init)))
        for region in op.regions:
            self.block(region)
            end = region.terminator
            yielded = end.operands[1:] if end.kind == "condition" else end.operands
            for value, target in zip(
                yielded, op.results if op.kind == "if" or end.kind == "condition" else args, strict=True
            ):
                if target not in self.layouts:
                    self.set(target, self.layouts.get(value))
        if op.kind != "if":
            sources = args if op.kind == "for" else op.results
            targets = op.results if op.kind == "for" else op.regions[1].args
            for source, target in zip(sources, targets, strict=True):
                self.set(target, self.layouts.get(source))


class _Rewrite:
    """Rebuilds a function in its layouts."""

    def __init__(self, guesses: _Guess, table: dict[LinearLayout, str]) -> None:
        self.guesses = guesses
        self.table = table
        self.scopes: list[dict[tuple[Value, LinearLayout], Value]] = []
        self.home: dict[Value, LinearLayout] = {}
        self.level: dict[Value, int] = {}
        self.outs: list[list[Op]] = []
        self.loc = guesses.function.loc

    def function(self, function: Function) -> None:
        function.body.ops = self.block(function.body, [None] * len(function.args), None)

    def typed(self, type: Type, layout: LinearLayout) -> TensorType:
        assert isinstance(type, TensorType)
        return TensorType(type.shape, type.element, self.table.setdefault(layout, f"L{len(self.table)}"))

    def define(self, value: Value, layout: LinearLayout | None) -> None:
        """``value``, made in place, has ``layout`` from now on."""
        if layout is not None:
            value.type = self.typed(value.type, layout)
            self.home[value] = layout
            self.level[value] = len(self.scopes) - 1
            self.scopes[-1][value, layout] = value

    def block(
        self, block: Block, args: Sequence[LinearLayout | None], yields: Sequence[LinearLayout | None] | None
    ) -> list[Op]:
        """The block's ops rebuilt; its arguments get ``args``, and with ``yields`` its last operands are brought to
        those."""
        self.outs.append([])
        self.scopes.append({})
        for arg, layout in zip(block.args, args, strict=True):
            self.define(arg, layout)
        body, end = (block.ops, None) if yields is None else (block.ops[:-1], block.ops[-1])
        for op in body:
            self.loc = op.loc
            self.op(op)
        if end is not None and yields is not None:
            self.loc = end.loc
            first = len(end.operands) - len(yields)
            end.operands[first:] = self.wanted(end.operands[first:], yields)
            self.outs[-1].append(end)
        self.scopes.pop()
        return self.outs.pop()

    def wanted(self, values: Sequence[Value], layouts: Sequence[LinearLayout | None]) -> list[Value]:
        return [v if layout is None else self.want(v, layout) for v, layout in zip(values, layouts, strict=True)]

    def want(self, value: Value, layout: LinearLayout) -> Value:
        """``value`` in ``layout``: as it is there, made again, or converted."""
        for scope in reversed(self.scopes):
            found = scope.get((value, layout))
            if found is not None:
                return found
        op = value.op
        if op is not None and (value in self.guesses.free or value in self.guesses.spread):
            layouts = [operand_layout(op, v, layout) if _is_tensor(v) else None for v in op.operands]
            made = Op(
                op.kind, self.wanted(op.operands, layouts), [self.typed(value.type, layout)], dict(op.attrs), (), op.loc
            )
            level = len(self.scopes) - 1
        else:
            made = Op("convert_layout", [value], [self.typed(value.type, layout)], {}, (), self.loc)
            level = self.level[value]  # outside of loops that the value comes into from outside
        self.outs[level].append(made)
        made.results[0].name = value.name
        self.scopes[level][value, layout] = made.results[0]
        return made.results[0]

    def op(self, op: Op) -> None:
        if op.results and (op.results[0] in self.guesses.free or op.results[0] in self.guesses.spread):
            return  # made where it is wanted
        if op.kind in _CONTROL:
            self.control(op)
            return
        for region in op.regions:
            region.ops = self.block(region, [None] * len(region.args), None)
        op.operands = self.wanted(op.operands, self.operand_layouts(op))
        self.outs[-1].append(op)
        for result in op.results:
            if _is_tensor(result):
                self.define(result, self.result_layout(op, result))

    def present(self, value: Value) -> LinearLayout:
        """The layout ``value`` has, or the one it will be made in when it is free."""
        return self.home.get(value) or self.guesses.layout(value)

    def operand_layouts(self, op: Op) -> list[LinearLayout | None]:
        """The layout each operand is needed in; None for scalars."""
        guesses, kind = self.guesses, op.kind
        if kind in ("dot", "dot_scaled"):
            return list(guesses.dots[op])
        if kind in _OWN_LAYOUT:
            lead = next((v for v in op.operands if v in self.home), op.operands[0] if op.operands else None)
            return [
                None
                if not _is_tensor(v)
                else self.present(lead if lead is not None and _shape(lead) == _shape(v) else v)
                for v in op.operands
            ]
        found: list[LinearLayout | None] = []
        for value in op.operands:
            if not _is_tensor(value):
                found.append(None)
            elif op in guesses.anchors:
                found.append(guesses.anchors[op])
            elif kind in ("gather", "cat", "flip") or (kind == "reshape" and not _reshapes_in_place(op)):
                found.append(self.present(value))
            elif kind == "split":
                found.append(joined(guesses.layout(op.results[0])))
            else:
                found.append(operand_layout(op, value, guesses.layout(op.results[0])))
        return found

    def result_layout(self, op: Op, result: Value) -> LinearLayout:
        """As ``_Guess.produced`` said, except where the operand came to lie otherwise."""
        if op.kind in ("reduce", "scan", "sort", "map"):
            lead = self.home_of(op.operands[0])
            return lead.without_axis(op.attrs["axis"]) if op.kind == "reduce" else lead
        return self.guesses.layout(result)

    def home_of(self, value: Value) -> LinearLayout:
        """The layout that the (rebuilt) value's type names."""
        assert isinstance(value.type, TensorType)
        return next(layout for layout, name in self.table.items() if name == value.type.layout)

    def control(self, op: Op) -> None:
        def chosen(values: Sequence[Value]) -> list[LinearLayout | None]:
            return [self.guesses.layout(v) if _is_tensor(v) else None for v in values]

        inits, args = _carried(op)
        carried = chosen(args)
        results = carried if op.kind == "for" else chosen(op.results)
        if inits:
            op.operands[-len(inits) :] = self.wanted(inits, carried)
        for number, region in enumerate(op.regions):
            before = op.kind == "while" and number == 0
            takes = {"for": [None, *carried], "while": carried if before else results, "if": []}[op.kind]
            region.ops = self.block(region, takes, results if before or op.kind == "if" else carried)
        self.outs[-1].append(op)
        for result, layout in zip(op.results, results, strict=True):
            self.define(result, layout)


def operand_layout(op: Op, operand: Value, layout: LinearLayout) -> LinearLayout:
    """The layout in which ``op``, elementwise or a change of shape, must get ``operand`` so that its result has
    ``layout``."""
    shape = _shape(operand)
    if op.kind == "expand_dims":
        return layout.without_axis(op.attrs["axis"])
    if op.kind == "broadcast":
        for axis, size in enumerate(shape):
            if size == 1 and layout.shape[axis] != 1:
                layout = layout.narrowed(axis)
        return layout
    if op.kind == "permute":
        order = op.attrs["order"]
        return layout.permuted([order.index(i) for i in range(len(order))])
    if op.kind == "reshape":
        return layout.reshaped(shape)
    if op.kind == "join":
        return layout.without_axis(len(layout.shape) - 1)
    return layout
