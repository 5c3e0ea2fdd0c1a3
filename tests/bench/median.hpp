// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_TESTS_BENCH_MEDIAN_HPP
#define MPIX_TESTS_BENCH_MEDIAN_HPP

#include <algorithm>
#include <vector>

namespace bench {

// The upper one of two.
inline double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_MEDIAN_HPP
