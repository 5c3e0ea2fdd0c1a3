// SPDX-License-Identifier: BSD-3-Clause
#include "tests/halo/c/player.h"

#include <atomic>

#include <mpix/host_group.hpp>

namespace halo = mpix::halo;

int play_steps(kernel_argument x, computation what, int groups, int threads, int by_boxes) {
    std::atomic<int> error{MPI_SUCCESS};
    const auto note = [&](int code) {
        if (code != MPI_SUCCESS) error.store(code);
    };
    mpix::host_launch(groups, threads, [&](const mpix::host_group &block) {
        const int index = block.group_rank();
        const auto fill_and_send = [&](std::int64_t step) {
            for (int t = index; t < x.tiles(); t += groups) {
                const halo::box &b = x.tile(t);
                const MPIX_Halo_box tile{{b.lo[0], b.lo[1], b.lo[2]}, {b.hi[0], b.hi[1], b.hi[2]}};
                if (block.thread_rank() == 0)
                    for (int f = 0; f < what.fields; ++f) what.fill(f, x.data<void>(f, step), tile, step);
                note(halo::send(block, x, t, step));
            }
        };
        fill_and_send(0);
        for (std::int64_t step = 0; step < x.steps(); ++step) {
            halo::sync_blocks(block, x, groups);
            if (index == 0 && step > 0) note(halo::next(block, x, step - 1));
            for (int t = index; t < x.tiles(); t += groups)
                note(by_boxes ? halo::wait(block, x, x.tile(t), step) : halo::wait(block, x, t, step));
            halo::sync_blocks(block, x, groups);  // those of all tiles are there, and no cell is copied any more
            if (index == 0 && block.thread_rank() == 0)
                for (int f = 0; f < what.fields; ++f) what.look(f, x.data<void>(f, step), step);
            halo::sync_blocks(block, x, groups);  // a field of one allocation is computed in place
            fill_and_send(step + 1);
        }
    });
    return error.load();
}
