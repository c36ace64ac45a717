#!/usr/bin/env python3
"""The one developer entry: builds, packages, tests and runs this project on a machine that has python3 and little else.

    python3 dev.py run       build the conda package, install it into a new environment, run the examples there
    python3 dev.py test      build in place and run the tests
    python3 dev.py build     build the native core in place, for `PYTHONPATH=src`
    python3 dev.py package   build and test the conda package; --variant all: cpu, cuda 12.9, cuda 13 and hip
                             --platform win-64: for Windows, under Wine
    python3 dev.py windows   cross-build the Windows port and test it under Wine
    python3 dev.py channel   index what was built as a channel to publish, and install from it over HTTP
    python3 dev.py dependencies   make the channel of build dependencies, where no conda channel can be reached

Needs only the standard library of Python 3.10 or newer. What it makes lies in .dev/ (or
$TRITON_DEV_DIR): delete it to start afresh. A missing C++ compiler, `venv` or Python headers are installed with
apt-get when that is there and the user is root.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MINIMUM = (3, 10)
if sys.version_info < MINIMUM:
    # Before anything below that an older Python does not understand.
    sys.exit(f"dev.py: Python 3.10 or newer is needed, this is {sys.version.split()[0]}")

ROOT = Path(__file__).resolve().parent
DEV = Path(os.environ.get("TRITON_DEV_DIR") or ROOT / ".dev").resolve()

TOOLS = ("py-rattler-build>=0.73", "py-rattler>=0.28", "zstandard", "packaging", "pyyaml")
LLVM = ("mlc-llvm-static==23.1.1.*", "mlc-llvm-static-extra-targets==23.1.1.*")
TORCH = "torch==2.13.0+cpu"
BUILD = ("cmake>=3.26", "ninja>=1.11", *LLVM)
# Beside pyproject's `test` extra: what the tests of packaging and style need.
CHECKS = ("numpy>=1.23", "jinja2", "pyyaml", "ruff", "mypy")
EXAMPLES = ("numpy", "scikit-image", "nibabel")
CHANNEL_SECONDS = 5.0


class Failure(Exception):
    """Something the user can act on; printed as one line."""


def say(text: str) -> None:
    print(f"-- {text}", flush=True)


def environment(**extra: str) -> dict[str, str]:
    """The environment of every child: downloads are kept below .dev, and nothing of another Python leaks in."""
    clean = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
    }
    cache = DEV / "cache"
    return {
        **clean,
        "PIP_CACHE_DIR": str(cache / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "RATTLER_CACHE_DIR": str(cache / "rattler"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "PYTHONNOUSERSITE": "1",
        **extra,
    }


def call(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Runs a command; a non-zero exit status is a Failure that shows it."""
    words = [str(word) for word in command]
    status = subprocess.run(words, cwd=cwd, env=env or environment()).returncode
    if status:
        raise Failure(f"exit status {status} from: {shlex.join(words)}")


def result_of(*command: str | Path, env: dict[str, str]) -> object:
    """Runs a command, shows its output, and returns what it printed as JSON after RESULT on its last line."""
    words = [str(word) for word in command]
    found: object = None
    with subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("RESULT "):
                found = json.loads(line.removeprefix("RESULT "))
            else:
                print(line, end="", flush=True)
    if process.returncode:
        raise Failure(f"exit status {process.returncode} from: {shlex.join(words)}")
    return found


# ---- What the machine has ----------------------------------------------------------------------------------------


def apt_install(*packages: str) -> bool:
    """Installs Debian packages when this user may; False when apt-get is absent or the user is not root."""
    # Debian's python3-* packages serve Debian's Python only.
    mine = [name for name in packages if not name.startswith("python3-") or Path(sys.base_prefix) == Path("/usr")]
    if not mine or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    say(f"apt-get install {' '.join(mine)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", *mine]):
        done = subprocess.run(["apt-get", "-q", *step], env=env, capture_output=True, text=True)
        # An update fails for any one source out of reach, which need not be the one that has these packages.
        if done.returncode and step != ["update"]:
            print(done.stdout, done.stderr, flush=True)
            raise Failure(f"exit status {done.returncode} from: apt-get {shlex.join(step)}")
    return True


