// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges in the order of a stream: kernels before start() write the cells, and kernels behind finish() compare them.
#ifndef MPIX_TESTS_HALO_KERNELS_IN_STREAM_HPP
#define MPIX_TESTS_HALO_KERNELS_IN_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"
#include "tests/halo/kernels/fields.hpp"
#include "tests/halo/kernels/random_case.hpp"

namespace halo_test {

// Of one box. The number of the step is in memory, so that a graph of these kernels can run several times.
struct step_of_box {
    view fields[most_fields];
    unsigned char *memory[most_fields];  // of each field, the allocation of this step
    int count;
    std::uint64_t *step, *wrong;
};

struct write_box {
    step_of_box s;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int f = 0; f < s.count; ++f) {
            const view &v = s.fields[f];
            for_cells(block, v.local, [&](const index3 &cell) {
                for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                    s.memory[f][v.at(cell, b)] = value_at(v.seed, cell, b, *s.step);
            });
        }
    }
};

// The box, and all ghost cells that the exchange fills.
struct check_box {
    step_of_box s;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int f = 0; f < s.count; ++f) {
            const view &v = s.fields[f];
            if (v.local.empty()) continue;
            box all;
            for (std::size_t a = 0; a < 3; ++a) {
                all.lo[a] = v.origin[a];
                all.hi[a] = v.origin[a] + v.size[a];
            }
            for_cells(block, all, [&](const index3 &cell) {
                index3 source = cell;
                if (!is_exchanged(v, cell) || !v.whole.inside(source)) return;
                for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                    if (s.memory[f][v.at(cell, b)] != value_at(v.seed, source, b, *s.step))
                        device_test::add_one(s.wrong);
            });
        }
    }
};

struct next_step_of_boxes {
    std::uint64_t *step;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        if (block.thread_rank() == 0) ++*step;
    }
};

// Kernels count in c.wrong(). Returns how many messages of this rank may be stored straight into ghost cells.
inline int exchange_in_stream(random_case &c) {
    executor &where = c.where();
    const bool direct = c.pick(0, 3) != 0;
    mpix::halo::stream_exchange h(c.grid(), c.fields(), {.tile = c.options().tile, .direct = direct});
    auto *const step = static_cast<std::uint64_t *>(where.allocate_shared(sizeof(std::uint64_t)));
    const int threads = executor::is_gpu ? 64 : 2;
    const auto of_each_box = [&](const auto &launch) {
        const views &all = c.in_kernels();
        for (int i = 0; i < h.boxes(); ++i) {
            step_of_box s{};
            s.count = all.count;
            s.step = step;
            s.wrong = c.wrong();
            for (int f = 0; f < all.count; ++f) {
                s.fields[f] = all.of[f][i];
                s.memory[f] = static_cast<unsigned char *>(h.data(f, i));
            }
            launch(s);
        }
    };
    const auto for_each_allocation = [&](const auto &each) {
        for (int f = 0; f < c.in_kernels().count; ++f)
            for (int i = 0; i < h.boxes(); ++i) each(f, i);
    };
    std::uint64_t not_swapped = 0;
    const bool in_one_call = c.pick(0, 2) == 0;
    const auto one_step = [&] {
        of_each_box([&](const step_of_box &s) { where.launch(1, threads, write_box{s}); });
        if (in_one_call) {
            h.run(where.stream());
        } else {
            h.start(where.stream());
            h.finish(where.stream());
        }
        of_each_box([&](const step_of_box &s) { where.launch(1, threads, check_box{s}); });
        where.launch(1, threads, next_step_of_boxes{step});
        std::vector<void *> before;
        for_each_allocation([&](int f, int i) { before.push_back(h.data(f, i)); });
        h.swap();
        std::size_t at = 0;
        for_each_allocation(
            [&](int f, int i) { not_swapped += (h.data(f, i) != before[at++]) != c.in_kernels().two_allocations[f]; });
    };
    for (int steps = c.pick(0, 9); steps > 0; --steps) one_step();
    // Graphs of an even number of steps, which end with the allocations with which they began. Exchanges by the host
    // cannot be captured.
    if (const int replays = c.pick(0, 3); replays != 0 && std::getenv("MPIX_HALO_STREAM") == nullptr)
        where.repeat(replays, [&] {
            one_step();
            one_step();
        });
    where.synchronise();
    h.check();
    *c.wrong() += not_swapped;
    where.release_shared(step);
    int stored = 0;
    for (const mpix::halo::message_report &m : h.report().sent) stored += m.direct;
    return stored;
}

}  // namespace halo_test

#endif  // MPIX_TESTS_HALO_KERNELS_IN_STREAM_HPP
