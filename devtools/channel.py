"""Makes a channel of our package's build, run and test dependencies where no conda channel can be reached.

`python -m devtools.channel CHANNEL CACHE` writes CHANNEL/{linux-64,noarch}/*.conda with an index, from
- the running CPython, its headers included;
- PyPI wheels: cmake, ninja, the Python packages that the tests and examples use, and LLVM (devtools/llvm.py);
- the system's C++ compiler and its run-time libraries, wrapped by activation scripts.
The packages have the names, metadata and run_exports of their conda-forge namesakes as far as our recipe can see them,
so that the same recipe builds against either. They serve the machine they were made on and are not for distribution.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devtools import llvm
from devtools.condapkg import Spec, write_index, write_package
from devtools.interpreter import SHORT, SITE_PACKAGES, TAG, stage_python
from devtools.wheels import stage_wheel

TOOL_WHEELS = ("cmake>=3.26", "ninja>=1.11")
# scikit-image and nibabel: the image and the volume that the examples work on.
PYTHON_WHEELS = ("numpy>=1.23", "pip", "pytest", "setuptools", "scikit-image", "nibabel")
VERSION = platform.python_version()

Stage = Callable[[Path], Spec]


@contextmanager
def _tree(scratch: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        yield Path(folder)


def download(requirements: tuple[str, ...], folder: Path, *, deps: bool) -> list[Path]:
    """Wheels for `requirements` (with their dependencies if `deps`) for this Python, through pip's configured index."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "-qq", "--only-binary=:all:", "-d", str(folder), *requirements]
    subprocess.run(command if deps else [*command, "--no-deps"], check=True)
    return sorted(folder.glob("*.whl"))


def _python(tree: Path) -> Spec:
    stage_python(tree)
    return Spec(
        name="python",
        version=VERSION,
        build="0_cpython",
        constrains=(f"python_abi {SHORT}.* *_{TAG}",),
        run_exports={"noarch": ["python"], "weak": [f"python_abi {SHORT}.* *_{TAG}"]},
        license="PSF-2.0",
        summary="The Python that made this channel",
        site_packages=SITE_PACKAGES,
    )


def _version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _cmake(wheel: Path) -> Stage:
    def stage(tree: Path) -> Spec:
        llvm.unpack(wheel, "cmake/data/bin/", tree / "bin")
        llvm.unpack(wheel, "cmake/data/share/", tree / "share")
        for tool in (tree / "bin").iterdir():
            tool.chmod(0o755)
        return Spec(name="cmake", version=_version_of(wheel), license="BSD-3-Clause")

    return stage


def _ninja(wheel: Path) -> Stage:
    def stage(tree: Path) -> Spec:
        llvm.unpack(wheel, f"ninja-{_version_of(wheel)}.data/scripts/", tree / "bin")
        (tree / "bin/ninja").chmod(0o755)
        return Spec(name="ninja", version=_version_of(wheel), license="Apache-2.0")

    return stage


def _library(compiler: str, name: str) -> Path:
    found = subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        raise SystemExit(f"The compiler {compiler} does not know where {name} is.")
    return Path(found).resolve()


def _runtime_library(compiler: str, package: str, soname: str) -> Stage:
    def stage(tree: Path) -> Spec:
        real = _library(compiler, soname)
        (tree / "lib").mkdir()
        shutil.copy2(real, tree / "lib" / real.name)
        if real.name != soname:
            (tree / "lib" / soname).symlink_to(real.name)
        return Spec(name=package, version=_gcc_version(compiler), license="GPL-3.0-only WITH GCC-exception-3.1")

    return stage


def _gcc_version(compiler: str) -> str:
    return subprocess.run(
        [compiler, "-dumpfullversion", "-dumpversion"], check=True, capture_output=True, text=True
    ).stdout.strip()


def _glibc_version() -> str:
    return os.confstr("CS_GNU_LIBC_VERSION").split()[1]  # type: ignore[union-attr]


SYSROOT_LIBRARIES = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2")


def _sysroot(compiler: str) -> Stage:
    def stage(tree: Path) -> Spec:
        # The real libraries: the check for overlinking looks up in them what a binary may take from the system.
        folder = tree / "x86_64-conda-linux-gnu/sysroot/lib64"
        folder.mkdir(parents=True)
        for name in SYSROOT_LIBRARIES:
            shutil.copy2(_library(compiler, name), folder / name)
        version = _glibc_version()
        return Spec(
            name="sysroot_linux-64",
            version=version,
            noarch="generic",
            run_exports={"strong": [f"__glibc >={version},<3.0.a0"]},
            license="LGPL-2.1-or-later",
        )

    return stage


_ACTIVATE = """export CC="{cc}" CXX="{cxx}"
export CFLAGS="-O2 -ffunction-sections -fdata-sections ${{CFLAGS:-}}"
export CXXFLAGS="-O2 -ffunction-sections -fdata-sections ${{CXXFLAGS:-}}"
if [ -n "${{PREFIX:-}}" ]; then
    export LDFLAGS="-Wl,--gc-sections -Wl,-rpath,$PREFIX/lib -L$PREFIX/lib ${{LDFLAGS:-}}"
fi
"""


