"""How a tile changes layout within each warp by shuffles: which register a lane sends, and which lane it listens to.

Let A be the span of the source's registers, B that of the target's. In a step every lane receives one element. It knows
the element's place from its own number: ``u(lane)``, a linear map into a space U, plus what the step and the warp add.
A lane can send one register only, so two lanes may listen to one lane only if they receive the same element:

    U meets A in zero only                     (elements that differ by a vector of A lie in one lane)
    lane vector j of the target ^ u_j  in  B   (so that the steps, which run through B, bring a lane all its elements)

U is put together from the target's lane vectors where these are independent of A + B, and from sums a ^ b where a lane
of the target is a register vector a of the source, b being a register vector of the target that is independent of A.
(The placement in shared memory is found the same way.) Where A has more dimensions than B there are too few b: B is
extended by vectors of A, and there are more steps.

Which register is sent depends on the step, the lane and the warp, in a linear way: a ``Choice``. So does which of the
elements received belongs in which register of the target. Where both layouts agree on a lane's bit, U is chosen so that
the lane listened to has the same bit: a transposition then moves elements between lane and lane ^ constant only, and in
one step nowhere.

    register [1] lane [2, 4]  ->  register [2] lane [1, 4]         register bit 0 and lane bit 0 trade places

    u = [1 ^ 2, 4]: in steps 0 and 1 lanes send register (lane & 1) ^ step and listen to lane ^ step;
    register r is what step (lane & 1) ^ r brought
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .linear import LinearLayout, independent, rank_of, solve
from .shared import BANK_BYTES, SharedPlan

BARRIER = 8
"""What waiting for the block's other warps counts for: as many shuffles."""
SELECTS = 4
"""So many selects (or steps of putting words together) count as one shuffle."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Registers of which each thread takes its own: result i is register ``wanted[i]``, with ``changes[k]`` added (XOR)
    in threads where bit k of the sum of the ``lane`` and ``outer`` vectors of their set bits is 1."""

    wanted: tuple[int, ...]
    changes: tuple[int, ...]
    lane: tuple[int, ...]
    outer: tuple[int, ...]

    def needed(self) -> list[list[int]]:
        """The registers that are needed before each of the changes, and after the last."""
        stages = [sorted(set(self.wanted))]
        for change in reversed(self.changes):
            stages.append(sorted({r ^ c for r in stages[-1] for c in (0, change)}))
        return stages[::-1]

    def selects(self) -> int:
        return sum(map(len, self.needed()[1:])) if self.changes else 0


