"""Turns PyPI wheels into conda packages: same name, version and dependencies, files where conda has them."""

from __future__ import annotations

import configparser
import email.message
import email.parser
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from devtools.condapkg import Spec
from devtools.interpreter import SHORT, SITE_PACKAGES, TAG


@dataclass(frozen=True, slots=True)
class Target:
    """The Python that packages are for: where its files lie, and what requirements' markers ask of it."""

    short: str = SHORT
    tag: str = TAG
    site_packages: str = SITE_PACKAGES
    scripts: str = "bin"
    platform: Literal["linux-64", "win-64"] = "linux-64"
    markers: Mapping[str, str] = field(default_factory=dict)


HERE = Target()

# A script's first line may not be longer than the kernel allows, and must find the Python beside it wherever the
# environment lies.
_LAUNCHER = """#!/bin/sh
'''exec' "$(dirname "$(realpath "$0")")/python" "$0" "$@"
' '''
import sys
from {module} import {root}
sys.exit({call}())
"""


def _metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def conda_spec(requirement: str, target: Target = HERE) -> str | None:
    """`scipy (>=1.1,<2) ; python_version >= "3.8"` as a conda match spec; None when its marker does not hold there."""
    wanted = Requirement(requirement)
    environment: dict[str, str] = {**default_environment(), "extra": "", **target.markers}  # type: ignore[dict-item]
    if wanted.marker is not None and not wanted.marker.evaluate(environment):
        return None
    versions = ",".join(sorted(str(clause).replace("===", "==") for clause in wanted.specifier))
    return f"{canonicalize_name(wanted.name)} {versions}".strip()


def _console_scripts(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt")]
        if not names:
            return {}
        parser = configparser.ConfigParser(delimiters=("=",))
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read_string(archive.read(names[0]).decode())
    return dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}


def _extract(wheel: Path, tree: Path, site: Path, scripts: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            path = site / info.filename
            if data := re.match(r"[^/]+\.data/(purelib|platlib|scripts|data|headers)/(.+)", info.filename):
                roots = {
                    "purelib": site,
                    "platlib": site,
                    "scripts": tree / scripts,
                    "data": tree,
                    "headers": tree / "include",
                }
                path = roots[data[1]] / data[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            # A wheel keeps the executable bit in the zip's external attributes; scripts always get it.
            executable = (info.external_attr >> 16) & 0o111 or path.parent == tree / scripts
            path.chmod(0o755 if executable else 0o644)
    for record in site.glob("*.dist-info/RECORD"):
        # Files moved: the list would no longer be true, and conda keeps its own.
        record.write_text("")
    for folder in site.glob("*.dist-info"):
        (folder / "INSTALLER").write_text("conda\n")


def _write_launchers(scripts: Mapping[str, str], folder: Path) -> None:
    for command, entry in scripts.items():
        module, _, call = entry.split("[")[0].strip().partition(":")
        path = folder / command
        path.parent.mkdir(exist_ok=True)
        path.write_text(_LAUNCHER.format(module=module, call=call, root=call.split(".")[0]))
        path.chmod(0o755)


def stage_wheel(wheel: Path, tree: Path, target: Target = HERE) -> Spec:
    """Unpacks `wheel` below `tree` and returns the metadata of the conda package that `tree` now holds.

    A package with machine code gets launchers for its commands on Linux; on Windows it gets none.
    """
    metadata = _metadata(wheel)
    name, version, _, tags = parse_wheel_filename(wheel.name)
    pure = any(tag.platform == "any" for tag in tags)
    depends = [spec for text in metadata.get_all("Requires-Dist", []) if (spec := conda_spec(text, target))]
    scripts = _console_scripts(wheel)
    if pure:
        _extract(wheel, tree, tree / "site-packages", target.scripts)
        python = str(metadata.get("Requires-Python", ">=3.10")).replace(" ", "")
        depends.insert(0, f"python {python}")
    else:
        _extract(wheel, tree, tree / target.site_packages, target.scripts)
        depends.insert(0, f"python {target.short}.*")
        depends.append(f"python_abi {target.short}.* *_{target.tag}")
        if target.platform == "linux-64":
            _write_launchers(scripts, tree / target.scripts)
    return Spec(
        name=canonicalize_name(name),
        version=str(version),
        build="pypi_0" if pure else f"{target.tag}_pypi_0",
        depends=tuple(depends),
        noarch="python" if pure else None,
        license=str(metadata.get("License-Expression") or metadata.get("License") or "").split("\n")[0],
        summary=str(metadata.get("Summary") or ""),
        entry_points=tuple(f"{command} = {entry.split('[')[0].strip()}" for command, entry in scripts.items())
        if pure
        else (),
        platform=target.platform,
    )
