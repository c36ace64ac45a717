"""Writes a Python module with a function for each function of a bitcode library, to be called in kernels.

python -m triton.tools.build_extern --llvm-dis llvm-dis --lib-path libdevice.10.bc --lib-name libdevice --output-dir .
"""

from __future__ import annotations

import argparse
import keyword
import re
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path

_TYPES = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64",
    "half": "fp16", "float": "fp32", "double": "fp64",
}  # fmt: skip


class Symbol:
    """A function of a library: its symbol, the name under which kernels call it, and types as in ``tl.dtype``."""

    def __init__(self, name: str, op_name: str, ret_type: str, arg_names: list[str], arg_types: list[str]) -> None:
        self._name = name
        self._op_name = op_name
        self._ret_type = ret_type
        self._arg_names = list(arg_names)
        self._arg_types = list(arg_types)

    @property
    def name(self) -> str:
        return self._name

    @property
    def op_name(self) -> str:
        return self._op_name

    @property
    def ret_type(self) -> str:
        return self._ret_type

    @property
    def arg_names(self) -> list[str]:
        return self._arg_names

    @property
    def arg_types(self) -> list[str]:
        return self._arg_types


def convert_type(type_str: str) -> str | None:
    """LLVM's name of a number's type as ``tl.dtype`` has it; None for types that kernels cannot pass."""
    return _TYPES.get(type_str)


def to_unsigned(type_str: str) -> str:
    """The unsigned integer of the same size; other types stay."""
    return f"u{type_str}" if re.fullmatch(r"int(8|16|32|64)", type_str) else type_str


class ExternLibrary(ABC):
    """A library's functions. ``grouping``: those that differ in types only are one function for kernels."""

    def __init__(self, name: str, path: str, format: bool = True, grouping: bool = True) -> None:
        self._name = name
        self._path = path
        self._format = format
        self._grouping = grouping
        self._symbols: dict[str, Symbol] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def path(self) -> str:
        return self._path

    @property
    def symbols(self) -> dict[str, Symbol]:
        return self._symbols

    @property
    def grouping(self) -> bool:
        return self._grouping

    @abstractmethod
    def parse_symbols(self, input_file: str) -> None:
        """Reads the functions from a file of LLVM IR."""

    @abstractmethod
    def _output_stubs(self) -> str:
        """The module's text."""

    def generate_stub_file(self, output_dir: str) -> None:
        """Writes ``output_dir/name.py``. ``format`` puts blank lines between the functions as formatters do."""
        text = self._output_stubs()
        if not self._format:
            text = text.replace("\n\n\n", "\n\n")
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        (Path(output_dir) / f"{self._name}.py").write_text(text, encoding="utf-8")


# Names whose types are told by letters, and the names without them.
_COMMON = (
    (r"[df](add|sub|mul|div|rcp|sqrt|rsqrt)_(r[dnuz])", r"\1_\2"),
    (r"fmaf_(r[dnuz]|ieee_r[dnuz])", r"fma_\1"),
    (r"(isinf|isnan|signbit)[df]", r"\1"),
    (r"(brev|clz|ffs|popc)ll", r"\1"),
    (r"u?mul64hi|umulhi", "mulhi"),
    (r"(?:u|ll|ull)(max|min)", r"\1"),
    (r"(?:ll|f)abs|fabsf", "abs"),
    (r"u(mul24|sad|hadd|rhadd)", r"\1"),
    (r"powif?", "pow"),
    (r"fast_fdividef", "fast_dividef"),
)


def _common_name(name: str, known: set[str]) -> str:
    """The name of a function whatever its types: ``sin`` of ``sinf``, ``max`` of ``ullmax``."""
    for pattern, common in _COMMON:
        match = re.fullmatch(pattern, name)
        if match:
            return match.expand(common)
    return name[:-1] if name.endswith("f") and name[:-1] in known else name


