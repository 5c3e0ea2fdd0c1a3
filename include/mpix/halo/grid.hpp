// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: the domain, and which rank owns which boxes of it.
#ifndef MPIX_HALO_GRID_HPP
#define MPIX_HALO_GRID_HPP

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <mpix/halo/box.hpp>

namespace mpix::halo {

/** Measured bandwidths, in bytes per second and in one direction. All nodes are taken to be alike. */
struct measured_links {
    /** Between two ranks of a node (or their GPUs), row by row: entry i * n + j from the i-th rank to the j-th. Each is
        above 0 and finite, also from a rank to itself. */
    std::vector<double> within_node = {};
    /** Out of a node, for all its ranks together. Not used if there is one node. */
    double network = 0;
    /** Seconds to pack, or to unpack, one run of cells that lie together (a row along x), beyond the time of its bytes.
        Faces across x have the most runs, and the shortest ones. If this is above 0, boxes are cut less across x. */
    double run_seconds = 0;
};

/** How measure_links() measures. */
struct links_measurement {
    /** The size of each message. */
    std::int64_t bytes = 4 << 20;
    /** The number of messages over each link; the fastest one counts. One more is sent first, and is not timed. */
    int rounds = 5;
    /** Memory of 2 * bytes, of the kind in which the fields will be: host memory, or this rank's GPU. It is
        overwritten. Null: the library allocates host memory. */
    void *memory = nullptr;
};

/**
 * Measures the bandwidths for grid_options::links by partitioned messages. Within one node it measures the link from
 * each rank to each rank, one at a time. The other nodes are taken to be like it. If there are several nodes, the ranks
 * of this one then all send at the same time, each to a rank of a second node. If `memory` is host memory, the call
 * also measures run_seconds.
 *
 * A node of n ranks has n * n links, so call this once, while nothing else communicates. Collective over `comm`, an
 * intracommunicator. All ranks give the same bytes and rounds, and get the same answer.
 *
 *     mpix::halo::grid g(comm, {nx, ny, nz}, {.links = mpix::halo::measure_links(comm)});
 *
 * Errors: MPI_ERR_COMM, MPI_ERR_ARG (bytes or rounds below 1, ranks that disagree), MPI_ERR_BUFFER (no memory),
 * MPI_ERR_NO_MEM, and what the MPI calls give.
 */
MPIX_HALO_API measured_links measure_links(MPI_Comm comm, const links_measurement &how = {});

struct grid_options {
    /** Whether the domain goes on at its other end, along each axis. */
    std::array<bool, 3> periodic{};
    /**
     * The boxes, by their numbers, if the program decides. Together they cover the domain, without overlap; they may be
     * unequal, and some may be empty (hi equal to lo). Along axes that the domain lacks, lo is 0 and hi is 1.
     *
     * By default the domain is cut by prime factors, for nodes first and then for the ranks of each, always across the
     * longest axis, so that the boxes of a node's ranks are neighbours.
     */
    std::vector<box> boxes = {};
    /** The rank that owns each of `boxes`. A rank may own any number of them, and none. Empty: there are as many boxes
        as ranks, and box r is that of rank r. */
    std::vector<int> owners = {};
    /** How many boxes each rank owns, if they are computed: what would be its only box is cut further, like that of a
        node for its ranks. Rank r owns the boxes from r * boxes_per_rank on. */
    int boxes_per_rank = 1;
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

struct grid_internals;  // of the library
struct grid_state;

/**
 * A domain, and who owns which boxes of it. Boxes are numbered from 0. Where a function takes a position `i`, it is
 * that of one of this rank's boxes in boxes(), from 0; without it the only one is meant, and MPI_ERR_ARG is thrown if
 * this rank has none, or several.
 *
 * What has been moved from may be destroyed or assigned to; all else throws
 * MPI_ERR_ARG, also what is given such a grid. Copies share their state. The last of a grid and its exchanges to be
 * freed frees a communicator, which is collective. Free them in the same order on all ranks, and before MPI_Finalize.
 */
class MPIX_HALO_API grid {
public:
    /**
     * Collective over `comm`, an intracommunicator, which the grid duplicates. `extent`: cells of the domain, along one
     * to three axes, each at least 1. All ranks give the same arguments.
     *
     * Errors: MPI_ERR_COMM, MPI_ERR_DIMS (extent), MPI_ERR_ARG (options; the domain cannot be cut into so many boxes;
     * ranks that disagree on an argument).
     */
    grid(MPI_Comm comm, const std::vector<std::int64_t> &extent, const grid_options &options = {});

    int dimensions() const;
    const index3 &extent() const;
    const std::array<bool, 3> &periodic() const;
    int rank() const;
    int ranks() const;
    /** The numbers of this rank's boxes, in ascending order; and how many there are of all ranks. */
    const std::vector<int> &boxes() const;
    int total_boxes() const;
    /** A box of this rank. */
    const box &local() const;
    const box &local(int i) const;
    /** Any box, and the rank that owns it. Errors: MPI_ERR_ARG (no such number). */
    const box &box_of(int number) const;
    int rank_of(int number) const;
    /**
     * The points of a staggered field (field_layout::staggered) with the indices of these cells; and where the cells
     * reach the upper end of a domain that is not periodic, also the points beyond the last cell. Of a box the points
     * that its rank owns; of an exchange's interior() and boundary() all of them, without overlap. None for no cells.
     *
     * Errors: MPI_ERR_ARG (an axis that the domain lacks is staggered).
     */
    box points(const box &cells, const std::array<bool, 3> &staggered) const;
    /** Which rank owns a cell of the domain. Errors: MPI_ERR_ARG (a cell outside of it). */
    int owner(const index3 &cell) const;
    /**
     * The global index of a cell that is counted from the lowest cell of a box of this rank. Ghost cells may be asked
     * for, too: along periodic axes they get the index of the cell in the domain that they are copies of; along others
     * they may be outside of the domain.
     */
    index3 global_index(const index3 &local) const;
    index3 global_index(const index3 &local, int i) const;
    /** The ranks that own ghost cells of this rank's boxes in a direction (its number) up to a depth, in ascending
        order; perhaps this rank itself. Errors: MPI_ERR_ARG (no such direction, or depth < 0). */
    std::vector<int> neighbours(int direction, int depth = 1) const;

private:
    friend struct grid_internals;
    explicit grid(std::shared_ptr<const grid_state> made);
    std::shared_ptr<const grid_state> state_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_GRID_HPP
