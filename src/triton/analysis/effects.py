"""What ops do besides giving results, their regions included: one walk over the function."""

from __future__ import annotations

from typing import NamedTuple

from ..ir.core import Block, Function, Op
from ..ir.ops import OPS

_WRITERS = frozenset({"store", "atomic_rmw", "atomic_cas", "atomic_poll", "desc_store", "call", "barrier"})
_STOPPERS = frozenset({"assert", "call", "while", "atomic_poll"})
_FOREIGN = frozenset({"extern", "inline_asm"})
_READERS = frozenset({"load", "desc_load"})


class Effects(NamedTuple):
    """Sets of ops. An op with regions is in a set when any op inside is.

    ``writes``  may change memory, or order this program's accesses with another's (barrier, atomics). ``assume``,
    ``assert`` and
    ``print`` have the effect ``write`` in the op table so that they stay; memory they leave alone.
    ``stops``   may keep the ops after it from running: assertions, calls, loops without a known end.
    """

    writes: set[Op]
    stops: set[Op]


def analyse(function: Function) -> Effects:
    """The effects of every op of the function."""
    effects = Effects(set(), set())
    _block(function.body, effects)
    return effects


def is_pure(op: Op) -> bool:
    """No effect, apart from what its regions do: equal ops give equal results, and an unused one may go."""
    info = OPS[op.kind]
    if info.effects:
        return op.kind in _FOREIGN and bool(op.attrs.get("pure", True))
    return not info.terminator


def reads_memory(op: Op) -> bool:
    """A load that may be shared with an equal one, or go when unused: not a volatile one."""
    return op.kind in _READERS and not op.attrs.get("volatile")


def _block(block: Block, effects: Effects) -> tuple[bool, bool]:
    any_writes = any_stops = False
    for op in block.ops:
        kind = op.kind
        writes = kind in _WRITERS or (kind in _FOREIGN and not op.attrs.get("pure", True))
        stops = kind in _STOPPERS or (writes and kind in _FOREIGN)
        for region in op.regions:
            inner_writes, inner_stops = _block(region, effects)
            writes, stops = writes or inner_writes, stops or inner_stops
        if writes:
            effects.writes.add(op)
            any_writes = True
        if stops:
            effects.stops.add(op)
            any_stops = True
    return any_writes, any_stops
