"""Ahead-of-time compilation of a kernel to C sources that launch it: ``python -m triton.tools.compile``.

    python -m triton.tools.compile kernels.py --kernel-name add --signature "*fp32:16, *fp32:16, i32, 1024" \\
        --grid "(n + 1023) / 1024, 1, 1" --out-name add --target cuda:90:32

writes ``add.HASH_SPECIALISATION.h`` and ``.c`` (on the CPU also ``.o``, the code): a function of the kernel's arguments
that launches it, one that loads and one that unloads the code. ``triton.tools.link`` joins several into one dispatcher.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import knobs
from ..backends.compiler import GPUTarget
from ..compiler import ASTSource
from ..compiler import compile as compile_source
from ..errors import TritonError
from ..runtime.driver import driver
from ..runtime.jit import JITFunction
from .c_source import C_TYPES, Argument, Launch, c_identifier, header_text, source_text

desc = "Compile a jitted kernel ahead of time to a C source that launches it."


class CompileToolError(TritonError, ValueError):
    """What was asked for cannot be compiled ahead of time."""


@dataclass
class CompileArgs:
    """What to compile: a kernel of a Python file, its signature (``*fp32:16, i32, 64``) and grid.

    The signature has an entry for each parameter: a type, a type with the promise that 16 divides the argument
    (``:16``) or that it is 1 (``:1``), or a compile-time value. The grid is three C expressions of the arguments.
    ``target`` is ``cpu``, ``cuda:90:32`` or ``hip:gfx942:64``; without it, the machine's own.
    Assertions are kept where the kernel or TRITON_DEBUG says so, as in launches.
    """

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: Path | None = None


def compile_kernel(args: CompileArgs) -> tuple[str, list[Path]]:
    """Compiles one kernel; the name of its C function and the files written.

    Raises CompileToolError for what cannot be compiled ahead of time, and what ``triton.compile`` raises.
    """
    kernel = load_kernel(args.path, args.kernel_name)
    arguments = parse_signature(args.signature, kernel)
    grid = [text.strip() for text in split(args.grid)]
    if len(grid) != 3 or not all(grid):
        raise CompileToolError(f"grid: expected three expressions with commas between them, got {args.grid!r}")
    target = parse_target(args.target)
    name = args.out_name or args.kernel_name
    if not c_identifier(name):
        raise CompileToolError(f"out_name: {name!r} is no name of a C function")
    runtime = [a for a in arguments if a.type is not None]
    suffix = "".join(f"{i}{ {16: 'd', 1: 'c'}.get(a.hint or 0, '') }" for i, a in enumerate(runtime))
    debug = bool(kernel.debug or knobs.runtime.debug)
    what = [(a.name, a.type, None if a.type else repr(a.value)) for a in arguments]
    whole = f"{what} {args.num_warps} {args.num_stages} {target} {grid} {debug}"
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    symbol = f"{name}_{digest}_{suffix}"
    source = ASTSource(
        kernel,
        {a.name: "constexpr" if a.constant else a.type for a in arguments},
        {a.name: a.value for a in arguments if a.constant},
        {(i,): [("tt.divisibility", 16)] for i, a in enumerate(arguments) if a.hint == 16},
    )
    source.name = f"{symbol}_code"  # several are linked into one program
    options: dict[str, Any] = {"num_warps": args.num_warps, "num_stages": args.num_stages, "debug": debug}
    if target.backend == "cpu":
        options["may_alias"] = True  # nobody looks at the addresses of a launch
    compiled = compile_source(source, target, options)
    problem = unsupported(compiled)
    if problem:
        raise CompileToolError(f"{args.kernel_name} {problem}, which only launches from Python can do")
    out = args.out_path if args.out_path is not None else Path(name)
    launch = Launch(name, symbol, digest, suffix, target.backend, arguments, grid, compiled)
    base = f"{Path(out).name}.{digest}_{suffix}"
    contents: dict[str, str | bytes] = {".h": header_text(launch), ".c": source_text(launch, f"{base}.h")}
    if target.backend == "cpu":
        contents[".o"] = compiled.asm["obj"]
    files = []
    for ending, content in contents.items():
        file = Path(out).parent / (base + ending)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        files.append(file)
    return symbol, files


def load_kernel(path: str, name: str) -> JITFunction[Any]:
    """The kernel of this name in a Python file, without the tuning around it."""
    file = Path(path)
    if not file.is_file():
        raise CompileToolError(f"{path!r} is no file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise CompileToolError(f"{path!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    found = getattr(module, name, None)
    while found is not None and not isinstance(found, JITFunction) and hasattr(found, "fn"):
        found = found.fn
    if not isinstance(found, JITFunction):
        raise CompileToolError(f"{path} has no kernel {name!r}")
    return found


def split(text: str) -> list[str]:
    """Parts between the commas outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        depth += 0 if quote else (character in "([{") - (character in ")]}")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def parse_signature(text: str, kernel: JITFunction[Any]) -> list[Argument]:
    """What is known of each parameter of the kernel."""
    entries = [entry.strip() for entry in split(text)] if text.strip() else []
    if len(entries) != len(kernel.arg_names):
        raise CompileToolError(
            f"signature: {kernel.__name__} has {len(kernel.arg_names)} parameters "
            f"({', '.join(kernel.arg_names)}), {len(entries)} are given"
        )
    return [
        _entry(entry, name, parameter.is_constexpr)
        for entry, name, parameter in zip(entries, kernel.arg_names, kernel.params, strict=True)
    ]


