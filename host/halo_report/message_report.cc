// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_report/message_report.h"

#include <utility>

#include <mpix/mpix.h>

#include "host/halo/collective.h"

namespace mpix::halo {

message_report report_of(const grid_state &g, int peer, const direction_bytes &bytes, bool sent, std::string path) {
    message_report r;
    r.rank = peer;
    for (int number = 0; number < directions; ++number) {
        const std::int64_t its = bytes[static_cast<std::size_t>(number)];
        if (its == 0) continue;
        r.directions.push_back(number);
        r.direction_bytes.push_back(its);
        r.bytes += its;
    }
    r.path = std::move(path);
    const double bandwidth = sent ? g.bandwidth(g.rank, peer) : g.bandwidth(peer, g.rank);
    if (bandwidth > 0) r.predicted_seconds = static_cast<double>(r.bytes) / bandwidth;
    return r;
}

std::string path_of(MPI_Request request) {
    char path[64];
    demand(MPIX_Request_path(request, path, sizeof path), "MPIX_Request_path");
    return path;
}

}  // namespace mpix::halo
