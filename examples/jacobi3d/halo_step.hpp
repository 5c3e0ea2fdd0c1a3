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

inline constexpr int exchange_blocks = 4;  // that run next() in turn

// Cells of a box, from its lowest one on.
template <class Real>
JACOBI3D_FN cell_box cells_of(const halo_step<Real> &s, const mpix::halo::box &tile) {
    const auto from = [&](int axis) { return static_cast<int>(tile.lo[axis] - s.origin[axis]); };
    const auto end = [&](int axis) { return static_cast<int>(tile.hi[axis] - s.origin[axis]); };
    return {from(0), end(0), from(1), end(1), from(2), end(2)};
}
// The cells of a tile, from one field to the other; both begin at the box's lowest cell.
template <int Lanes, class Real, class Block>
JACOBI3D_FN void update_tile(const Block &block, const halo_step<Real> &s, const cell_box &cells, const Real *now,
                             Real *next) {
#ifdef __CUDA_ARCH__
    // They come from memory, so the compiler would make generic loads and stores.
    __builtin_assume(__isGlobal(now));
    __builtin_assume(__isGlobal(next));
#endif
    const detail::neighbour_offsets to = detail::inner_offsets(static_cast<int>(s.width), static_cast<int>(s.plane));
    detail::update_cells<Lanes>(block, now, next, s.width, s.plane, s.rate, cells.x0, cells.y0, cells,
                                [&](int, int, int, int) { return to; });
}

// Of each block; on a GPU it is shared memory. A block with more tiles looks the others up in each iteration.
template <class Real>
struct kept_tiles {
    static constexpr int most = 4;
    mpix::halo::prepared_tile tiles[most];
    cell_box cells[most];
    int count, exchanged;  // so many are kept; so many of them exchange
    Real *fields[2];       // each at the box's lowest cell; iteration i reads field i % 2
};

// The number of the block's n-th tile. Tiles that exchange come first.
template <class Real>
JACOBI3D_FN int tile_of(const halo_step<Real> &s, int block_index, int blocks, int n) {
    return s.exchange.tile_boundary_first(block_index + n * blocks);
}
JACOBI3D_FN int tiles_of(int all, int block_index, int blocks) { return (all - block_index + blocks - 1) / blocks; }

// Before the first iteration. The parts of the kernel that are not the same in each iteration are apart, and what it needs all
// the time is in shared memory, so that the cells of an iteration get the registers.
template <class Real, class Block>
JACOBI3D_APART void begin_tiles(const Block &block, int block_index, int blocks, const halo_step<Real> &s,
                                kept_tiles<Real> &kept) {
    const mpix::halo::device_exchange &x = s.exchange;
    const int tiles = tiles_of(x.tiles(), block_index, blocks);
    if (block.thread_rank() == 0) {
        kept.count = detail::least(tiles, kept.most);
        kept.exchanged = detail::least(tiles_of(x.boundary_tiles(), block_index, blocks), kept.most);
        for (int field = 0; field < 2; ++field) kept.fields[field] = x.data<Real>(0, field) + s.first;
    }
    for (int n = 0; n < tiles; ++n) {
        const int tile = tile_of(s, block_index, blocks, n);
        if (n >= kept.most) {
            mpix::halo::send(block, x, tile, 0);
            continue;
        }
        if (block.thread_rank() == 0) kept.cells[n] = cells_of(s, x.tile(tile));
        mpix::halo::prepare(block, x, tile, kept.tiles[n]);
        mpix::halo::send(block, x, kept.tiles[n], 0);
    }
}

// Of the tiles that are not kept.
template <int Lanes, class Real, class Block>
JACOBI3D_APART void iterate_by_number(const Block &block, int block_index, int blocks, const halo_step<Real> &s,
                                      kept_tiles<Real> &kept, std::int64_t step) {
    const mpix::halo::device_exchange &x = s.exchange;
    for (int n = kept.most; n < tiles_of(x.tiles(), block_index, blocks); ++n) {
        const int tile = tile_of(s, block_index, blocks, n);
        const bool exchanges = block_index + n * blocks < x.boundary_tiles();
        if (exchanges) mpix::halo::wait(block, x, tile, step);
        update_tile<Lanes>(block, s, cells_of(s, x.tile(tile)), kept.fields[step % 2], kept.fields[(step + 1) % 2]);
        if (exchanges) mpix::halo::send(block, x, tile, step + 1);
    }
}
template <class Real, class Block>
JACOBI3D_APART void run_next(const Block &block, const halo_step<Real> &s, int blocks, int first) {
    mpix::halo::run_next(block, s.exchange, blocks, first, exchange_blocks);
}

/**
 * The part of block `block_index` of `blocks` + exchange_blocks, all of which must run at the same time. The last ones
 * compute nothing: they begin exchanges in turn, which takes longer than to compute a small tile. After a call has failed
 * the others return at once, so the kernel ends, and finish() on the host throws the reason.
 */
template <int Lanes, class Real, class Block>
JACOBI3D_FN void jacobi_on_halo(const Block &block, int block_index, int blocks, const halo_step<Real> &s,
                                kept_tiles<Real> &kept) {
    if (block_index >= blocks) return run_next(block, s, blocks, block_index - blocks);
    const mpix::halo::device_exchange &x = s.exchange;
    if (x.tiles() == 0) return;
    begin_tiles(block, block_index, blocks, s, kept);
    const bool all_kept = tiles_of(x.tiles(), block_index, blocks) <= kept.most;
    for (std::int64_t step = 0; step < x.steps(); ++step) {
        mpix::halo::sync_blocks(block, x, blocks, kept.tiles, kept.exchanged, step);
        for (int n = 0; n < kept.count; ++n) {
            update_tile<Lanes>(block, s, kept.cells[n], kept.fields[step % 2], kept.fields[(step + 1) % 2]);
            if (n < kept.exchanged) mpix::halo::send(block, x, kept.tiles[n], step + 1);
        }
        if (!all_kept) iterate_by_number<Lanes>(block, block_index, blocks, s, kept, step);
    }
}

}  // namespace jacobi3d

#endif  // JACOBI3D_HALO_STEP_HPP
