// SPDX-License-Identifier: BSD-3-Clause
//
// Where ghost cells are that stay in the messages (ghost_storage::in_messages).
#ifndef MPIX_HOST_HALO_EXCHANGE_GHOSTS_H
#define MPIX_HOST_HALO_EXCHANGE_GHOSTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/field/neighbours.h"
#include "host/halo/grid_state.h"
#include "host/halo_exchange/message.h"

namespace mpix::halo {

// Of a field, what is read for one box of this rank.
struct box_to_read {
    std::vector<ghost_piece> pieces;
    detail::cells_to_read cells;
    // If the field has two allocations: where each piece is in the other one, null if in a message; and the cells.
    std::vector<const void *> other_pieces;
    const std::byte *other_cells = nullptr;
};

// For each box. `ghosts`: of the field; `receives`: by rank, made of these.
std::vector<box_to_read> boxes_to_read(const grid_state &g, int field, const field_view &view,
                                       const std::vector<piece> &ghosts, const std::vector<message> &receives);
// Goes on with the other allocation.
void read_other(std::vector<box_to_read> &boxes);

// What the addresses of values of these fields' sizes may have to be a multiple of; at most message::most_alignment.
std::int64_t alignment_of(const std::vector<field_view> &fields);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_GHOSTS_H
