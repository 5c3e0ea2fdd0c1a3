// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: reading cells whose ghost cells stay in the messages.
#ifndef MPIX_HALO_GHOST_READER_HPP
#define MPIX_HALO_GHOST_READER_HPP

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <mpix/halo/box.hpp>
#include <mpix/halo/exchange.hpp>
#include <mpix/halo/field.hpp>

namespace mpix::halo {

namespace detail {

// Where a reader finds the cells of a field.
struct cells_to_read {
    box local, allocated;               // its cells or points; and those that have room in the field's memory
    const std::byte *first = nullptr;   // of `allocated`
    index3 stride{};                    // bytes from a cell to the next
    std::int64_t component_stride = 0;  // and from a value of a cell to the next
    const ghost_piece *pieces = nullptr;
    std::array<std::size_t, directions + 1> first_piece{};  // in each direction; and how many there are
};

// Without `i`, of the only box. Throws as the constructors of ghost_reader.
MPIX_HALO_API const cells_to_read &find_cells(const exchange &x, int field, std::optional<int> i,
                                              std::size_t value_bytes, value_type type);

// One comparison for each axis: what is below wraps around.
inline bool contains(const box &b, std::int64_t x, std::int64_t y, std::int64_t z) {
    const auto within = [&b](std::size_t a, std::int64_t at) {
        return static_cast<std::uint64_t>(at - b.lo[a]) < static_cast<std::uint64_t>(b.hi[a] - b.lo[a]);
    };
    return within(0, x) && within(1, y) && within(2, z);
}

}  // namespace detail

/**
 * Reads a field of an exchange with ghost_storage::in_messages, by global indices. Cells of the box come from the
 * field's memory, after comparisons with the box's ends; ghost cells from where exchange::ghost_pieces() has them,
 * after a search among the pieces in their direction. So compute interior() without it.
 *
 * All other cells are read from the field's memory, if its layout has room there (field_layout::below, above): a
 * program may keep cells outside of a domain that is not periodic. Without room the behaviour is undefined; without
 * NDEBUG it is asserted.
 *
 * Make it after finish(), and use it until the next begin() or start(). With overlap(), make it in `compute`; while the
 * exchange is active it may read cells of the box. If the field has one allocation, it may be used again after the next
 * finish(). If it has two, it stays with the one that was exchanged last when it was made. It must not outlive the
 * exchange. Copying it is cheap.
 */
template <class T>
class ghost_reader {
public:
    /**
     * field  its position in the list that the exchange was made with
     * i      the position of a box of this rank in grid::boxes(), from 0; without it the only one is meant
     *
     * Errors: MPI_ERR_ARG (no such field or box; the exchange has its ghost cells in the fields), MPI_ERR_TYPE (the
     * field has values of another size, or of another arithmetic type).
     */
    ghost_reader(const exchange &x, int field)
        : at_(detail::find_cells(x, field, std::nullopt, sizeof(T), value_type_of<T>())) {}
    ghost_reader(const exchange &x, int field, int i)
        : at_(detail::find_cells(x, field, i, sizeof(T), value_type_of<T>())) {}

    /** Value c of a cell. */
    const T &operator()(std::int64_t x, std::int64_t y = 0, std::int64_t z = 0, std::int64_t c = 0) const {
        if (detail::contains(at_.local, x, y, z)) [[likely]]
            return in_field(x, y, z, c);
        const ghost_piece *const p = find(x, y, z);
        return p == nullptr ? in_field(x, y, z, c) : in_piece(*p, x, y, z, c);
    }
    /**
     * Value c of a cell, and of those behind it along x that lie beside it in memory, as far as the box or the piece
     * goes; of one cell if components are interleaved, or it is in neither. For loops along x, which look for a row
     * once, and not for each cell.
     */
    std::span<const T> row(std::int64_t x, std::int64_t y = 0, std::int64_t z = 0, std::int64_t c = 0) const {
        const auto values = [x](const T &first, std::int64_t stride, std::int64_t end) {
            const bool together = stride == static_cast<std::int64_t>(sizeof(T));
            return std::span<const T>(&first, together ? static_cast<std::size_t>(end - x) : 1);
        };
        if (detail::contains(at_.local, x, y, z)) [[likely]]
            return values(in_field(x, y, z, c), at_.stride[0], at_.local.hi[0]);
        if (const ghost_piece *const p = find(x, y, z); p != nullptr)
            return values(in_piece(*p, x, y, z, c), p->stride[0], p->cells.hi[0]);
        return values(in_field(x, y, z, c), at_.stride[0], x + 1);
    }

private:
    static const T &value(const void *first, std::int64_t bytes) {
        return *reinterpret_cast<const T *>(static_cast<const std::byte *>(first) + bytes);
    }
    const T &in_field(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t c) const {
        const index3 &lo = at_.allocated.lo;
        return value(at_.first, (x - lo[0]) * at_.stride[0] + (y - lo[1]) * at_.stride[1] +
                                    (z - lo[2]) * at_.stride[2] + c * at_.component_stride);
    }
    static const T &in_piece(const ghost_piece &p, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t c) {
        const index3 &lo = p.cells.lo;
        return value(p.first, (x - lo[0]) * p.stride[0] + (y - lo[1]) * p.stride[1] + (z - lo[2]) * p.stride[2] +
                                  c * p.component_stride);
    }
    // Of a cell beside the box; null if the field has it, or nobody.
    const ghost_piece *find(std::int64_t x, std::int64_t y, std::int64_t z) const {
        const auto side = [this](std::size_t a, std::int64_t at) {
            return (at >= at_.local.hi[a]) - (at < at_.local.lo[a]);
        };
        const auto number = static_cast<std::size_t>(direction_number(side(0, x), side(1, y), side(2, z)));
        for (std::size_t n = at_.first_piece[number]; n < at_.first_piece[number + 1]; ++n)
            if (detail::contains(at_.pieces[n].cells, x, y, z)) return &at_.pieces[n];
        assert(detail::contains(at_.allocated, x, y, z));
        return nullptr;
    }

    detail::cells_to_read at_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_GHOST_READER_HPP
