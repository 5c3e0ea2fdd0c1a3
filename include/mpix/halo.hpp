// SPDX-License-Identifier: BSD-3-Clause
/**
 * mpix::halo: halo exchange for stencil codes, on MPI-4 partitioned communication.
 *
 *     mpix::halo::grid g(MPI_COMM_WORLD, {nx, ny});             // cuts the domain into one box per rank
 *     mpix::halo::exchange h(g, {{u, mpix::halo::radius::faces(1)}});
 *     h.start();                                                // send what the neighbours need of u
 *     ... compute h.interior() ...
 *     h.finish();                                               // the ghost cells are there
 *     ... compute h.boundary() ...
 *
 * Words. The *domain* is a regular grid of cells in one to three dimensions. Each rank owns one *box* of it. *Ghost
 * cells* lie beyond a box, in one of 26 *directions*, and hold copies of cells that other ranks own, or the same rank
 * through a periodic boundary. A *field* is the user's memory for the box and its ghost cells. Cells are counted, and
 * boxes given, in global indices. Sizes in memory are in bytes.
 *
 * Errors. Functions throw mpix::halo::error, which has an MPI error class and a sentence that names the argument.
 * Collective functions throw on all ranks of the communicator if they throw on one, so that none waits for another one;
 * except for a communicator that cannot be used, and lack of memory (std::bad_alloc).
 *
 * Thread safety. With MPI_THREAD_MULTIPLE, any number of threads may use distinct exchanges at once, and several may
 * call ready() of one exchange for distinct fields; everything else of an exchange by one thread at a time. With
 * MPI_THREAD_SERIALIZED, any thread, but one at a time, ready() included. Collective functions as MPI says: in one
 * order on each communicator.
 *
 * Host memory only, as yet. The interface is C++ within libmpix: the program needs the same C++ standard library.
 */
#ifndef MPIX_HALO_HPP
#define MPIX_HALO_HPP

#include <mpix/detail/cxx20.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <mpix/detail/order.h>
#include <mpix/mpix.h>

#define MPIX_HALO_API [[gnu::visibility("default")]]

namespace mpix::halo {

/** What the functions below throw. */
class MPIX_HALO_API error : public std::runtime_error {
public:
    error(int error_class, const std::string &sentence) : std::runtime_error(sentence), class_(error_class) {}
    ~error() override;
    /** An MPI error class (MPI_ERR_*). */
    int error_class() const noexcept { return class_; }

private:
    int class_;
};

// ---- boxes ----------------------------------------------------------------------------------------------

/** Cells along x, y, z. x is the fastest in memory: a C array a[z][y][x] has the extent {nx, ny, nz}. In fewer
    dimensions the others are 1 long. */
struct index3 {
    std::int64_t along[3];

    MPIX_FN constexpr std::int64_t &operator[](std::size_t axis) { return along[axis]; }
    MPIX_FN constexpr const std::int64_t &operator[](std::size_t axis) const { return along[axis]; }
    friend auto operator<=>(const index3 &, const index3 &) = default;
};

/** The cells lo <= c < hi along each axis. Kernels may have it. */
struct box {
    index3 lo{}, hi{};

    MPIX_FN index3 size() const { return {hi[0] - lo[0], hi[1] - lo[1], hi[2] - lo[2]}; }
    MPIX_FN bool empty() const { return hi[0] <= lo[0] || hi[1] <= lo[1] || hi[2] <= lo[2]; }
    MPIX_FN std::int64_t cells() const { return empty() ? 0 : (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]); }
    friend bool operator==(const box &, const box &) = default;
};

/** A direction is -1, 0 or 1 along each axis. They are numbered from 0 to 26; 13 is the box itself. */
constexpr int directions = 27, no_direction = 13;
constexpr std::array<int, 3> direction(int number) { return {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1}; }
constexpr int direction_number(int x, int y, int z) { return x + 1 + 3 * (y + 1) + 9 * (z + 1); }
constexpr int opposite(int number) { return directions - 1 - number; }

/**
 * How many cells a stencil reads beyond a box, in each direction. In the direction of an edge or a corner it is the
 * depth along each axis of that direction: 2 towards (1, 1, 0) are 2 x 2 cells beyond each cell of the edge. May be
 * longer than the neighbour's box, and than the domain, if that is periodic.
 *
 * A stencil that reads (x + 1, y + 1) needs the faces as well: at the upper x side of the box that is a ghost cell in
 * direction (1, 0, 0), and at the upper y side one in direction (0, 1, 0). Only at the corner is it one in direction
 * (1, 1, 0). radius::of() takes the offsets of a stencil and sets all directions that it needs.
 */
