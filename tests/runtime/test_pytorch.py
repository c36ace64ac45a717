"""torch.compile on the CPU through this package."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import triton

pytest.importorskip("torch")
SRC = str(Path(triton.__file__).parent.parent)

PROGRAM = """
import torch
import torch._inductor.config as config
import triton
import triton.language as tl

config.cpu_backend = "triton"
config.compile_threads = 2  # kernels come back from worker processes


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


def own_kernel(x):
    out = torch.empty_like(x)
    add[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x, out, x.numel(), BLOCK=256)
    return out.relu()


functions = [
    lambda x: torch.softmax(x * 2 + x.sin(), -1),
    lambda x: torch.nn.functional.layer_norm(x, (96,)).sum(0),
    own_kernel,
]
x = torch.randn(64, 96)
for function in functions:
    torch.testing.assert_close(torch.compile(function)(x), function(x), rtol=1e-4, atol=1e-4)
print("same")
"""


def test_compiled_functions_give_eager_results(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "PYTHONPATH": SRC, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=280, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "same"
