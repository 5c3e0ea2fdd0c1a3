// SPDX-License-Identifier: BSD-3-Clause
//
// Any bytes as messages of a peer. Nothing is stored outside of what is exposed, and what was asked is answered once.
#include "transport/ucx/eager.h"

#include <cstring>
#include <vector>

#include "tests/fuzz/input.h"

using namespace mpix::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    fuzz::input in(data, size);
    constexpr std::size_t words = 32;
    // The middle third is exposed.
    std::uint64_t memory[3 * words] = {};
    const auto base = reinterpret_cast<std::uint64_t>(memory + words);
    const ucx::eager_inbox::exposed exposed = [base](std::uint64_t address, std::uint64_t bytes) {
        const std::uint64_t offset = address - base;
        return offset <= words * 8 && bytes <= words * 8 - offset;
    };
    ucx::eager_inbox inbox;
    std::uint64_t number = 0;
    for (int i = 0; i < 16 && !in.empty(); ++i) {
        std::vector<std::uint8_t> message;
        const auto append = [&message](const void *from, std::size_t bytes) {
            const auto *const first = static_cast<const std::uint8_t *>(from);
            message.insert(message.end(), first, first + bytes);
        };
        const ucx::eager_head head{in.number<std::uint8_t>(),
                                   in.one_in(4) ? number + in.number<std::uint8_t>() % 4 : number};
        number += head.number == number;
        append(&head, sizeof head);
        for (unsigned r = in.number<std::uint8_t>() % 4; r != 0; --r) {
            const auto near = static_cast<std::uint64_t>(std::int64_t{in.number<std::int16_t>()});
            const ucx::eager_record record{base + (in.one_in(2) ? near & ~std::uint64_t{7} : near),
                                           in.one_in(8) ? in.number<std::uint32_t>() : in.number<std::uint8_t>() % 64u,
                                           in.number<std::uint8_t>() % 6u};
            append(&record, sizeof record);
            const std::vector<std::uint8_t> bytes(
                in.one_in(8) ? in.number<std::uint8_t>() : (record.bytes + 7u) / 8u % 64u * 8u,
                in.number<std::uint8_t>());
            append(bytes.data(), bytes.size());
        }
        if (in.one_in(8)) message.resize(message.size() - in.number<std::uint8_t>() % message.size());
        const std::uint64_t answered = inbox.answered();
        // A copy of its own size, so that a sanitizer sees what is read behind it.
        const std::vector<std::uint8_t> exact(message.begin(), message.end());
        const bool good = inbox.arrive(exact.data(), exact.size(), exposed).ok();
        FUZZ_CHECK(inbox.answered() >= answered);
        if (in.one_in(2) && inbox.asks()) {
            FUZZ_CHECK(inbox.take_question() != 0);
            FUZZ_CHECK(!inbox.asks());
        }
        if (!good) break;  // the peer is given up
    }
    for (std::size_t w = 0; w < words; ++w) FUZZ_CHECK(memory[w] == 0 && memory[2 * words + w] == 0);
    return 0;
}
