// SPDX-License-Identifier: BSD-3-Clause
//
// The tables by which kernels send and wait, before they are where kernels find them.
#ifndef MPIX_HOST_HALO_TABLES_TABLES_H
#define MPIX_HOST_HALO_TABLES_TABLES_H

#include <array>
#include <cstdint>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/field/partitions.h"
#include "host/halo/grid_state.h"
#include "host/halo_tables/tiles.h"
#include "host/halo_report/message_report.h"

namespace mpix::halo {

// What is known of a parcel in the device's table, to say which call has failed.
struct parcel_origin {
    int tile;      // this rank's, as kernels number it; -1: boxes wait for it, or a stream exchange has it
    bool is_sent;  // by that tile; otherwise it waits for it
    int peer;      // rank
    int message;   // the number of the send, or of the receive, in each set; -1: own cells
    int parcel;    // among those of that rank
    int part;      // the first one of the parcel that the tile has to do with
};

struct device_tables {
    std::vector<detail::device_tile> tiles;
    std::vector<std::int32_t> order;  // of the tiles: those that send or wait come first
    int boundary = 0;                 // how many these are
    std::vector<detail::device_parcel> parcels;
    std::vector<detail::device_copy> copies;
    int claims = 0;
    // Unless only tiles wait: all that the rank receives, and these copies. For waits by boxes the ghost cells of each.
    std::int32_t received = 0, received_end = 0, received_copies = 0, received_copies_end = 0;
    std::vector<detail::device_ghosts> ghosts;
    std::vector<detail::device_reach> reach;  // of each field
    std::vector<parcel_origin> known;         // of each parcel
};

// A message to or from a peer.
struct peer_message {
    int peer;
    partitions cut;
    std::uint64_t at = 0;    // in bytes behind the messages of a set
    bool one_reader = true;  // of a receive: each partition is waited for by one tile
    direction_bytes by_direction{};

    std::int64_t bytes() const { return cut.bytes * cut.count(); }
};

struct kernel_plan {
    std::vector<peer_message> receives, sends;
    std::uint64_t set_bytes = 0;  // of all messages
    std::int64_t own_bytes = 0;   // copied in each exchange from boxes of this rank to boxes of this rank
    device_tables for_device;
};

// Who waits for ghost cells: a group for each tile; groups for any boxes as well; or the library's own groups, each for
// whole parcels.
enum class ghost_waiters { tiles, tiles_and_boxes, library };

// What an exchange is planned from.
struct kernel_fields {
    const grid_state &grid;
    const exchanged_fields &fields;
    const std::vector<field_view> &views;  // of these
    const index3 &tile;
    ghost_waiters waiters;
    const std::vector<std::array<void *, 2>> &data;  // of each field, of each box, its allocations
};

// Throws error.
kernel_plan plan_kernel_exchange(const kernel_fields &x);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_TABLES_TABLES_H
