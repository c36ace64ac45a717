"""Small cases taken from real bug reports that must compile for an NVIDIA target; no GPU needed. Each test's name ends
with the case's number.
"""

import pytest
from test_architectures import compiled

import triton
import triton.language as tl
from triton.backends.cuda import codegen


@triton.jit
def scaled_float8_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i).to(tl.float16) * tl.load(y + i).to(tl.float16))


@pytest.mark.parametrize("arch", [75, 86])
@pytest.mark.parametrize("kind", ["*fp8e4nv", "*fp8e5"])
def test_float8_on_older_architectures_B17(arch, kind):
    signature = {"x": kind, "y": "*fp16", "z": "*fp16"}
    kernel = compiled(scaled_float8_kernel, arch, signature, {"N": 256})
    assert f".target sm_{arch}" in kernel.asm["ptx"]
    if codegen.find_ptxas(arch) is None:
        pytest.skip(f"PTX made; no ptxas that knows sm_{arch} to assemble it")
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
