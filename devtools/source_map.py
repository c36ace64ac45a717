"""Writes docs/map.md, the source tree file by file, from what each file says first: `python devtools/source_map.py`.

``--check`` only tells whether the page is up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "map.md"

# In the order in which a kernel meets them. A folder of the source that is missing here is an error.
FOLDERS = (
    "src/triton",
    "src/triton/runtime",
    "src/triton/language",
    "src/triton/language/extra",
    "src/triton/language/extra/cuda",
    "src/triton/language/extra/hip",
    "src/triton/frontend",
    "src/triton/diagnostics",
    "src/triton/ir",
    "src/triton/analysis",
    "src/triton/rules",
    "src/triton/passes",
    "src/triton/layouts",
    "src/triton/lowering",
    "src/triton/lowering/loops",
    "src/triton/lowering/simt",
    "src/triton/compiler",
    "src/triton/backends",
    "src/triton/backends/cpu",
    "src/triton/backends/cuda",
    "src/triton/backends/hip",
    "src/triton/interpreter",
    "src/triton/tools",
    "src/triton/_C",
    "src/native",
    "devtools",
)
SUFFIXES = (".py", ".pyi", ".h", ".cpp")

INTRODUCTION = """\
# The source tree

Generated from the first sentence of each file by `python devtools/source_map.py`; do not edit.

A kernel is Python source until its first launch. The launch path looks at the arguments (types, which integers are 1 or
divisible by 16 or 8, alignment of pointers). If it has met their like, the compiled kernel runs at once, on the CPU and
on CUDA without Python code. If not, the front end walks the kernel's syntax tree and builds tile IR, where one value is
a whole tile; passes that know no target simplify it, guided by analyses and rule tables; then the back end that the
arguments belong to makes code of it, through LLVM. Code and every stage's text (`kernel.asm`) are kept in memory and on
disk.

    @triton.jit                      k[grid](x, y, n, BLOCK=1024)
    def k(x, y, n, BLOCK): ...                     |
             |                   runtime/, native/launch.cpp                arguments -> key: met before? ----+
             |                                     | no: compile                                              |
             v                                     v                                                          |
    frontend/source.py -------------> frontend/, language/, ir/             syntax tree -> tile IR            |
                                                   |                                                          |
    TRITON_INTERPRET=1:                            |                                                          |
    interpreter/ <---------------------------------+                                                          |
    the meaning of every op,                       v                                                          |
    on NumPy                  analysis/ ---> passes/ <--- rules/            inline, fold, cse, hoist  "ttir"  |
                                                   |                                                          |
                       CPU                         |                GPUs                                      |
                        +--------------------------+-----------------+                                        |
                        |                               layouts/, passes/assign_layouts.py,                   |
                        |                               pipeline_loads.py, shared_products.py         "ttgir" |
                        v                                            v                                        |
                lowering/loops/                               lowering/simt/                                  |
                loops over vectors                            one thread's share                              |
                        |                                            |                                        |
                        +-------- lowering/elementwise.py, ... ------+                                "llir"  |
                        |                                            |                                        |
                        v                                            v                                        |
                native/compile.cpp: LLVM                      native/compile.cpp: LLVM                        |
                object -> native/jit.cpp                      PTX -> cubin; object -> hsaco                   |
                        |                                            |                                        |
                        v                                            v                                        |
                native/pool.cpp                               native/cuda*.cpp, native/hip*.cpp <-------------+
                programs on threads                           (or native/pool.cpp on the CPU)

A folder of `ir`, `layouts`, `analysis`, `rules`, `passes`, `lowering`, `backends`, `runtime` imports only those before
it, and none before `backends` names a target (`tests/test_structure.py`). Beside the source: `examples/`,
`benchmarks/`, `recipe/` (the conda package), `tests/` ([testing.md](testing.md)), `dev.py` (builds, tests, packages).
"""


def first_sentence(path: Path) -> str:
    """What the file says first: its module docstring, or the comment it begins with."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".py", ".pyi"):
        said = ast.get_docstring(ast.parse(text)) or ""
    else:
        lines = []
        for line in text.splitlines():
            if not line.startswith("//"):
                break
            lines.append(line.removeprefix("//").strip())
        said = "\n".join(lines)
    paragraph = " ".join(said.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.])\s+(?=[A-Z])", paragraph, maxsplit=1)[0]
    return sentence.rstrip(".").replace("``", "`").replace("|", "\\|")


def entries(folder: Path) -> Iterator[tuple[str, str]]:
    """(names, sentence) of the files of one folder; a header and its source share a row."""
    files = {path.name: path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES}
    for name, path in files.items():
        if path.suffix == ".cpp" and path.with_suffix(".h").name in files:
            continue
        source = path.with_suffix(".cpp").name
        names = f"`{name}`, `.cpp`" if path.suffix == ".h" and source in files else f"`{name}`"
        sentence = first_sentence(path)
        if not sentence:
            raise ValueError(f"{path.relative_to(ROOT)} needs a docstring or a first comment that says what it is")
        yield names, sentence


def source_map() -> str:
    """The text of the page."""
    found = {p.parent for top in ("src", "devtools") for p in (ROOT / top).rglob("*") if p.suffix in SUFFIXES}
    unknown = sorted(str(folder.relative_to(ROOT)) for folder in found if str(folder.relative_to(ROOT)) not in FOLDERS)
    if unknown:
        raise ValueError(f"folders that FOLDERS in devtools/source_map.py lacks: {', '.join(unknown)}")
    parts = [INTRODUCTION]
    for name in FOLDERS:
        rows = list(entries(ROOT / name))
        package = [sentence for names, sentence in rows if names == "`__init__.py`"]
        parts.append(f"## {name}/\n")
        if package:
            parts.append(f"{package[0]}.\n")
        rows = [row for row in rows if row[0] != "`__init__.py`"]
        if rows:
            parts.append("| file | |\n|---|---|\n" + "".join(f"| {names} | {said} |\n" for names, said in rows))
    return "\n".join(parts)


def main() -> int:
    text = source_map()
    if "--check" in sys.argv[1:]:
        if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print("docs/map.md is out of date; run python devtools/source_map.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