def runs(*command: str, seconds: float = 60) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def builds_cxx17(cxx: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("#include <optional>\nint f() { return std::optional<int>(1).value(); }\n")
        return runs(cxx, "-std=c++17", "-shared", "-fPIC", str(source), "-o", f"{folder}/probe.so", seconds=300)


def compiler() -> tuple[str, str] | None:
    """The C and C++ compiler ($CC and $CXX, else the first on PATH) that can build a C++17 shared library, or None."""
    pairs = [("gcc", "g++"), ("cc", "c++"), ("clang", "clang++")]
    if "CXX" in os.environ:
        pairs.insert(0, (os.environ.get("CC", "cc"), os.environ["CXX"]))
    for cc, cxx in pairs:
        found = (shutil.which(cc), shutil.which(cxx))
        if found[0] and found[1] and builds_cxx17(found[1]):
            return found[0], found[1]
    return None


def has_headers() -> bool:
    include = sysconfig.get_path("include", vars={"installed_base": sys.base_prefix})
    return (Path(include) / "Python.h").is_file()


def has_ensurepip() -> bool:
    return runs(sys.executable, "-c", "import ensurepip, venv")


def machine_lacks() -> dict[str, str]:
    """Debian package -> what it is for, of what this machine needs and lacks."""
    missing = {} if compiler() else {"g++": "a C++17 compiler"}
    if not has_headers():
        missing["python3-dev"] = "the headers of this Python"
    if not has_ensurepip():
        missing["python3-venv"] = "pip for new environments"
    return missing


def prepare_machine() -> tuple[str, str]:
    """Makes sure of a C++ compiler, the headers of this Python and a way to make environments; returns CC and CXX."""
    missing = machine_lacks()
    if missing and apt_install(*missing):
        missing = machine_lacks()
    found = compiler()
    if "python3-dev" in missing:
        wants = ", ".join(f"{why} ({package})" for package, why in missing.items())
        raise Failure(
            f"this machine lacks {wants}: install them as root, on Debian by apt-get install {' '.join(missing)}"
        )
    found = found or zig_compiler()
    if found is None:
        raise Failure("no C++17 compiler was found: install g++ (Debian: apt-get install g++) or set CC and CXX")
    return found


# ---- Python environments -----------------------------------------------------------------------------------------


def zig_compiler() -> tuple[str, str] | None:
    """A compiler from PyPI for who has none and may not install one; None when that does not work here either."""
    say("no C++ compiler: trying PyPI's ziglang (its first compilation takes a minute or two)")
    python = make_venv(DEV / "zig", ("ziglang>=0.14,<1",))
    scripts = (DEV / "zig" / "cc", DEV / "zig" / "c++")
    for script in scripts:
        program = shlex.join([str(python), str(ROOT / "devtools" / "zig_compiler.py"), script.name])
        cache = shlex.quote(str(DEV / "cache" / "zig"))
        script.write_text(f'#!/bin/sh\nZIG_GLOBAL_CACHE_DIR={cache} exec {program} "$@"\n')
        script.chmod(0o755)
    cc, cxx = map(str, scripts)
    return (cc, cxx) if builds_cxx17(cxx) else None


def borrowed_pip(python: Path) -> list[str] | None:
    """A command that installs into `python`'s environment with a pip found elsewhere: for Pythons without ensurepip."""
    for wheel in sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"), reverse=True):
        return [str(python), f"{wheel}/pip"]
    for command in ([sys.executable, "-m", "pip"], ["pip3"], ["pip"]):
        if runs(*command, "--python", str(python), "--version"):
            return [*command, "--python", str(python)]
    return None


def make_venv(folder: Path, requirements: Sequence[str], base: str = sys.executable) -> Path:
    """A virtual environment with `requirements`, made once and again when they change; returns its Python."""
    python = folder / "bin" / "python"
    stamp = folder / "requirements.txt"
    wanted = "\n".join((base, *requirements))
    if stamp.is_file() and stamp.read_text() == wanted and runs(str(python), "-c", "import pip"):
        return python
    say(f"environment {folder.name}: {' '.join(requirements)}")
    shutil.rmtree(folder, ignore_errors=True)
    if runs(base, "-c", "import ensurepip"):
        call(base, "-m", "venv", folder)
    else:
        call(base, "-m", "venv", "--without-pip", folder)
        pip = borrowed_pip(python)
        if pip is None:
            raise Failure("this Python has neither ensurepip nor pip: install python3-venv or pip")
        call(*pip, "install", "-qq", "pip")
    call(python, "-m", "pip", "install", "-qq", "--prefer-binary", *requirements)
    stamp.write_text(wanted)
    return python


def add_torch(python: Path) -> None:
    """A CPU build of PyTorch for the tests that need one, where pip finds such a build: those for GPUs, which the usual
    index has for Linux, are gigabytes. Without it these tests are skipped."""
    if runs(str(python), "-c", "import torch"):
        return
    say(f"adding {TORCH}")
    found = subprocess.run([python, "-m", "pip", "install", "-qq", TORCH], capture_output=True, text=True)
    if found.returncode:
        say(f"pip has no {TORCH} here: tests with torch are skipped")


def use_sources(python: Path) -> None:
    """Makes `import triton` in `python`'s environment find src/, for `dev.py test` and for running pytest by hand."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    Path(site, "triton-sources.pth").write_text(f"{ROOT / 'src'}\n")


def tools_python() -> Path:
    return make_venv(DEV / "tools", TOOLS)


def other_pythons() -> list[tuple[str, str]]:
    """(version, path) of CPythons >= 3.10 on this machine whose minor version is not this one's, newest first."""
    home = Path.home()
    places = [Path(folder) / "python3.*" for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    places += [home / ".pyenv/versions/*/bin/python3.*", home / ".local/share/uv/python/*/bin/python3.*"]
    places += [Path("/opt/python/*/bin/python3.*"), Path("/usr/local/bin/python3.*")]
    found: dict[str, str] = {}
    probe = "import sys, venv, ensurepip; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    for pattern in places:
        for path in sorted(Path("/").glob(str(pattern).lstrip("/"))):
            if not re.fullmatch(r"python3\.\d+", path.name):
                continue
            try:
                answer = subprocess.run([path, "-c", probe], capture_output=True, text=True, timeout=20)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if answer.returncode == 0 and answer.stdout.startswith("cpython "):
                found.setdefault(answer.stdout.split()[1], str(path))
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    minors = sorted((int(v.split(".")[1]) for v in found if v != here), reverse=True)
    return [(f"3.{minor}", found[f"3.{minor}"]) for minor in minors if minor >= MINIMUM[1]]


# ---- Where conda packages come from ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """A channel to build against: `name` for the solver, `variants` that replace values of conda_build_config.yaml."""

    name: str
    local: bool
    reason: str
    variants: tuple[str, ...] = ()


def choose_source(wanted: str, probe: Callable[[str, float], str | None], seconds: float = CHANNEL_SECONDS) -> Source:
    """Decides between a conda channel and one of our own making.

    `wanted` is "local", "auto" or a channel's name or address. `probe(name, seconds)` returns None when the channel
    answered, else why it did not. "auto" asks $CONDA_CHANNEL, by default the name conda-forge, and falls back; a named
    channel that does not answer is a Failure.
    """
    if wanted == "local":
        return Source(str(DEV / "channel"), True, "asked for")
    name = (os.environ.get("CONDA_CHANNEL") or "conda-forge") if wanted == "auto" else wanted
    trouble = probe(name, seconds)
    if trouble is None:
        return Source(name, False, "answered")
    if wanted != "auto":
        raise Failure(f"channel {name} cannot be reached: {trouble}")
    return Source(str(DEV / "channel"), True, f"channel {name} cannot be reached: {trouble}")


def probe_channel(name: str, seconds: float) -> str | None:
    """None when the channel's index for Linux answers within `seconds`, else why not."""
    code = (
        "import sys, urllib.request, rattler\n"
        "base = str(rattler.Channel(sys.argv[1]).base_url).rstrip('/')\n"
        "request = urllib.request.Request(base + '/linux-64/repodata.json', method='GET')\n"
        "with urllib.request.urlopen(request, timeout=float(sys.argv[2])) as answer: answer.read(64)\n"
    )
    command = [str(tools_python()), "-c", code, name, str(seconds)]
    try:
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds:g} s"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unknown error"])[-1]


