"""Plans of shuffles, carried out by a model of warps on arrays of element numbers: every thread ends up with what it
wants, and sends one register at a time."""

import itertools
import random

import numpy as np
import pytest
from test_linear import random_layout

from triton.layouts.linear import LinearLayout, distribute, plan_conversion, rank_of
from triton.layouts.shared import plan_shared
from triton.layouts.shuffles import Choice, ShufflePlan, plan_shuffle, shared_cost


def part(vectors: tuple[int, ...], number: np.ndarray) -> np.ndarray:
    result = np.zeros_like(number)
    for i, v in enumerate(vectors):
        result ^= np.where(number >> i & 1, v, 0)
    return result


def contents(layout: LinearLayout) -> np.ndarray:
    """The element in each (warp in all blocks, lane, register)."""
    outer, lane, register = np.ogrid[: 1 << len(layout.outer), : layout.lanes, : layout.registers]
    return part(layout.outer, outer) ^ part(layout.lane, lane) ^ part(layout.register, register)


def chosen(choice: Choice, held: np.ndarray) -> np.ndarray:
    """The choice by selects, as it is lowered: registers that are not needed on the way hold nonsense."""
    outer, lane = np.ogrid[: held.shape[0], : held.shape[1]]
    bits = part(choice.lane, lane) ^ part(choice.outer, outer)
    stages = choice.needed()
    assert set(stages[0]) <= set(range(held.shape[2])) and len(stages) == len(choice.changes) + 1
    for k, (change, needed) in enumerate(zip(choice.changes, stages[1:], strict=True)):
        after = np.full_like(held, -1)
        for r in needed:
            after[:, :, r] = np.where(bits >> k & 1, held[:, :, r ^ change], held[:, :, r])
        held = after
    return held[:, :, list(choice.wanted)]


def carried_out(plan: ShufflePlan, held: np.ndarray) -> np.ndarray:
    sent = chosen(plan.send, held)
    outer, lane = np.ogrid[: held.shape[0], : held.shape[1]]
    listened = part(plan.lane, lane) ^ part(plan.outer, outer)
    received = [sent[outer, listened ^ offset, s] for s, offset in enumerate(plan.offsets)]
    if plan.exchanges:
        assert (listened == lane).all()
    return chosen(plan.receive, np.stack(received, axis=2))


def check(source: LinearLayout, target: LinearLayout) -> ShufflePlan:
    plan = plan_shuffle(source, target)
    np.testing.assert_array_equal(carried_out(plan, contents(source)), contents(target))
    steps = sorted(s for _, together in plan.words(8) for s in together)
    assert steps == list(range(len(plan.offsets)))
    for bits in (8, 16, 32, 64):
        for offset, together in plan.words(bits):
            assert len(together) * bits <= max(bits, 32) and {plan.offsets[s] for s in together} == {offset}
    return plan


def layouts(bits: int, registers: int, lanes: int, warps: int) -> list[LinearLayout]:
    made = []
    for vectors in itertools.product(range(1 << bits), repeat=registers + lanes + warps):
        if rank_of(vectors) == bits:
            own, rest = vectors[:registers], vectors[registers:]
            made.append(LinearLayout((1 << bits,), own, rest[:lanes], rest[lanes:]))
    return made


@pytest.mark.parametrize(
    "bits, source, target",
    [
        (2, (1, 2, 0), (1, 2, 0)),
        (2, (1, 1, 1), (1, 1, 1)),
        (2, (2, 1, 0), (2, 1, 0)),
        (2, (0, 2, 1), (1, 2, 1)),
        (1, (2, 3, 1), (1, 3, 1)),
    ],
)
def test_all_small_layouts(bits: int, source: tuple[int, int, int], target: tuple[int, int, int]) -> None:
    """With replicas in registers, lanes and warps."""
    done = 0
    for a, b in itertools.product(layouts(bits, *source), layouts(bits, *target)):
        if plan_conversion(a, b).kind not in ("shared", "cluster"):
            check(a, b)
            done += 1
    assert done > 300


