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

// Cells of a column, of float, that a thread loads together: as many as the kernel's registers hold.
inline constexpr int batch_of_64_registers = 4, batch_of_128_registers = 8, most_in_batch = 8;

namespace detail {

// `count` cells of a column, from *u on. on_store(k, cell, value) is called after the store of number k. Strides of 32 bits
// (check_layer): with 64 bits nvcc 13.0 has too few of the 64 registers on sm_90 for all loads of a batch, and what it makes
// waits for the first of them before the last is under way.
template <int Batch, class Real, class OnStore>
JACOBI3D_FN void march(const Real *u, Real *v, int width, int plane, int count, Real rate, const OnStore &on_store) {
    // The loads of so many cells are under way together. (The compiler moves no load before a store, which might be to
    // the same place.)
    constexpr int batch = sizeof(Real) == 4 ? Batch : Batch / 2;
    Real below = u[-plane], here = u[0];
    int done = 0;
    const auto step = [&](auto whole, int n) {
        const auto has = [n](int k) { return decltype(whole)::value || k < n; };
        Real left[batch] = {}, right[batch] = {}, front[batch] = {}, back[batch] = {}, above[batch] = {};
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int k = 0; k < batch; ++k) {
            if (!has(k)) continue;
            const Real *const w = u + k * plane;
            left[k] = w[-1];
            right[k] = w[1];
            front[k] = w[-width];
            back[k] = w[width];
            above[k] = w[plane];
        }
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int k = 0; k < batch; ++k) {
            if (!has(k)) continue;
            const Real value = relax(here, left[k], right[k], front[k], back[k], below, above[k], rate);
            v[k * plane] = value;
            on_store(done + k, v + k * plane, value);
            below = here;
            here = above[k];
        }
        u += batch * plane;
        v += batch * plane;
        done += batch;
    };
    while (done + batch <= count) step(std::true_type{}, batch);
    if (done < count) step(std::false_type{}, count - done);
}

// The cells `r` of a brick that begins at `x0`, `y0`. The block's threads form rows of `Lanes` along x, one row for each y, and
// each thread takes a column along z. If there are at least twice as many rows as the brick has cells along y, they are
// divided into parts, each of which takes a range of z. With Lanes = 1 (host) a thread takes whole rows of cells, which the
// compiler vectorises. Blocks write `now` while others compute, one iteration later: no __restrict__, no read-only cache.
// on_column(x, y) returns what is called after each store in that column, with (z, cell, value).
template <int Lanes, int Batch, class Real, class Block, class OnColumn>
JACOBI3D_FN void update_cells(const Block &block, const Real *now, Real *next, std::int64_t width, std::int64_t plane,
                              Real rate, int x0, int y0, const cell_box &r, const OnColumn &on_column) {
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
                const auto on_store = on_column(x, y);
                march<Batch>(now + first, next + first, static_cast<int>(width), static_cast<int>(plane), z1 - z0, rate,
                             [&](int k, Real *cell, Real value) { on_store(z0 + k, cell, value); });
            }
    } else {
        for (int z = r.z0; z < r.z1; ++z)
            for (int y = r.y0 + rank; y < r.y1; y += rows) {
                const Real *const u = now + z * plane + y * width;
                Real *const v = next + z * plane + y * width;
                for (int x = r.x0; x < r.x1; ++x) {
                    v[x] =
                        relax(u[x], u[x - 1], u[x + 1], u[x - width], u[x + width], u[x - plane], u[x + plane], rate);
                    on_column(x, y)(z, v + x, v[x]);
                }
            }
    }
}

}  // namespace detail
}  // namespace jacobi3d

#endif  // JACOBI3D_UPDATE_CELLS_HPP
