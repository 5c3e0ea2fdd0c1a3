// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <climits>

#include <mpix/halo.hpp>

#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *where_valid = "mpix::halo::deep_halo::valid";

}  // namespace

deep_halo::deep_halo(const grid &g, const halo::radius &stencil, int every)
    : every_(every), dimensions_(g.dimensions()), depth_(ghost_depth(stencil, g.dimensions())) {
    constexpr const char *where = "mpix::halo::deep_halo";
    if (every < 1) throw error(MPI_ERR_ARG, format("{}: every is {}; it is at least 1", where, every));
    for (int number = 0; number < directions; ++number) {
        if (number == no_direction) continue;
        if (stencil.cells[number] < 0 || stencil.cells[number] > INT_MAX / every)
            throw error(MPI_ERR_ARG,
                        format("{}: stencil is {} in direction {}; it is at least 0, and every times that is "
                               "at most 2^31 - 1",
                               where, stencil.cells[number], direction_name(number)));
    }
    // Steps compute boxes, so ghost cells lie in boxes, too: where two sides are read, so is the edge between them.
    for (int number = 0; number < directions; ++number) {
        const std::array<int, 3> step = direction(number);
        std::int64_t least = INT_MAX, most = 0;
        for (int a = 0; a < 3; ++a)
            if (step[a] != 0) {
                least = std::min(least, depth_[step[a] > 0][a]);
                most = std::max(most, depth_[step[a] > 0][a]);
            }
        if (number != no_direction && least > 0) radius_.cells[number] = static_cast<int>(every * most);
    }
    for (std::size_t i = 0; i < g.boxes().size(); ++i) local_.push_back(g.local(static_cast<int>(i)));
    // Along periodic axes the domain has no end.
    for (int a = 0; a < 3; ++a) {
        limits_.lo[a] = g.periodic()[a] ? INT64_MIN : 0;
        limits_.hi[a] = g.periodic()[a] ? INT64_MAX : g.extent()[a];
    }
}

box deep_halo::valid(int steps, const std::array<bool, 3> &staggered) const {
    if (local_.size() != 1)
        throw error(MPI_ERR_ARG, format("{}: this rank has {} boxes; say which is meant", where_valid, local_.size()));
    return valid(steps, 0, staggered);
}

box deep_halo::valid(int steps, int i, const std::array<bool, 3> &staggered) const {
    constexpr const char *where = where_valid;
    if (i < 0 || i >= static_cast<int>(local_.size()))
        throw error(MPI_ERR_ARG, format("{}: i is {}; this rank has {} boxes", where, i, local_.size()));
    if (steps < 0 || steps > every_)
        throw error(MPI_ERR_ARG, format("{}: steps is {}; it is 0 to {}", where, steps, every_));
    if (const status bad = check_staggered(staggered, dimensions_, "staggered"); !bad.ok())
        throw error(class_of(bad), format("{}: {}", where, bad.message()));
    const box &local = local_[i];
    box all = local, limits = limits_;
    for (int a = 0; a < 3; ++a) {
        if (staggered[a] && limits.hi[a] != INT64_MAX) {
            all.hi[a] += all.hi[a] == limits.hi[a];
            ++limits.hi[a];
        }
        all.lo[a] -= (every_ - steps) * depth_[0][a];
        all.hi[a] += (every_ - steps) * depth_[1][a];
    }
    return local.empty() ? local : intersection(all, limits);
}

}  // namespace mpix::halo
