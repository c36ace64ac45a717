"""Compile-only: every language feature for AMD architectures, down to a code object. No GPU needed.

One architecture of each family (wave32 without and with matrix instructions, both generations of those; wave64)
compiles everything; the others, which differ from those in few instructions, a sample of the features.
"""

import re
import zlib

import features
import pytest
from hip_tools import ARCHITECTURES, compiled, has_library, source_of

import triton
import triton.language as tl
from triton._C import libtriton
from triton.backends.compiler import GPUTarget
from triton.backends.hip import capabilities as chips
from triton.backends.hip import codegen, codeobject
from triton.compiler.errors import CodeGenerationError
from triton.tools import sample_kernels

FULL = ("gfx1030", "gfx1100", "gfx1201", "gfx942")
SLOW = ("reduce", "reduce, odd", "reduce, 1 warp", "reduce, 32 warps")
LIBRARY = {"print and assert": "ockl"}
CALLS = {"sin", "cos", "random numbers"}  # whose rare path is a function call, with a stack frame of 16 bytes
WIDE = {"reduce, 1 warp", "reduce, 32 warps"}  # tiles of more registers than there are
SPILLED = {"22": {("gfx1100", "reduce")}}  # what one release of LLVM keeps in memory and the one after it does not


def cases():
    for arch in ARCHITECTURES:
        for name in features.FEATURES:
            number = zlib.crc32(f"{arch} {name}".encode())
            if arch in FULL[1:2] or (name not in SLOW and (arch in FULL or number % 5 == 0)):
                yield pytest.param(arch, name, id=f"{arch}-{name}")


def options_of(arch, feature):
    most = chips.MAX_THREADS // chips.chip_of(arch).lanes
    return {**feature.options, "num_warps": min(feature.options.get("num_warps", 4), most)}


@pytest.mark.parametrize("arch, name", list(cases()))
def test_feature_compiles(arch, name, record_property):
    feature = features.FEATURES[name]
    if name in LIBRARY and not has_library(LIBRARY[name]):
        pytest.skip(f"needs {LIBRARY[name]}.bc of AMD's device libraries")
    kernel = compiled(feature.kernel, arch, feature.signature, feature.constants, **options_of(arch, feature))
    binary, metadata = kernel.asm["hsaco"], kernel.metadata
    assert binary[:4] == b"\x7fELF"
    assert binary[18:20] == (224).to_bytes(2, "little")  # EM_AMDGPU
    note = codeobject.read_note(binary, metadata.name)
    assert note.lanes == chips.chip_of(arch).lanes and note.max_threads == metadata.threads
    assert note.shared == max(metadata.shared, 1) or metadata.shared == 0
    explicit = [a for a in note.arguments if not a.kind.startswith("hidden")]
    assert len(explicit) == len(feature.signature)
    for argument, kind in zip(explicit, feature.signature.values(), strict=True):
        assert argument.kind == ("global_buffer" if kind[0] == "*" else "by_value")
    record_property("registers", metadata.registers)
    record_property("occupancy", metadata.occupancy)
    record_property("spills", metadata.spill_bytes)
    assert metadata.registers > 0 and metadata.occupancy >= 1
    if name not in WIDE and (arch, name) not in SPILLED.get(libtriton.llvm_version().split(".")[0], ()):
        assert metadata.spill_bytes == 0
        assert metadata.scratch_bytes == 0 or name in CALLS or name in LIBRARY


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_code_object_is_linked(arch):
    if codegen.find_linker() is None:
        pytest.skip("object files made; no ld.lld of LLVM 15 or newer to link them")
    feature = features.FEATURES["vector add"]
    kernel = compiled(feature.kernel, arch, feature.signature, feature.constants)
    assert codegen.is_linked(kernel.asm["hsaco"])
    # Up to LLVM 22 the unknown environment has no name.
    assert re.search(f'"amdgcn-amd-amdhsa-(unknown)?-{arch}"', kernel.asm["amdgcn"])


