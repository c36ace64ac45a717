"""Finding the programs and files that back ends use but do not ship: one function for each kind, one order of places.

Order: the environment variable; the conda environment; PATH; packages of the Python environment. Nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path


def find_programs(name: str, variable: str, packages: Sequence[str] = ()) -> list[Path]:
    """Every program ``name`` in order: what ``variable`` names (then only that), ``bin`` of the conda environment,
    PATH, and
    ``packages``, which are glob patterns below site-packages. Raises FileNotFoundError when the variable names
    something that is not there."""
    given = os.environ.get(variable)
    if given:
        if not Path(given).is_file():
            raise FileNotFoundError(f"{variable}={given}: there is no such file")
        return [Path(given)]
    suffix = ".exe" if os.name == "nt" else ""
    prefixes = dict.fromkeys(filter(None, (os.environ.get("CONDA_PREFIX"), sys.prefix)))
    places = [Path(p) / ("Library/bin" if os.name == "nt" else "bin") / (name + suffix) for p in prefixes]
    on_path = shutil.which(name)
    places += [Path(on_path)] if on_path else []
    places += [found for p in packages if (found := find_file([f"{p}/{name}{suffix}"])) is not None]
    return [place for place in dict.fromkeys(places) if place.is_file()]


def find_file(patterns: Sequence[str]) -> Path | None:
    """The first file below site-packages that matches one of the glob patterns."""
    for key in ("platlib", "purelib"):
        folder = Path(sysconfig.get_paths()[key])
        for pattern in patterns:
            found = sorted(folder.glob(pattern))
            if found:
                return found[-1]
    return None