struct radius {
    std::array<int, directions> cells{};  // by direction number; that of no_direction is 0

    /** The same in all directions, edges and corners included. */
    static radius all(int cells) {
        radius r;
        r.cells.fill(cells);
        r.cells[no_direction] = 0;
        return r;
    }
    /** The same across all faces, and nothing at edges and corners. */
    static radius faces(int cells) {
        radius r;
        for (const int face : {4, 10, 12, 14, 16, 22}) r.cells[face] = cells;
        return r;
    }
    /** What a stencil needs that reads the cells at these offsets: with {{1, 1, 0}, {-1, 0, 0}} it reads (x + 1, y + 1)
        and (x - 1, y). */
    static radius of(const std::vector<std::array<int, 3>> &offsets) {
        radius r;
        for (const std::array<int, 3> &offset : offsets)
            for (int number = 0; number < directions; ++number) {
                // Along each of its axes the offset leads out of the box somewhere, but not everywhere.
                const std::array<int, 3> step = direction(number);
                bool leads = true;
                int depth = 0;
                for (std::size_t a = 0; a < 3; ++a) {
                    if (step[a] == 0) continue;
                    leads = leads && step[a] * offset[a] > 0;
                    depth = (std::max)(depth, step[a] * offset[a]);
                }
                int &cells = r.cells[static_cast<std::size_t>(number)];
                if (leads) cells = (std::max)(cells, depth);
            }
        return r;
    }
    /** One direction, of the neighbour at (x, y, z). Returns *this. Errors: MPI_ERR_ARG (each is -1, 0 or 1). */
    radius &set(int x, int y, int z, int depth) {
        for (const int step : {x, y, z})
            if (step < -1 || step > 1)
                throw error(MPI_ERR_ARG, "mpix::halo::radius::set: there is no direction (" + std::to_string(x) + ", " +
                                             std::to_string(y) + ", " + std::to_string(z) +
                                             "); each of x, y, z is -1, 0 or 1");
        cells[direction_number(x, y, z)] = depth;
        return *this;
    }
};

/** How many cells the radius needs below and above a box, along each axis of a domain of that many dimensions. */
inline std::array<index3, 2> ghost_depth(const radius &reach, int dimensions) {
    std::array<index3, 2> depth{};
    for (int number = 0; number < directions; ++number) {
        const std::array<int, 3> step = direction(number);
        if ((dimensions < 2 && step[1] != 0) || (dimensions < 3 && step[2] != 0)) continue;
        for (std::size_t a = 0; a < 3; ++a)
            if (step[a] != 0 && depth[step[a] > 0][a] < reach.cells[number])
                depth[step[a] > 0][a] = reach.cells[number];
    }
    return depth;
}

// ---- the grid -------------------------------------------------------------------------------------------

/** Measured bandwidths, in bytes per second and in one direction. All nodes are taken to be alike. */
struct measured_links {
    /** Between two ranks of a node (or their GPUs), row by row: entry i * n + j from the i-th rank to the j-th. Each is
        above 0 and finite, also from a rank to itself. */
    std::vector<double> within_node = {};
    /** Out of a node, for all its ranks together. Not used if there is one node. */
    double network = 0;
};

struct grid_options {
    /** Whether the domain goes on at its other end, along each axis. */
    std::array<bool, 3> periodic{};
    /**
     * The box of each rank, if the program decides. Together they cover the domain, without overlap; they may be
     * unequal, and some may be empty (hi equal to lo). Along axes that the domain lacks, lo is 0 and hi is 1.
     *
     * By default the domain is cut by prime factors, for nodes first and then for the ranks of each, always across the
     * longest axis, so that the boxes of a node's ranks are neighbours.
     */
    std::vector<box> boxes = {};
    /** No box of a computed decomposition is shorter than this. */
    index3 shortest{1, 1, 1};
    /**
     * With bandwidths, the decomposition is the one whose exchange is predicted to be fastest, and boxes that exchange
     * much are given to ranks with a fast link between them. The exchange is predicted for this radius and size.
     */
    measured_links links = {};
    radius typical_radius = radius::all(1);
    double typical_bytes_per_cell = 8;
};

