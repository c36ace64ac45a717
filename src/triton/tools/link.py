"""Joins kernels that ``triton.tools.compile`` made into one C dispatcher: ``python -m triton.tools.link``.

    python -m triton.tools.link add.*.h -o add

writes ``add.h`` and ``add.c``: for each kernel ``NAME(stream, arguments..., algo)``, which takes the most special
version whose promises (16 divides an argument, an argument is 1) hold. Versions that differ in compile-time values,
warps or stages are numbered; ``NAME_default`` takes the first one given, ``NAME_get_num_algos()`` says how many there
are; ``load_NAME`` and ``unload_NAME`` load and unload the code of all.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .c_source import APIS, Api

desc = "Join kernels compiled ahead of time into one C dispatcher."


class LinkerError(Exception):
    """Headers that do not fit together."""


@dataclass
class KernelLinkerMeta:
    """One compiled version of a kernel. ``sizes``: for each argument what is promised of it (16, 1) or None;
    ``sig_hash`` names the version's compile-time values, warps and stages, ``suffix`` its promises."""

    orig_kernel_name: str
    arg_names: Sequence[str]
    arg_ctypes: Sequence[str]
    sizes: Sequence[int | None]
    sig_hash: str
    triton_suffix: str
    suffix: str
    num_specs: int
    backend: str = field(init=False, default="cuda")

    @property
    def api(self) -> Api:
        return APIS[self.backend]

    @property
    def symbol(self) -> str:
        return f"{self.orig_kernel_name}_{self.triton_suffix}"

    @property
    def algo(self) -> str:
        return f"{self.orig_kernel_name}_{self.sig_hash}"


@dataclass
class HeaderParser:
    """Collects versions from headers: ``kernels`` maps each kernel's name to them."""

    linker_directives: re.Pattern[str] = field(
        init=False, default=re.compile(r"^//\s*tt-linker:\s*(\w+)\s+(\w+)\(([^()]*)\)\s+(\w+)\s+(\w*)\s*$")
    )
    kernel_name: re.Pattern[str] = field(init=False, default=re.compile(r"^[A-Za-z_]\w*$"))
    c_sig: re.Pattern[str] = field(init=False, default=re.compile(r"^(\w+\s*\*?)\s*\b(\w+)$"))
    arg_suffix: re.Pattern[str] = field(init=False, default=re.compile(r"(\d+)([cd]?)"))
    backend_name_re: re.Pattern[str] = field(init=False, default=re.compile(rf"^({'|'.join(APIS)})$"))
    kernels: dict[str, list[KernelLinkerMeta]] = field(init=False, default_factory=dict)
    backend_name: str | None = field(init=False, default=None)

    def extract_linker_meta(self, header: str) -> None:
        """Adds the versions that a header's text declares. Raises LinkerError where they do not fit the others."""
        found = False
        for line in header.splitlines():
            if not line.lstrip("/ ").startswith("tt-linker:"):
                continue
            match = self.linker_directives.match(line)
            if match is None:
                raise LinkerError(f"not understood: {line!r}")
            found = True
            self._take(*match.groups())
        if not found:
            raise LinkerError("a header has no line tt-linker; was it made by triton.tools.compile?")

    def _take(self, backend: str, name: str, parameters: str, digest: str, suffix: str) -> None:
        if not self.backend_name_re.match(backend):
            raise LinkerError(f"{name}: no back end is called {backend!r}")
        if self.backend_name not in (None, backend):
            raise LinkerError(f"{name} is for {backend}, others are for {self.backend_name}")
        self.backend_name = backend
        types, names = [], []
        for parameter in filter(None, (part.strip() for part in parameters.split(","))):
            match = self.c_sig.match(parameter)
            if match is None:
                raise LinkerError(f"{name}: not understood: parameter {parameter!r}")
            types.append(match.group(1).strip())
            names.append(match.group(2))
        sizes = self._sizes(name, suffix, len(names))
        specs = sum(size is not None for size in sizes)
        meta = KernelLinkerMeta(name, names, types, sizes, digest, f"{digest}_{suffix}", suffix, specs)
        meta.backend = backend
        others = self.kernels.setdefault(name, [])
        if others and (others[0].arg_ctypes, others[0].arg_names) != (types, names):
            raise LinkerError(
                f"{name} has different arguments in different headers: "
                f"{gen_signature_with_full_args(others[0])} and {gen_signature_with_full_args(meta)}"
            )
        if any(other.symbol == meta.symbol for other in others):
            raise LinkerError(f"{name}: two headers declare {meta.symbol}")
        others.append(meta)

    def _sizes(self, name: str, suffix: str, count: int) -> list[int | None]:
        found: list[int | None] = []
        for number, kind in _suffixes(suffix, count):
            if number != len(found):
                break
            found.append({"": None, "d": 16, "c": 1}[kind])
        if (
            len(found) != count
            or "".join(f"{i}{ {None: '', 16: 'd', 1: 'c'}[s] }" for i, s in enumerate(found)) != suffix
        ):
            raise LinkerError(f"{name}: suffix {suffix!r} does not fit {count} arguments")
        return found


