// SPDX-License-Identifier: BSD-3-Clause
//
// Prepared tiles of halo exchanges, on the ways of GPU threads, gone by host threads (MPIX_FAKE_GPU). One group has a tile
// whose cells it sends to itself.
#include <mpix/halo.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace {

using namespace fake;
namespace halo = mpix::halo;
using halo::detail::device_copy;

constexpr int most_sets = 8;
constexpr std::size_t field_bytes = 4096, message_bytes = 2048;

struct alignas(16) field {
    std::array<std::byte, field_bytes> bytes;
};

struct tile_shape {
    int word_bytes, copies, threads;
    std::uint64_t padding;   // behind the copies, in their partition
    int parcels = 1;         // each is a partition, the first one the last
    std::uint32_t runs = 3;  // of a copy, at most, along the first axis
    int sets = 2;
    bool in_pieces() const { return word_bytes < 4; }
    bool is_kept() const { return !in_pieces() && copies <= 2; }
};

// A tile that sends some runs of cells to itself, by as many requests as there are sets.
class tile_that_sends_to_itself {
public:
    tile_that_sends_to_itself(const tile_shape &s, std::mt19937_64 &random) {
        const auto pick = [&](std::uint32_t low, std::uint32_t high) {
            return low + static_cast<std::uint32_t>(random() % (high - low + 1));
        };
        std::int64_t place = 0;
        std::vector<std::int64_t> length(static_cast<std::size_t>(s.parcels));
        for (int k = 0; k < s.parcels * s.copies; ++k) {
            device_copy c{};
            c.word_bytes = s.word_bytes;
            c.words = pick(1, s.runs) * 16 / static_cast<unsigned>(s.word_bytes);
            const std::int64_t run = std::int64_t{c.words} * c.word_bytes;
            std::int64_t distance = run;
            for (int loop = 0; loop < 3; ++loop) {
                c.count[loop] = pick(1, loop == 0 ? s.runs : (s.runs + 1) / 2);
                c.stride[loop] = distance + 16 * pick(0, 1);
                distance = c.stride[loop] * c.count[loop];
            }
            c.by_words = divisor(c.words);
            c.by_count[0] = divisor(c.count[0]);
            c.by_count[1] = divisor(c.count[1]);
            c.claim = -1;
            std::int64_t &at = length[static_cast<std::size_t>(k / s.copies)];
            c.in_message = at;
            at += run * c.count[0] * c.count[1] * c.count[2];
            set_cells(c, place);
            sends.push_back(c);
            place += distance;
        }
        REQUIRE(place <= std::int64_t{field_bytes} / 2);
        bytes = static_cast<std::uint64_t>(*std::max_element(length.begin(), length.end())) + s.padding;
        if (s.parcels > 1) bytes = (bytes + 15) / 16 * 16;  // words are aligned in all partitions
        REQUIRE(bytes * static_cast<std::uint64_t>(s.parcels) <= message_bytes);
        for (int k = 0; k < s.parcels * s.copies; ++k) {
            const int parcel = k / s.copies;
            device_copy &c = sends[static_cast<std::size_t>(k)];
            c.in_message += (s.parcels - 1 - parcel) * static_cast<std::int64_t>(bytes);
            device_copy to = c;
            to.in_message += message_bytes;
            set_cells(to, c.cells[0] - fields[0].bytes.data() + field_bytes / 2);
            to.parcel = s.parcels + parcel;
            ghosts.push_back(to);
        }

        pair_shape shape{};
        shape.senders = shape.receivers = s.parcels;
        shape.bytes = bytes;
        shape.inline_buffer = true;
        shape.inline_from = 1;
        shape.matched_late = true;
        shape.sole = true;
        for (int set = 0; set < s.sets; ++set) {
            pairs.push_back(std::make_unique<fake_pair>(shape));
            fake_pair &pair = *pairs.back();
            std::byte *const messages = messages_memory->data() + set * 2 * message_bytes;
            pair.sending()->buffer = reinterpret_cast<char *>(messages);
            pair.receiving()->buffer = reinterpret_cast<char *>(messages + message_bytes);
            pair.match();
            pair.start_receive(1);
            pair.clear_to_send(1);
            pair.start_send(1);
            requests.push_back(pair.receive());
            requests.push_back(pair.send());
        }
        copies = sends;
        copies.insert(copies.end(), ghosts.begin(), ghosts.end());
        const std::int32_t count = s.parcels * s.copies;
        tile.sends_begin = 0, tile.sends_end = tile.waits_begin = s.parcels, tile.waits_end = 2 * s.parcels;
        tile.cells = {{1, 2, 3}, {4, 5, 6}};
        tile.ghosts = {count, 2 * count, 2 * count};
        for (std::int32_t k = 0; k < 2 * s.parcels; ++k) {
            const std::int32_t partition = s.parcels - 1 - k % s.parcels, first = k * s.copies;
            parcels.push_back({.message = 0, .first = partition, .last = partition, .copies = {}});
            if (k < s.parcels) parcels.back().copies = {first, first + s.copies, first + s.copies};
        }
        x.version_ = MPIX_ABI_VERSION;
        x.tiles_ = &tile;
        x.parcels_ = parcels.data();
        x.copies_ = copies.data();
        x.messages_ = messages_memory->data();
        x.set_bytes_ = 2 * message_bytes;
        x.requests_ = requests.data();
        x.receive_handles_ = receive_handles.data();
        x.send_handles_ = send_handles.data();
        x.words_ = words.data();
        x.tiles_count_ = x.boundary_count_ = 1;
        x.receives_ = x.sends_ = 1;
        x.sets_ = s.sets;
        x.stall_ns_ = patience_ns;
    }

