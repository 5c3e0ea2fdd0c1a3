// SPDX-License-Identifier: BSD-3-Clause
//
// How the bytes of a matched pair move: who takes them out of the send buffer, and what they land in. Decided here, once a
// pair's transport is known; send.cc and receive.cc do it, explain.cc says it.
#ifndef MPIX_HOST_PROTOCOL_SELECT_H
#define MPIX_HOST_PROTOCOL_SELECT_H

#include <array>
#include <cstdint>
#include <string>

#include "host/protocol/copy_engine_threshold.h"
#include "host/protocol/inline_threshold.h"

namespace mpix {

// Host memory to host memory within a node: whether the sender writes straight into the receive buffer, by one copy, in place
// of a landing that the receiver copies out. Asked by the sender before it offers, and by the receiver before it accepts;
// what a side does not know it leaves as it is.
struct single_copy {
    bool sender_on_gpu = false, sender_gaps = false;
    std::uint64_t partition_bytes = 0;  // the sender's
    std::uint64_t least = 0;            // the sender's MPIX_SINGLE_COPY_BYTES; 0: never
    std::string unreached;              // why the sender cannot write to the receiver's memory
    bool receiver_gaps = false;
};
// A sentence; empty: it does.
std::string why_no_single_copy(const single_copy &pair);

// Between nodes: whether the network reaches a buffer in GPU memory itself, in place of page-locked memory by way of which
// it is copied. A send's buffer, to whatever memory it goes; and a receive's, if the sender's network and buffer allow it.
struct gpu_end {
    bool on_gpu = false, gaps = false, empty = false;
    std::string network_cannot;  // why, or empty
};
// A sentence; empty: it does, or is host memory.
std::string why_staged(const gpu_end &sender);
std::string why_staged(const gpu_end &receiver, bool sender_can);

// Of a receive, what its landing is.
struct landing_kind {
    bool in_place = false;  // the receive buffer in the receiver's own memory
    bool by_puts = false;   // the receive buffer in GPU memory, which the network puts to
    std::string staged;     // in GPU memory, and by way of host memory: why
    std::uint64_t slots = 0;
    std::string not_pulled =
        {};  // the same, and mapped by the sender: why our kernels read nothing out of the send buffer
};

// A send, its route attached.
struct outgoing_route {
    bool from_gpu = false, gaps = false;        // the send buffer
    bool to_gpu = false, landing_gaps = false;  // what the bytes land in
    bool remote = false;                        // that is not mapped here
    bool spent = false;                         // callers may remember an earlier route: they get no other
    bool in_chunks = false;                     // each of which has a flag, partitions have none
    std::uint64_t bytes = 0, partition_bytes = 0;
    bool in_place = false;        // host memory, and the receiver's own
    std::string two_copies = {};  // otherwise, from host memory to host memory: why
    std::string staged = {};      // from GPU memory to a network, by way of host memory: why
    bool inline_buffer = false;   // the receiver has one for it, and an exported copy could use it
    std::string not_pulled =
        {};  // from GPU to GPU: why the receiver's kernels do not read the send buffer; empty: they may
    std::uint64_t pull_bytes = 0;  // and from how many on, see mpix_prequest
};

enum class mover { cpu, system, copy_engine, kernel, network };

struct movement {
    bool by_caller = false;   // MPI_Pready, and host threads that play kernels, store the bytes themselves
    bool by_kernels = false;  // so do kernels
    bool typed_only = false;  // but those of pready_typed alone
    bool by_inline = false;   // by the receiver's inline buffer, once its kernels take out of there; then those of both
    inline_threshold sent_inline;     // what decides that, where kernels store
    bool packed_first = false;        // by the progress engine, into a buffer of its own
    mover engine = mover::cpu;        // what the progress engine moves the rest with
    copy_engine_threshold to_engine;  // what kernels leave to the engine although they could store it
    std::uint64_t pull_bytes = 0;     // what kernels leave to the receiver's, as in mpix_prequest
    std::string not_pulled;           // why they leave nothing to them; empty: they do
    std::string two_copies;           // why the caller's is not the only copy, where it could be; empty: it is
    std::string staged;      // why a network does not read the GPU's memory itself; empty: it does, or there is none
    std::string not_posted;  // why its executor posts nothing to a work queue, once exported; empty: it does
};
movement choose_movement(const outgoing_route &route);

// A larger message that would have to be staged for a queue is left to the engine, rather than that page-locked memory of its
// size is taken for kernels.
constexpr std::uint64_t most_staged = 64 * 1024 * 1024;
// So many threads of a GPU's group have to be there for a partition to be posted: each stages no more than it may.
std::uint64_t least_posting_threads(std::uint64_t partition_bytes);

// How many epochs the landing of a message has room for, by its size; where the bytes do not land in the receive buffer.
struct slot_range {
    std::uint64_t least, most;  // bytes
    std::uint64_t slots;
};
std::array<slot_range, 2> slot_ranges(std::uint64_t eager_bytes);
std::uint64_t slots_for(std::uint64_t bytes, std::uint64_t eager_bytes);

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_SELECT_H
