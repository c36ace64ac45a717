"""Every kernel test runs under each back end."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import support


@pytest.fixture(params=["interpreter", "cpu"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def launch(backend: str) -> Any:
    """``launch(kernel, grid, *args, **meta)`` under the test's back end."""
    return functools.partial(support.launch, backend=backend)
