// SPDX-License-Identifier: BSD-3-Clause
//
// One iteration of the cells of a brick, all of whose neighbours lie in one field: by threads that march along columns, or
// on the host along rows. For kernels that run all iterations, and for those on mpix::halo.
#ifndef JACOBI3D_UPDATE_CELLS_HPP
#define JACOBI3D_UPDATE_CELLS_HPP

#include "step.hpp"

#include <cstdint>
#include <type_traits>

namespace jacobi3d {

inline constexpr int most_in_batch = 8;  // cells of a column that a thread loads together, in float

namespace detail {

// From a cell to its neighbours, in elements. Of a column: `below` is from the first cell, `above` from the last.
struct neighbour_offsets {
    int west, east, south, north;
    std::int64_t below, above;
};
// Inside a field.
JACOBI3D_FN neighbour_offsets inner_offsets(int width, int plane) { return {-1, 1, -width, width, -plane, plane}; }

// `count` cells of a column, from *u on. Strides of 32 bits (check_layer) take fewer registers.
template <class Real>
JACOBI3D_FN void march(const Real *u, Real *v, const neighbour_offsets &to, int plane, int count, Real rate) {
    // The loads of so many cells are under way together. (The compiler moves no load before a store, which might be to
    // the same place.)
    constexpr int batch = sizeof(Real) == 4 ? most_in_batch : most_in_batch / 2;
    Real below = u[to.below], here = u[0];
    const auto step = [&](auto whole, int n) {
        const auto has = [n](int k) { return decltype(whole)::value || k < n; };
        Real west[batch] = {}, east[batch] = {}, south[batch] = {}, north[batch] = {}, above[batch] = {};
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int k = 0; k < batch; ++k) {
            if (!has(k)) continue;
            const Real *const w = u + k * plane;
            west[k] = w[to.west];
            east[k] = w[to.east];
            south[k] = w[to.south];
            north[k] = w[to.north];
            above[k] = w[n == count && k == n - 1 ? to.above : plane];
        }
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int k = 0; k < batch; ++k) {
            if (!has(k)) continue;
            v[k * plane] = relax(here, west[k], east[k], south[k], north[k], below, above[k], rate);
            below = here;
            here = above[k];
        }
        u += batch * plane;
        v += batch * plane;
        count -= n;
    };
    while (count >= batch) step(std::true_type{}, batch);
    if (count > 0) step(std::false_type{}, count);
}

// The cells `r` of a brick that begins at `x0`, `y0`. The block's threads form rows of `Lanes` along x, one row for each y, and
// each thread takes a column along z. If there are at least twice as many rows as the brick has cells along y, they are
// divided into parts, each of which takes a range of z. With Lanes = 1 (host) a thread takes whole rows of cells, which the
// compiler vectorises. Blocks write `now` while others compute, one iteration later: no __restrict__, no read-only cache.
// offsets_of(x, y, z0, z1) is of the cells (x, y, z0) to (x, y, z1 - 1). Only the first and the last cell of a row may have
// others than the rest of the row.
template <int Lanes, class Real, class Block, class OffsetsOf>
JACOBI3D_FN void update_cells(const Block &block, const Real *now, Real *next, std::int64_t width, std::int64_t plane,
                              Real rate, int x0, int y0, const cell_box &r, const OffsetsOf &offsets_of) {
    const int rank = static_cast<int>(block.thread_rank());
    const int rows = static_cast<int>(block.num_threads()) / Lanes;
    if constexpr (Lanes > 1) {
        int row = rank / Lanes, z0 = r.z0, z1 = r.z1;
        if (const int tall = r.y1 - y0; tall > 0 && 2 * tall <= rows) {
            const int parts = rows / tall, deep = (r.z1 - r.z0 + parts - 1) / parts;
            z0 = r.z0 + row / tall * deep;
            z1 = least(z0 + deep, r.z1);
            row %= tall;
        }
        // From the brick's first cell on, which is aligned.
        for (int y = y0 + row; y < r.y1; y += rows)
            for (int x = x0 + rank % Lanes; x < r.x1; x += Lanes) {
                if (x < r.x0 || y < r.y0 || z0 >= z1) continue;
                const std::int64_t first = z0 * plane + y * width + x;
                march(now + first, next + first, offsets_of(x, y, z0, z1), static_cast<int>(plane), z1 - z0, rate);
            }
    } else {
        for (int z = r.z0; z < r.z1; ++z)
            for (int y = r.y0 + rank; y < r.y1; y += rows) {
                const Real *const u = now + z * plane + y * width;
                Real *const v = next + z * plane + y * width;
                const auto update = [&](int begin, int end) {
                    const neighbour_offsets to = offsets_of(begin, y, z, z + 1);
                    for (int x = begin; x < end; ++x)
                        v[x] = relax(u[x], u[x + to.west], u[x + to.east], u[x + to.south], u[x + to.north],
                                     u[x + to.below], u[x + to.above], rate);
                };
                update(r.x0, least(r.x0 + 1, r.x1));
                update(r.x0 + 1, r.x1 - 1);
                if (r.x1 - 1 > r.x0) update(r.x1 - 1, r.x1);
            }
    }
}

}  // namespace detail
}  // namespace jacobi3d

#endif  // JACOBI3D_UPDATE_CELLS_HPP
