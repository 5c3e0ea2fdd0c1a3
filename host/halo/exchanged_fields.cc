// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/exchanged_fields.h"

#include <string>

#include "host/format.h"

namespace mpix::halo {

status check_memory(const grid_state &g, const std::vector<field_view> &views, const std::vector<field> &fields) {
    struct memory {
        std::size_t field, box;
        const char *member;
        runs cells;
        std::string name(const std::vector<mpix::halo::field> &of) const {
            return format("fields[{}].{}{}", field, allocation_name(of[field], box), member);
        }
    };
    std::vector<memory> seen;
    for (std::size_t f = 0; f < fields.size(); ++f)
        for (std::size_t i = 0; i < g.mine.size(); ++i) {
            if (g.local(static_cast<int>(i)).empty()) continue;
            memory one{f, i, "data", views[f].allocated(i)};
            std::vector<memory> mine{one};
            one.member = "other";
            one.cells.first = one.cells.other;
            if (one.cells.first != nullptr) mine.push_back(one);
            for (const memory &m : mine) {
                for (const memory &earlier : seen)
                    if (overlap(earlier.cells, m.cells))
                        return failure(MPI_ERR_ARG, format("{} overlaps {}", m.name(fields), earlier.name(fields)));
                seen.push_back(m);
            }
        }
    return {};
}

void append_field(std::vector<argument> &to, std::size_t f, const field_view &view) {
    to.push_back(
        {.name = format("fields[{}]: values", f), .values = {view.value_bytes()}, .verb = "have", .counted = " bytes"});
    to.push_back({format("fields[{}].layout.components", f), {view.components()}});
    to.push_back({format("fields[{}].layout.interleaved", f), {view.interleaved()}});
    to.push_back({format("fields[{}].layout.staggered", f), {view.staggered().begin(), view.staggered().end()}});
    append_radius(to, format("fields[{}].radius", f), view.radius());
}

}  // namespace mpix::halo
