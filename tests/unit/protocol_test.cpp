// SPDX-License-Identifier: BSD-3-Clause
//
// Who moves the bytes of a pair, and how many epochs its landing has room for.
#include "host/protocol/select.h"

#include "host/config.h"
#include "host/protocol/copy_engine_threshold.h"
#include "host/protocol/rget.h"
#include "tests/catch.hpp"

using namespace mpix;

namespace {

outgoing_route route(bool from_gpu, bool gaps, bool to_gpu, bool landing_gaps) {
    return {from_gpu, gaps, to_gpu, landing_gaps, false, false};
}

}  // namespace

TEST_CASE("from host memory to host memory the caller stores, gaps or not, and nothing is packed before") {
    for (const bool gaps : {false, true}) {
        const movement m = choose_movement(route(false, gaps, false, false));
        CHECK(m.by_caller);
        CHECK(m.engine == mover::cpu);
        CHECK_FALSE(m.packed_first);
        CHECK_FALSE(m.by_kernels);
    }
}

TEST_CASE("large partitions of two host buffers in one piece are copied once, if the sender may write there") {
    const single_copy large{false, false, 4096, 4096, {}, false};
    CHECK(why_no_single_copy(large).empty());
    const auto refused = [&large](const auto &change) {
        single_copy pair = large;
        change(pair);
        return why_no_single_copy(pair).text();
    };
    CHECK(refused([](single_copy &p) { p.sender_on_gpu = true; }) == "the send buffer is GPU memory");
    CHECK(refused([](single_copy &p) { p.sender_gaps = true; }) == "the send buffer has gaps");
    CHECK(refused([](single_copy &p) { p.receiver_gaps = true; }) == "the receive buffer has gaps");
    CHECK(refused([](single_copy &p) { p.partition_bytes = 4095; }) ==
          "a partition has less than 4096 bytes (MPIX_SINGLE_COPY_BYTES)");
    CHECK(refused([](single_copy &p) { p.least = 0; }) == "MPIX_SINGLE_COPY_BYTES is 0");
    CHECK(refused([](single_copy &p) { p.partition_bytes = 0, p.least = 1; }) != "");  // nothing to copy
    CHECK(refused([](single_copy &p) { p.unreached = failure("it is elsewhere"); }) == "it is elsewhere");
}

TEST_CASE("a receive buffer in the receiver's memory the system writes to, for callers and engine alike") {
    outgoing_route r = route(false, false, false, false);
    r.two_copies = "some reason";
    CHECK(choose_movement(r).two_copies.text() == "some reason");
    r.in_place = true;
    CHECK(choose_movement(r).engine == mover::system);
    CHECK(choose_movement(r).by_caller);
    CHECK(choose_movement(r).two_copies.empty());
    CHECK_FALSE(choose_movement(r).packed_first);
    r.rematched = true;
    CHECK(choose_movement(r).engine == mover::system);
    CHECK_FALSE(choose_movement(r).by_caller);
    r = route(false, false, true, false);
    r.two_copies = "some reason";
    CHECK(choose_movement(r).two_copies.empty());  // no CPU copies that
}

TEST_CASE("a caller that may remember an earlier route stores nothing") {
    outgoing_route r = route(false, false, false, false);
    r.rematched = true;
    CHECK_FALSE(choose_movement(r).by_caller);
    CHECK(choose_movement(r).engine == mover::cpu);
    r.from_gpu = r.to_gpu = true;
    CHECK_FALSE(choose_movement(r).by_kernels);
}

TEST_CASE("what is not mapped is put by the engine, and packed before if it has gaps") {
    outgoing_route r = route(false, false, false, false);
    r.remote = true;
    CHECK(choose_movement(r).engine == mover::network);
    CHECK_FALSE(choose_movement(r).by_caller);
    CHECK_FALSE(choose_movement(r).packed_first);
    r.gaps = true;
    CHECK(choose_movement(r).packed_first);
}

TEST_CASE("a network reaches GPU memory itself, if it can and the buffer is in one piece") {
    gpu_end end{true, false, false, {}};
    CHECK(why_staged(end) == "");
    CHECK(why_staged(end, true) == "");
    CHECK(why_staged(end, false).find("the sender's network cannot") == 0);
    end.gaps = true;
    CHECK(why_staged(end) == "the buffer has gaps");
    CHECK(why_staged(end, true) == "the buffer has gaps");
    end = {true, false, true, {}};
    CHECK(why_staged(end, true) == "the message is empty");
    end = {true, true, false, failure("it is blind")};
    CHECK(why_staged(end) == "it is blind");
    CHECK(why_staged(end, true) == "it is blind");
    end = {false, true, true, failure("it is blind")};  // host memory is no matter of its
    CHECK(why_staged(end) == "");
    CHECK(why_staged(end, false) == "");
}

