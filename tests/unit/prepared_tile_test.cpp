// SPDX-License-Identifier: BSD-3-Clause
//
// Prepared tiles of halo exchanges, on the ways of GPU threads, gone by host threads (MPIX_FAKE_GPU). One group has a tile whose
// cells it sends to itself.
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

constexpr int sets = 2;
constexpr std::size_t field_bytes = 4096, message_bytes = 2048;

struct alignas(16) field {
    std::array<std::byte, field_bytes> bytes;
};

struct tile_shape {
    int word_bytes, copies, threads;
    std::uint64_t padding;  // behind the copies, in their partition
    bool in_pieces() const { return word_bytes < 4; }
    bool is_kept() const { return !in_pieces() && copies <= 2; }
};

// A tile that sends some runs of cells to itself, by as many requests as there are sets.
class tile_that_sends_to_itself {
public:
    tile_that_sends_to_itself(const tile_shape &s, std::mt19937_64 &random) {
        const auto pick = [&](unsigned low, unsigned high) {
            return low + static_cast<unsigned>(random() % (high - low + 1));
        };
        std::int64_t in_message = 0, place = 0;
        for (int k = 0; k < s.copies; ++k) {
            device_copy c{};
            c.word_bytes = s.word_bytes;
            c.words = pick(1, 3) * 16 / static_cast<unsigned>(s.word_bytes);
            const std::int64_t run = std::int64_t{c.words} * c.word_bytes;
            std::int64_t distance = run;
            for (int loop = 0; loop < 3; ++loop) {
                c.count[loop] = pick(1, loop == 0 ? 3 : 2);
                c.stride[loop] = distance + 16 * pick(0, 1);
                distance = c.stride[loop] * c.count[loop];
            }
            c.by_words = divisor(c.words);
            c.by_count[0] = divisor(c.count[0]);
            c.by_count[1] = divisor(c.count[1]);
            c.claim = -1;
            c.in_message = in_message;
            set_cells(c, place);
            sends.push_back(c);
            c.in_message += message_bytes;
            set_cells(c, place + field_bytes / 2);
            c.parcel = 1;
            ghosts.push_back(c);
            place += distance;
            in_message += run * c.count[0] * c.count[1] * c.count[2];
        }
        REQUIRE(place <= std::int64_t{field_bytes} / 2);
        bytes = static_cast<std::uint64_t>(in_message) + s.padding;
        REQUIRE(bytes <= message_bytes);

        pair_shape shape{};
        shape.senders = shape.receivers = 1;
        shape.bytes = bytes;
        shape.inline_buffer = true;
        shape.inline_from = 1;
        shape.matched_late = true;
        shape.sole = true;
        for (int set = 0; set < sets; ++set) {
            pairs.push_back(std::make_unique<fake_pair>(shape));
            fake_pair &pair = *pairs.back();
            std::byte *const messages = messages_memory.get()->data() + set * 2 * message_bytes;
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
        const auto count = static_cast<std::int32_t>(s.copies);
        tile.sends_begin = 0, tile.sends_end = tile.waits_begin = 1, tile.waits_end = 2;
        tile.cells = {{1, 2, 3}, {4, 5, 6}};
        tile.ghosts = {count, 2 * count, 2 * count};
        parcels = {{.message = 0, .first = 0, .last = 0, .copies = {0, count, count}},
                   {.message = 0, .first = 0, .last = 0, .copies = {}}};
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
        x.sets_ = sets;
        x.stall_ns_ = patience_ns;
    }

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
    std::unique_ptr<std::array<std::byte, sets * 2 *message_bytes>> messages_memory =
        std::make_unique<std::array<std::byte, sets * 2 * message_bytes>>();
    std::vector<device_copy> sends, ghosts, copies;
    std::vector<std::unique_ptr<fake_pair>> pairs;
    std::vector<MPIX_Prequest> requests;
    std::vector<halo::detail::device_parcel> parcels;
    halo::detail::device_tile tile{};
    std::array<halo::detail::stored_handle<mpix::prepared_receive>, sets> receive_handles{};
    std::array<halo::detail::stored_handle<mpix::prepared_send>, sets> send_handles{};
    std::array<std::uint64_t, halo::device_exchange::begun_at + sets> words{};
    halo::device_exchange x{};

private:
    static mpix_narrow_divisor divisor(std::uint32_t by) {
        return mpix::detail::narrowed(mpix::detail::make_divisor(std::int64_t{by}));
    }
    void set_cells(device_copy &c, std::int64_t place) {
        for (std::size_t i = 0; i < 2; ++i) c.cells[i] = fields[i].bytes.data() + place;
    }
};

}  // namespace

