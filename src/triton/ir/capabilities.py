"""What a target can do, as a record. Passes and the front end ask it; they never ask for a target's name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """``backend`` and ``arch`` are for messages and cache keys only.

    ``lanes_per_warp``      threads that run in lockstep; 1 where a program is one thread.
    ``dot_precisions``      what ``tl.dot(input_precision=...)`` may ask for.
    ``default_precision``   what it gets when it asks for nothing.
    ``native_float8``       IR names of the 8-bit floats that need no emulation.
    ``max_shared_memory``   bytes of memory shared by a program's threads; None where tiles live in ordinary memory.
    ``needs_layouts``       whether the laid-out stage of the IR is used.
    ``boxed_loads``         whether descriptor loads are a machine operation.
    """

    backend: str
    arch: str
    lanes_per_warp: int = 1
    dot_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    default_precision: str = "ieee"
    native_float8: tuple[str, ...] = ()
    max_shared_memory: int | None = None
    needs_layouts: bool = False
    boxed_loads: bool = False
