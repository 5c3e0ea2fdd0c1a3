// SPDX-License-Identifier: BSD-3-Clause
//
// All iterations of one box in one launch, as in persistent.hpp, but on mpix's halo exchange: the body of the kernel, for
// CUDA blocks and for host threads alike.
//
// The exchange's tiles are the bricks. In each iteration the blocks compute the tiles that send or read ghost cells first, so
// that what they send travels while the others are computed.
#ifndef JACOBI3D_HALO_STEP_HPP
#define JACOBI3D_HALO_STEP_HPP

#include "update_cells.hpp"

#include <mpix/halo.cuh>

#include <cstdint>

namespace jacobi3d {

// All that the kernel is told; passed by value.
template <class Real>
struct halo_step {
    mpix::halo::device_exchange exchange;
    mpix::halo::index3 origin;  // the box's lowest cell within the grid
    std::int64_t first;         // from a field's first value to that cell
    std::int64_t width, plane;  // from a cell to the next one along y, and along z
    Real rate;
};

inline constexpr int exchange_blocks = 1;

// The cells of a tile, from one field to the other; both begin at the box's lowest cell.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void update_tile(const Block &block, const halo_step<Real> &s, const mpix::halo::box &tile, const Real *now,
                             Real *next) {
    const auto from = [&](int axis) { return static_cast<int>(tile.lo[axis] - s.origin[axis]); };
    const auto end = [&](int axis) { return static_cast<int>(tile.hi[axis] - s.origin[axis]); };
    const detail::neighbour_offsets to = detail::inner_offsets(static_cast<int>(s.width), static_cast<int>(s.plane));
    detail::update_cells<Lanes>(block, now, next, s.width, s.plane, s.rate, from(0), from(1),
                                {from(0), end(0), from(1), end(1), from(2), end(2)},
                                [&](int, int, int, int) { return to; });
}

/**
 * The part of block `block_index` of `blocks` + exchange_blocks, all of which must run at the same time. The last one computes
 * nothing: it begins exchanges, which takes longer than to compute a small tile. After a call has failed the others return at
 * once, so the kernel ends, and finish() on the host throws the reason.
 */
template <int Lanes, class Real, class Block>
JACOBI3D_FN void jacobi_on_halo(const Block &block, int block_index, int blocks, const halo_step<Real> &s) {
    const mpix::halo::device_exchange &x = s.exchange;
    const int tiles = block_index < blocks ? x.tiles() : 0;
    for (int t = block_index; t < tiles; t += blocks) mpix::halo::send(block, x, t, 0);
    for (std::int64_t step = 0; step < x.steps(); ++step) {
        mpix::halo::sync_blocks(block, x, blocks + exchange_blocks);
        if (block_index == blocks && step > 0) mpix::halo::next(block, x, step - 1);
        const Real *const now = x.data<Real>(0, step) + s.first;
        Real *const next = x.data<Real>(0, step + 1) + s.first;
        for (int i = block_index; i < tiles; i += blocks) {
            const int t = x.tile_boundary_first(i);
            const bool exchanges = i < x.boundary_tiles();
            if (exchanges) mpix::halo::wait(block, x, t, step);
            update_tile<Lanes>(block, s, x.tile(t), now, next);
            if (exchanges) mpix::halo::send(block, x, t, step + 1);
        }
    }
}

}  // namespace jacobi3d

#endif  // JACOBI3D_HALO_STEP_HPP
