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
install(DIRECTORY "${dist_info}" DESTINATION "${PYTHON_SITE_DIR}")
