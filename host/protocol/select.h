// SPDX-License-Identifier: BSD-3-Clause
//
// How the bytes of a matched pair move: which thread or engine moves them, and where they land. Decided here, once a
// pair's transport is known (transport/select.h). send.cc and receive.cc act on it, explain.cc prints it.
#ifndef MPIX_HOST_PROTOCOL_SELECT_H
#define MPIX_HOST_PROTOCOL_SELECT_H

#include <array>
#include <cstdint>
#include <string>

#include "host/protocol/copy_engine_threshold.h"
#include "host/protocol/inline_threshold.h"
#include "transport/status.h"

namespace mpix {

// From host memory to host memory within a node: whether a partition goes from buffer to buffer by one copy, instead of
// through a landing. Which process makes it: copying_side.h. The sender asks before it offers, the receiver before it
// accepts; members that a side does not know keep their defaults.
struct single_copy {
    bool sender_on_gpu = false, sender_gaps = false;
    std::uint64_t partition_bytes = 0;  // the sender's
    std::uint64_t least = 0;            // the sender's MPIX_SINGLE_COPY_BYTES; 0: never
    status unreached{};                 // why a side does not reach the other's memory
    bool receiver_gaps = false;
};
// Why it does not; empty: it does.
reason why_no_single_copy(const single_copy &pair);
// The arrival flags of such a message, and behind them a word for each partition: mpix_prequest.taken.
constexpr std::uint64_t bytes_with_taken(std::uint64_t partitions) {
    return (2 * partitions + 1) * sizeof(std::uint64_t);
}

// Between nodes: whether the network reaches a buffer in GPU memory itself, instead of through page-locked memory. For
// a send's buffer, whatever memory it goes to; for a receive's, if the sender's network and buffer allow it.
struct gpu_end {
    bool on_gpu = false, gaps = false, empty = false;
    status network_cannot;  // success: it can
};
// Why it does not; empty: it does, or the buffer is host memory.
std::string why_staged(const gpu_end &sender);
std::string why_staged(const gpu_end &receiver, bool sender_can);

// What a receive's landing is.
struct landing_kind {
    bool in_place = false;  // the receive buffer in the receiver's own memory
    bool by_puts = false;   // the receive buffer in GPU memory; the network puts there
    std::string staged;     // why a buffer in GPU memory is reached through host memory
    std::uint64_t slots = 0;
    std::string no_rget = {};    // in GPU memory that the sender maps: why our kernels do not read the send buffer
    std::string forwarded = {};  // why that is other GPU memory than the receive buffer; empty: it is the buffer
};

// What a send's route is.
struct outgoing_route {
    bool from_gpu = false, gaps = false;        // the send buffer
    bool to_gpu = false, landing_gaps = false;  // where the bytes land
    bool remote = false;                        // the landing is not mapped here
    bool rematched = false;                     // callers may remember an earlier route, so they get no other
    bool in_chunks = false;                     // chunks have flags, partitions have none
    bool forwarded = false;                     // from GPU memory of the receiver's that is not the receive buffer
    bool flags_far = false;                     // our kernels do not reach the arrival flags
    std::uint64_t bytes = 0, partition_bytes = 0;
    bool in_place = false;         // the landing is the receiver's own host memory
    reason two_copies = {};        // from host memory to host memory, if not in_place: why
    std::string staged = {};       // from GPU memory to a network, through host memory: why
    bool inline_buffer = false;    // the receiver has one, and an exported copy could use it
    reason no_rget = {};           // from GPU to GPU: why the receiver's kernels do not read it; empty: they may
    std::uint64_t rget_bytes = 0;  // and from how many bytes per thread on, see mpix_prequest
};

enum class mover { cpu, system, copy_engine, kernel, network };

struct movement {
    bool by_caller = false;           // MPI_Pready, and host threads that play kernels, store the bytes themselves
    bool by_kernels = false;          // kernels do so
    bool typed_only = false;          // but only in pready_typed
    bool by_inline = false;           // by the receiver's inline buffer, once kernels of both sides use it
    inline_threshold sent_inline;     // the limit for by_inline
    bool packed_first = false;        // the progress engine packs into a buffer of its own first
    mover engine = mover::cpu;        // how the progress engine moves the rest
    copy_engine_threshold to_engine;  // which partitions kernels leave to the engine
    std::uint64_t rget_bytes = 0;     // from which size on the receiver's kernels read, as in mpix_prequest
    reason no_rget;                   // why they do not read; empty: they do
    reason two_copies;                // why there are two copies, where one might do; empty: there is one
    bool forwarded = false;           // the receiver copies from its landing in GPU memory to the receive buffer
    bool too_many = false;            // partitions for kernels to flag what is forwarded, so by_kernels is false
    std::string staged;  // why a network does not read the GPU's memory itself; empty: it does, or there is none
    reason not_posted;   // once exported: why its executor posts to no work queue; empty: it does
};
movement choose_movement(const outgoing_route &route);

// Larger messages that a queue would have to stage are left to the engine, so that kernels do not take page-locked
// memory of that size.
constexpr std::uint64_t most_staged = 64 * 1024 * 1024;
// The least number of threads in a GPU's group that may post a partition: each thread stages at most
// most_staged_per_thread bytes.
std::uint64_t least_posting_threads(std::uint64_t partition_bytes);

// The least landing in GPU memory of the receiver's that is not its buffer: a word is stored there to see how long that
// takes.
constexpr std::uint64_t least_forwarded = sizeof(std::uint64_t);

// How many epochs a landing has room for, by the message's size. Not for bytes that land in the receive buffer.
struct slot_range {
    std::uint64_t least, most;  // bytes
    std::uint64_t slots;
};
std::array<slot_range, 2> slot_ranges(std::uint64_t eager_bytes);
std::uint64_t slots_for(std::uint64_t bytes, std::uint64_t eager_bytes);

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_SELECT_H
