// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/decompose.h"

#include <algorithm>
#include <functional>

namespace mpix::halo {
namespace {

// Where part `part` of `parts` begins, of `length` cells. The first parts get what remains.
std::int64_t begin_of(std::int64_t length, int parts, std::int64_t part) {
    return length / parts * part + std::min<std::int64_t>(part, length % parts);
}

// Whether the boxes are longer along a than along b.
bool longer(const index3 &extent, const count3 &cut, int a, int b) {
    // The remainders times a count fit, the extents might not.
    const std::int64_t whole_a = extent[a] / cut[a], whole_b = extent[b] / cut[b];
    if (whole_a != whole_b) return whole_a > whole_b;
    return extent[a] % cut[a] * cut[b] > extent[b] % cut[b] * cut[a];
}

bool fits(const index3 &extent, const count3 &cut, const index3 &shortest) {
    for (int a = 0; a < 3; ++a)
        if (extent[a] / cut[a] < shortest[a]) return false;
    return true;
}

// Cut each of the boxes that `cut` makes into n more. False if a prime factor fits no axis.
bool cut_by_primes(const index3 &extent, int n, const index3 &shortest, count3 &cut, count3 &added) {
    for (const int prime : prime_factors(n)) {
        int best = -1;
        for (int a = 2; a >= 0; --a) {
            count3 next = cut;
            next[a] *= prime;
            if (fits(extent, next, shortest) && (best < 0 || longer(extent, cut, a, best))) best = a;
        }
        if (best < 0) return false;
        cut[best] *= prime;
        added[best] *= prime;
    }
    return fits(extent, cut, shortest);
}

// Of one average box of a level.
double surface(const index3 &extent, const count3 &cut) {
    const double x = double(extent[0]) / cut[0], y = double(extent[1]) / cut[1], z = double(extent[2]) / cut[2];
    return x * y + y * z + z * x;
}

}  // namespace

std::vector<int> prime_factors(int n) {
    std::vector<int> factors;
    for (int p = 2; p <= n / p; ++p)
        for (; n % p == 0; n /= p) factors.push_back(p);
    if (n > 1) factors.push_back(n);
    std::sort(factors.begin(), factors.end(), std::greater<>());
    return factors;
}

std::vector<count3> all_splits(int n) {
    std::vector<count3> splits;
    for (int x = 1; x <= n; ++x)
        for (int y = 1; n % x == 0 && y <= n / x; ++y)
            if (n / x % y == 0) splits.push_back({x, y, n / x / y});
    return splits;
}

count3 decomposition::along() const { return {nodes[0] * per_node[0], nodes[1] * per_node[1], nodes[2] * per_node[2]}; }

count3 decomposition::place(int number) const {
    int node = number / boxes_per_node(), within = number % boxes_per_node();
    count3 place;
    for (int a = 0; a < 3; ++a) {
        place[a] = node % nodes[a] * per_node[a] + within % per_node[a];
        node /= nodes[a];
        within /= per_node[a];
    }
    return place;
}

int decomposition::number(const count3 &place) const {
    int node = 0, within = 0;
    for (int a = 2; a >= 0; --a) {
        node = node * nodes[a] + place[a] / per_node[a];
        within = within * per_node[a] + place[a] % per_node[a];
    }
    return node * boxes_per_node() + within;
}

box decomposition::at(int number) const {
    const count3 where = place(number);
    box b;
    for (int a = 0; a < 3; ++a) {
        const int node = where[a] / per_node[a], within = where[a] % per_node[a];
        const std::int64_t lo = begin_of(extent[a], nodes[a], node), hi = begin_of(extent[a], nodes[a], node + 1);
        b.lo[a] = lo + begin_of(hi - lo, per_node[a], within);
        b.hi[a] = lo + begin_of(hi - lo, per_node[a], within + 1);
    }
    return b;
}

std::optional<count3> cut_further(const decomposition &d, int n, const index3 &shortest) {
    count3 cut = d.along(), added{1, 1, 1};
    if (cut_by_primes(d.extent, n, shortest, cut, added)) return added;

    std::optional<count3> best;
    double least = 0;
    for (const count3 &more : all_splits(n)) {
        const count3 along = d.along(), next{along[0] * more[0], along[1] * more[1], along[2] * more[2]};
        if (!fits(d.extent, next, shortest) || (best && surface(d.extent, next) >= least)) continue;
        best = more;
        least = surface(d.extent, next);
    }
    return best;
}

std::vector<box> cut(const box &whole, const count3 &along) {
    std::vector<box> boxes;
    for (int number = 0; number < product(along); ++number) {
        int rest = number;
        boxes.push_back(whole);
        for (int a = 0; a < 3; ++a) {
            const std::int64_t length = whole.hi[a] - whole.lo[a];
            boxes.back().lo[a] = whole.lo[a] + begin_of(length, along[a], rest % along[a]);
            boxes.back().hi[a] = whole.lo[a] + begin_of(length, along[a], rest % along[a] + 1);
            rest /= along[a];
        }
    }
    return boxes;
}

bool feasible(const decomposition &d, const index3 &shortest) { return fits(d.extent, d.along(), shortest); }

std::optional<decomposition> decompose(const index3 &extent, int nodes, int per_node, const index3 &shortest) {
    decomposition d{.extent = extent};
    count3 cut{1, 1, 1};
    if (cut_by_primes(extent, nodes, shortest, cut, d.nodes) &&
        cut_by_primes(extent, per_node, shortest, cut, d.per_node))
        return d;

    std::optional<decomposition> best;
    std::array<double, 2> least{};  // surface of a node's box, then of a GPU's
    for (const count3 &n : all_splits(nodes))
        for (const count3 &g : all_splits(per_node)) {
            const decomposition next{.extent = extent, .nodes = n, .per_node = g};
            if (!feasible(next, shortest)) continue;
            const std::array<double, 2> surfaces{surface(extent, n), surface(extent, next.along())};
            if (best && surfaces >= least) continue;
            best = next;
            least = surfaces;
        }
    return best;
}

}  // namespace mpix::halo
