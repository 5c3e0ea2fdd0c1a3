// SPDX-License-Identifier: BSD-3-Clause
//
// Cutting a domain into boxes, hierarchically: one box for each node, and each of those into one for each of its GPUs
// (or ranks). All is computed from the arguments alone, in integers, so that all processes come to the same boxes.
#ifndef MPIX_HOST_DECOMPOSITION_DECOMPOSE_H
#define MPIX_HOST_DECOMPOSITION_DECOMPOSE_H

#include <array>
#include <optional>
#include <vector>

#include <mpix/halo.hpp>

namespace mpix::halo {

using count3 = std::array<int, 3>;
constexpr int product(const count3 &counts) { return counts[0] * counts[1] * counts[2]; }

// The largest first; none for 1.
std::vector<int> prime_factors(int n);

// All ways to write n as a product of three counts.
std::vector<count3> all_splits(int n);

// A regular decomposition. Boxes are numbered node by node, x fastest among the nodes and within each of them.
struct decomposition {
    index3 extent{};                           // cells of the domain
    count3 nodes{1, 1, 1}, per_node{1, 1, 1};  // boxes along each axis

    int boxes_per_node() const { return product(per_node); }
    int boxes() const { return product(nodes) * product(per_node); }
    count3 along() const;  // boxes along each axis, of all nodes together
    // The place of a box among all, from 0 to along() - 1 on each axis; and back.
    count3 place(int number) const;
    int number(const count3 &place) const;
    // Sizes along an axis differ by at most one cell between node boxes, and between the boxes of one node.
    box at(int number) const;
};

// Boxes are cut by the sorted prime factors, the largest first, each across the axis along which the boxes are longest
// at that moment; if axes are equally long, across the slowest of them, whose faces lie together in memory. No box gets
// shorter than `shortest` along an axis. Where the prime factors lead nowhere, the feasible cut with the smallest surface
// is taken. Nothing if there is none. Extents, counts and `shortest` are at least 1.
std::optional<decomposition> decompose(const index3 &extent, int nodes, int per_node,
                                       const index3 &shortest = {1, 1, 1});

// Into how many boxes along each axis all boxes of `d` are cut further, n each, in the same way.
std::optional<count3> cut_further(const decomposition &d, int n, const index3 &shortest = {1, 1, 1});
// So many boxes along each axis, x fastest; their sizes differ by at most one cell.
std::vector<box> cut(const box &whole, const count3 &along);

// Whether no box gets shorter than that.
bool feasible(const decomposition &d, const index3 &shortest);

}  // namespace mpix::halo

#endif  // MPIX_HOST_DECOMPOSITION_DECOMPOSE_H
