// SPDX-License-Identifier: BSD-3-Clause
//
// Control messages within a node. Each process has an inbox in shared memory, with one FIFO for each process of the
// node. A FIFO has one writer, so a sender that ends half-way through a message holds up nobody else. MPI takes no
// part: any thread may send and receive, at every thread level.
#ifndef MPIX_HOST_CONTROL_FIFO_H
#define MPIX_HOST_CONTROL_FIFO_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/control/message.h"

namespace mpix {

// A packet without the zeros at its end: most messages are short, and each cache line costs the receiver a transfer.
struct alignas(64) fifo_slot {
    std::uint64_t bytes;
    control_packet packet;  // the first `bytes` of it count
};

// In shared memory, zero at first; its slots follow.
struct control_fifo {
    alignas(64) std::atomic<std::uint64_t> taken;  // messages, by the receiver
    alignas(64) std::atomic<std::uint64_t> put;    // messages, by the sender

    fifo_slot *slots() { return reinterpret_cast<fifo_slot *>(this + 1); }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The slots of each FIFO. Processes that share a core take turns of milliseconds. What a process sends in its turn
// should fit, because the sender keeps the rest, and can put it only when it next gets a turn. So a FIFO has many
// slots, as long as those of all senders are within a MiB.
std::uint64_t fifo_slots(std::size_t senders);
// The size of an inbox for that many senders: a bit for each FIFO that says whether it has news, and the FIFOs.
std::uint64_t inbox_bytes(std::size_t senders);

// The receiver's end. The caller serialises.
class control_inbox {
public:
    // `memory` has inbox_bytes(senders) bytes, and outlives this object.
    void open(void *memory, std::size_t senders);
    // The next message of any sender; those of one sender come in order. `sender` receives its number. The contents of
    // `out` are not to be trusted. False: there is no message.
    bool receive(std::size_t &sender, control_packet &out);

private:
    std::atomic<std::uint64_t> *news_ = nullptr;  // a bit for each sender
    char *fifos_ = nullptr;
    std::uint64_t slots_ = 0;
    std::vector<std::uint64_t> seen_;   // bits taken from `news_`, whose FIFOs may hold messages
    std::vector<std::uint64_t> taken_;  // from each FIFO
};

// The sending end of the FIFO with that number. The caller serialises.
class control_outbox {
public:
    control_outbox() = default;
    control_outbox(void *inbox, std::size_t senders, std::size_t sender);
    explicit operator bool() const { return fifo_ != nullptr; }
    // False: the FIFO is full.
    bool put(const control_packet &message);

private:
    control_fifo *fifo_ = nullptr;
    std::atomic<std::uint64_t> *news_ = nullptr;
    std::uint64_t bit_ = 0, slots_ = 0, put_ = 0;
};

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_FIFO_H
