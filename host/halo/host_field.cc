// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/host_field.h"

#include <mpi.h>

namespace mpix::halo {

status host_field::make(const grid_state &g, const field &f, field_view &view) {
    const std::vector<box> points = g.local_points(f.layout.staggered);
    const int dimensions = g.domain.dimensions;
    // The host reads and writes cells only, so a field whose ghost cells stay in messages will do.
    const auto make_of = [&](const field &some) {
        return field_view::make(some, points, dimensions, view, false, ghost_room::any);
    };
    if (status s = field_view::measure(f, points, dimensions, view, ghost_room::any); !s.ok()) return s;
    // What is wrong with the allocations, field_view::make says.
    if (f.allocations.size() != points.size() && (!f.allocations.empty() || points.size() > 1)) return make_of(f);
    field reached = f;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const allocation memory = allocation_of(f, i);
        const auto bytes = static_cast<std::size_t>(view.bytes(i));
        if (points[i].empty() || memory.data == nullptr || (memory.allocated != 0 && memory.allocated < bytes))
            continue;
        const transport::placement place = transport::locate(memory.data);
        if (place.owner == nullptr) continue;
        part &p = parts_.emplace_back(part{place, memory.data, std::vector<std::byte>(bytes)});
        if (status s = place.owner->read(p.copy.data(), p.in_gpu, bytes, place.device); !s.ok())
            return s.in_context(allocation_name(f, i) + "data: ").of_class(MPI_ERR_BUFFER);
        if (f.allocations.empty())
            reached.data = p.copy.data(), reached.other = nullptr;
        else
            reached.allocations[i].data = p.copy.data(), reached.allocations[i].other = nullptr;
    }
    return make_of(reached);
}

status host_field::write_back() const {
    for (const part &p : parts_)
        if (status s = p.place.owner->write(p.in_gpu, p.copy.data(), p.copy.size(), p.place.device); !s.ok())
            return s.in_context("into the GPU's memory: ");
    return {};
}

}  // namespace mpix::halo