def within_warps(rng: random.Random, source: LinearLayout, registers: int) -> LinearLayout:
    """A layout in which every warp holds what it holds in ``source``, or more, or (where warps are replicas) less."""
    space = [*source.register, *source.lane]

    def vector(density: float) -> int:
        result = 0
        for v in space:
            result ^= v if rng.random() < density else 0
        return result

    while True:
        density = rng.choice([0.1, 0.3, 0.5])
        own = [vector(density) for _ in range(registers)]
        lane = [vector(density) if rng.random() < 0.7 else v for v in source.lane]
        outer = [v ^ (vector(0.3) if rng.random() < 0.3 else 0) for v in source.outer]
        if rng.random() < 0.5:  # unit changes: registers and lanes trade places
            both = [*source.register, *source.lane, *own]
            rng.shuffle(both)
            own, lane = both[: len(own)], both[len(own) : len(own) + len(lane)]
        if rank_of([*own, *lane, *outer]) == source.total_bits:
            warps = len(source.warp)
            return LinearLayout(source.shape, tuple(own), tuple(lane), tuple(outer[:warps]), tuple(outer[warps:]))


def traded(rng: random.Random, source: LinearLayout) -> LinearLayout:
    """Some registers and lanes, not replicas, trade places."""
    own, lane = list(source.register), list(source.lane)
    real = [j for j, v in enumerate(lane) if v]
    count = min(len(own), len(real), rng.randint(1, 6))
    for i, j in zip(rng.sample(range(len(own)), count), rng.sample(real, count), strict=True):
        own[i], lane[j] = lane[j], own[i]
    return LinearLayout(source.shape, tuple(own), tuple(lane), source.warp, source.block)


@pytest.mark.parametrize("seed", range(100))
def test_registers_and_lanes_trade_places_between_pairs_of_lanes(seed: int) -> None:
    rng = random.Random(seed)
    source = random_layout(rng, (512,), rng.randint(2, 6), rng.randint(0, 1))
    plan = check(source, traded(rng, source))
    assert plan.exchanges and plan.offsets[0] == 0 and len(plan.offsets) == source.registers


@pytest.mark.parametrize("seed", range(20))
def test_random_layouts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        source = random_layout(rng, (1 << rng.randint(0, 9),), rng.randint(1, 6), rng.randint(0, 2), rng.randint(0, 1))
        target = within_warps(rng, source, len(source.register) + rng.randint(0, 2))
        assert plan_conversion(source, target).kind not in ("shared", "cluster")
        check(source, target)


def test_a_register_and_a_lane_trade_places() -> None:
    """Half of the elements stay where they are."""
    source = LinearLayout((64,), (1,), (2, 4, 8, 16, 32))
    plan = check(source, LinearLayout((64,), (2,), (1, 4, 8, 16, 32)))
    assert plan.exchanges and plan.offsets == (0, 1) and plan.send.selects() == plan.receive.selects() == 2
    assert plan.cost(32) == 1 + 4 / 4 and plan.cost(64) == 2 * plan.cost(32)


def test_lanes_in_another_order_need_one_shuffle_a_word() -> None:
    source = distribute((32, 4), (1, 0), (1, 4), 32, 4)
    target = LinearLayout(source.shape, source.register, (8, 4, 16, 32, 64), source.warp)
    plan = check(source, target)
    assert not plan.exchanges and plan.offsets == (0,) * 4 and plan.send.changes == plan.receive.changes == ()
    assert [len(plan.words(bits)) for bits in (8, 16, 32, 64)] == [1, 2, 4, 4]


def test_the_way_that_costs_less() -> None:
    """A few elements go by shuffles; where every lane exchanges many with many others the selects cost more than
    memory."""
    few = distribute((16, 8), (1, 0), (1, 1), 32, 4)
    turned = LinearLayout(few.shape, few.register, (8, 16, 1, 2, 4), few.warp)
    assert plan_conversion(few, turned).kind == "shuffle"
    assert check(few, turned).cost(32) < shared_cost(few, turned, plan_shared(few, turned, 4), 4, False)
    rows, columns = distribute((32, 32), (1, 0), (1, 1), 32, 1), distribute((32, 32), (0, 1), (1, 1), 32, 1)
    assert check(rows, columns).cost(32) > shared_cost(rows, columns, plan_shared(rows, columns, 4), 4, False)