def _suffixes(suffix: str, count: int) -> list[tuple[int, str]]:
    """Number and promise of each argument: ``0d12c`` may be 0d, 1, 2c, so the numbers are counted, not read."""
    found = []
    for i in range(count):
        if not suffix.startswith(str(i)):
            break
        suffix = suffix[len(str(i)) :]
        kind = suffix[:1] if suffix[:1] in ("c", "d") else ""
        suffix = suffix[len(kind) :]
        found.append((i, kind))
    return found


def _parameters(m: KernelLinkerMeta, *groups: str) -> str:
    """The stream's parameter and these."""
    stream = m.api.stream
    return ", ".join([f"{stream}{'' if stream.endswith('*') else ' '}stream", *filter(None, groups)])


def _joined(kind: str, name: str) -> str:
    return f"{kind}{'' if kind.endswith('*') else ' '}{name}"


def gen_signature_with_full_args(m: KernelLinkerMeta) -> str:
    """The C parameters of a kernel's dispatcher."""
    return ", ".join(_joined(kind, name) for kind, name in zip(m.arg_ctypes, m.arg_names, strict=True))


def gen_signature(m: KernelLinkerMeta) -> str:
    """The C parameters of one version: those that are 1 are left out."""
    of = zip(m.arg_ctypes, m.arg_names, m.sizes, strict=True)
    return ", ".join(_joined(kind, name) for kind, name, size in of if size != 1)


def make_algo_decls(name: str, metas: Sequence[KernelLinkerMeta]) -> str:
    """Declares the function of one algorithm."""
    return f"""{metas[0].api.result} {name}({_parameters(metas[-1], gen_signature_with_full_args(metas[-1]))});
{metas[0].api.result} load_{name}(void);
void unload_{name}(void);
"""


def make_global_decl(meta: KernelLinkerMeta) -> str:
    """Declares the functions of one kernel."""
    name, everything = meta.orig_kernel_name, gen_signature_with_full_args(meta)
    return f"""{meta.api.result} {name}_default({_parameters(meta, everything)});
{meta.api.result} {name}({_parameters(meta, everything, "int algo_id")});
{meta.api.result} load_{name}(void);
void unload_{name}(void);
"""


def make_default_algo_kernel(meta: KernelLinkerMeta) -> str:
    """Defines the function that takes the first algorithm."""
    name, passed = meta.orig_kernel_name, ", ".join(["stream", *meta.arg_names, "0"])
    return f"""{meta.api.result} {name}_default({_parameters(meta, gen_signature_with_full_args(meta))}) {{
  return {name}({passed});
}}
"""


def make_kernel_hints_dispatcher(name: str, metas: Sequence[KernelLinkerMeta]) -> str:
    """Defines the function of one algorithm: the most special version whose promises hold."""
    result = metas[0].api.result
    ordered = sorted(metas, key=lambda m: -m.num_specs)
    externs = "".join(
        f"{result} {m.symbol}({_parameters(m, gen_signature(m))});\n"
        f"{result} load_{m.symbol}(void);\nvoid unload_{m.symbol}(void);\n"
        for m in ordered
    )
    tries = ""
    for m in ordered:
        of = list(zip(m.arg_ctypes, m.arg_names, m.sizes, strict=True))
        checks = [
            f"({_number(kind, arg)} % 16 == 0)" if size == 16 else f"({arg} == 1)" for kind, arg, size in of if size
        ]
        call = f"return {m.symbol}({', '.join(['stream', *(arg for _, arg, size in of if size != 1)])});"
        tries += f"  if ({' && '.join(checks)}) {call}\n" if checks else f"  {call}\n"
    if ordered[-1].num_specs:
        tries += f"  return {metas[0].api.invalid};\n"
    loads = "".join(f"  if (status == {metas[0].api.success}) status = load_{m.symbol}();\n" for m in ordered)
    return f"""{externs}
{result} {name}({_parameters(metas[0], gen_signature_with_full_args(metas[0]))}) {{
{tries}}}

{result} load_{name}(void) {{
  {result} status = {metas[0].api.success};
{loads}  return status;
}}

void unload_{name}(void) {{
{"".join(f"  unload_{m.symbol}();{chr(10)}" for m in ordered)}}}
"""


