"""Makes a channel of the GPU variants' run dependencies where no conda channel can be reached.

`python -m devtools.gpu_tools CHANNEL CACHE` writes CHANNEL/{linux-64,noarch}/*.conda with an index, under
conda-forge's names:
- `cuda-version`, `cuda-nvcc-tools` (ptxas) and `cuda-nvvm-tools` (libdevice) of CUDA 12.9 and 13, from NVIDIA's
  PyPI wheels;
- `lld`, the linker inside of PyPI's `ziglang`;
- `rocm-device-libs`, Debian's.
They hold what our package uses and nothing else, serve this machine and are not for distribution.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from devtools import channel, llvm
from devtools.condapkg import Spec, write_index, write_package

# What has ptxas and libdevice of a CUDA release: requirement, and the folder inside of its wheel.
CUDA_WHEELS = (
    (("nvidia-cuda-nvcc-cu12==12.9.*", "nvidia/cuda_nvcc/"),),
    (("nvidia-cuda-nvcc==13.*", "nvidia/cu13/"), ("nvidia-nvvm==13.*", "nvidia/cu13/")),
)
LLD_WHEEL = "ziglang>=0.14,<1"
NVIDIA = "LicenseRef-NVIDIA-End-User-License-Agreement"

# The environment may be moved or linked to, so that the script finds what it starts beside itself.
_LLD = """#!/bin/sh
exec "$(dirname "$(realpath "$0")")/../libexec/lld/zig" ld.lld "$@"
"""


def release_of(version: str) -> tuple[str, str]:
    """`12.9.86` as the release 12.9 and a match spec that allows this release only."""
    major, minor = version.split(".")[:2]
    return f"{major}.{minor}", f"cuda-version >={major}.{minor},<{major}.{int(minor) + 1}.0a0"


def cuda_version(version: str) -> Callable[[Path], Spec]:
    release, _ = release_of(version)

    def stage(tree: Path) -> Spec:
        (tree / "share/doc").mkdir(parents=True)
        (tree / "share/doc/cuda-version.txt").write_text(f"CUDA {release}\n")
        constrains = (f"__cuda >={release.split('.')[0]}",)
        return Spec(name="cuda-version", version=release, noarch="generic", constrains=constrains, license=NVIDIA)

    return stage


def _unpack(wheel: Path, inside: str, target: Path) -> None:
    """A folder of the wheel (its name ends in a slash) or one file; programs may be run."""
    if inside.endswith("/"):
        llvm.unpack(wheel, inside, target)
        return
    with zipfile.ZipFile(wheel) as archive:
        if inside in archive.namelist():
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(inside) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            target.chmod(0o755)


def _cuda_files(
    name: str, version: str, wheels: list[tuple[Path, str]], inside: str, at: str
) -> Callable[[Path], Spec]:
    def stage(tree: Path) -> Spec:
        for wheel, folder in wheels:
            _unpack(wheel, folder + inside, tree / at)
        found = [path for path in tree.rglob("*") if path.is_file()]
        if not found:
            raise SystemExit(f"{', '.join(w.name for w, _ in wheels)}: {inside} is in none of them.")
        return Spec(name=name, version=version, depends=(release_of(version)[1],), license=NVIDIA)

    return stage


def _lld(wheel: Path) -> Callable[[Path], Spec]:
    def stage(tree: Path) -> Spec:
        _unpack(wheel, "ziglang/zig", tree / "libexec/lld/zig")
        (tree / "bin").mkdir()
        (tree / "bin/ld.lld").write_text(_LLD)
        (tree / "bin/ld.lld").chmod(0o755)
        shown = subprocess.run([tree / "bin/ld.lld", "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"LLD (\d+\.\d+\.\d+)", shown)
        if found is None:
            raise SystemExit(f"{wheel.name} has no LLD: it answers {shown!r}.")
        return Spec(name="lld", version=found[1], license="Apache-2.0 WITH LLVM-exception AND MIT")

    return stage


def _debian_package(name: str, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SystemExit(f"{name} comes from Debian's package of that name, and this machine has no apt-get.")
    for command in (["download", name], ["update"], ["download", name]):
        subprocess.run(["apt-get", "-qq", *command], cwd=folder, capture_output=True, check=False)
        if found := sorted(folder.glob("*.deb")):
            return found[0]
    raise SystemExit(f"apt-get cannot download {name}.")


def _device_libraries(package: Path, scratch: Path) -> Callable[[Path], Spec]:
    def stage(tree: Path) -> Spec:
        subprocess.run(["dpkg-deb", "-x", str(package), str(scratch)], check=True)
        files = sorted(scratch.rglob("amdgcn/bitcode/*.bc"))
        if not files:
            raise SystemExit(f"{package.name} has no bitcode.")
        target = tree / "lib/amdgcn/bitcode"
        target.mkdir(parents=True)
        for path in files:
            shutil.copy2(path, target / path.name)
        version = package.name.split("_")[1].split("-")[0]
        return Spec(name="rocm-device-libs", version=version, license="NCSA")

    return stage


def _stages(cache: Path, scratch: Path) -> list[Callable[[Path], Spec]]:
    stages: list[Callable[[Path], Spec]] = []
    for number, wanted in enumerate(CUDA_WHEELS):
        wheels = [
            (channel.download((requirement,), cache / f"cuda-wheels-{number}-{index}", deps=False)[0], folder)
            for index, (requirement, folder) in enumerate(wanted)
        ]
        version = wheels[0][0].name.split("-")[1]
        stages += [
            cuda_version(version),
            _cuda_files("cuda-nvcc-tools", version, wheels, "bin/ptxas", "bin/ptxas"),
            _cuda_files("cuda-nvvm-tools", version, wheels, "nvvm/libdevice/", "nvvm/libdevice"),
        ]
    stages.append(_lld(channel.download((LLD_WHEEL,), cache / "lld-wheel", deps=False)[0]))
    stages.append(_device_libraries(_debian_package("rocm-device-libs", cache / "debian"), scratch / "debian"))
    return stages


def make_channel(target: Path, cache: Path) -> None:
    """Writes the channel below `target`; does nothing when it was made by the same sources before."""
    sources = "".join((Path(__file__).parent / f"{name}.py").read_text() for name in ("gpu_tools", "condapkg"))
    stamp, wanted = target / "made-from.txt", hashlib.sha256(sources.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        print(f"channel of GPU tools: {target} is up to date", flush=True)
        return
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    specs: list[Spec] = []
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        for number, stage in enumerate(_stages(cache, Path(scratch))):
            tree = Path(scratch) / f"tree-{number}"
            tree.mkdir()
            spec = stage(tree)
            package = write_package(spec, tree, target)
            shutil.rmtree(tree)
            specs.append(spec)
            print(f"  {spec.subdir:9} {package.name} ({package.stat().st_size / 1e6:.1f} MB)", flush=True)
    write_index(specs, target)
    stamp.write_text(wanted)


if __name__ == "__main__":
    make_channel(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
