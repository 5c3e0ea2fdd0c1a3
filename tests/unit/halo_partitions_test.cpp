// SPDX-License-Identifier: BSD-3-Clause
//
// How the fields of a message become partitions.
#include "host/field/partitions.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/halo_cells.hpp"

using namespace mpix::halo;
using halo_cells::between;

TEST_CASE("in kernels a partition more costs as much as many bytes") {
    // A face of 24 KiB, and the same with edges: on the host in pieces, in kernels whole.
    const std::vector<std::int64_t> bytes{24576, 29184, 24576};
    const partitions whole = choose_partitions(bytes, kernel_partition_cost);
    CHECK(whole.bytes == 29184);
    CHECK(whole.first == std::vector<int>{0, 1, 2, 3});
    CHECK(choose_partitions(bytes, host_partition_cost).count() > 3);
    // But not at any price.
    CHECK(choose_partitions({1 << 20, 64, 64, 64}, kernel_partition_cost).bytes < 1 << 20);
}

TEST_CASE("each field has partitions of its own, with little padding") {
    const partitions one = choose_partitions({1000}, host_partition_cost);
    CHECK(one.bytes == 1000);
    CHECK(one.first == std::vector<int>{0, 1});
    const partitions equal = choose_partitions({512, 512, 512}, host_partition_cost);
    CHECK(equal.bytes == 512);
    CHECK(equal.count() == 3);
    const partitions none = choose_partitions({0, 64, 0}, host_partition_cost);
    CHECK(none.first == std::vector<int>{0, 0, 1, 1});

    std::mt19937 random(4);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::int64_t> bytes(static_cast<std::size_t>(between(random, 1, 6)));
        std::int64_t sum = 0;
        for (auto &b : bytes) sum += b = between(random, 0, 3) == 0 ? 0 : between(random, 1, 100000);
        if (sum == 0) continue;
        const std::int64_t alignment = std::int64_t{1} << between(random, 0, 6);
        const partitions p = choose_partitions(bytes, host_partition_cost, alignment);
        CHECK(p.bytes % alignment == 0);
        for (std::size_t f = 0; f < bytes.size(); ++f) {
            const auto room = p.bytes * (p.first[f + 1] - p.first[f]);
            CHECK(room >= bytes[f]);
            CHECK(room < bytes[f] + p.bytes);
        }
        // Never more than one partition for each field would take.
        const auto longest = *std::max_element(bytes.begin(), bytes.end());
        CHECK(p.bytes * p.count() <= (longest + 64 + alignment) * static_cast<std::int64_t>(bytes.size()));
    }
}
