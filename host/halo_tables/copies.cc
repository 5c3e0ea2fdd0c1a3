// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/copies.h"

#include <mpi.h>

#include <limits>

#include <mpix/detail/divide.h>
#include <mpix/halo.hpp>

namespace mpix::halo {
namespace {

using detail::device_copy;

// The bits of the addresses.
std::uint64_t set_places(std::byte *(&places)[2], const cells_in_memory &cells) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        places[i] = cells.first[i];
        bits |= reinterpret_cast<std::uintptr_t>(places[i]);
    }
    return bits;
}

// Sets the cells in the field, and the widest word that divides all runs, addresses and distances. alignment_bits:
// those of the other side, joined by or.
void set_cells_and_words(device_copy &c, const cells_in_memory &cells, int claim, std::uint64_t alignment_bits) {
    const runs &r = cells.shape;
    c.claim = claim;
    alignment_bits |= set_places(c.cells, cells) | static_cast<std::uint64_t>(r.bytes) | 16;
    for (std::size_t loop = 0; loop < 3; ++loop) {
        c.count[loop] = static_cast<std::uint32_t>(r.count[loop]);
        c.stride[loop] = r.stride[loop];
        if (r.count[loop] > 1) alignment_bits |= static_cast<std::uint64_t>(r.stride[loop]);
    }
    c.word_bytes = static_cast<std::int32_t>(alignment_bits & (~alignment_bits + 1));
    c.words = static_cast<std::uint32_t>(r.bytes / c.word_bytes);
    // Threads number words in 32 bits, and their last step passes the end.
    if (r.total() / c.word_bytes > std::numeric_limits<std::int32_t>::max())
        throw error(MPI_ERR_COUNT, "options.tile: a tile has more than 2^31 words on a side; use smaller tiles");
    set_divisors(c);
}

}  // namespace

device_copy copy_between_message(const cells_in_memory &cells, std::int64_t at, int claim) {
    device_copy c{};
    c.in_message = at;
    set_cells_and_words(c, cells, claim, static_cast<std::uint64_t>(at));
    return c;
}

device_copy copy_between_fields(const cells_in_memory &own, const cells_in_memory &ghosts, int claim) {
    device_copy c{};
    std::uint64_t alignment_bits = set_places(c.own_cells, own);
    for (std::size_t loop = 0; loop < 3; ++loop) {
        c.own_stride[loop] = own.shape.stride[loop];
        if (own.shape.count[loop] > 1) alignment_bits |= static_cast<std::uint64_t>(own.shape.stride[loop]);
    }
    set_cells_and_words(c, ghosts, claim, alignment_bits);
    return c;
}

void set_divisors(device_copy &c) {
    c.by_words = mpix::detail::narrowed(mpix::detail::make_divisor(c.words));
    for (int loop = 0; loop < 2; ++loop)
        c.by_count[loop] = mpix::detail::narrowed(mpix::detail::make_divisor(c.count[loop]));
}

bool is_for_group(const device_copy &c, std::size_t of_copies) {
    constexpr std::size_t few = 2;
    constexpr std::uint32_t words_of_a_trip = 128, most_words_of_a_warp = 1024;
    return words_of(c) > (of_copies > few ? most_words_of_a_warp : words_of_a_trip);
}

}  // namespace mpix::halo
