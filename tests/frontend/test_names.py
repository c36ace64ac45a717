"""Every name of the API that is implemented is there, with a signature that takes the same calls."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = {
    module: names
    for file in ("language_names", "runtime_names")
    for module, names in json.loads((ROOT / "tests" / "data" / f"{file}.json").read_text(encoding="utf-8")).items()
}


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location("missing_names", ROOT / "devtools" / "missing_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("module", TABLE)
def test_every_name_is_there(module, checker):
    table = {"modules": {module: {"names": TABLE[module]}}}
    problems, count = checker.check(table, module)
    assert count == len(TABLE[module]) > 0
    assert problems == {}


def test_the_checker_finds_what_is_wrong(checker):
    table = {
        "modules": {
            "triton.language": {
                "names": {
                    "load": {"signature": "(pointer, mask=None, nothing=None)"},
                    "no_such_name": {},
                    "where": {"signature": "(cond, x, y)"},
                    "program_id": {"signature": "(axis)"},
                    "arange": {"signature": "(start, end=1)"},
                    "static_range": {"kind": "class", "init": "(arg1, arg2=None, step=3)"},
                    "dtype": {"kind": "class", "methods": {"is_fp16": {"sig": "(self_)"}, "nothing": {}}},
                }
            },
            "triton.language.nowhere": {"names": {"a": {}}},
        }
    }
    problems, count = checker.check(table, "triton.language")
    assert count == 8
    assert problems == {
        "triton.language": [
            "load: no parameter nothing (wanted (pointer, mask=None, nothing=None))",
            "no_such_name",
            "where: no parameter cond (wanted (cond, x, y))",
            "arange: no default for end (wanted (start, end=1))",
            "static_range: default of step is None (wanted (arg1, arg2=None, step=3))",
            "dtype.is_fp16: no parameter self_ (wanted (self_))",
            "dtype.nothing",
        ],
        "triton.language.nowhere": [
            "cannot be imported (No module named 'triton.language.nowhere'): 1 names",
        ],
    }


def test_importing_the_language_needs_no_array_library_and_no_native_code():
    code = (
        "import sys; import triton.language\n"
        "assert not {'numpy', 'torch', 'scipy', 'triton._C.libtriton'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_functions_have_docstrings():
    import triton.language as tl

    functions = [getattr(tl, n) for n in tl.__all__ if callable(getattr(tl, n)) and n[0].islower()]
    assert len(functions) > 120
    assert [getattr(f, "__name__", f) for f in functions if not getattr(f, "__doc__", None)] == []