# element type, accumulator, precision -> what the assembly must contain, by architecture
MATRIX = {
    ("*fp16", "fp32", "ieee"): {
        "gfx1100": "v_wmma_f32_16x16x16_f16",
        "gfx1201": "v_wmma_f32_16x16x16_f16",
        "gfx90a": "v_mfma_f32_16x16x16f16",
        "gfx942": "v_mfma_f32_16x16x16_f16",
        "gfx950": "v_mfma_f32_16x16x32_f16",
    },
    ("*bf16", "fp32", "ieee"): {
        "gfx1100": "v_wmma_f32_16x16x16_bf16",
        "gfx1201": "v_wmma_f32_16x16x16_bf16",
        "gfx90a": "v_mfma_f32_16x16x16bf16_1k",
        "gfx942": "v_mfma_f32_16x16x16_bf16",
        "gfx950": "v_mfma_f32_16x16x32_bf16",
    },
    ("*fp32", "fp32", "bf16x3"): {
        "gfx1100": "v_wmma_f32_16x16x16_bf16",
        "gfx1201": "v_wmma_f32_16x16x16_bf16",
        "gfx942": "v_mfma_f32_16x16x16_bf16",
    },
    ("*fp32", "fp32", "tf32"): {"gfx942": "v_mfma_f32_16x16x8_xf32", "gfx950": "v_mfma_f32_16x16x4_f32"},
    ("*fp32", "fp32", "ieee"): {
        "gfx1100": "fma",
        "gfx1201": "fma",
        "gfx90a": "v_mfma_f32_16x16x4f32",
        "gfx942": "v_mfma_f32_16x16x4_f32",
    },
    ("*fp64", "fp64", "ieee"): {
        "gfx90a": "v_mfma_f64_16x16x4f64",
        "gfx942": "v_mfma_f64_16x16x4_f64",
        "gfx1201": "v_fma_f64",
    },
    ("*i8", "int32", "ieee"): {
        "gfx1100": "v_wmma_i32_16x16x16_iu8",
        "gfx1201": "v_wmma_i32_16x16x16_iu8",
        "gfx90a": "v_mfma_i32_16x16x16i8",
        "gfx942": "v_mfma_i32_16x16x32_i8",
        "gfx950": "v_mfma_i32_16x16x64_i8",
    },
    ("*u8", "int32", "ieee"): {"gfx1100": "v_wmma_i32_16x16x16_iu8"},
    ("*fp8e4nv", "fp32", "ieee"): {
        "gfx1100": "v_wmma_f32_16x16x16_f16",
        "gfx1201": "v_wmma_f32_16x16x16_fp8_fp8",
        "gfx942": "v_mfma_f32_16x16x16_f16",
        "gfx950": "v_mfma_f32_16x16x32_fp8_fp8",
    },
    ("*fp8e5", "fp32", "ieee"): {"gfx1201": "v_wmma_f32_16x16x16_bf8_bf8", "gfx950": "v_mfma_f32_16x16x32_bf8_bf8"},
    ("*fp8e4b8", "fp32", "ieee"): {"gfx942": "v_mfma_f32_16x16x32_fp8_fp8", "gfx1201": "v_wmma_f32_16x16x16_f16"},
    ("*fp8e5b16", "fp32", "ieee"): {"gfx942": "v_mfma_f32_16x16x32_bf8_bf8"},
}
OUT = {"fp32": tl.float32, "fp64": tl.float64, "int32": tl.int32}


@pytest.mark.parametrize(
    "kind, out, precision, arch", [(*key, arch) for key, table in MATRIX.items() for arch in table]
)
def test_matrix_instruction(kind, out, precision, arch):
    signature = {"a": kind, "b": kind, "c": "*" + {"int32": "i32"}.get(out, out)}
    constants = {"M": 32, "N": 32, "K": 32, "PRECISION": precision, "OUT": OUT[out]}
    text = compiled(features.dot_kernel, arch, signature, constants).asm["amdgcn"]
    assert MATRIX[kind, out, precision][arch] in text
    if "wmma" in MATRIX[kind, out, precision][arch] or "mfma" in MATRIX[kind, out, precision][arch]:
        assert not re.search(r"v_(pk_)?fma(c|ak)?_f32|v_dot2", text) or precision != "ieee"


