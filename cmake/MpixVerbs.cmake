# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_VERBS: libibverbs' header is there, so the transport over its reliable connections is built. The library itself
# is loaded when it is first asked for, not linked.

set(MPIX_HAVE_VERBS OFF)
string(TOUPPER "${MPIX_VERBS}" mpix_verbs_choice)
if(mpix_verbs_choice STREQUAL "AUTO" OR MPIX_VERBS)
    find_path(MPIX_VERBS_INCLUDE_DIR infiniband/verbs.h)
    if(MPIX_VERBS_INCLUDE_DIR)
        set(MPIX_HAVE_VERBS ON)
    elseif(NOT mpix_verbs_choice STREQUAL "AUTO")
        message(FATAL_ERROR "MPIX_VERBS=${MPIX_VERBS}, but infiniband/verbs.h was not found. Install libibverbs' headers "
            "(Debian, Ubuntu: libibverbs-dev), or say where they are with -DMPIX_VERBS_INCLUDE_DIR=...")
    endif()
endif()
