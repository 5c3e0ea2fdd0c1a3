// SPDX-License-Identifier: BSD-3-Clause
//
// A receive buffer in GPU memory, which the sender maps.
#include <cstring>

#include "host/datatype/plan_wire.h"
#include "host/request/upcalls.h"
#include "host/transfer/receive.h"

namespace mpix {

// The user's own buffer, in GPU memory.
transport::outcome receive_request::adopt_span(transport::region &out) const {
    if (gapless) return place.owner->adopt(op.buffer, total_bytes(), out);
    const memory_span span = span_of(*op.type, static_cast<std::int64_t>(op.count) * op.partitions);
    return place.owner->adopt(op.buffer + span.low, static_cast<std::uint64_t>(span.high - span.low), out);
}

// A sender on this node maps the GPU memory; if that is impossible, the init call fails. Over a network the data comes
// through host memory, so any kind of GPU memory will do.
problem receive_request::try_to_share() const {
    if (null_peer() || place.owner == nullptr || total_bytes() == 0) return {};
    {
        const std::lock_guard lock(setup_mutex());
        transport::outcome bad;
        if (network_to(peer_world(), bad) != nullptr || !bad.empty()) return {};
    }
    transport::region buffer;
    transport::wire_region described;
    transport::outcome bad = adopt_span(buffer);
    if (bad.empty()) bad = place.owner->describe(buffer, described);
    return bad.empty() ? problem{} : problem{MPI_ERR_BUFFER, "buf: " + bad};
}

// If the datatype has gaps, the sender also gets its plan.
transport::outcome receive_request::adopt_buffer() {
    if (gapless) return adopt_span(landing_);
    const std::vector<char> layout = to_bytes(*op.type);
    if (auto bad = transport::node_memory().allocate(layout.size(), transport::on_host, layout_); !bad.empty())
        return bad;
    std::memcpy(layout_.address, layout.data(), layout.size());
    return adopt_span(landing_);
}

}  // namespace mpix
