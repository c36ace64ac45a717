"""The passes and the CPU back end as functions of modules."""

from __future__ import annotations

import struct

from check import Executor, copy

from triton.backends import make_backend
from triton.backends.compiler import GPUTarget
from triton.backends.cpu import codegen
from triton.backends.cpu.driver import CPUDriver
from triton.interpreter.floats import from_python
from triton.ir.core import Module
from triton.ir.types import element_of
from triton.passes.pipeline import TILE_PASSES

cpu_passes = [(step.name, step) for step in TILE_PASSES]


def cpu_executor(module: Module, optimised: bool = True) -> Executor:
    """Compiles a copy of the module; contraction is off, so that exact results stay exact."""
    backend = make_backend(GPUTarget("cpu", "", 1))
    options = backend.parse_options({"enable_fp_fusion": False, "may_alias": not optimised})
    module = copy(module)
    types = [element_of(a.type) for a in module.kernel.args]
    if optimised:
        for step in TILE_PASSES:
            module = step(module)
    metadata: dict = {}
    text = backend.lower(module, metadata, options)
    loaded = CPUDriver().load(metadata["name"], codegen.compile(text, backend.processor)["obj"], metadata)

    def run(args: list, grid: tuple[int, int, int], ranges: list) -> None:
        CPUDriver().launch(loaded.function, grid, 0, b"".join(map(slot, args, types)), None)

    return run


def unoptimised_executor(module: Module) -> Executor:
    """The CPU back end without the target-neutral passes, as when tensor arguments overlap."""
    return cpu_executor(module, optimised=False)


def slot(value, element) -> bytes:
    """One kernel argument as the CPU's calling convention wants it: 8 bytes, integers extended by their sign."""
    raw = from_python(value, element)
    if getattr(element, "kind", "ptr") in ("int", "uint", "bool"):
        return struct.pack("<q" if element.kind == "int" else "<Q", int(raw))
    return raw.tobytes().ljust(8, b"\0")
