"""The shape of the source: layers import downward, no target is named above a back end, files are small."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "triton"

# A folder may import the folders before it and itself.
LAYERS = ["ir", "layouts", "analysis", "rules", "passes", "lowering", "backends", "runtime"]
# Seams: (importing file, imported module) pairs that are allowed against the order, with the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("backends/*", "runtime"): "a back end's driver.py implements the runtime's driver interface",
    ("backends/*", "testing"): "a driver hands out the benchmark function of its device",
    ("backends/*", "compiler"): "a back end is handed sources and metadata records of the compiler",
}

TARGET_FREE = ["ir", "passes", "rules", "lowering", "layouts", "analysis"]
# fullmatch on words: cuda, hip, sm_90, gfx942, ptx ...; "chip", "membership", "relationship" are no targets.
TARGET = re.compile(r"(?<![a-z])(cuda|hip|rocm|nvptx|amdgcn|gfx\d+\w*|sm_\d+\w*)(?![a-z])", re.I)

MAX_LINES = 650
MAX_PASS_LINES = 300
MAX_FUNCTION_LINES = 70
LONG_FILES = {
    "passes/pipeline_loads.py": "one loop rewritten as a whole: which loads, what runs ahead, prologue, body",
    "passes/assign_layouts.py": "one dataflow problem: what layout each op wants and how it is rebuilt in it",
    "runtime/jit.py": "the launch path, whose parts share one class",
}
LONG_FUNCTIONS: dict[str, str] = {}


def _files(folder: str = "") -> list[Path]:
    return sorted(p for p in (SOURCE / folder).rglob("*.py") if "__pycache__" not in p.parts)


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _imports(path: Path, *, top_only: bool) -> list[tuple[int, str]]:
    """(line, first folder below triton) of each import of the package, type-checking ones left out."""
    package = ["triton", *path.relative_to(SOURCE).parts[:-1]]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = []
    for node in tree.body if top_only else ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            names = [module] if node.module else [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "triton" and len(parts) > 1:
                found.append((node.lineno, parts[1]))
    return found


def _allowed(path: str, target: str) -> bool:
    return any(
        target == module and (path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1])))
        for pattern, module in EXCEPTIONS
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_import_downward(layer: str) -> None:
    upper = set(LAYERS[LAYERS.index(layer) + 1 :]) | {
        "compiler",
        "frontend",
        "language",
        "interpreter",
        "testing",
        "tools",
    }
    if layer == "runtime":
        upper = set()  # the top of this order; it starts front end and compiler
    wrong = [
        f"{_name(path)}:{line} imports {target}"
        for path in _files(layer)
        for line, target in _imports(path, top_only=False)
        if target in upper and not _allowed(_name(path), target)
    ]
    assert not wrong, wrong


def test_layouts_do_not_need_the_analyses_and_rules_need_no_pass() -> None:
    for path in _files("analysis") + _files("ir"):
        assert not {"passes", "rules", "lowering"} & {t for _, t in _imports(path, top_only=False)}, path


@pytest.mark.parametrize("folder", TARGET_FREE)
def test_no_target_is_named(folder: str) -> None:
    wrong = []
    for path in _files(folder):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := TARGET.search(line):
                wrong.append(f"{_name(path)}:{number}: {match.group()}")
    assert not wrong, wrong


def test_files_stay_small() -> None:
    wrong = []
    for path in _files():
        text = path.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        if ast.get_docstring(tree := ast.parse(text)) is not None:  # a long explanation is no fault
            lines -= tree.body[0].end_lineno or 0
        limit = MAX_PASS_LINES if _name(path).startswith("passes/") else MAX_LINES
        if lines > limit and _name(path) not in LONG_FILES:
            wrong.append(f"{_name(path)}: {lines} lines, at most {limit}")
    assert not wrong, wrong
    assert all((SOURCE / name).is_file() and reason for name, reason in LONG_FILES.items()), "a listed file is gone"


def test_functions_stay_small() -> None:
    wrong, seen = [], set()
    for path in _files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                docstring = node.body[0] if ast.get_docstring(node) is not None else None
                if docstring is not None and docstring.end_lineno is not None:
                    lines -= docstring.end_lineno - docstring.lineno + 1
                key = f"{_name(path)}:{node.name}"
                seen.add(key)
                if lines > MAX_FUNCTION_LINES and key not in LONG_FUNCTIONS:
                    wrong.append(f"{key}: {lines} lines, at most {MAX_FUNCTION_LINES}")
    assert not wrong, wrong
    assert all(key in seen and reason for key, reason in LONG_FUNCTIONS.items()), "a listed function is gone"


def test_passes_have_a_contract() -> None:
    """Each file of passes/ says what it requires and ensures, and shows a picture."""
    for path in _files("passes"):
        if path.stem in ("__init__", "manager", "pipeline"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        text = ast.get_docstring(tree) or ""
        for part in ("Requires:", "Ensures:", "=>"):
            assert part in text, f"{_name(path)}: the docstring lacks {part!r}"
        public = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
        assert path.stem in public, f"{_name(path)} has no function {path.stem}"
