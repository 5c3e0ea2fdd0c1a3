// SPDX-License-Identifier: BSD-3-Clause
//
// libucp, loaded when the first peer on another node is met: programs on one node neither need it nor pay for it.
#ifndef MPIX_TRANSPORT_UCX_UCP_LIBRARY_H
#define MPIX_TRANSPORT_UCX_UCP_LIBRARY_H

#include <ucp/api/ucp.h>

#include "transport/status.h"

namespace mpix::transport::ucx {

// The functions of libucp (and libucs) that are called, under their own names.
#define MPIX_UCP_FUNCTIONS(F)         \
    F(ucp_get_version)                \
    F(ucp_init_version)               \
    F(ucp_cleanup)                    \
    F(ucp_context_query)              \
    F(ucp_config_read)                \
    F(ucp_config_modify)              \
    F(ucp_config_release)             \
    F(ucp_worker_create)              \
    F(ucp_worker_destroy)             \
    F(ucp_worker_get_address)         \
    F(ucp_worker_release_address)     \
    F(ucp_worker_progress)            \
    F(ucp_worker_set_am_recv_handler) \
    F(ucp_ep_create)                  \
    F(ucp_ep_close_nbx)               \
    F(ucp_ep_flush_nbx)               \
    F(ucp_ep_print_info)              \
    F(ucp_ep_rkey_unpack)             \
    F(ucp_rkey_destroy)               \
    F(ucp_rkey_pack)                  \
    F(ucp_rkey_buffer_release)        \
    F(ucp_mem_map)                    \
    F(ucp_mem_unmap)                  \
    F(ucp_put_nbx)                    \
    F(ucp_am_send_nbx)                \
    F(ucp_request_check_status)       \
    F(ucp_request_free)               \
    F(ucs_status_string)

struct ucp_library {
#define MPIX_UCP_MEMBER(function) decltype(&::function) function = nullptr;
    MPIX_UCP_FUNCTIONS(MPIX_UCP_MEMBER)
#undef MPIX_UCP_MEMBER

    // The library stays loaded.
    status load();
};

}  // namespace mpix::transport::ucx

#endif  // MPIX_TRANSPORT_UCX_UCP_LIBRARY_H
