"""The types, values, instructions and intrinsics that ``emulator.py`` knows: NumPy arrays, one row a work-item."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import support

INTS = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
FLOATS = {"half": np.float16, "float": np.float32, "double": np.float64}


@dataclass(frozen=True)
class Type:
    """``base``: i1 ... i64, half, bfloat, float, double, ptr (global), lds; ``count`` 0: a scalar."""

    base: str
    count: int = 0

    @property
    def dtype(self) -> Any:
        if self.base[0] == "i":
            return INTS[next(n for n in INTS if n >= int(self.base[1:]))]
        return {"bfloat": np.uint16, "ptr": np.uint64, "lds": np.uint32}.get(self.base) or FLOATS[self.base]

    @property
    def bits(self) -> int:
        return int(self.base[1:]) if self.base[0] == "i" else np.dtype(self.dtype).itemsize * 8

    @property
    def bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * max(1, self.count)


def parse_type(text: str) -> Type:
    text = text.strip()
    vector = re.fullmatch(r"<(\d+) x (.+)>", text)
    if vector:
        return Type(parse_type(vector[2]).base, int(vector[1]))
    if text.startswith("ptr"):
        return Type("lds" if "addrspace(3)" in text else "ptr")
    if not re.fullmatch(r"i\d+|half|bfloat|float|double", text):
        raise NotImplementedError(f"type {text!r}")
    return Type(text)


def signed(a: np.ndarray) -> np.ndarray:
    return a.view(np.int8) if a.dtype == bool else np.ascontiguousarray(a).view(a.dtype.name.replace("uint", "int"))


def real(type: Type, a: np.ndarray) -> np.ndarray:
    return (a.astype(np.uint32) << 16).view(np.float32) if type.base == "bfloat" else a


def to_bytes(a: np.ndarray, type: Type) -> np.ndarray:
    return np.ascontiguousarray(a).view(np.uint8).reshape(len(a), type.bytes)


def from_bytes(raw: np.ndarray, type: Type) -> np.ndarray:
    flat = np.ascontiguousarray(raw).view(type.dtype)
    return flat.reshape(len(raw), type.count) if type.count else flat.reshape(len(raw))


def _arith(function: Callable[[Any, Any], Any]) -> Callable[[Type, np.ndarray, np.ndarray], np.ndarray]:
    return lambda type, a, b: _cut(function(a, b).astype(type.dtype), type)


def _cut(a: np.ndarray, type: Type) -> np.ndarray:
    """An integer of an odd width, kept in a wider one."""
    odd = type.base[0] == "i" and type.bits not in INTS
    return a & type.dtype((1 << type.bits) - 1) if odd else a


def _divide(type: Type, a: np.ndarray, b: np.ndarray, is_signed: bool, rest: bool) -> np.ndarray:
    x, y = (signed(a), signed(b)) if is_signed else (a, b)
    y = np.where(y == 0, y.dtype.type(1), y)
    if is_signed:
        quotient = np.sign(x).astype(object) * np.sign(y) * (abs(x.astype(object)) // abs(y.astype(object)))
        full = x.astype(object) - quotient * y.astype(object) if rest else quotient
        mask = (1 << type.bits) - 1
        return np.array([int(v) & mask for v in full.ravel()], type.dtype).reshape(a.shape)
    return (x % y if rest else x // y).astype(type.dtype)


def _shift(kind: str) -> Callable[[Type, np.ndarray, np.ndarray], np.ndarray]:
    def apply(type: Type, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        amount = np.minimum(b, b.dtype.type(type.bits - 1))  # larger ones are poison, never used
        if kind == "shl":
            return _cut((a << amount).astype(type.dtype), type)
        if kind == "lshr":
            return (a >> amount).astype(type.dtype)
        return (signed(a) >> signed(amount)).view(type.dtype)

    return apply


def _logic(function: Callable[[Any, Any], Any]) -> Callable[[Type, np.ndarray, np.ndarray], np.ndarray]:
    return lambda type, a, b: function(a, b)


BINARY: dict[str, Callable[[Type, np.ndarray, np.ndarray], np.ndarray]] = {
    "add": _arith(lambda a, b: a ^ b if a.dtype == bool else a + b),
    "sub": _arith(lambda a, b: a ^ b if a.dtype == bool else a - b),
    "mul": _arith(lambda a, b: a & b if a.dtype == bool else a * b),
    "and": _logic(lambda a, b: a & b),
    "or": _logic(lambda a, b: a | b),
    "xor": _logic(lambda a, b: a ^ b),
    "shl": _shift("shl"),
    "lshr": _shift("lshr"),
    "ashr": _shift("ashr"),
    "udiv": lambda t, a, b: _divide(t, a, b, False, False),
    "urem": lambda t, a, b: _divide(t, a, b, False, True),
    "sdiv": lambda t, a, b: _divide(t, a, b, True, False),
    "srem": lambda t, a, b: _divide(t, a, b, True, True),
    "fadd": _arith(lambda a, b: a + b),
    "fsub": _arith(lambda a, b: a - b),
    "fmul": _arith(lambda a, b: a * b),
    "fdiv": _arith(lambda a, b: a / b),
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _fptrunc(type: Type, a: np.ndarray, to: Type) -> np.ndarray:
    if to.base == "bfloat":
        return support.encode(a, "bfloat16").astype(np.uint16)
    return a.astype(to.dtype)


def _saturating(a: np.ndarray, low: int, high: int, to: Any) -> np.ndarray:
    wide = np.where(np.isnan(a), 0, a.astype(np.float64))
    return (
        np.array(
            [
                max(low, min(high, int(v) if np.isfinite(v) else (high if v > 0 else low))) & (1 << 64) - 1
                for v in wide.ravel()
            ],
            np.uint64,
        )
        .reshape(a.shape)
        .astype(to)
    )


CASTS: dict[str, Callable[[Type, np.ndarray, Type], np.ndarray]] = {
    "zext": lambda t, a, to: a.astype(to.dtype),
    "sext": lambda t, a, to: (-a.astype(np.int64) if t.base == "i1" else signed(a).astype(np.int64)).astype(to.dtype),
    "trunc": lambda t, a, to: (a & a.dtype.type(1)).astype(bool) if to.base == "i1" else _cut(a.astype(to.dtype), to),
    "bitcast": lambda t, a, to: from_bytes(to_bytes(a, t), to),
    "addrspacecast": lambda t, a, to: a,
    "ptrtoint": lambda t, a, to: a.astype(to.dtype),
    "inttoptr": lambda t, a, to: a.astype(to.dtype),
    "fpext": lambda t, a, to: real(t, a).astype(to.dtype),
    "fptrunc": _fptrunc,
    "uitofp": lambda t, a, to: _fptrunc(t, a.astype(np.float64 if t.bits <= 32 else to.dtype), to),
    "sitofp": lambda t, a, to: _fptrunc(t, signed(a).astype(np.float64 if t.bits <= 32 else to.dtype), to),
    "fptoui": lambda t, a, to: _saturating(a, 0, (1 << to.bits) - 1, to.dtype),
    "fptosi": lambda t, a, to: _saturating(a, -(1 << to.bits - 1), (1 << to.bits - 1) - 1, to.dtype),
}


def _wide(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A function of floats computed in double (long double for doubles) and rounded once."""

    def apply(type: Type, *args: np.ndarray) -> np.ndarray:
        wide = np.longdouble if type.base == "double" else np.float64
        return np.asarray(function(*(a.astype(wide) for a in args))).astype(type.dtype)

    return apply


