"""p * 2^n by one AVX-512 instruction, for the exponential functions."""

from __future__ import annotations

from ...lowering.values import Num

_WIDTHS = {"float": ("ps", 32), "double": ("pd", 64)}


def scale(p: Num, n: Num) -> Num | None:
    """p * 2^n rounded once, for vectors of at least 128 bits; None for other shapes. ``n`` is integral, of p's type."""
    bits = _WIDTHS[p.base][1]
    if p.lanes * bits < 128 or p.lanes & (p.lanes - 1):
        return None
    if p.lanes * bits > 512:
        halves = [_instruction(*(_half(v, start) for v in (p, n))) for start in (0, p.lanes // 2)]
        return _joined(*halves)
    return _instruction(p, n)


def _instruction(p: Num, n: Num) -> Num:
    kind, bits = _WIDTHS[p.base]
    if p.lanes * bits > 512:
        result = scale(p, n)
        assert result is not None
        return result
    mask = f"i{max(8, p.lanes)}"
    params = [p.type] * 3 + [mask] + ["i32 immarg"] * (p.lanes * bits == 512)
    callee = p.w.module.declare(f"llvm.x86.avx512.mask.scalef.{kind}.{p.lanes * bits}", p.type, params)
    args = [p.typed, n.typed, f"{p.type} poison", f"{mask} -1"]
    if p.lanes * bits == 512:
        args.append("i32 4")  # the current rounding mode
    return Num(p.w, p.w.call(p.type, callee, args), p.base, p.lanes)


def _half(v: Num, start: int) -> Num:
    lanes = v.lanes // 2
    mask = ", ".join(f"i32 {start + i}" for i in range(lanes))
    return Num(v.w, v.w.emit(f"shufflevector {v.typed}, {v.type} poison, <{lanes} x i32> <{mask}>"), v.base, lanes)


def _joined(a: Num, b: Num) -> Num:
    lanes = a.lanes + b.lanes
    mask = ", ".join(f"i32 {i}" for i in range(lanes))
    return Num(a.w, a.w.emit(f"shufflevector {a.typed}, {b.typed}, <{lanes} x i32> <{mask}>"), a.base, lanes)
