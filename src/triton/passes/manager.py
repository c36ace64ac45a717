"""Runs a sequence of passes, verifies after each when asked, and tells an observer what each did and how long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..ir.core import Module
from ..ir.table import IRError
from ..ir.verifier import verify as verify_module

Observer = Callable[[str, Module, float], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step. ``stage`` is the IR stage it ends in when that is another one than it starts from."""

    name: str
    run: Callable[[Module], Module]
    stage: str | None = None

    def __call__(self, module: Module) -> Module:
        return self.run(module)


def run_passes(
    module: Module,
    passes: Iterable[Pass],
    *,
    stage: str = "tile",
    verify: bool | None = None,
    observer: Observer | None = None,
) -> Module:
    """The module after all passes. ``observer`` gets the pass's name, the module as it left it, and seconds.

    With ``verify`` (default: TRITON_VERIFY_IR=1) the IR is checked before the first pass and after each; a broken
    invariant raises IRError naming the pass.
    """
    if verify is None:
        verify = os.environ.get("TRITON_VERIFY_IR") == "1"
    if verify:
        verify_module(module, stage)
    for step in passes:
        start = time.perf_counter()
        module = step(module)
        seconds = time.perf_counter() - start
        stage = step.stage or stage
        if verify:
            try:
                verify_module(module, stage)
            except IRError as error:
                raise IRError(f"after pass {step.name}: {error}") from error
        if observer is not None:
            observer(step.name, module, seconds)
    return module
