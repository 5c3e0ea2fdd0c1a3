// SPDX-License-Identifier: BSD-3-Clause
//
// A message's postings and their entries, built in memory of the executor; the same for whoever executes the queue.
#ifndef MPIX_TRANSPORT_WQE_PREBUILT_MESSAGE_H
#define MPIX_TRANSPORT_WQE_PREBUILT_MESSAGE_H

#include <mpix/detail/work_queue.h>

#include <cstdint>

#include "transport/send_queue.h"
#include "transport/wqe/executor_memory.h"

namespace mpix::transport {

struct message_keys {
    std::uint32_t payload, landing, flags, words;
};

struct queue_identity {
    std::uint32_t qpn, log_sq;
    mpix_work_queue *words;  // as the executor reaches them
};

// `out`: the postings, one for each slot, then what they point to.
status prebuild(const queue_message &message, const message_keys &keys, const queue_identity &queue,
                executor_memory &memory, region &out);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_WQE_PREBUILT_MESSAGE_H
