"""Products whose only use is a store: results go from registers to memory, through what is computed from them.

    r = dot a, b, c          s = address and mask            each tile of C, once summed up:
    s = ...            =>    r = dot a, b, c                    store s, cast r
    store s, cast r          store s, cast r

``sink`` brings such a product to its store, so that all that the store needs is there; ``find`` says which products
may write to memory by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.core import Block, Function, Op, Value
from ...ir.ops import OPS, has_effect
from ...ir.types import TensorType, shape_of
from .plan import LOADS

if TYPE_CHECKING:
    from .emit import FunctionEmitter

_LONGEST = 6
"""Simple instructions for each element between product and store: they are written once for each register of C."""


def sink(function: Function) -> None:
    """Moves each product that only one store of its block uses, and what lies between them, to that store."""
    users: dict[Value, list[Op]] = {}
    for op in function.body.walk():
        for operand in op.operands:
            users.setdefault(operand, []).append(op)
    for block in [function.body, *(region for op in function.body.walk() for region in op.regions)]:
        for op in [op for op in block.ops if op.kind == "dot"]:
            _sink(block, op, users)


def _sink(block: Block, dot: Op, users: dict[Value, list[Op]]) -> None:
    chain: set[Op] = {dot}
    stores: set[Op] = set()
    work = [dot]
    while work:
        for result in work.pop().results:
            for user in users.get(result, ()):
                if user.kind == "store":
                    stores.add(user)
                elif OPS[user.kind].elementwise and isinstance(user.results[0].type, TensorType):
                    work += [user] if user not in chain else []
                    chain.add(user)
                else:
                    return
    if len(stores) != 1 or not all(op in block.ops for op in (*chain, *stores)):
        return
    (store,) = stores
    rest = [op for op in block.ops if op not in chain]
    at = rest.index(store)
    passed = block.ops[block.ops.index(dot) : block.ops.index(store)]
    if any(op.regions or has_effect(op, "write") for op in passed):
        return  # what the product reads might have to be kept
    block.ops = rest[:at] + [op for op in block.ops if op in chain] + rest[at:]


def find(f: FunctionEmitter, dot: Op) -> Op | None:
    """The store that writes the product's results, if the product itself may do so."""
    result, plan, graph = dot.results[0], f.plan, f.graph
    roots = plan.roots(plan.roots_of(result))
    store = roots[0] if len(roots) == 1 and roots[0].kind == "store" else None
    if store is None or graph.block[store] is not graph.block[dot] or f.trailing.get(store):
        return None
    between = graph.ops[graph.end[dot] : graph.start[store]]
    if store in plan.by_product or not all(plan.is_lazy(op) for op in between):
        return None
    pointer, value = store.operands[:2]
    shape = shape_of(result.type)
    stride = graph.stride(pointer, len(shape) - 1) if shape_of(pointer.type) == shape else None
    if stride is None or stride.step != 1 or stride.group:
        return None
    if plan.cost(value) > _LONGEST or not plan.reaches_same_index_through(result, store, 1):
        return None
    return None if _reads_there(f, [*dot.operands, *store.operands[1:]], store) else store


def _reads_there(f: FunctionEmitter, values: list[Value], store: Op) -> bool:
    """Whether computing ``values`` may read what the store writes: that must not change while it is needed."""
    base = f.graph.base(store.operands[0])
    seen: set[Value] = set()
    work = list(values)
    while work:
        value = work.pop()
        if value in seen or value in f.plan.held:
            continue
        seen.add(value)
        record = f.graph.inductions.get(value)
        if record is not None:
            work.append(record.init)
        op = value.op
        if op is None or not isinstance(value.type, TensorType):
            continue
        if op.kind in LOADS and f.plan.conflict(f.graph.base(op.operands[0]), base):
            return True
        work += op.operands
    return False
