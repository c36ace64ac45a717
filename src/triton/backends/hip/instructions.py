"""The matrix instructions of each AMD family, WMMA (RDNA) and MFMA (CDNA), and which one a product takes.

Sources: the RDNA 3, RDNA 4, CDNA 2, 3 and 4 instruction set guides (matrix instructions), LLVM's intrinsics for them;
for the operands of the 8-, 6- and 4-bit float instructions of CDNA 4, AMD's Composable Kernel (mx_mfma_op.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ir.types import ScalarType
from .capabilities import Chip

FLOAT8 = {"f8e4m3": "fp8", "f8e5m2": "bf8", "f8e4b8": "fp8", "f8e5b16": "bf8"}
SCALED = {"e4m3": 0, "e5m2": 1, "e2m1": 4}
"""Formats of scaled products by the number under which the instruction knows them; e2m1 lies two to a byte."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand as a lane holds it: LLVM type, bits of a stored value, log2 of how many values (of K) there are in
    one instruction. ``chunk``: log2 of the consecutive ones among them where their order matters."""

    type: str
    bits: int
    run: int
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """One instruction, D = X Y + C for tiles of ``side`` x ``side``.

    ``name``      of the intrinsic; ``tail``: its last arguments.
    ``a``, ``b``  the tile's operands; ``acc``: LLVM type of one result.
    ``high``      how many lane bits number the runs of K.
    ``rows``      which row bit each of (register bits, then bits of h) is.
    ``cast``      the type that operands are converted to; none: they are taken as they are.
    ``signs``     whether a and b are signed, where the instruction asks.
    ``split``     how f32 operands are split into bf16 parts.
    ``formats``   of scaled operands, by number.
    """

    name: str
    a: Operand
    b: Operand
    high: int
    rows: tuple[int, ...]
    side: int = 16
    acc: str = "float"
    cast: str = ""
    signs: tuple[bool, bool] | None = None
    split: str = ""
    tail: str = ""
    formats: tuple[int, int] | None = None


ROWS = {
    "wmma11": (1, 2, 3, 0),
    "wmma12": (0, 1, 2, 3),
    "mfma": (0, 1, 2, 3),
    "mfma32": (0, 1, 3, 4, 2),
    "f64": (2, 3, 0, 1),
}
_MODES = ", i32 0, i32 0, i32 0"


def choose(
    chip: Chip, a: ScalarType, b: ScalarType, acc: ScalarType, precision: str, side: int = 16, k: int = 0
) -> Matrix | None:
    """The instruction for these types; None: multiply and add in ordinary arithmetic. ``side`` is 32 where CDNA's
    larger tiles are wanted."""
    if not chip.matrix:
        return None
    if acc.is_integer:
        return _bytes(chip, a, b, side) if a.bits == b.bits == 8 and acc.bits == 32 else None
    names = {a.name, b.name}
    if acc.bits == 64 or "f64" in names:
        return _f64() if chip.lanes == 64 and acc.bits == 64 and names == {"f64"} else None
    if a.is_fp8 and b.is_fp8:
        return _float8(chip, a, b, side, k) if names <= set(chip.float8) else _sixteen(chip, "f16", side)
    if "f32" in names:
        if names == {"f32"} and precision in ("bf16x3", "bf16x6"):
            return _sixteen(chip, "bf16", side, precision)
        return _f32(chip, precision, side) if chip.lanes == 64 and names == {"f32"} else None
    return _sixteen(chip, "bf16" if "bf16" in names else "f16", side)


def largest_side(chip: Chip, acc: ScalarType) -> int:
    """The side of the largest tile that ``choose`` knows for results of this type."""
    return 32 if chip.lanes == 64 and acc.bits < 64 else 16


def _mfma(name: str, type: str, bits: int, run: int, side: int, acc: str = "float", cast: str = "") -> Matrix:
    """``name`` with the shape left out; a lane has 2^run of K, and 64 / side lanes share a row."""
    high = 2 if side == 16 else 1
    shape = f"{side}x{side}x{1 << run + high}"
    operand = Operand(type, bits, run)
    rows = ROWS["mfma" if side == 16 else "mfma32"]
    return Matrix(f"mfma.{name.format(shape)}", operand, operand, high, rows, side, acc, cast, tail=_MODES)


def _wmma(chip: Chip, name: str, type: str, bits: int, acc: str = "float") -> Matrix:
    """RDNA 3: every lane has all of K, both halves of the wave the same; RDNA 4: each half of the wave has its half."""
    both = chip.matrix == "wmma11"
    operand = Operand(type, bits, 4 if both else 3)
    return Matrix(f"wmma.{name}", operand, operand, 0 if both else 1, ROWS[chip.matrix], 16, acc)


def _sixteen(chip: Chip, kind: str, side: int, split: str = "") -> Matrix:
    half = "half" if kind == "f16" else "i16"
    mark = "f16" if kind == "f16" else "i16"
    if chip.matrix.startswith("wmma"):
        count = 16 if chip.matrix == "wmma11" else 8
        name = f"f32.16x16x16.{kind}.v8f32.v{count}{mark}"
        return replace(_wmma(chip, name, f"<{count} x {half}>", 16), cast=kind, split=split)
    if chip.matrix == "mfma4":
        found = _mfma(f"f32.{{}}.{kind}", "<8 x half>" if kind == "f16" else "<8 x bfloat>", 16, 3, side, cast=kind)
    else:
        found = _mfma("f32.{}f16" if kind == "f16" else "f32.{}bf16.1k", f"<4 x {half}>", 16, 2, side, cast=kind)
    return replace(found, split=split)


def _bytes(chip: Chip, a: ScalarType, b: ScalarType, side: int) -> Matrix | None:
    signs = (a.is_signed, b.is_signed)
    if chip.matrix.startswith("wmma"):
        count = 4 if chip.matrix == "wmma11" else 2
        name = f"i32.16x16x16.iu8.v8i32.v{count}i32"
        return replace(_wmma(chip, name, f"<{count} x i32>", 8, "i32"), signs=signs, tail=", i1 false")
    if signs != (True, True):
        return None
    dot, type, run = {"mfma2": ("", "i32", 2), "mfma3": (".", "i64", 3), "mfma4": (".", "<4 x i32>", 4)}[chip.matrix]
    return _mfma(f"i32.{{}}{dot}i8", type, 8, run, side, "i32")


def _float8(chip: Chip, a: ScalarType, b: ScalarType, side: int, k: int) -> Matrix:
    """Where K fills them, the instructions of scaled products without the scales: twice as fast."""
    if chip.scaled and k >= (128 if side == 16 else 64):
        found = scaled(chip, a.name.removeprefix("f8"), b.name.removeprefix("f8"), side)
        assert found is not None
        return found
    first, second = FLOAT8[b.name], FLOAT8[a.name]
    if chip.matrix == "wmma12":
        return _wmma(chip, f"f32.16x16x16.{first}.{second}.v8f32.v2i32", "<2 x i32>", 8)
    return _mfma(f"f32.{{}}.{first}.{second}", "i64", 8, 3, side)


def _f32(chip: Chip, precision: str, side: int) -> Matrix:
    """The processor's own short form of f32 (xf32, 10 bits of mantissa) where ``tf32`` is asked for."""
    if precision == "tf32" and chip.xf32:
        return _mfma("f32.{}.xf32", "<2 x float>", 32, 1, side)
    return _mfma("f32.{}f32", "float", 32, 0, side)


