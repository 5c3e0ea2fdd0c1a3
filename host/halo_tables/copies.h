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

// Cells of a field, as they lie in each of its two allocations. shape.first is not used.
struct cells_in_memory {
    runs shape;
    std::array<std::byte *, 2> first;
};
// `r` lies in the first of these allocations.
inline cells_in_memory in_memory(const runs &r, const std::array<void *, 2> &allocations) {
    const std::ptrdiff_t at = r.first - static_cast<std::byte *>(allocations[0]);
    return {r, {static_cast<std::byte *>(allocations[0]) + at, static_cast<std::byte *>(allocations[1]) + at}};
}

// Between cells and a message, in which they begin `at` bytes behind its beginning. claim: as of device_copy.
detail::device_copy copy_between_message(const cells_in_memory &cells, std::int64_t at, int claim);
// Own cells to ghost cells: of this rank, or of one whose memory this GPU maps. Both have equally many runs of equal
// length.
detail::device_copy copy_between_fields(const cells_in_memory &own, const cells_in_memory &ghosts, int claim);

// Sets what follows from `words` and `count`.
void set_divisors(detail::device_copy &c);
inline std::uint32_t words_of(const detail::device_copy &c) { return c.words * c.count[0] * c.count[1] * c.count[2]; }

// Whether all threads of a group make this copy, of so many of its parcel, together. A single warp makes a small one,
// in one trip to memory, while other warps make others. Of two copies or fewer, and of large ones, all threads together
// are faster.
bool is_for_group(const detail::device_copy &c, std::size_t of_copies);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_TABLES_COPIES_H
