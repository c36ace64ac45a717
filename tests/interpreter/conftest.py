"""Helpers of the interpreter's own tests."""

import pytest

from triton import interpreter
from triton.ir import parse_module, print_module, verify


def run_text(text, *arrays, grid=(1,), scalars=(), checked=True, **options):
    """Runs a module given as text on arrays (pointer arguments) and then numbers."""
    module = parse_module(text)
    verify(module)
    assert print_module(parse_module(print_module(module))) == print_module(module)
    ranges = [interpreter.Range(a.ctypes.data, a.nbytes, f"arg{i}") for i, a in enumerate(arrays)]
    args = [a.ctypes.data for a in arrays] + list(scalars)
    interpreter.run(module, args, grid, ranges if checked else None, **options)


@pytest.fixture
def run():
    return run_text
