"""The kernels of a HIP bundle: small ones that together use every feature of the language, and their inputs.

A :class:`Case` is a kernel with arguments; ``cases()`` lists them all. Arrays are in memory form (bf16 and 8-bit
floats as bits).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import triton
import triton.language as tl

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
FLOATS = ("fp16", "bf16", "fp32", "fp64")
FLOAT8 = ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")
EXACT = (0.0, 0.0)
TOLERANCES = {"fp16": (2e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "fp32": (2e-6, 1e-7), "fp64": (1e-14, 1e-15)}
_STORAGE = {"fp16": "float16", "bf16": "uint16", "fp32": "float32", "fp64": "float64", "u1": "bool"}


@dataclass(frozen=True)
class Case:
    """``arrays``: pointer arguments by name, (element type, content); ``scalars``: (type, value). ``tolerance``:
    relative, absolute."""

    name: str
    kernel: Any
    arrays: dict[str, tuple[str, np.ndarray]]
    constants: dict[str, Any]
    scalars: dict[str, tuple[str, Any]] = field(default_factory=dict)
    grid: tuple[int, int, int] = (1, 1, 1)
    warps: int = 4
    tolerance: tuple[float, float] = EXACT
    stages: int = 2
    bounded: bool = False


_BOUNDED = frozenset(
    {
        "add_i8",
        "add_i64",
        "add_fp16",
        "add_bf16",
        "add_fp32",
        "div_fp64",
        "matmul_fp16_50x40x70_stages1",
        "softmax_fp16",
    }
    | {"matmul_bf16_48x32x192_stages2", "block_pointer_fp32", "loop_7", "dot_fp16_fp32_5x7x3", "total_fp32_1024"}
)
"""Cases that are there once more with pointers that promise their range."""


# Kernels -------------------------------------------------------------------------------------------------------------


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


@triton.jit
def unary_kernel(x, z, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    if z.dtype.element_ty == tl.float16 or z.dtype.element_ty == tl.bfloat16:
        a = a.to(tl.float32)
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
    else:
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


# Inputs --------------------------------------------------------------------------------------------------------------


def storage(kind: str) -> np.dtype[Any]:
    """The NumPy type that holds a signature's element type in memory."""
    name = kind.replace("u", "uint") if kind in UNSIGNED else kind.replace("i", "int") if kind in SIGNED else None
    return np.dtype(name or _STORAGE.get(kind, "uint8"))


def numbers(kind: str, size: int, seed: int = 0, low: float = -8, high: float = 8) -> np.ndarray:
    """Random numbers in memory form: integers, or floats that bf16 and fp16 hold exactly; any code of 8-bit floats but
    NaN."""
    rng = np.random.default_rng(seed)
    if kind == "u1":
        return rng.integers(0, 2, size).astype(bool)
    if kind in SIGNED or kind in UNSIGNED:
        return rng.integers(0 if kind in UNSIGNED else int(low), int(high) + 1, size).astype(storage(kind))
    if kind in FLOAT8:
        top = {"fp8e4nv": 0x50, "fp8e5": 0x48, "fp8e4b15": 0x7E, "fp8e4b8": 0x50, "fp8e5b16": 0x48}[kind]
        return (rng.integers(1, top, size) | rng.integers(0, 2, size) << 7).astype(np.uint8)
    values = np.round(rng.uniform(low, high, size) * 8) / 8
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(storage(kind))


def blank(kind: str, size: int) -> np.ndarray:
    """Bytes that no kernel writes by chance."""
    array = np.zeros(size, storage(kind))
    array.view(np.uint8)[...] = 1 if kind == "u1" else 0x5A
    return array


def cases() -> Iterator[Case]:
    """All cases. Names are file names."""
    for family in (_binary, _unary, _casts, _reductions, _scans, _shapes, _dots, _atomics, _control, _memory):
        for case in family():
            yield case
            if case.name in _BOUNDED:
                yield replace(case, name=f"buffer_{case.name}", bounded=True)


