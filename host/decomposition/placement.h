// SPDX-License-Identifier: BSD-3-Clause
//
// Which box goes to which GPU of a node, as a quadratic assignment problem: boxes that exchange many bytes go to GPUs
// with a fast link between them. Ties are broken by the numbers, so equal arguments give equal placements.
#ifndef MPIX_HOST_DECOMPOSITION_PLACEMENT_H
#define MPIX_HOST_DECOMPOSITION_PLACEMENT_H

#include <vector>

namespace mpix::halo {

// n x n numbers, row by row.
class matrix {
public:
    explicit matrix(int n = 0, double value = 0) : n_(n), values_(static_cast<std::size_t>(n) * n, value) {}
    int size() const { return n_; }
    double &operator()(int row, int column) { return values_[static_cast<std::size_t>(row) * n_ + column]; }
    double operator()(int row, int column) const { return values_[static_cast<std::size_t>(row) * n_ + column]; }

private:
    int n_;
    std::vector<double> values_;
};

// GPU of each box.
using placement = std::vector<int>;

// Box i on GPU i.
placement trivial_placement(int n);

// The sum over all pairs of boxes of what flows from one to the other (bytes), times the distance of their GPUs (seconds
// per byte).
double cost(const matrix &flow, const matrix &distance, const placement &gpu_of);

// One divided by the bandwidth of each pair. The diagonal is 0: what a box sends to itself costs the same on each GPU.
matrix distances(const matrix &bandwidth);

// The placement of least cost, of all; the first of them in lexicographic order. Time grows as n!, less what bounds cut
// off; meant for n up to `exact_up_to`.
placement place_exactly(const matrix &flow, const matrix &distance);
// CRAFT (Buffa, Armour, Vollmann): from `start` on, make the swap of two boxes that lowers the cost most, until none
// does. Time of each swap grows as n^2.
placement place_by_swaps(const matrix &flow, const matrix &distance, placement start);

constexpr int exact_up_to = 8;
// Exactly up to exact_up_to boxes, by swaps from the trivial placement for more.
placement place(const matrix &flow, const matrix &distance);

}  // namespace mpix::halo

#endif  // MPIX_HOST_DECOMPOSITION_PLACEMENT_H