    bool is_inline(int threads) const { return is_inline_capable(requests[1], static_cast<unsigned>(threads)); }

    // Cells in, poison elsewhere.
    void fill(int allocation, std::mt19937_64 &random) {
        std::array<std::byte, field_bytes> &f = fields[static_cast<std::size_t>(allocation)].bytes;
        for (std::size_t i = 0; i < field_bytes; ++i)
            f[i] = i < field_bytes / 2 ? static_cast<std::byte>(random()) : poison;
    }
    void poison_messages() { messages_memory->fill(poison); }
    bool messages_are_untouched() const {
        return std::all_of(messages_memory->begin(), messages_memory->end(), [](std::byte b) { return b == poison; });
    }
    // The ghost cells, and every other byte.
    bool right(int allocation, const std::array<std::byte, field_bytes> &before) const {
        std::array<std::byte, field_bytes> expected = before;
        const auto &f = fields[static_cast<std::size_t>(allocation)].bytes;
        for (const device_copy &c : sends)
            for (std::uint32_t k = 0; k < c.count[2]; ++k)
                for (std::uint32_t j = 0; j < c.count[1]; ++j)
                    for (std::uint32_t i = 0; i < c.count[0]; ++i) {
                        const std::ptrdiff_t at =
                            c.cells[allocation] - f.data() + i * c.stride[0] + j * c.stride[1] + k * c.stride[2];
                        std::copy_n(before.begin() + at, c.words * static_cast<unsigned>(c.word_bytes),
                                    expected.begin() + at + field_bytes / 2);
                    }
        return f == expected;
    }

    static constexpr std::byte poison{0x5a};
    std::uint64_t bytes = 0;
    std::array<field, 2> fields;
    std::unique_ptr<std::array<std::byte, most_sets * 2 *message_bytes>> messages_memory =
        std::make_unique<std::array<std::byte, most_sets * 2 * message_bytes>>();
    std::vector<device_copy> sends, ghosts, copies;
    std::vector<std::unique_ptr<fake_pair>> pairs;
    std::vector<MPIX_Prequest> requests;
    std::vector<halo::detail::device_parcel> parcels;
    halo::detail::device_tile tile{};
    std::array<halo::detail::stored_handle<mpix::prepared_receive>, most_sets> receive_handles{};
    std::array<halo::detail::stored_handle<mpix::prepared_send>, most_sets> send_handles{};
    std::array<std::uint64_t, halo::device_exchange::begun_at + most_sets> words{};
    halo::device_exchange x{};

