"""Builds, packs and tests our win-64 package under Wine.

python -m devtools.windows_package ROOT KIT OUTPUT LLVM_INCLUDE VARIANT[,VARIANT ...]

recipe/bld.bat runs in Wine's cmd, in environments that are solved from a win-64 channel for what rattler-build renders
of recipe/recipe.yaml, with the variables and the activation that both build tools give it. rattler-build itself does
not build for win-64 elsewhere than on Windows (it takes the build environment for the system it runs on), so that the
files which the script adds to the host environment are packed here, with the metadata that rattler-build would write.
The package is then installed into a new environment, in a folder with a space and letters beyond ASCII, and tested.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rattler import RunExportsJson
from rattler_build.render import RenderedVariant

import dev
from devtools import package, patches, publish, windows_channel, wine
from devtools.condapkg import Spec, write_package
from devtools.wine import Kit, windows_path

FOLDER = "Umgebung mit ä"
# What Windows has itself: the extension may need no other DLL but those of its run dependencies.
SYSTEM_DLLS = re.compile(r"(kernel32|msvcrt|ucrtbase|api-ms-win-[\w-]+)\.dll", re.I)
DEPENDENCY_DLLS = {"llvm-c.dll": "libllvm-c", "python3.dll": "python"}


@dataclass(frozen=True, slots=True)
class Work:
    """Folders of one build."""

    kit: Kit
    root: Path
    channel: Path
    folder: Path

    @property
    def host(self) -> Path:
        return self.folder / "host"

    @property
    def build(self) -> Path:
        return self.folder / "build"

    @property
    def sources(self) -> Path:
        return self.folder / "work"


def _environment(prefix: Path, channels: list[Path], specs: list[str]) -> None:
    """In a process of its own: rattler's threads at times wait for each other forever."""
    names = ",".join(path.as_uri() for path in channels)
    command = [sys.executable, "-W", "ignore", "-m", "devtools.package", "env", str(prefix), names, *specs]
    for last in (False, True):
        try:
            done = subprocess.run(
                command, env={**os.environ, "CONDA_SUBDIR": "win-64"}, capture_output=True, text=True, timeout=120
            )
        except subprocess.TimeoutExpired:
            if last:
                raise
            print(f"  no environment {prefix.name} within two minutes; once more", flush=True)
            continue
        if done.returncode:
            raise SystemExit(f"{done.stdout}{done.stderr}")
        return


def _stage(work: Work, recipe: dict[str, Any]) -> None:
    """What the recipe lists as sources, in the work folder, with the patches that it lists."""
    work.sources.mkdir(parents=True)
    for source in recipe["source"]:
        path = (work.root / "recipe" / source["path"]).resolve()
        if path.is_file():
            shutil.copy2(path, work.sources)
            continue
        if path != work.root / "src" or source["target_directory"] != "src":
            raise SystemExit(f"the recipe's source {path} is not src")
        patches.copy_sources(work.root, work.sources)
        for patch in source["patches"]:
            patches.apply_patch(work.root / "recipe" / patch, work.sources)


def _script(work: Work, recipe: dict[str, Any], variant: dict[str, Any]) -> str:
    """The batch file that calls the recipe's script as the build tools do."""
    host, build = windows_path(work.host), windows_path(work.build)
    variables = {
        "PREFIX": host, "BUILD_PREFIX": build, "LIBRARY_PREFIX": rf"{host}\Library", "CONDA_BUILD": "1",
        "SP_DIR": rf"{host}\Lib\site-packages", "PYTHON": rf"{host}\python.exe", "CPU_COUNT": str(os.cpu_count() or 2),
        "SRC_DIR": windows_path(work.sources), "CMAKE_GENERATOR": "Ninja",
        "PATH": rf"{build}\Library\bin;{build}\Scripts;{host};{host}\Library\bin;{host}\Scripts;%PATH%",
        **{key: str(value) for key, value in variant.items() if not key.startswith("__")},
    }  # fmt: skip
    lines = ["@echo off", *(f'set "{key}={value}"' for key, value in variables.items())]
    activation = sorted((work.build / "etc/conda/activate.d").glob("*.bat"))
    lines += [f'call "{windows_path(path)}"' for path in activation]
    name = recipe["build"]["script"]["file"]
    shutil.copy2(work.root / "recipe" / name, work.sources)
    lines += [f"call {name}", "if %ERRORLEVEL% neq 0 exit /b 1"]
    return "\r\n".join(lines) + "\r\n"


