"""The ops that leave the language: functions of bitcode libraries and target assembly, applied lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.core import Op
from ..ir.table import IRError
from ..ir.types import element_of
from .writer import Cell, FunctionWriter, extract, insert, scalar_type


def extern_rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> list[Cell]:
    """Calls ``symbol`` for each lane."""
    if len(op.results) != 1:
        raise IRError(f"extern function {op.attrs['symbol']!r} must have one result, got {len(op.results)}")
    to = element_of(op.results[0].type)
    pure = " memory(none)" if op.attrs.get("pure", True) else ""
    callee = w.module.declare(
        str(op.attrs["symbol"]), scalar_type(to), [scalar_type(a.element) for a in args], f"nounwind willreturn{pure}"
    )
    lanes = args[0].lanes if args else 0

    def one(scalars: Sequence[Cell]) -> Cell:
        return w.cell(f"call {scalar_type(to)} {callee}({', '.join(s.typed for s in scalars)})", to, 0)

    if not lanes:
        return [one(args)]
    result = Cell("poison", to, lanes)
    for lane in range(lanes):
        result = insert(w, result, one([extract(w, a, lane) for a in args]), lane)
    return [result]


def assembly_rule(w: FunctionWriter, op: Op, args: Sequence[Cell]) -> list[Cell]:
    """Puts the assembly text in once for each lane; operands are in registers of their own."""
    if op.attrs.get("pack", 1) != 1:
        raise IRError("inline assembly with pack > 1 must be refused before")
    types = [scalar_type(element_of(r.type)) for r in op.results]
    result_type = types[0] if len(types) == 1 else "{ " + ", ".join(types) + " }"
    text = "".join(
        c if 32 <= ord(c) < 127 and c not in '"\\' else f"\\{b:02X}" for c in str(op.attrs["text"]) for b in c.encode()
    )
    flags = "" if op.attrs.get("pure", True) else "sideeffect "
    asm = f'asm {flags}"{text}", "{op.attrs["constraints"]}"'
    lanes = args[0].lanes if args else 0

    def one(scalars: Sequence[Cell]) -> list[Cell]:
        value = w.emit(f"call {result_type} {asm}({', '.join(s.typed for s in scalars)})")
        names = (
            [value]
            if len(types) == 1
            else [w.emit(f"extractvalue {result_type} {value}, {i}") for i in range(len(types))]
        )
        return [Cell(n, element_of(r.type)) for n, r in zip(names, op.results, strict=True)]

    if not lanes:
        return one(args)
    results = [Cell("poison", element_of(r.type), lanes) for r in op.results]
    for lane in range(lanes):
        parts = one([extract(w, a, lane) for a in args])
        results = [insert(w, whole, part, lane) for whole, part in zip(results, parts, strict=True)]
    return results
