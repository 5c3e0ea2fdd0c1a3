// SPDX-License-Identifier: BSD-3-Clause
#include "host/field/box_index.h"

#include <algorithm>

namespace mpix::halo {
namespace {

// Of a domain's axis, what lies within [lo, hi), beyond a periodic end too: at most two intervals of the domain's cells.
struct interval {
    std::int64_t lo, hi;
};

std::vector<interval> within_domain(const domain &d, int a, std::int64_t lo, std::int64_t hi) {
    const std::int64_t n = d.extent[a];
    if (!d.periodic[a]) return {{lo, hi}};
    if (hi - lo >= n) return {{0, n}};
    const std::int64_t first = (lo % n + n) % n, last = first + (hi - lo);
    if (last <= n) return {{first, last}};
    return {{first, n}, {0, last - n}};
}

}  // namespace

box_index::box_index(const domain &d) : domain_(d) {
    double most = 0;
    for (int a = 0; a < 3; ++a) {
        std::int64_t longest = 1;
        for (const box &b : d.boxes)
            if (!b.empty()) longest = std::max(longest, b.size()[a]);
        const double parts = static_cast<double>(d.extent[a]) / static_cast<double>(longest);
        if (parts > most) most = parts, axis_ = a, longest_ = longest;
    }
    for (int number = 0; number < static_cast<int>(d.boxes.size()); ++number)
        if (!d.boxes[number].empty()) order_.push_back(number);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int i, int j) { return d.boxes[i].lo[axis_] < d.boxes[j].lo[axis_]; });
}

std::vector<int> box_index::near(const box &b) const {
    std::vector<int> found;
    if (b.empty()) return found;
    std::vector<interval> along[3];
    for (int a = 0; a < 3; ++a) along[a] = within_domain(domain_, a, b.lo[a], b.hi[a]);
    const auto overlaps = [&](const box &other, int a) {
        return std::any_of(along[a].begin(), along[a].end(),
                           [&](const interval &i) { return other.lo[a] < i.hi && i.lo < other.hi[a]; });
    };
    for (const interval &i : along[axis_]) {
        auto at = std::partition_point(order_.begin(), order_.end(),
                                       [&](int n) { return domain_.boxes[n].lo[axis_] <= i.lo - longest_; });
        for (; at != order_.end() && domain_.boxes[*at].lo[axis_] < i.hi; ++at)
            if (const box &other = domain_.boxes[*at]; overlaps(other, 0) && overlaps(other, 1) && overlaps(other, 2))
                found.push_back(*at);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace mpix::halo
