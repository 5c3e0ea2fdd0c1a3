// SPDX-License-Identifier: BSD-3-Clause
//
// Pready of a range whose partitions go by a work queue: how many entries are posted, what arrives, and what becomes of
// partitions that are refused or find no room. The software HCA steps when told.
#include <algorithm>
#include <functional>

// What the NIC does between two steps of ours.
static std::function<void()> meanwhile;
#define MPIX_ON_POST_STEP() (meanwhile ? meanwhile() : void())

#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <cstdlib>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/queue_bench.hpp"

using namespace queue_test;

namespace {

constexpr std::uint64_t starts[] = {0, 1, 0xfff9, 0xffff, 0x10000, 0xfffffffd, 0xffffffffffd};
constexpr unsigned char poison = 0xa5;

// A send whose entries are those of a bench, and the end's two behind them.
struct send {
    bench b;
    const int partitions;
    std::uint64_t complete = 0, epoch = 0, taken = 0;
    std::vector<wqe> blocks;
    mpix_posting posting;
    mpix_words words{};
    std::vector<mpix_ring_entry> ring;
    std::unique_ptr<void, void (*)(void *)> memory;
    mpix_prequest *const r;
    std::mt19937 random{7};

    explicit send(const bench_shape &s)
        : b(s),
          partitions(static_cast<int>(s.partitions)),
          blocks(b.blocks),
          posting(b.posting),
          ring(s.partitions),
          memory(std::calloc(1, mpix_prequest_size(MPIX_KIND_SEND, partitions)), &std::free),
          r(static_cast<mpix_prequest *>(memory.get())) {
        std::uint64_t *const whole = &b.flags.back();
        for (std::uint64_t *const word : {whole, &complete})
            blocks.push_back(make_flag_write(queue_memory::qpn,
                                             {bench::address(word), b.remote.add(word, 8, may_write_remotely)}, 0,
                                             word == &complete));
        posting.blocks = blocks.data();
        r->head = send_head;
        r->partitions = partitions;
        r->contributors = 1;
        r->partition_bytes = s.bytes;
        r->buffer = reinterpret_cast<char *>(b.out.data());
        r->words = &words;
        r->ring = ring.data();
        r->slots = 1;
        r->postings = &posting;
    }
    void start(bool open = true) {
        ++epoch;
        for (auto &byte : b.out) byte = static_cast<unsigned char>(random());
        std::fill(b.in.begin(), b.in.end(), poison);
        if (open) words.clear_to_send = epoch;
        words.epoch = 2 * epoch + 1;
    }
    int range(int low, int high) { return mpix::pready_range(mpix::this_thread(), low, high, r); }
    std::uint64_t state(int p) const { return partition_states(r)[p]; }
    bool untouched(int p) const {
        const auto from = b.in.begin() + static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(p) * b.layout.bytes);
        return b.flags[static_cast<std::size_t>(p)] == epoch - 1 &&
               std::all_of(from, from + static_cast<std::ptrdiff_t>(b.layout.bytes),
                           [](auto byte) { return byte == poison; });
    }
    bool there(int p) const {
        return b.flags[static_cast<std::size_t>(p)] == epoch && b.arrived(static_cast<std::uint64_t>(p));
    }
    // The engine's part. What was deferred has not been touched by the queue.
    std::uint64_t move_deferred() {
        const std::uint64_t before = taken;
        for (; taken < r->defer_count; ++taken) {
            const std::uint64_t entry = ring[taken % ring.size()];
            REQUIRE(entry >> 32 == (epoch & 0xffffffff));
            const int p = static_cast<int>(entry & 0xffffffff);
            REQUIRE(untouched(p));
            const auto n = static_cast<std::size_t>(p);
            std::copy_n(b.out.begin() + static_cast<std::ptrdiff_t>(n * b.layout.from_stride), b.layout.bytes,
                        b.in.begin() + static_cast<std::ptrdiff_t>(n * b.layout.bytes));
            b.flags[n] = epoch;
        }
        return taken - before;
    }
    // All has arrived once, and the end was told of where it was posted.
    void finish() {
        b.hca.run();
        const std::uint64_t deferred = move_deferred();
        for (int p = 0; p < partitions; ++p) REQUIRE((there(p) && state(p) == epoch));
        REQUIRE(words.all_ready == epoch);
        REQUIRE(words.posted == r->posted);
        REQUIRE(r->ready_count == epoch * static_cast<std::uint64_t>(partitions));
        if (deferred != 0) REQUIRE(words.ended != epoch);
        REQUIRE((b.flags.back() == epoch) == (words.ended == epoch));
        REQUIRE((complete == epoch) == (words.ended == epoch));
        b.flags.back() = complete = epoch;
        REQUIRE(words.error == 0);
        words.epoch = 2 * epoch;
        REQUIRE((b.q.error == 0 && b.hca.counts.torn == 0 && b.hca.counts.failed == 0));
    }
};

}  // namespace

