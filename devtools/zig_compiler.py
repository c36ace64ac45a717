"""A C and C++ compiler from PyPI's `ziglang`, speaking as much of g++'s command line as our builds use.

For a machine with neither a compiler nor the right to install one. dev.py writes two scripts that call this file with
`cc` or `c++` as first argument. C++ sources are compiled against zig's libc++, which ends up inside what is linked;
LLVM's archives need libstdc++, of which every Linux has the shared library. The two do not meet: their names differ,
and nothing of either is exported.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# What `g++ -dumpfullversion` says: the packages of the run-time libraries take their version from it.
GCC_LEVEL = "12.2.0"
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib")
# Options that zig's linker does not know: hidden visibility and version scripts do what the first asks for, and the
# last only saves LLVM some indirect calls.
_UNKNOWN = (
    ["-Xlinker", "--exclude-libs", "-Xlinker", "ALL"],
    ["-Wl,--exclude-libs,ALL"],
    ["-Wl,-Bsymbolic-functions"],
)


def system_library(name: str) -> str:
    """The path of a shared library of the system; its bare name when there is none, as g++ answers."""
    found = [str(path) for folder in _FOLDERS if (path := Path(folder) / name).exists()]
    return found[0] if found else name


def translate(words: list[str]) -> list[str]:
    """g++'s arguments as zig's."""
    kept: list[str] = []
    while words:
        match = next((pattern for pattern in _UNKNOWN if words[: len(pattern)] == pattern), None)
        kept += [] if match else words[:1]
        words = words[len(match) if match else 1 :]
    if not {"-c", "-E", "-S", "--version", "-v"} & set(kept) and any(word.endswith((".o", ".a")) for word in kept):
        kept += [system_library("libstdc++.so.6"), system_library("libgcc_s.so.1")]
    return kept


def main() -> None:
    language, *words = sys.argv[1:]
    for word in words:
        if word.startswith("-print-file-name="):
            print(system_library(word.partition("=")[2]))
            return
        if word in ("-dumpfullversion", "-dumpversion"):
            print(GCC_LEVEL)
            return
    if any(word.endswith(".a") for word in words) and not any(word.endswith((".o", ".cpp", ".cc")) for word in words):
        # Archives alone are LLVM's: with libc++ brought in, their `operator new` and the like would come from it.
        language = "cc"
    os.execv(sys.executable, [sys.executable, "-m", "ziglang", language, *translate(words)])


if __name__ == "__main__":
    main()
