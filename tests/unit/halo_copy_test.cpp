// SPDX-License-Identifier: BSD-3-Clause
//
// The copies of cells that GPU threads make, word by word, made by host threads (include/mpix/impl/halo/copy.cuh).
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <mpix/halo.cuh>

#include "host/halo_tables/copies.h"
#include "tests/catch.hpp"

using namespace mpix::halo::detail;

namespace {

struct alignas(16) block {
    std::byte bytes[16];
};

// Memory that begins at a multiple of 16.
class memory {
public:
    explicit memory(std::size_t bytes) : blocks_(bytes / 16 + 1) {}
    std::byte *get() { return blocks_.data()->bytes; }

private:
    std::vector<block> blocks_;
};

// One thread of several.
struct member {
    int rank, size;
    int thread_rank() const { return rank; }
    int num_threads() const { return size; }
};

template <class Work>
void by_all(int threads, const Work &work) {
    for (int rank = 0; rank < threads; ++rank) work(member{rank, threads});
}

}  // namespace

TEST_CASE("cells copied by words") {
    std::mt19937 random(Catch::rngSeed());
    const auto pick = [&](int low, int high) {
        return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    for (int round = 0; round < 200; ++round) {
        device_copy c{};
        c.word_bytes = 1 << pick(0, 4);
        c.words = static_cast<std::uint32_t>(pick(1, 5));
        const std::int64_t word = c.word_bytes, run = c.words * word;
        std::int64_t here = run, there = run;
        for (int loop = 0; loop < 3; ++loop) {
            c.count[loop] = static_cast<std::uint32_t>(pick(1, 4));
            c.stride[loop] = here + word * pick(0, 3);
            c.own_stride[loop] = there + word * pick(0, 3);
            here = c.stride[loop] * c.count[loop];
            there = c.own_stride[loop] * c.count[loop];
        }
        mpix::halo::set_divisors(c);
        const std::int64_t at = word * pick(0, 9), own_at = word * pick(0, 9);
        c.in_message = word * pick(0, 9);
        const int allocation = pick(0, 1);
        const auto all = static_cast<std::size_t>(run * c.count[0] * c.count[1] * c.count[2]);
        const auto field_bytes = static_cast<std::size_t>(here + at),
                   own_bytes = static_cast<std::size_t>(there + own_at);
        const std::size_t message_bytes = all + static_cast<std::size_t>(c.in_message);
        memory field(field_bytes), copied(field_bytes), own(own_bytes), ghosts(field_bytes), message(message_bytes);
        for (std::size_t i = 0; i < field_bytes; ++i) field.get()[i] = static_cast<std::byte>(random());
        for (std::size_t i = 0; i < own_bytes; ++i) own.get()[i] = static_cast<std::byte>(random());

        const int threads = pick(1, 7);
        c.cells[allocation] = field.get() + at;
        by_all(threads, [&](const member &m) { pack<true>(m, c, allocation, message.get()); });
        c.cells[allocation] = copied.get() + at;
        by_all(threads, [&](const member &m) { unpack<true>(m, c, message.get(), allocation); });
        c.cells[allocation] = ghosts.get() + at;
        c.own_cells[allocation] = own.get() + own_at;
        by_all(threads, [&](const member &m) { copy_own<true>(m, c, allocation); });

        std::vector<std::byte> packed(message_bytes), expected(field_bytes), expected_ghosts(field_bytes);
        auto to = static_cast<std::size_t>(c.in_message);
        for (std::uint32_t k = 0; k < c.count[2]; ++k)
            for (std::uint32_t j = 0; j < c.count[1]; ++j)
                for (std::uint32_t i = 0; i < c.count[0]; ++i)
                    for (std::int64_t b = 0; b < run; ++b) {
                        const auto place =
                            static_cast<std::size_t>(at + i * c.stride[0] + j * c.stride[1] + k * c.stride[2] + b);
                        const auto from = static_cast<std::size_t>(own_at + i * c.own_stride[0] + j * c.own_stride[1] +
                                                                   k * c.own_stride[2] + b);
                        packed[to++] = expected[place] = field.get()[place];
                        expected_ghosts[place] = own.get()[from];
                    }
        const auto same = [](const std::vector<std::byte> &a, std::byte *b) {
            return a == std::vector<std::byte>(b, b + a.size());
        };
        // The same, eight bytes at a time.
        if (c.word_bytes >= 4 && all % 8 == 0) {
            memory field_again(field_bytes);
            std::vector<std::byte> eights(message_bytes);
            for (std::uint32_t i = 0; i < all; i += 8) {
                const std::uint64_t value = load_eight(find_eight(c, field.get() + at, i));
                std::memcpy(eights.data() + c.in_message + i, &value, 8);
                store_eight(find_eight(c, field_again.get() + at, i), value);
            }
            CHECK(eights == packed);
            CHECK(same(expected, field_again.get()));
        }
        CHECK(same(packed, message.get()));
        CHECK(same(expected, copied.get()));
        CHECK(same(expected_ghosts, ghosts.get()));
    }
}
