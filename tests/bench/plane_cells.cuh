// SPDX-License-Identifier: BSD-3-Clause
//
// A 5-point stencil on a plane whose cells stay in registers: a block has a strip of whole rows, each thread two or four
// columns of it. Only a strip's first and last row go through memory. What lies outside of the plane is 0.
#ifndef MPIX_TESTS_BENCH_PLANE_CELLS_CUH
#define MPIX_TESTS_BENCH_PLANE_CELLS_CUH

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

constexpr int lanes_of_warp = 32;

// Without fused multiply-adds, as the host computes it.
__device__ inline float relax(float here, float west, float east, float north, float south) {
    const float around = __fadd_rn(__fadd_rn(west, east), __fadd_rn(north, south));
    return __fadd_rn(here, __fmul_rn(0.2f, __fadd_rn(around, -__fmul_rn(4.0f, here))));
}
__device__ inline float2 relax(float2 here, float west, float east, float2 north, float2 south) {
    return {relax(here.x, west, here.y, north.x, south.x), relax(here.y, here.x, east, north.y, south.y)};
}
__device__ inline float4 relax(float4 here, float west, float east, float4 north, float4 south) {
    return {relax(here.x, west, here.y, north.x, south.x), relax(here.y, here.x, here.z, north.y, south.y),
            relax(here.z, here.y, here.w, north.z, south.z), relax(here.w, here.z, east, north.w, south.w)};
}

__device__ inline float last_of(float2 row) { return row.y; }
__device__ inline float last_of(float4 row) { return row.w; }

// The columns at the left and the right end of each warp, for the warps beside it.
template <int Rows>
struct warp_sides {
    static constexpr int most_warps = 16;
    float left[Rows][most_warps], right[Rows][most_warps];
};

// A thread's cells; Row is float2 or float4.
template <int Rows, class Row>
struct plane_cells {
    Row row[Rows];

    __device__ void put_sides(warp_sides<Rows> &sides) const {
        const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp,
                  lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
#pragma unroll
        for (int r = 0; r < Rows; ++r) {
            if (lane == 0) sides.left[r][warp] = row[r].x;
            if (lane == lanes_of_warp - 1) sides.right[r][warp] = last_of(row[r]);
        }
    }
    // `north`, `south`: of the rows beyond the strip. A barrier lies between put_sides() and this.
    __device__ void step(const warp_sides<Rows> &sides, Row north, Row south) {
        const int warp = static_cast<int>(threadIdx.x) / lanes_of_warp,
                  lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
        const int warps = static_cast<int>(blockDim.x) / lanes_of_warp;
#pragma unroll
        for (int r = 0; r < Rows; ++r) {
            const Row here = row[r];
            float west = __shfl_up_sync(~0u, last_of(here), 1), east = __shfl_down_sync(~0u, here.x, 1);
            if (lane == 0) west = warp > 0 ? sides.right[r][warp - 1] : 0;
            if (lane == lanes_of_warp - 1) east = warp + 1 < warps ? sides.left[r][warp + 1] : 0;
            row[r] = relax(here, west, east, north, r + 1 < Rows ? row[r + 1] : south);
            north = here;
        }
    }
    // From and to a field, at the thread's first cell.
    __device__ void load(const float *cells, std::int64_t width) {
#pragma unroll
        for (int r = 0; r < Rows; ++r) row[r] = *reinterpret_cast<const Row *>(cells + r * width);
    }
    __device__ void store(float *cells, std::int64_t width) const {
#pragma unroll
        for (int r = 0; r < Rows; ++r) *reinterpret_cast<Row *>(cells + r * width) = row[r];
    }
};

inline std::vector<float> initial_plane(int width, int height) {
    std::vector<float> cells(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    std::uint32_t state = 1;
    for (float &c : cells) {
        state = state * 1664525u + 1013904223u;
        c = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    }
    return cells;
}

// After so many iterations.
inline std::vector<float> plane_by_host(int width, int height, std::vector<float> now, int iterations) {
    std::vector<float> next = now;
    const auto at = [&](int x, int y) {
        return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
    };
    for (int t = 0; t < iterations; ++t) {
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x) {
                const float west = x > 0 ? now[at(x - 1, y)] : 0, east = x + 1 < width ? now[at(x + 1, y)] : 0,
                            north = y > 0 ? now[at(x, y - 1)] : 0, south = y + 1 < height ? now[at(x, y + 1)] : 0;
                const float here = now[at(x, y)], around = (west + east) + (north + south);
                next[at(x, y)] = here + 0.2f * (around - 4.0f * here);
            }
        std::swap(now, next);
    }
    return now;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PLANE_CELLS_CUH
