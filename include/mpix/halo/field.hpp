// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: how a field lies in memory, and memory for programs that have none.
#ifndef MPIX_HALO_FIELD_HPP
#define MPIX_HALO_FIELD_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpix/halo/box.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

/** What the values of a field are, for exchanges that do arithmetic on them. */
enum class value_type : int {
    bytes,  ///< no arithmetic
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float32,
    float64,
    long_double,
};

/** That of a C++ type: arithmetic, for all arithmetic types but bool. */
template <class T>
constexpr value_type value_type_of() {
    if constexpr (std::is_same_v<std::remove_cv_t<T>, bool> || !std::is_arithmetic_v<T>) {
        return value_type::bytes;
    } else if constexpr (std::is_floating_point_v<T>) {
        if (std::is_same_v<std::remove_cv_t<T>, long double>) return value_type::long_double;
        return sizeof(T) == 4 ? value_type::float32 : value_type::float64;
    } else {
        const value_type first = std::is_signed_v<T> ? value_type::int8 : value_type::uint8;
        const int doubled = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return static_cast<value_type>(static_cast<int>(first) + doubled);
    }
}

/** How a field lies in memory: a box, with some cells on each side of it, x fastest. */
struct field_layout {
    /** Values per cell. */
    int components = 1;
    /** Whether the components of a cell are next to each other (array of structures). If not, one component's array
        comes behind the other's. */
    bool interleaved = false;
    /** Cells that are allocated below and above the box, along each axis. -1: as many as the radius needs. */
    index3 below{-1, -1, -1}, above{-1, -1, -1};
    /** Bytes from a row (along x) to the next, from a plane to the next, and from a component's array to the next (0 if
        they are interleaved). 0: without a gap. Of several boxes of a rank all have the same distances, unless they are
        0. */
    std::size_t row_bytes = 0, plane_bytes = 0, component_bytes = 0;
    /**
     * Along which axes the field is staggered: its values are not in the cells, but at points between them. Point i of
     * such an axis is the lower face of cell i. With two such axes points are edges of the cells, with three corners.
     *
     * Along a periodic axis there are as many points as cells; the upper face of the last cell is the point 0 again.
     * Along others there is one more, and belongs to the box at the upper end of the domain. grid::points() has the
     * points of a box. Whatever is said of a field's cells holds for its points.
     */
    std::array<bool, 3> staggered{};

    friend bool operator==(const field_layout &, const field_layout &) = default;
};

/** A field's memory for one box. */
struct allocation {
    /** The first value: that of the lowest cell, `below` cells before the box. */
    void *data = nullptr;
    /** A second allocation of the same layout, or null; for exchange::swap(). */
    void *other = nullptr;
    std::size_t allocated = 0;  ///< bytes at data, and at other; 0: unknown, not checked
    box made_for{};             ///< the box, or its points, for which the memory was made; empty: unknown, not checked
};

/** Where ghost cells are after an exchange (exchange_options::ghosts). */
enum class ghost_storage {
    in_fields,    ///< in the fields' memory, beside the boxes
    in_messages,  ///< where they were received; or, if this rank has the cells, in these themselves
};

/** A field of an exchange: memory that the caller owns. */
class field {
public:
    /**
     * data    the first value of the allocation: that of its lowest cell, `below` cells before the box. Remains the
     *         caller's, and must stay allocated until the exchange is destroyed. No cell of a
     *         field of an exchange, and of exchanges that are active at once, is one of another field
     * radius  the ghost cells that an exchange fills. All that it covers are allocated, also those outside of a domain
     *         that is not periodic, which an exchange does not touch. If ghost cells stay in the messages
     *         (ghost_storage::in_messages), fewer of them may be allocated, or none
     * layout  by default one component, just the cells that the radius needs, and no gaps
     *
     * Value c of the cell (x, y, z) lies so many bytes behind `data`, where lo is that of the box:
     *
     *     (z - lo[2] + below[2]) * plane_bytes + (y - lo[1] + below[1]) * row_bytes + (x - lo[0] + below[0]) * cell
     *         + c * value
     *
     * If the components are interleaved, cell is components * value_bytes, and value is value_bytes; otherwise, cell is
     * value_bytes, and value is component_bytes.
     */
    template <class T>
    field(T *data, const halo::radius &radius, const field_layout &layout = {});
    template <class T>
    field(const T *, const halo::radius &, const field_layout & = {}) {
        static_assert(sizeof(T) == 0, "an exchange writes a field's ghost cells, so its memory cannot be const");
    }
    /** The same of memory whose length is known: an exchange refuses it if the box and its ghost cells do not fit. */
    template <class T>
    field(std::span<T> memory, const halo::radius &radius, const field_layout &layout = {});
    /** The same on a rank that has several boxes, or none: memory for each of them, in the order of grid::boxes(). */
    template <class T>
    field(const std::vector<T *> &each, const halo::radius &radius, const field_layout &layout = {});
    template <class T>
    field(const std::vector<std::span<T>> &each, const halo::radius &radius, const field_layout &layout = {});
    /** The same of a type that is known by its size in bytes only. The caller may set the member `type`. */
    field(void *data, std::size_t value_bytes, const halo::radius &radius, const field_layout &layout = {});

