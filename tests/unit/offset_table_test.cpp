// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes with gaps inline: packets that groups of host threads gather from one random type and scatter to another,
// as groups of GPU threads do; against the offsets that the standard gives the types. Every byte of the receiver's is
// checked.
#include "host/export/offset_table.h"

#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "host/datatype/decode.h"
#include "host/export/inline_drain.h"
#include "tests/catch.hpp"
#include "tests/unit/random_type.hpp"

using namespace mpix;

namespace {

// A message in a user's buffer, with room around that nothing may touch.
struct side {
    sample made;
    std::shared_ptr<const plan> type;  // null: no gaps
    std::int64_t size = 1, extent = 1, low = 0;
    std::vector<unsigned char> memory;
    std::vector<std::int64_t> table;
    std::int64_t piece = 0;

    std::int64_t offset(std::int64_t x) const {
        return type == nullptr ? x : x / size * extent + made.map[static_cast<std::size_t>(x % size)];
    }
    std::size_t at(std::int64_t x) const {
        return static_cast<std::size_t>(buffer_ - reinterpret_cast<std::uintptr_t>(memory.data())) +
               static_cast<std::size_t>(offset(x));
    }
    char *buffer() const { return reinterpret_cast<char *>(buffer_); }
    const std::int64_t *offsets() const { return type == nullptr ? nullptr : detail::offsets_in(table.data(), piece); }

    // False: too far apart, or not to be received.
    bool lay_out(std::int64_t bytes, unsigned skew) {
        std::int64_t high = low = offset(0);
        for (std::int64_t x = 0; x < bytes; ++x) {
            low = std::min(low, offset(x));
            high = std::max(high, offset(x) + 1);
        }
        if (high - low > 200000) return false;
        memory.resize(static_cast<std::size_t>(high - low) + 160);
        // Element 0 is aligned, except for the skew.
        const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(memory.data())) + 64 - low;
        buffer_ = static_cast<std::uintptr_t>((begin + 15) / 16 * 16 + skew);
        std::vector<bool> used(memory.size());
        for (std::int64_t x = 0; x < bytes; ++x) {
            if (used[at(x)]) return false;
            used[at(x)] = true;
        }
        if (type == nullptr) return true;
        const offset_table message{*type, buffer(), static_cast<std::uint64_t>(bytes)};
        table = message.offsets();
        piece = message.piece();
        for (const std::int64_t place : table)
            REQUIRE((buffer_ + static_cast<std::uintptr_t>(place)) % static_cast<std::uintptr_t>(piece) == 0);
        return true;
    }

private:
    std::uintptr_t buffer_ = 0;
};

// Small types mostly, for a partition may be small. False: not one for this test.
bool draw(side &s, type_maker &maker, bool gapless) {
    if (gapless) return true;
    s.made = maker.make(maker.below(4));
    if (s.made.map.empty() || s.made.map.size() > (maker.below(2) == 0 ? 64u : 300u)) return false;
    status why;
    s.type = plan_of(s.made.type, why);
    REQUIRE(s.type != nullptr);
    s.size = s.type->size;
    s.extent = s.type->extent;
    return true;
}

struct request_memory {
    std::vector<std::uint64_t> words;
    mpix_prequest *r;
    request_memory(mpix_kind kind, int partitions, const side &s, std::uint64_t partition_bytes)
        : words(mpix_prequest_size(kind, partitions) / 8 + 2),
          r(reinterpret_cast<mpix_prequest *>((reinterpret_cast<std::uintptr_t>(words.data()) + 15) / 16 * 16)) {
        r->head = MPIX_ABI_VERSION | std::uint64_t{kind} << 32;
        r->partitions = partitions;
        r->contributors = 1;
        r->partition_bytes = partition_bytes;
        r->buffer = s.buffer();
        r->offsets = s.offsets();
    }
};

struct tally {
    int done = 0, both = 0, ragged = 0, at_once = 0, within = 0, below = 0;
    int piece[9] = {};
};

