// SPDX-License-Identifier: BSD-3-Clause
//
// What UCX is to be used for.
#ifndef MPIX_TRANSPORT_UCX_WISH_H
#define MPIX_TRANSPORT_UCX_WISH_H

namespace mpix::transport {

struct ucx_wish {
    bool gpu_memory = true;    // where it can
    bool played_gpus = false;  // tests: that is host memory
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_UCX_WISH_H
