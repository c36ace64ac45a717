"""A few hundred random kernels through everything; and proof that the search finds what it is meant to find."""

from __future__ import annotations

import pytest
from backends import cpu_executor, cpu_passes, unoptimised_executor
from check import Mismatch, check, interpret
from generator import generate
from run import failure, report

from triton.interpreter.rules import RULES
from triton.ir import print_module
from triton.ir.core import Module

BATCH = 10


def run_batch(seeds: range, passes: list, executors: dict) -> None:
    for seed in seeds:
        kernel = generate(seed)
        error = failure(kernel, passes, executors)
        if error is not None:
            pytest.fail(report(kernel, error, passes, executors))


@pytest.mark.parametrize("first", range(0, 150, BATCH))
def test_passes_and_optimised_code(first):
    run_batch(range(first, first + BATCH), cpu_passes, {"cpu": cpu_executor})


@pytest.mark.parametrize("first", range(1000, 1100, BATCH))
def test_code_without_passes(first):
    run_batch(range(first, first + BATCH), [], {"cpu without passes": unoptimised_executor})


def test_a_seed_gives_one_kernel():
    first, again, other = (print_module(generate(seed).module) for seed in (7, 7, 8))
    assert first == again != other


def broken(kind: str):
    """An interpreter that swaps the operands of one op."""

    def make(module: Module):
        rules = dict(RULES)
        rules[kind] = lambda machine, op, args: RULES[kind](machine, op, args[::-1])
        return lambda args, grid: interpret(module, args, grid, None, rules)

    return {"broken": make}


@pytest.mark.parametrize("kind", ["sub", "cmp", "div"])
def test_a_wrong_rule_is_found_and_its_kernel_made_small(kind):
    for seed in range(200):
        kernel = generate(seed)
        error = failure(kernel, [], broken(kind))
        if error is None:
            continue
        text = report(kernel, error, [], broken(kind))
        assert f"seed {seed}: broken: " in text and f" = {kind} " in text
        assert text.count("\n") < 60
        return
    pytest.fail(f"200 kernels do not show a wrong {kind}")


def test_a_pass_that_breaks_a_module_is_found():
    def wrong(module: Module) -> Module:
        for op in module.walk():
            if op.kind == "add":
                op.kind = "sub"
        return module

    with pytest.raises(Mismatch, match=r"^wrong: "):
        for seed in range(50):
            check(generate(seed), [("wrong", wrong)])
