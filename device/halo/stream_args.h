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
    std::int32_t phase;           // which allocation of each field, 0 or 1
    std::uint64_t *words;         // in device memory; the constants below are their indices
    std::int32_t own_end;         // the parcels of own cells end here, and those of messages begin
    std::int32_t finish_groups;   // that wait in finish, at most; it and run have one more: it begins the next exchange
    std::int32_t run_groups;      // of run, at most
    std::int32_t most_receivers;  // the most of these that wait for messages
    direct_stores direct;

    static constexpr int next_at = 0;       // the step of the exchange that is started next, or under way
    static constexpr int ended_at = 1;      // groups of this finish or run that have ended
    static constexpr int direct_at = 2;     // parcels that neighbours have stored directly
    static constexpr int own_taken_at = 3;  // parcels of own cells taken in this exchange; may exceed their number
    static constexpr int words_count = 4;
};

// The parcels that are sent come first, 0 to sends_end() - 1, then those of own cells, then those of messages.
MPIX_FN int sends_end(const device_exchange &x) { return x.received_begin_; }

// The most blocks of start and finish: two for each of the 132 multiprocessors of an H100. More would only take turns.
inline constexpr int most_parcel_blocks = 264;

// Blocks of run_exchange that can be resident on one multiprocessor; its launch bounds see to that.
inline constexpr int run_blocks_of_multiprocessor = 2;

}  // namespace mpix::halo

#endif  // MPIX_DEVICE_HALO_STREAM_ARGS_H
