"""Every kernel test runs under each back end."""

from __future__ import annotations

import functools
import os
from typing import Any

import device
import pytest
import support

_ON_GPU = pytest.mark.skipif(bool(device.missing()), reason=device.missing())


_COMPILE_FOR = os.environ.get(
    "TRITON_TEST_COMPILE", ""
).split()  # such as "sm_80 sm_90": compile only, no device needed
_BACKENDS = _COMPILE_FOR or ["interpreter", "cpu", pytest.param("cuda", marks=_ON_GPU)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Any:
    """A test that only compiles ends where it would look at results."""
    try:
        return (yield)
    except device.Compiled:
        return None


@pytest.fixture(params=_BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def launch(backend: str) -> Any:
    """``launch(kernel, grid, *args, **meta)`` under the test's back end."""
    return functools.partial(support.launch, backend=backend)
