"""One page on this installation: what is there, what works, what does not and why.

``python -m triton.tools.doctor`` prints the page, ``--json`` the same as one JSON object. The exit status is 0 when
nothing is wrong and 1 otherwise. What is merely absent (a GPU, a tool of the other vendor) is no problem. Nothing is
written: the check's kernels are compiled into a folder that is removed. Works without the native module too, and says
so first.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import struct
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import triton
from triton import knobs

State = Literal["ok", "absent", "note", "problem"]
_MARKS: dict[State, str] = {"ok": " ", "absent": "-", "note": "!", "problem": "X"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the page. ``problem`` makes the exit status 1; ``note`` is worth a look; ``absent`` is neither."""

    name: str
    state: State
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    findings: tuple[Finding, ...]


def load_native() -> str | None:
    """Loads the native module; else the loader's message, and a stand-in under its name.

    The stand-in lets modules that only use the native one inside of functions, such as those that know where tools are,
    be imported; whatever is asked of it raises ImportError.
    """
    try:
        importlib.import_module("triton._C.libtriton")
    except ImportError as error:
        message = str(error)
    else:
        return None

    def __getattr__(name: str) -> Any:
        raise ImportError(f"the native module cannot be loaded: {message}")

    stand_in = types.ModuleType("triton._C.libtriton")
    stand_in.__getattr__ = __getattr__  # type: ignore[method-assign]
    sys.modules[stand_in.__name__] = stand_in
    importlib.import_module("triton._C").libtriton = stand_in  # type: ignore[attr-defined]
    return message


