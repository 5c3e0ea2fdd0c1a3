// SPDX-License-Identifier: BSD-3-Clause
//
// Errors that kernels leave with a request while the host takes one.
#include <mpix/detail/order.h>
#include <mpix/impl/epoch/errors.cuh>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "host/transfer/receive.h"

#include "tests/catch.hpp"

using namespace mpix::detail;

TEST_CASE("an error that comes while the host takes an earlier one is not lost") {
    char buffer = 0;
    mpix::status problem;
    mpix::operation op;
    op.buffer = &buffer;
    op.partitions = 1;
    op.count = 1;
    op.type = mpix::make_plan({{{0, 0, 1, {}}}, 1, 1}, problem);
    op.peer = 1;
    const auto members = std::make_shared<mpix::communicator>();
    members->peers = {0, 1};
    op.members = members;
    const auto r = std::make_shared<mpix::receive_request>(op);
    REQUIRE(r->prepare().ok());
    const auto store = [&](int partition) {
        store_release(&r->words->error, error_word(with_cause(MPIX_CALL_PREADY, MPIX_CAUSE_READY), 2, partition));
    };
    const std::uint64_t other = 0;
    constexpr int rounds = 3000;
    std::atomic<int> begun = 0, stored = 0;
    std::thread kernel([&] {
        std::mt19937 random(1);
        for (int round = 1; round <= rounds; ++round) {
            while (begun.load(std::memory_order_acquire) < round) std::this_thread::yield();
            store(0);
            // As long as the host may take between its look and its next step.
            for (auto pause = random() % 64; pause > 0; --pause) static_cast<void>(load_relaxed(&other));
            store(round);
            stored.store(round, std::memory_order_release);
        }
    });
    for (int round = 1; round <= rounds; ++round) {
        begun.store(round, std::memory_order_release);
        std::string last;
        unsigned looks = 0;
        for (bool all = false; !all;) {
            all = stored.load(std::memory_order_acquire) == round;  // then this look is the last one
            if (const mpix::status error = r->device_error(); !error.ok())
                last = error.message();
            else if (++looks % 256 == 0)
                std::this_thread::yield();
        }
        CHECK(last.find("of partition " + std::to_string(round) + ":") != std::string::npos);
    }
    kernel.join();
}
