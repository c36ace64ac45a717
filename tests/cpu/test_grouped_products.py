"""Products of narrow numbers by instructions that multiply several at once, and without them."""

from __future__ import annotations

import numpy as np
import pytest
from tiles import Options, build, compare, kernel, random

from triton._C import libtriton
from triton.backends.cpu import codegen, lowering
from triton.backends.cpu.capabilities import Processor, host, processor
from triton.ir import parse_module

SIZES = [(4, 16, 4), (16, 16, 32), (33, 17, 64), (7, 100, 12), (1, 8, 8), (5, 130, 6), (20, 33, 7)]
INTEGERS = [("i8", "i8"), ("u8", "u8"), ("i8", "u8"), ("u8", "i8"), ("i16", "i16"), ("i16", "i8"), ("u16", "u8")]


def without(*names: str) -> Processor:
    """The host, less some features."""
    cpu = host()
    kept = ",".join(f for f in cpu.features.split(",") if f.lstrip("+-") not in names)
    return Processor(cpu.triple, "x86-64" if names else cpu.cpu, kept + "".join(f",-{name}" for name in names))


def has(cpu: Processor) -> bool:
    """Whether the host can run code for ``cpu``."""
    return all(host().has(f[1:]) for f in cpu.features.split(",") if f.startswith("+"))


