// SPDX-License-Identifier: BSD-3-Clause
//
// A box cut into tiles, and what each of them sends and reads in an exchange. Both ends of a message compute the same
// parcels.
#ifndef MPIX_HOST_HALO_KERNELS_TILES_H
#define MPIX_HOST_HALO_KERNELS_TILES_H

#include <array>
#include <cstdint>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/neighbours.h"
#include "host/halo/partitions.h"

namespace mpix::halo {

// Tiles of one size, from the lowest cell on; those at the upper sides may be smaller.
class tiling {
public:
    // size: 0 along an axis is the whole box.
    tiling(const box &whole, const index3 &size);
    int count() const { return static_cast<int>(along_[0] * along_[1] * along_[2]); }
    box at(int number) const;
    // The numbers of the tiles that have cells of `part`, which may lie outside.
    std::vector<int> touched(const box &part) const;
    // The same of points, of which one more than there are cells may belong to the box; it belongs to the last tile.
    std::vector<int> touched_by_points(box part) const;

private:
    box whole_;
    index3 size_, along_;
};

// Cells of a field, at their owner and as ghost cells.
struct part {
    int field;
    box source, ghosts;
    std::int64_t packed;  // where they are among the message's bytes; of own cells unused
    int claim = -1;       // the receiver's: which number, if several of its tiles read them
};

// What one tile of the sender has for one receiver.
struct parcel {
    int tile;  // the sender's
    std::vector<part> parts;
    int first = 0, last = -1;  // partitions; of own cells none
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

// What `receiver` gets from `owner`, whose box is cut into `tiles`.
parcels parcels_between(const domain &d, int receiver, int owner, const tiling &tiles, const exchanged_fields &fields);

// The numbers of the tiles that read some of those ghost cells of a field.
std::vector<int> readers_of(const domain &d, const tiling &tiles, const box &ghosts, const exchanged_field &field);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_TILES_H
