"""Modules that the verifier accepts, however odd, go through the passes and stay valid."""

from __future__ import annotations

import random

from ir.examples import KERNEL, KINDS, example_module
from ir.test_verifier import mutate

from triton.analysis import axis
from triton.ir import IRError, equal, parse_module, print_module, verify
from triton.passes.manager import run_passes
from triton.passes.pipeline import TILE_PASSES


def test_odd_modules_survive_the_pipeline() -> None:
    rng = random.Random(7)
    seeds = [example_module(kind) for kind in KINDS if kind != "convert_layout"] + [KERNEL] * 20
    ran = 0
    for _ in range(6000):
        text = mutate(rng.choice(seeds), rng)
        try:
            module = parse_module(text)
            verify(module)
        except IRError:
            continue
        for function in module.functions.values():
            axis.analyse(function)
        try:
            run_passes(module, TILE_PASSES, verify=True)
        except IRError as error:
            assert "recursion is not supported" in str(error), text
            continue
        assert equal(parse_module(print_module(module)), module)
        ran += 1
    assert ran > 100