def _funnel(type: Type, high: np.ndarray, low: np.ndarray, amount: np.ndarray) -> np.ndarray:
    n = amount % type.dtype(type.bits)
    back = (type.dtype(type.bits) - n) % type.dtype(type.bits)
    return np.where(n == 0, high, (high << n) | (low >> back)).astype(type.dtype)


def _count(type: Type, a: np.ndarray, trailing: bool) -> np.ndarray:
    width = type.bits
    numbers = [int(v) for v in a.ravel()]
    found = [((v & -v).bit_length() - 1 if trailing else width - v.bit_length()) if v else width for v in numbers]
    return np.array(found, type.dtype).reshape(a.shape)


INTRINSICS: dict[str, Callable[..., Any]] = {
    "fma": _wide(lambda a, b, c: a * b + c),
    "fabs": lambda t, a: np.abs(a),
    "sqrt": _wide(np.sqrt),
    "floor": lambda t, a: np.floor(a),
    "ceil": lambda t, a: np.ceil(a),
    "trunc": lambda t, a: np.trunc(a),
    "rint": lambda t, a: np.rint(a),
    "roundeven": lambda t, a: np.rint(a),
    "nearbyint": lambda t, a: np.rint(a),
    "copysign": lambda t, a, b: np.copysign(a, b),
    "maxnum": lambda t, a, b: np.fmax(a, b),
    "minnum": lambda t, a, b: np.fmin(a, b),
    "maximum": lambda t, a, b: np.maximum(a, b),
    "minimum": lambda t, a, b: np.minimum(a, b),
    "smax": lambda t, a, b: np.where(signed(a) > signed(b), a, b),
    "smin": lambda t, a, b: np.where(signed(a) < signed(b), a, b),
    "umax": lambda t, a, b: np.maximum(a, b),
    "umin": lambda t, a, b: np.minimum(a, b),
    "abs": lambda t, a, poison: np.abs(signed(a)).view(t.dtype),
    "fshl": _funnel,
    "ctlz": lambda t, a, poison: _count(t, a, False),
    "cttz": lambda t, a, poison: _count(t, a, True),
    "bitreverse": lambda t, a: np.array([int(f"{int(v):0{t.bits}b}"[::-1], 2) for v in a], t.dtype),
    "ctpop": lambda t, a: np.array([int(v).bit_count() for v in a], t.dtype),
    "exp": _wide(np.exp),
    "exp2": _wide(np.exp2),
    "log": _wide(np.log),
    "log2": _wide(np.log2),
    "ldexp": lambda t, a, n: np.ldexp(a, signed(n)).astype(t.dtype),
    "assume": lambda t, a: None,
}
ATOMIC: dict[str, Callable[[Type, Any, Any], Any]] = {
    "add": BINARY["add"],
    "sub": BINARY["sub"],
    "and": BINARY["and"],
    "or": BINARY["or"],
    "xor": BINARY["xor"],
    "fadd": BINARY["fadd"],
    "xchg": lambda t, a, b: b,
    "max": INTRINSICS["smax"],
    "min": INTRINSICS["smin"],
    "umax": INTRINSICS["umax"],
    "umin": INTRINSICS["umin"],
    "fmax": INTRINSICS["maxnum"],
    "fmin": INTRINSICS["minnum"],
}
