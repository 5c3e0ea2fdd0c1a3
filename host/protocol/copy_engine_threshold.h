// SPDX-License-Identifier: BSD-3-Clause
//
// Between two GPUs that map each other: which partitions a group of a kernel leaves to the progress engine, whose copy engine takes
// less time for them than so few threads that store.
#ifndef MPIX_HOST_PROTOCOL_COPY_ENGINE_THRESHOLD_H
#define MPIX_HOST_PROTOCOL_COPY_ENGINE_THRESHOLD_H

#include <cstdint>

#include "transport/transport.h"

namespace mpix {

struct copy_engine_costs {
    double thread_bytes_per_us =
        0;                 // one thread that stores; each thread of a group stores as much, until the link is full
    double word_us = 0;    // the copy engine with nothing but a word, on that pair of GPUs, from the call to its end
    double asleep_us = 0;  // as long as the progress engine may be asleep when a kernel calls it
};

// So many bytes for each thread of a group from which on the engine takes less, if all partitions of the message become ready at
// the same time, each by a group like that; 0: never.
std::uint64_t copy_engine_bytes(const copy_engine_costs &costs, std::uint64_t partitions);

// As it is decided for a send; not `by_model`: by MPIX_ENGINE_BYTES.
struct copy_engine_threshold {
    std::uint64_t bytes = 0;  // for each thread; 0: none
    bool by_model = false;
    copy_engine_costs costs;
};

// `flags`: the receiver's arrival flags, mapped here and all zero yet; to one of them a zero is stored, to see how long that takes:
// once for each pair of a GPU and a process. setup_mutex is held.
copy_engine_threshold choose_copy_engine_threshold(const transport::region &flags, int device, int peer_world,
                                                   std::uint64_t partitions, bool gaps);

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_COPY_ENGINE_THRESHOLD_H