    static mpix_narrow_divisor divisor(std::uint32_t by) {
        return mpix::detail::narrowed(mpix::detail::make_divisor(std::int64_t{by}));
    }

private:
    void set_cells(device_copy &c, std::int64_t place) {
        for (std::size_t i = 0; i < 2; ++i) c.cells[i] = fields[i].bytes.data() + place;
    }
};

// A group of one thread, beside the hosts' progress.
class played_tile : public tile_that_sends_to_itself {
public:
    explicit played_tile(const tile_shape &s, std::mt19937_64 &random)
        : tile_that_sends_to_itself(s, random), engine_([this] {
              for (backoff wait; !ended_.load(); wait.pause())
                  for (const auto &pair : pairs) pair->progress_of_kernels(1);
          }) {
        x.steps_ = 100;
        halo::prepare(self, x, 0, mine);
    }
    ~played_tile() {
        ended_.store(true);
        engine_.join();
    }
    // What the exchange's cells and all else of its allocation are before it.
    const std::array<std::byte, field_bytes> &fill_for(std::int64_t step, std::mt19937_64 &random) {
        fill(x.allocation_(step), random);
        poison_messages();
        return before = fields[static_cast<std::size_t>(x.allocation_(step))].bytes;
    }
    void exchange(std::int64_t first, std::int64_t last, std::mt19937_64 &random) {
        for (std::int64_t step = first; step <= last; ++step) {
            fill_for(step, random);
            CHECK(halo::send(self, x, mine, step) == MPI_SUCCESS);
            CHECK(halo::sync_blocks(self, x, 1, &mine, 1, step) == MPI_SUCCESS);
            CHECK(right(x.allocation_(step), before));
            if (step != last) CHECK(halo::next(self, x, step) == MPI_SUCCESS);
        }
    }

    static constexpr mpix::thread_group self{};
    halo::prepared_tile mine;
    std::array<std::byte, field_bytes> before;

private:
    std::atomic<bool> ended_{false};
    std::thread engine_;
};

// Small enough to go inline by one thread.
constexpr tile_shape small{.word_bytes = 8, .copies = 1, .threads = 1, .padding = 0, .parcels = 1, .runs = 1};

}  // namespace