    void *data;
    std::size_t value_bytes;
    value_type type = value_type::bytes;
    halo::radius radius;
    field_layout layout;
    /** A second allocation of the same layout, or null; for exchange::swap(). */
    void *other = nullptr;
    std::size_t allocated = 0;  ///< bytes at data, and at other; 0: unknown, not checked
    box made_for{};             ///< the box, or its points, for which the memory was made; empty: unknown, not checked
    /** On a rank that has several boxes, or none: of each of them. Then `data`, `other`, `allocated` and
        `made_for` are not used. */
    std::vector<allocation> allocations;
};

/** The bytes that a field takes for a box of this rank, from its first allocated cell to its last: what `allocated` is
    compared with. The field's memory is not used. 0 if the box is empty. `i`: the box's position in grid::boxes(), from
    0; without it the only one. `ghosts`: as of the exchange; with in_messages the layout may be smaller than the
    radius. Local. Errors: MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_TYPE as of an exchange. */
MPIX_HALO_API std::size_t field_bytes(const grid &g, const field &f, ghost_storage ghosts = ghost_storage::in_fields);
MPIX_HALO_API std::size_t field_bytes(const grid &g, const field &f, int i,
                                      ghost_storage ghosts = ghost_storage::in_fields);

/** A field of two allocations, which exchange::swap() alternates between; `now` is the first one. Errors: MPI_ERR_ARG
    (they differ in more than their address). */
inline field double_buffered(const field &now, const field &other) {
    if (now.value_bytes != other.value_bytes || now.type != other.type || now.radius.cells != other.radius.cells ||
        now.layout != other.layout || now.allocations.size() != other.allocations.size())
        throw error(
            MPI_ERR_ARG,
            "mpix::halo::double_buffered: now and other differ in the size or type of values, radius, layout, or "
            "number of allocations");
    const auto add = [](auto &to, const auto &second) {
        if (to.made_for.empty()) to.made_for = second.made_for;
        if (!second.made_for.empty() && second.made_for != to.made_for)
            throw error(MPI_ERR_ARG, "mpix::halo::double_buffered: now and other are arrays for different boxes");
        to.other = second.data;
        if (to.allocated == 0 || (second.allocated != 0 && second.allocated < to.allocated))
            to.allocated = second.allocated;
    };
    field both = now;
    add(both, other);
    for (std::size_t i = 0; i < both.allocations.size(); ++i) add(both.allocations[i], other.allocations[i]);
    return both;
}

template <class T>
field::field(T *first, const halo::radius &wanted, const field_layout &lies)
    : field(static_cast<void *>(first), sizeof(T), wanted, lies) {
    type = value_type_of<T>();
    static_assert(std::is_trivially_copyable_v<T>,
                  "values of a field are copied as bytes, so their type must be trivially copyable");
}

template <class T>
field::field(std::span<T> memory, const halo::radius &wanted, const field_layout &lies)
    : field(memory.data(), wanted, lies) {
    allocated = memory.size_bytes();
}

template <class T>
field::field(const std::vector<T *> &each, const halo::radius &wanted, const field_layout &lies)
    : field(static_cast<T *>(nullptr), wanted, lies) {
    for (T *const first : each) allocations.push_back({.data = first});
}

template <class T>
field::field(const std::vector<std::span<T>> &each, const halo::radius &wanted, const field_layout &lies)
    : field(static_cast<T *>(nullptr), wanted, lies) {
    for (const std::span<T> memory : each)
        allocations.push_back({.data = memory.data(), .allocated = memory.size_bytes()});
}

inline field::field(void *first, std::size_t bytes, const halo::radius &wanted, const field_layout &lies)
    : data(first), value_bytes(bytes), radius(wanted), layout(lies) {}

namespace detail {

// Tells this process's exchanges that memory is about to be freed; they refuse to use it from now on. Returns whether
// an active exchange uses it: then it must be kept.
MPIX_HALO_API bool before_free(const void *first, std::size_t bytes) noexcept;

// The values of an array. Memory that an active exchange uses is never freed.
template <class T>
class array_memory {
public:
    array_memory() = default;
    ~array_memory() { release(); }
    array_memory(const array_memory &) = default;
    array_memory(array_memory &&) noexcept = default;
    array_memory &operator=(const array_memory &other) {
        if (other.values_.size() != values_.size()) release();  // otherwise memory and layout stay
        values_ = other.values_;
        return *this;
    }
    array_memory &operator=(array_memory &&other) noexcept {
        if (this == &other) return *this;
        release();
        values_ = std::move(other.values_);
        return *this;
    }

