"""Builds our conda package with rattler-build, and makes environments with py-rattler.

python -m devtools.package build  ROOT CHANNEL[,CHANNEL ...] OUTPUT VARIANT[,VARIANT ...] [KEY=VALUE ...]
                                                                        builds and tests variants of recipe/recipe.yaml
python -m devtools.package env    PREFIX CHANNEL[,CHANNEL ...] SPEC ... makes a new environment
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import cast

from rattler import Channel, Gateway, PathsJson, VirtualPackage, VirtualPackageOverrides, install, solve
from rattler.exceptions import SolverError
from rattler.platform import Subdir, SubdirLiteral
from rattler_build import (
    JinjaConfig,
    PlatformConfig,
    RattlerBuildError,
    RenderConfig,
    Stage0Recipe,
    ToolConfiguration,
    VariantConfig,
)
from rattler_build.package import Package
from rattler_build.render import RenderedVariant

PLATFORM: SubdirLiteral = "linux-64"
MAX_BYTES = 3_000_000
MAX_SECONDS = 300


class Log:
    """Writes what rattler-build and its scripts say to a file; the console gets the steps and what went wrong."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w")

    def on_download_start(self, event: object) -> None:
        """Downloads are local files or shown by their step."""

    on_download_progress = on_download_complete = on_download_start

    def on_build_step(self, event: object) -> None:
        self._write(f"[{getattr(event, 'step_name', '')}] {getattr(event, 'message', '')}", shown=True)

    def on_log(self, event: object) -> None:
        message = str(getattr(event, "message", ""))
        # Results of tests and environments are marked by rattler-build, and pytest's count is what a reader looks for.
        shown = getattr(event, "level", "") == "error" or "\u2714" in message or " passed" in message
        self._write(message, shown=shown)

    def _write(self, message: str, *, shown: bool) -> None:
        self._file.write(message + "\n")
        self._file.flush()
        if shown:
            print(f"  {message.strip()}", flush=True)


def render(root: Path, overrides: dict[str, str], platform: str = PLATFORM) -> list[RenderedVariant]:
    """Every variant of recipe/recipe.yaml for `platform`; `overrides` replace values of conda_build_config.yaml."""
    target = PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform)
    # Not found by itself beside recipe/, and only this reader honours its `# [linux]` selectors.
    variants = VariantConfig.from_conda_build_config(root / "conda_build_config.yaml", JinjaConfig(platform=target))
    variants = variants.merge(VariantConfig({key: [value] for key, value in overrides.items()}))
    recipe = Stage0Recipe.from_file(root / "recipe" / "recipe.yaml")
    return recipe.render(variants, RenderConfig(platform=target))


def variant_name(variant: RenderedVariant) -> str:
    """What its build string starts with: `cpu`, `cuda129`, `cuda130`, `hip`."""
    return str(variant.recipe.to_dict()["build"]["string"]).split("_")[0]


def chosen(rendered: list[RenderedVariant], names: list[str]) -> list[RenderedVariant]:
    """Those whose name begins with one of `names` (`cuda` stands for every CUDA release, `all` for everything)."""
    known = sorted(map(variant_name, rendered))
    for name in names:
        if name != "all" and not any(one.startswith(name) for one in known):
            raise SystemExit(f"There is no variant {name}: there are {', '.join(known)}, and all.")
    kept = [v for v in rendered if "all" in names or variant_name(v).startswith(tuple(names))]
    # The plain one first: what is wrong with all of them shows soonest there.
    return sorted(kept, key=variant_name)


