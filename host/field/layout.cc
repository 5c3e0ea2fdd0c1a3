// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/layout.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/request/user_memory.h"

namespace mpix::halo {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 60;  // of a partitioned message

// a * b, or most_bytes + 1 if it is more than most_bytes.
std::int64_t bounded(std::int64_t a, std::int64_t b) { return b != 0 && a > most_bytes / b ? most_bytes + 1 : a * b; }

// Calls `each` with the address of each run, in order.
template <class Each>
void for_each_run(const runs &r, Each each) {
    for (std::int64_t k = 0; k < r.count[2]; ++k)
        for (std::int64_t j = 0; j < r.count[1]; ++j) {
            std::byte *at = r.first + k * r.stride[2] + j * r.stride[1];
            for (std::int64_t i = 0; i < r.count[0]; ++i, at += r.stride[0]) each(at);
        }
}

// Calls `how` with the length of a run, as a constant where it is a usual one: a memcpy of that is no call.
template <class How>
void with_length(std::int64_t bytes, How how) {
    const auto usual = [&]<std::int64_t... Length>(std::integer_sequence<std::int64_t, Length...>) {
        return ((bytes == Length && (how(std::integral_constant<std::size_t, Length>{}), true)) || ...);
    };
    if (!usual(std::integer_sequence<std::int64_t, 4, 8, 12, 16, 24, 32>{})) how(static_cast<std::size_t>(bytes));
}

status too_long() { return failure(MPI_ERR_COUNT, "more than 2^60 bytes, ghost cells included"); }

}  // namespace

std::int64_t pack(const runs &from, std::byte *to) {
    with_length(from.bytes, [&](auto length) {
        for_each_run(from, [&](const std::byte *at) {
            std::memcpy(to, at, length);
            to += length;
        });
    });
    return from.total();
}

std::int64_t unpack(const std::byte *from, const runs &to) {
    with_length(to.bytes, [&](auto length) {
        for_each_run(to, [&](std::byte *at) {
            std::memcpy(at, from, length);
            from += length;
        });
    });
    return to.total();
}

std::int64_t combine(const std::byte *from, const runs &to, combine_function how) {
    for_each_run(to, [&](std::byte *at) {
        how(from, at, to.bytes);
        from += to.bytes;
    });
    return to.total();
}

bool overlap(const runs &a, const runs &b) {
    // The bytes that the loops of a shorter distance than the period span; -1, if a longer one is no multiple of it.
    const auto within = [](const runs &r, std::int64_t period) {
        std::int64_t bytes = r.bytes;
        for (int loop = 0; loop < 3; ++loop) {
            if (r.count[loop] == 1) continue;
            if (r.stride[loop] < period)
                bytes += (r.count[loop] - 1) * r.stride[loop];
            else if (r.stride[loop] % period != 0)
                return std::int64_t{-1};
        }
        return bytes;
    };
    const auto first = reinterpret_cast<std::intptr_t>(a.first), second = reinterpret_cast<std::intptr_t>(b.first);
    if (first + within(a, INT64_MAX) <= second || second + within(b, INT64_MAX) <= first) return false;
    // The rows, planes or components of one may lie in the gaps of the other.
    for (const runs *const r : {&a, &b})
        for (int loop = 0; loop < 3; ++loop) {
            if (r->count[loop] == 1) continue;
            const std::int64_t period = r->stride[loop], of_a = within(a, period), of_b = within(b, period);
            const std::int64_t apart = ((second - first) % period + period) % period;
            if (of_a >= 0 && of_b >= 0 && apart >= of_a && apart + of_b <= period) return false;
        }
    return true;
}

std::optional<std::pair<std::size_t, std::size_t>> overlapping_pair(std::span<const runs> all) {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return std::less<>()(all[a].first, all[b].first); });
    const auto end = [](const runs &r) {
        auto last = reinterpret_cast<std::intptr_t>(r.first) + r.bytes;
        for (int loop = 0; loop < 3; ++loop) last += (r.count[loop] - 1) * r.stride[loop];
        return last;
    };
    std::vector<std::size_t> open;  // those that have not ended where the next one begins
    for (const std::size_t i : order) {
        std::erase_if(open,
                      [&](std::size_t j) { return end(all[j]) <= reinterpret_cast<std::intptr_t>(all[i].first); });
        for (const std::size_t j : open)
            if (overlap(all[i], all[j])) return std::minmax(i, j);
        open.push_back(i);
    }
    return {};
}

void copy(const runs &from, const runs &to, std::byte *room) {
    pack(from, room);
    unpack(room, to);
}

