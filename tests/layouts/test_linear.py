"""The algebra of linear layouts, on random layouts and shapes."""

import random

import pytest

from triton.layouts.linear import (
    LinearLayout,
    complement,
    distribute,
    independent,
    join_index,
    padded,
    plan_conversion,
    rank_of,
    register_changes,
    register_sources,
    solve,
    split_index,
)


def random_layout(
    rng: random.Random, shape: tuple[int, ...], lanes: int = 5, warps: int = 2, blocks: int = 0
) -> LinearLayout:
    """A random surjective layout: a random invertible matrix dealt to inputs, with replicas where threads are left
    over."""
    bits = sum((n - 1).bit_length() for n in shape)
    vectors: list[int] = []
    while len(vectors) < bits:
        v = rng.randrange(1, 1 << bits)
        if rank_of([*vectors, v]) == len(vectors) + 1:
            vectors.append(v)
    slots = ["lane"] * lanes + ["warp"] * warps + ["block"] * blocks
    rng.shuffle(slots)
    dealt: dict[str, list[int]] = {"register": [], "lane": [], "warp": [], "block": []}
    for name in slots:
        dealt[name].append(vectors.pop() if vectors and rng.random() < 0.8 else 0)
    dealt["register"] = vectors
    return LinearLayout(shape, *(tuple(dealt[n]) for n in ("register", "lane", "warp", "block")))


def held(layout: LinearLayout) -> set[int]:
    return {
        layout(r, lane, w) for r in range(layout.registers) for lane in range(layout.lanes) for w in range(layout.warps)
    }


@pytest.mark.parametrize("seed", range(40))
def test_every_element_is_held(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 5, 8, 16]) for _ in range(rng.randint(1, 3)))
    total = 1
    for n in padded(shape):
        total *= n
    assert held(random_layout(rng, shape)) == set(range(total))


@pytest.mark.parametrize("seed", range(40))
def test_slices_and_permutations_move_elements_with_their_coordinates(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 4, 6, 8]) for _ in range(3))
    layout = random_layout(rng, shape)
    order = [0, 1, 2]
    rng.shuffle(order)
    turned = layout.permuted(order)
    axis = rng.randrange(3)
    sliced = layout.without_axis(axis)
    for lane in range(layout.lanes):
        for w in range(layout.warps):
            here = {layout.coordinates(layout(r, lane, w)) for r in range(layout.registers)}
            assert {turned.coordinates(turned(r, lane, w)) for r in range(turned.registers)} == {
                tuple(c[i] for i in order) for c in here
            }
            assert {sliced.coordinates(sliced(r, lane, w)) for r in range(sliced.registers)} <= {
                c[:axis] + c[axis + 1 :] for c in here
            }


@pytest.mark.parametrize("seed", range(60))
def test_conversion_plan_is_possible(seed: int) -> None:
    rng = random.Random(seed)
    shape = (rng.choice([4, 7, 16]), rng.choice([8, 12, 32]))
    source = random_layout(rng, shape)
    target = source if seed % 5 == 0 else random_layout(rng, shape)
    kind = plan_conversion(source, target).kind
    for lane in range(target.lanes):
        for w in range(target.warps):
            need = {target(r, lane, w) for r in range(target.registers)}
            own = {source(r, lane, w) for r in range(source.registers)}
            warp = {source(r, i, w) for r in range(source.registers) for i in range(source.lanes)}
            if kind in ("none", "registers", "select"):
                assert need <= own
            elif kind == "shuffle":
                assert need <= warp
    if kind in ("none",):
        assert source == target


@pytest.mark.parametrize("seed", range(60))
def test_conversions_that_cross_blocks_are_told_apart(seed: int) -> None:
    rng = random.Random(seed)
    source, target = (random_layout(rng, (8, 16), 2, 1, 2) for _ in range(2))
    if seed % 2:
        vectors = [*source.register, *source.lane, *source.warp]
        rng.shuffle(vectors)
        n = len(source.register)
        target = LinearLayout((8, 16), tuple(vectors[:n]), tuple(vectors[n:-1]), (vectors[-1],), source.block)

    def block(layout: LinearLayout, number: int) -> set[int]:
        threads = [(lane, w) for lane in range(layout.lanes) for w in range(layout.warps)]
        return {layout(r, lane, w, number) for r in range(layout.registers) for lane, w in threads}

    stays = all(block(target, b) <= block(source, b) for b in range(4))
    assert (plan_conversion(source, target).kind == "cluster") is not stays


