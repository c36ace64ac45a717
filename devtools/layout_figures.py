"""Draws the layouts of docs/layouts.md from the code that makes them: python devtools/layout_figures.py [--check]

Each picture shows a tile; a cell's colour is its lane (its warp by the frame), its number "lane:register".
"""

from __future__ import annotations

import colorsys
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from triton.ir.core import Op, Value  # noqa: E402
from triton.ir.types import TensorType, f16, f32  # noqa: E402
from triton.layouts.linear import LinearLayout, distribute, join_index  # noqa: E402
from triton.layouts.shared import plan_shared  # noqa: E402

FOLDER = ROOT / "docs" / "figures"
CELL = 34


def owners(layout: LinearLayout) -> dict[int, tuple[int, int, int]]:
    """For each element the first (warp, lane, register) that holds it."""
    found: dict[int, tuple[int, int, int]] = {}
    for warp in range(layout.warps):
        for lane in range(layout.lanes):
            for register in range(layout.registers):
                found.setdefault(layout(register, lane, warp), (warp, lane, register))
    return found


def colour(index: int, count: int) -> str:
    red, green, blue = colorsys.hls_to_rgb(index / max(1, count), 0.78, 0.6)
    return f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"


def draw(rows: int, columns: int, cells: list[list[tuple[str, str]]], title: str) -> str:
    """An SVG of a grid; each cell is a colour and a text."""
    width, height = columns * CELL + 20, rows * CELL + 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">']
    parts.append(f'<text x="10" y="20" font-size="13">{title}</text>')
    for i, row in enumerate(cells):
        for j, (fill, text) in enumerate(row):
            x, y = 10 + j * CELL, 30 + i * CELL
            parts.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#555"/>')
            place = f'x="{x + CELL / 2:g}" y="{y + CELL / 2 + 4:g}"'
            parts.append(f'<text {place} font-size="9" text-anchor="middle">{text}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def of_layout(layout: LinearLayout, title: str) -> str:
    rows, columns = layout.shape
    found = owners(layout)
    cells = []
    for i in range(rows):
        row = []
        for j in range(columns):
            warp, lane, register = found[join_index((i, j), layout.shape)]
            row.append((colour(lane + warp * layout.lanes, layout.lanes * layout.warps), f"{lane}:{register}"))
        cells.append(row)
    return draw(rows, columns, cells, title)


def of_banks(source: LinearLayout, target: LinearLayout, title: str) -> str:
    """Which of the 32 banks holds each element of a 4-byte tile while it changes layout."""
    plan = plan_shared(source, target, 4)
    rows, columns = source.shape
    cells = []
    for i in range(rows):
        banks = [plan.address(join_index((i, j), source.shape)) % 32 for j in range(columns)]
        cells.append([(colour(b, 32), str(b)) for b in banks])
    return draw(rows, columns, cells, title)


def product_layouts() -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    from triton.backends.cuda import mma
    from triton.passes.assign_layouts import LayoutOptions

    types = [TensorType((16, 16), f16), TensorType((16, 8), f16), TensorType((16, 8), f32)]
    op = Op("dot", [], [types[2]])
    op.operands = [Value(t, op, i) for i, t in enumerate(types)]
    return mma.layouts(op, LayoutOptions(32, 1, lambda op, options: None), 80)


def figures() -> dict[str, str]:
    rows = distribute((8, 16), (1, 0), (1, 4), 32, 1)
    columns = distribute((8, 16), (0, 1), (4, 1), 32, 1)
    a, b, c = product_layouts()
    return {
        "blocked.svg": of_layout(rows, "8x16 tile, 32 lanes, 4 consecutive elements a thread (lane:register)"),
        "columns.svg": of_layout(columns, "the same tile, 4 consecutive rows a thread"),
        "banks.svg": of_banks(rows, columns, "shared-memory bank of each element on the way between the two"),
        "mma-a.svg": of_layout(a, "mma m16n8k16, first operand (a thread owns runs of k)"),
        "mma-b.svg": of_layout(b, "second operand"),
        "mma-c.svg": of_layout(c, "accumulator"),
    }


def main() -> int:
    stale = []
    for name, text in figures().items():
        path = FOLDER / name
        if "--check" in sys.argv:
            stale += [name] if not path.is_file() or path.read_text() != text else []
        else:
            path.write_text(text)
    if stale:
        print("out of date, run python devtools/layout_figures.py:", ", ".join(stale))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
