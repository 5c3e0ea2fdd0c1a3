// SPDX-License-Identifier: BSD-3-Clause
//
// Where the cells of a field are in memory, and copies of boxes of them.
#ifndef MPIX_HOST_FIELD_LAYOUT_H
#define MPIX_HOST_FIELD_LAYOUT_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/reduction.h"
#include "transport/status.h"

namespace mpix::halo {

// Pieces of memory of equal length at regular distances: [2] is the outermost loop.
struct runs {
    std::byte *first = nullptr;
    std::byte *other = nullptr;  // the same in the field's second allocation, if it has one
    std::int64_t bytes = 0;      // of each
    std::array<std::int64_t, 3> count{1, 1, 1}, stride{};

    std::int64_t total() const { return bytes * count[0] * count[1] * count[2]; }
};

// All return how many bytes there are.
std::int64_t pack(const runs &from, std::byte *to);
std::int64_t unpack(const std::byte *from, const runs &to);
std::int64_t combine(const std::byte *from, const runs &to, combine_function how);
// Whether some byte is in both. May say so of those that only lie between each other, unless their distances agree.
bool overlap(const runs &a, const runs &b);
// Positions of two of them that overlap, if there are any; the lesser one first. Only those that lie between each other
// are compared.
std::optional<std::pair<std::size_t, std::size_t>> overlapping_pair(std::span<const runs> all);
// The memory of a field for the box at this position of the rank's; and what comes before the name of its members.
allocation allocation_of(const field &f, std::size_t i);
std::string allocation_name(const field &f, std::size_t i);

// From one to the other, which hold equally many bytes. They do not overlap. `room` is memory for all of them.
void copy(const runs &from, const runs &to, std::byte *room);

// Whether a field's layout must have room for all ghost cells of its radius, or may have less.
enum class ghost_room { demanded, any };

// A field on a rank. The `i` of its functions is the position of a box among the rank's.
class field_view {
public:
    // `local`: the rank's boxes; of a staggered field, their points. A failure names the member of the field that is
    // wrong. `for_kernels`: the CPU need not reach the memory, so runs are only addresses.
    static status make(const field &f, std::span<const box> local, int dimensions, field_view &made,
                       bool for_kernels = false, ghost_room room = ghost_room::demanded);
    // The same of a field whose memory is not looked at: only bytes() of it may be used, and what it is made of.
    static status measure(const field &f, std::span<const box> local, int dimensions, field_view &made,
                          ghost_room room = ghost_room::demanded);

    // All that is allocated for cells.
    runs allocated(std::size_t i) const { return of(i, boxes_[i].allocated); }
    const box &allocated_cells(std::size_t i) const { return boxes_[i].allocated; }
    // All components of the cells of `part`, which lies within the allocation.
    runs of(std::size_t i, const box &part) const;
    // The same with a run for each row, even if rows lie together: of equal boxes equally many of equal length.
    runs rows_of(std::size_t i, const box &part) const;
    // From the first allocated cell to the last; 0 if the box is empty.
    std::int64_t bytes(std::size_t i) const { return boxes_[i].bytes; }
    // In directions of the grid's dimensions only.
    const halo::radius &radius() const { return radius_; }
    std::int64_t value_bytes() const { return value_; }
    value_type type() const { return type_; }
    std::int64_t components() const { return components_; }
    bool interleaved() const { return interleaved_; }
    const std::array<bool, 3> &staggered() const { return staggered_; }
    bool has_second_allocation() const;

private:
    struct box_memory {
        std::byte *data = nullptr, *other = nullptr;
        box allocated;                                   // cells
        std::int64_t row = 0, plane = 0, component = 0;  // distances in bytes
        std::int64_t bytes = 0;
    };
    static status measure_box(const field &f, const box &local, const std::array<index3, 2> &depth, box_memory &made);

    std::vector<box_memory> boxes_;
    std::int64_t value_ = 1, components_ = 1;
    value_type type_ = value_type::bytes;
    bool interleaved_ = false;
    std::array<bool, 3> staggered_{};
    halo::radius radius_{};
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_LAYOUT_H
