"""The build back end that pip calls: scikit-build-core's, on Windows over a patched copy of src/ (patches/windows)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scikit_build_core import build as _scikit

import patches

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[1]
PATCHED = sys.platform == "win32"
Settings = Mapping[str, list[str] | str]

build_sdist = _scikit.build_sdist
get_requires_for_build_sdist = _scikit.get_requires_for_build_sdist
get_requires_for_build_wheel = _scikit.get_requires_for_build_wheel
get_requires_for_build_editable = _scikit.get_requires_for_build_editable


@contextmanager
def _sources() -> Iterator[None]:
    """Inside, the current folder is the project with the sources to build."""
    if not PATCHED:
        yield
        return
    tree = ROOT / "build" / "patched"
    patches.stage(ROOT, tree)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    before = os.getcwd()
    os.chdir(tree)
    try:
        yield
    finally:
        os.chdir(before)


def build_wheel(folder: str, config_settings: Settings | None = None, metadata_directory: str | None = None) -> str:
    target = os.path.abspath(folder)
    with _sources():
        return str(_scikit.build_wheel(target, config_settings, metadata_directory))  # type: ignore[arg-type]


def build_editable(folder: str, config_settings: Settings | None = None, metadata_directory: str | None = None) -> str:
    target = os.path.abspath(folder)
    with _sources():
        return str(_scikit.build_editable(target, config_settings, metadata_directory))  # type: ignore[arg-type]
