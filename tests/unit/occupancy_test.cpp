// SPDX-License-Identifier: BSD-3-Clause
//
// What limits the blocks of a multiprocessor, and the sentence on a grid that does not fit.
#include <mpix/detail/occupancy.h>

#include <string>

#include "tests/catch.hpp"

namespace {

// An H100's.
constexpr mpix_multiprocessor h100{2048, 32, 65536, 233472, 1024};

mpix_block_needs block(int threads, int registers, long long fixed = 0, long long dynamic = 0) {
    return {threads, 1024, dynamic, 49152, fixed, registers};
}

std::string sentence(const mpix_block_needs &b, int found, unsigned long long grid, std::size_t size = 400) {
    MPIX_Occupancy o{found * 132, found, 132, mpix_occupancy_limit(&b, &h100, found)};
    std::string text(size, '#');
    mpix_occupancy_sentence(text.data(), size, grid, 1, &o, &b, &h100);
    return text.c_str();
}

}  // namespace

TEST_CASE("what limits the blocks of a multiprocessor") {
    struct {
        mpix_block_needs needs;
        int found, limit;
    } const cases[] = {
        {block(256, 32), 8, MPIX_LIMIT_THREADS},
        {block(32, 16), 32, MPIX_LIMIT_BLOCKS},
        {block(256, 64), 4, MPIX_LIMIT_REGISTERS},
        {block(96, 72), 9, MPIX_LIMIT_REGISTERS},   // 28 warps of 2304 registers, 3 to a block
        {block(512, 65), 1, MPIX_LIMIT_REGISTERS},  // a little more than two blocks have
        {block(128, 32, 40000), 5, MPIX_LIMIT_SHARED_MEMORY},
        {block(128, 32, 10000, 30000), 5, MPIX_LIMIT_SHARED_MEMORY},
        {block(2048, 16), 0, MPIX_LIMIT_BLOCK_THREADS},
        {block(128, 16, 0, 50000), 0, MPIX_LIMIT_BLOCK_SHARED},
        {block(128, 32), 7, MPIX_LIMIT_UNKNOWN},
    };
    for (const auto &c : cases) {
        CAPTURE(c.needs.threads, c.needs.registers, c.needs.fixed, c.needs.dynamic, c.found);
        CHECK(mpix_occupancy_limit(&c.needs, &h100, c.found) == c.limit);
    }
}

TEST_CASE("the sentence on a grid that does not fit") {
    const std::string all =
        "the grid has 600 blocks of 256 threads, of which 528 fit on device 1 at the same time: 4 on "
        "each of 132 multiprocessors, limited by the 64 registers of each thread";
    CHECK(sentence(block(256, 64), 4, 600) == all);
    CHECK(sentence(block(256, 64), 4, 600, 20) == all.substr(0, 19));
    CHECK(sentence(block(256, 32), 8, 2000) ==
          "the grid has 2000 blocks of 256 threads, of which 1056 fit on device 1 at the same time: 8 on each of 132 "
          "multiprocessors, limited by a multiprocessor's 2048 threads");
    const auto ends_with = [](const std::string &text, const std::string &end) {
        return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
    };
    CHECK(ends_with(sentence(block(32, 16), 32, 5000), ", limited by a multiprocessor's 32 blocks"));
    CHECK(ends_with(sentence(block(128, 32, 10000, 30000), 5, 5000),
                    ", limited by the 40000 bytes of shared memory of each block"));
    CHECK(ends_with(sentence(block(128, 32), 7, 5000), " 7 on each of 132 multiprocessors"));
    CHECK(ends_with(sentence(block(2048, 16), 0, 1), ", because a block of this kernel has at most 1024 threads"));
    CHECK(ends_with(sentence(block(128, 16, 0, 50000), 0, 1),
                    ", because a block has at most 49152 bytes of dynamic shared memory, not 50000 "
                    "(cudaFuncAttributeMaxDynamicSharedMemorySize)"));
}
