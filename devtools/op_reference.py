"""Writes docs/op-reference.md from the op table: ``python devtools/op_reference.py``.

``--check`` only tells whether the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "op-reference.md"

INTRODUCTION = """\
# The ops of the tile IR

Generated from `src/triton/ir/ops.py` by `python devtools/op_reference.py`; do not edit.

An op is written `%result = kind %operand, ... {attribute = value} : result types (regions)`. Types are scalars (`i1`,
`i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`, `f8e4m3`, `f8e5m2`, `f8e4b15`, `f8e4b8`, `f8e5b16`),
pointers `ptr<f32>`, tensors of them `4x64xf32` and descriptors `desc<8x16xf32>`. Tensor sizes need not be powers of
two.
"""


def reference() -> str:
    """The text of the page."""
    from triton.ir import ops

    groups: dict[str, list[str]] = {}
    for kind, info in ops.OPS.items():
        groups.setdefault(info.group, []).append(kind)
    notes = (ops.__doc__ or "").partition("Conventions. ")[2].strip().replace("\n", " ").replace("``", "`")
    parts = [INTRODUCTION, f"**Conventions.** {notes}\n"]
    for group, kinds in groups.items():
        parts.append(f"* [{group}](#{_anchor(group)}): " + ", ".join(f"`{k}`" for k in kinds))
    for group, kinds in groups.items():
        parts.append(f"\n## {group}\n")
        parts.extend(_row(ops.OPS[kind]) for kind in kinds)
    return "\n".join(parts).rstrip() + "\n"


def _anchor(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


def _row(info) -> str:  # type: ignore[no-untyped-def]
    from triton.ir.table import REQUIRED

    lines = [f"### {info.kind}\n", info.meaning + "\n"]
    for operand in info.operands:
        arity = {"one": "", "optional": " (optional)", "many": " (any number)"}[operand.arity]
        lines.append(f"* operand `{operand.name}`: {operand.constraint.words}{arity}")
    for name, attr in info.attrs.items():
        choices = ": " + ", ".join(f"`{c!r}`" for c in attr.choices) if attr.choices else ""
        default = "" if attr.default is REQUIRED else f", default `{attr.default!r}`"
        lines.append(f"* attribute `{name}` ({attr.kind}{default}){choices}")
    for region in info.regions:
        lines.append(f"* region `{region}`")
    if info.infer is not None and info.infer.__doc__:
        lines.append(f"* result: {info.infer.__doc__.strip()}")
    words = [f"effects: {', '.join(sorted(info.effects))}"] if info.effects else []
    words += [word for word in ("elementwise", "commutative", "terminator") if getattr(info, word)]
    if len(info.stages) == 1:
        words.append(f"stage {next(iter(info.stages))} only")
    if words:
        lines.append("* " + "; ".join(words))
    if info.example:
        arguments, _, body = info.example.partition("=>")
        lines.append("\nWith " + (f"`{arguments.strip()}`" if arguments.strip() != "()" else "no arguments") + ":\n")
        lines.append("\n".join("    " + line for line in body.strip().splitlines()))
    return "\n".join(lines) + "\n"


def main() -> int:
    sys.path.insert(0, str(ROOT / "src"))
    text = reference()
    if "--check" in sys.argv[1:]:
        if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print("docs/op-reference.md is out of date; run python devtools/op_reference.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
