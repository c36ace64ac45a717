"""Control flow: conditions and bounds are scalars, the same in every thread, so all threads of a program take the same
way."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.core import Block, Op, Value
from ...ir.types import DescriptorType, ScalarType
from ..writer import Cell, Point
from .context import Context, element
from .words import merge, pack, unpack

Packed = Sequence[Sequence[Cell]]


def _packed(c: Context, values: Sequence[Value]) -> list[list[Cell]]:
    """The values' cells as they go from block to block."""
    return [pack(c.w, c.tile(value)) for value in values]


class _Carried:
    """Phis for the packed cells of carried values: opened at the head of a loop, closed when the back edge is known."""

    def __init__(self, c: Context, values: Sequence[Value], inits: Sequence[Value], cells: Packed, before: str) -> None:
        self.c = c
        self.point: Point = c.w.point()
        self.first = [cell for group in cells for cell in group]
        self.before = before
        self.names = [c.w.reserve() for _ in self.first]
        fresh = iter(self.names)
        for value, init, group in zip(values, inits, cells, strict=True):
            c.set(value, unpack(c.w, [Cell(next(fresh), cell.element) for cell in group], c.tile(init)))

    def close(self, cells: Packed, latch: str) -> None:
        following = [cell for group in cells for cell in group]
        for name, first, then in zip(self.names, self.first, following, strict=True):
            sources = f"[ {first.text}, %{self.before} ], [ {then.text}, %{latch} ]"
            self.point.lines.append(f"  {name} = phi {first.type} {sources}")


def lower_for(c: Context, op: Op) -> None:
    """Counts without overflow: another trip follows only while the distance to the end exceeds the step."""
    w = c.w
    low, high, step = (c.scalar(v) for v in op.operands[:3])
    inits = _packed(c, op.operands[3:])
    (body,) = op.regions
    counter, *args = body.args
    type = low.type
    kind = low.element
    assert isinstance(kind, ScalarType)
    signed = "s" if kind.is_signed else "u"
    _remember(c, op)
    upward = w.emit(f"icmp {signed}lt {type} {low.text}, {high.text}")
    known = step.value
    if known is None or known < 0:
        positive = (
            w.emit(f"icmp sgt {type} {step.text}, 0") if kind.is_signed else w.emit(f"icmp ne {type} {step.text}, 0")
        )
        downward = w.emit(f"icmp sgt {type} {low.text}, {high.text}")
        negative = w.emit(f"icmp slt {type} {step.text}, 0") if kind.is_signed else "false"
        up, down = w.emit(f"and i1 {upward}, {positive}"), w.emit(f"and i1 {downward}, {negative}")
        some = w.emit(f"or i1 {up}, {down}")
        distance_step = _absolute(c, step, negative)
    else:
        some, negative, distance_step = upward, "false", step.text
    if known == 0:
        some = "false"
    before = w.block
    head, done = w.new_label("for"), w.new_label("for.end")
    w.cond_br(some, head, done)
    w.label(head)
    c.enter_region()
    skipped = c.memory.snapshot()
    c.memory.enter_loop(op)
    carried = _Carried(c, [counter, *args], [op.operands[0], *op.operands[3:]], [[low], *inits], before)
    for inner in body.ops[:-1]:
        c.lower(inner)
    now = c.scalar(counter)
    up_left = w.emit(f"sub {type} {high.text}, {now.text}")
    left = up_left
    if negative != "false":
        left = w.emit(f"select i1 {negative}, {type} {w.emit(f'sub {type} {now.text}, {high.text}')}, {type} {up_left}")
    more = w.emit(f"icmp ugt {type} {left}, {distance_step}")
    following = Cell(w.emit(f"add {type} {now.text}, {step.text}"), kind)
    yielded = _packed(c, body.terminator.operands)
    latch = w.block
    w.cond_br(more, head, done)
    carried.close([[following], *yielded], latch)
    c.enter_region()
    c.memory.merge(skipped)
    _join(c, op.results, op.operands[3:], (inits, before), (yielded, latch), done)


def _absolute(c: Context, step: Cell, negative: str) -> str:
    if negative == "false":
        return step.text
    minus = c.w.emit(f"sub {step.type} 0, {step.text}")
    return c.w.emit(f"select i1 {negative}, {step.type} {minus}, {step.typed}")