VNNI = ("avx512vnni", "avxvnni")
PROCESSORS = {
    "host": host(),
    "host without dot products": without(*VNNI, "avx512bf16"),
    **{level: processor(level) for level in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")},
}


def product(left: str, right: str, acc: str, m: int, n: int, k: int, batch: str = "") -> str:
    inputs = [f"{batch}{m}x{k}x{left}", f"{batch}{k}x{n}x{right}", f"{batch}{m}x{n}x{acc}"]
    return kernel(inputs, f"%r = dot %a, %b, %c : {inputs[2]}", [("%r", inputs[2])])


def extremes(type: str, rng: np.random.Generator) -> np.ndarray:
    """Integers over the whole range, the ends most of the time."""
    data = random(type, rng, -(1 << 62), 1 << 62)
    info = np.iinfo(data.dtype)
    return np.where(rng.integers(0, 3, data.size) == 0, data, rng.choice([info.min, info.max], data.size)).astype(
        data.dtype
    )


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("left, right", INTEGERS)
def test_integers_are_exact(name: str, left: str, right: str) -> None:
    cpu = PROCESSORS[name]
    if not has(cpu):
        pytest.skip("the host lacks an instruction set")
    for i, (m, n, k) in enumerate(SIZES):
        rng = np.random.default_rng(i)
        args = [extremes(f"{m}x{k}x{left}", rng), extremes(f"{k}x{n}x{right}", rng), extremes(f"{m}x{n}xi32", rng)]
        compare(product(left, right, "i32", m, n, k), [*args, np.zeros(m * n, np.int32)], cpu=cpu)


@pytest.mark.parametrize("left, right", [("i8", "i8"), ("u8", "i8"), ("i16", "i16")])
def test_batches(left: str, right: str) -> None:
    rng = np.random.default_rng(0)
    m, n, k = 9, 40, 8
    args = [extremes(f"3x{m}x{k}x{left}", rng), extremes(f"3x{k}x{n}x{right}", rng), extremes(f"3x{m}x{n}xi32", rng)]
    compare(product(left, right, "i32", m, n, k, "3x"), [*args, np.zeros(3 * m * n, np.int32)])


@pytest.mark.parametrize("type", ["bf16", "f8e4m3", "f8e5m2", "f8e4b8", "f8e5b16", "f8e4b15"])
@pytest.mark.parametrize("name", PROCESSORS)
def test_narrow_floats(type: str, name: str) -> None:
    cpu = PROCESSORS[name]
    if not has(cpu):
        pytest.skip("the host lacks an instruction set")
    for i, (m, n, k) in enumerate(SIZES):
        rng = np.random.default_rng(i)
        args = [random(f"{m}x{k}x{type}", rng), random(f"{k}x{n}x{type}", rng), random(f"{m}x{n}xf32", rng)]
        compare(product(type, type, "f32", m, n, k), [*args, np.zeros(m * n, np.float32)], ulps=8, cpu=cpu)


@pytest.mark.parametrize("left", ["inf", "nan"])
def test_special_values_of_bf16(left: str) -> None:
    bits = {"inf": 0x7F80, "nan": 0x7FC0}[left]
    a, b = np.full(4 * 8, 0x3F80, np.uint16), np.full(8 * 16, 0x4000, np.uint16)
    a[3] = bits
    out = compare(product("bf16", "bf16", "f32", 4, 16, 8), [a, b, np.zeros(64, np.float32), np.zeros(64, np.float32)])
    rows = out[3].reshape(4, 16)
    assert (np.isnan(rows[0]) if left == "nan" else rows[0] == np.inf).all() and (rows[1:] == 16).all()


@pytest.mark.parametrize("type, one, tiny", [("bf16", 0x3F80, 0x0040)])
def test_denormals_are_kept_without_fusion(type: str, one: int, tiny: int) -> None:
    a, b = np.full(4 * 8, one, np.uint16), np.full(8 * 16, tiny, np.uint16)
    args = [a, b, np.zeros(64, np.float32), np.zeros(64, np.float32)]
    out = compare(product(type, type, "f32", 4, 16, 8), args, options=Options(enable_fp_fusion=False))
    assert (out[3] == 8 * 2.0**-127).all()


def assembly(source: str, cpu: Processor) -> str:
    lowered = lowering.lower(parse_module(source), cpu, Options())
    return str(codegen.compile(lowered.text, cpu, ("asm",))["asm"])


X86 = "x86_64-unknown-linux-gnu"
V4 = processor("x86-64-v4").features
FOUND = [
    ("i8", "i32", Processor(X86, "x86-64-v4", V4 + ",+avx512vnni"), "vpdpbusd"),
    ("u8", "i32", Processor(X86, "x86-64-v4", V4 + ",+avx512vnni"), "vpdpwssd"),
    ("i8", "i32", Processor(X86, "x86-64-v3", processor("x86-64-v3").features + ",+avxvnni"), "vpdpbusd"),
    ("i8", "i32", Processor(X86, "x86-64-v4", V4), "vpmaddwd"),
    ("i8", "i32", processor("x86-64-v3"), "vpmaddwd"),
    ("i8", "i32", processor("x86-64"), "pmaddwd"),
    ("bf16", "f32", Processor(X86, "x86-64-v4", V4 + ",+avx512bf16"), "vdpbf16ps"),
    ("f8e4m3", "f32", Processor(X86, "x86-64-v4", V4 + ",+avx512bf16"), "vdpbf16ps"),
    ("bf16", "f32", Processor(X86, "x86-64-v4", V4), "vfmadd"),
    ("bf16", "f32", processor("x86-64"), "mulps"),
]


@pytest.mark.parametrize("type, acc, cpu, instruction", FOUND)
def test_instructions(type: str, acc: str, cpu: Processor, instruction: str) -> None:
    assert instruction in assembly(product(type, type, acc, 16, 64, 16), cpu)


@pytest.mark.skipif("AArch64" not in libtriton.targets(), reason="this LLVM has no AArch64")
@pytest.mark.parametrize("type, acc", [("i8", "i32"), ("u8", "i32"), ("i16", "i32"), ("bf16", "f32"), ("f32", "f32")])
def test_other_processors_fall_back(type: str, acc: str) -> None:
    cpu = Processor("aarch64-unknown-linux-gnu", "generic", "+neon")
    lowered = lowering.lower(parse_module(product(type, type, acc, 16, 64, 16)), cpu, Options())
    assert "x86" not in lowered.text
    made = codegen.compile(lowered.text, cpu)["obj"]
    assert int.from_bytes(made[18:20], "little") == 183  # EM_AARCH64


def test_operands_that_no_trip_changes_are_packed_once() -> None:
    body = """
%z = constant {value = 0} : i32
%t = constant {value = 5} : i32
%s = constant {value = 1} : i32
%r = for %z, %t, %s, %c : 8x32xi32 (%i: i32, %x: 8x32xi32) {
  %y = dot %a, %b, %x : 8x32xi32
  yield %y
}
"""
    source = kernel(["8x16xi8", "16x32xi8", "8x32xi32"], body, [("%r", "8x32xi32")])
    rng = np.random.default_rng(0)
    args = [extremes("8x16xi8", rng), extremes("16x32xi8", rng), extremes("8x32xi32", rng), np.zeros(256, np.int32)]
    compare(source, args)
    assert build(source).text.index("group.") < build(source).text.index("for.")
