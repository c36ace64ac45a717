"""Each test gets an empty cache and, unless it asks otherwise, the reference back end as active driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import triton
import triton.backends as backends

sys.path.insert(0, str(Path(__file__).parent))

from reference_backend import ReferenceBackend, ReferenceDriver


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(path))
    return path


@pytest.fixture
def torch() -> Any:
    """The module, for the tests that pass tensors; a file of tests does without."""
    return pytest.importorskip("torch")


@pytest.fixture
def device() -> Iterator[ReferenceDriver]:
    """The reference driver, active for one test."""
    known = backends.all_backends()
    known["reference"] = backends.Backend(ReferenceBackend, ReferenceDriver)
    driver = ReferenceDriver()
    before = triton.runtime.driver._active
    triton.runtime.driver.set_active(driver)
    ReferenceBackend.stages_run.clear()
    yield driver
    triton.runtime.driver._active = before
    del known["reference"]
