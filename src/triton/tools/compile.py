"""Ahead-of-time compilation of a kernel to a C library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

desc = "Compile a jitted kernel ahead of time to a C source that launches it."


@dataclass
class CompileArgs:
    """What to compile: a kernel of a Python file, its signature (``*fp32:16, i32, 64``) and grid."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: Path | None = None


def compile_kernel(args: CompileArgs) -> Any:
    """Compile one kernel ahead of time."""
    _not_yet()


def main() -> None:
    """Command line of the ahead-of-time compiler."""
    _not_yet()


def _not_yet() -> NoReturn:
    raise NotImplementedError("ahead-of-time compilation is not part of this build yet; use triton.compile in Python")


if __name__ == "__main__":
    main()
