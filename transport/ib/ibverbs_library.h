// SPDX-License-Identifier: BSD-3-Clause
//
// libibverbs, loaded when it is first asked for: programs on one node neither need it nor pay for it. (Posting and
// polling are calls through the device's context, and need no symbol.)
#ifndef MPIX_TRANSPORT_IB_IBVERBS_LIBRARY_H
#define MPIX_TRANSPORT_IB_IBVERBS_LIBRARY_H

#include <infiniband/verbs.h>

#include <cstdint>

#include "transport/ib/rc.h"

namespace mpix::transport::verbs {

// The functions that are called, under their own names; the header wraps some of them in macros of the same name.
#define MPIX_IBV_FUNCTIONS(F) \
    F(ibv_get_device_list)    \
    F(ibv_free_device_list)   \
    F(ibv_open_device)        \
    F(ibv_close_device)       \
    F(ibv_query_device)       \
    F(_ibv_query_gid_ex)      \
    F(ibv_alloc_pd)           \
    F(ibv_dealloc_pd)         \
    F(ibv_dereg_mr)           \
    F(ibv_create_cq)          \
    F(ibv_destroy_cq)         \
    F(ibv_create_qp)          \
    F(ibv_modify_qp)          \
    F(ibv_destroy_qp)         \
    F(ibv_wc_status_str)

struct ibverbs_library {
#define MPIX_IBV_MEMBER(function) decltype(&::function) function = nullptr;
    MPIX_IBV_FUNCTIONS(MPIX_IBV_MEMBER)
#undef MPIX_IBV_MEMBER
    ibv_mr *(*reg_mr)(ibv_pd *, void *, std::size_t, int) = nullptr;
    int (*query_port)(ibv_context *, std::uint8_t, ibv_port_attr *) = nullptr;

    rdma::port_calls port() const { return {ibv_query_device, query_port, _ibv_query_gid_ex}; }

    // The library stays loaded.
    status load();
};

}  // namespace mpix::transport::verbs

#endif  // MPIX_TRANSPORT_IB_IBVERBS_LIBRARY_H
