// SPDX-License-Identifier: BSD-3-Clause
//
// How the bytes of a matched pair move: who takes them out of the send buffer, and what they land in. Decided here, once a
// pair's transport is known; send.cc and receive.cc do it, explain.cc says it.
#ifndef MPIX_HOST_REQUEST_MOVEMENT_H
#define MPIX_HOST_REQUEST_MOVEMENT_H

#include <array>
#include <cstdint>

namespace mpix {

// A send, its route attached.
struct outgoing_route {
    bool from_gpu = false, gaps = false;        // the send buffer
    bool to_gpu = false, landing_gaps = false;  // what the bytes land in
    bool remote = false;                        // that is not mapped here
    bool spent = false;                         // callers may remember an earlier route: they get no other
};

enum class mover { cpu, copy_engine, kernel, network };

struct movement {
    bool by_caller = false;     // MPI_Pready, and host threads that play kernels, store the bytes themselves
    bool by_kernels = false;    // so do kernels
    bool typed_only = false;    // but those of pready_typed alone
    bool packed_first = false;  // by the progress engine, into a buffer of its own
    mover engine = mover::cpu;  // what the progress engine moves the rest with
};
movement choose_movement(const outgoing_route &route);

// How many epochs the landing of a message has room for, by its size; where the bytes do not land in the receive buffer.
struct slot_range {
    std::uint64_t least, most;  // bytes
    std::uint64_t slots;
};
std::array<slot_range, 2> slot_ranges(std::uint64_t eager_bytes);
std::uint64_t slots_for(std::uint64_t bytes, std::uint64_t eager_bytes);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_MOVEMENT_H
