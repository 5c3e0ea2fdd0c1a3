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

inline constexpr int exchange_blocks = 2;

// Of each block; on a GPU it is shared memory. A block with more tiles looks the others up in each iteration.
struct kept_tiles {
    static constexpr int most = 4;
    mpix::halo::prepared_tile tiles[most];
};

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

// Of tiles beyond those: apart, so that the code of the others lies together in the instruction cache.
template <class Block>
JACOBI3D_APART void wait_by_number(const Block &block, const mpix::halo::device_exchange &x, int tile,
                                   std::int64_t step) {
    mpix::halo::wait(block, x, tile, step);
}
template <class Block>
JACOBI3D_APART void send_by_number(const Block &block, const mpix::halo::device_exchange &x, int tile,
                                   std::int64_t step) {
    mpix::halo::send(block, x, tile, step);
}

/**
 * The part of block `block_index` of `blocks` + exchange_blocks, all of which must run at the same time. The last ones compute
 * nothing: they begin exchanges in turn, which takes longer than to compute a small tile. After a call has failed the others return at
 * once, so the kernel ends, and finish() on the host throws the reason.
 */
template <int Lanes, class Real, class Block>
JACOBI3D_FN void jacobi_on_halo(const Block &block, int block_index, int blocks, const halo_step<Real> &s,
                                kept_tiles &kept) {
    const mpix::halo::device_exchange &x = s.exchange;
    if (block_index >= blocks) {
        mpix::halo::run_next(block, x, blocks, block_index - blocks, exchange_blocks);
        return;
    }
    const int tiles = x.tiles();
    // The block's n-th tile is so many-th of all, if those that exchange come first.
    const auto tile_of = [&](int n) { return block_index + n * blocks; };
    for (int n = 0; n < kept_tiles::most && tile_of(n) < tiles; ++n) {
        mpix::halo::prepare(block, x, x.tile_boundary_first(tile_of(n)), kept.tiles[n]);
        mpix::halo::send(block, x, kept.tiles[n], 0);
    }
    for (int n = kept_tiles::most; tile_of(n) < tiles; ++n)
        send_by_number(block, x, x.tile_boundary_first(tile_of(n)), 0);
    Real *const fields[2] = {tiles == 0 ? nullptr : x.data<Real>(0, 0) + s.first,
                             tiles == 0 ? nullptr : x.data<Real>(0, 1) + s.first};
    for (std::int64_t step = 0; step < x.steps(); ++step) {
        mpix::halo::sync_blocks(block, x, blocks);
        const Real *const now = step % 2 == 0 ? fields[0] : fields[1];
        Real *const next = step % 2 == 0 ? fields[1] : fields[0];
        for (int n = 0; tile_of(n) < tiles; ++n) {
            const bool exchanges = tile_of(n) < x.boundary_tiles(), is_kept = n < kept_tiles::most;
            mpix::halo::prepared_tile &tile = kept.tiles[is_kept ? n : 0];
            const int number = is_kept ? tile.number() : x.tile_boundary_first(tile_of(n));
            const mpix::halo::box cells = is_kept ? tile.cells() : x.tile(number);
            if (exchanges) {
                if (is_kept)
                    mpix::halo::wait(block, x, tile, step);
                else
                    wait_by_number(block, x, number, step);
            }
            update_tile<Lanes>(block, s, cells, now, next);
            if (exchanges) {
                if (is_kept)
                    mpix::halo::send(block, x, tile, step + 1);
                else
                    send_by_number(block, x, number, step + 1);
            }
        }
    }
}

}  // namespace jacobi3d

#endif  // JACOBI3D_HALO_STEP_HPP
