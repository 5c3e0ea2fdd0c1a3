// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges by the kernels of a program. In each step the blocks of a persistent kernel wait for the ghost cells of a tile, or
// of a box, compare every byte around it, write the next step's cells, and send them. The calls are made by whole blocks,
// or by one warp or thread of each.
#ifndef MPIX_TESTS_HALO_KERNELS_IN_KERNELS_HPP
#define MPIX_TESTS_HALO_KERNELS_IN_KERNELS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"
#include "tests/halo/kernels/fields.hpp"
#include "tests/halo/kernels/random_case.hpp"

namespace halo_test {

struct steps_by_tiles {
    mpix::halo::device_exchange x;
    views fields;
    bool by_tiles;
    int areas;
    area each_area[most_areas];
    mpix::halo::prepared_tile *prepared;  // of the blocks' tiles, most_of_block() for each; null: calls look tiles up
    bool barrier_waits;                   // for prepared tiles
    int next_groups;                      // that only run_next; 0: the blocks call next() in turn
    device_test::scope caller;            // who makes the calls: the whole block, its first warp, or its first thread
    std::uint64_t first_step;             // in the hash
    std::uint64_t *wrong;                 // bytes, and failed calls

    MPIX_FN int most_of_block(int blocks) const { return (x.tiles() + blocks - 1) / blocks; }
    DEVICE_FN void tell(bool good) const {
        if (!good) device_test::add_one(wrong);
    }

    // Runs f(group) by the block, or by its first warp or thread, as `caller` says. In the latter cases the whole block
    // synchronizes before and after.
    template <class Block, class F>
    DEVICE_FN void by_caller(const Block &block, const F &f) const {
        if (caller == device_test::scope::block) return f(block);
        block.sync();
        device_test::as_group(block, caller, [&](const auto &group, int index, int) {
            if (index == 0) f(group);
        });
        block.sync();
    }

    template <class Block>
    DEVICE_FN void write(const Block &block, int tile, std::int64_t step) const {
        const int box = x.box_position(tile);
        for (int f = 0; f < fields.count; ++f) {
            const view &v = fields.of[f][box];
            auto *const memory = x.data<unsigned char>(f, step, box);
            for_cells(block, v.points(x.tile(tile)), [&](const index3 &cell) {
                for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                    memory[v.at(cell, b)] = value_at(v.seed, cell, b, first_step + static_cast<std::uint64_t>(step));
            });
        }
    }

    // These cells, and of those that a stencil of the field's radius reads around them, what the exchange fills.
    template <class Block>
    DEVICE_FN void check(const Block &block, const box &cells, int box_number, std::int64_t step) const {
        for (int f = 0; f < fields.count; ++f) {
            const view &v = fields.of[f][box_number];
            const auto *const memory = x.data<const unsigned char>(f, step, box_number);
            for (int number = 0; number < mpix::halo::directions && !cells.empty(); ++number) {
                box part = v.points(cells);
                const int depth = number == mpix::halo::no_direction ? 0 : v.reach[number];
                if (number != mpix::halo::no_direction && depth == 0) continue;
                const int steps[3] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
                for (std::size_t a = 0; a < 3; ++a) {
                    if (steps[a] < 0) part.hi[a] = part.lo[a], part.lo[a] -= depth;
                    if (steps[a] > 0) part.lo[a] = part.hi[a], part.hi[a] += depth;
                }
                for_cells(block, part, [&](const index3 &cell) {
                    index3 source = cell;
                    if (!is_exchanged(v, cell) || !v.whole.inside(source)) return;
                    for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                        tell(memory[v.at(cell, b)] ==
                             value_at(v.seed, source, b, first_step + static_cast<std::uint64_t>(step)));
                });
            }
        }
    }

