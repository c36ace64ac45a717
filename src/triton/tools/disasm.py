"""Machine code of NVIDIA GPUs as text, by ``cuobjdump``, with what each instruction waits for in front."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from .. import knobs

FNAME_RE = re.compile(r"^\s*Function\s*:\s*(\S+)\s*$")
"""The line that begins a function."""
FLINE_RE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;?\s*/\*\s*0x([0-9a-f]{16})\s*\*/\s*$")
"""The first line of an instruction: its address, text and lower eight bytes."""
SLINE_RE = re.compile(r"^\s*/\*\s*0x([0-9a-f]{16})\s*\*/\s*$")
"""The second line: the upper eight bytes, which hold the control bits."""
BRA_RE = re.compile(r"^(.*\b(?:BRA|BSSY|BRX|CALL|WARPSYNC)\b[\w.]*\s+(?:[^;]*?[,\s])??)`?\(?(0x[0-9a-f]+)\)?(.*)$")
"""An instruction that names the address of another."""


def path_to_cuobjdump() -> tuple[str, str]:
    """Path and version of ``cuobjdump``. Raises RuntimeError when it is not there."""
    tool = knobs.nvidia.cuobjdump
    return tool.path, tool.version


def parseCtrl(sline: str) -> str:
    """The control bits in an instruction's second line: barriers waited for, barrier set when operands are read,
    barrier set when the result is there, ``Y`` if the warp may yield, cycles to the next instruction; ``-`` is none."""
    match = SLINE_RE.match(sline)
    if match is None:
        raise ValueError(f"no second line of an instruction: {sline!r}")
    bits = int(match.group(1), 16) >> 41  # bit 105 of the instruction
    stall, yields = bits & 15, bits >> 4 & 1
    write, read, wait = bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63
    barriers = ["-" if number == 7 else str(number) for number in (read, write)]
    return f"{f'{wait:02x}' if wait else '--'}:{barriers[0]}:{barriers[1]}:{'-' if yields else 'Y'}:{stall:x}"


def processSassLines(fline: str, sline: str, labels: dict[int, int]) -> tuple[str, str]:
    """``control bits, text`` of an instruction; the address that it jumps to is added to ``labels``."""
    match = FLINE_RE.match(fline)
    if match is None:
        raise ValueError(f"no first line of an instruction: {fline!r}")
    text = match.group(2)
    jump = BRA_RE.match(text)
    if jump:
        target = int(jump.group(2), 16)
        labels.setdefault(target, len(labels))
    return parseCtrl(sline), text


def extract(file_path: str, fun: str | None) -> str:
    """The SASS of a CUDA code object in a file, optionally of one function.

    One line an instruction: control bits (see ``parseCtrl``), text; places that are jumped to have labels. Raises
    RuntimeError where there is no ``cuobjdump`` or it fails, and where there is no such function.
    """
    command = [path_to_cuobjdump()[0], "-sass", *(["-fun", fun] if fun else []), str(file_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"cuobjdump cannot read {file_path}: {(done.stderr or done.stdout).strip()}")
    functions = _functions(done.stdout.splitlines())
    if not functions:
        raise RuntimeError(f"{file_path} has no function {fun!r}" if fun else f"{file_path} has no code")
    return "\n".join(_listing(name, lines) for name, lines in functions)


def _functions(lines: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each function's name and its instructions as pairs of lines."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    first = ""
    for line in lines:
        name = FNAME_RE.match(line)
        if name:
            found.append((name.group(1), []))
        elif FLINE_RE.match(line):
            first = line
        elif first and found and SLINE_RE.match(line):
            found[-1][1].append((first, line))
            first = ""
    return found


def _listing(name: str, instructions: list[tuple[str, str]]) -> str:
    labels: dict[int, int] = {}
    rows = [(int(_address(first), 16), *processSassLines(first, second, labels)) for first, second in instructions]
    text = [f"Function:{name}"]
    for address, control, instruction in rows:
        if address in labels:
            text.append(f"LBB{labels[address]}:")
        jump = BRA_RE.match(instruction)
        if jump:
            instruction = f"{jump.group(1)}LBB{labels[int(jump.group(2), 16)]}{jump.group(3)}"
        text.append(f"{control}\t{instruction};")
    return "\n".join(text) + "\n"


def _address(line: str) -> str:
    match = FLINE_RE.match(line)
    return match.group(1) if match else "0"


def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The SASS of a CUDA code object, optionally of one function; see ``extract``."""
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin_asm)
        return extract(str(path), fun)
