#!/bin/bash
# Linux build of both recipes. $PREFIX, $PYTHON, $SP_DIR and $SRC_DIR come from the build tool, llvm_link from conda_build_config.yaml.
set -euo pipefail

# CMake strips the run path at installation unless told one; the build tool makes it relative to the library ($ORIGIN).
cmake -S src -B build -G Ninja ${CMAKE_ARGS:-} \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$PREFIX" \
    -DCMAKE_INSTALL_PREFIX="$PREFIX" \
    -DCMAKE_INSTALL_RPATH="$PREFIX/lib" \
    -DPython_EXECUTABLE="$PYTHON" \
    -DPYTHON_SITE_DIR="$SP_DIR" \
    -DTRITON_INSTALL_PYTHON=ON \
    -DTRITON_LLVM_LINK="$llvm_link"
cmake --build build --parallel "${CPU_COUNT:-2}"
cmake --install build --strip
