"""Helpers of the interpreter's own tests."""

import numpy as np
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


def elementwise_text(arguments, ops, result, shape, pointees):
    """A module that loads a tile from each pointer, applies ``ops`` to %x0, %x1, ... and stores %r through the last."""
    names = [f"%p{i}: ptr<{t}>" for i, t in enumerate([*pointees, result])]
    size = int(np.prod(shape))
    text = [f"module {{ func @k({', '.join(names)}) {{kernel = true}} {{"]
    text.append(f"%i = arange {{start = 0, end = {size}}} : {size}xi32")
    for k, t in enumerate([*pointees, result]):
        text.append(f"%s{k} = splat %p{k} : {size}xptr<{t}>")
        text.append(f"%a{k} = addptr %s{k}, %i : {size}xptr<{t}>")
        if k < len(pointees):
            text.append(f"%x{k} = load %a{k} : {size}x{t}")
    text += [ops, f"store %a{len(pointees)}, %r", "return", "} }"]
    return "\n".join(text)