allocation allocation_of(const field &f, std::size_t i) {
    return f.allocations.empty() ? allocation{f.data, f.other, f.allocated, f.made_for} : f.allocations[i];
}

std::string allocation_name(const field &f, std::size_t i) {
    return f.allocations.empty() ? "" : format("allocations[{}].", i);
}

status field_view::measure(const field &f, std::span<const box> local, int dimensions, field_view &made,
                           ghost_room room) {
    const field_layout &l = f.layout;
    if (f.value_bytes < 1 || f.value_bytes > static_cast<std::size_t>(most_bytes))
        return failure(MPI_ERR_ARG, format("value_bytes is {}; it is at least 1", f.value_bytes));
    if (f.type != value_type::bytes && size_of(f.type) != f.value_bytes)
        return failure(MPI_ERR_TYPE, format("type is {}, and value_bytes is {}; one of them is wrong", name_of(f.type),
                                            f.value_bytes));
    if (l.components < 1)
        return failure(MPI_ERR_ARG, format("layout.components is {}; it is at least 1", l.components));
    if (status s = check_staggered(l.staggered, dimensions, "layout.staggered"); !s.ok()) return s;

    for (int number = 0; number < directions; ++number) {
        bool exists = number != no_direction;
        for (int a = dimensions; a < 3; ++a) exists = exists && direction(number)[a] == 0;
        const int depth = f.radius.cells[number];
        made.radius_.cells[number] = exists ? depth : 0;
        if (depth < 0 && number != no_direction)
            return failure(MPI_ERR_ARG,
                           format("radius is {} in direction {}; it is at least 0", depth, direction_name(number)));
    }
    std::array<index3, 2> depth = ghost_depth(made.radius_, dimensions);
    // Also if the field has no room for its ghost cells: they are in messages then.
    for (const box &b : local) {
        std::int64_t bytes = bounded(static_cast<std::int64_t>(f.value_bytes), l.components);
        for (std::size_t a = 0; a < 3 && !b.empty(); ++a)
            bytes = bounded(bytes, b.size()[a] + depth[0][a] + depth[1][a]);
        if (bytes > most_bytes) return too_long();
    }
    const auto settled = [room](const index3 &given, index3 &needed, const char *name) -> status {
        for (int a = 0; a < 3; ++a) {
            if (given[a] == -1) continue;
            if (given[a] > most_bytes)
                return failure(MPI_ERR_ARG, format("layout.{}[{}] is {}; it is at most 2^60", name, a, given[a]));
            if (room == ghost_room::any && given[a] < 0)
                return failure(MPI_ERR_ARG,
                               format("layout.{}[{}] is {}; it is at least 0, or -1 for what the radius needs", name, a,
                                      given[a]));
            if (room == ghost_room::demanded && given[a] < needed[a])
                return failure(MPI_ERR_ARG, format("layout.{}[{}] is {}; the radius needs {} cells there", name, a,
                                                   given[a], needed[a]));
            needed[a] = given[a];
        }
        return {};
    };
    if (status s = settled(l.below, depth[0], "below"); !s.ok()) return s;
    if (status s = settled(l.above, depth[1], "above"); !s.ok()) return s;
    if (l.interleaved && l.component_bytes != 0)
        return failure(MPI_ERR_ARG, "layout.component_bytes is for components that are not interleaved; leave it 0");
    made.value_ = static_cast<std::int64_t>(f.value_bytes);
    made.type_ = f.type;
    made.components_ = l.components;
    made.interleaved_ = l.interleaved;
    made.staggered_ = l.staggered;
    made.boxes_.resize(local.size());
    for (std::size_t i = 0; i < local.size(); ++i)
        if (status s = measure_box(f, local[i], depth, made.boxes_[i]); !s.ok()) return s;
    return {};
}

