// SPDX-License-Identifier: BSD-3-Clause
//
// What UCX is to be used for.
#ifndef MPIX_TRANSPORT_UCX_OPTIONS_H
#define MPIX_TRANSPORT_UCX_OPTIONS_H

#include <cstdint>

namespace mpix::transport {

struct ucx_options {
    static constexpr std::uint64_t most_eager_bytes = 1 << 20;
    bool gpu_memory = true;         // where it can
    bool fake_gpus = false;         // tests: that is host memory
    std::uint64_t eager_bytes = 0;  // puts into host memory of at most so many go as messages
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_UCX_OPTIONS_H
