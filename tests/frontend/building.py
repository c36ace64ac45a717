"""Builds kernels without running them: every module is verified and must survive printing and parsing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from triton.diagnostics import CompilationError
from triton.frontend.build import build_module
from triton.ir import Module, parse_module, print_module, verify
from triton.ir.capabilities import Capabilities
from triton.runtime.jit import JITFunction, jit

CPU = Capabilities("cpu", "generic")
OPTIONS = SimpleNamespace(num_warps=4, num_stages=3, debug=True)


def build(fn: Any, *types: Any, options: Any = OPTIONS, **constants: Any) -> Module:
    """The module of a kernel whose run-time parameters have these types, in order; ``constants`` are its constexprs."""
    kernel = fn if isinstance(fn, JITFunction) else jit(fn)
    remaining = list(types)
    signature = {n: "constexpr" if n in constants else remaining.pop(0) for n in kernel.arg_names}
    assert not remaining, "more types than parameters"
    values = {(kernel.arg_names.index(n),): v for n, v in constants.items()}
    module = build_module(kernel, signature, values, {}, options, CPU)
    verify(module)
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed
    return module


def body(fn: Any, *types: Any, **constants: Any) -> list[str]:
    """The kernel's ops as lines, without the last return."""
    lines = print_module(build(fn, *types, **constants)).splitlines()
    start = next(i for i, line in enumerate(lines) if "{kernel = true}" in line)
    return [line[2:] for line in lines[start + 1 : -3]]


def kinds(fn: Any, *types: Any, **constants: Any) -> list[str]:
    """The kinds of all ops, in program order."""
    return [op.kind for op in build(fn, *types, **constants).walk()]


def error(fn: Any, *types: Any, kind: type[CompilationError] = CompilationError, **constants: Any) -> CompilationError:
    """The CompilationError that building raises."""
    with pytest.raises(CompilationError) as caught:
        build(fn, *types, **constants)
    assert type(caught.value) is kind, caught.value
    return caught.value


def message(fn: Any, *types: Any, **constants: Any) -> str:
    """The last line of the error: what is wrong."""
    return str(error(fn, *types, **constants).error_message)