def channel_source(wanted: str) -> Source:
    """The channel to use, made first if it is ours."""
    tools_python()
    start = time.monotonic()
    source = choose_source(wanted, probe_channel)
    say(f"channel: {source.name} ({source.reason}; {time.monotonic() - start:.1f} s)")
    if not source.local:
        return source
    cc, cxx = prepare_machine()
    folder = DEV / "channel"
    start = time.monotonic()
    env = environment(CC=cc, CXX=cxx, PYTHONPATH=str(ROOT))
    call(tools_python(), "-m", "devtools.channel", folder, DEV / "cache", env=env)
    say(f"channel of build dependencies ready ({time.monotonic() - start:.0f} s)")
    glibc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    # What is built here runs with this machine's C library or a newer one.
    variants = (f"llvm_version={LLVM[0].split('==')[1].split('.')[0]}", f"c_stdlib_version={glibc.split()[-1]}")
    return Source(folder.as_uri(), True, source.reason, variants)


# ---- Commands ----------------------------------------------------------------------------------------------------


def project_version() -> str:
    """`__version__` of src/triton/__init__.py, the one place that states it."""
    for node in ast.parse((ROOT / "src/triton/__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__version__" for t in node.targets
        ):
            return str(ast.literal_eval(node.value))
    raise Failure("src/triton/__init__.py states no __version__")


def test_extra() -> tuple[str, ...]:
    """pyproject.toml's `test` extra; its array is a Python list too, and Python 3.10 has no TOML reader."""
    found = re.search(r"^test = (\[.*?\])", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    if found is None:
        raise Failure("pyproject.toml has no `test` extra")
    return tuple(ast.literal_eval(found[1]))


@dataclass(frozen=True, slots=True)
class Built:
    source: Source
    channel: str
    file: Path
    summary: str


def gpu_tools_channel() -> Path:
    """The channel of the GPU variants' run dependencies, made when it is first needed."""
    folder = DEV / "gpu-tools"
    start = time.monotonic()
    call(tools_python(), "-m", "devtools.gpu_tools", folder, DEV / "cache", env=environment(PYTHONPATH=str(ROOT)))
    say(f"channel of GPU tools ready ({time.monotonic() - start:.0f} s)")
    return folder


def variant_environment(**extra: str) -> dict[str, str]:
    """environment(), in which solvers take CUDA for there: its variants are built and tested without a GPU too."""
    return environment(**{"CONDA_OVERRIDE_CUDA": os.environ.get("CONDA_OVERRIDE_CUDA") or "13.0", **extra})


def package(wanted: str, variants: str = "cpu") -> Built:
    """Builds and tests variants of the conda package into .dev/packages, itself a channel; the first one is returned.

    `variants` are names, comma-separated: cpu, cuda (every release), cuda129, hip, or all.
    """
    prepare_machine()
    source = channel_source(wanted)
    if source.local and variants != "cpu":
        source = replace(source, name=f"{source.name},{gpu_tools_channel().as_uri()}")
    output = DEV / "packages"
    say(f"building the conda package with rattler-build: {variants}")
    start = time.monotonic()
    env = variant_environment(PYTHONPATH=str(ROOT))
    words: list[str | Path] = [tools_python(), "-W", "ignore", "-m", "devtools.package", "build", ROOT, source.name]
    log = DEV / "package.log"
    log.unlink(missing_ok=True)
    try:
        found = result_of(*words, output, variants, *source.variants, env=env)
    except Failure:
        print("".join(log.read_text().splitlines(keepends=True)[-80:]) if log.is_file() else "", flush=True)
        raise
    if not isinstance(found, list) or not found:
        raise Failure("rattler-build made no package")
    summaries = []
    for made in found:
        summaries.append(
            f"{Path(made['file']).name}: {made['bytes'] / 1e6:.2f} MB, {made['files']} files, "
            f"{made['tests']} package tests passed, built and tested in {made['seconds']:.0f} s"
        )
        say(summaries[-1])
        say(f"  run dependencies: {', '.join(sorted(made['depends']))}")
    say(f"{len(found)} packages in {time.monotonic() - start:.0f} s; log of the build: {log}")
    return Built(source, output.as_uri(), Path(found[0]["file"]), summaries[0])


def llvm_headers() -> tuple[Path, Path]:
    """The test environment's Python and the folder of LLVM's C headers in it."""
    prepare_machine()
    python = make_venv(DEV / "venv", (*BUILD, *test_extra(), *CHECKS, *TOOLS))
    code = "import mlc_llvm_static as llvm; print(llvm.get_prefix())"
    shown = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env=environment())
    return python, Path(shown.stdout.strip()) / "include"


def windows_package(variants: str) -> None:
    """Builds win-64 packages by recipe/bld.bat under Wine into .dev/packages and tests them there."""
    _, include = llvm_headers()
    command: list[str | Path] = [tools_python(), "-W", "ignore", "-m", "devtools.windows_package", ROOT, DEV / "wine"]
    call(*command, DEV / "packages", include, variants, env=variant_environment(PYTHONPATH=str(ROOT)))


def windows_tests(rest: Sequence[str]) -> None:
    """The tests of the Windows port under Wine."""
    python, include = llvm_headers()
    call(python, ROOT / "devtools/wine_tests.py", "--llvm-include", include, *rest)


def publish(wanted: str) -> None:
    """Indexes .dev/packages, serves it on loopback, installs each variant that is there by its environment file."""
    folder = DEV / "packages"
    built = sorted(folder.glob("linux-64/triton-*.conda"))
    if not built:
        raise Failure("nothing was built yet: run `dev.py package` first")
    source = channel_source(wanted)
    others = [source.name, *([gpu_tools_channel().as_uri()] if source.local else [])]
    env = variant_environment(PYTHONPATH=str(ROOT))
    command: list[str | Path] = [tools_python(), "-m", "devtools.publish"]
    call(*command, "index", folder, env=env)
    say(f"channel: {folder} ({', '.join(path.name for path in built)})")
    if len(built) == 4:
        call(*command, "choose", folder, ",".join(others), env=env)
    for name in ("cpu", "cuda", "hip"):
        if any(f"-{name}" in path.name for path in built):
            prefix = DEV / f"env-{name}"
            file = ROOT / "examples" / f"environment-{name}.yml"
            # The channel that dev.py makes has no PyTorch.
            without = "pytorch" if source.local else ""
            call(*command, "install", prefix, file, folder, ",".join(others), without, env=env)
            inside = environment(PATH=f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}", CONDA_PREFIX=str(prefix))
            call(prefix / "bin" / "python", "-m", "triton.tools.doctor", cwd=prefix, env=inside)
            say(f"installed by examples/environment-{name}.yml over HTTP, its doctor finds no problem")


def run(arguments: argparse.Namespace) -> None:
    begin = time.monotonic()
    built = package(arguments.channel)
    prefix = DEV / "env"
    specs = [f"triton =={project_version()} cpu*", "pytest", "pip", *EXAMPLES]
    say(f"new environment {prefix}: {', '.join(specs)}")
    env = environment(PYTHONPATH=str(ROOT))
    sources = f"{built.channel},{built.source.name}"
    installed = result_of(tools_python(), "-m", "devtools.package", "env", prefix, sources, *specs, env=env)
    assert isinstance(installed, list)
    say(f"installed: {', '.join(installed)}")

    python = prefix / "bin" / "python"
    inside = environment(PATH=f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}", CONDA_PREFIX=str(prefix))
    with tempfile.TemporaryDirectory() as empty:
        where = "import triton, pathlib, sys; p = pathlib.Path(triton.__file__).resolve(); print(p)\n"
        where += "sys.exit(not p.is_relative_to(pathlib.Path(sys.prefix).resolve()))"
        call(python, "-c", where, cwd=Path(empty), env=inside)
        call(python, ROOT / "examples" / "run_all.py", *arguments.rest, cwd=Path(empty), env=inside)
    say(built.summary)
    say(f"all examples passed; {time.monotonic() - begin:.0f} s in all")


def build_in_place() -> Path:
    """Builds the native core into src/triton/_C and returns the Python of the test environment."""
    cc, cxx = prepare_machine()
    python = make_venv(DEV / "venv", (*BUILD, *test_extra(), *CHECKS, *TOOLS))
    add_torch(python)
    use_sources(python)
    tree = DEV / "build"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    env = environment(CC=cc, CXX=cxx, PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    # Another compiler or environment than the tree was configured with needs a new tree.
    stamp, wanted = tree / "configured-for.txt", hashlib.sha256(f"{ROOT} {cc} {cxx} {site}".encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(tree, ignore_errors=True)
    say("building the native core in place")
    start = time.monotonic()
    call(
        python.parent / "cmake", "-S", ROOT / "src", "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DPython_EXECUTABLE={python}", "-DTRITON_LLVM_LINK=static",
        f"-DLLVM_DIR={site}/mlc_llvm_static/static/lib/cmake/llvm", env=env,
    )  # fmt: skip
    stamp.write_text(wanted)
    call(python.parent / "cmake", "--build", tree, env=env)
    # Replaced, not overwritten: a process that has the old one open must not see it change.
    target = ROOT / "src/triton/_C" / "libtriton.abi3.so"
    shutil.copy2(tree / target.name, target.with_suffix(".new"))
    target.with_suffix(".new").replace(target)
    say(f"native core built ({time.monotonic() - start:.0f} s)")
    return python


def test(arguments: argparse.Namespace) -> None:
    begin = time.monotonic()
    python = build_in_place()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    say(f"tests under Python {version}")
    call(python, "-m", "pytest", *(arguments.rest or ["tests", "recipe/tests"]))
    covered = [version]
    others = other_pythons()
    # The oldest and the newest: one stable-ABI binary has to serve both.
    for other, path in dict.fromkeys((others[0], others[-1])) if others else ():
        say(f"native and kernel tests under Python {other}")
        second = make_venv(DEV / f"venv-{other}", ("numpy", "pytest", "pytest-timeout"), base=path)
        use_sources(second)
        call(second, "-m", "pytest", "-q", "tests/native", "recipe/tests")
        covered.append(other)
    if not others:
        say(f"only Python {version} was found on this machine: no other version was tested")
    say(f"tests passed under Python {', '.join(sorted(covered))} in {time.monotonic() - begin:.0f} s")


def wheel() -> None:
    from devtools.wheel import make_wheel  # needs nothing here, but objdump of the compiler's package there

    cc, cxx = prepare_machine()
    python = make_venv(DEV / "wheel-venv", (*BUILD, "scikit-build-core>=0.10", "wheel"))
    start = time.monotonic()
    made = make_wheel(ROOT, python, DEV / "wheel", environment(CC=cc, CXX=cxx))
    say(f"{made} ({made.stat().st_size / 1e6:.1f} MB, {time.monotonic() - start:.0f} s)")


def patches(command: str) -> None:
    from devtools import patches as windows  # beside this file, standard library only

    if windows.main(ROOT, command, DEV / "windows"):
        raise Failure(f"patches {command} found what is written above")


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dev.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text, rest in (
        (
            "run",
            "build the conda package, install it into a new environment, run the examples there",
            "options of examples/run_all.py",
        ),
        ("test", "build in place and run the tests", "arguments of pytest in place of the whole suite"),
        ("build", "build the native core in place", None),
        ("package", "build and test the conda package", None),
        ("channel", "index what was built as a channel to publish, and install from it over HTTP", None),
        ("windows", "cross-build the Windows port and test it under Wine", "arguments of devtools/wine_tests.py"),
        ("dependencies", "make the channel of build dependencies", None),
        ("wheel", "make a wheel with static LLVM in .dev/wheel", None),
        ("patches", "the Windows port: apply (to a copy in .dev/windows), check or refresh", "apply, check or refresh"),
        ("hip-bundle", "write a folder of kernels to check on an AMD GPU", "an architecture (gfx1100), and a folder"),
    ):
        command = commands.add_parser(name, help=help_text, description=help_text)
        if name in ("run", "package", "channel", "dependencies"):
            choices = "auto (a conda channel if one answers within 5 s, else local), local, or a channel name or URL"
            command.add_argument("--channel", default="auto", help=choices)
        if name == "package":
            command.add_argument(
                "--variant", default="cpu", help="cpu, cuda, cuda129, cuda130, hip (comma-separated) or all"
            )
            command.add_argument(
                "--platform", default="linux-64", choices=("linux-64", "win-64"), help="win-64 is built under Wine"
            )
        if rest:
            command.epilog = f"Everything else: {rest}."
    # Not argparse's REMAINDER: it refuses a rest that begins with an option.
    arguments, rest_words = parser.parse_known_args(words)
    if arguments.command == "patches" and rest_words not in (["apply"], ["check"], ["refresh"]):
        parser.error("patches: say apply, check or refresh")
    if rest_words and arguments.command not in ("patches", "run", "test", "hip-bundle", "windows"):
        parser.error(f"unrecognized arguments: {' '.join(rest_words)}")
    arguments.rest = rest_words
    return arguments


COMMANDS: dict[str, Callable[[argparse.Namespace], object]] = {
    "run": run,
    "test": test,
    "build": lambda arguments: build_in_place(),
    "package": lambda arguments: (
        windows_package(arguments.variant)
        if arguments.platform == "win-64"
        else package(arguments.channel, arguments.variant)
    ),
    "windows": lambda arguments: windows_tests(arguments.rest),
    "channel": lambda arguments: publish(arguments.channel),
    "dependencies": lambda arguments: channel_source(arguments.channel),
    "wheel": lambda arguments: wheel(),
    "patches": lambda arguments: patches(arguments.rest[0]),
    "hip-bundle": lambda arguments: call(build_in_place(), "-m", "triton.tools.hip_bundle", *arguments.rest),
}


def main() -> int:
    arguments = parse(sys.argv[1:])
    DEV.mkdir(parents=True, exist_ok=True)
    try:
        COMMANDS[arguments.command](arguments)
    except Failure as failure:
        print(f"dev.py: {failure}", file=sys.stderr, flush=True)
        return 1
    except subprocess.CalledProcessError as failure:
        print(f"dev.py: exit status {failure.returncode} from: {failure.cmd}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
