"""Small kernels that together use every feature of the language: those of HIP bundles, which the tests use too."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def binary_kernel(x, y, z, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n, other=1)
    if OP == "add":
        r = a + b
    elif OP == "sub":
        r = a - b
    elif OP == "mul":
        r = a * b
    elif OP == "div":
        r = a / b
    elif OP == "floordiv":
        r = a // b
    elif OP == "mod":
        r = a % b
    elif OP == "and":
        r = a & b
    elif OP == "or":
        r = a | b
    elif OP == "xor":
        r = a ^ b
    elif OP == "shl":
        r = a << (b & 7)
    elif OP == "shr":
        r = a >> (b & 7)
    elif OP == "min":
        r = tl.minimum(a, b)
    elif OP == "max":
        r = tl.maximum(a, b)
    elif OP == "lt":
        r = tl.where(a < b, a, b)
    elif OP == "fma":
        r = tl.fma(a, b, a)
    else:
        r = tl.where(a == b, b, a)
    tl.store(z + i, r.to(z.dtype.element_ty), mask=i < n)


MATHEMATICS = (
    "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "sqrt_rn", "rsqrt", "erf", "floor", "ceil", "sigmoid",
    "neg", "abs",
)  # fmt: skip
"""What ``math_kernel`` knows."""


@triton.jit
def math_kernel(x, z, OP: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + i)
    if OP == "exp":
        r = tl.exp(a)
    elif OP == "exp2":
        r = tl.exp2(a)
    elif OP == "log":
        r = tl.log(a)
    elif OP == "log2":
        r = tl.log2(a)
    elif OP == "sin":
        r = tl.sin(a)
    elif OP == "cos":
        r = tl.cos(a)
    elif OP == "sqrt":
        r = tl.sqrt(a)
    elif OP == "sqrt_rn":
        r = tl.sqrt_rn(a)
    elif OP == "rsqrt":
        r = tl.rsqrt(a)
    elif OP == "erf":
        r = tl.erf(a)
    elif OP == "floor":
        r = tl.floor(a)
    elif OP == "ceil":
        r = tl.ceil(a)
    elif OP == "sigmoid":
        r = tl.sigmoid(a)
    elif OP == "neg":
        r = -a
    elif OP == "abs":
        r = tl.abs(a)
    tl.store(z + i, r.to(z.dtype.element_ty))


@triton.jit
def cast_kernel(x, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i).to(z.dtype.element_ty))


@triton.jit
def reduce_kernel(x, z, OP: tl.constexpr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        r = tl.sum(a, AXIS)
    elif OP == "max":
        r = tl.max(a, AXIS)
    elif OP == "min":
        r = tl.min(a, AXIS)
    elif OP == "argmax":
        r = tl.argmax(a, AXIS)
    elif OP == "argmin":
        r = tl.argmin(a, AXIS)
    else:
        r = tl.xor_sum(a, AXIS)
    if AXIS == 0:
        tl.store(z + tl.arange(0, N), r.to(z.dtype.element_ty))
    else:
        tl.store(z + tl.arange(0, M), r.to(z.dtype.element_ty))


@triton.jit
def total_kernel(x, z, N: tl.constexpr):
    tl.store(
        z + tl.program_id(0), tl.sum(tl.load(x + tl.program_id(0) * N + tl.arange(0, N)), 0).to(z.dtype.element_ty)
    )


@triton.jit
def _recurrence(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def scan_kernel(x, z, OP: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    if OP == "sum":
        r = tl.cumsum(a, 1, reverse=REVERSE)
    elif OP == "prod":
        r = tl.cumprod(a, 1, reverse=REVERSE)
    else:
        _, r = tl.associative_scan((a, a), 1, _recurrence, reverse=REVERSE)
    tl.store(z + at, r.to(z.dtype.element_ty))


@triton.jit
def sort_kernel(x, z, DESCENDING: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + at, tl.sort(tl.load(x + at), descending=DESCENDING))


@triton.jit
def histogram_kernel(x, z, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(z + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@triton.jit
def gather_kernel(x, index, z, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(z + at, tl.gather(tl.load(x + at), tl.load(index + at), AXIS))


@triton.jit
def shape_kernel(x, z, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    at = tl.arange(0, M * N)
    if OP == "transpose":
        tl.store(z + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(a))
    elif OP == "reshape":
        tl.store(z + at, tl.reshape(a, (M * N,)))
    elif OP == "reshape back":
        b = tl.reshape(tl.reshape(a, (N, M)).trans(), (M * N,))
        tl.store(z + at, b)
    elif OP == "flip":
        tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.flip(a, 1))
    elif OP == "cat":
        tl.store(z + tl.arange(0, 2 * M * N), tl.cat(tl.ravel(a), tl.ravel(a + 1), can_reorder=False, dim=0))
    elif OP == "interleave":
        b = tl.reshape(tl.interleave(a, a + 1), (2 * M * N,))
        tl.store(z + tl.arange(0, 2 * M * N), b)
    elif OP == "split":
        lo, hi = tl.split(tl.join(a, a + 1))
        tl.store(z + at, tl.reshape(hi - lo + a, (M * N,)))
    else:
        b = tl.broadcast_to(tl.sum(a, 0)[None, :], (M, N)) + a
        tl.store(z + at, tl.reshape(b, (M * N,)))


@triton.jit
def dot_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    at = c + m[:, None] * N + n[None, :]
    tl.store(at, tl.dot(x, y, acc=tl.load(at).to(OUT), input_precision=PRECISION, out_dtype=OUT).to(c.dtype.element_ty))


@triton.jit
def batched_kernel(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    z, m, n, k = tl.arange(0, B)[:, None, None], tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + z * M * K + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + z * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c + z * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(x, y))


@triton.jit
def scaled_kernel(
    a, a_scale, b, b_scale, c,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """``K`` elements; 4-bit ones (e2m1) lie two to a byte."""
    a_row: tl.constexpr = K // 2 if A == "e2m1" else K
    b_column: tl.constexpr = K // 2 if B == "e2m1" else K
    m, n, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * a_row + tl.arange(0, a_row)[None, :])
    y = tl.load(b + tl.arange(0, b_column)[:, None] * N + n[None, :])
    x_scale = tl.load(a_scale + m[:, None] * (K // 32) + s[None, :])
    y_scale = tl.load(b_scale + n[:, None] * (K // 32) + s[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot_scaled(x, x_scale, A, y, y_scale, B))


@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    rm = tl.program_id(0) * M + tl.arange(0, M)
    rn = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), ACC)
    for start in range(0, k, K):
        rk = start + tl.arange(0, K)
        x = tl.load(a + rm[:, None] * k + rk[None, :], mask=(rm[:, None] < m) & (rk[None, :] < k), other=0)
        y = tl.load(b + rk[:, None] * n + rn[None, :], mask=(rk[:, None] < k) & (rn[None, :] < n), other=0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
    tl.store(c + rm[:, None] * n + rn[None, :], acc, mask=(rm[:, None] < m) & (rn[None, :] < n))


@triton.jit
def attention_kernel(
    q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):  # fmt: skip
    """softmax(q k^T scale) v by rows, in one pass over k and v; ``n`` rows of each head, ``M`` of them a program."""
    head = tl.program_id(1) * n * D
    m = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + head + m[:, None] * D + d[None, :], mask=m[:, None] < n, other=0.0)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    end = (tl.program_id(0) + 1) * M if CAUSAL else n
    for start in range(0, end, N):
        j = start + tl.arange(0, N)
        y = tl.load(k + head + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        s = tl.dot(x, tl.trans(y)) * (scale * 1.44269504)
        keep = (j[None, :] <= m[:, None]) & (j[None, :] < n) if CAUSAL else j[None, :] < n
        s = tl.where(keep, s, float("-inf"))
        above = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - above[:, None])
        shrink = tl.exp2(top - above)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + head + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = tl.dot(p.to(z.dtype), z, acc * shrink[:, None])
        top = above
    out = acc / total[:, None]
    tl.store(o + head + m[:, None] * D + d[None, :], out.to(o.dtype.element_ty), mask=m[:, None] < n)


@triton.jit
def atomic_kernel(x, i, z, OP: tl.constexpr, N: tl.constexpr):
    at = z + tl.load(i + tl.arange(0, N))
    v = tl.load(x + tl.arange(0, N))
    if OP == "add":
        tl.atomic_add(at, v)
    elif OP == "masked add":
        tl.atomic_add(at, v, mask=v > 0, sem="relaxed", scope="cta")
    elif OP == "max":
        tl.atomic_max(at, v)
    elif OP == "min":
        tl.atomic_min(at, v, sem="release", scope="sys")
    elif OP == "and":
        tl.atomic_and(at, v)
    elif OP == "or":
        tl.atomic_or(at, v)
    else:
        tl.atomic_xor(at, v)


@triton.jit
def exchange_kernel(x, old, z, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(old + at, tl.atomic_xchg(z + at, v) + tl.atomic_cas(z + N + at, v, v + 1))


@triton.jit
def grid_kernel(z):
    x, y, w = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    at = (w * ny + y) * nx + x
    tl.store(z + at, x + 10 * y + 100 * w + 1000 * nx + 10000 * ny + 100000 * nz)


@triton.jit(noinline=True)
def _helper(a, b):
    return a * b + 1


@triton.jit
def loop_kernel(x, z, n, step, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.zeros((N,), tl.float32)
    for j in tl.range(n, 0, step):
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
    tl.store(z + i, a + _helper(n, step))


@triton.jit
def random_kernel(z, seed, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if OP == "rand":
        tl.store(z + i, tl.rand(seed, i))
    elif OP == "randn":
        tl.store(z + i, tl.randn(seed, i))
    else:
        tl.store(z + i, tl.randint(seed, i))


@triton.jit
def block_pointer_kernel(x, z, m, n, stride, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(x, (m, n), (stride, 1), (0, 0), (M, N), (1, 0))
    a = tl.load(p, boundary_check=(0, 1), padding_option="zero")
    p = tl.advance(p, (M // 2, 0))
    a += tl.load(p, boundary_check=(0, 1), padding_option="zero")
    tl.store(z + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], a)


@triton.jit
def descriptor_kernel(x, z, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [M, N])
    target = tl.make_tensor_descriptor(z, [m, n], [n, 1], [M, N])
    target.store([M // 2, 0], source.load([0, N // 2]))


@triton.jit
def softmax_kernel(x, z, n, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    a = tl.load(x + row * n + i, mask=i < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(a - tl.max(a, 0))
    tl.store(z + row * n + i, (e / tl.sum(e, 0)).to(z.dtype.element_ty), mask=i < n)
