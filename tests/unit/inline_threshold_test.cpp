// SPDX-License-Identifier: BSD-3-Clause
//
// Up to which size partitions go inline: by the model, by what has been measured by now, and by MPIX_INLINE_BYTES.
#include "host/protocol/inline_threshold.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "host/config.h"
#include "tests/catch.hpp"

using namespace mpix;
using origin = inline_threshold::origin;

namespace {

// A GPU that is asked what it takes.
struct fake_gpu {
    struct ending {
        bool done = false;
        std::string problem;
    };
    std::vector<std::shared_ptr<ending>> begun;
    std::vector<void *> places;
    gpu::inline_times times;
    std::string refusal;
} fake;

struct under_way final : gpu::pending {
    std::shared_ptr<fake_gpu::ending> end;
    bool finished(gpu::outcome &problem) override {
        problem = end->problem;
        return end->done;
    }
};

gpu::outcome start(void *at_peer, int, std::unique_ptr<gpu::pending> &out) {
    if (!fake.refusal.empty()) return fake.refusal;
    auto made = std::make_unique<under_way>();
    made->end = std::make_shared<fake_gpu::ending>();
    fake.begun.push_back(made->end);
    fake.places.push_back(at_peer);
    out = std::move(made);
    return {};
}
gpu::inline_times times(int device) { return device == 1 ? fake.times : gpu::inline_times{}; }

// A fence takes 1 us, telling 0.2; the link takes 40000 bytes a us, and taking out as many.
const inline_costs costs{1, 0.2, 40000, 40000};
// The same, as it is measured.
gpu::inline_times good_times() {
    const double packets = gpu::many_packets - gpu::few_packets;
    return {0.1, 1.1, 1.1 + packets * 16 / 40000, 0.5, 0.7, 0.7 + packets * 8 / 40000};
}

inline_meter fresh() {
    fake = {};
    fake.times = good_times();
    return inline_meter({start, times});
}

bool near(double a, double b) { return std::abs(a - b) < 1e-6 * b; }

bool is_usual(const inline_threshold &limit) { return limit.bytes == 8192 && limit.by == origin::usual; }

}  // namespace

TEST_CASE("an inline buffer is for what is moved twice in less time than a fence takes") {
    // 0.8 us are saved, and each byte costs 1/40000 us, and 1.5 times as much to take out: 12800 bytes, of which 12 KiB
    // are whole.
    CHECK(inline_threshold_bytes(costs) == 12 * 1024);
    CHECK(inline_threshold_bytes({0.5, 0, 40000, 40000}) == 7 * 1024);
    CHECK(inline_threshold_bytes({2, 0.2, 30000, 10000}) == 9 * 1024);
    // More of each that speaks for it.
    CHECK(inline_threshold_bytes({1.2, 0.2, 40000, 40000}) > inline_threshold_bytes(costs));
    CHECK(inline_threshold_bytes({1, 0.1, 40000, 40000}) > inline_threshold_bytes(costs));
    CHECK(inline_threshold_bytes({1, 0.2, 50000, 40000}) > inline_threshold_bytes(costs));
    CHECK(inline_threshold_bytes({1, 0.2, 40000, 50000}) > inline_threshold_bytes(costs));
}

TEST_CASE("the limit stays within what a block can use, and what is too small to matter") {
    CHECK(inline_threshold_bytes({10, 0.2, 40000, 40000}) == most_inline_bytes);
    CHECK(inline_threshold_bytes({0.06, 0, 40000, 40000}) == least_inline_bytes);
    CHECK(inline_threshold_bytes({0.3, 0.5, 40000, 40000}) ==
          least_inline_bytes);  // to tell of it takes longer than a fence
    CHECK(inline_threshold_bytes({1, -0.05, 40000, 40000}) ==
          inline_threshold_bytes({1, 0, 40000, 40000}));  // less than can be measured
}

TEST_CASE("what no GPU takes is not believed") {
    CHECK(inline_threshold_bytes({}) == 0);
    for (const double fence : {-1.0, 0.0, 0.01, 100.0}) CHECK(inline_threshold_bytes({fence, 0.2, 40000, 40000}) == 0);
    for (const double tell : {-0.2, 60.0}) CHECK(inline_threshold_bytes({1, tell, 40000, 40000}) == 0);
    for (const double rate : {-4.0, 0.0, 50.0, 1e8}) {
        CHECK(inline_threshold_bytes({1, 0.2, rate, 40000}) == 0);
        CHECK(inline_threshold_bytes({1, 0.2, 40000, rate}) == 0);
    }
}

TEST_CASE("costs are what was measured, less what takes place anyway") {
    const inline_costs c = costs_of(good_times());
    CHECK(near(c.fence_us, 1));
    CHECK(near(c.tell_us, 0.2));
    CHECK(near(c.stored_bytes_per_us, 40000));
    CHECK(near(c.taken_bytes_per_us, 40000));
    CHECK(inline_threshold_bytes(costs_of({})) == 0);
    gpu::inline_times t = good_times();
    t.many_fenced = t.few_fenced;
    CHECK(inline_threshold_bytes(costs_of(t)) == 0);
    t = good_times();
    t.many_told = t.few_told - 0.1;
    CHECK(inline_threshold_bytes(costs_of(t)) == 0);
}

