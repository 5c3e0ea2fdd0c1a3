// SPDX-License-Identifier: BSD-3-Clause
//
// The error for a field whose memory was freed before its exchange.
#ifndef MPIX_HOST_HALO_REPORT_LIFETIME_ERROR_H
#define MPIX_HOST_HALO_REPORT_LIFETIME_ERROR_H

#include <string>

#include <mpix/halo.hpp>

#include "host/halo_report/message_report.h"

namespace mpix::halo {

// The ghost cells of a field that messages fill: "-y from rank 0, +y from rank 1".
class ghosts_under_way {
public:
    explicit ghosts_under_way(const radius &of_field) : radius_(of_field) {}
    void add(int peer, const direction_bytes &by_direction);
    const std::string &text() const { return text_; }

private:
    radius radius_;
    std::string text_;
};

enum class end_of_memory { array_destroyed, unmapped };

// `function`: the one that throws. `ghosts`: those that the field was to get, or null if no exchange was active.
error lifetime_error(const std::string &function, int rank, int field, end_of_memory how,
                     const ghosts_under_way *ghosts);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_REPORT_LIFETIME_ERROR_H
