# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_SCOTCH: the header of Scotch 7 or later is there, so placements of many boxes can begin with Scotch's. The library
# itself is loaded when it is first needed, not linked.

set(MPIX_HAVE_SCOTCH OFF)
string(TOUPPER "${MPIX_SCOTCH}" mpix_scotch_choice)
if(mpix_scotch_choice STREQUAL "AUTO" OR MPIX_SCOTCH)
    find_path(MPIX_SCOTCH_INCLUDE_DIR scotch.h PATH_SUFFIXES scotch)
    # Contexts, which keep Scotch from using threads and the program's random numbers, are new in 7.
    set(mpix_scotch_header "")
    if(MPIX_SCOTCH_INCLUDE_DIR)
        file(STRINGS "${MPIX_SCOTCH_INCLUDE_DIR}/scotch.h" mpix_scotch_header REGEX "SCOTCH_contextThreadSpawn" LIMIT_COUNT 1)
    endif()
    if(mpix_scotch_header)
        set(MPIX_HAVE_SCOTCH ON)
    elseif(NOT mpix_scotch_choice STREQUAL "AUTO")
        message(FATAL_ERROR "MPIX_SCOTCH=${MPIX_SCOTCH}, but scotch.h (of Scotch 7 or later) was not found. Install Scotch "
            "(Debian, Ubuntu: libscotch-dev), or say where its header is with -DMPIX_SCOTCH_INCLUDE_DIR=...")
    endif()
endif()