@dataclass(frozen=True, slots=True)
class ShufflePlan:
    """In step s each lane sends its register of ``send``'s result s, and receives that of the lane whose number is
    ``offsets[s]`` plus (XOR) the sum of the ``lane`` and ``outer`` vectors of its set bits. ``receive`` chooses among
    steps."""

    send: Choice
    offsets: tuple[int, ...]
    lane: tuple[int, ...]
    outer: tuple[int, ...]
    receive: Choice

    @property
    def exchanges(self) -> bool:
        """Lanes receive from lane ^ offset."""
        return not any(self.outer) and all(v == 1 << i for i, v in enumerate(self.lane))

    def words(self, element_bits: int) -> list[tuple[int, list[int]]]:
        """The steps that go together: an offset, and as many steps as fill 32 bits (one of a wider element)."""
        together: dict[int, list[int]] = {}
        for step, offset in enumerate(self.offsets):
            together.setdefault(offset, []).append(step)
        per = max(1, 32 // element_bits)
        return [(o, steps[i : i + per]) for o, steps in together.items() for i in range(0, len(steps), per)]

    def cost(self, element_bits: int) -> float:
        """In shuffles of 32 bits a lane."""
        moves = [steps for offset, steps in self.words(element_bits) if offset or not self.exchanges]
        selects = self.send.selects() + self.receive.selects()
        if element_bits < 32:  # putting words together, taking them apart
            selects += sum(2 * len(steps) for steps in moves)
        return max(1, element_bits // 32) * (len(moves) + selects / SELECTS)


def shared_cost(source: LinearLayout, target: LinearLayout, plan: SharedPlan, element_bytes: int, alone: bool) -> float:
    """The same for the way through shared memory: a shuffle takes the time of an access of 4 bytes a lane without
    conflicts. ``alone``: there is no other warp to wait for."""
    accesses = (source.registers + target.registers) // plan.vector
    return accesses * max(1, plan.vector * element_bytes // BANK_BYTES) + (0 if alone else BARRIER)


def plan_shuffle(source: LinearLayout, target: LinearLayout) -> ShufflePlan:
    """For layouts of which ``plan_conversion`` says ``shuffle`` (or less), with as many lanes."""
    a, b = independent(source.register), independent(target.register)
    common = _intersection(a, [*target.register, *target.lane])
    missing = max(0, len(common) - len(b))
    b += independent([*b, *common])[len(b) : len(b) + missing]
    received = _received(source, target, a, b, common)
    listened = _listened(source, a, received)
    between = [x ^ y for x, y in zip(source.outer, target.outer, strict=True)]
    steps = [_sum(b, s) for s in range(1 << len(b))]
    offsets = [_lane_of(source, x) for x in steps]
    outer = [_lane_of(source, x) for x in between]
    sent = _Sent(source, listened, received)
    send = _choice(
        [sent.register(x, at) for x, at in zip(steps, offsets, strict=True)],
        [sent.change(1 << i) for i in range(len(source.lane))],
        [sent.register(x, at) for x, at in zip(between, outer, strict=True)],
    )
    lanes = [_found(b, x ^ y) for x, y in zip(target.lane, received, strict=True)]
    receive = _choice([_found(b, target(r)) for r in range(target.registers)], lanes, [0] * len(target.outer))
    return ShufflePlan(send, tuple(offsets), tuple(listened), tuple(outer), receive)


def _received(
    source: LinearLayout, target: LinearLayout, a: Sequence[int], b: Sequence[int], common: Sequence[int]
) -> list[int]:
    """u: for each lane bit the vector of what is received (see above); ``common`` is A within what a warp receives."""
    outside: list[int] = []  # lanes whose vectors are independent of A + B
    for j, v in enumerate(target.lane):
        if _independent(v, [*common, *b, *(target.lane[i] for i in outside)]):
            outside.append(j)
    found = {j: target.lane[j] for j in outside}
    paired: dict[int, int] = {}  # others that are independent of B: the part that lies in A and outside of A + B
    parts = [*b, *common, *found.values()]
    for j, v in enumerate(target.lane):
        if j not in found:
            rest = v ^ _sum(b, _found(parts, v) & (1 << len(b)) - 1)
            if _independent(rest, [*b, *found.values(), *paired.values()]):
                paired[j] = rest
    partners: dict[int, int] = {}
    for j, rest in paired.items():  # where the source has the same lane bit on the other side, that is the partner
        beside = rest ^ _sum(common, _found([*common, *found.values()], rest) & (1 << len(common)) - 1)
        wanted = solve([*b, *a], source.lane[j] ^ beside)
        if wanted is not None:
            partner = _sum(b, wanted & (1 << len(b)) - 1)
            if _independent(partner, [*common, *partners.values()]):
                partners[j] = partner
    for j in paired:
        if j not in partners:
            partners[j] = next(v for v in b if _independent(v, [*common, *partners.values()]))
    found |= {j: rest ^ partners[j] for j, rest in paired.items()}
    order = list(found)
    base = [*b, *(target.lane[j] for j in order)]
    return [
        found[j] if j in found else _sum([found[i] for i in order], _found(base, v) >> len(b))
        for j, v in enumerate(target.lane)
    ]


def _listened(source: LinearLayout, a: Sequence[int], received: Sequence[int]) -> list[int]:
    """For each lane bit, what it adds to the number of the lane that is listened to: the bit itself where the element
    lies there too."""
    result = []
    for j, v in enumerate(received):
        result.append(1 << j if not _independent(v ^ source.lane[j], a) else _lane_of(source, v))
    return result


class _Sent:
    """The register that holds an element in the lane that is listened to."""

    def __init__(self, source: LinearLayout, listened: Sequence[int], received: Sequence[int]) -> None:
        self.source = source
        self.basis: list[int] = list(independent(listened))
        at = [listened.index(v) for v in self.basis]
        self.held = [received[i] ^ _sum(source.lane, v) for i, v in zip(at, self.basis, strict=True)]
        for i in range(len(source.lane)):  # what lanes send that nobody listens to does not matter
            if _independent(1 << i, self.basis):
                self.basis.append(1 << i)
                self.held.append(0)

    def change(self, lane: int) -> int:
        """What the lane's number adds to the register's number."""
        return _found(self.source.register, _sum(self.held, _found(self.basis, lane)))

    def register(self, flat: int, lane: int) -> int:
        """What a step or warp adds that receives ``flat`` more, and this from ``lane``."""
        return _found(self.source.register, flat ^ _sum(self.source.lane, lane)) ^ self.change(lane)


def _choice(wanted: Iterable[int], lane: Sequence[int], outer: Sequence[int]) -> Choice:
    """A choice whose register's number changes by ``lane[i]`` or ``outer[i]`` with a bit of the thread's number."""
    changes = independent([*lane, *outer])
    return Choice(
        tuple(wanted), changes, tuple(_found(changes, v) for v in lane), tuple(_found(changes, v) for v in outer)
    )


def _lane_of(source: LinearLayout, flat: int) -> int:
    """A lane that holds the element, in a linear way."""
    return _found([*source.register, *source.lane], flat) >> len(source.register)


def _independent(vector: int, others: Sequence[int]) -> bool:
    return solve(others, vector) is None


def _found(vectors: Sequence[int], target: int) -> int:
    found = solve(vectors, target)
    assert found is not None, "not a conversion within warps"
    return found


def _sum(vectors: Sequence[int], bits: int) -> int:
    result = 0
    for i, v in enumerate(vectors):
        if bits >> i & 1:
            result ^= v
    return result


def _intersection(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """A basis of the vectors in both spans."""
    mine, result = independent(first), []
    known = list(mine)
    for v in independent(second):
        found = solve(known, v)
        if found is None:
            known.append(v)
        else:
            result.append(_sum(mine, found & (1 << len(mine)) - 1))
    assert rank_of(result) == len(result)
    return tuple(result)
