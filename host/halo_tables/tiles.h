// SPDX-License-Identifier: BSD-3-Clause
//
// A box cut into tiles, and what each of them sends and reads in an exchange. Both ends of a message compute the same
// parcels.
#ifndef MPIX_HOST_HALO_TABLES_TILES_H
#define MPIX_HOST_HALO_TABLES_TILES_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/neighbours.h"
#include "host/field/partitions.h"

namespace mpix::halo {

// Tiles of one size, from the lowest cell on; those at the upper sides may be smaller.
class tiling {
public:
    // size: 0 along an axis is the whole box.
    tiling(const box &whole, const index3 &size);
    std::int64_t count() const;
    box at(int number) const;
    // The numbers of the tiles that have cells of `part`, which may lie outside.
    std::vector<int> touched(const box &part) const;
    // The same of points, of which one more than there are cells may belong to the box; it belongs to the last tile.
    std::vector<int> touched_by_points(box part) const;

private:
    box whole_;
    index3 size_, along_;
};

// The tile of stream exchanges, of all ranks' boxes in a domain with so many axes. An axis where `given` is not 0 keeps it. Otherwise a
// tile is a quarter of the longest box, at least 8 cells, and is halved while one of its sides has more than 32 KiB of ghost cells
// and there are few tiles. depth_bytes: of all fields' ghost cells beyond one cell of a side.
index3 choose_tile(const std::vector<box> &boxes, int dimensions, const index3 &given, std::int64_t depth_bytes);

// Cells of a field, at their owner and as ghost cells.
struct part {
    int field;
    int owner, receiver;  // numbers of the boxes
    int direction;        // as the receiver sees it
    box source, ghosts;
    std::int64_t packed;  // where they are among the message's bytes; of own cells unused
};

// What one tile of the sender has for one receiver.
struct parcel {
    int owner, tile;  // the box, and which of its tiles
    std::vector<part> parts;
    int first = 0, last = -1;  // partitions
};

struct parcels {
    std::vector<parcel> all;
    partitions cut;  // one "field" for each parcel
    std::int64_t bytes() const { return all.empty() ? 0 : cut.bytes * cut.count(); }
};

// What of a field decides what is exchanged.
struct exchanged_field {
    std::int64_t cell_bytes;  // of all components
    halo::radius radius;
    std::array<bool, 3> staggered{};
};
using exchanged_fields = std::vector<exchanged_field>;

// What the boxes with these numbers, in ascending order, get from other boxes, or give to them, by the rank at the other end.
// All boxes are cut into tiles of one size.
std::map<int, parcels> parcels_received(const domain &d, const std::vector<int> &boxes, const index3 &tile,
                                        const exchanged_fields &fields);
std::map<int, parcels> parcels_sent(const domain &d, const std::vector<int> &boxes, const index3 &tile,
                                    const exchanged_fields &fields);

// Cells, and others, that are near enough to read some of those ghost cells of a field if the direction is right.
box near(const box &ghosts, const exchanged_field &field);
// The numbers of the tiles that read some of those ghost cells of a field.
std::vector<int> readers_of(const domain &d, const tiling &tiles, const box &ghosts, const exchanged_field &field);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_TABLES_TILES_H