status field_view::measure_box(const field &f, const box &local, const std::array<index3, 2> &depth, box_memory &made) {
    const field_layout &l = f.layout;
    for (int a = 0; a < 3; ++a) {
        made.allocated.lo[a] = local.lo[a] - depth[0][a];
        made.allocated.hi[a] = local.hi[a] + depth[1][a];
    }
    // Each distance is at least what lies between.
    const auto distance = [](std::size_t given, std::int64_t least, const char *name, std::int64_t &is) -> status {
        if (given > static_cast<std::size_t>(most_bytes))
            return failure(MPI_ERR_ARG, format("layout.{} is {}; it is at most 2^60", name, given));
        if (least > most_bytes) return too_long();
        is = given == 0 ? least : static_cast<std::int64_t>(given);
        if (is >= least) return {};
        return failure(MPI_ERR_ARG, format("layout.{} is {}; its cells take {} bytes", name, given, least));
    };
    const index3 cells = made.allocated.size();
    const std::int64_t cell = bounded(static_cast<std::int64_t>(f.value_bytes), l.interleaved ? l.components : 1);
    if (status s = distance(l.row_bytes, bounded(cell, cells[0]), "row_bytes", made.row); !s.ok()) return s;
    if (status s = distance(l.plane_bytes, bounded(made.row, cells[1]), "plane_bytes", made.plane); !s.ok()) return s;
    if (status s = distance(l.component_bytes, bounded(made.plane, cells[2]), "component_bytes", made.component);
        !s.ok())
        return s;
    if (bounded(made.component, l.interleaved ? 1 : l.components) > most_bytes) return too_long();
    if (!local.empty())
        made.bytes = (l.interleaved ? 0 : l.components - 1) * made.component + (cells[2] - 1) * made.plane +
                     (cells[1] - 1) * made.row + cells[0] * cell;
    return {};
}

status field_view::make(const field &f, std::span<const box> local, int dimensions, field_view &made, bool for_kernels,
                        ghost_room room) {
    if (status s = measure(f, local, dimensions, made, room); !s.ok()) return s;
    if (f.allocations.size() != local.size() && (!f.allocations.empty() || local.size() > 1))
        return failure(MPI_ERR_ARG, format("allocations has {} entries; this rank has {} boxes", f.allocations.size(),
                                           local.size()));
    const auto no_access = [](const std::string &name) {
        return failure(MPI_ERR_BUFFER, format("{}: the CPU cannot write there", name));
    };
    bool some = false, all = true;  // have a second allocation
    for (std::size_t i = 0; i < local.size(); ++i) {
        if (local[i].empty()) continue;
        const allocation memory = allocation_of(f, i);
        const std::string name = allocation_name(f, i);
        box_memory &its = made.boxes_[i];
        its.data = static_cast<std::byte *>(memory.data);
        if (its.data == nullptr) return failure(MPI_ERR_BUFFER, format("{}data is null", name));
        if (!for_kernels && !can_write(its.data)) return no_access(name + "data");
        if (memory.allocated != 0 && memory.allocated < static_cast<std::size_t>(its.bytes))
            return failure(MPI_ERR_BUFFER, format("{}allocated is {} bytes; the box and its ghost cells take {}", name,
                                                  memory.allocated, its.bytes));
        if (!memory.made_for.empty() && memory.made_for != local[i])
            return failure(MPI_ERR_BUFFER, format("{}made_for is {}; the box is {}", name, text_of(memory.made_for),
                                                  text_of(local[i])));
        its.other = static_cast<std::byte *>(memory.other);
        some = some || its.other != nullptr;
        all = all && its.other != nullptr;
        if (!for_kernels && its.other != nullptr && !can_write(its.other)) return no_access(name + "other");
    }
    if (some && !all) return failure(MPI_ERR_ARG, "allocations: some have `other`, and others have none");
    return {};
}

bool field_view::has_second_allocation() const {
    return std::any_of(boxes_.begin(), boxes_.end(), [](const box_memory &b) { return b.other != nullptr; });
}

runs field_view::rows_of(std::size_t i, const box &part) const {
    const box_memory &b = boxes_[i];
    const std::int64_t cell = interleaved_ ? value_ * components_ : value_;
    const index3 size = part.size(), &origin = b.allocated.lo;
    runs r;
    const std::int64_t at =
        (part.lo[0] - origin[0]) * cell + (part.lo[1] - origin[1]) * b.row + (part.lo[2] - origin[2]) * b.plane;
    r.first = b.data + at;
    if (b.other != nullptr) r.other = b.other + at;
    r.bytes = size[0] * cell;
    r.count = {size[1], size[2], interleaved_ ? 1 : components_};
    r.stride = {b.row, b.plane, b.component};
    return r;
}

runs field_view::of(std::size_t i, const box &part) const {
    runs r = rows_of(i, part);
    // What lies together becomes one run.
    for (int loops = 3; loops > 0 && (r.count[0] == 1 || r.stride[0] == r.bytes); --loops) {
        r.bytes *= r.count[0];
        r.count = {r.count[1], r.count[2], 1};
        r.stride = {r.stride[1], r.stride[2], 0};
    }
    return r;
}

}  // namespace mpix::halo
