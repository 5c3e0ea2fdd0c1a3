# SPDX-License-Identifier: BSD-3-Clause
#
# What is installed: library, headers, CMake package, pkg-config file, compiler wrappers, mpix_info, man page, module file.
# All of it finds the rest from its own place, so an installed tree may be moved.

include(CMakePackageConfigHelpers)

install(TARGETS mpix mpix_device EXPORT mpixTargets)
install(TARGETS mpix_info DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/mpix" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# bash-completion looks for a file of the command's name.
install(FILES "${PROJECT_SOURCE_DIR}/scripts/bash-completion/mpix_info"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
foreach(wrapper mpixcc mpixcxx mpixfort)
    install(FILES "${PROJECT_SOURCE_DIR}/scripts/bash-completion/mpixcc" RENAME ${wrapper}
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
endforeach()
# A page for each call, from the headers, when CMake configures: that takes no time.
find_package(Python3 3.8 QUIET COMPONENTS Interpreter)
set(MPIX_MAN_PAGES "")
if(Python3_Interpreter_FOUND)
    set(MPIX_MAN_PAGES "${PROJECT_BINARY_DIR}/man")
    file(REMOVE_RECURSE "${MPIX_MAN_PAGES}")
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/mpix/*.h")
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers}
        "${PROJECT_SOURCE_DIR}/scripts/man-pages" "${PROJECT_SOURCE_DIR}/host/info/mpix_info.cc")
    execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/man-pages" "${MPIX_MAN_PAGES}"
        COMMAND_ERROR_IS_FATAL ANY)
    install(DIRECTORY "${MPIX_MAN_PAGES}/" DESTINATION "${CMAKE_INSTALL_MANDIR}")
else()
    message(STATUS "mpix: no man pages of calls, which take Python 3.8")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/mpix-environment.7" DESTINATION "${CMAKE_INSTALL_MANDIR}/man7")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
configure_file("${PROJECT_SOURCE_DIR}/packaging/modulefile.in" "${PROJECT_BINARY_DIR}/package/${PROJECT_VERSION}" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/${PROJECT_VERSION}" DESTINATION "${CMAKE_INSTALL_DATADIR}/modulefiles/mpix")

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
if(MPIX_HAVE_FORTRAN)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/mpix-fortran.pc.in" "${PROJECT_BINARY_DIR}/package/mpix-fortran.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/package/mpix-fortran.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# ---- compiler wrappers ---------------------------------------------------------------------------------

set(wrapper_permissions OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# mpixcc, mpixcxx and mpixfort in a folder, which find the library, the headers and the module at these places.
function(mpix_configure_wrappers destination)
    cmake_parse_arguments(PARSE_ARGV 1 MPIX_WRAPPER "" "LIBDIR;INCLUDES;COMPAT;MODULES" "")
    set(MPIX_WRAPPER_INCLUDES "\"${MPIX_WRAPPER_INCLUDES}\"")
    set(MPIX_WRAPPER_FIRST "${MPIX_WRAPPER_COMPAT}")
    # Programs may refer to nothing in libmpix themselves: their calls come from other libraries, such as MPICH's for
    # Fortran. With --as-needed, as on Ubuntu, the linker would leave it out then, and the calls would go past it.
    set(link_mpix "-Wl,--push-state,--no-as-needed,-lmpix,--pop-state")
    set(MPIX_WRAPPER_LIBRARIES "${link_mpix}")
    set(MPIX_WRAPPER_EFFECT "includes nothing but <mpi.h> sees the MPI-4 partitioned calls")
    foreach(wrapper "mpixcc|C|MPIX_CC|${MPI_C_COMPILER}" "mpixcxx|C++|MPIX_CXX|${MPI_CXX_COMPILER}"
            "mpixfort|Fortran|MPIX_FC|${MPI_Fortran_COMPILER}")
        string(REPLACE "|" ";" wrapper "${wrapper}")
        list(GET wrapper 0 name)
        list(GET wrapper 1 MPIX_WRAPPER_LANGUAGE)
        list(GET wrapper 2 MPIX_WRAPPER_VARIABLE)
        list(GET wrapper 3 MPIX_WRAPPER_COMPILER)
        if(MPIX_WRAPPER_LANGUAGE STREQUAL "Fortran")
            if(NOT MPIX_HAVE_FORTRAN)
                continue()
            endif()
            set(MPIX_WRAPPER_FIRST "${MPIX_WRAPPER_MODULES}")
            set(MPIX_WRAPPER_INCLUDES "")
            set(MPIX_WRAPPER_LIBRARIES "-lmpix_fortran ${link_mpix}")
            set(MPIX_WRAPPER_EFFECT "uses the modules mpix, mpix_halo and mpix_device finds them")
        endif()
        configure_file("${PROJECT_SOURCE_DIR}/scripts/mpixcc.in" "${destination}/${name}" @ONLY
            FILE_PERMISSIONS ${wrapper_permissions})
    endforeach()
endfunction()

# For the installed tree, and to run in place from the build tree.
file(RELATIVE_PATH bin_to_prefix "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix")
string(REGEX REPLACE "/$" "" bin_to_prefix "${bin_to_prefix}")
mpix_configure_wrappers("${PROJECT_BINARY_DIR}/package"
    LIBDIR "$here/${bin_to_prefix}/${CMAKE_INSTALL_LIBDIR}"
    INCLUDES "$here/${bin_to_prefix}/${CMAKE_INSTALL_INCLUDEDIR}"
    COMPAT "$here/${bin_to_prefix}/${CMAKE_INSTALL_INCLUDEDIR}/mpix/compat"
    MODULES "$here/${bin_to_prefix}/${CMAKE_INSTALL_INCLUDEDIR}/mpix/fortran")
install(PROGRAMS "${PROJECT_BINARY_DIR}/package/mpixcc" "${PROJECT_BINARY_DIR}/package/mpixcxx"
    DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(MPIX_HAVE_FORTRAN)
    install(PROGRAMS "${PROJECT_BINARY_DIR}/package/mpixfort" DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
mpix_configure_wrappers("${PROJECT_BINARY_DIR}/bin"
    LIBDIR "$here/../lib"
    INCLUDES "${PROJECT_SOURCE_DIR}/include"
    COMPAT "${PROJECT_SOURCE_DIR}/include/mpix/compat"
    MODULES "$here/../bindings/fortran/modules")
