#!/bin/bash
# Linux build of both recipes. $PREFIX, $PYTHON, $SP_DIR and $CPU_COUNT come from the build tool, $llvm_link from
# conda_build_config.yaml.
set -euo pipefail

# The run path leads from site-packages/triton/_C to lib, whatever the Python's version; both recipes tell the tools to
# leave it as it is. The compiler's activation adds an absolute one, which would be in the way.
export LDFLAGS="${LDFLAGS:-}"
LDFLAGS="${LDFLAGS//-Wl,-rpath,$PREFIX\/lib/}"
cmake -S src -B build -G Ninja ${CMAKE_ARGS:-} \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$PREFIX" \
    -DCMAKE_INSTALL_PREFIX="$PREFIX" \
    -DCMAKE_INSTALL_RPATH='$ORIGIN/../../../..' \
    -DPython_EXECUTABLE="$PYTHON" \
    -DPYTHON_SITE_DIR="$SP_DIR" \
    -DTRITON_INSTALL_PYTHON=ON \
    -DTRITON_LLVM_LINK="$llvm_link"
cmake --build build --parallel "${CPU_COUNT:-2}"
cmake --install build --strip
