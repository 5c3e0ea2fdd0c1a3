// SPDX-License-Identifier: BSD-3-Clause
//
// Which of the sender's partitions a receiver's partition waits for, against counting bytes.
#include <mpix/device.cuh>

#include <cstdint>
#include <numeric>

#include "tests/catch.hpp"

namespace {

mpix_prequest receive_of(int partitions, std::uint64_t partition_bytes) {
    mpix_prequest r{};
    r.partitions = partitions;
    r.partition_bytes = partition_bytes;
    return r;
}

// The sender's partitions that hold a byte of partition j, looked up byte by byte.
void check_pair(std::uint64_t senders, std::uint64_t receivers, std::uint64_t total) {
    const mpix_prequest r = receive_of(static_cast<int>(receivers), total / receivers);
    for (std::uint64_t j = 0; j < receivers; ++j) {
        std::uint64_t first = senders, last = 0;
        for (std::uint64_t byte = j * r.partition_bytes; byte < (j + 1) * r.partition_bytes; ++byte) {
            first = std::min(first, byte / (total / senders));
            last = std::max(last, byte / (total / senders));
        }
        const auto range = mpix::detail::sender_partitions(&r, static_cast<int>(j), senders);
        CAPTURE(senders, receivers, total, j);
        REQUIRE(range.first == first);
        REQUIRE(range.last == last);
    }
}

}  // namespace

TEST_CASE("every pair of partition counts up to 24, against counting bytes") {
    for (std::uint64_t senders = 1; senders <= 24; ++senders)
        for (std::uint64_t receivers = 1; receivers <= 24; ++receivers)
            for (const std::uint64_t factor : {1, 2, 5})
                check_pair(senders, receivers, factor * std::lcm(senders, receivers));
}

TEST_CASE("an empty message arrives with all of the sender's partitions, or with its own if they are as many") {
    const mpix_prequest r = receive_of(6, 0);
    for (int j = 0; j < 6; ++j) {
        const auto all = mpix::detail::sender_partitions(&r, j, 4);
        CHECK(all.first == 0);
        CHECK(all.last == 3);
        const auto own = mpix::detail::sender_partitions(&r, j, 6);
        CHECK(own.first == static_cast<std::uint64_t>(j));
        CHECK(own.last == static_cast<std::uint64_t>(j));
    }
}

TEST_CASE("large partition counts do not overflow") {
    const int n = 2147483647;
    const mpix_prequest r = receive_of(n, 3);
    const auto range = mpix::detail::sender_partitions(&r, n - 1, 3);
    CHECK(range.first == 2);
    CHECK(range.last == 2);
}