void deliver(side &from, side &to, int senders, int receivers, std::uint64_t bytes, type_maker &maker,
             std::mt19937_64 &random, tally &t) {
    const std::uint64_t total = bytes * static_cast<std::uint64_t>(senders);
    const inline_buffer_layout layout = inline_buffer_for(static_cast<std::uint64_t>(senders), bytes, bytes);
    std::vector<std::uint64_t> memory(layout.all / 8 + 16), told(static_cast<std::size_t>(senders));
    auto *const arrival = reinterpret_cast<char *>((reinterpret_cast<std::uintptr_t>(memory.data()) + 127) / 128 * 128);
    const request_memory send(MPIX_KIND_SEND, senders, from, bytes),
        receive(MPIX_KIND_RECV, receivers, to, total / static_cast<std::uint64_t>(receivers));
    receive.r->flags = reinterpret_cast<std::uint64_t *>(arrival);
    receive.r->inline_buffer = send.r->inline_buffer = arrival + layout.packets;
    receive.r->told = told.data();
    receive.r->peer_partitions = static_cast<std::uint64_t>(senders);
    const int threads = maker.between(1, 4), takers = maker.between(1, 2);
    for (std::uint64_t epoch = 2; epoch < 4; ++epoch) {
        send.r->open_word = 2 * epoch + 1;
        receive.r->seen_epoch = epoch;
        send.r->ready_count = (epoch - 1) * static_cast<std::uint64_t>(senders);
        for (unsigned char &byte : from.memory) byte = static_cast<unsigned char>(random());
        std::fill(to.memory.begin(), to.memory.end(), static_cast<unsigned char>(0x5a));
        std::vector<unsigned char> expected = to.memory;
        for (std::int64_t x = 0; x < static_cast<std::int64_t>(total); ++x)
            expected[to.at(x)] = from.memory[from.at(x)];
        std::atomic<bool> good{true};
        std::atomic<int> at_once{0};
        std::thread receiver([&] {
            host_launch(takers, threads, [&](const host_group &group) {
                for (int j = 0; j < receivers; ++j)
                    if (detail::await_together(group, receive.r, j, detail::waiters::any, true,
                                               detail::now_ns() + 20'000'000'000u, false) != detail::waited::there)
                        good = false;
            });
        });
        host_launch(1, threads, [&](const host_group &group) {
            for (int p = 0; p < senders; ++p) {
                const detail::stored s = detail::store_small<false>(group, send.r, p, {});
                if (s.epoch == 0)
                    detail::store_packets<true>(send.r, p, static_cast<unsigned>(group.thread_rank()),
                                                static_cast<unsigned>(threads));
                else if (s.sent_inline && group.thread_rank() == 0)
                    ++at_once;
            }
        });
        receiver.join();
        REQUIRE(good);
        REQUIRE(to.memory == expected);
        t.at_once += at_once;
    }
    ++t.done;
    t.both += from.type != nullptr && to.type != nullptr;
    t.ragged += to.type != nullptr && bytes % 8 != 0;
    t.within += to.type != nullptr && bytes % static_cast<std::uint64_t>(to.size) != 0;
    t.below += to.low < 0;
    ++t.piece[to.piece];
}

}  // namespace

TEST_CASE("lines are gathered from any type, and scattered to any other") {
    std::mt19937_64 random(Catch::rngSeed());
    tally t;
    for (int n = 0; n < 1000; ++n) {
        type_maker maker(random());
        side from, to;
        if (!draw(from, maker, n % 3 == 1) || !draw(to, maker, n % 5 == 2)) continue;
        const int receivers = maker.between(1, 6), senders = maker.between(1, receivers);
        const std::int64_t unit = std::lcm(from.size * senders, to.size * receivers);
        if (unit > 3000) continue;
        const std::int64_t total = unit * maker.between(1, unit < 500 ? 4 : 1);
        const std::int64_t bytes = total / senders;
        const unsigned skew = maker.below(3) == 0 ? static_cast<unsigned>(maker.below(16)) : 0;
        if (!from.lay_out(total, skew) || !to.lay_out(total, skew)) continue;
        // As the receiver decides, which knows both sides' partitions.
        if (to.type != nullptr && bytes % to.piece != 0) continue;
        CAPTURE(n, from.made.text, to.made.text, senders, receivers, bytes, skew, from.piece, to.piece);
        deliver(from, to, senders, receivers, static_cast<std::uint64_t>(bytes), maker, random, t);
    }
    // Enough of all kinds.
    CHECK(t.done > 200);
    CHECK(t.both > 80);
    CHECK(t.ragged > 40);
    CHECK(t.at_once > 40);
    CHECK(t.within > 8);
    CHECK(t.below > 20);
    for (const int piece : {1, 2, 4, 8}) {
        CAPTURE(piece);
        CHECK(t.piece[piece] > 8);
    }
}

TEST_CASE("pieces are as long as the type and the buffer allow") {
    status why;
    MPI_Datatype column = MPI_DATATYPE_NULL;
    PMPI_Type_vector(5, 1, 3, MPI_DOUBLE, &column);
    const std::shared_ptr<const plan> type = plan_of(column, why);
    REQUIRE(type != nullptr);
    PMPI_Type_free(&column);
    alignas(16) char buffer[16];
    CHECK(offset_table{*type, buffer, 80}.piece() == 8);
    CHECK(offset_table{*type, buffer + 8, 80}.piece() == 8);
    CHECK(offset_table{*type, buffer + 4, 80}.piece() == 4);
    CHECK(offset_table{*type, buffer + 3, 80}.piece() == 1);
    // An element's extent is 104 bytes.
    const std::vector<std::int64_t> expected = {0, 24, 48, 72, 96, 104, 128, 152, 176, 200};
    CHECK(offset_table{*type, buffer, 80}.offsets() == expected);
}
