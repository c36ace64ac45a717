"""One small kernel for each feature of the language, with what is needed to compile it without running it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl
from triton.tools.sample_kernels import MATHEMATICS, cast_kernel, math_kernel, scaled_kernel


@dataclass(frozen=True)
class Feature:
    kernel: Any
    signature: dict[str, str]
    constants: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def integer_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(z + i, (a // b) + (a % b) * (a << 3) - (b >> 1) ^ (a & b) | tl.umulhi(a, b))


@triton.jit
def reduce_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(z + tl.arange(0, N), tl.sum(a, 0) + tl.max(a, 0) + tl.argmin(a, 0))


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def scan_kernel(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, recurrence)
    tl.store(z + i, b + tl.cumsum(a, 0, reverse=True))


@triton.jit
def sort_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + at, tl.sort(tl.load(x + at), descending=True))


@triton.jit
def histogram_kernel(x, z, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(z + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@triton.jit
def gather_kernel(x, index, z, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + at, tl.gather(tl.load(x + at), tl.load(index + at), 1))


@triton.jit
def shape_kernel(x, z, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    b = tl.join(tl.trans(a), tl.trans(a) + 1)
    lo, hi = tl.split(b)
    c = tl.cat(tl.reshape(lo, (M * N,)), tl.ravel(tl.flip(hi, 1)), can_reorder=True)
    tl.store(z + tl.arange(0, 2 * M * N), c)


@triton.jit
def dot_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision=PRECISION, out_dtype=OUT))


@triton.jit
def batched_kernel(a, b, c, B: tl.constexpr, N: tl.constexpr):
    z, m, n = tl.arange(0, B)[:, None, None], tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    at = z * N * N + m * N + n
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def atomic_kernel(x, z, i, N: tl.constexpr, OP: tl.constexpr):
    at = tl.load(i + tl.arange(0, N))
    v = tl.load(x + tl.arange(0, N))
    if OP == "add":
        old = tl.atomic_add(z + at, v, mask=v > 0, sem="relaxed", scope="cta")
    elif OP == "max":
        old = tl.atomic_max(z + at, v)
    elif OP == "xchg":
        old = tl.atomic_xchg(z + at, v, scope="sys")
    else:
        old = tl.atomic_cas(z + at, v, v + 1, sem="acquire")
    tl.store(x + tl.arange(0, N), old)


@triton.jit
def poll_kernel(flag, x, z, timeout, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i))
    tl.atomic_xchg(flag, 1)
    a = tl.atomic_poll(flag + 1, 1)
    b = tl.atomic_poll(flag + 2, 2, sem="relaxed", scope="sys", timeout_ns=timeout)
    if a & b:
        tl.store(z + i, tl.load(z + i + 1))


@triton.jit
def loop_kernel(x, z, n, step, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.zeros((N,), tl.float32)
    for j in tl.range(n, 0, step, num_stages=2):
        k = j
        while k > 0:
            a += tl.load(x + i + k)
            k = k // 2
        if j % 3 == 0:
            a = a * 2
        elif j % 3 == 1:
            a = -a
    for j in tl.static_range(3):
        a += j
    tl.store(z + i, a if n > 5 else a + 1)


@triton.jit
def random_kernel(z, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.rand(seed, i) + tl.randn(seed, i) + tl.randint(seed, i))


@triton.jit
def block_pointer_kernel(x, z, m, n, stride, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(x, (m, n), (stride, 1), (0, 0), (M, N), (1, 0))
    a = tl.load(p, boundary_check=(0, 1), padding_option="nan")
    p = tl.advance(p, (M, 0))
    a += tl.load(p, boundary_check=(0,))
    tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], a)


@triton.jit
def descriptor_kernel(x, z, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [M, N])
    target = tl.make_tensor_descriptor(z, [m, n], [n, 1], [M, N])
    target.store([M, N], source.load([0, N]))


@triton.jit
def debug_kernel(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.device_print("v: ", v)
    tl.device_assert(v > 0, "positive")
    tl.debug_barrier()


@triton.jit(noinline=True)
def helper(a, b):
    return a * b + 1


@triton.jit
def call_kernel(x, z, n):
    tl.store(z, helper(tl.load(x), n))


FLOAT = {"x": "*fp32", "z": "*fp32"}
FEATURES = {
    "vector add": Feature(add_kernel, {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    "vector add, 1000": Feature(add_kernel, {"x": "*fp16", "y": "*fp16", "z": "*fp16", "n": "i32"}, {"BLOCK": 1000}),
    "vector add, bool and bytes": Feature(add_kernel, {"x": "*u1", "y": "*i8", "z": "*i8", "n": "i64"}, {"BLOCK": 257}),
    "integers": Feature(integer_kernel, {"x": "*i32", "y": "*i32", "z": "*i32"}, {"N": 128}),
    "unsigned 64-bit integers": Feature(integer_kernel, {"x": "*u64", "y": "*u64", "z": "*u64"}, {"N": 128}),
    "reduce": Feature(reduce_kernel, FLOAT, {"M": 64, "N": 64}),
    "reduce, odd": Feature(reduce_kernel, FLOAT, {"M": 33, "N": 7}),
    "reduce, 1 warp": Feature(reduce_kernel, FLOAT, {"M": 64, "N": 64}, {"num_warps": 1}),
    "reduce, 32 warps": Feature(reduce_kernel, FLOAT, {"M": 64, "N": 64}, {"num_warps": 32}),
    "scan of pairs": Feature(scan_kernel, {"x": "*fp32", "y": "*fp32", "z": "*fp32"}, {"N": 512}),
    "sort": Feature(sort_kernel, {"x": "*fp16", "z": "*fp16"}, {"M": 4, "N": 64}),
    "histogram": Feature(histogram_kernel, {"x": "*i32", "z": "*i32"}, {"N": 256, "BINS": 16}),
    "gather": Feature(gather_kernel, {"x": "*fp32", "index": "*i32", "z": "*fp32"}, {"M": 16, "N": 16}),
    "shapes": Feature(shape_kernel, FLOAT, {"M": 8, "N": 16}),
    "shapes, odd": Feature(shape_kernel, FLOAT, {"M": 3, "N": 5}),
    "batched dot": Feature(batched_kernel, {"a": "*fp16", "b": "*fp16", "c": "*fp32"}, {"B": 4, "N": 16}),
    "loops and branches": Feature(loop_kernel, {**FLOAT, "n": "i32", "step": "i32"}, {"N": 128}),
    "polls": Feature(poll_kernel, {"flag": "*i32", **FLOAT, "timeout": "i64"}, {"N": 128}),
    "polls of 16 bits": Feature(poll_kernel, {"flag": "*u16", **FLOAT, "timeout": "i32"}, {"N": 128}),
    "polls of 64 bits": Feature(poll_kernel, {"flag": "*i64", **FLOAT, "timeout": "i32"}, {"N": 128}),
    "random numbers": Feature(random_kernel, {"z": "*fp32", "seed": "i64"}, {"N": 128}),
    "block pointers": Feature(
        block_pointer_kernel, {**FLOAT, "m": "i32", "n": "i32", "stride": "i64"}, {"M": 16, "N": 32}
    ),
    "descriptors": Feature(descriptor_kernel, {**FLOAT, "m": "i32", "n": "i32"}, {"M": 16, "N": 32}),
    "print and assert": Feature(debug_kernel, {"x": "*fp32"}, {"N": 64}, {"debug": True}),
    "function call": Feature(call_kernel, {**FLOAT, "n": "i32"}),
}
for _kind in (
    "fp16",
    "bf16",
    "fp32",
    "fp64",
    "i8",
    "i64",
    "u16",
    "fp8e4nv",
    "fp8e5",
    "fp8e4b15",
    "fp8e4b8",
    "fp8e5b16",
):
    FEATURES[f"cast {_kind} to fp32"] = Feature(cast_kernel, {"x": "*" + _kind, "z": "*fp32"}, {"N": 64})
    FEATURES[f"cast fp32 to {_kind}"] = Feature(cast_kernel, {"x": "*fp32", "z": "*" + _kind}, {"N": 64})
for _op in MATHEMATICS:
    FEATURES[_op] = Feature(math_kernel, FLOAT, {"N": 64, "OP": _op})
FEATURES["exp of fp64"] = Feature(math_kernel, {"x": "*fp64", "z": "*fp64"}, {"N": 64, "OP": "exp"})
for _op in ("add", "max", "xchg", "cas"):
    FEATURES[f"atomic {_op}"] = Feature(atomic_kernel, {"x": "*i32", "z": "*i32", "i": "*i32"}, {"N": 64, "OP": _op})
FEATURES["atomic add of fp16"] = Feature(
    atomic_kernel, {"x": "*fp16", "z": "*fp16", "i": "*i32"}, {"N": 64, "OP": "add"}
)
FEATURES["atomic max of fp32"] = Feature(
    atomic_kernel, {"x": "*fp32", "z": "*fp32", "i": "*i32"}, {"N": 64, "OP": "max"}
)
for _kind in ("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5"):
    FEATURES[f"dot of {_kind}"] = Feature(
        dot_kernel,
        {"a": "*" + _kind, "b": "*" + _kind, "c": "*fp32"},
        {"M": 64, "N": 32, "K": 32, "PRECISION": "tf32", "OUT": tl.float32},
    )
for _a, _b in (("e4m3", "e5m2"), ("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e5m2", "bf16")):
    FEATURES[f"dot_scaled of {_a} and {_b}"] = Feature(
        scaled_kernel,
        {"a": "*u8", "a_scale": "*u8", "b": "*bf16" if _b == "bf16" else "*u8", "b_scale": "*u8", "c": "*fp32"},
        {"M": 32, "N": 32, "K": 128, "A": _a, "B": _b},
    )
FEATURES["dot of large tiles"] = Feature(
    dot_kernel,
    {"a": "*fp16", "b": "*fp16", "c": "*fp32"},
    {"M": 128, "N": 64, "K": 64, "PRECISION": "ieee", "OUT": tl.float32},
)
FEATURES["dot of i8"] = Feature(
    dot_kernel,
    {"a": "*i8", "b": "*i8", "c": "*i32"},
    {"M": 16, "N": 16, "K": 32, "PRECISION": "ieee", "OUT": tl.int32},
)
FEATURES["dot, odd"] = Feature(
    dot_kernel,
    {"a": "*fp16", "b": "*fp16", "c": "*fp32"},
    {"M": 5, "N": 7, "K": 3, "PRECISION": "ieee", "OUT": tl.float32},
)


@triton.jit
def reduce_row_kernel(x, z, N: tl.constexpr):
    tl.store(z, tl.sum(tl.load(x + tl.arange(0, N)), 0))


@triton.jit
def library_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.extra.libdevice.cyl_bessel_i0(tl.extra.libdevice.tgamma(tl.load(x + i))))