def _binary() -> Iterator[Case]:
    whole = ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "shl", "shr", "min", "max", "lt", "eq")
    real = ("add", "sub", "mul", "div", "min", "max", "lt", "eq", "fma")
    table = [(k, whole) for k in ("i8", "i32", "i64", "u8", "u32", "u64")] + [(k, real) for k in FLOATS]
    table += [("i16", whole[:5]), ("u16", whole[:5]), *((k, ("add", "mul")) for k in FLOAT8)]
    for kind, ops in table:
        for op in ops:
            size, block = (300, 128) if op in ("add", "div") else (256, 256)
            y = numbers(kind, size, 2, low=1)
            arrays = {"x": (kind, numbers(kind, size, 1)), "y": (kind, y), "z": (kind, blank(kind, size))}
            exact = op not in ("div", "fma") or kind == "fp64"
            tolerance = EXACT if exact else TOLERANCES[kind]
            grid = (-(-size // block), 1, 1)
            yield Case(
                f"{op}_{kind}",
                binary_kernel,
                arrays,
                {"OP": op, "BLOCK": block},
                {"n": ("i32", size)},
                grid,
                4,
                tolerance,
            )


def _unary() -> Iterator[Case]:
    positive = {"log", "log2", "sqrt", "rsqrt"}
    for op in (
        "exp",
        "exp2",
        "log",
        "log2",
        "sin",
        "cos",
        "sqrt",
        "rsqrt",
        "erf",
        "floor",
        "ceil",
        "sigmoid",
        "neg",
        "abs",
    ):
        for kind in FLOATS:
            x = numbers(kind, 128, 3, low=0.125 if op in positive else -8)
            arrays = {"x": (kind, x), "z": (kind, blank(kind, 128))}
            exact = op in ("floor", "ceil", "neg", "abs")
            yield Case(
                f"{op}_{kind}",
                unary_kernel,
                arrays,
                {"OP": op, "N": 128},
                warps=2,
                tolerance=EXACT if exact else TOLERANCES[kind],
            )


def _casts() -> Iterator[Case]:
    wide = ("fp16", "bf16", "fp32", "fp64", "i8", "i32", "u16", "u64")
    pairs = [(a, b) for a in wide for b in wide if a != b]
    pairs += [(a, b) for kind in FLOAT8 for a, b in ((kind, "fp32"), ("fp32", kind), (kind, "fp16"), ("fp16", kind))]
    for source, target in pairs:
        low = 0 if target[0] == "u" else -8
        arrays = {"x": (source, numbers(source, 64, 4, low=low)), "z": (target, blank(target, 64))}
        yield Case(f"cast_{source}_{target}", cast_kernel, arrays, {"N": 64}, warps=1)


def _reductions() -> Iterator[Case]:
    for kind in ("i32", "fp32", "fp16", "i64"):
        for op in ("sum", "max", "min", "argmax", "argmin", "xor"):
            if op == "xor" and kind[0] != "i":
                continue
            for axis, m, n, warps in ((0, 32, 16, 4), (1, 16, 64, 2), (1, 5, 7, 1)):
                out = "i32" if op.startswith("arg") else kind
                arrays = {"x": (kind, numbers(kind, m * n, 5)), "z": (out, blank(out, n if axis == 0 else m))}
                constants = {"OP": op, "AXIS": axis, "M": m, "N": n}
                tolerance = TOLERANCES[kind] if kind in FLOATS and op == "sum" else EXACT
                yield Case(
                    f"{op}_{kind}_{m}x{n}_axis{axis}",
                    reduce_kernel,
                    arrays,
                    constants,
                    warps=warps,
                    tolerance=tolerance,
                )
    for kind, size, warps in (("fp32", 1024, 4), ("i32", 1024, 8), ("fp64", 96, 1), ("bf16", 64, 1)):
        arrays = {
            "x": (kind, numbers(kind, 2 * size, 6)),
            "z": ("fp32" if kind == "bf16" else kind, blank("fp32" if kind == "bf16" else kind, 2)),
        }
        yield Case(
            f"total_{kind}_{size}",
            total_kernel,
            arrays,
            {"N": size},
            grid=(2, 1, 1),
            warps=warps,
            tolerance=(1e-5, 1e-4) if kind in FLOATS else EXACT,
        )


def _scans() -> Iterator[Case]:
    for op, kind, reverse, m, n, warps in (
        ("sum", "fp32", False, 2, 128, 4),
        ("sum", "fp32", True, 2, 128, 2),
        ("sum", "i32", False, 4, 64, 1),
        ("sum", "i64", True, 3, 10, 1),
        ("prod", "fp32", False, 1, 64, 1),
        ("pair", "fp32", False, 2, 64, 4),
        ("pair", "fp32", True, 2, 33, 1),
        ("pair", "i32", False, 1, 256, 8),
    ):
        x = numbers(kind, m * n, 7, low=-1, high=1)
        arrays = {"x": (kind, x), "z": (kind, blank(kind, m * n))}
        constants = {"OP": op, "REVERSE": reverse, "M": m, "N": n}
        tolerance = (1e-5, 1e-5) if kind == "fp32" else EXACT
        yield Case(
            f"scan_{op}_{kind}_{m}x{n}{'_reverse' * reverse}",
            scan_kernel,
            arrays,
            constants,
            warps=warps,
            tolerance=tolerance,
        )
    for kind, descending, m, n, warps in (
        ("i32", False, 2, 64, 4),
        ("fp32", True, 1, 128, 4),
        ("fp16", False, 4, 16, 1),
        ("u8", True, 2, 32, 2),
        ("i64", False, 1, 64, 1),
    ):
        arrays = {"x": (kind, numbers(kind, m * n, 8)), "z": (kind, blank(kind, m * n))}
        yield Case(f"sort_{kind}_{m}x{n}", sort_kernel, arrays, {"DESCENDING": descending, "M": m, "N": n}, warps=warps)
    for size, bins, warps in ((256, 16, 4), (100, 7, 1)):
        arrays = {"x": ("i32", numbers("i32", size, 9, 0, bins)), "z": ("i32", blank("i32", bins))}
        yield Case(f"histogram_{size}_{bins}", histogram_kernel, arrays, {"N": size, "BINS": bins}, warps=warps)


def _shapes() -> Iterator[Case]:
    for op in ("transpose", "reshape", "reshape back", "flip", "cat", "interleave", "split", "broadcast"):
        for kind, m, n, warps in (("fp32", 8, 16, 4), ("i8", 32, 32, 2), ("fp16", 3, 5, 1)):
            size = m * n * (2 if op in ("cat", "interleave") else 1)
            arrays = {"x": (kind, numbers(kind, m * n, 10, -3, 3)), "z": (kind, blank(kind, size))}
            name = f"{op.replace(' ', '_')}_{kind}_{m}x{n}"
            yield Case(name, shape_kernel, arrays, {"OP": op, "M": m, "N": n}, warps=warps)
    for axis in (0, 1):
        index = numbers("i32", 256, 11, 0, 15)
        arrays = {"x": ("fp32", numbers("fp32", 256, 12)), "index": ("i32", index), "z": ("fp32", blank("fp32", 256))}
        yield Case(f"gather_axis{axis}", gather_kernel, arrays, {"AXIS": axis, "M": 16, "N": 16})


_OUT = {"fp32": tl.float32, "fp64": tl.float64, "i32": tl.int32, "fp16": tl.float16}


def _dots() -> Iterator[Case]:
    shapes = ((16, 16, 16, 1), (32, 64, 32, 4), (64, 32, 64, 4), (16, 16, 64, 2), (5, 7, 3, 1), (2, 32, 8, 4))
    kinds = [
        ("fp16", "fp32", "ieee"),
        ("bf16", "fp32", "ieee"),
        ("fp32", "fp32", "ieee"),
        ("fp32", "fp32", "bf16x3"),
        ("fp64", "fp64", "ieee"),
        ("i8", "i32", "ieee"),
        ("fp16", "fp16", "ieee"),
        *((k, "fp32", "ieee") for k in FLOAT8),
    ]
    for kind, out, precision in kinds:
        for m, n, k, warps in shapes if kind not in FLOAT8 else shapes[:3]:
            arrays = {
                "a": (kind, numbers(kind, m * k, 13)),
                "b": (kind, numbers(kind, k * n, 14)),
                "c": (out, numbers(out, m * n, 15)),
            }
            constants = {"M": m, "N": n, "K": k, "PRECISION": precision, "OUT": _OUT[out]}
            tolerance = {"i32": EXACT, "fp16": (4e-3, 0.5), "fp64": (1e-12, 1e-12)}.get(out, (1e-5, 1e-3))
            split = f"_{precision}" if precision != "ieee" else ""
            yield Case(
                f"dot_{kind}_{out}{split}_{m}x{n}x{k}", dot_kernel, arrays, constants, warps=warps, tolerance=tolerance
            )
    arrays = {
        "a": ("fp16", numbers("fp16", 4 * 256, 16)),
        "b": ("fp16", numbers("fp16", 4 * 256, 17)),
        "c": ("fp32", blank("fp32", 4 * 256)),
    }
    yield Case("dot_batched", batched_kernel, arrays, {"B": 4, "M": 16, "N": 16, "K": 16}, tolerance=(1e-5, 1e-3))
    for kind, stages in (("fp16", 1), ("fp16", 2), ("fp16", 3), ("bf16", 2), ("fp32", 2), ("i8", 3)):
        m, n, k = (50, 40, 70) if stages == 1 else (48, 32, 192)
        out = "i32" if kind == "i8" else "fp32"
        arrays = {
            "a": (kind, numbers(kind, m * k, 18)),
            "b": (kind, numbers(kind, k * n, 19)),
            "c": (out, blank(out, m * n)),
        }
        scalars = {"m": ("i32", m), "n": ("i32", n), "k": ("i32", k)}
        constants = {"M": 32, "N": 32, "K": 32, "ACC": _OUT[out]}
        tolerance = EXACT if kind == "i8" else (1e-5, 1e-3)
        name = f"matmul_{kind}_{m}x{n}x{k}_stages{stages}"
        yield Case(name, matmul_kernel, arrays, constants, scalars, (2, 2, 1), tolerance=tolerance, stages=stages)


def _atomics() -> Iterator[Case]:
    for kind in ("i32", "u32", "i64", "fp32", "fp16", "fp64"):
        for op in ("add", "masked add", "max", "min", "and", "or", "xor"):
            if kind.startswith("fp") and (op in ("and", "or", "xor") or (kind == "fp16" and op in ("max", "min"))):
                continue
            index = numbers("i32", 64, 20, 0, 7)
            arrays = {"x": (kind, numbers(kind, 64, 21)), "i": ("i32", index), "z": (kind, numbers(kind, 8, 22))}
            yield Case(f"atomic_{op.replace(' ', '_')}_{kind}", atomic_kernel, arrays, {"OP": op, "N": 64}, warps=2)
    for kind in ("i32", "i64"):
        x = numbers(kind, 32, 23)
        z = np.concatenate([numbers(kind, 32, 24), x])
        arrays = {"x": (kind, x), "old": (kind, blank(kind, 32)), "z": (kind, z)}
        yield Case(f"atomic_exchange_{kind}", exchange_kernel, arrays, {"N": 32}, warps=1)


def _control() -> Iterator[Case]:
    yield Case("grid", grid_kernel, {"z": ("i32", blank("i32", 24))}, {}, grid=(4, 3, 2), warps=1)
    for n, step in ((7, -1), (12, -5), (0, -1)):
        arrays = {"x": ("fp32", numbers("fp32", 160, 25)), "z": ("fp32", blank("fp32", 128))}
        scalars = {"n": ("i32", n), "step": ("i32", step)}
        yield Case(f"loop_{n}", loop_kernel, arrays, {"N": 128}, scalars)
    for op in ("rand", "randn", "randint"):
        kind = "i32" if op == "randint" else "fp32"
        arrays = {"z": (kind, blank(kind, 64))}
        tolerance = (1e-5, 1e-6) if op == "randn" else EXACT
        yield Case(
            op,
            random_kernel,
            arrays,
            {"OP": op, "N": 64},
            {"seed": ("i64", 1234567890123)},
            warps=1,
            tolerance=tolerance,
        )
    for kind in ("fp32", "fp16", "bf16"):
        arrays = {"x": (kind, numbers(kind, 3 * 100, 26)), "z": (kind, blank(kind, 3 * 100))}
        yield Case(
            f"softmax_{kind}",
            softmax_kernel,
            arrays,
            {"N": 128},
            {"n": ("i32", 100)},
            (3, 1, 1),
            tolerance=(TOLERANCES[kind][0] * 4, 1e-6),
        )


def _memory() -> Iterator[Case]:
    for kind in ("fp32", "fp16", "i8"):
        arrays = {"x": (kind, numbers(kind, 10 * 24, 27)), "z": (kind, blank(kind, 16 * 32))}
        scalars = {"m": ("i32", 10), "n": ("i32", 20), "stride": ("i64", 24)}
        yield Case(f"block_pointer_{kind}", block_pointer_kernel, arrays, {"M": 16, "N": 32}, scalars)
        arrays = {"x": (kind, numbers(kind, 20 * 48, 28)), "z": (kind, blank(kind, 20 * 48))}
        yield Case(
            f"descriptor_{kind}", descriptor_kernel, arrays, {"M": 16, "N": 32}, {"m": ("i32", 20), "n": ("i32", 48)}
        )
