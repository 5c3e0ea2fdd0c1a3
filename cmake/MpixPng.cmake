# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_PNG: libpng is there, so mpix::halo::write_png works. libmpix is linked with it.

set(MPIX_HAVE_PNG OFF)
string(TOUPPER "${MPIX_PNG}" mpix_png_choice)
if(mpix_png_choice STREQUAL "AUTO" OR MPIX_PNG)
    find_package(PNG 1.6 QUIET)
    if(PNG_FOUND)
        set(MPIX_HAVE_PNG ON)
    elseif(NOT mpix_png_choice STREQUAL "AUTO")
        message(FATAL_ERROR "MPIX_PNG=${MPIX_PNG}, but libpng 1.6 was not found. Install it (Debian, Ubuntu: libpng-dev).")
    endif()
endif()
