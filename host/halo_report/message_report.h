// SPDX-License-Identifier: BSD-3-Clause
//
// What is told of a message of an exchange, of whichever kind.
#ifndef MPIX_HOST_HALO_REPORT_MESSAGE_REPORT_H
#define MPIX_HOST_HALO_REPORT_MESSAGE_REPORT_H

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>

#include <mpix/halo.hpp>

#include "host/halo/grid_state.h"

namespace mpix::halo {

// Of a message, the bytes for each direction, by number, in which the peer's cells lie; without padding.
using direction_bytes = std::array<std::int64_t, directions>;

// `path`: what moves it. `sent`: to the peer; otherwise from it.
message_report report_of(const grid_state &g, int peer, const direction_bytes &bytes, bool sent, std::string path);
// Of a partitioned request.
std::string path_of(MPI_Request request);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_REPORT_MESSAGE_REPORT_H