TEST_CASE("a group that keeps what it knows of a tile") {
    std::mt19937_64 random(Catch::rngSeed());
    int straight_rounds = 0;
    for (int round = 0; round < 48; ++round) {
        constexpr std::array word_bytes{4, 8, 16, 2};
        const tile_shape s{
            .word_bytes = word_bytes[static_cast<std::size_t>(round % 4)],
            .copies = 1 + round / 4 % 3,
            .threads = round % 6 == 5 ? 33 + static_cast<int>(random() % 8) : 1 + static_cast<int>(random() % 4),
            .padding = 8 * (random() % 3)};
        // In the others, some calls look the tile up, or have a limit of their own.
        const bool always_kept = round % 2 == 0;
        CAPTURE(round, s.word_bytes, s.copies, s.threads, s.padding, always_kept);
        tile_that_sends_to_itself t(s, random);
        t.poison_messages();
        constexpr int steps = 24;
        t.x.steps_ = steps;
        halo::prepared_tile mine;
        std::array<std::byte, field_bytes> before;
        std::atomic<const char *> failure{nullptr};
        std::atomic<int> straight{0};
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
                expect((mine.sends_ == 1) == s.is_kept() && (mine.waits_ == 1) == s.is_kept(), "what is kept");
                for (std::int64_t step = 0; step < steps; ++step) {
                    const int allocation = t.x.allocation_(step);
                    if (g.thread_rank() == 0) {
                        t.fill(allocation, cells);
                        before = t.fields[static_cast<std::size_t>(allocation)].bytes;
                        t.poison_messages();
                    }
                    g.sync();
                    const bool by_tile = always_kept || same() % 4 != 0, by_default = always_kept || same() % 4 != 0;
                    const int sent = by_tile ? halo::send(g, t.x, mine, step) : halo::send(g, t.x, 0, step);
                    const int waited =
                        by_default ? halo::wait(g, t.x, mine, step) : halo::wait(g, t.x, mine, step, patience_ns);
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
        const bool goes_straight = s.is_kept() && is_inline_capable(t.requests[1], static_cast<unsigned>(s.threads));
        if (always_kept) CHECK(straight == (goes_straight ? steps - 2 * sets : 0));
        straight_rounds += goes_straight;
        CHECK(t.words[halo::device_exchange::failed_at] == 0);
    }
    CHECK(straight_rounds != 0);
}

TEST_CASE("calls on a prepared tile after a call has failed") {
    std::mt19937_64 random(Catch::rngSeed());
    // Inline, or not: a thread has four packets at most.
    for (const std::uint64_t padding : {0, 512}) {
        tile_that_sends_to_itself t({.word_bytes = 8, .copies = 1, .threads = 1, .padding = padding}, random);
        t.x.steps_ = 10;
        halo::prepared_tile mine;
        const mpix::thread_group self{};
        halo::prepare(self, t.x, 0, mine);
        std::atomic<bool> ended{false};
        std::thread engine([&] {
            for (backoff wait; !ended.load(); wait.pause())
                for (const auto &pair : t.pairs) pair->progress_of_kernels(1);
        });
        for (std::int64_t step = 0; step < 5; ++step) {
            t.fill(t.x.allocation_(step), random);
            CHECK(halo::send(self, t.x, mine, step) == MPI_SUCCESS);
            CHECK(halo::wait(self, t.x, mine, step) == MPI_SUCCESS);
            CHECK(halo::next(self, t.x, step) == MPI_SUCCESS);
        }
        CHECK(mine.sent_[0].handles[1].number == 6);
        t.words[halo::device_exchange::failed_at] = halo::device_exchange::next_failed;
        CHECK(halo::send(self, t.x, mine, 5) == MPI_ERR_OTHER);
        CHECK(halo::wait(self, t.x, mine, 5) == MPI_ERR_OTHER);
        CHECK(halo::send(self, t.x, mine, 10) == MPI_SUCCESS);  // there is no such exchange
        ended.store(true);
        engine.join();
    }
}