def build(
    root: Path, channels: list[str], output: Path, names: list[str], overrides: dict[str, str]
) -> list[dict[str, object]]:
    """Builds, packs and tests variants into the channel `output`; a failing build or test raises."""
    results: list[dict[str, object]] = []
    log = Log(output.parent / "package.log")
    # Building again must not leave the previous package to be found by the test stage's solver.
    for name in (PLATFORM, "bld", "src_cache", "broken"):
        shutil.rmtree(output / name, ignore_errors=True)
    for variant in chosen(render(root, overrides), names):
        print(f"  variant {variant_name(variant)}", flush=True)
        start = time.monotonic()
        built = variant.run_build(
            ToolConfiguration(test_strategy="native", channel_priority="disabled"),
            output_dir=output,
            channels=channels,
            progress_callback=log,
            package_format="conda:3",
        )
        seconds = time.monotonic() - start
        for path in built.packages:
            Path(path).chmod(0o644)  # a web server that is to serve it is another user
            check_limits(Path(path), seconds)
            package = Package.from_file(path)
            results.append(
                {
                    "file": str(path),
                    "variant": variant_name(variant),
                    "bytes": Path(path).stat().st_size,
                    "files": len(package.files),
                    "seconds": round(seconds, 1),
                    "depends": package.depends,
                    "tests": package.test_count,
                }
            )
    return results


def check_limits(file: Path, seconds: float) -> None:
    """What users and maintainers were promised of every package."""
    if file.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{file.name} has {file.stat().st_size} bytes, more than {MAX_BYTES}")
    if seconds > MAX_SECONDS:
        raise SystemExit(f"{file.name} took {seconds:.0f} s to build, more than {MAX_SECONDS}")


def contents(file: Path) -> dict[str, str]:
    """The files that a package installs, each with the hash of its bytes."""
    return {str(entry.relative_path): str(entry.sha256) for entry in PathsJson.from_package_archive(file).paths}


def compare_contents(packages: dict[str, dict[str, str]]) -> str:
    """Variants differ in their dependencies only, and each was built by itself: what they install must be the same,
    byte for byte. Returns a line that says so; another byte is an error."""
    (first, expected), *others = packages.items()
    for name, found in others:
        different = sorted(path for path in expected.keys() | found.keys() if expected.get(path) != found.get(path))
        if different:
            raise SystemExit(f"the builds {first} and {name} are not the same: {', '.join(different[:5])}")
    if not others:
        return f"-- {first} was built once: nothing to compare it with"
    return f"-- {', '.join(packages)}: {len(packages)} builds, the same {len(expected)} files, byte for byte"


async def make_environment(
    prefix: Path, channels: list[str], specs: list[str], platform: SubdirLiteral = PLATFORM
) -> list[str]:
    """Solves `specs` from `channels` and installs them into the new environment `prefix`."""
    shutil.rmtree(prefix, ignore_errors=True)
    records = await solve(
        sources=[Channel(name) for name in channels],
        specs=specs,
        gateway=Gateway(),
        platforms=[platform, "noarch"],
        # $CONDA_OVERRIDE_CUDA counts, as it does for conda.
        virtual_packages=VirtualPackage.detect(VirtualPackageOverrides.from_env()),
    )
    cache = Path(os.environ["RATTLER_CACHE_DIR"]) / "pkgs"
    await install(records, target_prefix=prefix, cache_dir=cache, show_progress=False, platform=Subdir(platform))
    return sorted(f"{record.name.normalized} {record.version} {record.build}" for record in records)


def main() -> None:
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "build":
        root, channels, output, names, *rest = arguments
        overrides = dict(item.split("=", 1) for item in rest)
        try:
            results = build(Path(root), channels.split(","), Path(output), names.split(","), overrides)
        except RattlerBuildError as error:
            raise SystemExit(f"rattler-build: {error}") from None
        names = {str(made["variant"]): contents(Path(str(made["file"]))) for made in results}
        print(compare_contents(names), flush=True)
        print("RESULT " + json.dumps(results), flush=True)
    elif command == "env":
        try:
            # As conda does, $CONDA_SUBDIR says for which platform.
            platform = cast(SubdirLiteral, os.environ.get("CONDA_SUBDIR") or PLATFORM)
            channels = arguments[1].split(",")
            packages = asyncio.run(make_environment(Path(arguments[0]), channels, arguments[2:], platform))
        except SolverError as error:
            raise SystemExit(f"No environment satisfies {', '.join(arguments[2:])}: {error}") from None
        print("RESULT " + json.dumps(packages), flush=True)
    else:
        raise SystemExit(f"unknown command {command}")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # rattler's worker threads may still hold Python objects here, and CPython's orderly shutdown then aborts at times.
    os._exit(0)