TEST_CASE("a group that keeps what it knows of a tile") {
    std::mt19937_64 random(Catch::rngSeed());
    int straight_rounds = 0;
    for (int round = 0; round < 64; ++round) {
        constexpr std::array word_bytes{4, 8, 16, 2};
        tile_shape s{.word_bytes = word_bytes[random() % 4],
                     .copies = 1 + static_cast<int>(random() % 3),
                     // From 97 on, threads share the work in the barrier.
                     .threads = round % 16 == 0  ? 97 + static_cast<int>(random() % 32)
                                : round % 2 == 0 ? 33 + static_cast<int>(random() % 8)
                                                 : 1 + static_cast<int>(random() % 4),
                     .padding = 8 * (random() % 3),
                     .parcels = 1 + static_cast<int>(random() % 2),
                     .runs = 2,
                     .sets = 2 << random() % 3};
        if (s.copies == 3) s.parcels = 1;
        // In the others the barrier does not wait, or some sends look the tile up.
        const bool by_barrier = random() % 3 != 0, always_kept = random() % 2 == 0;
        CAPTURE(round, s.word_bytes, s.copies, s.threads, s.padding, s.parcels, s.sets, by_barrier, always_kept);
        tile_that_sends_to_itself t(s, random);
        const int steps = 2 * s.sets + 8;
        t.x.steps_ = steps;
        halo::prepared_tile mine;
        std::array<std::byte, field_bytes> before;
        std::atomic<const char *> failure{nullptr};
        std::atomic<int> straight{0}, claimed{0};
        std::atomic<bool> ended{false};
        const std::uint64_t seed = random();
        std::mt19937_64 cells(seed + 1);
        std::thread group([&] {
            mpix::host_launch(1, s.threads, [&](const mpix::host_group &g) {
                std::mt19937_64 same(seed);  // in all members
                const auto expect = [&](bool good, const char *what) {
                    if (!good) failure.store(what);
                };
                halo::prepare(g, t.x, 0, mine);
                expect(mine.number() == 0 && mine.cells() == t.tile.cells, "the tile");
                expect(mine.sends_ == (s.is_kept() && t.is_inline(s.threads) ? s.parcels : -1) &&
                           mine.waits_ == mine.sends_,
                       "what is kept");
                for (std::int64_t step = 0; step < steps; ++step) {
                    const int allocation = t.x.allocation_(step);
                    if (g.thread_rank() == 0) {
                        t.fill(allocation, cells);
                        before = t.fields[static_cast<std::size_t>(allocation)].bytes;
                        t.poison_messages();
                    }
                    g.sync();
                    // What is claimed can't be sent by number.
                    const bool by_tile = by_barrier || always_kept || same() % 4 != 0;
                    const int sent = by_tile ? halo::send(g, t.x, mine, step) : halo::send(g, t.x, 0, step);
                    const int waited =
                        by_barrier ? halo::sync_blocks(g, t.x, 1, &mine, 1, step) : halo::wait(g, t.x, 0, step);
                    if (g.thread_rank() == 0)
                        for (int k = 0; k < mine.sends_; ++k) claimed += mine.sent_[k].claimed == step + 1;
                    expect(sent == MPI_SUCCESS && waited == MPI_SUCCESS, "a call has failed");
                    if (g.thread_rank() == 0) {
                        expect(t.right(allocation, before), "ghost cells");
                        straight += t.messages_are_untouched();
                    }
                    g.sync();
                    expect(halo::next(g, t.x, step) == MPI_SUCCESS, "next");
                }
            });
            ended.store(true);
        });
        for (backoff wait; !ended.load(); wait.pause())
            for (const auto &pair : t.pairs) pair->progress_of_kernels(1);
        group.join();
        INFO(std::string(failure.load() == nullptr ? "" : failure.load()));
        CHECK(failure.load() == nullptr);
        // The host has begun the first exchange of each set; the second one's handle is looked up.
        const bool goes_straight = s.is_kept() && t.is_inline(s.threads);
        CHECK(straight == (goes_straight && by_barrier ? steps - 2 * s.sets : 0));
        CHECK(claimed == (goes_straight && by_barrier ? s.parcels * (steps - 2 * s.sets) : 0));
        straight_rounds += goes_straight && by_barrier;
        CHECK(t.words[halo::device_exchange::failed_at] == 0);
    }
    CHECK(straight_rounds != 0);
}

TEST_CASE("calls on a prepared tile after a call has failed") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const std::uint64_t padding : {0, 512}) {
        for (const bool before_send : {true, false}) {
            tile_shape s = small;
            s.padding = padding;
            played_tile t(s, random);
            REQUIRE(t.is_inline(1) == (padding == 0));
            t.exchange(0, 4, random);
            CHECK(t.mine.sends_ == (padding == 0 ? 1 : -1));
            if (padding == 0) CHECK(t.mine.sent_[0].claimed == 5);
            CHECK(halo::next(t.self, t.x, 4) == MPI_SUCCESS);
            t.fill_for(5, random);
            if (!before_send) CHECK(halo::send(t.self, t.x, t.mine, 5) == MPI_SUCCESS);
            t.words[halo::device_exchange::failed_at] = halo::device_exchange::next_failed;
            // What the barrier has claimed goes even so.
            if (before_send) CHECK(halo::send(t.self, t.x, t.mine, 5) == (padding == 0 ? MPI_SUCCESS : MPI_ERR_OTHER));
            CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 5) == MPI_ERR_OTHER);
            if (padding == 0) CHECK(t.mine.sent_[0].claimed != 6);
            if (padding == 0) CHECK(halo::send(t.self, t.x, t.mine, 6) == MPI_ERR_OTHER);
            CHECK(halo::send(t.self, t.x, t.mine, 100) == MPI_SUCCESS);  // there is no such exchange
        }
    }
}

