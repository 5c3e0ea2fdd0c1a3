# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_UCX: UCX's headers are there, so the transport between nodes is built. The library itself is loaded when the
# first peer on another node is met, not linked.

set(MPIX_HAVE_UCX OFF)
string(TOUPPER "${MPIX_UCX}" mpix_ucx_choice)
if(mpix_ucx_choice STREQUAL "AUTO" OR MPIX_UCX)
    find_path(MPIX_UCX_INCLUDE_DIR ucp/api/ucp.h)
    if(MPIX_UCX_INCLUDE_DIR)
        set(MPIX_HAVE_UCX ON)
    elseif(NOT mpix_ucx_choice STREQUAL "AUTO")
        message(FATAL_ERROR "MPIX_UCX=${MPIX_UCX}, but ucp/api/ucp.h was not found. Install UCX's headers "
            "(Debian, Ubuntu: libucx-dev), or say where they are with -DMPIX_UCX_INCLUDE_DIR=...")
    endif()
endif()
