// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_host_stream/host_stream_exchange.h"

#include <algorithm>
#include <utility>

#include "host/config.h"
#include "host/field/layout.h"
#include "host/halo_exchange/exchange_internals.h"

namespace mpix::halo {
namespace {

bool has_two_allocations(const field &f) {
    return f.other != nullptr || std::any_of(f.allocations.begin(), f.allocations.end(),
                                             [](const allocation &a) { return a.other != nullptr; });
}

// Where the first cells are that this rank has. The fields have been checked.
std::optional<transport::placement> find_fields(const grid_state &g, const std::vector<field> &fields) {
    for (const field &f : fields)
        for (std::size_t i = 0; i < g.mine.size(); ++i)
            if (!g.local(static_cast<int>(i)).empty()) return transport::locate(allocation_of(f, i).data);
    return std::nullopt;
}

}  // namespace

std::optional<transfer> stream_transfer() {
    switch (config().stream_exchanges) {
        case halo_stream::packed:
            return transfer::packed;
        case halo_stream::plain:
            return transfer::plain;
        case halo_stream::kernels:
            break;
    }
    return std::nullopt;
}

host_stream_exchange::host_stream_exchange(std::shared_ptr<const grid_state> grid, const std::vector<field> &fields,
                                           transfer how, const status &given)
    : on_host(exchange_internals::exchange_of(
          make_exchange_state(grid, fields, {.transfer = how}, given, transfer_choice::as_given))),
      where(find_fields(*grid, fields)) {
    for (std::size_t f = 0; f < fields.size(); ++f)
        if (has_two_allocations(fields[f])) double_buffered.push_back(static_cast<int>(f));
}

gpu::launch_result host_stream_exchange::wait_for(CUstream_st *stream) const {
    if (!where) return {};
    if (where->owner != nullptr) return gpu::finish_stream(where->device, stream);
    if (stream != nullptr) return {"stream is not null, and the fields are in host memory", true};
    return {};
}

void host_stream_exchange::swap() {
    for (const int f : double_buffered) on_host.swap(f);
}

}  // namespace mpix::halo
