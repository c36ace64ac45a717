"""Every kernel test runs under each back end."""

from __future__ import annotations

import functools
import os
from typing import Any

import device
import pytest
import support

import triton

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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each back end; the cases from bug reports with 1, 2, 4 and 8 warps each, where there are warps."""
    if "backend" not in metafunc.fixturenames:
        return
    several = "test_cases" in metafunc.module.__name__
    places = []
    for place in [*_BACKENDS, *(getattr(metafunc.module, "MORE_BACKENDS", ()) if not _COMPILE_FOR else ())]:
        name, marks = (place, ()) if isinstance(place, str) else (place.values[0], place.marks)
        for warps in (1, 2, 4, 8) if several and name not in ("interpreter", "cpu") else (0,):
            label = f"{name}-{warps} warps" if warps else str(name)
            places.append(pytest.param((name, warps), marks=marks, id=label))
    metafunc.parametrize("backend", places, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param[0])


def _launch(kernel: Any, grid: Any, *args: Any, backend: str, some_warps: int, **meta: Any) -> None:
    if some_warps and isinstance(kernel, triton.JITFunction):
        meta.setdefault("num_warps", some_warps)
    support.launch(kernel, grid, *args, backend=backend, **meta)


@pytest.fixture
def launch(request: pytest.FixtureRequest, backend: str) -> Any:
    """``launch(kernel, grid, *args, **meta)`` under the test's back end."""
    some_warps = request.node.callspec.params["backend"][1]
    return functools.partial(_launch, backend=backend, some_warps=some_warps)
