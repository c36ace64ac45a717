"""What the installed variant can do: those for GPUs compile for them with the tools they brought, without a GPU.

Where the GPU is there, the kernel of triton.tools.doctor runs on it too. Skipped outside a conda environment.
"""

import json
import pathlib
import subprocess
import sys

import pytest

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

RECORDS = sorted(pathlib.Path(sys.prefix, "conda-meta").glob("triton-3*.json"))
pytestmark = pytest.mark.skipif(not RECORDS, reason="triton is not installed as a conda package here")
VARIANT = json.loads(RECORDS[0].read_text())["build"].split("_")[0] if RECORDS else ""
LIBRARY = pathlib.Path(sys.prefix, "Library") if sys.platform == "win32" else pathlib.Path(sys.prefix)
ELF = b"\x7fELF"
cuda_only = pytest.mark.skipif(not VARIANT.startswith("cuda"), reason=f"the installed variant is {VARIANT}")
hip_only = pytest.mark.skipif(VARIANT != "hip", reason=f"the installed variant is {VARIANT}")


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2.5, mask=at < n)


def compiled(target: GPUTarget) -> dict:
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return triton.compile(ASTSource(scale, signature, {(3,): 256}), target=target).asm


@cuda_only
@pytest.mark.parametrize("arch", [80, 90])
def test_ptx_and_cubin(arch):
    made = compiled(GPUTarget("cuda", arch, 32))
    assert f".target sm_{arch}" in made["ptx"] and "st.global" in made["ptx"]
    # PTX takes this place where no ptxas is found, so the tool of the environment ran.
    assert made["cubin"][:4] == ELF


@cuda_only
def test_tools_of_the_environment_are_the_ones_used():
    from triton.backends.cuda.codegen import find_libdevice, find_ptxas, ptxas_release

    ptxas = find_ptxas(90)
    assert ptxas is not None and ptxas.is_relative_to(LIBRARY), ptxas
    assert ptxas_release(str(ptxas)).split(".")[0] == VARIANT.removeprefix("cuda")[:2]
    assert find_libdevice(90).is_relative_to(LIBRARY)


@hip_only
@pytest.mark.parametrize("arch, lanes", [("gfx1100", 32), ("gfx942", 64)])
def test_code_object(arch, lanes):
    made = compiled(GPUTarget("hip", arch, lanes))
    assert made["hsaco"][:4] == ELF
    # A shared object, so that it was linked.
    assert int.from_bytes(made["hsaco"][16:18], "little") == 3
    assert arch in made["amdgcn"]


@hip_only
def test_linker_and_bitcode_of_the_environment_are_the_ones_used():
    from triton.backends.hip.codegen import find_linker
    from triton.backends.tools import find_bitcode

    command = find_linker()
    assert command is not None and pathlib.Path(command[0]).is_relative_to(LIBRARY), command
    if sys.platform == "linux":
        assert find_bitcode("ocml").is_relative_to(LIBRARY)


def test_cpu_variant_brings_no_vendor_tools():
    needs = {need.split()[0] for need in json.loads(RECORDS[0].read_text())["depends"]}
    vendor = {"__cuda", "cuda-version", "cuda-nvcc-tools", "cuda-nvvm-tools", "lld", "rocm-device-libs"} & needs
    assert bool(vendor) is (VARIANT != "cpu"), vendor


def test_doctor_finds_no_problem():
    done = subprocess.run([sys.executable, "-m", "triton.tools.doctor"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result right" in done.stdout