TEST_CASE("a pair's limit is the usual one until its measurement has ended, and is measured once") {
    inline_meter m = fresh();
    char at_peer = 0, elsewhere = 0;
    CHECK(is_usual(m.limit(1, 7)));
    m.begin(&at_peer, 1, 7);
    m.begin(&elsewhere, 1, 7);
    REQUIRE(fake.begun.size() == 1);
    CHECK(fake.places.at(0) == &at_peer);
    CHECK(m.busy());
    CHECK(is_usual(m.limit(1, 7)));
    CHECK(described(m.limit(1, 7)) ==
          "partitions of up to 8192 bytes (MPIX_INLINE_BYTES): nothing has been measured to there yet");
    fake.begun[0]->done = true;
    const inline_threshold limit = m.limit(1, 7);
    CHECK(limit.bytes == inline_threshold_bytes(costs_of(good_times())));
    CHECK(limit.by == origin::measured);
    CHECK_FALSE(m.busy());
    CHECK(is_usual(m.limit(1, 8)));
    CHECK(is_usual(m.limit(0, 7)));
    m.begin(&elsewhere, 1, 7);
    CHECK(fake.begun.size() == 1);
}

TEST_CASE("pairs are measured one after the other") {
    inline_meter m = fresh();
    char at_peer = 0;
    m.begin(&at_peer, 1, 7);
    m.begin(&at_peer, 1, 8);
    CHECK(fake.begun.size() == 1);
    fake.begun[0]->done = true;
    m.begin(&at_peer, 1, 8);
    REQUIRE(fake.begun.size() == 2);
    CHECK(m.limit(1, 7).by == origin::measured);  // the first one's figures were taken before the second began
    CHECK(is_usual(m.limit(1, 8)));
    fake.begun[1]->done = true;
    CHECK(m.limit(1, 8).by == origin::measured);
}

TEST_CASE("where measuring fails, or its figures cannot be, the limit is the usual one, and that is said") {
    inline_meter m = fresh();
    char at_peer = 0;
    fake.refusal = "no memory for it";
    m.begin(&at_peer, 1, 7);
    CHECK(is_usual(m.limit(1, 7)));
    CHECK(m.limit(1, 7).why == "no memory for it");
    CHECK_FALSE(m.busy());
    fake.refusal.clear();
    m.begin(&at_peer, 1, 7);  // not again
    CHECK(fake.begun.empty());
    m.begin(&at_peer, 1, 8);
    REQUIRE(fake.begun.size() == 1);
    fake.begun[0]->problem = "it went wrong";
    fake.begun[0]->done = true;
    CHECK(is_usual(m.limit(1, 8)));
    CHECK(m.limit(1, 8).why == "it went wrong");
    fake.times.few_fenced = 0;
    m.begin(&at_peer, 1, 9);
    REQUIRE(fake.begun.size() == 2);
    fake.begun[1]->done = true;
    CHECK(is_usual(m.limit(1, 9)));
    CHECK(described(m.limit(1, 9)) ==
          "partitions of up to 8192 bytes (MPIX_INLINE_BYTES): what was measured cannot be");
}

TEST_CASE("what is printed of a limit is the limit, and the figures it is from") {
    CHECK(
        described({15360, origin::measured, {1.0449, 0.2, 40000.4, 38000}, {}}) ==
        "partitions of up to 15360 bytes (MPIX_INLINE_BYTES): a fence takes 1.04 us, a block stores 40000 bytes a us; "
        "it takes 38000 bytes a us out of an inline buffer, and 0.20 us to tell");
    CHECK(described({4096, origin::given, {}, {}}) == "partitions of up to 4096 bytes (MPIX_INLINE_BYTES)");
    CHECK(described({8192, origin::usual, {}, "there are gaps"}) ==
          "partitions of up to 8192 bytes (MPIX_INLINE_BYTES): there are gaps");
}

TEST_CASE("a number in MPIX_INLINE_BYTES is the limit, gaps or not; 0 is none") {
    const count_or_auto before = config().inline_bytes;
    CHECK(before.automatic);
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{1} << 40}) {
        config().inline_bytes = {false, number};
        for (const bool gaps : {false, true}) {
            CHECK(choose_inline_threshold(0, 1, gaps).bytes == number);
            CHECK(choose_inline_threshold(0, 1, gaps).by == origin::given);
            CHECK(largest_inline(gaps) == number);
        }
    }
    config().inline_bytes = {true, 0};
    CHECK(is_usual(choose_inline_threshold(0, 1, false)));
    CHECK(is_usual(choose_inline_threshold(0, 1, true)));
    CHECK(choose_inline_threshold(0, 1, true).why == "there are gaps");
    CHECK(largest_inline(false) == most_inline_bytes);
    CHECK(largest_inline(true) == 8192);
    transport::region flags;
    measure_inline(flags, 0, 1);  // no memory to store to: nothing is begun
    CHECK(choose_inline_threshold(0, 1, false).why == "nothing has been measured to there yet");
    config().inline_bytes = before;
}
