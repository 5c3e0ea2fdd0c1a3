// SPDX-License-Identifier: BSD-3-Clause
//
// How the groups of a kernel divide what a halo exchange in a stream sends, copies and receives
// (device/halo/stream_exchange.cuh): the groups, played one after the other, do all of it, each part once, and not more
// of them wait than may.
#include <vector>

#include "device/halo/stream_exchange.cuh"
#include "tests/catch.hpp"

using mpix::halo::split_work;
using mpix::halo::work_split;

namespace {

struct exchange {
    int sends, copies, receives, groups, most_receivers;
};

// As run_in_order.
bool does_all_once(const exchange &x) {
    const work_split split = split_work(x.sends, x.copies, x.receives, x.groups, x.most_receivers);
    std::vector<int> sent(static_cast<std::size_t>(x.sends)), copied(static_cast<std::size_t>(x.copies)),
        received(static_cast<std::size_t>(x.receives));
    const auto count = [](std::vector<int> &all, int i) { ++all.at(static_cast<std::size_t>(i)); };
    int taken = 0, receivers = 0;  // taken: the counter
    for (int index = 0; index < x.groups; ++index) {
        if (index < split.senders)
            for (int i = index; i < x.sends; i += split.senders) count(sent, i);
        const int first = index - split.senders, first_receive = index - split.first_receiver;
        if (split.one_each) {
            if (first >= 0 && first < x.copies) count(copied, first);
        } else {
            if (first >= 0 && first < x.copies) count(copied, first);
            if (first < x.copies)
                for (int i; (i = x.groups - split.senders + taken) < x.copies; ++taken) count(copied, i);
        }
        if (first_receive < 0) continue;
        ++receivers;
        const int stride = split.one_each ? x.receives : x.groups - split.first_receiver;
        for (int i = first_receive; i < x.receives; i += stride) count(received, i);
    }
    const auto once = [](const std::vector<int> &all) {
        for (const int times : all)
            if (times != 1) return false;
        return true;
    };
    return once(sent) && once(copied) && once(received) && receivers <= x.most_receivers;
}

}  // namespace

TEST_CASE("groups split the parcels") {
    exchange x{};
    int wrong = 0;
    for (x.groups = 1; x.groups < 13; ++x.groups)
        for (x.sends = 0; x.sends < 15; ++x.sends)
            for (x.copies = 0; x.copies < 15; ++x.copies)
                for (x.receives = 0; x.receives < 15; ++x.receives)
                    for (x.most_receivers = 1; x.most_receivers < 16; ++x.most_receivers)
                        if (!does_all_once(x) && wrong++ == 0) {
                            CAPTURE(x.groups, x.sends, x.copies, x.receives, x.most_receivers);
                            CHECK(does_all_once(x));
                        }
    CHECK(wrong == 0);
}

TEST_CASE("with enough groups none has two parcels") {
    const work_split split = split_work(3, 4, 5, 12, 5);
    CHECK(split.one_each);
    CHECK(split.first_receiver >= 3 + 4);
    // Nobody is idle while others send.
    CHECK(split_work(30, 0, 0, 10, 10).senders == 10);
    CHECK(split_work(30, 30, 30, 10, 5).senders == 5);
}
