# SPDX-License-Identifier: BSD-3-Clause
#
# `cpack` makes a Debian package, or an archive, of what is installed. Each is for the MPI library that mpix was built on, so
# that two of them do not go together.

set(CPACK_PACKAGE_NAME "mpix-${MPIX_MPI_VENDOR}")
set(CPACK_PACKAGE_VENDOR "The mpix authors")
set(CPACK_PACKAGE_CONTACT "The mpix authors <mpix@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "MPI-4 partitioned communication, triggered from inside GPU kernels")
set(CPACK_PACKAGE_DESCRIPTION
    "A library in front of the MPI library, by the profiling interface: headers for hosts and for CUDA kernels, compiler wrappers, and mpix_info.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR TGZ)
find_program(MPIX_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(MPIX_DPKG_SHLIBDEPS)
    list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_PROVIDES mpix)
set(CPACK_DEBIAN_PACKAGE_CONFLICTS mpix)
set(CPACK_DEBIAN_PACKAGE_REPLACES mpix)
# The headers include <mpi.h>, and the wrappers call the MPI compiler.
if(MPIX_MPI_VENDOR STREQUAL "openmpi")
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenmpi-dev, openmpi-bin")
elseif(MPIX_MPI_VENDOR STREQUAL "mpich")
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "libmpich-dev, mpich")
endif()
# They are loaded where they are there: between nodes, and to place the boxes of a halo exchange.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libucx0, libibverbs1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libscotch-dev)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

include(CPack)
