"""The kernel that ``triton.tools.doctor`` compiles and runs: a masked sum of squares along a row."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def row_norms(x, out, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sqrt(tl.sum(values * values, axis=0)))
