"""The generated page of ops is up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_op_reference_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("op_reference", ROOT / "devtools" / "op_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "op-reference.md").read_text(encoding="utf-8")
    assert page == module.reference(), "run python devtools/op_reference.py"