def _reason(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return " ".join(text.split())


def versions(broken: str | None) -> Iterator[Finding]:
    folder = Path(triton.__file__).parent
    if broken is not None:
        yield Finding("native module", "problem", f"cannot be loaded: {_reason(ImportError(broken))}")
        there = sorted(path.name for path in (folder / "_C").glob("libtriton*") if path.suffix != ".pyi")
        yield Finding("its folder", "note", f"{folder / '_C'} has {', '.join(there) or 'no extension module'}")
    yield Finding("triton", "ok", f"{triton.__version__} in {folder}")
    yield from _distributions()
    yield Finding("python", "ok", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}")
    yield Finding("environment", "ok", os.environ.get("CONDA_PREFIX") or sys.prefix)
    yield Finding("platform", "ok", f"{platform.platform()}, {struct.calcsize('P') * 8} bit")
    if broken is None:
        from triton._C import libtriton

        triple, cpu, features = libtriton.host_target()
        vectors = [name for name in ("avx2", "avx512f", "amx-tile", "neon", "sve") if f"+{name}" in features.split(",")]
        yield Finding("llvm", "ok", f"{libtriton.llvm_version()} with {', '.join(libtriton.targets())}")
        shown = f"{cpu}, {triple}; {' '.join(vectors) or 'no wide vectors'}; {os.cpu_count()} processors"
        yield Finding("processor", "ok", shown)
        yield Finding("threads", "ok", f"{libtriton.get_num_threads()} for grids on the CPU")


def _distributions() -> Iterator[Finding]:
    """Other packages of the name lie in the same folder and overwrite each other's files."""
    found = [d for d in importlib.metadata.distributions() if (d.metadata["Name"] or "").lower().startswith("triton")]
    for name, version in sorted({(d.metadata["Name"], d.version) for d in found}):
        same = name == "triton" and version == triton.__version__
        more = "" if same else " shares its name or its folder with this one: uninstall one of them"
        yield Finding("installed as", "ok" if same else "note", f"{name} {version}{more}")
    if not found:
        yield Finding("installed as", "note", "not installed as a package: a source tree on the path")


def backends(broken: str | None) -> Iterator[Finding]:
    from triton.backends import in_tree_backends

    for name, backend in sorted(in_tree_backends().items()):
        if broken is not None:
            yield Finding(name, "absent", "needs the native module")
            continue
        try:
            active = backend.driver.is_active()
            driver = backend.driver()
        except Exception as error:
            yield Finding(name, "absent", f"not active: {_reason(error)}")
            continue
        if not active:
            yield Finding(name, "absent", "not active: its library is there and finds no device")
            continue
        target = driver.get_current_target()
        facts = driver.get_device_properties(driver.get_current_device())
        shown = ", ".join(
            f"{key} {facts[key]}" for key in ("name", "multiprocessor_count", "max_shared_mem") if key in facts
        )
        yield Finding(name, "ok", f"active: {target.backend} {target.arch}".rstrip() + f" ({shown})")


def _found(name: str, look: Callable[[], str | None], without: str) -> Finding:
    try:
        text = look()
    except (FileNotFoundError, OSError) as error:
        # A variable that names something that is not there was meant by somebody.
        state: State = "problem" if _reason(error).startswith("TRITON_") else "absent"
        return Finding(name, state, f"{_reason(error)}; without it {without}")
    except ImportError as error:
        return Finding(name, "absent", _reason(error))
    return Finding(name, "ok", text) if text else Finding(name, "absent", f"not found: without it {without}")


def tools(broken: str | None) -> Iterator[Finding]:
    from triton.backends.cuda import codegen as cuda
    from triton.backends.hip import codegen as hip
    from triton.backends.tools import find_bitcode, find_programs

    def ptxas() -> str:
        found = find_programs("ptxas", "TRITON_PTXAS_PATH", cuda._PTXAS_PACKAGES)
        return ", ".join(f"{cuda.ptxas_release(str(path)) or 'unknown release'} at {path}" for path in found)

    def linker() -> str | None:
        command = hip.find_linker()
        return " ".join(command) if command else None

    yield _found("ptxas", ptxas, "the CUDA driver compiles PTX at the first launch")
    yield _found("libdevice", lambda: str(cuda.find_libdevice(80)), "kernels with functions such as tanh fail for CUDA")
    yield _found("ld.lld", linker, "no code objects are linked for HIP")
    yield _found("ocml", lambda: str(find_bitcode("ocml")), "kernels with functions such as tgamma fail for HIP")
    yield _found("ockl", lambda: str(find_bitcode("ockl")), "kernels that print fail for HIP")
    yield _library("libcuda", "cuda", "TRITON_LIBCUDA_PATH", broken)
    yield _library("libamdhip64", "hip", "TRITON_LIBHIP_PATH", broken)


def _library(name: str, driver: str, variable: str, broken: str | None) -> Finding:
    """A vendor's library, which the native module opens on first use."""
    if broken is not None:
        return Finding(name, "absent", "not looked for: the native module opens it")
    from triton._C import libtriton

    try:
        answer = getattr(libtriton, driver).device_count()
    except RuntimeError as error:
        return Finding(name, "absent", _reason(error))
    place = os.environ.get(variable) or _mapped(name) or "loaded"
    return Finding(name, "ok", f"{place}; it counts {answer} devices")


def _mapped(name: str) -> str | None:
    """The file of a shared library in this process, where the system says which are mapped."""
    maps = Path("/proc/self/maps")
    if not maps.is_file():
        return None
    paths = {line.split(maxsplit=5)[5] for line in maps.read_text().splitlines() if len(line.split(maxsplit=5)) == 6}
    return next((path for path in sorted(paths) if Path(path).name.startswith(f"{name}.so")), None)


@dataclass(slots=True)
class CacheCount:
    """What a cache folder holds; ``damaged`` entries read as misses and are compiled again."""

    entries: int = 0
    folders: int = 0
    size: int = 0
    left_over: int = 0
    damaged: list[str] | None = None


def examine_cache(root: Path) -> CacheCount:
    """Reads every entry and compares its checksums. Writes nothing, times of use included. Raises OSError."""
    from triton.runtime.cache import _TEMPORARY, _TRASH, _unsealed, digest

    count = CacheCount(damaged=[])
    assert count.damaged is not None
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        if folder.name.startswith(_TRASH):
            count.left_over += 1
            continue
        count.folders += 1
        files = {path.name: path for path in folder.iterdir() if path.is_file()}
        count.size += sum(path.stat().st_size for path in files.values())
        count.left_over += sum(name.startswith(_TEMPORARY) for name in files)
        for name, path in files.items():
            if (
                not name.endswith(".json")
                or name.endswith(".autotune.json")
                or name.startswith(("__grp__", _TEMPORARY))
            ):
                continue
            count.entries += 1
            entry = _unsealed(path.read_bytes())
            wanted = {} if entry is None else entry.get("files", {})
            whole = entry is not None and all(
                file in files
                and (data := files[file].read_bytes()) is not None
                and [len(data), digest(data)] == list(sums)
                for file, sums in wanted.items()
            )
            if not whole:
                count.damaged.append(f"{folder.name}/{name}")
    return count


def cache() -> Iterator[Finding]:
    root = Path(knobs.cache.dir)
    limit = knobs.cache.size
    yield Finding("folder", "ok", f"{root} ({f'at most {limit} bytes' if limit is not None else 'no limit of size'})")
    if not root.is_dir():
        parent = next(p for p in (root, *root.parents) if p.exists())
        writable = os.access(parent, os.W_OK)
        yield Finding("state", "absent" if writable else "note", f"not there yet; {parent} {_may(writable)}")
        return
    try:
        count = examine_cache(root)
    except OSError as error:
        yield Finding("state", "note", f"cannot be read: {_reason(error)}")
        return
    writable = os.access(root, os.W_OK)
    yield Finding("state", "ok" if writable else "note", _may(writable))
    shown = f"{count.entries} kernels in {count.folders} folders, {count.size / 1e6:.1f} MB"
    yield Finding("content", "ok", f"{shown}, {count.left_over} left-over temporary files")
    damaged = count.damaged or []
    text = "every checksum holds" if not damaged else f"{len(damaged)} entries are damaged and are compiled again: "
    yield Finding("health", "note" if damaged else "ok", text + ", ".join(damaged[:4]))
    if knobs.cache.remote_manager_class is not None:
        yield Finding("remote", "ok", knobs.cache.remote_manager_class.__name__)


def _may(writable: bool) -> str:
    return "may be written" if writable else "may not be written: kernels are compiled anew in each process"


def pytorch() -> Iterator[Finding]:
    if importlib.util.find_spec("torch") is None:
        yield Finding("torch", "absent", "not installed: kernels take NumPy arrays and pointers")
        return
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        yield Finding("torch", "note", f"cannot be imported: {_reason(error)}")
        return
    built = (
        f"CUDA {torch.version.cuda}"
        if torch.version.cuda
        else f"HIP {torch.version.hip}"
        if torch.version.hip
        else "CPU"
    )
    usable = torch.cuda.is_available()
    yield Finding("torch", "ok", f"{torch.__version__}, built for {built}; {'a' if usable else 'no'} GPU usable by it")
    for need in importlib.metadata.requires("torch") or ():
        if need.lower().startswith(("triton", "pytorch-triton")):
            agrees = f"=={triton.__version__}" in need.replace(" ", "")
            yield Finding("torch asks for", "ok" if agrees else "note", f"{need}; this is {triton.__version__}")


def _arrays(backend: str) -> tuple[Any, Any, Callable[[], Any], Any] | None:
    """Input, output, a function that reads the output back, and what it should be; None without a way to the device."""
    import numpy as np

    x = np.linspace(-2, 3, 3 * 100, dtype=np.float32).reshape(3, 100)
    expected = np.sqrt((x.astype(np.float64) ** 2).sum(axis=1))
    if backend == "cpu":
        out = np.zeros(3, dtype=np.float32)
        return x, out, lambda: out, expected
    try:
        torch = importlib.import_module("torch")
    except Exception:  # the part on PyTorch says why
        return None
    if not torch.cuda.is_available() or bool(torch.version.hip) is not (backend == "hip"):
        return None
    device, result = torch.from_numpy(x).cuda(), torch.zeros(3, dtype=torch.float32, device="cuda")
    return device, result, lambda: result.cpu().numpy(), expected


def _run_kernel(name: str, driver: Any) -> Finding:
    import numpy as np

    from triton.compiler import ASTSource

    from .doctor_kernel import row_norms

    arrays = _arrays(name)
    start = time.perf_counter()
    signature = {"x": "*fp32", "out": "*fp32", "columns": "i32", "BLOCK": "constexpr"}
    made = triton.compile(ASTSource(row_norms, signature, {(3,): 128}), target=driver.get_current_target())
    compiled = f"compiled in {(time.perf_counter() - start) * 1e3:.0f} ms"
    if arrays is None:
        made._init_handles()
        return Finding(name, "ok", f"{compiled} and loaded; not run, as no torch for this device is here to hold data")
    x, out, read, expected = arrays
    triton.runtime.driver.set_active(driver)
    row_norms[(3,)](x, out, 100, BLOCK=128)
    if not np.allclose(read(), expected, rtol=1e-5):
        return Finding(name, "problem", f"{compiled}, run, and wrong: {read()} in place of {expected}")
    return Finding(name, "ok", f"{compiled}, run, result right")


def kernels(broken: str | None) -> Iterator[Finding]:
    """Compiles and runs a kernel on each active back end, into a cache of its own."""
    from triton.backends import in_tree_backends

    if broken is not None:
        yield Finding("kernels", "absent", "not tried: compiling needs the native module")
        return
    kept = os.environ.get("TRITON_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="triton-doctor-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            for name, backend in sorted(in_tree_backends().items()):
                if not backend.driver.is_active():
                    continue
                try:
                    yield _run_kernel(name, backend.driver())
                except Exception as error:
                    # The page is for a bug report: the innermost place is worth more than the message alone.
                    frame = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{Path(frame.filename).name}:{frame.lineno}"
                    yield Finding(name, "problem", f"{type(error).__name__} at {place}: {_reason(error)}")
        finally:
            del os.environ["TRITON_CACHE_DIR"]
            if kept is not None:
                os.environ["TRITON_CACHE_DIR"] = kept


def variables() -> Iterator[Finding]:
    names = sorted(
        name for name in os.environ if name.startswith(("TRITON_", "CONDA_PREFIX", "CUDA_HOME", "ROCM_PATH"))
    )
    for name in names:
        yield Finding(name, "ok", os.environ[name])
    if not names:
        yield Finding("none", "ok", "no variable that triton reads is set")


def diagnose() -> list[Section]:
    """All of the page. A part that fails is a problem of its own and leaves the others."""
    broken = load_native()
    parts: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("versions", lambda: versions(broken)),
        ("back ends", lambda: backends(broken)),
        ("tools and libraries", lambda: tools(broken)),
        ("cache", cache),
        ("PyTorch", pytorch),
        ("kernels", lambda: kernels(broken)),
        ("environment variables", variables),
    )
    sections = []
    for title, part in parts:
        findings: list[Finding] = []
        try:
            findings.extend(part())
        except Exception as error:
            findings.append(Finding(title, "problem", f"this part of the page failed: {error!r}"))
        sections.append(Section(title, tuple(findings)))
    return sections


def page(sections: Sequence[Section]) -> str:
    """The report as text, one finding a line."""
    lines = []
    for section in sections:
        lines.append(section.title)
        width = max((len(finding.name) for finding in section.findings), default=0)
        lines += [f" {_MARKS[f.state]} {f.name:{width}}  {f.text}" for f in section.findings]
        lines.append("")
    bad = problems(sections)
    lines.append("no problem found" if not bad else f"problems: {'; '.join(f'{f.name}: {f.text}' for f in bad)}")
    return "\n".join(lines)


def problems(sections: Sequence[Section]) -> list[Finding]:
    return [finding for section in sections for finding in section.findings if finding.state == "problem"]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m triton.tools.doctor", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the page")
    arguments = parser.parse_args(words)
    sections = diagnose()
    if arguments.json:
        document = {
            "ok": not problems(sections),
            "sections": {s.title: [asdict(f) for f in s.findings] for s in sections},
        }
        print(json.dumps(document, indent=1))
    else:
        # Paths may have letters that the console's encoding lacks.
        encoding = sys.stdout.encoding or "utf-8"
        print(page(sections).encode(encoding, "backslashreplace").decode(encoding))
    return 1 if problems(sections) else 0


if __name__ == "__main__":
    sys.exit(main())