TEST_CASE("a prepared tile is waited for while other groups have not come to the barrier") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const bool one_allocation : {false, true}) {
        played_tile t(small, random);
        const std::int64_t step = one_allocation ? 0 : 5;
        if (one_allocation) {
            t.copies[1].cells[1] = t.copies[1].cells[0];
            halo::prepare(t.self, t.x, 0, t.mine);
        } else {
            t.exchange(0, 4, random);
            CHECK(halo::next(t.self, t.x, 4) == MPI_SUCCESS);
        }
        t.fill_for(step, random);
        CHECK(halo::send(t.self, t.x, t.mine, step) == MPI_SUCCESS);
        t.x.stall_ns_ = 1000;
        // The other group never comes. Ghost cells that it may be reading stay as they are.
        CHECK(halo::sync_blocks(t.self, t.x, 2, &t.mine, 1, step) == MPI_ERR_PENDING);
        CHECK(t.words[halo::device_exchange::arrivals_at] == static_cast<std::uint64_t>(step) + 1);
        CHECK(t.words[halo::device_exchange::failed_at] == halo::device_exchange::barrier_failed);
        if (one_allocation)
            CHECK(t.fields[0].bytes == t.before);
        else
            CHECK(t.right(t.x.allocation_(step), t.before));
    }
}

TEST_CASE("own cells of a prepared tile are copied behind the barrier") {
    std::mt19937_64 random(Catch::rngSeed());
    constexpr std::size_t bytes = 16, from = field_bytes / 2 - 64, to = field_bytes - 64;
    played_tile t(small, random);
    device_copy own = t.copies[1];
    own.message = -1;
    own.words = static_cast<std::uint32_t>(bytes) / static_cast<std::uint32_t>(own.word_bytes);
    own.by_words = tile_that_sends_to_itself::divisor(own.words);
    for (int loop = 0; loop < 3; ++loop) own.count[loop] = 1;
    for (std::size_t i = 0; i < 2; ++i) {
        own.cells[i] = t.fields[i].bytes.data() + to;
        own.own_cells[i] = t.fields[i].bytes.data() + from;
    }
    t.copies.push_back(own);
    t.x.copies_ = t.copies.data();
    t.tile.ghosts.end = t.tile.ghosts.small = static_cast<std::int32_t>(t.copies.size());
    halo::prepare(t.self, t.x, 0, t.mine);
    CHECK(t.mine.own_count_ == 1);
    CHECK(t.mine.waits_ == 1);
    for (std::int64_t step = 0; step < 8; ++step) {
        t.fill_for(step, random);
        CHECK(halo::send(t.self, t.x, t.mine, step) == MPI_SUCCESS);
        CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, step) == MPI_SUCCESS);
        std::copy_n(t.before.begin() + from, bytes, t.before.begin() + to);
        CHECK(t.right(t.x.allocation_(step), t.before));
        CHECK(halo::next(t.self, t.x, step) == MPI_SUCCESS);
    }
    // Not after a failure.
    t.fill_for(8, random);
    t.words[halo::device_exchange::failed_at] = halo::device_exchange::next_failed;
    CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 8) == MPI_ERR_OTHER);
    CHECK(t.fields[static_cast<std::size_t>(t.x.allocation_(8))].bytes == t.before);
}

TEST_CASE("a tile whose next send the barrier has claimed") {
    std::mt19937_64 random(Catch::rngSeed());
    played_tile t(small, random);
    const auto step_on = [&](std::int64_t step) {
        t.fill_for(step, random);
        CHECK(halo::send(t.self, t.x, t.mine, step) == MPI_SUCCESS);
        CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, step) == MPI_SUCCESS);
        CHECK(t.right(t.x.allocation_(step), t.before));
        // Other calls, such as next(), find the partition taken.
        const halo::detail::kept_receive &known = t.mine.awaited_[0].sets[step % 2];
        if (known.packets != nullptr) CHECK(*known.flag == known.epoch + static_cast<std::uint64_t>(step / 2));
        return t.mine.sent_[0].claimed == step + 1;
    };
    const auto state = [&](int set) -> std::uint64_t & {
        return mpix::detail::partition_states(t.pairs[static_cast<std::size_t>(set)]->sending())[0];
    };
    // The handles of both sets are known from exchange 4 on.
    for (std::int64_t step = 0; step < 6; ++step) {
        CHECK(step_on(step) == (step >= 3));
        if (step < 5) CHECK(halo::next(t.self, t.x, step) == MPI_SUCCESS);
    }
    // Exchange 7 has not begun.
    const std::uint64_t before = state(1);
    CHECK(!step_on(6));
    CHECK(state(1) == before);
    for (const std::int64_t step : {5, 6}) CHECK(halo::next(t.self, t.x, step) == MPI_SUCCESS);
    CHECK(step_on(7));
    // So another call for exchange 8 is refused. After that nothing is claimed.
    CHECK(state(0) == t.mine.sent_[0].sets[0].epoch + 4);
    CHECK(halo::next(t.self, t.x, 7) == MPI_SUCCESS);
    t.fill_for(8, random);
    CHECK(halo::send(t.self, t.x, 0, 8) != MPI_SUCCESS);
    CHECK(t.words[halo::device_exchange::failed_at] != 0);
    CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 8) == MPI_ERR_OTHER);
    CHECK(t.mine.sent_[0].claimed == 8);
}

