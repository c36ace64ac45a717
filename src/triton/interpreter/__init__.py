"""The reference interpreter: what a tile IR module means, on NumPy. Start reading at ``rules.py``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from triton.ir.core import Module, Op
from triton.ir.types import DescriptorType, PointerType, element_of

from . import shared  # noqa: F401  (registers its rules)
from .errors import AssertionFailed, Blocked, InterpreterError, MemoryFault, Unsupported
from .floats import from_python
from .machine import Machine
from .memory import Memory, Range

__all__ = ["AssertionFailed", "InterpreterError", "MemoryFault", "Range", "Unsupported", "run"]

PATIENCE = 10.0
"""Seconds before programs that all wait for one another's writes are given up."""


def run(
    module: Module,
    args: Sequence[Any],
    grid: Sequence[int],
    ranges: Sequence[Range] | None = None,
    output: Callable[[str], object] = print,
) -> None:
    """Runs the module's kernel for every program of the grid, x fastest, one after the other; one that waits for a
    value (atomic_poll) makes way for the others.

    ``args``: one number for each kernel parameter; an address for a pointer. Integers wrap to the parameter's type,
    floats are rounded to it once. ``ranges``: the bytes each argument owns; given, an access outside all of them raises
    MemoryFault, unless the kernel makes pointers of integers, which may mean any of the process. ``output`` gets the
    lines of device_print. Raises InterpreterError (or a subclass) where the kernel has no defined result, with the
    op's source line.
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
    memory = Memory(ranges)
    machine = Machine(module, memory, (x, y, z), output)
    blocked: list[Machine] = []
    with np.errstate(all="ignore"):
        for k, j, i in _programs(x, y, z):
            machine.program = (i, j, k)
            try:
                machine.run_function(kernel, values)
            except Blocked:
                blocked.append(machine)
                machine = Machine(module, memory, (x, y, z), output)
        _settle(blocked)


def _programs(x: int, y: int, z: int) -> Iterator[tuple[int, int, int]]:
    """The grid's places, x fastest; ``itertools.product`` would keep whole axes in memory."""
    for k in range(z):
        for j in range(y):
            for i in range(x):
                yield k, j, i


def _settle(blocked: list[Machine]) -> None:
    """Runs programs that wait for one another, in turn, to their ends. Other threads may write what they wait for, so
    there is patience when none can go on."""
    moved_at = time.monotonic()
    while blocked:
        before = len(blocked), sum(machine.waits for machine in blocked)
        blocked = [machine for machine in blocked if not _ends(machine)]
        if (len(blocked), sum(machine.waits for machine in blocked)) != before:
            moved_at = time.monotonic()
        elif all(machine.deadline is None for machine in blocked) and time.monotonic() - moved_at > PATIENCE:
            error = InterpreterError(
                f"atomic_poll: every program waits, none is left to write, and nothing changed for {PATIENCE:g} seconds"
            )
            op = blocked[0].waiting
            error.locate(op.loc if op is not None else None)
            raise error
        else:
            time.sleep(0.001)


def _ends(machine: Machine) -> bool:
    try:
        machine.resume()
    except Blocked:
        return False
    return True


def _makes_pointer(op: Op) -> bool:
    types = [element_of(v.type) for v in (*op.operands[:1], *op.results[:1])]
    return op.kind == "bitcast" and isinstance(types[1], PointerType) and not isinstance(types[0], PointerType)
