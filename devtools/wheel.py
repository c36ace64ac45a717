"""``dev.py wheel``: a relocatable wheel with static LLVM for Python 3.10 and later, for a C library as new as here."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

LIMIT_MB = 40


def newest_symbol(library: Path) -> tuple[int, int]:
    """The newest version of the C library's symbols that a shared object asks for."""
    shown = subprocess.run(["objdump", "-T", str(library)], check=True, capture_output=True, text=True).stdout
    versions = {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", shown)}
    return max(versions)


def needed(library: Path) -> list[str]:
    """The shared libraries that it loads."""
    shown = subprocess.run(["objdump", "-p", str(library)], check=True, capture_output=True, text=True).stdout
    return re.findall(r"NEEDED\s+(\S+)", shown)


def make_wheel(root: Path, python: Path, folder: Path, env: dict[str, str]) -> Path:
    """Builds the wheel with ``python``'s pip into ``folder`` and gives it the tag of the C library it needs.

    Raises RuntimeError when it is too large or needs a library that a plain Linux may lack.
    """
    shutil.rmtree(folder, ignore_errors=True)
    command = [str(python), "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(root)]
    subprocess.run(command, check=True, env=env)
    (made,) = folder.glob("triton-*.whl")
    with zipfile.ZipFile(made) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".so"))
        library = Path(archive.extract(name, folder / "unpacked"))
    foreign = [n for n in needed(library) if not re.match(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|ld-linux)", n)]
    if foreign:
        raise RuntimeError(f"the wheel's library needs {', '.join(foreign)}, which not every Linux has")
    major, minor = newest_symbol(library)
    shutil.rmtree(folder / "unpacked")
    tag = f"manylinux_{major}_{minor}_x86_64"
    tags = [str(python), "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(made)]
    subprocess.run(tags, check=True, env=env, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("triton-*.whl")
    size = wheel.stat().st_size / 1e6
    if size > LIMIT_MB:
        raise RuntimeError(f"the wheel has {size:.1f} MB, more than {LIMIT_MB}")
    return wheel
