# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_VERBS: libibverbs' header is there, so the transport over its reliable connections is built. The library itself
# is loaded when it is first asked for, not linked.
# MPIX_HAVE_MLX5: so is the vendor's header for ConnectX, and libibverbs' knows of dma-buf (rdma-core 34).

set(MPIX_HAVE_VERBS OFF)
set(MPIX_HAVE_MLX5 OFF)
string(TOUPPER "${MPIX_VERBS}" mpix_verbs_choice)
if(mpix_verbs_choice STREQUAL "AUTO" OR MPIX_VERBS)
    find_path(MPIX_VERBS_INCLUDE_DIR infiniband/verbs.h)
    # ibv_gid_entry: older headers lack what tells RoCE's versions apart.
    set(mpix_verbs_header "")
    if(MPIX_VERBS_INCLUDE_DIR)
        file(STRINGS "${MPIX_VERBS_INCLUDE_DIR}/infiniband/verbs.h" mpix_verbs_header REGEX "_ibv_query_gid_ex" LIMIT_COUNT 1)
    endif()
    if(mpix_verbs_header)
        set(MPIX_HAVE_VERBS ON)
    elseif(NOT mpix_verbs_choice STREQUAL "AUTO")
        message(FATAL_ERROR "MPIX_VERBS=${MPIX_VERBS}, but infiniband/verbs.h (of rdma-core 33 or later) was not found. Install libibverbs' headers "
            "(Debian, Ubuntu: libibverbs-dev), or say where they are with -DMPIX_VERBS_INCLUDE_DIR=...")
    endif()
endif()
if(MPIX_HAVE_VERBS AND EXISTS "${MPIX_VERBS_INCLUDE_DIR}/infiniband/mlx5dv.h")
    file(STRINGS "${MPIX_VERBS_INCLUDE_DIR}/infiniband/verbs.h" mpix_verbs_header REGEX "ibv_reg_dmabuf_mr" LIMIT_COUNT 1)
    if(mpix_verbs_header)
        set(MPIX_HAVE_MLX5 ON)
    endif()
endif()
