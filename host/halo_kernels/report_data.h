// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange by kernels keeps for its report.
#ifndef MPIX_HOST_HALO_KERNELS_REPORT_DATA_H
#define MPIX_HOST_HALO_KERNELS_REPORT_DATA_H

#include <cstdint>
#include <vector>

#include "host/halo_report/message_report.h"
#include "host/halo_report/stopwatch.h"

namespace mpix::halo {

struct report_data {
    struct message {
        int peer;
        direction_bytes by_direction;
        bool direct = false;  // of a send: straight into ghost cells
    };
    std::vector<message> receives, sends;  // of one exchange
    std::int64_t own_bytes = 0;            // copied in one exchange from boxes of this rank to boxes of this rank

    bool first_is_over = false;
    bool timed = false;
    std::int64_t exchanges = 0;  // finished, since measure()
    // If it is timed: when the activation began; and of all exchanges together, the seconds in start() and finish() of
    // a stream exchange, and between those of a kernel exchange.
    exchange_clock::time_point begun;
    double sending_seconds = 0, waiting_seconds = 0, active_seconds = 0;

    void measure(bool on) {
        timed = on;
        exchanges = 0;
        sending_seconds = waiting_seconds = active_seconds = 0;
    }
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_REPORT_DATA_H
