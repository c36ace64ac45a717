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


USER_KERNELS = """
import torch
import torch._inductor.config as config
import triton
import triton.language as tl
from torch._higher_order_ops import triton_kernel_wrap
from torch._inductor.runtime import triton_helpers

config.cpu_backend = "triton"
config.compile_threads = 1


@triton.jit
def sine(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sin(tl.load(x + i, i < n)), i < n)


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        sine[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x.cos()


# PyTorch asks which arguments a kernel writes. If it takes all for written, the gradient lands in x itself.
x = torch.randn(100, requires_grad=True)
before = x.detach().clone()
torch.compile(lambda x: (Sine.apply(x) * 2).sum(), fullgraph=True)(x).backward()
torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)
torch.testing.assert_close(x.grad, 2 * before.cos())


@triton.jit
def scale(x, factor, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * factor, i < n)


def scaled(x, factor):
    y = x.clone()
    scale[(1,)](y, factor, y.numel(), BLOCK=128)
    return y


for factor in (True, 3, 2.5):
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(scaled, dynamic=True)(before, factor), before * factor)

triton_helpers.set_driver_to_cpu()


@triton.jit(noinline=True)
def put(p, v):
    tl.store(p, v)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def loops(x, y, out, n, B: tl.constexpr):
    p = out
    total = tl.zeros((B,), tl.float32)
    for i in range(n):
        if tl.load(y + i) > 0:
            break
        total += tl.load(x + tl.arange(0, B))
        tl.store(p + tl.arange(0, B), tl.associative_scan(total, 0, add))
        p += B


@triton.jit
def branches(x, y, out, n, B: tl.constexpr):
    if n > 2:
        p = x
    else:
        p = out
    put(p, tl.reduce(tl.load(y + tl.arange(0, B)), 0, add))


@triton.jit
def locks(x, y, out, n, B: tl.constexpr):
    while tl.atomic_cas(x, 0, 1) == 1:
        pass
    tl.atomic_add(out, tl.load(y))
    tl.atomic_xchg(x, 0)


@triton.jit
def boxes(x, y, out, n, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n, 16], [16, 1], [B, 16])
    target = tl.make_tensor_descriptor(out, [n, 16], [16, 1], [B, 16])
    target.store([0, 0], source.load([0, 0]))


@triton.jit
def optional(x, y, out, n, B: tl.constexpr):
    if y is None:
        tl.store(out, tl.load(x))


t = torch.zeros(64, dtype=torch.int32)
for kernel, y, reads, writes in [
    (loops, t, "xy", {"out"}),
    (branches, t, "y", {"x", "out"}),
    (locks, t, "y", {"x", "out"}),
    (boxes, t, "x", {"out"}),
    (optional, None, "x", {"out"}),
]:
    arguments = dict(x=t, y=y, out=t, n=3, B=16)
    found = triton_kernel_wrap.identify_accessed_tensors(kernel, arguments, {}).read_writes
    assert {d.name for d in found.writes} == writes, (kernel, found)
    assert {d.name for d in found.reads} == set(reads), (kernel, found)
print("same")
"""


@pytest.mark.parametrize("program", [PROGRAM, USER_KERNELS], ids=["functions", "user_kernels"])
def test_compiled_functions_give_eager_results(tmp_path: Path, program: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program))
    environment = {**os.environ, "PYTHONPATH": SRC, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=280, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "same"
