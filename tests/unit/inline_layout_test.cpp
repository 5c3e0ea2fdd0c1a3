// SPDX-License-Identifier: BSD-3-Clause
//
// Where an inline buffer is, in the region that begins with the arrival flags.
#include <cstdint>

#include "host/export/inline_drain.h"
#include "host/protocol/rget.h"
#include "tests/catch.hpp"

TEST_CASE(
    "the inline buffer lies behind the flags, and its lines fill 128-byte lines of memory from the first one on") {
    CHECK(!mpix::inline_buffer_for(4, 0, 100));
    CHECK(!mpix::inline_buffer_for(4, 101, 100));
    CHECK(mpix::inline_buffer_for(4, 100, 100));
    CHECK(!mpix::inline_buffer_for(std::uint64_t{1} << 40, 8, 100));
    for (const std::uint64_t n : {1, 2, 15, 16, 1000})
        for (const std::uint64_t bytes : {1, 7, 8, 9, 1000})
            for (const bool rget : {false, true}) {
                const mpix::inline_buffer_layout m = mpix::inline_buffer_for(n, bytes, 1 << 20, rget);
                CHECK(m.taken >= (n + 1) * 8);
                CHECK(m.packets >= m.taken + n * 8);
                CHECK((!rget || m.packets >= mpix::bytes_with_rts(n)));
                CHECK(m.packets % 128 == 0);
                CHECK(m.all == m.packets + n * ((bytes + 7) / 8) * 16);
            }
}