def _number(kind: str, name: str) -> str:
    return f"(uintptr_t){name}" if kind.endswith("*") or kind == APIS["hip"].pointer else name


def make_kernel_meta_const_dispatcher(meta: KernelLinkerMeta) -> str:
    """Defines the function that takes an algorithm by its number."""
    name, passed = meta.orig_kernel_name, ", ".join(["stream", *meta.arg_names])
    return f"""{meta.api.result} {name}({_parameters(meta, gen_signature_with_full_args(meta), "int algo_id")}) {{
  if (algo_id < 0 || algo_id >= {name}_get_num_algos()) return {meta.api.invalid};
  return {name}_kernels[algo_id]({passed});
}}
"""


def make_func_pointers(names: Sequence[str], meta: KernelLinkerMeta) -> str:
    """Defines the table of one kernel's algorithms."""
    name = meta.orig_kernel_name
    return f"""typedef {meta.api.result} (*{name}_function)({_parameters(meta, gen_signature_with_full_args(meta))});
static const {name}_function {name}_kernels[] = {{{", ".join(names)}}};
"""


def make_kernel_load_def(names: Sequence[str], meta: KernelLinkerMeta) -> str:
    """Defines the functions that load and unload all of one kernel's algorithms."""
    result, name = meta.api.result, meta.orig_kernel_name
    loads = "".join(f"  if (status == {meta.api.success}) status = load_{algo}();\n" for algo in names)
    return f"""{result} load_{name}(void) {{
  {result} status = {meta.api.success};
{loads}  return status;
}}

void unload_{name}(void) {{
{"".join(f"  unload_{algo}();{chr(10)}" for algo in names)}}}
"""


def make_get_num_algos_decl(meta: KernelLinkerMeta) -> str:
    """Declares the function that counts one kernel's algorithms."""
    return f"int {meta.orig_kernel_name}_get_num_algos(void);\n"


def make_get_num_algos_def(meta: KernelLinkerMeta) -> str:
    """Defines the function that counts one kernel's algorithms."""
    name = meta.orig_kernel_name
    return f"""int {name}_get_num_algos(void) {{
  return (int)(sizeof {name}_kernels / sizeof {name}_kernels[0]);
}}
"""


def link(headers: Sequence[Path], out: Path) -> tuple[Path, Path]:
    """Writes ``out.h`` and ``out.c`` for the kernels that these headers declare."""
    parser = HeaderParser()
    for path in headers:
        try:
            parser.extract_linker_meta(Path(path).read_text(encoding="utf-8"))
        except (LinkerError, OSError, UnicodeDecodeError) as error:
            raise LinkerError(f"{path}: {error}") from error
    if parser.backend_name is None:
        raise LinkerError("no headers were given")
    declared, defined = "", ""
    for metas in parser.kernels.values():
        algos: dict[str, list[KernelLinkerMeta]] = {}
        for meta in metas:
            algos.setdefault(meta.algo, []).append(meta)
        first = metas[0]
        for algo, versions in algos.items():
            declared += make_algo_decls(algo, versions)
            defined += make_kernel_hints_dispatcher(algo, versions) + "\n"
        declared += make_get_num_algos_decl(first) + make_global_decl(first)
        defined += make_func_pointers(list(algos), first) + "\n" + make_get_num_algos_def(first) + "\n"
        defined += make_kernel_meta_const_dispatcher(first) + "\n" + make_default_algo_kernel(first) + "\n"
        defined += make_kernel_load_def(list(algos), first) + "\n"
    header, source = Path(f"{out}.h"), Path(f"{out}.c")
    guard = '#ifdef __cplusplus\nextern "C" {\n#endif\n', "#ifdef __cplusplus\n}\n#endif\n"
    first_line = "/* Made by triton.tools.link. */\n"
    include = f"#pragma once\n#include {APIS[parser.backend_name].include}\n#include <stdint.h>\n"
    header.write_text(first_line + include + guard[0] + declared + guard[1], encoding="utf-8")
    source.write_text(f'{first_line}#include "{header.name}"\n\n{defined}', encoding="utf-8")
    return header, source


def main() -> None:
    """Command line of the linker."""
    parser = argparse.ArgumentParser(prog="python -m triton.tools.link", description=desc)
    parser.add_argument("headers", nargs="+", type=Path, help="headers that triton.tools.compile wrote")
    parser.add_argument("--out", "-o", type=Path, required=True, help="where files go: folder/name")
    given = parser.parse_args()
    try:
        link(given.headers, given.out)
    except LinkerError as error:
        sys.exit(f"{parser.prog}: {error}")


if __name__ == "__main__":
    main()
