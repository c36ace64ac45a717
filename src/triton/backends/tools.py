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


def find_bitcode(name: str) -> Path:
    """A library of AMD's device functions, ``name``.bc. Raises FileNotFoundError with the places looked at."""
    given = os.environ.get("TRITON_HIP_BITCODE_PATH")
    prefixes = [p for p in dict.fromkeys((os.environ.get("CONDA_PREFIX"), sys.prefix)) if p]
    folders = [Path(given)] if given else []
    for prefix in prefixes:
        folders += [Path(prefix) / "amdgcn/bitcode", Path(prefix) / "lib/amdgcn/bitcode"]
        folders += [Path(prefix) / "Library/amdgcn/bitcode", Path(prefix) / "Library/lib/amdgcn/bitcode"]
    compiler = shutil.which("hipcc")
    roots = [os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), "/opt/rocm"]
    roots.append(str(Path(compiler).resolve().parents[1]) if compiler else None)
    folders += [Path(root) / "amdgcn/bitcode" for root in dict.fromkeys(filter(None, roots))]
    folders.append(Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"))
    for folder in folders:
        for file in (folder / f"{name}.bc", folder / f"{name}.amdgcn.bc"):
            if file.is_file():
                return file
    found = find_file([f"_rocm_sdk_*/lib/llvm/amdgcn/bitcode/{name}.bc", f"_rocm_sdk_*/amdgcn/bitcode/{name}.bc"])
    if found is None:
        shown = ", ".join(map(str, folders))
        raise FileNotFoundError(
            f"this kernel needs {name}.bc of AMD's device libraries (package rocm-device-libs, or set "
            f"TRITON_HIP_BITCODE_PATH to its folder); looked in {shown}"
        )
    return found
