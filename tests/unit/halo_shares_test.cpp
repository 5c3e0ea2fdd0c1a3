// SPDX-License-Identifier: BSD-3-Clause
//
// How the groups of a kernel share out what a halo exchange in a stream sends, copies and receives
// (device/halo/stream_exchange.cuh): each group by itself, all of it, and not more of them wait than may.
#include <algorithm>
#include <random>

#include "device/halo/stream_exchange.cuh"
#include "tests/catch.hpp"

using mpix::halo::shares;
using mpix::halo::shares_of;

TEST_CASE("groups share out parcels") {
    std::mt19937 random(Catch::rngSeed());
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 2000; ++round) {
        const int groups = pick(1, 20), sends = pick(0, 30), copies = pick(0, 30), receives = pick(0, 30);
        const int most_receivers = pick(1, groups);
        const shares has = shares_of(sends, copies, receives, groups, most_receivers);
        CHECK(groups - has.first_receiver <= most_receivers);
        if (has.are_fixed) {
            CHECK(has.senders == sends);
            CHECK(sends + copies <= groups);
            CHECK(groups - has.first_receiver == receives);
        } else {
            CHECK((has.senders > 0) == (sends > 0));
            // The others have something to do.
            CHECK(has.senders <= std::max({groups / 2, 1, groups - copies - receives}));
            CHECK(has.first_receiver < groups);
        }
        // With enough groups nobody has two parcels.
        if (sends + copies + receives <= groups && receives <= most_receivers) {
            CHECK(has.are_fixed);
            CHECK(has.first_receiver >= sends + copies);
        }
    }
}
