"""The `libllvmNN` and `llvmdev` packages of the local channel, from PyPI's static LLVM archives.

Same division as conda-forge's: one shared library that run_exports pin, and a development package with the headers of
LLVM's C API (all that our native core includes) and a CMake package. The library holds the targets that this project
generates code for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from devtools.condapkg import Spec

VERSION = "23.1.1"
MAJOR, MINOR = VERSION.split(".")[:2]
WHEELS = (f"mlc-llvm-static=={VERSION}.*", f"mlc-llvm-static-extra-targets=={VERSION}.*")
TARGETS = ("X86", "NVPTX", "AMDGPU")
LIBRARY = f"libLLVM.so.{MAJOR}.{MINOR}"
PIN = f"libllvm{MAJOR} >={VERSION},<{MAJOR}.{int(MINOR) + 1}.0a0"
LICENSE = "Apache-2.0 WITH LLVM-exception"

_CONFIG = """# LLVM {version} as one shared library, C API only.
get_filename_component(LLVM_INSTALL_PREFIX "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
set(LLVM_PACKAGE_VERSION {version})
set(LLVM_VERSION {version})
string(REGEX MATCH "^([0-9]+)\\\\.([0-9]+)\\\\.([0-9]+)" _ "${{LLVM_PACKAGE_VERSION}}")
set(LLVM_VERSION_MAJOR ${{CMAKE_MATCH_1}})
set(LLVM_VERSION_MINOR ${{CMAKE_MATCH_2}})
set(LLVM_VERSION_PATCH ${{CMAKE_MATCH_3}})
set(LLVM_TARGETS_TO_BUILD {targets})
set(LLVM_NATIVE_ARCH X86)
set(LLVM_LINK_LLVM_DYLIB ON)
set(LLVM_INCLUDE_DIRS "${{LLVM_INSTALL_PREFIX}}/include")
set(LLVM_LIBRARY_DIRS "${{LLVM_INSTALL_PREFIX}}/lib")
set(LLVM_AVAILABLE_LIBS LLVM)
if(NOT TARGET LLVM)
  add_library(LLVM SHARED IMPORTED)
  set_target_properties(LLVM PROPERTIES
    IMPORTED_LOCATION "${{LLVM_INSTALL_PREFIX}}/lib/{library}" IMPORTED_SONAME {library})
endif()
"""


def unpack(wheel: Path, prefix: str, target: Path) -> None:
    """Extracts the members of `wheel` below `prefix` into `target`, file modes kept."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if not info.filename.startswith(prefix) or info.is_dir():
                continue
            path = target / info.filename.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            path.chmod((info.external_attr >> 16) & 0o777 or 0o644)


def _all_targets(include: Path) -> list[str]:
    return re.findall(r"^LLVM_TARGET\((\w+)\)", (include / "llvm/Config/mlc-all/Targets.def").read_text(), re.M)


def _archives(sdk: Path) -> list[Path]:
    unwanted = "|".join(set(_all_targets(sdk / "include")) - set(TARGETS))
    other = re.compile(rf"libLLVM(?:{unwanted})(?:AsmParser|CodeGen|Desc|Disassembler|Info|TargetMCA|Utils)\.a")
    return [path for path in sorted((sdk / "lib").glob("libLLVM*.a")) if not other.fullmatch(path.name)]


def _write_headers(sdk: Path, include: Path) -> None:
    shutil.copytree(sdk / "include/llvm-c", include / "llvm-c")
    config = include / "llvm/Config"
    config.mkdir(parents=True)
    for name in ("abi-breaking.h", "llvm-config.h"):
        shutil.copy2(sdk / "include/llvm/Config" / name, config / name)
    unwanted = set(_all_targets(sdk / "include")) - set(TARGETS)
    for path in (sdk / "include/llvm/Config/mlc-all").glob("*.def"):
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not ((call := re.match(r"LLVM_\w+\((\w+)\)", line)) and call[1] in unwanted)]
        (config / path.name).write_text("".join(kept))


def stage_libllvm(sdk: Path, tree: Path, cxx: str) -> Spec:
    """Links the archives below `sdk` into the shared library."""
    (tree / "lib").mkdir()
    script = sdk / "exports.map"
    script.write_text(f"LLVM_{MAJOR}.{MINOR} {{ global: *; }};\n")
    command = [
        cxx,
        "-shared",
        "-o",
        str(tree / "lib" / LIBRARY),
        f"-Wl,-soname,{LIBRARY}",
        f"-Wl,--version-script={script}",
    ]
    command += [
        "-Wl,-Bsymbolic-functions",
        "-Wl,-z,defs",
        "-s",
        "-Wl,--whole-archive",
        *map(str, _archives(sdk)),
        "-Wl,--no-whole-archive",
    ]
    command += [*map(str, sorted((sdk / "lib").glob("libz*.a"))), "-lpthread", "-ldl", "-lm", "-lrt"]
    if subprocess.run(command).returncode:
        raise SystemExit(f"{cxx} could not link LLVM's archives into {LIBRARY}.")
    return Spec(
        name=f"libllvm{MAJOR}",
        version=VERSION,
        depends=("libgcc", "libstdcxx"),
        run_exports={"weak": [PIN]},
        license=LICENSE,
        summary=f"LLVM's shared library with the targets {', '.join(TARGETS)}",
    )


def stage_llvmdev(sdk: Path, tree: Path) -> Spec:
    """Headers of the C API, the link name of the library and its CMake package."""
    _write_headers(sdk, tree / "include")
    cmake = tree / "lib/cmake/llvm"
    cmake.mkdir(parents=True)
    (tree / "lib/libLLVM.so").symlink_to(LIBRARY)
    (cmake / "LLVMConfig.cmake").write_text(_CONFIG.format(version=VERSION, targets=" ".join(TARGETS), library=LIBRARY))
    shutil.copy2(sdk / "lib/cmake/llvm/LLVMConfigVersion.cmake", cmake)
    return Spec(
        name="llvmdev",
        version=VERSION,
        depends=(f"libllvm{MAJOR} =={VERSION}",),
        run_exports={"weak": [PIN]},
        license=LICENSE,
        summary="Headers of LLVM's C API and its CMake package",
    )
