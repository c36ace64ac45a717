# Installs what a wheel would: the package tree, the extension, and a dist-info folder that pip understands.
if(NOT PYTHON_SITE_DIR)
  set(PYTHON_SITE_DIR "${Python_SITEARCH}")
endif()
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/triton" DESTINATION "${PYTHON_SITE_DIR}"
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(TARGETS libtriton LIBRARY DESTINATION "${PYTHON_SITE_DIR}/triton/_C")

set(dist_info "${CMAKE_CURRENT_BINARY_DIR}/triton-${TRITON_VERSION}.dist-info")
configure_file("${CMAKE_CURRENT_SOURCE_DIR}/cmake/METADATA.in" "${dist_info}/METADATA" @ONLY)
file(WRITE "${dist_info}/INSTALLER" "conda\n")
file(WRITE "${dist_info}/WHEEL"
  "Wheel-Version: 1.0\nGenerator: cmake\nRoot-Is-Purelib: false\nTag: cp310-abi3-${CMAKE_SYSTEM_NAME}_${CMAKE_SYSTEM_PROCESSOR}\n")
file(WRITE "${dist_info}/top_level.txt" "triton\n")
install(DIRECTORY "${dist_info}" DESTINATION "${PYTHON_SITE_DIR}")
