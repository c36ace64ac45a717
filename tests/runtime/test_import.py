"""What importing does, and does not do. Each case runs in an interpreter of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import triton

SRC = str(Path(triton.__file__).parent.parent)


def run(code: str, **variables: str) -> str:
    """What a program prints."""
    environment = {**os.environ, "PYTHONPATH": SRC, **variables}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light() -> None:
    loaded = json.loads(run("import triton, sys, json; print(json.dumps(sorted(sys.modules)))"))
    assert "triton" in loaded
    for module in ("torch", "numpy", "triton.compiler.compiler", "triton._C.libtriton", "ctypes"):
        assert module not in loaded, module


def test_decorating_touches_no_driver(tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text(
        textwrap.dedent(
            """
            import json, sys
            import triton
            import triton.language as tl

            @triton.autotune(configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})], key=["n"])
            @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
            @triton.jit
            def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
                tl.store(x, n)

            print(json.dumps([sorted(sys.modules), triton.runtime.driver._active is None]))
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(path)], env={**os.environ, "PYTHONPATH": SRC}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    loaded, untouched = json.loads(done.stdout)
    assert untouched
    for module in ("torch", "numpy", "triton._C.libtriton"):
        assert module not in loaded, module


@pytest.mark.parametrize("name", triton.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(triton, name) is not None


def test_names_that_pytorch_imports() -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import CompiledKernel
    from triton.compiler.compiler import ASTSource, make_backend, triton_key
    from triton.runtime.autotuner import Autotuner, Config, Heuristics, OutOfResources, PTXASError
    from triton.runtime.cache import _base32
    from triton.runtime.jit import JITFunction, KernelInterface, mangle_type, native_specialize_impl

    named = (
        *(ASTSource, Autotuner, CompiledKernel, Config, GPUTarget, Heuristics, JITFunction, KernelInterface),
        *(OutOfResources, PTXASError, _base32, make_backend, mangle_type, native_specialize_impl, triton_key),
    )
    assert all(callable(item) for item in named)
    assert GPUTarget("cuda", 90, 32).arch == 90
    assert "AttrsDescriptor" not in dir(triton.backends.compiler) + dir(triton.compiler.compiler)
    assert "active" in dir(type(triton.runtime.driver))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = triton.nonsense
    assert {"jit", "language", "knobs"} <= set(dir(triton))


def test_asking_for_a_back_end_that_is_not_there() -> None:
    printed = run(
        """
        import triton
        try:
            triton.runtime.driver.active
        except Exception as error:
            print(type(error).__name__, error)
        """,
        TRITON_DEFAULT_BACKEND="metal",
    )
    assert printed.startswith("LaunchError back end 'metal' is not part of this build of triton yet; available:")


def test_host_functions() -> None:
    assert [triton.cdiv(n, 4) for n in (0, 1, 4, 5, 9)] == [0, 1, 1, 2, 3]
    assert [triton.next_power_of_2(n) for n in (1, 2, 3, 4, 5, 1023, 2**40 + 1)] == [1, 2, 4, 4, 8, 1024, 2**41]


def test_nothing_is_built_with_a_c_compiler() -> None:
    from triton.runtime import build

    with pytest.raises(NotImplementedError, match="never runs a C compiler"):
        build.compile_module_from_src("int x;", "helper")


def test_the_allocator_is_asked_for() -> None:
    from triton.runtime import _allocation

    with pytest.raises(RuntimeError, match="set_allocator"):
        _allocation.get_allocator()(16, 16, None)
    mine = lambda size, alignment, stream: bytearray(size)  # noqa: E731
    triton.set_allocator(mine)  # type: ignore[arg-type]
    assert _allocation.get_allocator() is mine  # type: ignore[comparison-overlap]
    triton.set_allocator(None)
    assert not _allocation.has_profile_allocator()