def _compiler(language: str, cc: str, cxx: str) -> Stage:
    def stage(tree: Path) -> Spec:
        folder = tree / "etc/conda/activate.d"
        folder.mkdir(parents=True)
        (folder / f"activate-{language}_linux-64.sh").write_text(_ACTIVATE.format(cc=cc, cxx=cxx))
        version = _gcc_version(cxx)
        exports = [f"libgcc >={version.split('.')[0]}"]
        if language == "gxx":
            exports.append(f"libstdcxx >={version.split('.')[0]}")
        return Spec(
            name=f"{language}_linux-64",
            version=version,
            depends=("sysroot_linux-64",),
            run_exports={"strong": exports},
            license="BSD-3-Clause",
            summary="Activates the system's compiler",
        )

    return stage


def meta(name: str, version: str, build: str = "0", **fields: object) -> Stage:
    def stage(tree: Path) -> Spec:
        # A package of metadata alone still needs a file for some tools to link it.
        (tree / "share/doc").mkdir(parents=True)
        (tree / f"share/doc/{name}.txt").write_text(f"{name} {version}\n")
        return Spec(name=name, version=version, build=build, noarch="generic", **fields)  # type: ignore[arg-type]

    return stage


def _llvm_sdk(cache: Path, scratch: Path) -> Path:
    sdk = scratch / "llvm-sdk"
    for wheel in download(llvm.WHEELS, cache / "llvm-wheels", deps=False):
        llvm.unpack(wheel, "mlc_llvm_static/static/", sdk)
    return sdk


def _stages(cache: Path, scratch: Path, cc: str, cxx: str) -> list[Stage]:
    tools = download(TOOL_WHEELS, cache / "tool-wheels", deps=False)
    sdk = _llvm_sdk(cache, scratch)
    wheels = download(PYTHON_WHEELS, cache / "python-wheels", deps=True)
    return [
        _python,
        meta("python_abi", SHORT, f"0_{TAG}", constrains=(f"python {SHORT}.* *_cpython",)),
        meta("cpython", VERSION, f"{TAG}_0", depends=(f"python {SHORT}.* *_cpython",)),
        meta("_python_abi3_support", "1.0", depends=("cpython",)),
        *(
            meta("python-abi3", f"3.{minor}", run_exports=abi3_exports(f"3.{minor}"))
            for minor in range(10, sys.version_info.minor + 1)
        ),
        _cmake(next(w for w in tools if w.name.startswith("cmake-"))),
        _ninja(next(w for w in tools if w.name.startswith("ninja-"))),
        lambda tree: llvm.stage_libllvm(sdk, tree, cxx),
        lambda tree: llvm.stage_llvmdev(sdk, tree),
        _runtime_library(cxx, "libgcc", "libgcc_s.so.1"),
        _runtime_library(cxx, "libstdcxx", "libstdc++.so.6"),
        _sysroot(cxx),
        _compiler("gcc", cc, cxx),
        _compiler("gxx", cc, cxx),
        *(_wheel_stage(wheel) for wheel in wheels),
    ]


def abi3_exports(version: str) -> dict[str, list[str]]:
    needs = [f"cpython >={version}", "_python_abi3_support 1.*"]
    return {"noarch": needs, "weak": needs}


def _wheel_stage(wheel: Path) -> Stage:
    return lambda tree: stage_wheel(wheel, tree)


def fingerprint(cc: str, cxx: str) -> str:
    """Changes when the channel must be made anew: other sources of ours, Python, compiler or C library."""
    modules = ("channel", "condapkg", "interpreter", "llvm", "wheels", "zig_compiler")
    sources = "".join((Path(__file__).parent / f"{name}.py").read_text() for name in modules)
    facts = (sources, sys.version, sys.base_prefix, cc, cxx, _gcc_version(cxx), _glibc_version())
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def make_channel(channel: Path, cache: Path, cc: str, cxx: str) -> None:
    """Writes the channel below `channel`; does nothing when one with the same fingerprint is there."""
    stamp = channel / "made-from.txt"
    wanted = fingerprint(cc, cxx)
    if stamp.is_file() and stamp.read_text() == wanted:
        print(f"channel of build dependencies: {channel} is up to date", flush=True)
        return
    shutil.rmtree(channel, ignore_errors=True)
    channel.mkdir(parents=True)
    specs: list[Spec] = []
    with _tree(channel) as scratch:
        for stage in _stages(cache, scratch, cc, cxx):
            with _tree(channel) as tree:
                spec = stage(tree)
                package = write_package(spec, tree, channel)
            specs.append(spec)
            print(f"  {spec.subdir:9} {package.name} ({package.stat().st_size / 1e6:.1f} MB)", flush=True)
    write_index(specs, channel)
    stamp.write_text(wanted)


def main() -> None:
    channel, cache = Path(sys.argv[1]), Path(sys.argv[2])
    make_channel(channel.resolve(), cache.resolve(), os.environ["CC"], os.environ["CXX"])


if __name__ == "__main__":
    main()