def _remember(c: Context, op: Op) -> None:
    """Where a loop-carried pointer comes from, for the memory ordering."""
    inits = op.operands[3:] if op.kind == "for" else op.operands
    args = op.regions[0].args[1:] if op.kind == "for" else op.regions[0].args
    for arg, init in zip(args, inits, strict=True):
        c.carried[arg] = init


def _join(
    c: Context,
    results: Sequence[Value],
    like: Sequence[Value],
    first: tuple[Packed, str],
    second: tuple[Packed, str],
    label: str,
) -> None:
    """Starts block ``label``, entered from two blocks with packed cells as those of ``like``, with phis for
    ``results``."""
    c.w.label(label)
    joined = [merge(c.w, ((a, first[1]), (b, second[1]))) for a, b in zip(first[0], second[0], strict=True)]
    for result, model, words in zip(results, like, joined, strict=True):
        c.set(result, unpack(c.w, words, c.tile(model)))


def lower_while(c: Context, op: Op) -> None:
    w = c.w
    test, body = op.regions
    inits = _packed(c, op.operands)
    _remember(c, op)
    before = w.block
    head, inside, done = w.new_label("while"), w.new_label("while.body"), w.new_label("while.end")
    w.br(head)
    w.label(head)
    c.enter_region()
    skipped = c.memory.snapshot()
    c.memory.enter_loop(op)
    carried = _Carried(c, test.args, op.operands, inits, before)
    for inner in test.ops[:-1]:
        c.lower(inner)
    condition, *values = test.terminator.operands
    passed = [c.tile(v) for v in values]
    w.cond_br(c.scalar(condition).text, inside, done)
    w.label(inside)
    c.enter_region()
    for arg, cells in zip(body.args, passed, strict=True):
        c.set(arg, cells)
    for inner in body.ops[:-1]:
        c.lower(inner)
    yielded = _packed(c, body.terminator.operands)
    latch = w.block
    w.br(head)
    carried.close(yielded, latch)
    w.label(done)
    c.enter_region()
    c.memory.merge(skipped)
    for result, cells in zip(op.results, passed, strict=True):
        c.set(result, cells)


def lower_if(c: Context, op: Op) -> None:
    w = c.w
    then, other, done = w.new_label("then"), w.new_label("else"), w.new_label("endif")
    w.cond_br(c.scalar(op.operands[0]).text, then, other)
    ends: list[tuple[Packed, str]] = []
    before, after = c.memory.snapshot(), []
    for label, region in zip((then, other), op.regions, strict=True):
        w.label(label)
        c.enter_region()
        c.memory.restore(before)
        before = c.memory.snapshot()
        _block(c, region)
        after.append(c.memory.snapshot())
        ends.append((_packed(c, region.terminator.operands), w.block))
        w.br(done)
    c.enter_region()
    c.memory.restore(after[0])
    c.memory.merge(after[1])
    _join(c, op.results, op.regions[0].terminator.operands, ends[0], ends[1], done)


def _block(c: Context, block: Block) -> None:
    for op in block.ops[:-1]:
        c.lower(op)


def call(c: Context, op: Op) -> None:
    """Only functions of scalars remain to be called: those with tensors have been inlined."""
    callee = c.module.functions[op.attrs["callee"]]
    args = [c.scalar(v).typed for v in op.operands]
    types = [element(r) for r in op.results]
    if not types:
        c.w.line(f"call void @{callee.name}({', '.join(args)})")
        return
    texts = [Cell("", t).type for t in types]
    result = texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
    value = c.w.emit(f"call {result} @{callee.name}({', '.join(args)})")
    for i, r in enumerate(op.results):
        text = value if len(texts) == 1 else c.w.emit(f"extractvalue {result} {value}, {i}")
        c.set(r, [Cell(text, types[i])])


def refuse_descriptor_results(op: Op) -> None:
    """Descriptors cannot be carried: they are known by where they are made."""
    if any(isinstance(r.type, DescriptorType) for r in op.results):
        raise ValueError(f"a tensor descriptor cannot be carried by {op.kind}; make it inside")
