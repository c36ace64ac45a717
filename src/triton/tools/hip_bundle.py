"""Writes a folder of kernels for one AMD architecture that anyone with the hardware, or an emulator of it, can check.

    python -m triton.tools.hip_bundle gfx1100 FOLDER

``manifest.json`` lists the kernels: code object (``linked`` says whether it is one, or an object file still to be
linked), the symbol of the kernel, the launch (grid in workgroups, workgroup size, shared memory), how the kernel
argument segment is laid out (offset, size and kind of every argument, the hidden ones with the values they must
have), and for each array the file of its content before and, where the kernel writes it, after: computed by the
interpreter of this package, with the tolerance ``|got - want| <= atol + rtol * |want|``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .. import interpreter
from ..backends import make_backend
from ..backends.compiler import GPUTarget
from ..backends.hip import codegen, codeobject
from ..compiler import ASTSource, compile
from .hip_kernels import Case, cases

FORMAT = 1


def source_of(case: Case) -> ASTSource:
    names = case.kernel.arg_names
    given = {
        **{n: "*" + kind for n, (kind, _) in case.arrays.items()},
        **{n: kind for n, (kind, _) in case.scalars.items()},
    }
    signature = {name: given.get(name, "constexpr") for name in names}
    promises = [("tt.divisibility", 16), *([("tt.pointer_range", 32)] if case.bounded else [])]
    attrs = {(names.index(name),): promises for name in case.arrays}
    attrs |= {(names.index(name),): [("tt.divisibility", 16)] for name in case.divisible}
    return ASTSource(case.kernel, signature, case.constants, attrs)


def options_of(case: Case) -> dict[str, int]:
    return {"num_warps": case.warps, "num_stages": case.stages}


def expected(case: Case, target: GPUTarget) -> dict[str, np.ndarray]:
    """Every array after the kernel has run in the interpreter."""
    source, backend = source_of(case), make_backend(target)
    options = backend.parse_options(dict(options_of(case)))
    module = source.build(options, backend.capabilities(options))
    after = {name: array.copy() for name, (_, array) in case.arrays.items()}
    args: list[Any] = []
    for name in case.kernel.arg_names:
        if name in after:
            args.append(after[name].ctypes.data)
        elif name in case.scalars:
            args.append(case.scalars[name][1])
    ranges = [interpreter.Range(a.ctypes.data, a.nbytes, n) for n, a in after.items()]
    interpreter.run(module, args, case.grid, ranges)
    return after


def arguments(case: Case, note: codeobject.Note, threads: int) -> list[dict[str, Any]]:
    """The kernel argument segment: explicit arguments in the kernel's order, then the hidden ones with their values."""
    explicit = [a for a in note.arguments if not a.kind.startswith("hidden_")]
    names = [n for n in case.kernel.arg_names if n in case.arrays or n in case.scalars]
    found: list[dict[str, Any]] = []
    for name, argument in zip(names, explicit, strict=True):
        entry: dict[str, Any] = {"name": name, "offset": argument.offset, "size": argument.size, "kind": argument.kind}
        if name in case.scalars:
            entry["type"], entry["value"] = case.scalars[name]
        else:
            entry["type"] = case.arrays[name][0]
        found.append(entry)
    for argument in note.arguments:
        if argument.kind.startswith("hidden_"):
            value = hidden_value(argument.kind, case.grid, threads)
            found.append({"offset": argument.offset, "size": argument.size, "kind": argument.kind, "value": value})
    return found


def hidden_value(kind: str, grid: tuple[int, int, int], threads: int) -> int | None:
    """What the runtime puts there (LLVM AMDGPU guide, code object version 5); None: an address these kernels do not
    use."""
    axis = "xyz".find(kind[-1])
    if kind.startswith("hidden_block_count"):
        return grid[axis]
    if kind.startswith("hidden_group_size"):
        return threads if axis == 0 else 1
    if kind.startswith(("hidden_remainder", "hidden_global_offset")):
        return 0
    if kind == "hidden_grid_dims":
        return 3 if grid[2] > 1 else 2 if grid[1] > 1 else 1
    return None


def write_case(case: Case, target: GPUTarget, folder: Path) -> dict[str, Any]:
    """Compiles and computes one case; its files go to ``folder``. Returns its entry of the manifest."""
    kernel = compile(source_of(case), target=target, options=options_of(case))
    binary = bytes(kernel.asm["hsaco"])
    note = codeobject.read_note(binary, kernel.metadata.name)
    linked = codegen.is_linked(binary)
    file = f"{case.name}.{'hsaco' if linked else 'o'}"
    (folder / file).write_bytes(binary)
    listed = arguments(case, note, kernel.metadata.threads)
    after = expected(case, target)
    for entry in listed:
        name = entry.get("name")
        if name not in case.arrays:
            continue
        before = case.arrays[name][1]
        entry["before"] = f"{case.name}.{name}.npy"
        np.save(folder / entry["before"], before)
        if not np.array_equal(before.view(np.uint8), after[name].view(np.uint8)):
            entry["after"] = f"{case.name}.{name}.after.npy"
            np.save(folder / entry["after"], after[name])
            entry["rtol"], entry["atol"] = case.tolerance
    if not any("after" in entry for entry in listed):
        raise ValueError(f"bundle case {case.name!r} writes nothing")
    return {
        "name": case.name,
        "file": file,
        "linked": linked,
        "kernel": note.name,
        "descriptor": note.symbol,
        "grid": list(case.grid),
        "block": [kernel.metadata.threads, 1, 1],
        "shared": note.shared,
        "private": note.private,
        "kernarg_size": note.kernarg_size,
        "kernarg_align": note.kernarg_align,
        "arguments": listed,
        "registers": {
            "vector": note.vector_registers,
            "scalar": note.scalar_registers,
            "accumulator": note.accumulator_registers,
        },
    }


def write_bundle(arch: str, folder: Path, chosen: Iterable[Case] | None = None) -> dict[str, Any]:
    """Writes the bundle for ``arch`` and returns its manifest."""
    target = GPUTarget("hip", arch, 0)
    folder.mkdir(parents=True, exist_ok=True)
    kernels = [write_case(case, target, folder) for case in (cases() if chosen is None else chosen)]
    lanes = codeobject.read_note((folder / kernels[0]["file"]).read_bytes(), kernels[0]["kernel"]).lanes
    manifest = {"format": FORMAT, "arch": arch, "lanes": lanes, "code_object_version": 5, "kernels": kernels}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write a bundle of kernels, inputs and expected outputs for an AMD architecture."
    )
    parser.add_argument("arch", help="such as gfx1100")
    parser.add_argument("folder", nargs="?", type=Path, help="where to (default: hip-bundle-ARCH)")
    given = parser.parse_args()
    folder = given.folder or Path(f"hip-bundle-{given.arch}")
    manifest = write_bundle(given.arch, folder)
    unlinked = sum(not k["linked"] for k in manifest["kernels"])
    tail = f"; {unlinked} are object files, because no ld.lld was found" if unlinked else ""
    print(f"{len(manifest['kernels'])} kernels for {given.arch} in {folder}{tail}")


if __name__ == "__main__":
    main()
