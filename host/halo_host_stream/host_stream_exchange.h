// SPDX-License-Identifier: BSD-3-Clause
//
// An exchange in the order of a stream that the host makes instead of kernels (MPIX_HALO_STREAM), for comparisons.
#ifndef MPIX_HOST_HALO_HOST_STREAM_HOST_STREAM_EXCHANGE_H
#define MPIX_HOST_HALO_HOST_STREAM_HOST_STREAM_EXCHANGE_H

#include <memory>
#include <optional>
#include <vector>

#include <mpix/halo.hpp>

#include "device/halo/launch.h"
#include "host/halo/grid_state.h"
#include "transport/select.h"
#include "transport/status.h"

namespace mpix::halo {

// The transfer that MPIX_HALO_STREAM asks the host to use; none: kernels make the exchanges.
std::optional<transfer> stream_transfer();

struct host_stream_exchange {
    // Collective. `given`: an error that this rank has found before; then all ranks throw.
    host_stream_exchange(std::shared_ptr<const grid_state> grid, const std::vector<field> &fields, transfer how,
                         const status &given);

    // Waits until the stream's earlier work has ended.
    gpu::launch_result wait_for(CUstream_st *stream) const;
    void swap();

    exchange on_host;
    std::vector<int> double_buffered;           // fields of two allocations
    std::optional<transport::placement> where;  // of the fields; none: this rank has no cells
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_HOST_STREAM_HOST_STREAM_EXCHANGE_H
