// SPDX-License-Identifier: BSD-3-Clause
//
// The 7-point stencil of examples/jacobi3d: a cell, the cells to begin with, and the whole grid as the host computes it.
#ifndef MPIX_TESTS_BENCH_JACOBI_CELLS_HPP
#define MPIX_TESTS_BENCH_JACOBI_CELLS_HPP

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

constexpr float rate = 0.125f;

// Without fused multiply-adds, as the host computes it.
__device__ inline float relax(float here, float a, float b, float c, float d, float e, float f) {
    const float around = __fadd_rn(__fadd_rn(__fadd_rn(a, b), __fadd_rn(c, d)), __fadd_rn(e, f));
    return __fadd_rn(here, __fmul_rn(rate, __fadd_rn(around, -__fmul_rn(6.0f, here))));
}

inline std::vector<float> initial_cells(int n, int planes) {
    std::vector<float> cells(static_cast<std::size_t>(n) * static_cast<std::size_t>(n) *
                             static_cast<std::size_t>(planes));
    uint32_t state = 1;
    for (float &c : cells) {
        state = state * 1664525u + 1013904223u;
        c = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    }
    return cells;
}

// After so many iterations.
inline std::vector<float> computed_by_host(int n, int planes, bool periodic, std::vector<float> now, int iterations) {
    std::vector<float> next = now;
    const auto at = [&](int x, int y, int z) {
        return (static_cast<std::size_t>((z + planes) % planes) * static_cast<std::size_t>(n) +
                static_cast<std::size_t>((y + n) % n)) *
                   static_cast<std::size_t>(n) +
               static_cast<std::size_t>((x + n) % n);
    };
    const int first = periodic ? 0 : 1;
    for (int t = 0; t < iterations; ++t) {
        for (int z = first; z < planes - first; ++z)
            for (int y = first; y < n - first; ++y)
                for (int x = first; x < n - first; ++x) {
                    const float around = ((now[at(x - 1, y, z)] + now[at(x + 1, y, z)]) +
                                          (now[at(x, y - 1, z)] + now[at(x, y + 1, z)])) +
                                         (now[at(x, y, z - 1)] + now[at(x, y, z + 1)]);
                    const float here = now[at(x, y, z)];
                    next[at(x, y, z)] = here + rate * (around - 6.0f * here);
                }
        std::swap(now, next);
    }
    return now;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_JACOBI_CELLS_HPP