    MPIX_FN bool in_place() const {
        for (int f = 0; f < fields.count; ++f)
            if (!fields.two_allocations[f]) return true;
        return false;
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int all_blocks) const {
        const int blocks = all_blocks - next_groups;
        if (index >= blocks) {
            by_caller(block, [&](const auto &group) {
                tell(mpix::halo::run_next(group, x, blocks, index - blocks, next_groups) == MPI_SUCCESS);
            });
            return;
        }
        // Blocks take tiles in turn, in another order in each step, but prepare each only once.
        const auto tile_of = [&](int i, std::int64_t step) {
            return prepared ? i : static_cast<int>((i + step * 5) % x.tiles());
        };
        mpix::halo::prepared_tile *const mine = prepared ? prepared + index * most_of_block(blocks) : nullptr;
        const int count = index < x.tiles() ? (x.tiles() - index - 1) / blocks + 1 : 0;
        const auto send = [&](int t, std::int64_t step) {
            by_caller(block, [&](const auto &group) {
                const int code =
                    prepared ? mpix::halo::send(group, x, mine[t / blocks], step) : mpix::halo::send(group, x, t, step);
                tell(code == MPI_SUCCESS);
            });
        };
        // Each tile is once in the order that begins with the boundary.
        if (index == 0 && block.thread_rank() == 0) {
            std::int64_t sum = 0;
            for (int i = 0; i < x.tiles(); ++i) sum += x.tile_boundary_first(i);
            tell(sum == std::int64_t{x.tiles()} * (x.tiles() - 1) / 2 && x.boundary_tiles() <= x.tiles());
            tell(x.tiles() != 0 || x.data<unsigned char>(0, 0) == nullptr);
        }
        for (int i = index; i < x.tiles(); i += blocks) {
            const int t = tile_of(i, 0);
            if (prepared)
                by_caller(block, [&](const auto &group) {
                    mpix::halo::prepare(group, x, t, mine[t / blocks]);
                    tell(mine[t / blocks].number() == t && mine[t / blocks].cells() == x.tile(t));
                });
            write(block, t, 0);
            send(t, 0);
        }
        for (std::int64_t step = 0; step < x.steps(); ++step) {
            by_caller(block, [&](const auto &group) {
                if (barrier_waits)
                    tell(mpix::halo::sync_blocks(group, x, blocks, mine, count, step) == MPI_SUCCESS);
                else
                    mpix::halo::sync_blocks(group, x, blocks);
                if (next_groups == 0 && index == static_cast<int>(step) % blocks && step > 0)
                    tell(mpix::halo::next(group, x, step - 1) == MPI_SUCCESS);
            });
            for (int i = index; i < areas; i += blocks) {
                const area &one = each_area[(i + step * 7) % areas];
                by_caller(block,
                          [&](const auto &group) { tell(mpix::halo::wait(group, x, one.cells, step) == MPI_SUCCESS); });
                check(block, one.cells, one.in, step);
            }
            for (int i = index; by_tiles && i < x.tiles(); i += blocks) {
                const int t = tile_of(i, step);
                if (!barrier_waits)
                    by_caller(block,
                              [&](const auto &group) { tell(mpix::halo::wait(group, x, t, step) == MPI_SUCCESS); });
                check(block, x.tile(t), x.box_position(t), step);
            }
            if (in_place()) by_caller(block, [&](const auto &group) { mpix::halo::sync_blocks(group, x, blocks); });
            for (int i = index; i < x.tiles(); i += blocks) {
                const int t = tile_of(i, step + 3);
                if (step + 1 == x.steps()) continue;
                write(block, t, step + 1);
                send(t, step + 1);
            }
        }
    }
};

// Returns what the host has found wrong; kernels count in c.wrong().
inline std::uint64_t exchange_in_kernels(random_case &c) {
    steps_by_tiles kernel{};
    kernel.fields = c.in_kernels();
    kernel.by_tiles = c.by_tiles();
    kernel.areas = static_cast<int>(c.areas().size());
    std::copy(c.areas().begin(), c.areas().end(), kernel.each_area);
    kernel.wrong = c.wrong();
    mpix::halo::kernel_exchange h(c.grid(), c.fields(), c.options());
    std::uint64_t done = 0, wrong = 0;
    const int activations = c.pick(1, 3), blocks = c.pick(1, 4),
              threads = executor::is_gpu ? 32 * c.pick(1, 4) : c.pick(1, 2);
    const bool prepares = c.pick(0, 2) != 0;
    const int next_groups = c.pick(0, 2);
    kernel.next_groups = kernel.in_place() ? 0 : next_groups;
    kernel.barrier_waits = prepares && c.by_tiles() && !kernel.in_place() && c.pick(0, 2) != 0;
    constexpr device_test::scope callers[] = {device_test::scope::block, device_test::scope::thread,
                                              device_test::scope::warp};
    kernel.caller = callers[c.pick(0, executor::is_gpu ? 2 : 1)];
    for (int i = 0; i < activations; ++i) {
        const int steps = c.pick(0, 12);
        kernel.x = h.start(steps);
        void *const prepared =
            prepares ? c.where().allocate(static_cast<std::size_t>(kernel.most_of_block(blocks) * blocks + 1) *
                                          sizeof *kernel.prepared)
                     : nullptr;
        kernel.prepared = static_cast<mpix::halo::prepared_tile *>(prepared);
        kernel.first_step = done;
        c.where().launch_cooperative(blocks + kernel.next_groups, threads, kernel);
        c.where().synchronise();
        if (prepares) c.where().release(prepared);
        h.finish();
        done += static_cast<std::uint64_t>(steps);
        wrong += c.check_data(h, done);
    }
    return wrong;
}

}  // namespace halo_test

#endif  // MPIX_TESTS_HALO_KERNELS_IN_KERNELS_HPP
