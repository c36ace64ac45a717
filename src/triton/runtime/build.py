"""Names kept for programs that compiled C helpers through Triton. Nothing is compiled by a C compiler here."""

from __future__ import annotations

import platform
from types import ModuleType
from typing import Any, NoReturn

__all__ = [
    "compile_module_from_file",
    "compile_module_from_src",
    "compile_so_from_file",
    "compile_so_from_src",
    "platform_key",
]


def platform_key() -> str:
    """Machine, system and pointer width."""
    return ",".join((platform.machine(), platform.system(), *platform.architecture()))


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"cannot build the C module {name!r}: this triton never runs a C compiler; launches need no compiled helper"
    )


def compile_so_from_src(
    src: str,
    name: str,
    library_dirs: Any = None,
    include_dirs: Any = None,
    libraries: Any = None,
    ccflags: Any = None,
    language: str = "c",
) -> str:
    _refuse(name)


def compile_so_from_file(
    src_path: str,
    name: str,
    library_dirs: Any = None,
    include_dirs: Any = None,
    libraries: Any = None,
    ccflags: Any = None,
) -> str:
    _refuse(name)


def compile_module_from_src(
    src: str,
    name: str,
    library_dirs: Any = None,
    include_dirs: Any = None,
    libraries: Any = None,
    ccflags: Any = None,
    language: str = "c",
) -> ModuleType:
    _refuse(name)


def compile_module_from_file(
    src_path: str,
    name: str,
    library_dirs: Any = None,
    include_dirs: Any = None,
    libraries: Any = None,
    ccflags: Any = None,
) -> ModuleType:
    _refuse(name)
