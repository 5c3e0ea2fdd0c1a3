// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting for collective calls of the MPI library when a job begins.
#ifndef MPIX_HOST_CONTROL_FINISH_COLLECTIVE_H
#define MPIX_HOST_CONTROL_FINISH_COLLECTIVE_H

#include <mpi.h>
#include <mpix/device.cuh>

#include <cstdint>

namespace mpix {

// Completes a non-blocking collective call, and yields the core while it waits. The blocking calls of the MPI libraries
// do not yield; where processes share cores, each of them would cost time slices.
// Without a deadline, as these: compare_versions() has waited for all processes, and says who does not come.
inline int finish_collective(MPI_Request &request) {
    const std::uint64_t since = detail::now_ns();
    for (int done = 0;;) {
        if (const int code = PMPI_Test(&request, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS || done) return code;
        detail::pause_waiting(detail::now_ns() - since > detail::long_wait_ns);
    }
}

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_FINISH_COLLECTIVE_H
