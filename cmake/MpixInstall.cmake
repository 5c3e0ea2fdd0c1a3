# SPDX-License-Identifier: BSD-3-Clause
#
# What is installed: library, headers, CMake package, pkg-config file, compiler wrappers, mpix_info, man page. All of it finds
# the rest from its own place, so an installed tree may be moved.

include(CMakePackageConfigHelpers)

install(TARGETS mpix mpix_device EXPORT mpixTargets)
install(TARGETS mpix_info DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/mpix" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/mpix-environment.7" DESTINATION "${CMAKE_INSTALL_MANDIR}/man7")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mpix")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/mpixConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/package/mpixConfig.cmake"
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/mpixConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/package/mpixConfig.cmake"
    "${PROJECT_BINARY_DIR}/package/mpixConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/mpixCuda20.cmake"
    DESTINATION "${package_dir}")
install(EXPORT mpixTargets NAMESPACE mpix:: DESTINATION "${package_dir}")

# ---- pkg-config ----------------------------------------------------------------------------------------

file(RELATIVE_PATH MPIX_PC_TO_PREFIX
    "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/mpix.pc.in" "${PROJECT_BINARY_DIR}/package/mpix.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/mpix.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# ---- compiler wrappers ---------------------------------------------------------------------------------

# One pair for the installed tree, one that runs in place from the build tree.
function(mpix_configure_wrappers destination)
    set(MPIX_WRAPPER_LANGUAGE C)
    set(MPIX_WRAPPER_VARIABLE MPIX_CC)
    set(MPIX_WRAPPER_COMPILER "${MPI_C_COMPILER}")
    configure_file("${PROJECT_SOURCE_DIR}/scripts/mpixcc.in" "${destination}/mpixcc" @ONLY
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
        WORLD_READ WORLD_EXECUTE)
    set(MPIX_WRAPPER_LANGUAGE C++)
    set(MPIX_WRAPPER_VARIABLE MPIX_CXX)
    set(MPIX_WRAPPER_COMPILER "${MPI_CXX_COMPILER}")
    configure_file("${PROJECT_SOURCE_DIR}/scripts/mpixcc.in" "${destination}/mpixcxx" @ONLY
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
        WORLD_READ WORLD_EXECUTE)
endfunction()

file(RELATIVE_PATH bin_to_prefix "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix")
string(REGEX REPLACE "/$" "" bin_to_prefix "${bin_to_prefix}")
set(MPIX_WRAPPER_COMPAT "$here/${bin_to_prefix}/${CMAKE_INSTALL_INCLUDEDIR}/mpix/compat")
set(MPIX_WRAPPER_INCLUDES "\"$here/${bin_to_prefix}/${CMAKE_INSTALL_INCLUDEDIR}\"")
set(MPIX_WRAPPER_LIBDIR "$here/${bin_to_prefix}/${CMAKE_INSTALL_LIBDIR}")
mpix_configure_wrappers("${PROJECT_BINARY_DIR}/package")
install(PROGRAMS "${PROJECT_BINARY_DIR}/package/mpixcc" "${PROJECT_BINARY_DIR}/package/mpixcxx"
    DESTINATION "${CMAKE_INSTALL_BINDIR}")

set(MPIX_WRAPPER_COMPAT "${PROJECT_SOURCE_DIR}/include/mpix/compat")
set(MPIX_WRAPPER_INCLUDES "\"${PROJECT_SOURCE_DIR}/include\"")
set(MPIX_WRAPPER_LIBDIR "$here/../lib")
mpix_configure_wrappers("${PROJECT_BINARY_DIR}/bin")
