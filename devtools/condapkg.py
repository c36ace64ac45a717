"""Writes `.conda` packages from staged directories.

Format: a zip (stored) of `metadata.json`, `pkg-NAME.tar.zst` (the files) and `info-NAME.tar.zst` (the metadata), as the
conda package format version 2 describes it. Used only for the channel of build dependencies; our own package is built
by rattler-build.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import zstandard

# Level 19 takes minutes on an LLVM build for a package that never leaves this machine; level 3 takes seconds.
ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Spec:
    """Metadata of one package; noarch="python" holds `site-packages/...` paths.

    With `stable_abi` such a package belongs to one platform: its machine code serves every Python there.
    """

    name: str
    version: str
    build: str = "0"
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    run_exports: dict[str, list[str]] = field(default_factory=dict)
    noarch: Literal["python", "generic"] | None = None
    license: str = ""
    summary: str = ""
    entry_points: tuple[str, ...] = ()
    site_packages: str | None = None
    build_number: int = 0
    track_features: str = ""
    platform: Literal["linux-64", "win-64"] = "linux-64"
    stable_abi: bool = False

    @property
    def subdir(self) -> str:
        return "noarch" if self.noarch and not self.stable_abi else self.platform

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}-{self.build}.conda"

    def index(self) -> dict[str, object]:
        """The package's `info/index.json`, which the channel's index repeats."""
        index: dict[str, object] = {
            "name": self.name,
            "version": self.version,
            "build": self.build,
            "build_number": self.build_number,
            "depends": list(self.depends),
            "constrains": list(self.constrains),
            "license": self.license,
            "subdir": self.subdir,
            "arch": None if self.subdir == "noarch" else "x86_64",
            "platform": None if self.subdir == "noarch" else self.platform.split("-")[0],
        }
        if self.track_features:
            index["track_features"] = self.track_features
        if self.noarch:
            index["noarch"] = self.noarch
        if self.site_packages:
            index["python_site_packages_path"] = self.site_packages
        return index


def staged_files(tree: Path) -> list[Path]:
    """Every file and symbolic link below `tree`, relative to it, in a fixed order."""
    found: list[Path] = []
    for folder, dirs, files in os.walk(tree):
        dirs.sort()
        here = Path(folder)
        # A link to a directory is packaged as a link, so it must not be walked into.
        for name in [d for d in dirs if (here / d).is_symlink()]:
            dirs.remove(name)
            files.append(name)
        found += [(here / name).relative_to(tree) for name in files]
    return sorted(found)


def _path_entry(tree: Path, path: Path) -> dict[str, object]:
    full = tree / path
    if full.is_symlink():
        target = full.resolve()
        content = target.read_bytes() if target.is_file() else b""
        return {
            "_path": path.as_posix(),
            "path_type": "softlink",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size_in_bytes": len(content),
        }
    with full.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256") if hasattr(hashlib, "file_digest") else _digest(stream)
    return {
        "_path": path.as_posix(),
        "path_type": "hardlink",
        "sha256": digest.hexdigest(),
        "size_in_bytes": full.stat().st_size,
    }


def _digest(stream: io.BufferedReader) -> hashlib._Hash:
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0  # the same files make the same package
    return member


def _tar_zst(add: list[tuple[str, Path | bytes]]) -> bytes:
    buffer = io.BytesIO()
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=-1)
    with (
        compressor.stream_writer(buffer, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name, source in add:
            if isinstance(source, bytes):
                member = tarfile.TarInfo(name)
                member.size = len(source)
                member.mode = 0o644
                tar.addfile(member, io.BytesIO(source))
            else:
                tar.add(source, arcname=name, recursive=False, filter=_anonymous)
    return buffer.getvalue()


def _info(spec: Spec, tree: Path, paths: list[Path]) -> list[tuple[str, Path | bytes]]:
    documents: dict[str, object] = {
        "info/index.json": spec.index(),
        "info/paths.json": {"paths": [_path_entry(tree, path) for path in paths], "paths_version": 1},
        "info/about.json": {"license": spec.license, "summary": spec.summary},
        "info/run_exports.json": spec.run_exports,
    }
    if spec.noarch == "python":
        documents["info/link.json"] = {
            "noarch": {"type": "python", "entry_points": list(spec.entry_points)},
            "package_metadata_version": 1,
        }
    info: list[tuple[str, Path | bytes]] = [
        (name, json.dumps(value, indent=1).encode()) for name, value in documents.items()
    ]
    info.append(("info/files", "".join(f"{path.as_posix()}\n" for path in paths).encode()))
    return info


def write_package(spec: Spec, tree: Path, channel: Path, extra: Mapping[str, Path | bytes] | None = None) -> Path:
    """Packs everything below `tree` into `channel/SUBDIR/NAME-VERSION-BUILD.conda` and returns its path.

    `extra` are more files of the metadata, or other ones in place of those made here: path, file or content.
    """
    paths = staged_files(tree)
    info = sorted({**dict(_info(spec, tree, paths)), **(extra or {})}.items())
    target = channel / spec.subdir / spec.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    stem = spec.filename.removesuffix(".conda")
    partial = target.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("metadata.json", json.dumps({"conda_pkg_format_version": 2}))
        archive.writestr(f"pkg-{stem}.tar.zst", _tar_zst([(path.as_posix(), tree / path) for path in paths]))
        archive.writestr(f"info-{stem}.tar.zst", _tar_zst(info))
    partial.replace(target)
    return target


def write_index(specs: list[Spec], channel: Path) -> None:
    """Writes `repodata.json` of each platform for the packages of `specs`, which lie in `channel`."""
    for subdir in sorted({"noarch", *(spec.platform for spec in specs)}):
        packages: dict[str, object] = {}
        for spec in specs:
            if spec.subdir == subdir:
                content = (channel / subdir / spec.filename).read_bytes()
                checks = {
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "md5": hashlib.md5(content).hexdigest(),
                    "size": len(content),
                }
                packages[spec.filename] = {**spec.index(), **checks}
        (channel / subdir).mkdir(parents=True, exist_ok=True)
        document = {
            "info": {"subdir": subdir},
            "packages": {},
            "packages.conda": packages,
            "removed": [],
            "repodata_version": 1,
        }
        (channel / subdir / "repodata.json").write_text(json.dumps(document, indent=1))