TEST_CASE("why a network does not read a GPU's buffer is said of such buffers alone") {
    outgoing_route r = route(true, false, false, false);
    r.staged = "it is blind";
    CHECK(choose_movement(r).staged == "");
    r.remote = true;
    CHECK(choose_movement(r).staged == "it is blind");
    CHECK(choose_movement(r).engine == mover::network);
    r.from_gpu = false;
    CHECK(choose_movement(r).staged == "");
}

TEST_CASE("nothing is posted to a queue that ends in GPU memory") {
    outgoing_route r = route(true, false, true, false);
    r.remote = true;
    r.bytes = 4096;
    r.partition_bytes = 1024;
    CHECK(choose_movement(r).not_posted.text() == "the network puts it into GPU memory");
    CHECK_FALSE(choose_movement(r).by_kernels);
    r.to_gpu = false;
    CHECK(choose_movement(r).not_posted.empty());
}

TEST_CASE("a GPU's buffers are moved by its copy engine, and by a kernel where there are gaps") {
    const auto engine = [](bool from_gpu, bool gaps, bool to_gpu, bool landing_gaps) {
        return choose_movement(route(from_gpu, gaps, to_gpu, landing_gaps)).engine;
    };
    CHECK(engine(true, false, true, false) == mover::copy_engine);
    CHECK(engine(true, true, true, false) == mover::kernel);
    CHECK(engine(true, false, true, true) == mover::kernel);
    CHECK(engine(true, false, false, false) == mover::copy_engine);
    CHECK(engine(true, true, false, false) == mover::kernel);
    CHECK(engine(false, false, true, false) == mover::copy_engine);
    CHECK(engine(false, true, true, false) == mover::copy_engine);  // packed by the CPU before
    CHECK(engine(false, false, true, true) == mover::kernel);
    CHECK(choose_movement(route(false, true, true, false)).packed_first);
    CHECK(choose_movement(route(false, true, true, true)).packed_first);
    CHECK_FALSE(choose_movement(route(true, true, true, false)).packed_first);
    CHECK_FALSE(choose_movement(route(true, true, false, false)).packed_first);
}

TEST_CASE("kernels store from GPU to GPU, with gaps by pready_typed only") {
    CHECK(choose_movement(route(true, false, true, false)).by_kernels);
    CHECK_FALSE(choose_movement(route(true, false, true, false)).typed_only);
    CHECK(choose_movement(route(true, true, true, false)).typed_only);
    CHECK(choose_movement(route(true, false, true, true)).typed_only);
    CHECK_FALSE(choose_movement(route(true, false, false, false)).by_kernels);
    CHECK_FALSE(choose_movement(route(true, true, false, false)).typed_only);
}

TEST_CASE("kernels use an inline buffer, gaps or not, where they store at all") {
    for (const bool gaps : {false, true})
        for (const bool landing_gaps : {false, true}) {
            outgoing_route r = route(true, gaps, true, landing_gaps);
            CHECK_FALSE(choose_movement(r).by_inline);
            r.inline_buffer = true;
            CHECK(choose_movement(r).by_inline);
            CHECK(choose_movement(r).typed_only == (gaps || landing_gaps));
            r.rematched = true;
            CHECK_FALSE(choose_movement(r).by_inline);
            r.rematched = false;
            r.to_gpu = false;
            CHECK_FALSE(choose_movement(r).by_inline);
        }
}

TEST_CASE(
    "exported sends to other nodes are posted to a queue, if each thread has little to stage, and all of them not too "
    "much") {
    constexpr std::uint64_t most = 64 * 1024 * 1024;
    const auto posted = [](bool from_gpu, bool gaps, std::uint64_t bytes, std::uint64_t partition_bytes) {
        outgoing_route r = route(from_gpu, gaps, false, false);
        r.remote = true;
        r.bytes = bytes;
        r.partition_bytes = partition_bytes;
        return choose_movement(r).not_posted.empty();
    };
    CHECK(posted(false, false, 2 * most, most));
    CHECK(posted(false, true, most, most));
    CHECK_FALSE(posted(false, true, most + 1, 8));
    CHECK(posted(true, false, most, 512 * 1024));
    CHECK_FALSE(posted(true, false, most, 512 * 1024 + 1));
    CHECK_FALSE(posted(true, false, most + 1, 8));
    CHECK_FALSE(posted(false, false, 0, 0));
    outgoing_route r = route(false, false, false, false);
    r.bytes = r.partition_bytes = 8;
    CHECK_FALSE(choose_movement(r).not_posted.empty());
    r.remote = true;
    CHECK(choose_movement(r).not_posted.empty());
    r.in_chunks = true;
    CHECK_FALSE(choose_movement(r).not_posted.empty());
    r.in_chunks = false;
    r.rematched = true;
    CHECK_FALSE(choose_movement(r).not_posted.empty());
    CHECK(least_posting_threads(0) == 1);
    CHECK(least_posting_threads(512) == 1);
    CHECK(least_posting_threads(513) == 2);
    CHECK(least_posting_threads(512 * 1024) == 1024);
}

