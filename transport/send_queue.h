// SPDX-License-Identifier: BSD-3-Clause
//
// What the host runtime asks of a work queue to a peer on another node: kernels, or host threads that play them, post
// to it by themselves (include/mpix/impl/work_queue/post.cuh), and somebody executes it, a NIC or the software HCA.
//
// Errors: as in transport.h. Thread safety: every function may be called from any thread.
#ifndef MPIX_TRANSPORT_SEND_QUEUE_H
#define MPIX_TRANSPORT_SEND_QUEUE_H

#include <mpix/detail/abi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "transport/transport.h"

namespace mpix::transport {

// A send's route by the network, as postings need it.
struct queue_message {
    std::uint32_t partitions = 0;
    std::uint64_t partition_bytes = 0;
    const char *payload = nullptr;  // packed byte 0 in host memory, which stays until the message is withdrawn
    char *staging = nullptr;        // the same as the executor reaches it, if it puts the bytes there; else null
    bool gaps = false;              // and packs them before
    region landing, flags;          // the peer's
    std::uint64_t slots = 1;        // messages that the landing holds
    region words;                   // the peer's, in which
    std::uint64_t complete = 0;     // this word is told the epoch, last
};

// A message whose entries are prebuilt, in memory of the executor. Ends with the object; nobody posts it then.
struct queued_message {
    virtual ~queued_message() = default;
    virtual const mpix_posting *postings() const = 0;  // one for each slot, as the executor reaches them
};

struct send_queue {
    virtual ~send_queue() = default;
    virtual status enter(const queue_message &message, std::unique_ptr<queued_message> &out) = 0;
    // A NIC, rung by whom, or the software HCA, for the user.
    virtual std::string executed_by() const = 0;
    // Execute what was posted, where that is our business, or a good part of it. False: there was nothing to do, or
    // others are at it.
    virtual bool step() = 0;
    // Blocks below this index are done with. Pairs with the executor's reads of what they name.
    virtual std::uint64_t completed() = 0;
    // Why not all blocks below this index were executed, or empty. To be asked once they are completed; of the highest
    // index, whether the queue is of any use.
    virtual status failed(std::uint64_t below) = 0;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_SEND_QUEUE_H
