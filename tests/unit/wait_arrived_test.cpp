// SPDX-License-Identifier: BSD-3-Clause
//
// wait_arrived has a deadline also while another group is copying the partition out, and never gets done.
#include <mpix/device.cuh>

#include <cstring>

#include "tests/catch.hpp"

using mpix::detail::played_grid;

namespace {

// A receive of one partition, in epoch 1, whose bytes have arrived.
struct receive {
    alignas(16) mpix_words words{};
    std::uint64_t flags[2] = {1, 1}, taken[1] = {0};
    char landing[8] = "arrived", buffer[8] = "";
    mpix_prequest r{};

    explicit receive(std::uint64_t stall_ns) {
        words.epoch = 2 * 1 + 1;
        words.matched = 1;
        r.head = mpix::detail::receive_head;
        r.partitions = 1;
        r.partition_bytes = sizeof buffer;
        r.buffer = buffer;
        r.words = &words;
        r.stall_ns = stall_ns;
        r.landing = landing;
        r.flags = flags;
        r.slots = 1;
        r.peer_partitions = 1;
        r.taken = taken;
    }
};

}  // namespace

TEST_CASE("a partition that has arrived is copied out") {
    receive a(0);
    CHECK(mpix::wait_arrived(mpix::this_thread(), &a.r, 0) == MPI_SUCCESS);
    CHECK(std::memcmp(a.buffer, "arrived", 8) == 0);
}

TEST_CASE("a group that never finishes copying is not waited for for ever") {
    receive a(20000000);
    a.taken[0] = 2 * 1 - 1;
    CHECK(mpix::wait_arrived(mpix::this_thread(), &a.r, 0) == MPI_ERR_PENDING);
    CHECK((a.words.error >> 48 & 0xff) == MPIX_CAUSE_DEADLINE);  // kept for Wait
    a.words.error = 0;
    CHECK(mpix::wait_arrived(mpix::this_thread(), &a.r, 0, 20000000) == MPI_ERR_PENDING);
    CHECK(mpix::wait_arrived(mpix::this_thread(), &a.r, 0, 0) == MPI_ERR_PENDING);
    CHECK(a.words.error == 0);
    CHECK(std::memcmp(a.buffer, "", 1) == 0);
}

TEST_CASE("a wait that times out in a grid that is too large for the GPU says so") {
    receive a(1000000);
    a.taken[0] = 2 * 1 - 1;
    const auto cause_in = [&](const mpix::detail::grid_facts &grid) {
        played_grid = grid;
        a.words.error = a.r.error = 0;
        const int code = mpix::wait_arrived(mpix::this_thread(), &a.r, 0);
        played_grid = {};
        CHECK(code == MPI_ERR_PENDING);
        CHECK(a.words.error >> 56 == MPIX_CALL_WAIT_ARRIVED);
        return a.words.error >> 48 & 0xff;
    };
    CHECK(cause_in({8, 256, 2, 32}) == MPIX_CAUSE_DEADLINE);
    CHECK(cause_in({9, 256, 2, 32}) == MPIX_CAUSE_RESIDENCY);
    CHECK(cause_in({4, 500, 2, 32}) == MPIX_CAUSE_DEADLINE);  // 16 warps
    CHECK(cause_in({5, 500, 2, 32}) == MPIX_CAUSE_RESIDENCY);
    CHECK(cause_in({1u << 31, 1, 132, 64}) == MPIX_CAUSE_RESIDENCY);
    CHECK(mpix::detail::class_of(MPIX_CAUSE_RESIDENCY) == MPI_ERR_PENDING);
}
