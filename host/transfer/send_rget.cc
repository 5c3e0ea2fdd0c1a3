// SPDX-License-Identifier: BSD-3-Clause
//
// Rget, the sender's side: partitions that are left to kernels of the receiver (rget.h).
#include "host/transfer/send.h"

#include <mpix/device.cuh>

#include <utility>

#include "host/protocol/rget.h"

namespace mpix {

// Whether no group of the receiver has claimed the partition.
bool send_request::nobody_reads(std::uint64_t partition) {
    const std::uint64_t *const taken = detail::taken_of(static_cast<std::uint64_t *>(route_->arrival.address),
                                                        static_cast<std::uint64_t>(op.partitions));
    std::uint64_t last = 0;
    if (auto bad = transport::devices()->read(&last, taken + partition, sizeof last, route_->arrival.device); !bad.ok())
        fail(bad);
    return last < 2 * epoch_ - 1;
}

// Partitions that kernels of the receiver have read are there, and flagged. The engine moves those that they will not
// read.
void send_request::look_for_answers() {
    const auto *const answers = reinterpret_cast<const std::uint64_t *>(
        reinterpret_cast<const char *>(words) + answers_in_words(static_cast<std::uint64_t>(op.partitions)));
    std::vector<move> ours;
    std::erase_if(moving_, [&](const move &m) {
        if (!m.rts) return false;
        // Pairs with store_release in read_claimed: the buffer has been read, and the flag set. A receiver that looks at
        // the flags (MPI_Test) may have gone on to the next epoch, and have answered there that it does not read.
        const std::uint64_t answer = detail::load_acquire(&answers[m.partition]);  // pairs: B3, B4
        const bool read = answer >= 2 * epoch_ && answer != 2 * epoch_ + 1;
        if (read || refusal_ != refused_not) return true;  // or the peer is gone
        // If the host has marked the partition ready as well, which is an error, the flag may have come first; then
        // nobody answers.
        const auto p = static_cast<std::size_t>(m.partition);
        if (answer != 2 * epoch_ + 1 && !(host_readied_[p] && nobody_reads(p))) return false;
        ours.push_back({m.partition, m.partitions, m.for_host, nullptr});
        return true;
    });
    for (move &m : ours) carry_out(std::move(m));
}

}  // namespace mpix