TEST_CASE("neighbours are one payload entry, and one for each three flags") {
    const std::uint64_t start = GENERATE(from_range(std::begin(starts), std::end(starts)));
    const bool abut = GENERATE(true, false);
    send s({.log_sq = 6,
            .log_cq = 6,
            .first_block = start,
            .partitions = 40,
            .bytes = 24,
            .gap = abut ? std::uint64_t{0} : std::uint64_t{5}});
    for (int low : {0, 1, 17})
        for (int count = 1; count <= 40 - low; count += count < 10 ? 1 : 5) {
            CAPTURE(low, count);
            s.start();
            const std::uint64_t before = s.b.q.head, executed = s.b.hca.counts.executed;
            REQUIRE(s.range(low, low + count - 1) == MPI_SUCCESS);
            const auto n = static_cast<std::uint64_t>(count);
            const std::uint64_t entries = (abut ? 1 : n) + (n + 2) / 3;
            const bool all = count == s.partitions;
            CHECK(s.b.q.head - before == entries + (all ? 2 : 0));
            CHECK(s.r->posted == s.b.q.head);
            s.b.hca.run();
            CHECK(s.b.hca.counts.executed - executed == entries + (all ? 2 : 0));
            for (int p = 0; p < s.partitions; ++p) {
                const bool in = p >= low && p < low + count;
                REQUIRE((in ? s.there(p) : s.untouched(p)));
                REQUIRE((s.state(p) == s.epoch) == in);
            }
            CHECK(s.r->ready_count == (s.epoch - 1) * 40 + n);
            CHECK(s.words.all_ready == (all ? s.epoch : s.epoch - 1));
            // The others, one by one.
            poll_queue(&s.b.q);
            for (int p = 0; p < s.partitions; ++p) {
                if (p >= low && p < low + count) continue;
                REQUIRE(mpix::pready(mpix::this_thread(), p, s.r) == MPI_SUCCESS);
                s.b.hca.run();
            }
            s.finish();
            CHECK(s.words.ended == s.epoch);
        }
    CHECK(s.b.hca.counts.strange_kicks == 0);
}

TEST_CASE("through many laps of a tiny queue, which is full most of the time") {
    const std::uint64_t start = GENERATE(from_range(std::begin(starts), std::end(starts)));
    const std::uint32_t log_sq = GENERATE(1u, 2u, 3u);
    send s({.log_sq = log_sq, .log_cq = 3, .first_block = start, .partitions = 23, .bytes = 11});
    std::uint64_t deferred = 0;
    for (int e = 0; e < 60; ++e) {
        s.start();
        // The NIC comes by now and then, or when we are through.
        if (e % 3 != 0)
            meanwhile = [&] {
                if (s.random() % 4 == 0) s.b.hca.run();
            };
        for (int low = 0; low < s.partitions;) {
            const int high = std::min(s.partitions - 1, low + static_cast<int>(s.random() % 12));
            REQUIRE(s.range(low, high) == MPI_SUCCESS);
            low = high + 1;
        }
        meanwhile = nullptr;
        const std::uint64_t before = s.r->defer_count;
        deferred += before - s.taken;
        s.finish();
    }
    CHECK(deferred > 0);
    CHECK(deferred < 60 * 23);
    CHECK(s.b.q.head > start + 60 * 2);
}

