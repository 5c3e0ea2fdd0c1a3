// SPDX-License-Identifier: BSD-3-Clause
//
// An exchange in the order of a stream, made by the host in place of kernels (MPIX_HALO_STREAM): to compare with.
#ifndef MPIX_HOST_HALO_BY_HOST_BY_HOST_H
#define MPIX_HOST_HALO_BY_HOST_BY_HOST_H

#include <memory>
#include <optional>
#include <vector>

#include <mpix/halo.hpp>

#include "device/halo/launch.h"
#include "host/halo/grid_state.h"
#include "transport/select.h"
#include "transport/status.h"

namespace mpix::halo {

// What the environment asks for; none: kernels.
std::optional<transfer> transfer_of_streams();

struct exchange_by_host {
    // Collective. `given`: what was wrong before.
    exchange_by_host(std::shared_ptr<const grid_state> grid, const std::vector<field> &fields, transfer how,
                     const status &given);

    // All that comes before in the stream has ended. `problem` as of the other calls of a stream.
    gpu::launch_result wait_for(CUstream_st *stream) const;
    void swap();

    exchange made;
    std::vector<int> of_two;  // fields of two allocations
    transport::placement where;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_BY_HOST_BY_HOST_H
