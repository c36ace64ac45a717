"""Compiling without running: the helper of every test module here."""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.tools import find_bitcode
from triton.compiler import ASTSource

ARCHITECTURES = (
    "gfx1030",
    "gfx1100",
    "gfx1101",
    "gfx1102",
    "gfx1151",
    "gfx1200",
    "gfx1201",
    "gfx90a",
    "gfx942",
    "gfx950",
)


def source_of(
    kernel: Any, signature: dict[str, str], constants: dict[str, Any], divisible: tuple[str, ...] = ()
) -> ASTSource:
    names = [p.name for p in kernel.params]
    full = {name: signature.get(name, "constexpr") for name in names}
    aligned = [n for n, kind in signature.items() if kind[0] == "*" or n in divisible]
    attrs = {(names.index(n),): [("tt.divisibility", 16)] for n in aligned}
    return ASTSource(kernel, full, {(names.index(n),): value for n, value in constants.items()}, attrs)


def compiled(
    kernel: Any,
    arch: str,
    signature: dict[str, str],
    constants: dict[str, Any],
    divisible: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    return triton.compile(
        source_of(kernel, signature, constants, divisible), target=GPUTarget("hip", arch, 0), options=options
    )


def has_library(name: str) -> bool:
    try:
        find_bitcode(name)
    except FileNotFoundError:
        return False
    return True
