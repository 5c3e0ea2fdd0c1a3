// SPDX-License-Identifier: BSD-3-Clause
//
// How the groups of a kernel divide what a halo exchange in a stream sends, copies and receives
// (device/halo/stream_exchange.cuh): each group by itself, all of it, and not more of them wait than may.
#include <algorithm>
#include <random>

#include "device/halo/stream_exchange.cuh"
#include "tests/catch.hpp"

using mpix::halo::split_work;
using mpix::halo::work_split;

TEST_CASE("groups split the parcels") {
    std::mt19937 random(Catch::rngSeed());
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 2000; ++round) {
        const int groups = pick(1, 20), sends = pick(0, 30), copies = pick(0, 30), receives = pick(0, 30);
        const int most_receivers = pick(1, groups);
        const work_split split = split_work(sends, copies, receives, groups, most_receivers);
        CHECK(groups - split.first_receiver <= most_receivers);
        if (split.one_each) {
            CHECK(split.senders == sends);
            CHECK(sends + copies <= groups);
            CHECK(groups - split.first_receiver == receives);
        } else {
            CHECK((split.senders > 0) == (sends > 0));
            // The others have something to do.
            CHECK(split.senders <= std::max({groups / 2, 1, groups - copies - receives}));
            CHECK(split.first_receiver < groups);
        }
        // With enough groups nobody has two parcels.
        if (sends + copies + receives <= groups && receives <= most_receivers) {
            CHECK(split.one_each);
            CHECK(split.first_receiver >= sends + copies);
        }
    }
}
