// SPDX-License-Identifier: BSD-3-Clause
//
// A tile of a halo exchange whose cells one group sends to itself, and the hosts' progress beside. For tests whose host threads
// play GPU threads (MPIX_FAKE_GPU).
#ifndef MPIX_TESTS_UNIT_PLAYED_TILE_HPP
#define MPIX_TESTS_UNIT_PLAYED_TILE_HPP

#include <mpix/halo.cuh>
#include <mpix/host_group.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/backoff.hpp"
#include "tests/catch.hpp"
#include "tests/unit/played_pair.hpp"

namespace fake {

namespace halo = mpix::halo;
using halo::detail::device_copy;

inline constexpr int most_sets = 8;
inline constexpr std::size_t field_bytes = 4096, message_bytes = 2048;

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
inline constexpr tile_shape small{.word_bytes = 8, .copies = 1, .threads = 1, .padding = 0, .parcels = 1, .runs = 1};

}  // namespace fake

#endif  // MPIX_TESTS_UNIT_PLAYED_TILE_HPP
