"""The Windows port, cross-built and tested under Wine.

    python devtools/wine_tests.py [--sample N] [GROUP ...]

Stages src/ with patches/windows applied, builds the extension for Windows, and runs groups of tests in a Windows
Python, two at a time: all of GROUPS by default. ptxas, libdevice, lld and, for its group, PyTorch are there. `--sample
N` takes one test in N of the large groups. Needs cmake >= 3.26 and ninja in the running Python's environment and LLVM's
C headers (PyPI's `mlc-llvm-static` there, or --llvm-include). Where Wine cannot be had it says why and ends with status
0. What it makes lies in .dev/wine.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import re
import shutil
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import dev  # noqa: E402
from devtools import patches, windows_tools, wine  # noqa: E402

# Arguments of pytest for each group, and how much rarer its tests are taken than `--sample` says; 0: all of them.
GROUPS: dict[str, tuple[tuple[str, ...], float]] = {
    "kernels": (("tests/kernels",), 1),
    "runtime": (("tests/runtime",), 0),
    "windows": (("tests/windows",), 0),
    "cuda": (("tests/cuda",), 1),
    "native": (("tests/native",), 0),
    "hip": (("tests/hip/test_architectures.py", "tests/hip/test_driver.py"), 1),
    "ir": (("tests/ir", "tests/frontend", "tests/interpreter", "tests/cpu"), 1),
    # torch.compile's tests start programs that do not find this PyTorch.
    "torch": (("tests/runtime", "-k", "torch and not compiled_functions"), 0),
}

_SAMPLER = '''"""Keeps one test in TEST_SAMPLE, chosen by its name, so that the choice is the same in every run."""
import os
import zlib

import pytest


def pytest_collection_modifyitems(config, items):
    step = int(os.environ.get("TEST_SAMPLE", "1"))
    for item in items:
        if "test_fft" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="NumPy's FFT calls crealf, which this Wine's C library lacks"))
    kept = [item for item in items if zlib.crc32(item.nodeid.replace("\\\\", "/").encode()) % step == 0]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
'''


def llvm_include(given: str | None) -> Path:
    places = [Path(given)] if given else []
    places += [Path(sysconfig.get_path(key)) / "mlc_llvm_static/static/include" for key in ("platlib", "purelib")]
    for place in places:
        if (place / "llvm-c/Core.h").is_file():
            return place
    raise SystemExit(f"LLVM's C headers were not found in {', '.join(map(str, places))}: install mlc-llvm-static")


def find_cmake() -> str:
    beside = Path(sys.executable).parent / "cmake"
    found = str(beside) if beside.is_file() else shutil.which("cmake")
    if found is None:
        raise SystemExit("cmake was not found: install it and ninja into this Python's environment")
    return found


def counts(text: str) -> dict[str, int]:
    """pytest's last line as numbers: {"passed": 12, "failed": 1, ...}."""
    lines = [
        line for line in text.splitlines() if re.search(r"\d+ (passed|failed|skipped|errors?)\b.* in [\d.]+s", line)
    ]
    return (
        {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", lines[-1].split(" in ")[0])}
        if lines
        else {}
    )


def variables_of(kit: wine.Kit, source: Path, name: str, sample: int) -> dict[str, str]:
    plugins = kit.root / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "sampler.py").write_text(_SAMPLER)
    path = [source, plugins]
    if name == "torch":
        path.append(windows_tools.add_torch(kit, kit.root / "cache"))
    return {
        "PYTHONPATH": ";".join(map(wine.windows_path, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Intel's OpenMP asks Windows for the processors in a way that Wine does not answer.
        "KMP_AFFINITY": "disabled",
        "OLD_PYTHON": wine.windows_path(kit.old_python / "python.exe"),
        "TRITON_CACHE_DIR": wine.windows_path(kit.root / f"triton-cache-{name}"),
        "TEST_SAMPLE": str(max(1, round(sample * GROUPS[name][1]))),
    }


def run_group(kit: wine.Kit, source: Path, name: str, sample: int, seconds: float) -> bool:
    paths, sampled = GROUPS[name]
    variables = variables_of(kit, source, name, sample)
    start = time.monotonic()
    words = ["-m", "pytest", "-q", "-rf", "-p", "sampler", "-p", "no:cacheprovider", "--timeout=240", *paths]
    done = kit.run_python(*words, extra=variables, timeout=seconds, cwd=ROOT)
    found = counts(done.stdout)
    shown = ", ".join(f"{number} {word}" for word, number in found.items()) or "no result"
    of = f" (one test in {sample})" if sampled and sample > 1 else ""
    print(f"-- wine {name}{of}: {shown}, {time.monotonic() - start:.0f} s", flush=True)
    # pytest's own status: 0 all passed, 5 nothing left to run.
    if done.returncode not in (0, 5) or not found:
        print(done.stdout[-6000:], flush=True)
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--sample", type=int, default=12, help="one test in this many of the large groups (12)")
    parser.add_argument("--llvm-include", help="folder of LLVM's C headers")
    parser.add_argument("--timeout", type=float, default=1500, help="seconds that one group may take")
    arguments = parser.parse_args()
    unknown = set(arguments.groups) - set(GROUPS)
    if unknown:
        parser.error(f"unknown groups {', '.join(sorted(unknown))}")
    folder = dev.DEV / "wine"
    try:
        kit = wine.make(folder, folder / "cache", llvm_include(arguments.llvm_include), dev.apt_install)
    except wine.Unavailable as reason:
        print(f"-- Windows tests skipped: {reason}")
        return 0
    kit.start()
    try:
        start = time.monotonic()
        windows_tools.add_gpu_tools(kit, folder / "cache")
        source = patches.stage(ROOT, folder / "tree")
        extension = wine.build(kit, source, folder / "build", find_cmake())
        seconds = time.monotonic() - start
        print(f"-- {extension.name}: {extension.stat().st_size / 1e3:.0f} kB, built in {seconds:.0f} s", flush=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(
                pool.map(
                    lambda name: run_group(kit, source, name, arguments.sample, arguments.timeout),
                    arguments.groups or GROUPS,
                )
            )
    finally:
        kit.stop()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
