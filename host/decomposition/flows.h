// SPDX-License-Identifier: BSD-3-Clause
//
// Who sends how much to whom, from where to where, and how far that is.
#ifndef MPIX_HOST_DECOMPOSITION_FLOWS_H
#define MPIX_HOST_DECOMPOSITION_FLOWS_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mpix::halo {

// n x n numbers, row by row.
class matrix {
public:
    explicit matrix(int n = 0, double value = 0) : n_(n), values_(static_cast<std::size_t>(n) * n, value) {}
    int size() const { return n_; }
    double &operator()(int row, int column) { return values_[static_cast<std::size_t>(row) * n_ + column]; }
    double operator()(int row, int column) const { return values_[static_cast<std::size_t>(row) * n_ + column]; }
    const double *row(int i) const { return values_.data() + static_cast<std::size_t>(i) * n_; }

private:
    int n_;
    std::vector<double> values_;
};

// GPU of each box.
using placement = std::vector<int>;

// What each box sends to each other one, or to itself, in bytes. A box has few neighbours, so only these are kept.
class flows {
public:
    struct flow {
        int to;
        double bytes;  // above 0
    };

    explicit flows(int boxes = 0) : from_(static_cast<std::size_t>(boxes)) {}
    // Entries above 0 of a matrix: row i is what box i sends.
    flows(const matrix &bytes)
        : flows(bytes.size()) {  // NOLINT(google-explicit-constructor): the same, written in full
        for (int i = 0; i < size(); ++i)
            for (int j = 0; j < size(); ++j)
                if (bytes(i, j) > 0) from_[i].push_back({j, bytes(i, j)});
    }

    int size() const { return static_cast<int>(from_.size()); }
    // In the order of the receivers.
    const std::vector<flow> &from(int box) const { return from_[box]; }

    double operator()(int from, int to) const {
        const auto at = std::lower_bound(from_[from].begin(), from_[from].end(), to, before);
        return at != from_[from].end() && at->to == to ? at->bytes : 0;
    }
    void add(int from, int to, double bytes) {
        if (bytes <= 0) return;
        const auto at = std::lower_bound(from_[from].begin(), from_[from].end(), to, before);
        if (at != from_[from].end() && at->to == to)
            at->bytes += bytes;
        else
            from_[from].insert(at, {to, bytes});
    }

private:
    static bool before(const flow &f, int to) { return f.to < to; }

    std::vector<std::vector<flow>> from_;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_DECOMPOSITION_FLOWS_H