def _f64() -> Matrix:
    operand = Operand("double", 64, 0)
    return Matrix("mfma.f64.16x16x4f64", operand, operand, 2, ROWS["f64"], 16, "double", tail=_MODES)


def scaled(chip: Chip, a_format: str, b_format: str, side: int) -> Matrix | None:
    """The instruction for block-scaled operands of these formats: 128 (side 16) or 64 (side 32) of K at a time, a scale
    for each 32. A lane has 32 values: two runs of 16 bytes, one half of K apart, or one of 16 bytes with 4-bit values;
    the scale that a lane gives is that of the h-th 32 of K, whichever values the lane has."""
    if not chip.scaled or a_format not in SCALED or b_format not in SCALED:
        return None
    high = 2 if side == 16 else 1
    kinds = {"e2m1": Operand("<4 x i32>", 8, 4, 4)}
    wide = Operand("<8 x i32>", 8, 5, 4)
    a, b = kinds.get(a_format, wide), kinds.get(b_format, wide)
    shape = f"{side}x{side}x{64 * high}"
    suffix = ".".join(f"v{operand.type[1]}i32" for operand in (b, a))
    rows = ROWS["mfma" if side == 16 else "mfma32"]
    formats = SCALED[a_format], SCALED[b_format]
    return Matrix(f"mfma.scale.f32.{shape}.f8f6f4.{suffix}", a, b, high, rows, side, formats=formats)
