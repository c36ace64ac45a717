"""What becomes of matrix products in loops for compute capability 9.0: the laid-out tile IR, run by the interpreter.

The interpreter lets copies land, and products read their operands, as late as they may, and fills slots with NaNs
first: a product which reads a slot too early, or one that holds another trip's tile by then, gives wrong numbers.
"""

import numpy as np
import pytest
from test_architectures import compiled

import triton
import triton.language as tl
from triton import interpreter
from triton.ir import parse_module


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n, d = tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32) + 1.0
    for start in range(0, length, BN):
        k = tl.load(k_ptr + (start + n)[None, :] * D + d[:, None])
        scores = tl.dot(q, k) * scale
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(powers, axis=1)
        acc = acc * shrink[:, None]
        v = tl.load(v_ptr + (start + n)[:, None] * D + d[None, :])
        acc = tl.dot(powers.to(v.dtype), v, acc)
        top = new_top
    tl.store(out_ptr + m[:, None] * D + d[None, :], acc)
    tl.store(out_ptr + tl.num_programs(0) * BM * D + m, total)


def run_laid_out(kernel, args, grid):
    interpreter.run(parse_module(kernel.asm["ttgir"]), args, grid)


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_attention_reads_the_right_slots(warps, stages, trips):
    D, BM, BN, rows = 32, 64 * warps // 4, 32, 128
    signature = {"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "out_ptr": "*fp32", "scale": "fp32"}
    signature |= {"length": "i32"}
    constants = {"D": D, "BM": BM, "BN": BN}
    kernel = compiled(attention_kernel, 90, signature, constants, num_warps=warps, num_stages=stages)
    assert kernel.asm["ttgir"].count("dot_shared") == 2
    rng = np.random.default_rng(trips)
    q = rng.normal(size=(rows, D)).astype(np.float16)
    k, v = (rng.normal(size=(trips * BN + 1, D)).astype(np.float16) for _ in range(2))
    k[-1] = v[-1] = np.nan  # one row behind what may be read
    out = np.full(rows * D + rows, np.nan, np.float32)
    pointers = [x.ctypes.data for x in (q, k, v, out)]
    run_laid_out(kernel, [*pointers, 0.25, trips * BN], (rows // BM,))
    scores = q.astype(np.float64) @ k[:-1].astype(np.float64).T * 0.25
    if trips == 0:
        assert (out[: rows * D] == 1).all() and (out[rows * D :] == 0).all()
        return
    powers = np.exp2(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out[rows * D :], powers.sum(axis=1), rtol=1e-3)
    np.testing.assert_allclose(out[: rows * D].reshape(rows, D), powers @ v[:-1].astype(np.float64), atol=2e-2)


@triton.jit
def product_kernel(
    a, b, c, trips, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OUT: tl.constexpr
):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), OUT)
    for start in range(0, trips * BK, BK):
        x = tl.load(a + m[:, None] * am + (start + k)[None, :] * ak)
        y = tl.load(b + (start + k)[:, None] * bk + n[None, :] * bn)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


KINDS = {"fp16": np.float16, "fp32": np.float32, "fp8e4nv": np.uint8, "i8": np.int8, "u8": np.uint8}


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("kind", KINDS)
def test_operands_lie_as_the_instruction_reads_them(kind, layout):
    """16 bits either way, bytes with K inside only, 32-bit elements turned on their way into shared memory."""
    M, N, K, trips = 64, 32, 64, 3
    out = {"i8": "i32", "u8": "i32"}.get(kind, "fp32")
    signature = {"a": f"*{kind}", "b": f"*{kind}", "c": f"*{out}", "trips": "i32"}
    signature |= dict.fromkeys(("am", "ak", "bk", "bn"), "i32")
    ones = {"ak" if layout[0] == "N" else "am": 1, "bn" if layout[1] == "N" else "bk": 1}
    for name in ones:
        del signature[name]
    constants = {"BM": M, "BN": N, "BK": K, "OUT": tl.int32 if out == "i32" else tl.float32, **ones}
    kernel = compiled(product_kernel, 90, signature, constants, ("am", "ak", "bk", "bn"))
    wide = kind in ("fp16", "fp32") or layout[1] == "T"
    assert ("wgmma.mma_async" in kernel.asm["ptx"]) is wide
    assert kernel.asm["ttgir"].count("async_copy") >= 4  # both operands, before the loop and in it
    rng = np.random.default_rng(1)
    dtype = KINDS[kind]
    a, b = (rng.integers(0, 100, shape).astype(dtype) for shape in ((M, trips * K), (trips * K, N)))
    x, y = (v.astype(np.int64) for v in (a, b))
    if kind == "fp8e4nv":
        values = np.array([0, 1, 0.5, -2, 3, -1.5])
        codes = np.array([0x00, 0x38, 0x30, 0xC0, 0x44, 0xBC], np.uint8)
        a, b = codes[a % 6], codes[b % 6]
        x, y = values[x % 6], values[y % 6]
    left, right = (np.asfortranarray(v) if order == "T" else v for v, order in zip((a, b), layout, strict=True))
    strides = [s // left.itemsize for s in (*left.strides, *right.strides)]
    c = np.full((M, N), -1, np.int32 if out == "i32" else np.float32)
    arguments = [left.ctypes.data, right.ctypes.data, c.ctypes.data, trips, *(s for s in strides if s != 1)]
    run_laid_out(kernel, arguments, (1,))
    np.testing.assert_array_equal(c, x @ y)


@triton.jit
def widened_kernel(a, b, c, trips, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, trips * BK, BK):
        x = tl.load(a + m[:, None] * (trips * BK) + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * BN + n[None, :])
        acc = tl.dot(x, y.to(tl.float16), acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


def test_an_operand_made_in_the_loop_waits_until_the_product_before_has_read_its_own():
    M, N, K, trips = 64, 32, 64, 4
    signature = {"a": "*fp16", "b": "*i8", "c": "*fp32", "trips": "i32"}
    kernel = compiled(widened_kernel, 90, signature, {"BM": M, "BN": N, "BK": K}, ("trips",))
    assert "shared_store" in kernel.asm["ttgir"] and "dot_shared" in kernel.asm["ttgir"]
    rng = np.random.default_rng(2)
    a = rng.integers(-9, 9, (M, trips * K)).astype(np.float16)
    b, c = rng.integers(-9, 9, (trips * K, N)).astype(np.int8), np.full((M, N), np.nan, np.float32)
    run_laid_out(kernel, [a.ctypes.data, b.ctypes.data, c.ctypes.data, trips], (1,))
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