class Libdevice(ExternLibrary):
    """CUDA's library of mathematical functions: those called ``__nv_...``."""

    _DEFINITION = re.compile(r"^define\s+(?:[a-z_]+\s+)*?(\S+)\s+@__nv_(\w+)\(([^)]*)\)", re.MULTILINE)

    def __init__(self, path: str) -> None:
        super().__init__("libdevice", path)
        self.is_pure = True
        self._symbol_groups: dict[str, list[Symbol]] = {}

    def parse_symbols(self, input_file: str) -> None:
        """Reads the functions from a file of LLVM IR. Raises ValueError when there are none."""
        for result, name, parameters in self._DEFINITION.findall(Path(input_file).read_text(encoding="utf-8")):
            symbol = self._extract_symbol(result, name, parameters)
            if symbol is not None:
                self._symbols[symbol.name] = symbol
        if not self._symbols:
            raise ValueError(f"{input_file} defines no function of libdevice")
        self._group_symbols()

    def _extract_symbol(self, result: str, name: str, parameters: str) -> Symbol | None:
        """None where a type is none of a kernel's numbers, such as a pointer to a second result."""
        arg_names, arg_types = [], []
        for number, parameter in enumerate(filter(None, (p.strip() for p in parameters.split(",")))):
            words = parameter.split()
            arg, converted = words[-1], convert_type(words[0])
            if converted is None:
                return None
            arg_names.append(arg.lstrip("%") if re.fullmatch(r"%[A-Za-z_]\w*", arg) else f"arg{number}")
            arg_types.append(converted)
        returned = convert_type(result)
        if returned is None:
            return None
        if re.match(r"u(ll|int|max|min|mul|hadd|rhadd|sad)", name):
            arg_types, returned = [to_unsigned(kind) for kind in arg_types], to_unsigned(returned)
        elif name == "sad":  # adds to an unsigned integer
            arg_types[2] = to_unsigned(arg_types[2])
        return Symbol(f"__nv_{name}", name, returned, arg_names, arg_types)

    def _group_symbols(self) -> None:
        """Gives functions that differ in types only one ``op_name``."""
        self._symbol_groups = {}
        known = {symbol.op_name for symbol in self._symbols.values()}
        for symbol in sorted(self._symbols.values(), key=lambda s: (len(s.op_name), s.op_name)):
            common = _common_name(symbol.op_name, known) if self.grouping else symbol.op_name
            group = self._symbol_groups.get(common, [])
            if any(
                s.arg_types == symbol.arg_types or len(s.arg_types) != len(symbol.arg_types) for s in group
            ):  # another function after all
                common = symbol.op_name
            symbol._op_name = common
            self._symbol_groups.setdefault(common, []).append(symbol)

    def _output_stubs(self) -> str:
        lines = [
            f'"""Functions of {Path(self.path).name}, made by triton.tools.build_extern."""\n',
            "from triton.language import core\n",
            f"_PATH = {str(self.path)!r}\n",
        ]
        for op_name, group in sorted(self._symbol_groups.items()):
            name = f"{op_name}_" if keyword.iskeyword(op_name) else op_name
            arguments = [f"{a}_" if keyword.iskeyword(a) else a for a in group[0].arg_names]
            overloads = ""
            for s in group:
                kinds = ", ".join(f'core.dtype("{kind}")' for kind in s.arg_types)
                overloads += f'        ({kinds},): ("{s.name}", core.dtype("{s.ret_type}")),\n'
            lines.append(
                f"\n@core.extern\ndef {name}({', '.join([*arguments, '_semantic=None'])}):\n"
                f'    return core.extern_elementwise("{self.name}", _PATH, [{", ".join(arguments)}], {{\n{overloads}'
                f"    }}, is_pure={self.is_pure}, _semantic=_semantic)\n"
            )
        return "\n".join(lines)


class LLVMDisassembler:
    """Bitcode to LLVM IR, by ``llvm-dis``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix="triton-")
        self._ll_file = str(Path(self._folder.name) / "extern_lib.ll")

    @property
    def path(self) -> str:
        return self._path

    @property
    def ll_file(self) -> str:
        return self._ll_file

    def disasm(self, lib_path: str) -> None:
        """Writes ``ll_file``. Raises RuntimeError with what the program says."""
        command = [self.path, str(lib_path), "-o", self.ll_file]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise RuntimeError(f"{self.path} cannot be run: {error}") from error
        if done.returncode != 0:
            raise RuntimeError(f"{self.path} cannot read {lib_path}: {(done.stderr or done.stdout).strip()}")


extern_libs = ["libdevice"]


def build(llvm_dis_path: str, lib_path: str, lib_name: str, output_dir: str) -> None:
    """Writes the module for a library in ``output_dir``. Raises ValueError for libraries other than ``extern_libs``,
    whose naming rules are not known."""
    if lib_name not in extern_libs:
        raise ValueError(f"lib_name is one of {', '.join(extern_libs)}, got {lib_name!r}")
    library = Libdevice(lib_path)
    disassembler = LLVMDisassembler(llvm_dis_path)
    disassembler.disasm(lib_path)
    library.parse_symbols(disassembler.ll_file)
    library.generate_stub_file(output_dir)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m triton.tools.build_extern", description=__doc__.split("\n")[0])
    parser.add_argument("--llvm-dis", dest="llvm_dis_path", default="llvm-dis", help="the program llvm-dis")
    parser.add_argument("--lib-path", required=True, help="the bitcode library")
    parser.add_argument("--lib-name", required=True, help=f"one of {', '.join(extern_libs)}")
    parser.add_argument("--output-dir", required=True, help="the folder for NAME.py")
    try:
        build(**vars(parser.parse_args()))
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")


if __name__ == "__main__":
    main()
