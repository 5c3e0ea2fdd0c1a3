// SPDX-License-Identifier: BSD-3-Clause
//
// What neighbours on a node tell each other, so that kernels of one store directly into the ghost cells of the other.
#ifndef MPIX_HOST_HALO_KERNELS_DIRECT_DESCRIPTION_H
#define MPIX_HOST_HALO_KERNELS_DIRECT_DESCRIPTION_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/field/layout.h"
#include "transport/transport.h"

namespace mpix::halo {

// Ghost cells in an allocation of a field: where the first one lies in it, and the distances of the runs.
struct ghost_place {
    std::int64_t allocation = 0, at = 0;
    std::array<std::int64_t, 3> stride{};
};

// How a neighbour can map a rank's memory.
struct direct_description {
    transport::wire_region words{};  // which the neighbour writes
    std::uint64_t clear_at = 0;      // where the receiver of this writes its clear-to-store, in bytes from the words on
    std::vector<std::array<transport::wire_region, 2>> allocations{};  // none: the fields cannot be mapped
    // Of each parcel that comes from the neighbour, where its direct_number lies, in bytes from the words on; of each
    // part of these parcels, the ghost cells.
    std::vector<std::uint64_t> direct_number_at{};
    std::vector<ghost_place> ghosts{};
};

// As a message. Null: says that nothing can be mapped.
std::vector<std::byte> to_bytes(const direct_description *d);
// False if nothing can be mapped, or the message is malformed. The message is not trusted: the words that it speaks of
// lie in those that can be mapped.
bool parse(const std::vector<std::byte> &message, direct_description &d);
// Whether ghost cells in runs as those of `shape` lie within both allocations that the description gives for them.
// `shape` is this rank's own: of at least one run, and at least one byte.
bool are_within(const ghost_place &ghosts, const runs &shape, const direct_description &d);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_DIRECT_DESCRIPTION_H