LARGE = {
    ("*fp16", "fp32", "ieee"): {"gfx90a": "32x32x8f16", "gfx942": "32x32x8_f16", "gfx950": "32x32x16_f16"},
    ("*bf16", "fp32", "ieee"): {"gfx90a": "32x32x8bf16_1k", "gfx942": "32x32x8_bf16", "gfx950": "32x32x16_bf16"},
    ("*fp32", "fp32", "ieee"): {"gfx90a": "32x32x2f32", "gfx942": "32x32x2_f32", "gfx950": "32x32x2_f32"},
    ("*fp32", "fp32", "tf32"): {"gfx90a": "32x32x2f32", "gfx942": "32x32x4_xf32", "gfx950": "32x32x2_f32"},
    ("*fp32", "fp32", "bf16x3"): {"gfx90a": "32x32x8bf16_1k", "gfx942": "32x32x8_bf16", "gfx950": "32x32x16_bf16"},
    ("*i8", "int32", "ieee"): {"gfx90a": "32x32x8i8", "gfx942": "32x32x16_i8", "gfx950": "32x32x32_i8"},
    ("*fp8e4nv", "fp32", "ieee"): {"gfx90a": "32x32x8f16", "gfx942": "32x32x8_f16", "gfx950": "32x32x16_fp8_fp8"},
    ("*fp8e5b16", "fp32", "ieee"): {"gfx942": "32x32x16_bf8_bf8", "gfx950": "32x32x16_f16"},
    ("*fp64", "fp64", "ieee"): {"gfx90a": "16x16x4f64", "gfx942": "16x16x4_f64", "gfx950": "16x16x4_f64"},
}


def matrix_mnemonics(text):
    return set(re.findall(r"v_mfma_\w+", text))


@pytest.mark.parametrize("kind, out, precision, arch", [(*key, arch) for key, table in LARGE.items() for arch in table])
def test_large_tiles_take_large_instructions(kind, out, precision, arch):
    """Where every warp has 32x32 of the result; ``matrix_instr_nonkdim`` has the last word."""
    signature = {"a": kind, "b": kind, "c": "*" + {"int32": "i32"}.get(out, out)}
    constants = {"M": 64, "N": 32, "K": 32, "PRECISION": precision, "OUT": OUT[out]}
    kernel = compiled(features.dot_kernel, arch, signature, constants, num_warps=2)
    wanted = LARGE[kind, out, precision][arch]
    name = "_".join(("v_mfma", {"fp64": "f64", "int32": "i32"}.get(out, "f32"), wanted))
    assert matrix_mnemonics(kernel.asm["amdgcn"]) == {name}
    assert kernel.metadata.spill_bytes == 0 and kernel.metadata.scratch_bytes == 0
    kernel = compiled(features.dot_kernel, arch, signature, constants, num_warps=2, matrix_instr_nonkdim=16)
    assert all("16x16x" in found for found in matrix_mnemonics(kernel.asm["amdgcn"]))
    few = compiled(features.dot_kernel, arch, signature, constants, num_warps=4)  # one warp would have nothing to do
    assert all("16x16x" in found for found in matrix_mnemonics(few.asm["amdgcn"]))


