// SPDX-License-Identifier: BSD-3-Clause
//
// Between two GPUs that map each other: which partitions a kernel's group leaves to the progress engine. Its copy
// engine takes less time for them than the group's few threads that store.
#ifndef MPIX_HOST_PROTOCOL_COPY_ENGINE_THRESHOLD_H
#define MPIX_HOST_PROTOCOL_COPY_ENGINE_THRESHOLD_H

#include <cstdint>

#include "transport/transport.h"

namespace mpix {

struct copy_engine_costs {
    double thread_bytes_per_us =
        0;                 // one thread that stores; each thread of a group stores as much, until the link is full
    double word_us = 0;    // a copy of one word by the copy engine, on that pair of GPUs, from call to end
    double asleep_us = 0;  // the longest that the progress engine sleeps when a kernel needs it
};

// The bytes per thread of a group from which the copy engine takes less time; 0: never. Assumes that all partitions of
// the message become ready at the same time, each by such a group.
std::uint64_t copy_engine_bytes(const copy_engine_costs &costs, std::uint64_t partitions);

// What was decided for a send. If not `by_model`, MPIX_ENGINE_BYTES decided.
struct copy_engine_threshold {
    std::uint64_t bytes = 0;  // per thread; 0: never
    bool by_model = false;
    copy_engine_costs costs;
};

// `flags`: the receiver's arrival flags, or else its landing, in GPU memory, mapped here and still all zero. To measure
// the copy engine, a zero is stored to the first word, once for each pair of a GPU and a process. setup_mutex is held.
copy_engine_threshold choose_copy_engine_threshold(const transport::region &flags, int device, int peer_world,
                                                   std::uint64_t partitions, bool gaps);

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_COPY_ENGINE_THRESHOLD_H