TEST_CASE("a prepared tile is not claimed before its exchange has begun on both sides") {
    std::mt19937_64 random(Catch::rngSeed());
    for (const bool receiver_only : {true, false}) {
        played_tile t(small, random);
        t.exchange(0, 5, random);
        t.fill_for(6, random);
        CHECK(halo::send(t.self, t.x, t.mine, 6) == MPI_SUCCESS);
        const std::uint64_t state = mpix::detail::partition_states(t.pairs[1]->sending())[0];
        // Without next(5): the receiver has given clear-to-send, or the sender says that the exchange has begun.
        if (receiver_only)
            CHECK(mpix::next_epoch(t.self, t.requests[2]) == MPI_SUCCESS);
        else
            t.words[halo::device_exchange::begun_at + 1] = halo::detail::number_of(t.x, 7);
        CHECK(halo::sync_blocks(t.self, t.x, 1, &t.mine, 1, 6) == MPI_SUCCESS);
        CHECK(t.mine.sent_[0].claimed == 6);
        CHECK(mpix::detail::partition_states(t.pairs[1]->sending())[0] == state);
    }
}

TEST_CASE("who counts last in the last exchanges of an activation says that all partitions are ready") {
    std::mt19937_64 random(Catch::rngSeed());
    played_tile t(small, random);
    t.x.steps_ = 8;
    t.exchange(0, 7, random);
    for (const std::size_t set : {0, 1}) {
        CHECK(t.mine.sent_[0].claimed == 7);
        CHECK(t.pairs[set]->sending()->told_epoch == 2 * (t.mine.sent_[0].sets[set].epoch + 3));
    }
}

TEST_CASE("tiles that can't be kept") {
    std::mt19937_64 random(Catch::rngSeed());
    tile_that_sends_to_itself t(small, random);
    const auto waits = [&] {
        halo::prepared_tile mine;
        halo::prepare(mpix::thread_group{}, t.x, 0, mine);
        CHECK(mine.sends_ == (t.x.sets_ == 2 ? 1 : -1));
        return mine.waits_;
    };
    CHECK(waits() == 1);
    t.copies[1].claim = 0;  // another tile reads it, too
    CHECK(waits() == -1);
    t.copies[1].claim = -1;
    // Own cells: two boxes of them are kept.
    t.copies[1].message = -1;
    CHECK(waits() == 1);
    t.copies.insert(t.copies.end(), 2, t.copies[1]);
    t.x.copies_ = t.copies.data();
    t.tile.ghosts.end += 1;
    CHECK(waits() == 1);
    t.tile.ghosts.end += 1;
    CHECK(waits() == -1);
    t.tile.ghosts.end -= 2;
    t.copies[1].message = 0;
    t.requests[0] = inline_capable_receive(t.pairs[0]->receiving(), false, 1);  // another group waits, too
    CHECK(waits() == -1);
    t.requests[0] = t.pairs[0]->receive();
    for (const int other : {3, 5}) {
        t.x.sets_ = other;
        CHECK(waits() == -1);
    }
    t.x.sets_ = 2;
    t.copies[1].cells[1] = t.copies[1].cells[0];  // one allocation
    CHECK(waits() == -1);
}
