"""Placement in shared memory: addresses are a permutation, and banks do not conflict where that is possible."""

import random

import pytest
from test_linear import random_layout

from triton.layouts.linear import LinearLayout, distribute
from triton.layouts.shared import conflicts, plan_shared


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_addresses_are_a_permutation_without_conflicts(seed: int, width: int) -> None:
    rng = random.Random(seed)
    shape = (rng.choice([16, 32, 64]), rng.choice([16, 32, 128]))
    source, target = random_layout(rng, shape), random_layout(rng, shape)
    plan = plan_shared(source, target, width)
    assert sorted(plan.address(i) for i in range(plan.elements)) == list(range(plan.elements))
    # 2 and 1 byte elements: several lanes may share a word only if the map puts them there, so a bound of 4/width
    # remains
    bound = max(1, 4 // (width * plan.vector))
    assert conflicts(source, plan, width) <= bound
    assert conflicts(target, plan, width) <= bound


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_transpose_has_no_conflicts(width: int) -> None:
    rows = distribute((64, 64), (1, 0), (1, 4), 32, 4)
    columns = distribute((64, 64), (0, 1), (4, 1), 32, 4)
    plan = plan_shared(rows, columns, width)
    bound = max(1, 4 // width)
    assert conflicts(rows, plan, width) <= bound and conflicts(columns, plan, width) <= bound


def test_common_registers_become_one_access() -> None:
    source = distribute((32, 64), (1, 0), (1, 4), 32, 4)
    target = LinearLayout(source.shape, source.register, tuple(reversed(source.lane)), source.warp)
    assert plan_shared(source, target, 4).vector == 4
    assert plan_shared(source, target, 8).vector == 2
