// SPDX-License-Identifier: BSD-3-Clause
//
// A neighbour that sends too late for a kernel that waits.
#ifndef MPIX_TESTS_HALO_KERNELS_LATE_HPP
#define MPIX_TESTS_HALO_KERNELS_LATE_HPP

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"

namespace halo_test {

// Sends all tiles of exchange 0 but one, or that one; and then waits for all, and ends the exchange. One block.
struct late_body {
    enum { succeeded, pending, other, others };
    mpix::halo::device_exchange x;
    int left_out;         // a tile that is not sent; -1: none
    bool only_left_out;   // that was not sent before
    std::uint64_t *ends;  // how the calls have ended, by the names above

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int blocks) const {
        for (int t = 0; t < x.tiles(); ++t)
            if ((t == left_out) == only_left_out) mpix::halo::send(block, x, t, 0);
        if (left_out >= 0 && !only_left_out) return;
        mpix::halo::sync_blocks(block, x, blocks);
        for (int t = 0; t < x.tiles(); ++t) count(block, mpix::halo::wait(block, x, t, 0));
        count(block, mpix::halo::next(block, x, 0));
        count(block, mpix::halo::send(block, x, x.tile_boundary_first(0), 1));
    }
    template <class Block>
    DEVICE_FN void count(const Block &block, int code) const {
        const int end = code == MPI_SUCCESS ? succeeded : code == MPI_ERR_PENDING ? pending : others;
        if (block.thread_rank() == 0) device_test::add_one(ends + (code == MPI_ERR_OTHER ? other : end));
    }
};

// Rank 1 sends a tile when rank 0 has given up. Three tiles of rank 0 read it, but only the first of them waits until its
// deadline; all calls behind it fail at once. Returns what main does.
inline int late(device_test::executor &where, int rank) {
    const mpix::halo::grid g(MPI_COMM_WORLD, {8, 8});
    const mpix::halo::field shape(static_cast<void *>(nullptr), sizeof(int), mpix::halo::radius::all(1));
    mpix::halo::field u = shape;
    u.data = where.allocate(mpix::halo::field_bytes(g, shape));
    constexpr int count = late_body::others + 1;
    auto *const ends = static_cast<std::uint64_t *>(where.allocate_shared(count * sizeof(std::uint64_t)));
    bool right = false;
    {
        mpix::halo::kernel_exchange h(g, {u}, {.tile = {2, 2, 0}, .sets = 2});
        MPI_Barrier(MPI_COMM_WORLD);
        const mpix::halo::device_exchange x = h.start(3);
        const auto launch = [&](const late_body &body) {
            where.launch_cooperative(1, device_test::executor::is_gpu ? 64 : 2, body);
            where.synchronise();
        };
        if (rank == 1) launch({x, 1, false, ends});
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) launch({x, -1, false, ends});
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) launch({x, 1, true, ends});
        std::string got;
        try {
            h.finish();
        } catch (const mpix::halo::error &e) {
            got = e.what();
        }
        // Four of the eight tiles are beside the other rank.
        if (rank == 0)
            right = ends[late_body::succeeded] == 4 && ends[late_body::pending] == 1 && ends[late_body::other] == 5 &&
                    got.find("wait_arrived of partition 1: timed out") != std::string::npos;
        // The other exchanges have not been made, so it cannot finish, either.
        if (rank == 1) right = ends[late_body::succeeded] == 10 && !got.empty();
        right = right && !h.active();
        if (!right)
            std::printf("rank %d: %d succeeded, %d timed out, %d failed, %d others; finish() says \"%s\"\n", rank,
                        static_cast<int>(ends[0]), static_cast<int>(ends[1]), static_cast<int>(ends[2]),
                        static_cast<int>(ends[3]), got.c_str());
    }
    where.release_shared(ends);
    where.release(u.data);
    return right ? 0 : 1;
}

}  // namespace halo_test

#endif  // MPIX_TESTS_HALO_KERNELS_LATE_HPP