class exchange;
struct grid_state;

/**
 * A domain, and who owns which box of it. Copies share their state. The last copy releases a communicator, which is
 * collective: copies die in the same order on all ranks, and before MPI_Finalize.
 */
class MPIX_HALO_API grid {
public:
    /**
     * Collective over `comm`, an intracommunicator, which the grid duplicates. `extent`: cells of the domain, along one
     * to three axes, each at least 1. All ranks give the same arguments.
     *
     * Errors: MPI_ERR_COMM, MPI_ERR_DIMS (extent), MPI_ERR_ARG (options; the domain cannot be cut into as many boxes as
     * there are ranks; ranks that disagree on an argument).
     */
    grid(MPI_Comm comm, const std::vector<std::int64_t> &extent, const grid_options &options = {});

    int dimensions() const;
    const index3 &extent() const;
    const std::array<bool, 3> &periodic() const;
    int rank() const;
    int ranks() const;
    /** The box of this rank, or of any. */
    const box &local() const;
    const box &box_of(int rank) const;
    /** Who owns a cell of the domain. Errors: MPI_ERR_ARG (a cell outside of it). */
    int owner(const index3 &cell) const;

private:
    friend class exchange;
    std::shared_ptr<const grid_state> state_;
};

// ---- fields ---------------------------------------------------------------------------------------------

/** How a field lies in memory: the box, with some cells on each side of it, x fastest. */
struct field_layout {
    /** Values per cell. */
    int components = 1;
    /** Whether the components of a cell are next to each other (array of structures). If not, one component's array
        comes behind the other's. */
    bool interleaved = false;
    /** Cells that are allocated below and above the box, along each axis. -1: as many as the radius needs. */
    index3 below{-1, -1, -1}, above{-1, -1, -1};
    /** Bytes from a row (along x) to the next, from a plane to the next, and from a component's array to the next (0 if
        they are interleaved). 0: without a gap. */
    std::size_t row_bytes = 0, plane_bytes = 0, component_bytes = 0;
};

/** A field of an exchange: memory that the caller owns. */
class field {
public:
    /**
     * data    the first value of the allocation: that of its lowest cell, `below` cells before the box. Remains the
     *         caller's, and must stay allocated until the exchange is destroyed. The fields of an exchange, and of
     *         exchanges that are active at once, do not overlap
     * reach   the ghost cells that an exchange fills. All that it covers are allocated, also those outside of a domain
     *         that is not periodic, which an exchange does not touch
     * layout  by default one component, just the cells that the radius needs, and no gaps
     *
     * Value c of the cell (x, y, z) lies so many bytes behind `data`, where lo is that of the rank's box:
     *
     *     (z - lo[2] + below[2]) * plane_bytes + (y - lo[1] + below[1]) * row_bytes + (x - lo[0] + below[0]) * cell
     *         + c * value
     *
     * If the components are interleaved, cell is components * value_bytes, and value is value_bytes; otherwise, cell is
     * value_bytes, and value is component_bytes.
     */
    template <class T>
    field(T *data, const radius &reach, const field_layout &layout = {});
    template <class T>
    field(const T *, const radius &, const field_layout & = {}) {
        static_assert(sizeof(T) == 0, "an exchange writes a field's ghost cells, so its memory cannot be const");
    }
    /** The same of a type that is known by its size in bytes only. */
    field(void *data, std::size_t value_bytes, const radius &reach, const field_layout &layout = {});

    void *data;
    std::size_t value_bytes;
    radius reach;
    field_layout layout;
};

template <class T>
field::field(T *first, const radius &wanted, const field_layout &lies)
    : field(static_cast<void *>(first), sizeof(T), wanted, lies) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "values of a field are copied as bytes, so their type must be trivially copyable");
}

inline field::field(void *first, std::size_t bytes, const radius &wanted, const field_layout &lies)
    : data(first), value_bytes(bytes), reach(wanted), layout(lies) {}

/**
 * Memory for one value per cell of a rank's box and of its ghost cells, by global indices; for programs that have none
 * of their own. An exchange takes it in place of a field. Ghost cells of a box at the lower end of a periodic domain
 * have negative indices.
 */