def _entry(entry: str, name: str, constexpr: bool) -> Argument:
    kind, _, hint = (part.strip() for part in entry.partition(":"))
    pointer = kind.startswith("*")
    if kind in C_TYPES or (pointer and kind[1:].lstrip("*").removeprefix("k") in (*C_TYPES, *_POINTEES)):
        if constexpr:
            raise CompileToolError(f"signature: {name} is a constexpr, expected its value, got type {entry!r}")
        if hint not in ("", "1", "16") or (hint == "1" and not kind.startswith(("i", "u"))):
            raise CompileToolError(f"signature: {name}: the hint is 16, or 1 for an integer, got {entry!r}")
        return Argument(name, kind, int(hint) if hint else None, 1 if hint == "1" else None)
    if kind in ("fp16", "bf16") or kind.startswith("tensordesc"):
        raise CompileToolError(
            f"signature: {name}: C has no arguments of type {kind}; pass fp32, or pointers and sizes"
        )
    try:
        return Argument(name, None, None, ast.literal_eval(entry))
    except (ValueError, SyntaxError):
        raise CompileToolError(
            f"signature: {name}: expected a type such as *fp32:16 or i32, or a value, got {entry!r}"
        ) from None


_POINTEES = ("fp16", "bf16", "fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")


def parse_target(text: str | None) -> GPUTarget:
    """``backend:architecture:threads of a warp``; without text the machine's own."""
    if text is None:
        return driver.active.get_current_target()
    backend, arch, warp = (*text.split(":"), "", "")[:3]
    if backend == "cpu":
        return GPUTarget("cpu", arch, 32)
    if backend == "cuda" and arch.isdigit() and warp in ("", "32"):
        return GPUTarget("cuda", int(arch), 32)
    if backend == "hip" and arch.startswith("gfx") and warp in ("", "32", "64"):
        return GPUTarget("hip", arch, int(warp or (64 if arch.startswith("gfx9") else 32)))
    raise CompileToolError(f"target: expected cpu, cuda:90:32 or hip:gfx942:64, got {text!r}")


def unsupported(compiled: Any) -> str:
    """What a compiled kernel needs that C code does not supply; empty when there is nothing."""
    if getattr(compiled.metadata, "global_scratch_size", 0):
        return "needs scratch memory in global memory"
    if compiled.metadata.target.backend == "cpu" and compiled.metadata.waits:
        return "waits for other programs"
    return ""


def main() -> None:
    """Command line of the ahead-of-time compiler."""
    parser = argparse.ArgumentParser(prog="python -m triton.tools.compile", description=desc)
    parser.add_argument("path", help="Python file with the kernel")
    parser.add_argument("--kernel-name", "-n", required=True, help="the kernel")
    parser.add_argument("--target", "-t", help="cpu, cuda:90:32, hip:gfx942:64; default: this machine's")
    parser.add_argument("--num-warps", "-w", type=int, default=1, help="warps of a program")
    parser.add_argument("--num-stages", "-ns", type=int, default=3, help="stages of software pipelining")
    parser.add_argument("--out-name", "-on", help="name of the C function; default: the kernel's")
    parser.add_argument("--out-path", "-o", type=Path, help="where files go: folder/name; default: the function's name")
    parser.add_argument("--signature", "-s", required=True, help='types and values, such as "*fp32:16, i32, 1024"')
    parser.add_argument("--grid", "-g", required=True, help='three C expressions, such as "(n + 1023) / 1024, 1, 1"')
    given = CompileArgs(**vars(parser.parse_args()))
    try:
        compile_kernel(given)
    except TritonError as error:
        sys.exit(f"{parser.prog}: {error}")


if __name__ == "__main__":
    main()
