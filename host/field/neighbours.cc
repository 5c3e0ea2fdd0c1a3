// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/neighbours.h"

#include <algorithm>
#include <bit>

#include "host/format.h"

namespace mpix::halo {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// `b`, and the cells within that distance of it.
box grown(const box &b, const index3 &below, const index3 &above) {
    box all = b;
    for (int a = 0; a < 3; ++a) {
        all.lo[a] -= below[a];
        all.hi[a] += above[a];
    }
    return all;
}

// Whether boxes within the domain have each of its cells once: whether the numbers of boxes that have a cell, which are 0
// outside, differ from cell to cell as those of the domain alone do. A box changes the difference along all three axes by 1
// or -1, at its eight corners, and nowhere else.
bool cover_once(const domain &d) {
    std::vector<index3> rises, falls;  // the domain's on the other side
    const auto add_corners = [](const box &b, std::vector<index3> &even, std::vector<index3> &odd) {
        for (unsigned corner = 0; corner < 8; ++corner) {
            index3 at = b.lo;
            for (unsigned a = 0; a < 3; ++a)
                if (corner >> a & 1) at[a] = b.hi[a];
            (std::popcount(corner) % 2 == 0 ? even : odd).push_back(at);
        }
    };
    for (const box &b : d.boxes)
        if (!b.empty()) add_corners(b, rises, falls);
    add_corners({{}, d.extent}, falls, rises);
    std::sort(rises.begin(), rises.end());
    std::sort(falls.begin(), falls.end());
    return rises == falls;
}

}  // namespace

std::string text_of(const box &b) {
    return format("[{}, {}, {}] to [{}, {}, {}]", b.lo[0], b.lo[1], b.lo[2], b.hi[0], b.hi[1], b.hi[2]);
}

std::string direction_name(int number) {
    std::string name;
    for (int a = 0; a < 3; ++a)
        if (const int step = direction(number)[a]; step != 0) name += {step < 0 ? '-' : '+', "xyz"[a]};
    return name;
}

box intersection(const box &a, const box &b) {
    box both;
    for (int axis = 0; axis < 3; ++axis) {
        both.lo[axis] = std::max(a.lo[axis], b.lo[axis]);
        both.hi[axis] = std::min(a.hi[axis], b.hi[axis]);
    }
    return both;
}

box ghosts_of(const box &local, int number, int depth) {
    const std::array<int, 3> step = direction(number);
    box ghosts = local;
    for (int a = 0; a < 3; ++a) {
        if (step[a] < 0) ghosts.hi[a] = local.lo[a], ghosts.lo[a] = local.lo[a] - depth;
        if (step[a] > 0) ghosts.lo[a] = local.hi[a], ghosts.hi[a] = local.hi[a] + depth;
    }
    return ghosts;
}

std::vector<piece> pieces_between(const domain &d, int receiver, int owner, const radius &r) {
    std::vector<piece> pieces;
    const box &local = d.boxes[receiver], &owned = d.boxes[owner];
    if (local.empty() || owned.empty()) return pieces;
    for (int number = 0; number < directions; ++number) {
        const int depth = number == no_direction ? 0 : r.cells[number];
        if (depth == 0) continue;
        const box ghosts = ghosts_of(local, number, depth);
        index3 first{}, last{};  // the periods that the ghost cells lie in
        for (int a = 0; a < 3; ++a) {
            if (!d.periodic[a]) continue;
            first[a] = floor_divide(ghosts.lo[a], d.extent[a]);
            last[a] = floor_divide(ghosts.hi[a] - 1, d.extent[a]);
        }
        for (auto z = first[2]; z <= last[2]; ++z)
            for (auto y = first[1]; y <= last[1]; ++y)
                for (auto x = first[0]; x <= last[0]; ++x) {
                    const index3 shift{x * d.extent[0], y * d.extent[1], z * d.extent[2]};
                    piece p{receiver, owner, number, owned, owned};
                    for (int a = 0; a < 3; ++a) p.ghosts.lo[a] += shift[a], p.ghosts.hi[a] += shift[a];
                    p.ghosts = intersection(p.ghosts, ghosts);
                    if (p.ghosts.empty()) continue;
                    for (int a = 0; a < 3; ++a) {
                        p.source.lo[a] = p.ghosts.lo[a] - shift[a];
                        p.source.hi[a] = p.ghosts.hi[a] - shift[a];
                    }
                    pieces.push_back(p);
                }
    }
    return pieces;
}

