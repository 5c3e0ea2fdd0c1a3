// SPDX-License-Identifier: BSD-3-Clause
#include "decomposition.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

namespace jacobi3d {

namespace {

// Prime factors, the largest first.
std::vector<int> prime_factors(int n) {
    std::vector<int> factors;
    for (int p = 2; p <= n / p; ++p)
        for (; n % p == 0; n /= p) factors.push_back(p);
    if (n > 1) factors.push_back(n);
    std::sort(factors.begin(), factors.end(), std::greater<>());
    return factors;
}

// Chooses the axis that each factor cuts. The longest axis is tried first; the others are there for grids
// with short axes, where the longest one may not divide as often as the factors want, and an early choice
// can spoil a later one.
class axis_search {
public:
    axis_search(const extent3 &grid, const std::vector<int> &factors) : grid_(grid), factors_(factors) {}

    bool run() { return place(0, {1, 1, 1}); }
    const std::vector<int> &axes() const { return axes_; }

private:
    bool place(std::size_t i, const extent3 &parts) {
        if (i == factors_.size()) return true;
        if (dead_ends_.count({i, parts})) return false;

        // Ties go to z, then y: those faces are contiguous, or nearly, in memory.
        std::array<int, 3> order = {2, 1, 0};
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return std::int64_t{grid_[a]} * parts[b] > std::int64_t{grid_[b]} * parts[a];
        });
        for (const int axis : order) {
            if (std::int64_t{parts[axis]} * factors_[i] > grid_[axis]) continue;
            extent3 next = parts;
            next[axis] *= factors_[i];
            axes_.push_back(axis);
            if (place(i + 1, next)) return true;
            axes_.pop_back();
        }
        dead_ends_.insert({i, parts});
        return false;
    }

    const extent3 &grid_;
    const std::vector<int> &factors_;
    std::vector<int> axes_;
    std::set<std::pair<std::size_t, extent3>> dead_ends_;
};

}  // namespace

std::string to_string(const extent3 &e) {
    return std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]);
}

decomposition::decomposition(const extent3 &grid, const std::vector<int> &levels)
    : grid_(grid), parts_{1, 1, 1}, level_parts_(levels.size(), extent3{1, 1, 1}) {
    for (const int n : grid)
        if (n < 1 || n > max_axis)
            throw std::invalid_argument("an axis of the grid has 1 to " + std::to_string(max_axis) + " cells, not " +
                                        std::to_string(n));
    std::int64_t count = 1;
    std::vector<int> factors, level_of;
    for (std::size_t level = 0; level < levels.size(); ++level) {
        if (levels[level] < 1) throw std::invalid_argument("a level has at least one box");
        count *= levels[level];
        for (const int factor : prime_factors(levels[level])) {
            factors.push_back(factor);
            level_of.push_back(static_cast<int>(level));
        }
    }

    axis_search search(grid_, factors);
    if (!search.run())
        throw std::invalid_argument("a grid of " + to_string(grid) + " cells cannot be cut into " +
                                    std::to_string(count) +
                                    " boxes of at least one cell; take another number of ranks, one whose "
                                    "prime factors fit the axes, or a larger grid");
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const int axis = search.axes()[i];
        level_parts_[level_of[i]][axis] *= factors[i];
        parts_[axis] *= factors[i];
    }
}

extent3 decomposition::position(int index) const {
    // From the innermost level outwards: each contributes a digit to each axis.
    extent3 result = {0, 0, 0}, weight = {1, 1, 1};
    for (auto level = level_parts_.rbegin(); level != level_parts_.rend(); ++level)
        for (int axis = 0; axis < 3; ++axis) {
            result[axis] += index % (*level)[axis] * weight[axis];
            index /= (*level)[axis];
            weight[axis] *= (*level)[axis];
        }
    return result;
}

int decomposition::index_at(const extent3 &position) const {
    extent3 rest = position;
    int result = 0, weight = 1;
    for (auto level = level_parts_.rbegin(); level != level_parts_.rend(); ++level)
        for (int axis = 0; axis < 3; ++axis) {
            result += rest[axis] % (*level)[axis] * weight;
            rest[axis] /= (*level)[axis];
            weight *= (*level)[axis];
        }
    return result;
}

box3 decomposition::box(int index) const {
    const extent3 p = position(index);
    box3 result;
    for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t cells = grid_[axis];
        result.begin[axis] = static_cast<int>(cells * p[axis] / parts_[axis]);
        result.end[axis] = static_cast<int>(cells * (p[axis] + 1) / parts_[axis]);
    }
    return result;
}

int decomposition::neighbour(int index, int face, const std::array<bool, 3> &periodic) const {
    extent3 p = position(index);
    const int axis = face_axis(face), parts = parts_[axis];
    p[axis] += face_is_upper(face) ? 1 : -1;
    if (p[axis] < 0 || p[axis] >= parts) {
        if (!periodic[axis]) return -1;
        p[axis] = (p[axis] + parts) % parts;
    }
    return index_at(p);
}

}  // namespace jacobi3d
