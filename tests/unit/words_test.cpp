// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes between memory and registers: the right ones, at any alignment, and nobody else's.
#include <mpix/impl/group/words.cuh>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>

#include "tests/catch.hpp"

namespace {

using mpix::detail::load_bytes;
using mpix::detail::store_bytes;

constexpr int most = 16, before = 16;
struct alignas(16) memory {
    char bytes[before + most + most + 16];
};

}  // namespace

TEST_CASE("up to 16 bytes at any alignment, there and back") {
    std::mt19937_64 random(Catch::rngSeed());
    for (int skew = 0; skew < 16; ++skew)
        for (int bytes = 1; bytes <= most; ++bytes)
            for (const int beyond : {0, 1, 3, 16}) {  // memory that may be read as well
                CAPTURE(skew, bytes, beyond);
                memory from, to;
                for (char &c : from.bytes) c = static_cast<char>(random());
                std::memset(to.bytes, 0x5a, sizeof to.bytes);
                memory expected = to;
                char *const at = from.bytes + before + skew;
                std::memcpy(expected.bytes + before + skew, at, static_cast<std::size_t>(bytes));
                store_bytes(to.bytes + before + skew, load_bytes(at, bytes, at + bytes + beyond), bytes);
                REQUIRE(std::memcmp(to.bytes, expected.bytes, sizeof to.bytes) == 0);
            }
}

// For ThreadSanitizer: two neighbours in one aligned word, one of whom is written while the other is read.
TEST_CASE("who loads bytes does not touch the neighbour's") {
    for (int skew = 1; skew < 4; ++skew)
        for (int bytes = 1; bytes <= most; ++bytes) {
            CAPTURE(skew, bytes);
            memory m{};
            char *const mine = m.bytes + before + skew;
            std::memset(mine, 0x77, static_cast<std::size_t>(bytes));
            std::thread neighbour([&] {
                for (int i = 0; i < 16; ++i) {
                    std::memset(m.bytes, i, before + static_cast<std::size_t>(skew));
                    std::memset(mine + bytes, i, 4);
                }
            });
            const auto value = load_bytes(mine, bytes, mine + bytes + 4);
            neighbour.join();
            char out[most];
            std::memcpy(out, &value, sizeof value);
            for (int i = 0; i < bytes; ++i) REQUIRE(out[i] == 0x77);
        }
}
