# Finds LLVM and decides how to link it. Sets LLVM_* as LLVMConfig does, TRITON_LLVM_LIBRARIES and TRITON_LLVM_FAMILIES.
#
# Looked for, in this order: LLVM_DIR / CMAKE_PREFIX_PATH given by the caller, the PyPI package `mlc-llvm-static` of the Python
# found (build isolation puts it there), the system.

if(LLVM_DIR)
  # Archives that LLVM itself needs (zlib, zstd) lie beside it.
  get_filename_component(llvm_prefix "${LLVM_DIR}/../../.." ABSOLUTE)
  list(APPEND CMAKE_PREFIX_PATH "${llvm_prefix}")
elseif(NOT DEFINED ENV{LLVM_DIR})
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import mlc_llvm_static as llvm; print(llvm.get_cmake_dir()); print(llvm.get_prefix())"
    OUTPUT_VARIABLE pypi_llvm RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0)
    string(REPLACE "\n" ";" pypi_llvm "${pypi_llvm}")
    list(GET pypi_llvm 0 pypi_llvm_dir)
    list(GET pypi_llvm 1 pypi_llvm_prefix)
    # A hint, so that an LLVM in CMAKE_PREFIX_PATH (conda's host prefix) goes first.
    list(APPEND CMAKE_PREFIX_PATH "${pypi_llvm_prefix}")
  endif()
endif()

find_package(LLVM REQUIRED CONFIG)
if(LLVM_VERSION_MAJOR LESS 21 OR LLVM_VERSION_MAJOR GREATER 23)
  message(WARNING "LLVM ${LLVM_PACKAGE_VERSION} was not tried; 21 to 23 were")
endif()

set(link "${TRITON_LLVM_LINK}")
if(link STREQUAL "auto")
  set(link static)
  if(LLVM_LINK_LLVM_DYLIB)
    set(link shared)
  endif()
endif()

set(TRITON_LLVM_FAMILIES)
foreach(family X86 NVPTX AMDGPU AArch64)
  if(family IN_LIST LLVM_TARGETS_TO_BUILD)
    list(APPEND TRITON_LLVM_FAMILIES ${family})
  elseif(NOT family STREQUAL "AArch64")
    message(FATAL_ERROR "LLVM in ${LLVM_DIR} has no ${family} code generator (it has: ${LLVM_TARGETS_TO_BUILD})")
  endif()
endforeach()

if(link STREQUAL "shared")
  set(TRITON_LLVM_LIBRARIES LLVM)
else()
  set(components orcjit passes bitreader bitwriter irreader linker target)
  foreach(family IN LISTS TRITON_LLVM_FAMILIES)
    string(TOLOWER "${family}" lower)
    list(APPEND components ${lower}codegen ${lower}desc ${lower}info)
    if(NOT family STREQUAL "NVPTX")
      list(APPEND components ${lower}asmparser)
    endif()
  endforeach()
  llvm_map_components_to_libnames(TRITON_LLVM_LIBRARIES ${components})
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} (${link}) from ${LLVM_DIR}: ${TRITON_LLVM_FAMILIES}")
