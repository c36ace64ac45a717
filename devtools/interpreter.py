"""Stages the running CPython installation as a relocatable tree for the `python` package of the local channel."""

from __future__ import annotations

import compileall
import py_compile
import shutil
import sys
import sysconfig
from pathlib import Path

SHORT = f"{sys.version_info.major}.{sys.version_info.minor}"
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
SITE_PACKAGES = f"lib/python{SHORT}/site-packages"

# Not needed to build, test or run a package.
_LEFT_OUT = (
    "__pycache__",
    "config-*",
    "dist-packages",
    "ensurepip",
    "EXTERNALLY-MANAGED",
    "idlelib",
    "lib2to3",
    "site-packages",
    "sitecustomize.py",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)

# Debian's sysconfig.py installs into dist-packages unless the interpreter is in a virtual environment, and asks this
# question to find out. A conda environment has site-packages, so the copy answers yes.
_DEBIAN_QUESTION = 'sys.base_prefix != sys.prefix or hasattr(sys, "real_prefix")'


def headers_dir() -> Path | None:
    """Where the running interpreter's `Python.h` is, or None when its headers are not installed."""
    folder = Path(sysconfig.get_path("include", vars={"installed_base": sys.base_prefix}))
    return folder if (folder / "Python.h").is_file() else None


def _real_pyconfig(include: Path) -> Path:
    # Debian's include/pythonX.Y/pyconfig.h only dispatches to one below the multiarch folder.
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    candidate = include.parent / multiarch / include.name / "pyconfig.h"
    return candidate if multiarch and candidate.is_file() else include / "pyconfig.h"


def _use_site_packages(stdlib: Path) -> None:
    if '"dist-packages"' not in (stdlib / "site.py").read_text():
        return
    # Debian's site module is frozen into the interpreter and looks only into dist-packages: lead it on from there.
    (stdlib / "dist-packages").mkdir()
    lead = f'import site, sys; site.addsitedir(f"{{sys.prefix}}/{SITE_PACKAGES}")\n'
    (stdlib / "dist-packages" / "site-packages.pth").write_text(lead)
    module = stdlib / "sysconfig.py"
    text = module.read_text()
    if _DEBIAN_QUESTION not in text:
        raise SystemExit("sysconfig.py of this Python uses dist-packages in a way that dev.py does not know.")
    module.write_text(text.replace(_DEBIAN_QUESTION, "True"))


def stage_python(tree: Path) -> None:
    """Copies interpreter, standard library and headers below `tree` so that `tree/bin/python` runs from anywhere.

    Compiled modules go along: without them the first import writes some into whatever package is being built then.
    """
    include = headers_dir()
    if include is None:
        raise SystemExit(
            f"The C headers of Python {SHORT} are missing: install python3-dev (Debian) or its equivalent."
        )
    stdlib = tree / "lib" / f"python{SHORT}"
    shutil.copytree(sysconfig.get_path("stdlib"), stdlib, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    _use_site_packages(stdlib)
    (tree / SITE_PACKAGES).mkdir()
    (tree / SITE_PACKAGES / "README.txt").write_text("Packages of this environment are installed here.\n")

    (tree / "bin").mkdir()
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    shutil.copy2(executable, tree / "bin" / f"python{SHORT}")
    for name in ("python", "python3"):
        (tree / "bin" / name).symlink_to(f"python{SHORT}")
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        library = Path(sysconfig.get_config_var("LIBDIR")) / str(sysconfig.get_config_var("INSTSONAME"))
        shutil.copy2(library, tree / "lib" / library.name)

    shutil.copytree(include, tree / "include" / include.name)
    shutil.copy2(_real_pyconfig(include), tree / "include" / include.name / "pyconfig.h")
    compileall.compile_dir(
        str(stdlib),
        quiet=2,
        workers=2,
        stripdir=str(tree),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
