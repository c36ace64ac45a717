"""The reference interpreter: what a tile IR module means, on NumPy. Start reading at ``rules.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from triton.ir.core import Module, Op
from triton.ir.types import DescriptorType, PointerType, element_of

from . import shared  # noqa: F401  (registers its rules)
from .errors import AssertionFailed, InterpreterError, MemoryFault, Unsupported
from .floats import from_python
from .machine import Machine
from .memory import Memory, Range

__all__ = ["AssertionFailed", "InterpreterError", "MemoryFault", "Range", "Unsupported", "run"]


def run(
    module: Module,
    args: Sequence[Any],
    grid: Sequence[int],
    ranges: Sequence[Range] | None = None,
    output: Callable[[str], object] = print,
) -> None:
    """Runs the module's kernel for every program of the grid, x fastest, one after the other.

    ``args``: one number for each kernel parameter; an address for a pointer. Integers wrap to the parameter's type,
    floats are rounded to it once. ``ranges``: the bytes each argument owns; given, an access outside all of them raises
    MemoryFault, unless the kernel makes pointers of integers, which may mean any memory. ``output`` gets the lines of
    device_print. Raises InterpreterError (or a subclass) where the kernel has no defined result, with the op's source
    line.
    """
    kernel = module.kernel
    if len(args) != len(kernel.args):
        raise InterpreterError(f"@{kernel.name} takes {len(kernel.args)} arguments, {len(args)} were given")
    values = []
    for given, parameter in zip(args, kernel.args, strict=True):
        if isinstance(parameter.type, DescriptorType):
            raise Unsupported("the interpreter does not take tensor descriptors as kernel arguments")
        values.append(from_python(given, element_of(parameter.type)))
    x, y, z = (*grid, 1, 1)[:3] if len(grid) < 3 else tuple(grid)
    if any(map(_makes_pointer, module.walk())):
        ranges = None
    machine = Machine(module, Memory(ranges), (x, y, z), output)
    with np.errstate(all="ignore"):
        for k, j, i in product(range(z), range(y), range(x)):
            machine.program = (i, j, k)
            machine.run_function(kernel, values)


def _makes_pointer(op: Op) -> bool:
    types = [element_of(v.type) for v in (*op.operands[:1], *op.results[:1])]
    return op.kind == "bitcast" and isinstance(types[1], PointerType) and not isinstance(types[0], PointerType)
