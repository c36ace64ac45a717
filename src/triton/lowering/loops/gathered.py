"""Loop-carried tiles that are only added up after the loop: a vector of partial results is carried, not the tile.

    total = zeros(1024)                       acc = one vector of zeros
    for ...: total += f(i)          ->        for ...: for j in 0 .. 1024 step lanes: acc += f(i)[j ..]
    s = sum(total)                            s = sum of acc's lanes

The same partial results as a reduction of all the elements in one loop would have. Sums of 16 and 8 bits keep their
tile: they would be rounded differently with fewer partial results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.core import Op, Value
from ...ir.types import ElementType, element_of, shape_of
from ..elementwise import emit_constant
from ..writer import Cell
from . import regions
from .emit import FunctionEmitter
from .graph import Graph
from .index import Dim
from .nest import choose, count, count_between, find_bounds, survey

_START = {"add": 0, "or": 0, "xor": 0, "mul": 1}
"""What a tile starts from; the others (max, min, and) may start from anything, as repeating it changes nothing."""


@dataclass(slots=True)
class Gathered:
    """The tile carried at ``index``: ``added`` goes into ``acc`` in every trip, by ``combine`` (of one op)."""

    index: int
    added: Value
    reduction: Op
    lanes: int
    acc: Cell


def find(f: FunctionEmitter, loop: Op) -> dict[int, Gathered]:
    """The carried tiles of ``loop`` that need not exist."""
    found: dict[int, Gathered] = {}
    for i, init in enumerate(loop.operands[3:]):
        match = _match(f.graph, loop, i, init)
        if match is None:
            continue
        added, reduction = match
        shape = shape_of(init.type)
        seen = survey(f.e, [added], shape)
        lanes = choose(f.e, shape, seen, wide=2 if seen.heavy else 4).lanes
        if lanes < 2 or shape[0] % lanes:
            continue
        assert init.op is not None
        start = emit_constant(element_of(init.type), init.op.attrs["value"], lanes)
        found[i] = Gathered(i, added, reduction, lanes, start)
    return found


def _match(graph: Graph, loop: Op, i: int, init: Value) -> tuple[Value, Op] | None:
    """What is added in each trip, and the reduction after the loop."""
    shape, (body,) = shape_of(init.type), loop.regions
    arg, value, result = body.args[i + 1], body.terminator.operands[i], loop.results[i]
    step = value.op
    if len(shape) != 1 or not _exact(element_of(init.type)) or step is None or graph.block[step] is not body:
        return None
    if graph.users.get(arg) != [step] or step.operands.count(arg) != 1 or graph.users.get(value) != [body.terminator]:
        return None
    users = graph.users.get(result, [])
    if len(users) != 1 or users[0].kind != "reduce" or users[0].operands != [result]:
        return None
    if body.terminator.operands.count(value) != 1 or init.op is None or init.op.kind != "constant":
        return None
    combine = regions.single_op(users[0].regions[0])
    if combine is None or combine.kind != step.kind or combine.attrs != step.attrs:
        return None
    if combine.kind in _START and init.op.attrs["value"] != _START[combine.kind]:
        return None
    first, second = step.operands
    return second if first is arg else first, users[0]


def _exact(element: ElementType) -> bool:
    return not element.is_float or element.bits >= 32


def advance(f: FunctionEmitter, g: Gathered, acc: Cell, idle: Value | None) -> Cell:
    """``acc`` after one trip. Where ``idle`` does not hold nothing is added."""
    e, lanes, shape = f.e, g.lanes, shape_of(g.added.type)
    n = shape[0]
    e.reset()
    found = survey(e, [g.added], shape)
    if idle is not None:
        found.stop = idle, (0,)
    saved = e.lanes, e.active, e.count
    e.lanes, e.active, e.count = lanes, None, lanes
    limit = find_bounds(e, found, n, 0, lanes)

    def body(d: Dim, values: list[str]) -> Sequence[str]:
        cell, _ = e.vector(g.added, (d._replace(step=1),))
        merged = regions.run(f, g.reduction.regions[0], [Cell(values[0], acc.element, lanes), cell], lanes)
        return [merged[0].text]

    def unmasked(d: Dim, values: list[str]) -> Sequence[str]:
        assert limit is not None
        limit.assume((d,), d._replace(step=1))
        return body(d, values)

    carried = [(acc.type, acc.text)]
    if limit is None:
        (text,) = count(e, n, body, carried, step=lanes)
    else:
        split, end = limit.split((), n, lanes)
        (text,) = count_between(e, "0", split, lanes, unmasked, carried)
        (text,) = count_between(e, split, end, lanes, body, [(acc.type, text)])
    e.lanes, e.active, e.count = saved
    e.reset()
    return Cell(text, acc.element, lanes)
