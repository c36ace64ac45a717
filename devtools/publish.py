"""Makes a folder of built packages a channel, and installs from it as a user would.

python -m devtools.publish index FOLDER
    writes repodata.json and repodata.json.zst
python -m devtools.publish install PREFIX FILE FOLDER CHANNEL[,CHANNEL ...] [NAME ...]
    serves FOLDER on loopback and makes the environment of FILE (an environment.yml) from it and CHANNELs, without NAMEs
python -m devtools.publish choose FOLDER CHANNEL[,CHANNEL ...]
    says which variant a plain `triton` is without an NVIDIA driver and with one for CUDA 12.9 and for 13.0
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from rattler import Channel, Gateway, VirtualPackage, VirtualPackageOverrides, solve
from rattler.exceptions import SolverError
from rattler.index import index_fs

from devtools.package import make_environment


def index(folder: Path) -> list[Path]:
    """Writes the index of every platform's folder below `folder`, plain and compressed; returns what was written."""
    (folder / "noarch").mkdir(parents=True, exist_ok=True)  # a channel without it is none
    asyncio.run(index_fs(folder, write_zst=True, write_shards=False, force=True))
    return sorted(folder.glob("*/repodata.json*"))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Files only, and what was asked for is kept for who wants to know."""

    def log_message(self, format: str, *args: object) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """`folder` over HTTP on loopback: its address, and the paths that were asked for so far."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", server.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment_specs(file: Path, without: Sequence[str] = ()) -> list[str]:
    """The match specs of an environment.yml. What is for pip is refused.

    There, `name=version=build` means any version that begins so; the solver's own words for it are written in place.
    """
    document = yaml.safe_load(file.read_text())
    specs = document.get("dependencies")
    if not isinstance(specs, list) or not all(isinstance(spec, str) for spec in specs):
        raise SystemExit(f"{file}: `dependencies` is a list of match specs, and nothing for pip")
    kept = []
    for spec in specs:
        if found := re.fullmatch(r"([\w.-]+)=([^=<>!~]+)(?:=(.+))?", spec):
            name, version, build = found.groups()
            spec = f"{name} {version if '*' in version else version + '.*'} {build or ''}".strip()
        if re.split(r"[ =<>!~]", spec)[0] not in without:
            kept.append(spec)
    return kept


def install(prefix: Path, file: Path, folder: Path, channels: Sequence[str], without: Sequence[str] = ()) -> list[str]:
    """Makes the environment of `file` from `folder`, served over HTTP, and `channels`; returns what was installed."""
    with served(folder) as (address, asked):
        found = asyncio.run(make_environment(prefix, [address, *channels], environment_specs(file, without)))
        if not any(path.startswith("/linux-64/repodata.json.zst") for path in asked):
            raise SystemExit(f"the compressed index was not asked for, only {', '.join(asked)}")
    return found


# The driver's CUDA and the variant that is the best which it allows.
PREFERRED = {"": "cpu", "12.9": "cuda129", "13.0": "cuda130"}


async def plain_choice(channels: Sequence[str], driver: str) -> str:
    """The build of `triton`, asked for by its bare name, where the NVIDIA driver is of that CUDA release ("": none)."""
    os.environ["CONDA_OVERRIDE_CUDA"] = driver
    records = await solve(
        sources=[Channel(name) for name in channels],
        specs=["triton"],
        gateway=Gateway(),
        virtual_packages=VirtualPackage.detect(VirtualPackageOverrides.from_env()),
    )
    return next(str(record.build) for record in records if record.name.normalized == "triton")


def choose(channels: Sequence[str]) -> None:
    """Compares the choices with PREFERRED; another one is an error."""
    for driver, expected in PREFERRED.items():
        build = asyncio.run(plain_choice(channels, driver))
        print(f"  plain triton {f'with CUDA {driver}' if driver else 'without a driver'}: {build}", flush=True)
        if not build.startswith(f"{expected}_"):
            raise SystemExit(f"the {expected} variant was expected there")


def main() -> None:
    command, *rest = sys.argv[1:]
    if command == "index":
        for path in index(Path(rest[0])):
            print(f"  {path} ({path.stat().st_size} bytes)", flush=True)
    elif command == "install":
        prefix, file, folder, channels, *without = rest
        try:
            found = install(Path(prefix), Path(file), Path(folder), channels.split(","), [w for w in without if w])
        except SolverError as error:
            raise SystemExit(f"No environment satisfies {file}: {error}") from None
        print(f"  {', '.join(found)}", flush=True)
    elif command == "choose":
        choose([Path(rest[0]).resolve().as_uri(), *rest[1].split(",")])
    else:
        raise SystemExit(f"unknown command {command}")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # As in devtools.package: rattler's threads outlive the interpreter otherwise.
    os._exit(0)