@pytest.mark.parametrize("blocks", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(1,), (3,), (300,), (2, 100), (64, 64), (1, 5, 7), (4, 1, 33)])
def test_blocks_hold_parts_or_replicas(shape: tuple[int, ...], blocks: int) -> None:
    order = tuple(reversed(range(len(shape))))
    layout = distribute(shape, order, (1,) * len(shape), 32, 4, blocks)
    assert len(layout.block) == blocks.bit_length() - 1
    parts = []
    for b in range(blocks):
        threads = [(lane, w) for lane in range(32) for w in range(4)]
        parts.append({layout(r, lane, w, b) for r in range(layout.registers) for lane, w in threads})
    total = 1 << layout.total_bits
    assert set().union(*parts) == set(range(total)) and {len(p) for p in parts} == {max(1, total // blocks)}
    own = layout.within_block()
    assert own is not None and 1 << own.total_bits == len(parts[0]) and own.registers == layout.registers
    assert own.across(shape, layout.block) == layout


def test_parts_keep_real_sizes_of_axes_that_blocks_do_not_share() -> None:
    layout = distribute((8, 5), (1, 0), (1, 1), 4, 2, 4)
    own = layout.within_block()
    assert layout.block == (1 << 4, 1 << 5) and own is not None and own.shape == (2, 5)


def test_parts_need_bits_of_their_own() -> None:
    assert LinearLayout((4, 4), (1, 2), (4,), (), (12,)).within_block() is None
    assert LinearLayout((4, 4), (1, 6), (4,), (8,), (2,)).within_block() is None


def test_register_conversion_of_reordered_registers() -> None:
    a = distribute((8, 32), (1, 0), (1, 4), 32, 1)
    b = LinearLayout(a.shape, tuple(reversed(a.register)), a.lane, a.warp)
    assert plan_conversion(a, b).kind == "registers"
    for r, source in enumerate(register_sources(a, b)):
        assert a(source) == b(r)


@pytest.mark.parametrize("seed", range(30))
def test_select_conversion(seed: int) -> None:
    """Which register is taken may depend on the lane: a lane bit and a register bit that trade places in part."""
    rng = random.Random(seed)
    source = random_layout(rng, (8, 32))
    if not source.register:
        return
    reached = [0] * len(source.lane)
    for i in range(len(reached)):
        for v in source.register:
            reached[i] ^= v if rng.random() < 0.5 else 0
    target = LinearLayout(
        source.shape, source.register, tuple(a ^ b for a, b in zip(source.lane, reached, strict=True)), source.warp
    )
    assert plan_conversion(source, target).kind in ("none", "registers", "select")
    first, changes = register_sources(source, target), register_changes(source, target, "lane")
    for lane in range(target.lanes):
        change = 0
        for bit, c in enumerate(changes):
            change ^= c if lane >> bit & 1 else 0
        for r in range(target.registers):
            assert source(first[r] ^ change, lane) == target(r, lane)


def test_blocked_layout_by_hand() -> None:
    layout = distribute((4, 8), (1, 0), (1, 2), 8, 1)
    assert (layout.register, layout.lane) == ((1, 16), (2, 4, 8))
    assert layout.coordinates(layout(register=2, lane=3)) == (2, 6)
    assert layout.consecutive() == 2


def test_more_threads_than_elements_hold_replicas() -> None:
    layout = distribute((8,), (0,), (1,), 32, 4)
    assert layout.lane == (1, 2, 4, 0, 0) and layout.warp == (0, 0)
    assert layout.free_mask == {"register": 0, "lane": 0b11000, "warp": 0b11, "block": 0, "outer": 0b11}


def test_padding_is_out_of_range() -> None:
    layout = distribute((3, 5), (1, 0), (1, 1), 32, 1)
    assert sum(layout.in_range(i) for i in held(layout)) == 15


def test_layouts_must_be_surjective() -> None:
    with pytest.raises(ValueError, match="does not reach every element of 4x4"):
        LinearLayout((4, 4), (1, 2))
    with pytest.raises(ValueError, match="leaves the tile"):
        LinearLayout((2,), (1, 2))


@pytest.mark.parametrize("seed", range(50))
def test_linear_algebra(seed: int) -> None:
    rng = random.Random(seed)
    bits = rng.randint(1, 10)
    vectors = [rng.randrange(1 << bits) for _ in range(rng.randint(1, 12))]
    kept = independent(vectors)
    assert rank_of(kept) == len(kept) == rank_of(vectors)
    assert rank_of([*kept, *complement(kept, bits)]) == bits == len(kept) + len(complement(kept, bits))
    chosen = rng.randrange(1 << len(vectors))
    target = 0
    for i, v in enumerate(vectors):
        target ^= v if chosen >> i & 1 else 0
    answer = solve(vectors, target)
    assert answer is not None
    for i, v in enumerate(vectors):
        target ^= v if answer >> i & 1 else 0
    assert target == 0


def test_index_round_trip() -> None:
    shape = (3, 4, 5)
    for c in ((0, 0, 0), (2, 3, 4), (1, 2, 3)):
        assert split_index(join_index(c, shape), shape) == c
