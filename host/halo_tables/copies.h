// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of cells as kernels make them.
#ifndef MPIX_HOST_HALO_TABLES_COPIES_H
#define MPIX_HOST_HALO_TABLES_COPIES_H

#include <array>
#include <cstddef>
#include <cstdint>

#include <mpix/halo/device_exchange.hpp>

#include "host/field/layout.h"

namespace mpix::halo {

// Cells of a field in either of its allocations. The runs are those of the first, or of no allocation in particular.
struct cells_in_memory {
    runs shape;
    std::array<std::byte *, 2> first;
};
// Of a field whose allocations those are, the first of them the one of the runs.
inline cells_in_memory in_memory(const runs &r, const std::array<void *, 2> &allocations) {
    const std::ptrdiff_t at = r.first - static_cast<std::byte *>(allocations[0]);
    return {r, {static_cast<std::byte *>(allocations[0]) + at, static_cast<std::byte *>(allocations[1]) + at}};
}

// Between those cells and a message, where they begin at that place. claim: as of device_copy.
detail::device_copy copy_between_message(const cells_in_memory &cells, std::int64_t at, int claim);
// Own cells to ghost cells: of this rank, or of one whose memory this GPU maps. Both have equally many runs of equal length.
detail::device_copy copy_between_fields(const cells_in_memory &own, const cells_in_memory &ghosts, int claim);

// Sets what follows from `words` and `count`.
void set_divisors(detail::device_copy &c);
inline std::uint32_t words_of(const detail::device_copy &c) { return c.words * c.count[0] * c.count[1] * c.count[2]; }

// Whether a copy, one of so many of a parcel, is for all threads of a group. Others are for a warp each, in one trip to memory. A
// few are faster one after the other, by all threads, and so are large ones.
bool is_for_group(const detail::device_copy &c, std::size_t of_copies);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_TABLES_COPIES_H
