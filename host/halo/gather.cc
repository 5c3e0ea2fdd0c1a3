// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/gather.h"

#include <algorithm>
#include <vector>

#include "host/field/layout.h"
#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo/host_field.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *gather_call = "mpix::halo::gather";

// Ordinary messages, of this many bytes at most: a count is an int.
constexpr std::int64_t most_at_once = std::int64_t{1} << 30;
constexpr int gather_tag = 0;

// Calls each(address, count) for each message that these bytes are sent in.
template <class Each>
void in_messages(std::vector<std::byte> &bytes, Each each) {
    const auto all = static_cast<std::int64_t>(bytes.size());
    for (std::int64_t at = 0; at < all; at += most_at_once)
        each(bytes.data() + at, static_cast<int>(std::min(most_at_once, all - at)));
}

// `d`: of the field's points.
status make_views(const grid_state &g, const domain &d, const field &from, void *global, int root,
                  const check_of_array &check, host_field &memory, field_view &mine, field_view &whole) {
    if (root < 0 || root >= g.ranks)
        return failure(MPI_ERR_ROOT, format("root is {}; there are {} ranks", root, g.ranks));
    if (status s = memory.make(g, from, mine); !s.ok())
        return s.in_context(class_of(s) == MPI_ERR_COUNT ? "from: " : "from.");
    if (g.rank != root) return {};
    if (global == nullptr) return failure(MPI_ERR_BUFFER, "global is null");
    if (check)
        if (status s = check(d, mine); !s.ok()) return s;
    field all(global, from.value_bytes, radius{},
              {.components = from.layout.components, .interleaved = from.layout.interleaved});
    const box everywhere{{}, d.extent};
    status s = field_view::make(all, {&everywhere, 1}, d.dimensions, whole);
    return s.in_context("global, as a field without gaps: ");
}

}  // namespace

void gather_checked(const grid &g, const field &from, void *global, int root, const status &given,
                    const check_of_array &check) {
    const grid_state &state = *grid_internals::state_of(g, gather_call);
    const domain d = points_of(state.domain, from.layout.staggered);
    field_view mine, whole;
    host_field memory;
    const status bad = given.ok() ? make_views(state, d, from, global, root, check, memory, mine, whole) : given;
    check_collectively(state.comm, gather_call, bad,
                       {as_argument(collective_call::gather),
                        {"root", {root}},
                        {.name = "from: values", .values = {mine.value_bytes()}, .verb = "have", .counted = " bytes"},
                        {"from.layout.components", {mine.components()}},
                        {"from.layout.interleaved", {mine.interleaved()}},
                        {"from.layout.staggered", {mine.staggered().begin(), mine.staggered().end()}}});
    std::vector<std::byte> packed;
    for (std::size_t number = 0; number < d.boxes.size(); ++number) {
        const box &cells = d.boxes[number];
        const int owner = d.owners[number];
        if (cells.empty() || (state.rank != root && state.rank != owner)) continue;
        packed.resize(static_cast<std::size_t>(cells.cells() * mine.components() * mine.value_bytes()));
        if (state.rank == owner) pack(mine.of(state.position_of(static_cast<int>(number)), cells), packed.data());
        if (owner != root)
            in_messages(packed, [&](std::byte *bytes, int count) {
                if (state.rank == owner)
                    demand(MPI_Send(bytes, count, MPI_BYTE, root, gather_tag, state.comm), "MPI_Send");
                else
                    demand(MPI_Recv(bytes, count, MPI_BYTE, owner, gather_tag, state.comm, MPI_STATUS_IGNORE),
                           "MPI_Recv");
            });
        if (state.rank == root) unpack(packed.data(), whole.of(0, cells));
    }
}

void gather(const grid &g, const field &from, void *global, int root) { gather_checked(g, from, global, root, {}); }

}  // namespace mpix::halo