    void allocate(std::size_t count) { values_.resize(count); }  // once
    std::vector<T> &values() { return values_; }
    const std::vector<T> &values() const { return values_; }

private:
    // A list of all memory that was kept, so that leak checkers find it reachable.
    struct kept {
        std::vector<T> values;
        kept *previous = nullptr;
    };

    void release() noexcept {
        // All that is allocated: after an assignment from an array without values it has none, but memory.
        if (values_.capacity() == 0 || !before_free(values_.data(), values_.capacity() * sizeof(T))) return;
        static std::atomic<kept *> last{nullptr};
        if (kept *const now = new (std::nothrow) kept{std::move(values_)})
            now->previous = last.exchange(now, std::memory_order_relaxed);  // never read
    }

    std::vector<T> values_;
};

}  // namespace detail

template <class T>
class arrays;

/**
 * Memory for one value per cell of a box of this rank and of its ghost cells, by global indices; for programs that have
 * none of their own. An exchange takes it in place of a field. Ghost cells of a box at the lower end of a periodic
 * domain have negative indices.
 */
template <class T>
class array {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> holds bits, which have no address each; use array<char>");

public:
    /** For this rank's only box. `staggered`: as of field_layout. */
    array(const grid &g, const halo::radius &radius, const std::array<bool, 3> &staggered = {})
        : array(g, g.local(), radius, staggered) {}

    T &operator()(std::int64_t x, std::int64_t y = 0, std::int64_t z = 0) { return memory_.values()[place(x, y, z)]; }
    const T &operator()(std::int64_t x, std::int64_t y = 0, std::int64_t z = 0) const {
        return memory_.values()[place(x, y, z)];
    }
    /** The memory moves with the array: after std::swap() an exchange goes on with the same memory, which is the other
        array's then. An exchange notices if the memory ends, with the array or by an assignment that moves, or if an
        array of another size is assigned: see exchange::finish(). */
    operator field() {  // NOLINT: implicit
        field f(std::span<T>(memory_.values()), radius_, {.staggered = staggered_});
        f.made_for = local_;
        return f;
    }

private:
    friend class arrays<T>;

    array(const grid &g, const box &cells, const halo::radius &radius, const std::array<bool, 3> &staggered)
        : radius_(radius), staggered_(staggered) {
        const std::array<index3, 2> depth = ghost_depth(radius, g.dimensions());
        local_ = g.points(cells, staggered);
        for (std::size_t a = 0; a < 3; ++a) {
            lo_[a] = local_.lo[a] - depth[0][a];
            size_[a] = local_.hi[a] + depth[1][a] - lo_[a];
        }
        memory_.allocate(static_cast<std::size_t>(size_[0] * size_[1] * size_[2]));
    }
    std::size_t place(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return static_cast<std::size_t>(((z - lo_[2]) * size_[1] + y - lo_[1]) * size_[0] + x - lo_[0]);
    }

    halo::radius radius_;
    std::array<bool, 3> staggered_;
    box local_;
    index3 lo_{}, size_{};
    detail::array_memory<T> memory_;
};

/** An array for each of this rank's boxes, of which there may be any number; one field of an exchange. */
template <class T>
class arrays {
public:
    arrays(const grid &g, const halo::radius &radius, const std::array<bool, 3> &staggered = {})
        : radius_(radius), staggered_(staggered) {
        for (std::size_t i = 0; i < g.boxes().size(); ++i)
            each_.push_back(array<T>(g, g.local(static_cast<int>(i)), radius, staggered));
    }

    /** That of the box at this position in grid::boxes(). */
    array<T> &operator[](std::size_t i) { return each_[i]; }
    const array<T> &operator[](std::size_t i) const { return each_[i]; }
    std::size_t size() const { return each_.size(); }
    /** As of array. */
    operator field() {  // NOLINT: implicit
        std::vector<std::span<T>> memory;
        for (array<T> &one : each_) memory.emplace_back(one.memory_.values());
        field f(memory, radius_, {.staggered = staggered_});
        for (std::size_t i = 0; i < each_.size(); ++i) f.allocations[i].made_for = each_[i].local_;
        return f;
    }

private:
    halo::radius radius_;
    std::array<bool, 3> staggered_;
    std::vector<array<T>> each_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_FIELD_HPP