def _files(prefix: Path) -> set[Path]:
    return {path.relative_to(prefix) for path in prefix.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def build(work: Work, rendered: RenderedVariant) -> tuple[set[Path], float]:
    """Runs the recipe's script; returns the files that it added to the host environment, and the seconds it took."""
    recipe = rendered.recipe.to_dict()
    shutil.rmtree(work.folder, ignore_errors=True)
    _stage(work, recipe)
    for prefix, section in ((work.build, "build"), (work.host, "host")):
        _environment(prefix, [work.channel], recipe["requirements"][section])
    before = _files(work.host)
    (work.sources / "conda_build.bat").write_text(_script(work, recipe, dict(rendered.variant)), newline="")
    start = time.monotonic()
    done = work.kit.run(["cmd", "/d", "/c", "conda_build.bat"], cwd=work.sources, timeout=900)
    seconds = time.monotonic() - start
    (work.folder / "build.log").write_text(done.stdout)
    if done.returncode:
        raise SystemExit(f"{done.stdout[-6000:]}\nbld.bat ended with {done.returncode}")
    return _files(work.host) - before, seconds


def _run_exports(work: Work, names: list[str], kinds: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for spec in names:
        name = re.split(r"[ =<>]", spec)[0]
        # Those of Python itself would bind the package to one version.
        records = [] if name == "python" else sorted(work.channel.glob(f"*/{name}-*.conda"))
        for record in records:
            if record.name.rsplit("-", 2)[0] == name:
                exports = RunExportsJson.from_package_archive(record)
                found += [need for kind in kinds for need in getattr(exports, kind)]
                break
    return list(dict.fromkeys(found))


def _spec(work: Work, rendered: RenderedVariant) -> Spec:
    recipe = rendered.recipe.to_dict()
    needs = recipe["requirements"]
    exports = _run_exports(work, needs["build"], ("strong",)) + _run_exports(work, needs["host"], ("weak", "strong"))
    if "libllvm-c" not in " ".join(exports):
        raise SystemExit("no host dependency's run_exports name LLVM's library")
    return Spec(
        name=recipe["package"]["name"],
        version=recipe["package"]["version"],
        build=recipe["build"]["string"],
        build_number=recipe["build"]["number"],
        depends=tuple(dict.fromkeys([*needs["run"], *exports])),
        constrains=tuple(needs.get("run_constraints", ())),
        noarch="python",
        stable_abi=True,
        platform="win-64",
        license=recipe["about"]["license"],
        summary=recipe["about"]["summary"],
        track_features="triton-p-0" if recipe["build"]["variant"].get("down_prioritize_variant") else "",
    )


def pack(work: Work, rendered: RenderedVariant, files: set[Path], output: Path) -> Path:
    """The package of what the script installed, and of what the recipe says of it."""
    recipe = rendered.recipe.to_dict()
    tree = work.folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    site = Path("Lib/site-packages")
    for path in sorted(files):
        inside = Path("site-packages") / path.relative_to(site) if path.is_relative_to(site) else path
        (tree / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(work.host / path, tree / inside)
    listed = [path for test in recipe["tests"] for path in test.get("files", {}).get("recipe", ())]
    for name in listed:
        target = tree / "etc/conda/test-files" / recipe["package"]["name"] / "1" / name
        shutil.copytree(work.root / "recipe" / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    about = {**recipe["about"], "channels": [], "extra": {}}
    variant = {key: str(value) for key, value in rendered.variant.items() if not key.startswith("__")}
    info: dict[str, Path | bytes] = {
        "info/about.json": json.dumps(about, indent=1).encode(),
        "info/hash_input.json": json.dumps(variant, sort_keys=True).encode(),
        "info/tests/tests.yaml": yaml.safe_dump(recipe["tests"], sort_keys=True).encode(),
        "info/recipe/rendered_recipe.yaml": yaml.safe_dump(recipe, sort_keys=True).encode(),
        **{f"info/licenses/{name}": work.sources / name for name in recipe["about"]["license_file"]},
    }
    for path in sorted((work.root / "recipe").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            info[f"info/recipe/{path.relative_to(work.root / 'recipe').as_posix()}"] = path
    return write_package(_spec(work, rendered), tree, output, info)


def foreign_dlls(extension: Path) -> list[str]:
    """DLLs that the extension needs and that neither Windows nor a run dependency has."""
    needed = wine.dll_imports(extension)
    return [name for name in needed if not SYSTEM_DLLS.fullmatch(name) and name.lower() not in DEPENDENCY_DLLS]


def test(work: Work, rendered: RenderedVariant, output: Path) -> str:
    """Installs the package by name and build string, and runs the recipe's tests; returns what they counted."""
    recipe = rendered.recipe.to_dict()
    prefix = work.folder / FOLDER
    name, version, string = recipe["package"]["name"], recipe["package"]["version"], recipe["build"]["string"]
    needs = [need for test in recipe["tests"] for need in test.get("requirements", {}).get("run", ())]
    specs = [f"{name} =={version} {string.split('_')[0]}*", "pip", *needs]
    _environment(prefix, [output, work.channel], specs)
    path = ";".join(windows_path(prefix / inside) for inside in (".", "Library/bin", "Scripts"))
    extra = {"CONDA_PREFIX": windows_path(prefix), "WINEPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    python, counted = prefix / "python.exe", ""

    def run(*words: str | Path, cwd: Path = prefix) -> str:
        done = work.kit.run([python, *words], extra, cwd=cwd, timeout=600)
        if done.returncode:
            raise SystemExit(f"{done.stdout[-6000:]}\nin {prefix}: {' '.join(map(str, words))} ended with "
                             f"{done.returncode}")  # fmt: skip
        return done.stdout

    extension = prefix / "Lib/site-packages/triton/_C/libtriton.pyd"
    if foreign := foreign_dlls(extension):
        raise SystemExit(f"{extension.name} needs {', '.join(foreign)}, which no run dependency has")
    for one in recipe["tests"]:
        if "python" in one:
            run("-c", "; ".join(f"import {module}" for module in one["python"]["imports"]))
            run("-m", "pip", "check")
        else:
            cwd = prefix / "etc/conda/test-files" / name / "1"
            program, *words = str(one["script"]).split()
            counted = run("-m", program, *words, cwd=cwd).strip().splitlines()[-1]
    return counted


def main() -> None:
    root, kit_folder, output, include = (Path(word).resolve() for word in sys.argv[1:5])
    kit = wine.make(kit_folder, kit_folder / "cache", include, dev.apt_install)
    kit.start()
    try:
        channel = kit_folder / "channel"
        windows_channel.make_channel(kit, channel, kit_folder / "cache")
        shutil.rmtree(output / "win-64", ignore_errors=True)
        rendered = package.render(root, {"llvm_version": windows_channel.MAJOR}, "win-64")
        contents: dict[str, dict[str, str]] = {}
        for variant in package.chosen(rendered, sys.argv[5].split(",")):
            name = package.variant_name(variant)
            work = Work(kit, root, channel, kit_folder / f"package-{name}")
            files, seconds = build(work, variant)
            file = pack(work, variant, files, output)
            publish.index(output)
            counted = test(work, variant, output)
            size = file.stat().st_size
            contents[name] = package.contents(file)
            print(f"-- {file.name}: {size / 1e6:.2f} MB, {len(contents[name])} files, built by bld.bat under Wine in "
                  f"{seconds:.0f} s; installed, package tests: {counted}", flush=True)  # fmt: skip
            package.check_limits(file, seconds)
        print(package.compare_contents(contents), flush=True)
    finally:
        kit.stop()


if __name__ == "__main__":
    try:
        main()
    except wine.Unavailable as reason:
        print(f"-- win-64 package skipped: {reason}", flush=True)
    sys.stdout.flush()
    # As in devtools.package: rattler's threads outlive the interpreter otherwise.
    os._exit(0)
