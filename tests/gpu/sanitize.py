"""Kernels over all features, for compute-sanitizer:

compute-sanitizer --tool memcheck python tests/gpu/sanitize.py        (also --tool racecheck)
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import features as f
import torch

import triton.language as tl

torch.manual_seed(0)


def t(n, d=torch.float32):
    return torch.randn(n, device="cuda").to(d)


x = t(4096)
i = torch.randint(0, 64, (4096,), dtype=torch.int32, device="cuda")
z = torch.zeros(8192, device="cuda")
for w in (1, 4, 8):
    f.add_kernel[(3,)](x, x, z, 2500, BLOCK=1000, num_warps=w)
    f.reduce_kernel[(1,)](x, z, M=33, N=7, num_warps=w)
    f.reduce_kernel[(1,)](x, z, M=64, N=64, num_warps=w)
    f.scan_kernel[(1,)](x, x, z, N=512, num_warps=w)
    f.scan_kernel[(1,)](x, x, z, N=100, num_warps=w)
    f.sort_kernel[(1,)](x, z, M=4, N=64, num_warps=w)
    f.sort_kernel[(1,)](x, z, M=3, N=33, num_warps=w)
    f.histogram_kernel[(1,)](i, torch.zeros(64, dtype=torch.int32, device="cuda"), N=256, BINS=64, num_warps=w)
    f.gather_kernel[(1,)](x, i % 16, z, M=16, N=16, num_warps=w)
    f.shape_kernel[(1,)](x, z, M=8, N=16, num_warps=w)
    f.shape_kernel[(1,)](x, z, M=3, N=5, num_warps=w)
    for p in ("ieee", "tf32", "tf32x3"):
        f.dot_kernel[(1,)](x, x, z, M=64, N=32, K=32, PRECISION=p, OUT=tl.float32, num_warps=w)
        f.dot_kernel[(1,)](x, x, z, M=5, N=7, K=3, PRECISION=p, OUT=tl.float32, num_warps=w)
    h = x.half()
    f.dot_kernel[(1,)](h, h, z, M=64, N=32, K=64, PRECISION="ieee", OUT=tl.float32, num_warps=w)
    f.batched_kernel[(1,)](h, h, z, B=4, N=16, num_warps=w)
    for op in ("add", "max", "xchg", "cas"):
        f.atomic_kernel[(1,)](i.clone(), torch.zeros(64, dtype=torch.int32, device="cuda"), i, N=64, OP=op, num_warps=w)
    f.loop_kernel[(1,)](x, z, 20, -3, N=128, num_warps=w)
    f.random_kernel[(1,)](z, 7, N=128, num_warps=w)
    f.block_pointer_kernel[(1,)](x, z, 20, 30, 30, M=16, N=32, num_warps=w)
    f.descriptor_kernel[(1,)](x, z, 40, 64, M=16, N=32, num_warps=w)
    f.call_kernel[(1,)](x, z, 3, num_warps=w)
torch.cuda.synchronize()
print("sanitize sample ran", z.sum().item() == z.sum().item())
