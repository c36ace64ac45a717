"""Runs a bundle (see ``hip_bundle``) on this machine's AMD GPU and compares the results.

    python -m triton.tools.hip_check FOLDER [NAME ...]

Prints one line for each kernel that fails, then the counts; the exit status is 1 when any failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._C import libtriton
from .hip_kernels import FLOAT8


def check_bundle(folder: Path, names: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Runs the kernels (all, or those named): how many passed, and a sentence for each that did not. Raises GpuError
    without a GPU."""
    manifest = json.loads((folder / "manifest.json").read_text())
    arch = str(libtriton.hip.device_attributes(libtriton.hip.current_device())["arch"]).split(":")[0]
    if arch != manifest["arch"]:
        raise ValueError(f"the bundle is for {manifest['arch']}, this GPU is {arch}")
    passed, failures = 0, []
    for entry in manifest["kernels"]:
        if names and entry["name"] not in names:
            continue
        reason = run_case(entry, folder)
        passed += reason is None
        if reason is not None:
            failures.append(f"{entry['name']}: {reason}")
    return passed, failures


def run_case(entry: dict[str, Any], folder: Path) -> str | None:
    """Runs one kernel; None when all its results are right, else what is wrong."""
    if not entry["linked"]:
        return f"{entry['file']} is not linked"
    buffers: dict[str, tuple[int, np.ndarray]] = {}
    try:
        slots = b""
        for argument in entry["arguments"]:
            if argument["kind"].startswith("hidden_"):
                continue
            if "before" in argument:
                array = np.load(folder / argument["before"])
                address = libtriton.hip.allocate(array.nbytes)
                buffers[argument["name"]] = address, array
                libtriton.hip.copy_in(address, array.tobytes())
                slots += address.to_bytes(8, "little")
            else:
                slots += scalar_bytes(argument["type"], argument["value"])
        kernel = libtriton.hip.load(
            (folder / entry["file"]).read_bytes(), entry["kernel"], 0, libtriton.hip.current_device()
        )
        x, y, z = entry["grid"]
        libtriton.hip.launch(kernel.function, (x, y, z), 0, slots, entry["block"][0])
        libtriton.hip.synchronize()
        return compared(entry, folder, buffers)
    except libtriton.GpuError as error:
        return str(error)
    finally:
        for address, _ in buffers.values():
            libtriton.hip.release(address)


def compared(entry: dict[str, Any], folder: Path, buffers: dict[str, tuple[int, np.ndarray]]) -> str | None:
    """The first wrong element of the arrays, in words; arrays that the kernel only reads must not have changed."""
    for argument in entry["arguments"]:
        if "before" not in argument:
            continue
        address, before = buffers[argument["name"]]
        got = np.frombuffer(libtriton.hip.copy_out(address, before.nbytes), before.dtype)
        want = np.load(folder / argument["after"]) if "after" in argument else before
        wrong = differences(
            got, want.reshape(-1), argument["type"], argument.get("rtol", 0.0), argument.get("atol", 0.0)
        )
        if len(wrong):
            i = int(wrong[0])
            a, b = (numbers_of(v[i : i + 1], argument["type"])[0] for v in (got, want.reshape(-1)))
            return f"{argument['name']}[{i}] is {a}, expected {b} ({len(wrong)} of {len(got)} differ)"
    return None


def scalar_bytes(kind: str, value: Any) -> bytes:
    """A scalar argument in its 8-byte slot."""
    if kind in ("fp32", "fp64"):
        return np.array([value], {"fp32": np.float32, "fp64": np.float64}[kind]).tobytes().ljust(8, bytes(1))
    return (int(value) & (1 << 64) - 1).to_bytes(8, "little")


def numbers_of(raw: np.ndarray, kind: str) -> np.ndarray:
    """An array in memory form as numbers that can be compared; 8-bit floats as their bits."""
    if kind == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw


def differences(got: np.ndarray, want: np.ndarray, kind: str, rtol: float, atol: float) -> np.ndarray:
    """Indices of the elements that are not within the tolerance; two NaN are equal."""
    a, b = numbers_of(got, kind), numbers_of(want, kind)
    if a.dtype.kind != "f" or kind in FLOAT8:
        return np.flatnonzero(a != b)
    with np.errstate(all="ignore"):
        a, b = a.astype(np.float64), b.astype(np.float64)
        near = np.isfinite(b) & (np.abs(a - b) <= atol + rtol * np.abs(b))
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    return np.flatnonzero(~close)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a bundle of kernels on an AMD GPU and compare the results.")
    parser.add_argument("bundle", type=Path, help="the folder that hip_bundle wrote")
    parser.add_argument("names", nargs="*", help="only these kernels")
    given = parser.parse_args()
    try:
        passed, failures = check_bundle(given.bundle, given.names)
    except (libtriton.GpuError, ValueError) as error:
        print(f"hip_check: {error}", file=sys.stderr)
        return 1
    for failure in failures:
        print(failure)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
