"""Compile-only: every language feature for every NVIDIA architecture, down to machine code where a ptxas is found. No
GPU needed.

What ptxas says of registers and spills is kept in the test's properties. Which instruction a matrix product uses is
checked in the PTX.
"""

import features
import pytest

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.cuda import codegen
from triton.compiler import ASTSource

ARCHITECTURES = [70, 75, 80, 86, 89, 90, 100, 103, 120]


def compiled(kernel, arch, signature, constants, divisible=(), **options):
    names = [p.name for p in kernel.params]
    full = {name: signature.get(name, "constexpr") for name in names}
    attrs = {
        (names.index(n),): [("tt.divisibility", 16)]
        for n, kind in signature.items()
        if kind[0] == "*" or n in divisible
    }
    source = ASTSource(kernel, full, {(names.index(n),): value for n, value in constants.items()}, attrs)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", features.FEATURES)
def test_feature_compiles(name, arch, record_property):
    feature = features.FEATURES[name]
    kernel = compiled(feature.kernel, arch, feature.signature, feature.constants, **feature.options)
    ptx = kernel.asm["ptx"]
    assert f".target sm_{arch}" in ptx and ".entry" in ptx
    if codegen.find_ptxas(arch) is None:
        pytest.skip(f"PTX made; no ptxas that knows sm_{arch} to assemble it")
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    record_property("registers", kernel.metadata.registers)
    record_property("spill_bytes", kernel.metadata.spill_bytes)
    assert kernel.metadata.registers > 0


# element type, accumulator, precision -> what the PTX must contain, from which architecture on
INSTRUCTIONS = [
    ("*fp16", "fp32", "ieee", 80, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ("*bf16", "fp32", "ieee", 80, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("*fp32", "fp32", "tf32", 80, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("*fp32", "fp32", "tf32x3", 80, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("*fp32", "fp32", "bf16x3", 80, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("*i8", "int32", "ieee", 80, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
    ("*fp64", "fp64", "ieee", 80, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    ("*fp8e4nv", "fp32", "ieee", 89, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    ("*fp8e5", "fp32", "ieee", 89, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"),
    ("*fp32", "fp32", "ieee", 999, "mma.sync"),
]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kind, out, precision, since, instruction", INSTRUCTIONS)
def test_matrix_instruction(kind, out, precision, since, instruction, arch):
    signature = {"a": kind, "b": kind, "c": "*" + {"int32": "i32"}.get(out, out)}
    constants = {
        "M": 32,
        "N": 32,
        "K": 32,
        "PRECISION": precision,
        "OUT": getattr(triton.language, {"fp32": "float32", "fp64": "float64"}.get(out, out)),
    }
    ptx = compiled(features.dot_kernel, arch, signature, constants).asm["ptx"]
    assert (instruction in ptx) is (arch >= since)
    if arch < since and out != "int32":
        assert "fma.rn" in ptx or "mma.sync" in ptx  # ordinary arithmetic, or (fp8) f16 instructions


def test_wide_accesses():
    """Aligned rows are read and written 16 bytes at a time."""
    feature = features.FEATURES["vector add"]
    ptx = compiled(feature.kernel, 80, feature.signature, {"BLOCK": 1024}, divisible=("n",)).asm["ptx"]
    assert "ld.global.v4.b32" in ptx and "st.global.v4.b32" in ptx


def test_too_old_an_architecture_is_refused():
    feature = features.FEATURES["vector add"]
    with pytest.raises(Exception, match=r"compute capability 6\.0 is not supported; the oldest is 7\.0"):
        compiled(feature.kernel, 60, feature.signature, feature.constants)
