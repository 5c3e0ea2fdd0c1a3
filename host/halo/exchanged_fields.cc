// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/exchanged_fields.h"

#include <string>

#include "host/format.h"

namespace mpix::halo {

status check_memory(const grid_state &g, const std::vector<field_view> &views, const std::vector<field> &fields) {
    struct memory {
        std::size_t field, box;
        const char *member;
        std::string name(const std::vector<mpix::halo::field> &of) const {
            return format("fields[{}].{}{}", field, allocation_name(of[field], box), member);
        }
    };
    std::vector<memory> all;
    std::vector<runs> cells;  // of these
    for (std::size_t f = 0; f < fields.size(); ++f)
        for (std::size_t i = 0; i < g.mine.size(); ++i) {
            if (g.local(static_cast<int>(i)).empty()) continue;
            all.push_back({f, i, "data"});
            cells.push_back(views[f].allocated(i));
            if (cells.back().other == nullptr) continue;
            all.push_back({f, i, "other"});
            cells.push_back(cells.back());
            cells.back().first = cells.back().other;
        }
    const auto found = overlapping_pair(cells);
    if (!found) return {};
    return failure(MPI_ERR_ARG,
                   format("{} overlaps {}", all[found->second].name(fields), all[found->first].name(fields)));
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
