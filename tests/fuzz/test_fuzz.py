"""Two thousand random kernels through everything; and proof that the search finds what it is meant to find."""

from __future__ import annotations

import numpy as np
import pytest
from check import Mismatch, check, interpret
from generator import generate
from many import failures, usable_cpus
from model import V
from programs import difference
from run import everything, failure, report

from triton.interpreter.rules import RULES
from triton.ir import print_module
from triton.ir.core import Module

KERNELS, PROGRAMS = 1100, 900


@pytest.mark.timeout(1800)
def test_random_kernels():
    """Through the interpreter, every pass, and the CPU with and without passes."""
    for text in failures(everything, range(KERNELS), usable_cpus(), 1):
        pytest.fail(text)


@pytest.mark.timeout(1800)
def test_random_programs(tmp_path, monkeypatch):
    """From source text: Python with a model of the language, the interpreter and the CPU."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for text in failures(difference, range(PROGRAMS), usable_cpus(), 1):
        pytest.fail(text)


def test_a_program_that_means_something_else_is_found(monkeypatch):
    """The model with one operator that is wrong differs from the language."""
    monkeypatch.setattr(V, "__sub__", lambda self, other: self._with(other, np.add))
    found = next(filter(None, map(difference, range(60))), "")
    assert "interpreter: " in found and "the model has" in found and "def kernel(" in found


def test_a_seed_gives_one_kernel():
    first, again, other = (print_module(generate(seed).module) for seed in (7, 7, 8))
    assert first == again != other


def broken(kind: str):
    """An interpreter that swaps the operands of one op."""

    def make(module: Module):
        rules = dict(RULES)
        rules[kind] = lambda machine, op, args: RULES[kind](machine, op, args[::-1])
        return lambda args, grid, ranges: interpret(module, args, grid, ranges, rules)

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