template <class T>
class array {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> holds bits, which have no address each; use array<char>");

public:
    array(const grid &g, const radius &reach) : reach_(reach) {
        const std::array<index3, 2> depth = ghost_depth(reach, g.dimensions());
        for (std::size_t a = 0; a < 3; ++a) {
            lo_[a] = g.local().lo[a] - depth[0][a];
            size_[a] = g.local().hi[a] + depth[1][a] - lo_[a];
        }
        values_.resize(static_cast<std::size_t>(size_[0] * size_[1] * size_[2]));
    }

    T &operator()(std::int64_t x, std::int64_t y = 0, std::int64_t z = 0) { return values_[place(x, y, z)]; }
    const T &operator()(std::int64_t x, std::int64_t y = 0, std::int64_t z = 0) const {
        return values_[place(x, y, z)];
    }
    /** Stays valid for as long as the array is neither moved nor destroyed. */
    operator field() { return {values_.data(), reach_}; }  // NOLINT: implicit

private:
    std::size_t place(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return static_cast<std::size_t>(((z - lo_[2]) * size_[1] + y - lo_[1]) * size_[0] + x - lo_[0]);
    }

    radius reach_;
    index3 lo_{}, size_{};
    std::vector<T> values_;
};

// ---- the exchange ---------------------------------------------------------------------------------------

/** How a message's bytes are gathered and scattered. The ghost cells get the same bytes. */
enum class transfer {
    packed,    ///< the library packs each field into partitions of its own, so each may leave by itself
    datatype,  ///< one partition with a derived datatype, which leaves when all fields are ready
};

struct exchange_options {
    halo::transfer transfer = halo::transfer::packed;
};

struct exchange_state;

/**
 * The exchange of some fields of a grid: one message to, and one from, each neighbour, whatever the number of fields
 * and of directions in which the neighbour lies. A rank that is its own neighbour copies. To exchange a subset of the
 * fields at times, make a second exchange of these; they may run at the same time if their fields differ.
 */
class MPIX_HALO_API exchange {
public:
    /**
     * Collective over the grid's ranks. All give as many fields, in the same order, with the same value sizes,
     * components, interleaving and radii; addresses, padding and gaps may differ.
     *
     * Errors: MPI_ERR_ARG (a radius or layout, or ranks that disagree), MPI_ERR_BUFFER (a null address, or no host
     * memory), MPI_ERR_COUNT (too many bytes); and what the MPI calls give.
     */
    exchange(const grid &g, const std::vector<field> &fields, const exchange_options &options = {});
    /** Not active, and before MPI_Finalize. An active exchange is reported on stderr, and its memory kept. */
    ~exchange();
    /** What an exchange has been moved from may only be destroyed, or assigned to. */
    exchange(exchange &&) noexcept;
    exchange &operator=(exchange &&) noexcept;

    /**
     * Begin an exchange of all fields, and send. From here to finish(), the caller must not write the fields, nor read
     * the ghost cells that the exchange fills. Does not wait for other ranks.
     *
     * The program fills ghost cells outside of the domain before start(), if its stencil reads them: interior() reaches
     * up to the edge of the domain there.
     *
     * Errors: MPI_ERR_REQUEST (it is active), and what MPI_Start and MPI_Pready give.
     */
    void start();
    /**
     * The same in steps, for fields that are computed one after the other: begin an exchange, then send each field when
     * it is ready. Errors of ready(): MPI_ERR_ARG (no such field), MPI_ERR_REQUEST (not active, or the field is ready).
     */
    void begin();
    void ready(int field);
    /**
     * Wait until the ghost cells of all fields are there, and until what was sent may be written again.
     *
     * Errors: MPI_ERR_REQUEST (not active, or a field is not ready), MPI_ERR_PENDING (after MPIX_STALL_SECONDS), and
     * what MPI_Wait gives. After MPI_ERR_PENDING the exchange is still active; finish() may be called again.
     */
    void finish();
    bool active() const;

    /** The cells of this rank's box whose stencils read none of the ghost cells that this exchange fills; and the
        others, as up to six boxes that do not overlap. */
    const box &interior() const;
    const std::vector<box> &boundary() const;

    /** Messages that this rank sends in each exchange, and their bytes. */
    int messages_sent() const;
    std::int64_t bytes_sent() const;

private:
    std::unique_ptr<exchange_state> state_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_HPP
