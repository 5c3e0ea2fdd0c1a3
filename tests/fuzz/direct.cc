// SPDX-License-Identifier: BSD-3-Clause
//
// What a neighbour describes for direct stores as any bytes, or, if the first byte is odd, with a length that its head
// asks for: what passes comes out as it went in, and its words lie in what can be mapped. Cells that pass lie in both
// of their allocations, and those that do not lie outside of one.
#include "host/halo_kernels/direct_description.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/landmark.h"

using namespace mpix::halo;

namespace {

__extension__ using wide = __int128;

fuzz::landmark accepted("a description with ghost cells is accepted"), inside("ghost cells lie in their allocations"),
    behind_one("ghost cells end behind one of their allocations"), before("ghost cells begin before their allocations"),
    beyond_64_bits("distances are too long for 64 bits");

constexpr std::size_t words_bytes = sizeof(mpix::transport::wire_region), head_bytes = words_bytes + 24;

// Of a message with so many of each; the rest follows.
std::vector<std::byte> repaired(fuzz::input &in) {
    const std::int32_t counts[] = {1, static_cast<std::int32_t>(in.below(4)), static_cast<std::int32_t>(in.below(6)),
                                   static_cast<std::int32_t>(in.below(8))};
    const std::size_t behind =
        counts[1] * 2 * words_bytes + counts[2] * sizeof(std::uint64_t) + counts[3] * sizeof(ghost_place);
    std::vector<std::byte> message(head_bytes + behind);
    in.bytes(message.data(), message.size());
    std::memcpy(message.data() + head_bytes - sizeof counts, counts, sizeof counts);
    return message;
}

// The same as are_within(), by numbers that are wide enough.
bool lie_within(const ghost_place &g, const runs &shape, const direct_description &d) {
    if (g.allocation < 0 || static_cast<std::uint64_t>(g.allocation) >= d.allocations.size()) return false;
    if (g.at < 0) before.reach();
    if (g.at < 0 || *std::min_element(g.stride.begin(), g.stride.end()) < 0) return false;
    wide end = wide{g.at} + shape.bytes;
    for (std::size_t loop = 0; loop < 3; ++loop) end += wide{shape.count[loop] - 1} * g.stride[loop];
    if (end > std::numeric_limits<std::int64_t>::max()) beyond_64_bits.reach();
    const auto &both = d.allocations[static_cast<std::size_t>(g.allocation)];
    if ((end > both[0].bytes) != (end > both[1].bytes)) behind_one.reach();
    return end <= both[0].bytes && end <= both[1].bytes;
}

bool is_word(std::uint64_t at, std::uint64_t bytes) { return at % 8 == 0 && wide{at} + 8 <= wide{bytes}; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    fuzz::input in(data, size);
    const bool repair = in.below(2) == 1;
    runs shape{.bytes = 1 + in.number<std::uint16_t>()};
    for (std::int64_t &count : shape.count) count = 1 + std::int64_t{in.number<std::uint16_t>()};
    std::vector<std::byte> message;
    if (repair) {
        message = repaired(in);
    } else {
        const std::string rest = in.rest();
        message.resize(rest.size());
        if (!rest.empty()) std::memcpy(message.data(), rest.data(), rest.size());
    }
    direct_description d;
    FUZZ_CHECK(!parse(to_bytes(nullptr), d));
    if (!parse(message, d)) return 0;
    FUZZ_CHECK(to_bytes(&d) == message);
    FUZZ_CHECK(is_word(d.clear_at, d.words.bytes));
    for (const std::uint64_t at : d.direct_number_at) FUZZ_CHECK(is_word(at, d.words.bytes));
    for (const ghost_place &g : d.ghosts) {
        accepted.reach();
        const bool within = are_within(g, shape, d);
        FUZZ_CHECK(within == lie_within(g, shape, d));
        if (within) inside.reach();
    }
    return 0;
}
