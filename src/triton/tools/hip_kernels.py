"""The cases of a HIP bundle: the kernels of ``sample_kernels`` with their arguments.

A :class:`Case` is a kernel with arguments; ``cases()`` lists them all. Arrays are in memory form (bf16 and 8-bit
floats as bits).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import triton.language as tl

from . import sample_kernels as kernels

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
FLOATS = ("fp16", "bf16", "fp32", "fp64")
FLOAT8 = ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")
EXACT = (0.0, 0.0)
TOLERANCES = {"fp16": (2e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "fp32": (2e-6, 1e-7), "fp64": (1e-14, 1e-15)}
_STORAGE = {"fp16": "float16", "bf16": "uint16", "fp32": "float32", "fp64": "float64", "u1": "bool"}


@dataclass(frozen=True)
class Case:
    """``arrays``: pointer arguments by name, (element type, content); ``scalars``: (type, value). ``tolerance``:
    relative, absolute. ``bounded``: arrays promise to be small; ``divisible``: scalars that are multiples of 16."""

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
    divisible: tuple[str, ...] = ()


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
    products = (_dots, _attention)
    for family in (_binary, _unary, _casts, _reductions, _scans, _shapes, *products, _atomics, _control, _memory):
        for case in family():
            yield case
            if case.name in _BOUNDED:
                yield replace(case, name=f"buffer_{case.name}", bounded=True)


def _binary() -> Iterator[Case]:
    whole = ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "shl", "shr", "min", "max", "lt", "eq")
    real = ("add", "sub", "mul", "div", "min", "max", "lt", "eq", "fma")
    table: list[tuple[str, tuple[str, ...]]] = [(k, whole) for k in ("i8", "i32", "i64", "u8", "u32", "u64")]
    table += [(k, real) for k in FLOATS]
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
                kernels.binary_kernel,
                arrays,
                {"OP": op, "BLOCK": block},
                {"n": ("i32", size)},
                grid,
                4,
                tolerance,
            )


def _unary() -> Iterator[Case]:
    positive = {"log", "log2", "sqrt", "sqrt_rn", "rsqrt"}
    for op in kernels.MATHEMATICS:
        for kind in FLOATS:
            x = numbers(kind, 128, 3, low=0.125 if op in positive else -8)
            arrays = {"x": (kind, x), "z": (kind, blank(kind, 128))}
            exact = op in ("floor", "ceil", "neg", "abs", "sqrt_rn")
            yield Case(
                f"{op}_{kind}",
                kernels.math_kernel,
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
        yield Case(f"cast_{source}_{target}", kernels.cast_kernel, arrays, {"N": 64}, warps=1)


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
                    kernels.reduce_kernel,
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
            kernels.total_kernel,
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
            kernels.scan_kernel,
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
        yield Case(
            f"sort_{kind}_{m}x{n}", kernels.sort_kernel, arrays, {"DESCENDING": descending, "M": m, "N": n}, warps=warps
        )
    for size, bins, warps in ((256, 16, 4), (100, 7, 1)):
        arrays = {"x": ("i32", numbers("i32", size, 9, 0, bins)), "z": ("i32", blank("i32", bins))}
        yield Case(f"histogram_{size}_{bins}", kernels.histogram_kernel, arrays, {"N": size, "BINS": bins}, warps=warps)


def _shapes() -> Iterator[Case]:
    for op in ("transpose", "reshape", "reshape back", "flip", "cat", "interleave", "split", "broadcast"):
        for kind, m, n, warps in (("fp32", 8, 16, 4), ("i8", 32, 32, 2), ("fp16", 3, 5, 1)):
            size = m * n * (2 if op in ("cat", "interleave") else 1)
            arrays = {"x": (kind, numbers(kind, m * n, 10, -3, 3)), "z": (kind, blank(kind, size))}
            name = f"{op.replace(' ', '_')}_{kind}_{m}x{n}"
            yield Case(name, kernels.shape_kernel, arrays, {"OP": op, "M": m, "N": n}, warps=warps)
    for axis in (0, 1):
        index = numbers("i32", 256, 11, 0, 15)
        arrays = {"x": ("fp32", numbers("fp32", 256, 12)), "index": ("i32", index), "z": ("fp32", blank("fp32", 256))}
        yield Case(f"gather_axis{axis}", kernels.gather_kernel, arrays, {"AXIS": axis, "M": 16, "N": 16})


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
        ("u8", "i32", "ieee"),
        ("fp16", "fp16", "ieee"),
        *((k, "fp32", "ieee") for k in FLOAT8),
    ]
    for kind, out, precision in kinds:
        for m, n, k, warps in shapes if kind not in FLOAT8 else (*shapes[:3], (16, 32, 128, 2)):
            arrays = {
                "a": (kind, numbers(kind, m * k, 13)),
                "b": (kind, numbers(kind, k * n, 14)),
                "c": (out, numbers(out, m * n, 15)),
            }
            constants = {"M": m, "N": n, "K": k, "PRECISION": precision, "OUT": _OUT[out]}
            tolerance = {"i32": EXACT, "fp16": (4e-3, 0.5), "fp64": (1e-12, 1e-12)}.get(out, (1e-5, 1e-3))
            split = f"_{precision}" if precision != "ieee" else ""
            yield Case(
                f"dot_{kind}_{out}{split}_{m}x{n}x{k}",
                kernels.dot_kernel,
                arrays,
                constants,
                warps=warps,
                tolerance=tolerance,
            )
    yield from _scaled_dots()
    yield from _large_dots()
    arrays = {
        "a": ("fp16", numbers("fp16", 4 * 256, 16)),
        "b": ("fp16", numbers("fp16", 4 * 256, 17)),
        "c": ("fp32", blank("fp32", 4 * 256)),
    }
    yield Case(
        "dot_batched", kernels.batched_kernel, arrays, {"B": 4, "M": 16, "N": 16, "K": 16}, tolerance=(1e-5, 1e-3)
    )
    for kind, stages in (("fp16", 1), ("fp16", 2), ("fp16", 3), ("bf16", 2), ("fp32", 2), ("i8", 3)):
        m, n, k = (50, 40, 70) if stages == 1 else (48, 32, 192)
        yield _matmul(kind, m, n, k, stages)
    # sizes that are multiples of 16, and known to be: wide accesses, copies to shared memory without registers
    for kind, stages in (("fp16", 2), ("fp16", 3), ("bf16", 4), ("fp32", 3), ("i8", 2), ("fp8e4nv", 3)):
        yield _matmul(kind, 48, 64, 160, stages, divisible=True)


def _attention() -> Iterator[Case]:
    for kind, m, n, d, causal, stages, warps in (
        ("fp16", 32, 32, 32, False, 1, 4),
        ("fp16", 32, 32, 32, True, 2, 2),
        ("bf16", 64, 32, 16, False, 2, 4),
        ("fp32", 16, 16, 16, True, 2, 1),
    ):
        rows, heads = 80, 2
        arrays = {x: (kind, numbers(kind, heads * rows * d, 40 + i, -2, 2)) for i, x in enumerate("qkv")}
        arrays["o"] = (kind, blank(kind, heads * rows * d))
        yield Case(
            f"attention_{kind}_{m}x{n}x{d}{'_causal' * causal}_stages{stages}",
            kernels.attention_kernel,
            arrays,
            {"M": m, "N": n, "D": d, "CAUSAL": causal},
            {"n": ("i32", rows), "scale": ("fp32", 0.25)},
            (-(-rows // m), heads, 1),
            warps=warps,
            tolerance=(2e-2, 2e-2) if kind == "bf16" else (4e-3, 4e-3) if kind == "fp16" else (1e-5, 1e-5),
            stages=stages,
        )


def _matmul(kind: str, m: int, n: int, k: int, stages: int, divisible: bool = False) -> Case:
    out = "i32" if kind == "i8" else "fp32"
    arrays = {
        "a": (kind, numbers(kind, m * k, 18)),
        "b": (kind, numbers(kind, k * n, 19)),
        "c": (out, blank(out, m * n)),
    }
    return Case(
        f"matmul_{kind}_{m}x{n}x{k}_stages{stages}",
        kernels.matmul_kernel,
        arrays,
        {"M": 32, "N": 32, "K": 32, "ACC": _OUT[out]},
        {"m": ("i32", m), "n": ("i32", n), "k": ("i32", k)},
        (2, 2, 1),
        tolerance=EXACT if kind == "i8" else (1e-5, 1e-3),
        stages=stages,
        divisible=("m", "n", "k") if divisible else (),
    )


_CODES = {"e4m3": (0x24, 0x48, 4.0), "e5m2": (0x32, 0x44, 4.0), "e2m1": (0, 0x100, 6.0)}
"""Codes of random magnitudes and the largest; of e2m1 whole bytes, two values each."""


def _scaled_dots() -> Iterator[Case]:
    formats = (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e2m1", "e5m2"))
    for a, b in formats:
        for m, n, k, warps in ((16, 16, 128, 1), (32, 16, 64, 2), (32, 48, 256, 4), (64, 64, 64, 4), (7, 5, 32, 1)):
            arrays = {}
            for seed, (name, form, rows) in enumerate((("a", a, m), ("b", b, n))):
                rng = np.random.default_rng(seed + 30)
                codes = rng.integers(*_CODES[form][:2], rows * k // (2 if form == "e2m1" else 1))
                signs = 0 if form == "e2m1" else rng.integers(0, 2, codes.shape) << 7
                arrays[name] = ("u8", (codes | signs).astype(np.uint8))
                arrays[f"{name}_scale"] = ("u8", rng.integers(124, 131, rows * k // 32).astype(np.uint8))
            arrays["c"] = ("fp32", blank("fp32", m * n))
            constants = {"M": m, "N": n, "K": k, "A": a, "B": b}
            largest = k * _CODES[a][2] * _CODES[b][2] * 2.0**6  # of a sum: terms may cancel
            name, tolerance = f"dot_scaled_{a}_{b}_{m}x{n}x{k}", (1e-5, 1e-7 * largest)
            yield Case(name, kernels.scaled_kernel, arrays, constants, warps=warps, tolerance=tolerance)


def _large_dots() -> Iterator[Case]:
    """Every warp has 32x32 of the result to itself, or more."""
    for kind, out in (
        ("fp16", "fp32"), ("bf16", "fp32"), ("fp32", "fp32"), ("i8", "i32"), ("fp8e4nv", "fp32"), ("fp8e5b16", "fp32"),
    ):  # fmt: skip
        for m, n, k, warps in ((32, 32, 64, 1), (64, 128, 32, 2)):
            arrays = {
                "a": (kind, numbers(kind, m * k, 13)),
                "b": (kind, numbers(kind, k * n, 14)),
                "c": (out, numbers(out, m * n, 15)),
            }
            constants = {"M": m, "N": n, "K": k, "PRECISION": "ieee", "OUT": _OUT[out]}
            tolerance = EXACT if out == "i32" else (1e-5, 1e-3)
            yield Case(
                f"dot_{kind}_{out}_{m}x{n}x{k}", kernels.dot_kernel, arrays, constants, warps=warps, tolerance=tolerance
            )


def _atomics() -> Iterator[Case]:
    for kind in ("i32", "u32", "i64", "fp32", "fp16", "fp64"):
        for op in ("add", "masked add", "max", "min", "and", "or", "xor"):
            if kind.startswith("fp") and (op in ("and", "or", "xor") or (kind == "fp16" and op in ("max", "min"))):
                continue
            index = numbers("i32", 64, 20, 0, 7)
            arrays = {"x": (kind, numbers(kind, 64, 21)), "i": ("i32", index), "z": (kind, numbers(kind, 8, 22))}
            yield Case(
                f"atomic_{op.replace(' ', '_')}_{kind}", kernels.atomic_kernel, arrays, {"OP": op, "N": 64}, warps=2
            )
    for kind in ("i32", "i64"):
        x = numbers(kind, 32, 23)
        z = np.concatenate([numbers(kind, 32, 24), x])
        arrays = {"x": (kind, x), "old": (kind, blank(kind, 32)), "z": (kind, z)}
        yield Case(f"atomic_exchange_{kind}", kernels.exchange_kernel, arrays, {"N": 32}, warps=1)


def _control() -> Iterator[Case]:
    yield Case("grid", kernels.grid_kernel, {"z": ("i32", blank("i32", 24))}, {}, grid=(4, 3, 2), warps=1)
    for n, step in ((7, -1), (12, -5), (0, -1)):
        arrays = {"x": ("fp32", numbers("fp32", 160, 25)), "z": ("fp32", blank("fp32", 128))}
        scalars = {"n": ("i32", n), "step": ("i32", step)}
        yield Case(f"loop_{n}", kernels.loop_kernel, arrays, {"N": 128}, scalars)
    for op in ("rand", "randn", "randint"):
        kind = "i32" if op == "randint" else "fp32"
        arrays = {"z": (kind, blank(kind, 64))}
        tolerance = (1e-5, 1e-6) if op == "randn" else EXACT
        yield Case(
            op,
            kernels.random_kernel,
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
            kernels.softmax_kernel,
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
        yield Case(f"block_pointer_{kind}", kernels.block_pointer_kernel, arrays, {"M": 16, "N": 32}, scalars)
        arrays = {"x": (kind, numbers(kind, 20 * 48, 28)), "z": (kind, blank(kind, 20 * 48))}
        yield Case(
            f"descriptor_{kind}",
            kernels.descriptor_kernel,
            arrays,
            {"M": 16, "N": 32},
            {"m": ("i32", 20), "n": ("i32", 48)},
        )