std::vector<piece> pieces_to(const domain &d, const box_index &index, const std::vector<int> &boxes, const radius &r) {
    const auto [below, above] = ghost_depth(r, d.dimensions);
    std::vector<piece> all;
    for (const int receiver : boxes)
        for (const int owner : index.near(grown(d.boxes[receiver], below, above))) {
            const std::vector<piece> some = pieces_between(d, receiver, owner, r);
            all.insert(all.end(), some.begin(), some.end());
        }
    return all;
}

std::vector<piece> pieces_from(const domain &d, const box_index &index, const std::vector<int> &boxes,
                               const radius &r) {
    const auto [below, above] = ghost_depth(r, d.dimensions);
    std::vector<piece> all;
    for (const int owner : boxes)
        for (const int receiver : index.near(grown(d.boxes[owner], above, below))) {
            const std::vector<piece> some = pieces_between(d, receiver, owner, r);
            all.insert(all.end(), some.begin(), some.end());
        }
    std::stable_sort(all.begin(), all.end(), [](const piece &a, const piece &b) { return a.receiver < b.receiver; });
    return all;
}

std::string why_not_a_cover(const domain &d) {
    const box all{{}, d.extent};
    std::int64_t cells = 0;
    for (std::size_t i = 0; i < d.boxes.size(); ++i) {
        const box &b = d.boxes[i];
        if (!b.empty() && intersection(b, all) != b)
            return format("boxes[{}], {}, is not within the domain", i, text_of(b));
    }
    if (cover_once(d)) return {};
    const box_index index(d);
    for (std::size_t i = 0; i < d.boxes.size(); ++i) {
        for (const int j : index.near(d.boxes[i]))
            if (const box both = intersection(d.boxes[i], d.boxes[j]); j < static_cast<int>(i) && !both.empty())
                return format("boxes[{}] and boxes[{}] overlap, in {}", j, i, text_of(both));
        cells += d.boxes[i].cells();
    }
    const bool flat = std::any_of(d.boxes.begin(), d.boxes.end(), [&](const box &b) {
        return (d.dimensions < 2 && b.hi[1] == 0) || (d.dimensions < 3 && b.hi[2] == 0);
    });
    return format("they hold {} of the domain's {} cells{}", cells, all.cells(),
                  flat ? " (along axes that the domain lacks, lo is 0 and hi is 1)" : "");
}

box shrunk(const box &local, const std::array<index3, 2> &depth) {
    box inner = local;
    for (int a = 0; a < 3; ++a) {
        inner.lo[a] += depth[0][a];
        inner.hi[a] -= depth[1][a];
    }
    return inner.empty() ? box{local.lo, local.lo} : inner;
}

std::vector<box> difference(const box &outer, const box &inner) {
    if (outer.empty()) return {};
    const box both = intersection(outer, inner);
    if (both.empty()) return {outer};
    std::vector<box> boxes;
    box rest = outer;
    for (int a = 2; a >= 0; --a) {  // planes first, which lie together in memory
        box below = rest, above = rest;
        below.hi[a] = rest.lo[a] = both.lo[a];
        above.lo[a] = rest.hi[a] = both.hi[a];
        for (const box &b : {below, above})
            if (!b.empty()) boxes.push_back(b);
    }
    return boxes;
}

}  // namespace mpix::halo