TEST_CASE("the size decides how many slots a landing has") {
    CHECK(slots_for(0, 0) == 2);
    CHECK(slots_for(1, 0) == 1);
    CHECK(slots_for(1048576, 1048576) == 2);
    CHECK(slots_for(1048577, 1048576) == 1);
    constexpr std::uint64_t no_limit = ~std::uint64_t{0};
    CHECK(slots_for(no_limit, no_limit) == 2);
    const auto ranges = slot_ranges(1000);
    CHECK((ranges[0].least == 0 && ranges[0].most == 1000 && ranges[0].slots == 2));
    CHECK((ranges[1].least == 1001 && ranges[1].most == no_limit && ranges[1].slots == 1));
}

TEST_CASE("kernels leave to the engine what it takes less time for, the more of it there may be at once the less") {
    const copy_engine_costs costs{300, 10};
    const std::uint64_t alone = copy_engine_bytes(costs, 1);
    // At that size both take the same: a thread's stores, and the hand-over with a copy and a flag.
    CHECK(static_cast<double>(alone) / 300 > 20);
    CHECK(static_cast<double>(alone) / 300 < 30);
    CHECK(copy_engine_bytes(costs, 2) > alone);
    CHECK(copy_engine_bytes({600, 10}, 1) > alone);
    CHECK(copy_engine_bytes({300, 20}, 1) > alone);
    CHECK(copy_engine_bytes(costs, ~std::uint64_t{0}) <= std::uint64_t{1} << 48);
    // What could not be measured.
    CHECK(copy_engine_bytes({0, 10}, 1) == 0);
    CHECK(copy_engine_bytes({300, 0}, 1) == 0);
}

TEST_CASE(
    "the receiver's kernels read what lies in GPU memory, in one piece of whole words, and is neither small nor too "
    "large") {
    alignas(8) static char memory[16];
    const rget_end large{true, false, memory, 4096, 1000};
    const auto refused = [&large](const auto &change) {
        rget_end end = large;
        change(end);
        return why_no_rget(end).text();
    };
    CHECK(why_no_rget(large).empty());
    CHECK(refused([](rget_end &e) { e.on_gpu = false; }) == "the buffer is not GPU memory");
    CHECK(refused([](rget_end &e) { e.gaps = true; }) == "the buffer has gaps");
    const std::string words = "its partitions are not made of whole words of 8 bytes";
    CHECK(refused([](rget_end &e) { e.partition_bytes = 4100; }) == words);
    CHECK(refused([](rget_end &e) { e.buffer = memory + 4; }) == words);
    CHECK(refused([](rget_end &e) { e.buffer = memory + 8; }) == "");
    CHECK(refused([](rget_end &e) { e.partition_bytes = 992; }) ==
          "a partition has less than 1000 bytes (MPIX_RGET_BYTES)");
    CHECK(refused([](rget_end &e) { e.partition_bytes = e.least = 0; }) != "");
    CHECK(refused([](rget_end &e) { e.partition_bytes = 1024 * 1024; }) == "");
    CHECK(refused([](rget_end &e) { e.partition_bytes = 1024 * 1024 + 8; }) != "");
    config().rget_bytes = {false, 0};
    CHECK(why_no_rget(large).text() == "MPIX_RGET_BYTES is 0");
    config().rget_bytes = {false, 500};
    CHECK(why_no_rget(large).empty());
    CHECK(rget_threshold(300) == 500);
    config().rget_bytes = {true, 0};
    config().progress = progress_mode::never;
    CHECK(why_no_rget(large).text() == "MPIX_PROGRESS is never");
    config().progress = progress_mode::automatic;
    // Some microseconds of one thread's stores; what could not be measured.
    CHECK((rget_threshold(300) > 300 && rget_threshold(300) < 3000));
    CHECK(rget_threshold(0) == 0);
}

TEST_CASE("kernels leave to the receiver's what these may read, where they store at all") {
    outgoing_route r = route(true, false, true, false);
    r.rget_bytes = 1000;
    CHECK(choose_movement(r).rget_bytes == 1000);
    r.rematched = true;
    CHECK(choose_movement(r).rget_bytes == 0);
    r.rematched = false;
    r.no_rget = "some reason";
    CHECK(choose_movement(r).rget_bytes == 0);
    CHECK(choose_movement(r).no_rget.text() == "some reason");
}
