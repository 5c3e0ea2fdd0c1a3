// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.cuh>: what kernels are given of an exchange that they run themselves.
#ifndef MPIX_HALO_DEVICE_EXCHANGE_HPP
#define MPIX_HALO_DEVICE_EXCHANGE_HPP

#include <cstddef>
#include <cstdint>

#include <mpix/detail/divide.h>
#include <mpix/halo/box.hpp>

namespace mpix::halo {

namespace detail {

// A copy of cells of one field: between an allocation and a message, or from own cells to own ghost cells. Runs of equal
// length at regular distances; [2] is the outermost loop.
struct device_copy {
    std::byte *cells[2];      // the first one in the field, in either allocation
    std::byte *own_cells[2];  // of own cells: the first one of those that become ghost cells, likewise
    std::int64_t in_message;  // to or from a message: its place, in bytes behind the messages of a set
    std::int64_t stride[3];   // in the field
    std::int64_t own_stride[3];
    std::uint32_t count[3];
    std::uint32_t words;  // of each run, which is aligned to them wherever it is
    std::int32_t word_bytes;
    mpix_narrow_divisor by_words, by_count[2];
    std::int32_t claim;    // which of the claims, if several tiles read these ghost cells; -1: one does
    std::int32_t message;  // of its parcel
    std::int32_t parcel;
};

// Copies begin to end - 1. Those before `small` are for all threads of a group, the others for a warp each.
struct device_copies {
    std::int32_t begin, small, end;
};

// What one tile of the sender has for one receiver: partitions first to last of a message, and the copies that they hold.
struct device_parcel {
    std::int32_t message;  // the number of the send, or of the receive, in each set; -1: own cells
    std::int32_t first, last;
    device_copies copies;  // none if a tile waits for it, which has the copies of all its parcels together
};

// Where the ghost cells of a copy are, for waits that a box decides.
struct device_ghosts {
    box points;  // the ghost cells
    box near;    // cells of this rank's box so near that their stencils may read some of these
    std::int32_t field;
};

// How far the stencils of a field read.
struct device_reach {
    std::int32_t depth[directions];
};

struct device_tile {
    box cells;
    std::int32_t box_position;            // which of this rank's
    std::int32_t sends_begin, sends_end;  // parcels
    std::int32_t waits_begin, waits_end;  // parcels of messages
    device_copies ghosts;                 // of these, and from own cells
    std::int32_t has_claims;              // whether some of the copies are claimed
};

}  // namespace detail

/**
 * An exchange as kernels see it; passed to them by value. Made by kernel_exchange::start(), and valid until finish().
 * The calls are in <mpix/halo.cuh>.
 *
 * Arguments are not checked: a tile is 0 to tiles() - 1, i of tile_boundary_first() likewise, a field, a box and a step are
 * at least 0, and fields and boxes are those of the constructor and the grid.
 *
 * The members that end in _ are the library's. They point to memory of the device that has the fields.
 */
struct device_exchange {
    /** Tiles of this rank's boxes, from 0: box by box, x fastest. All exchanges of a grid with tiles of one shape
        number them alike. */
    MPIX_FN int tiles() const { return tiles_count_; }
    /** How many tiles send or read ghost cells in this exchange; and the number of the i-th tile, if these come
        first. */
    MPIX_FN int boundary_tiles() const { return boundary_count_; }
    MPIX_FN int tile_boundary_first(int i) const { return order_[i]; }
    /** The cells of a tile, in global indices. */
    MPIX_FN const box &tile(int number) const { return tiles_[number].cells; }
    /** The position, in grid::boxes(), of the box that a tile is a part of. */
    MPIX_FN int box_position(int number) const { return tiles_[number].box_position; }
    /** Exchanges of this activation, numbered from 0. */
    MPIX_FN std::int64_t steps() const { return steps_; }
    /** The first value of the allocation that exchange `step` uses of a field, given by its position in the
        constructor's list, for this rank's box at position i. A field of two allocations uses them in turn. T is the
        type of the values, which is not checked. Null on a rank without cells. */
    template <class T>
    MPIX_FN T *data(int field, std::int64_t step, int i = 0) const {
        if (tiles_count_ == 0) return nullptr;  // the tables may be where this device cannot reach them
        return reinterpret_cast<T *>(data_[2 * (field * boxes_count_ + i) + allocation_(step)]);
    }

    // 0 or 1.
    MPIX_FN int allocation_(std::int64_t step) const { return static_cast<int>((phase_ + step) & 1); }

    // MPIX_ABI_VERSION of the library: calls of kernels that were compiled with another one return MPI_ERR_REQUEST. It
    // stays the first.
    std::uint64_t version_;
    const detail::device_tile *tiles_;
    const std::int32_t *order_;  // numbers of tiles
    const detail::device_parcel *parcels_;
    const detail::device_copy *copies_;
    std::byte *const *data_;         // of each field, of each box, both allocations, which may be the same one
    std::byte *messages_;            // of the first set, the receives, then the sends
    std::int64_t set_bytes_;         // from them to those of the next set
    const MPIX_Prequest *requests_;  // of each set, the receives, then the sends
    void *receive_handles_;          // of each set, of each receive: what next() knows of its epoch
    void *send_handles_;             // of each set, of each send
    std::uint64_t *words_;           // by which the groups wait for each other; the indices are below
    std::int64_t steps_;
    std::int64_t done_;   // exchanges of earlier activations
    std::int32_t phase_;  // 0 or 1: which allocation exchange 0 uses
    std::int32_t tiles_count_, boundary_count_, boxes_count_;
    std::int32_t receives_, sends_;  // messages in each exchange
    std::int32_t sets_, claims_;     // claims: of each set
    // For wait(box), with kernel_exchange_options::box_waits, and for the library's own kernels, which do not wait by tiles:
    // all parcels that the rank receives, own cells among them. Copy received_copies_ is the first one's first. For wait(box)
    // the ghosts describe the copies, from that one on.
    const detail::device_ghosts *ghosts_;
    const detail::device_reach *reach_;  // of each field
    std::int32_t box_waits_, received_begin_, received_end_, received_copies_, received_copies_end_;
    std::uint64_t stall_ns_;  // how long calls wait by default; 0: for ever

    // Among the words: arrivals at the barrier; which call has failed first (0: none, or by these names, otherwise
    // first_parcel + the parcel of a send or wait), and in which step; of each set, which exchange next() has begun last;
    // of each set, of each claim, for which exchange the ghost cells are claimed, and for which they are there.
    static constexpr int arrivals_at = 0, failed_at = 1, failed_step_at = 2, begun_at = 3;
    static constexpr std::uint64_t next_failed = 1, next_missing = 2, barrier_failed = 3, no_box_waits = 4,
                                   first_parcel = 5;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_DEVICE_EXCHANGE_HPP