TEST_CASE("groups of several threads post ranges, some after they have packed them") {
    const bool staged = GENERATE(false, true);
    send s({.log_sq = 5, .log_cq = 5, .partitions = 30, .bytes = 100});
    std::vector<unsigned char> source(s.b.out.size());
    if (staged) {  // the entries read what was `out`, and the user's buffer is another
        s.r->buffer = reinterpret_cast<char *>(source.data());
        s.posting.staging = reinterpret_cast<char *>(s.b.out.data());
    }
    for (int e = 0; e < 20; ++e) {
        s.start();
        if (staged) {
            source = s.b.out;
            std::fill(s.b.out.begin(), s.b.out.end(), poison);
        }
        const int share = 2 + e % 9, pieces = (s.partitions + share - 1) / share;
        mpix::host_launch(3, 4, [&](const mpix::host_group &group) {
            for (int k = group.group_rank(); k < pieces; k += 3)
                if (mpix::pready_range(group, k * share, std::min(s.partitions, (k + 1) * share) - 1, s.r) !=
                    MPI_SUCCESS)
                    std::abort();
        });
        s.b.hca.run();
        if (staged && s.r->defer_count == s.taken) REQUIRE(s.b.out == source);
        s.b.out = staged ? source : s.b.out;
        s.finish();
    }
}

TEST_CASE("a range stops where a partition is ready already, and what is before that is posted") {
    send s({.log_sq = 6, .log_cq = 6, .partitions = 12});
    for (const int twice : {5, 2, 8}) {
        CAPTURE(twice);
        s.start();
        REQUIRE(mpix::pready(mpix::this_thread(), twice, s.r) == MPI_SUCCESS);
        const std::uint64_t before = s.b.q.head;
        CHECK(s.range(2, 8) == MPI_ERR_ARG);
        const auto posted = static_cast<std::uint64_t>(twice - 2);
        CHECK(s.b.q.head - before == (posted == 0 ? 0 : 1 + (posted + 2) / 3));
        CHECK((s.words.error >> 48 & 0xff) == MPIX_CAUSE_READY);
        CHECK((s.words.error & 0xffffffffu) == static_cast<std::uint64_t>(twice + 1));
        CHECK(s.r->ready_count == (s.epoch - 1) * 12 + posted + 1);
        s.b.hca.run();
        for (int p = 0; p < s.partitions; ++p)
            CHECK((p == twice || (p >= 2 && p < twice) ? s.there(p) : s.untouched(p)));
        s.words.error = 0;
        CHECK(s.range(0, 1) == MPI_SUCCESS);
        if (twice < 8) CHECK(s.range(twice + 1, 8) == MPI_SUCCESS);
        CHECK(s.range(9, 11) == MPI_SUCCESS);
        s.finish();
    }
}

TEST_CASE("arguments are looked at before anything is posted") {
    send s({.partitions = 4});
    s.start();
    CHECK(s.range(-1, 2) == MPI_ERR_ARG);
    CHECK(s.range(0, 4) == MPI_ERR_ARG);
    CHECK(s.range(2, 1) == MPI_ERR_ARG);
    CHECK(mpix::pready_range(mpix::this_thread(), 0, 1, MPIX_PREQUEST_NULL) == MPI_ERR_REQUEST);
    s.words.epoch = 2 * s.epoch;
    CHECK(s.range(0, 3) == MPI_ERR_REQUEST);
    CHECK(s.b.q.head == 0);
    CHECK(s.r->ready_count == 0);
    CHECK(s.r->defer_count == 0);
}

TEST_CASE("without clear-to-send, or by a broken queue, a range is deferred, each partition once") {
    send s({.log_sq = 6, .log_cq = 6, .partitions = 9});
    s.start(false);
    CHECK(s.range(0, 4) == MPI_SUCCESS);
    CHECK(s.b.q.head == 0);
    CHECK(s.r->defer_count == 5);
    s.words.clear_to_send = 1;
    CHECK(s.range(5, 8) == MPI_SUCCESS);
    CHECK(s.b.q.head == 1 + 2);
    CHECK(s.r->defer_count == 5);
    s.finish();
    s.start();
    s.b.q.error = queue_error(syndrome_retries_exceeded, 0, 0);
    CHECK(s.range(0, 8) == MPI_SUCCESS);
    CHECK(s.b.q.head == 1 + 2);
    CHECK(s.r->defer_count == 5 + 9);
    s.b.q.error = 0;
    s.finish();
}
