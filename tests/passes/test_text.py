"""Text tests of passes: input and expected output in one file.

A file ``tests/passes/cases/NAME.ir`` holds cases of this form; ``run:`` names passes, in order:

    // case: what it shows
    // run: fold, dce
    module { ... }
    // -----
    module { ... }              (or one line ``// error: message`` when the passes must refuse)

``BLESS=1 pytest tests/passes/test_text.py`` writes what the passes give now into the files; read the diff
before committing it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from triton.ir import IRError, equal, parse_module, print_module, verify
from triton.passes.manager import Pass, run_passes
from triton.passes.pipeline import CSE, DCE, FOLD, HOIST, INLINE, TILE_PASSES

FOLDER = Path(__file__).parent / "cases"
PASSES: dict[str, tuple[Pass, ...]] = {p.name: (p,) for p in (INLINE, FOLD, CSE, HOIST, DCE)} | {"tile": TILE_PASSES}


@dataclass
class Case:
    title: str
    passes: str
    locations: bool
    source: str
    expected: str

    def output(self) -> str:
        steps = [step for name in self.passes.split(",") for step in PASSES[name.strip()]]
        module = parse_module(self.source)
        verify(module)
        try:
            run_passes(module, steps, verify=True)
        except IRError as error:
            return f"// error: {error}\n"
        text = print_module(module, locations=self.locations)
        assert equal(parse_module(text), module)
        return text

    def text(self, expected: str) -> str:
        run = self.passes + (" with locations" if self.locations else "")
        return f"// case: {self.title}\n// run: {run}\n{self.source}// -----\n{expected}"


def read(path: Path) -> list[Case]:
    cases = []
    for part in re.split(r"^// case: ", path.read_text(), flags=re.M)[1:]:
        title, run, rest = part.split("\n", 2)
        source, _, expected = rest.partition("// -----\n")
        passes = run.removeprefix("// run: ")
        locations = passes.endswith(" with locations")
        cases.append(
            Case(title, passes.removesuffix(" with locations"), locations, source, expected.rstrip("\n") + "\n")
        )
    return cases


FILES = sorted(FOLDER.glob("*.ir"))
CASES = [(path, case) for path in FILES for case in read(path)]


@pytest.mark.skipif("BLESS" in os.environ, reason="writing the files")
@pytest.mark.parametrize("path, case", CASES, ids=[f"{p.stem}: {c.title}" for p, c in CASES])
def test_case(path: Path, case: Case) -> None:
    assert case.output() == case.expected


@pytest.mark.skipif("BLESS" not in os.environ, reason="BLESS=1 writes the expected outputs")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_bless(path: Path) -> None:
    head = path.read_text().partition("// case: ")[0]
    path.write_text(head + "\n".join(case.text(case.output()) for case in read(path)))


def test_there_are_cases_for_every_pass() -> None:
    named = {name.strip() for _, case in CASES for name in case.passes.split(",")}
    assert named == set(PASSES)
