"""Every kernel test runs under each back end."""

from __future__ import annotations

import functools
from typing import Any

import device
import pytest
import support


_ON_GPU = pytest.mark.skipif(bool(device.missing()), reason=device.missing())


@pytest.fixture(params=["interpreter", "cpu", pytest.param("cuda", marks=_ON_GPU)])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def launch(backend: str) -> Any:
    """``launch(kernel, grid, *args, **meta)`` under the test's back end."""
    return functools.partial(support.launch, backend=backend)
