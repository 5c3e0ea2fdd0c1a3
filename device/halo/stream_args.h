// SPDX-License-Identifier: BSD-3-Clause
//
// What the host tells the kernels of a stream exchange.
#ifndef MPIX_DEVICE_HALO_STREAM_ARGS_H
#define MPIX_DEVICE_HALO_STREAM_ARGS_H

#include <mpix/halo/device_exchange.hpp>

#include <cstdint>

namespace mpix::halo {

// How a parcel is stored directly into a neighbour's ghost cells, whose memory this GPU maps. While the neighbour may
// still read these, it goes in its message instead.
struct direct_send {
    detail::device_copies copies;  // from own cells to those ghost cells; none: it always goes in its message
    std::int32_t message;
    std::uint64_t *direct_number;  // at the neighbour: the number of the last exchange in which it was stored directly
};
struct direct_stores {
    const direct_send *sends = nullptr;           // of each parcel that is sent; null: none is stored directly
    const detail::device_copy *copies = nullptr;  // of these
    // Of each message that is sent, what its receiver has written last: clear_to_store(exchange, phase).
    const std::uint64_t *clear_to_store = nullptr;
    // Where this rank writes the same, at the neighbours that send to it.
    std::uint64_t *const *peers_clear_to_store = nullptr;
    std::int32_t peers_count = 0;
    // Of each parcel of a message that is received, its direct_number; null: none comes directly.
    const std::uint64_t *received_directly = nullptr;
};
// The word by which a rank says that the ghost cells of an exchange may be written. Its lowest bit says in which
// allocation.
MPIX_FN std::uint64_t clear_to_store(std::uint64_t exchange, std::int32_t phase) {
    return exchange << 1 | static_cast<std::uint64_t>(phase);
}

// What the kernels of a stream exchange get.
struct stream_exchange_args {
    device_exchange x;
    std::int32_t phase;  // which allocation of each field, 0 or 1
    // In memory of the device: the step of the exchange that is started next, or under way; the groups of the present
    // finish that have ended; how many parcels have come directly; and how many parcels of own cells groups have taken by
    // a counter, in the present exchange.
    std::uint64_t *words;
    std::int32_t own_end;  // the parcels of own cells end here, and those of messages begin
    // Of run: its groups, and how many of them wait for messages, at most.
    std::int32_t run_groups, most_receivers;
    direct_stores direct;
    static constexpr int next_at = 0, ended_at = 1, direct_at = 2, copied_at = 3, words_count = 4;
};

// The parcels that are sent come first, 0 to sends_end() - 1, then those of own cells, then those of messages.
MPIX_FN int sends_end(const device_exchange &x) { return x.received_begin_; }

// The most blocks that send, copy or receive: two for each of the 132 multiprocessors of an H100. More would only take
// turns. finish and run have one more, which begins the next exchange of the set.
inline constexpr int most_parcel_blocks = 264;

// So many blocks of run has each multiprocessor room for at the same time.
inline constexpr int run_blocks_of_multiprocessor = 2;

}  // namespace mpix::halo

#endif  // MPIX_DEVICE_HALO_STREAM_ARGS_H