@pytest.mark.parametrize("a, b", [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e2m1", "e5m2")])
@pytest.mark.parametrize("m, shape", [(32, "16x16x128"), (128, "32x32x64")])
def test_scaled_products_have_an_instruction(a, b, m, shape):
    """On CDNA 4; cbsz and blgp name the formats of b and a (b comes first), zeros are left out."""
    signature = {"a": "*u8", "a_scale": "*u8", "b": "*u8", "b_scale": "*u8", "c": "*fp32"}
    constants = {"M": m, "N": 32, "K": 256, "A": a, "B": b}
    kernel = compiled(sample_kernels.scaled_kernel, "gfx950", signature, constants)
    lines = [line for line in kernel.asm["amdgcn"].splitlines() if "v_mfma" in line]
    assert len(lines) == 256 // int(shape.split("x")[2])
    for line in lines:
        assert f"v_mfma_scale_f32_{shape}_f8f6f4" in line
        for word, form in (("cbsz", b), ("blgp", a)):
            number = {"e4m3": 0, "e5m2": 1, "e2m1": 4}[form]
            assert (f"{word}:{number}" in line) if number else word not in line
    assert kernel.metadata.spill_bytes == 0 and kernel.metadata.scratch_bytes == 0


def test_scaled_products_without_an_instruction_are_written_out():
    """Other processors, operands that are not scaled floats of 8 or 4 bits."""
    signature = {"a": "*u8", "a_scale": "*u8", "b": "*u8", "b_scale": "*u8", "c": "*fp32"}
    constants = {"M": 32, "N": 32, "K": 64, "A": "e4m3", "B": "e2m1"}
    text = compiled(sample_kernels.scaled_kernel, "gfx942", signature, constants).asm["amdgcn"]
    assert matrix_mnemonics(text) == {"v_mfma_f32_16x16x16_bf16"}
    mixed = features.FEATURES["dot_scaled of e5m2 and bf16"]
    text = compiled(mixed.kernel, "gfx950", mixed.signature, mixed.constants).asm["amdgcn"]
    assert matrix_mnemonics(text) == {"v_mfma_f32_16x16x32_bf16"}


def test_eight_bit_floats_fill_the_wide_instruction():
    """CDNA 4: products without scales whose K is long enough go twice as fast."""
    signature = {"a": "*fp8e5", "b": "*fp8e4nv", "c": "*fp32"}
    constants = {"M": 32, "N": 32, "K": 128, "PRECISION": "ieee", "OUT": tl.float32}
    text = compiled(features.dot_kernel, "gfx950", signature, constants).asm["amdgcn"]
    assert matrix_mnemonics(text) == {"v_mfma_f32_16x16x128_f8f6f4"} and "blgp:1" in text and "cbsz" not in text


NEIGHBOURS = [
    ("*fp16", "gfx1030", "v_dot2c?_f32_f16"),
    ("*fp8e5", "gfx1030", "v_dot2c?_f32_f16"),
    ("*i8", "gfx1030", "v_dot4c?_i32_i8"),
    ("*u8", "gfx1030", "v_dot4_u32_u8"),
    ("*u8", "gfx90a", "v_dot4_u32_u8"),
    ("*u8", "gfx942", "v_dot4_u32_u8"),
    ("*u8", "gfx950", "v_dot4_u32_u8"),
]


@pytest.mark.parametrize("kind, arch, wanted", NEIGHBOURS)
def test_without_matrix_instruction_neighbours_are_multiplied_together(kind, arch, wanted):
    whole = kind in ("*i8", "*u8")
    signature = {"a": kind, "b": kind, "c": "*i32" if whole else "*fp32"}
    constants = {"M": 32, "N": 32, "K": 64, "PRECISION": "ieee", "OUT": tl.int32 if whole else tl.float32}
    text = compiled(features.dot_kernel, arch, signature, constants).asm["amdgcn"]
    assert re.search(wanted, text) and not re.search("wmma|mfma|v_(pk_)?fma", text)


def test_other_types_are_multiplied_in_ordinary_arithmetic():
    feature = features.FEATURES["dot of bf16"]
    text = compiled(feature.kernel, "gfx1030", feature.signature, feature.constants).asm["amdgcn"]
    assert not re.search("wmma|v_dot", text) and re.search("v_(pk_)?fma", text)


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201", "gfx90a", "gfx942", "gfx950"])
def test_wide_accesses(arch):
    """Aligned rows are read and written 16 bytes at a time, also through shared memory."""
    feature = features.FEATURES["vector add"]
    text = compiled(feature.kernel, arch, feature.signature, {"BLOCK": 1024}, divisible=("n",)).asm["amdgcn"]
    assert re.search(r"global_load_(dwordx4|b128)", text) and re.search(r"global_store_(dwordx4|b128)", text)
    dot = features.FEATURES["dot of fp16"]
    text = compiled(dot.kernel, arch, dot.signature, {**dot.constants, "K": 128}).asm["amdgcn"]
    if arch != "gfx1030":
        assert re.search(r"ds_(read|load)_b128", text)


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1201", "gfx942"])
def test_lanes_talk_without_shared_memory(arch):
    """A reduction within a wave uses DPP moves and row exchanges."""
    feature = features.FEATURES["reduce, 1 warp"]
    text = compiled(features.reduce_row_kernel, arch, feature.signature, {"N": 64}, num_warps=1).asm["amdgcn"]
    assert "quad_perm:[1,0,3,2]" in text
    assert (
        ("row_xmask:8" in text and "v_permlanex16" in text)
        if arch != "gfx942"
        else ("row_mirror" in text and "ds_swizzle" in text)
    )


def matmul(arch, kind="*fp16", tile=(64, 64, 32), **options):
    out, acc = ("*i32", tl.int32) if kind == "*i8" else ("*fp32", tl.float32)
    signature = {"a": kind, "b": kind, "c": out, "m": "i32", "n": "i32", "k": "i32"}
    constants = {**dict(zip("MNK", tile, strict=True)), "ACC": acc}
    return compiled(sample_kernels.matmul_kernel, arch, signature, constants, ("m", "n", "k"), **options)


def attention(arch, kind="*fp16", tile=(128, 32, 64), **options):
    signature = {**dict.fromkeys("qkvo", kind), "n": "i32", "scale": "fp32"}
    constants = {**dict(zip("MND", tile, strict=True)), "CAUSAL": True}
    return compiled(sample_kernels.attention_kernel, arch, signature, constants, ("n",), **options)


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201"])
def test_loads_run_ahead_of_products(arch):
    """With two stages the loop begins to load the next tiles before its products, and stores them after."""
    texts = []
    for stages in (1, 2):
        kernel = matmul(arch, num_stages=stages)
        texts.append(kernel.asm["llir"])
        assert kernel.metadata.spill_bytes == 0 and kernel.metadata.scratch_bytes == 0
    loops = [text[text.index("\nfor.") :].split("\nfor.end")[0] for text in texts]
    first_product = [loop.index("llvm.amdgcn.fdot2" if arch == "gfx1030" else "llvm.amdgcn.wmma") for loop in loops]
    last_load = [loop.rindex("load <4 x i32>, ptr addrspace(1)") if "load <4 x i32>" in loop else -1 for loop in loops]
    last_write = [loop.rindex("store <4 x i32>") if "store <4 x i32>" in loop else -1 for loop in loops]
    assert last_load[0] == last_write[0] == -1 and 0 < last_load[1] < first_product[1]
    if arch != "gfx1030":  # whose products are loops of their own: copies are written before a block ends
        assert first_product[1] < last_write[1]


def loop_of(text, mark):
    """The instructions from the label before ``mark``'s first use after a label to the jump back, without comments."""
    lines = [line.split(";")[0].strip() for line in text.splitlines()]
    at = next(i for i, line in enumerate(lines) if mark in line)
    start = max(i for i in range(at) if lines[i].startswith(".LBB"))
    label = lines[start].rstrip(":")
    end = next(i for i in range(at, len(lines)) if lines[i].startswith("s_cbranch") and lines[i].endswith(label))
    return lines[start:end]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("kind", ["*fp16", "*bf16", "*i8", "*fp32"])
@pytest.mark.parametrize("stages", [2, 3])
def test_loads_write_to_shared_memory(arch, kind, stages):
    """CDNA: copies ahead take no registers, and only those that the turn needs are waited for."""
    size = {"*fp32": 4, "*i8": 1}.get(kind, 2)
    kernel = matmul(arch, kind, (64, 64, 64 // size), num_stages=stages)
    assert kernel.metadata.spill_bytes == 0 and kernel.metadata.scratch_bytes == 0
    loop = loop_of(kernel.asm["amdgcn"], "v_mfma")
    name = {"gfx90a": "global_load_dword .* lds", "gfx942": "global_load_lds_dword "}
    copies = [i for i, line in enumerate(loop) if re.match(name.get(arch, "global_load_lds_dwordx4 "), line)]
    assert len(copies) == 2 * 64 * 64 // (256 * (16 if arch == "gfx950" else 4))  # by 256 threads
    assert not any(line.startswith(("ds_write", "global_load_dwordx", "buffer_load")) for line in loop)
    barrier = next(i for i, line in enumerate(loop) if line == "s_barrier")
    waits = [line for line in loop[:barrier] if "vmcnt" in line]
    assert len(waits) == 1 and f"vmcnt({(stages - 2) * len(copies)})" in waits[0]
    assert barrier < copies[0] and not any("vmcnt" in line for line in loop[barrier:])
    reads = [i for i, line in enumerate(loop) if line.startswith("ds_read")]
    assert reads and barrier < reads[0]


def test_loads_to_shared_memory_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "0")
    assert "lds" not in "".join(loop_of(matmul("gfx942").asm["amdgcn"], "v_mfma"))
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "1")
    assert "global_load_lds" in matmul("gfx942").asm["amdgcn"]


WARPS = {"gfx90a": 4, "gfx942": 4, "gfx950": 4}
TUNED_MATRIX = {"gfx90a": "v_mfma_f32_32x32x8", "gfx942": "v_mfma_f32_32x32x8_", "gfx950": "v_mfma_f32_32x32x16_"}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kind", ["*fp16", "*bf16"])
def test_tuned_kernels_stay_in_registers(arch, kind, record_property):
    """Matrix product and attention with the tiles one would run: no private memory, wide accesses, the large matrix
    instructions."""
    warps = WARPS.get(arch, 8)
    for name, kernel in (
        ("matmul", matmul(arch, kind, (128, 128, 32), num_warps=warps)),
        ("attention", attention(arch, kind, (128, 32, 64), num_warps=warps)),
    ):
        metadata, text = kernel.metadata, kernel.asm["amdgcn"]
        record_property(name, f"{metadata.registers} registers, occupancy {metadata.occupancy}")
        assert metadata.spill_bytes == 0 and metadata.scratch_bytes == 0, name
        assert not re.search(r"scratch_(load|store)|buffer_(load|store)\w* .*offset:\d+$", text), name
        assert metadata.occupancy >= 2 or metadata.shared > 32768, name
        assert re.search(r"global_load_(dwordx4|b128|lds_dword|dword .* lds)", text), name
        if arch == "gfx1030":
            assert ("v_dot2" in text) == (kind == "*fp16")
            continue
        assert re.search(r"ds_(read|load)_b128", text), name
        form = "f16" if kind == "*fp16" else "bf16"
        assert TUNED_MATRIX.get(arch, "v_wmma_f32_16x16x16_") + form in text, name


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201", "gfx90a", "gfx942", "gfx950"])
def test_buffers_check_bounds(arch):
    """Pointers that promise their range are read and written through buffers; masks need no branches then."""
    source = source_of(
        features.add_kernel, {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32"}, {"BLOCK": 1024}, ("n",)
    )
    for path in source.attrs:
        if path < (3,):
            source.attrs[path].append(("tt.pointer_range", 32))
    text = triton.compile(source, target=GPUTarget("hip", arch, 0)).asm["amdgcn"]
    assert re.search(r"buffer_load_(dwordx4|b128)", text) and re.search(r"buffer_store_(dwordx4|b128)", text)
    assert "global_load" not in text and "exec" not in text


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_values_of_16_bits_take_whole_registers(arch):
    """Instructions that name half registers (``v0.l``) are unknown to many tools."""
    signature = {"x": "*fp16", "z": "*fp16"}
    constants = {"OP": "max", "AXIS": 0, "M": 8, "N": 64}
    text = compiled(sample_kernels.reduce_kernel, arch, signature, constants).asm["amdgcn"]
    assert "_f16" in text and not re.search(r"\bv\d+\.[lh]\b", text)


def test_options():
    feature = features.FEATURES["vector add"]
    text = compiled(
        feature.kernel, "gfx942", feature.signature, {"BLOCK": 1024}, waves_per_eu=2, llvm_fn_attrs="amdgpu-ieee=true"
    ).asm["llir"]
    assert '"amdgpu-waves-per-eu"="2"' in text and '"amdgpu-ieee"="true"' in text
    assert '"amdgpu-flat-work-group-size"="256,256"' in text
    with pytest.raises(ValueError, match="num_warps must be at most 16 on gfx942, got 32"):
        compiled(feature.kernel, "gfx942", feature.signature, {"BLOCK": 1024}, num_warps=32)
    with pytest.raises(ValueError, match="architecture 'gfx803' is not supported; supported are gfx1030"):
        compiled(feature.kernel, "gfx803", feature.signature, {"BLOCK": 1024})


def test_device_functions_are_asked_for_by_name(monkeypatch, tmp_path):
    """A function of the device library: linked when it is there, else named in the error."""
    signature = {"x": "*fp64", "z": "*fp64"}
    if has_library("ocml"):
        kernel = compiled(features.library_kernel, "gfx942", signature, {"N": 64})
        assert "\n__ocml_tgamma_f64:" in kernel.asm["amdgcn"]
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    monkeypatch.setattr("triton.backends.hip.codegen.find_bitcode", _nothing)
    with pytest.raises(CodeGenerationError, match=r"library_kernel.*needs ocml\.bc"):
        compiled(features.library_kernel, "gfx90a", signature, {"N": 64})


def _nothing(name):
    raise FileNotFoundError(f"this kernel needs {name}.bc")


def test_occupancy():
    assert [chips.occupancy("gfx90a", n) for n in (64, 65, 128, 512)] == [8, 7, 4, 1]
    assert [chips.occupancy("gfx1100", n) for n in (96, 97, 256)] == [16, 12, 5]
    assert [chips.occupancy("gfx942", 64, shared, 4) for shared in (1024, 16384, 40000, 65536)] == [8, 4, 1, 1]
    assert [chips.occupancy("gfx1201", 96, shared, 8) for shared in (4096, 32768, 65536)] == [16, 8, 4]
    assert (
        chips.isa_version("gfx90a") == 9010
        and chips.isa_version("gfx942") == 9402
        and chips.isa_version("gfx1201") == 12001
    )


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_too_much_shared_memory_is_a_lack_of_resources(arch):
    """Tuners skip a configuration for it, as they do on NVIDIA, and it is no failure of the compiler."""
    with pytest.raises(triton.OutOfResources, match=f"shared memory of {arch}: required [0-9]+, the limit is 65536"):
        matmul(arch, "*fp32", tile=(128, 256, 64))
