// SPDX-License-Identifier: BSD-3-Clause
#ifndef JACOBI3D_MPI_SUPPORT_HPP
#define JACOBI3D_MPI_SUPPORT_HPP

#include "decomposition.hpp"

#include <mpi.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace jacobi3d {

/** The user asked for something that cannot be done, or gave a bad file. Every rank throws it alike. */
struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/** Throws std::runtime_error with the library's sentence unless `error` is MPI_SUCCESS. */
void mpi_check(int error, const char *call);

/**
 * Every rank says what went wrong with it ("" for nothing). If anything did anywhere, throws usage_error with
 * the lowest such rank's words on all ranks. Collective.
 */
void broadcast_bool(const std::string &complaint, MPI_Comm comm);

/** Runs `work` on this rank and agrees on the std::exceptions it threw. Collective. */
template <class Work>
void agree_on(MPI_Comm comm, const Work &work) {
    std::string complaint;
    try {
        work();
    } catch (const std::exception &error) {
        complaint = error.what();
        if (complaint.empty()) complaint = "unknown error";
    }
    broadcast_bool(complaint, comm);
}

/** Who computes what, and where this rank is. */
struct layout {
    layout(const extent3 &grid, MPI_Comm comm);  // collective; throws std::invalid_argument on all ranks

    int rank, size;            // in comm
    int node_rank, node_size;  // among the ranks that share this node
    int nodes;
    decomposition boxes;
    std::vector<int> rank_of_box;
    int box;  // this rank's

    box3 my_cells() const { return boxes.box(box); }

private:
    struct places;
    layout(const extent3 &grid, MPI_Comm comm, const places &all);
};

/**
 * The whole grid on rank 0, x fastest, put together from every rank's box; empty elsewhere. Sent in pieces,
 * so that neither counts nor buffers grow with the grid. Collective.
 */
template <class Real>
std::vector<Real> gather(const layout &where, const std::vector<Real> &mine, MPI_Comm comm);

/** Prints every rank's text, on rank 0, in the order of ranks; at most the first `most` ones'. Collective. */
void print_in_order(const std::string &text, int most, MPI_Comm comm);

}  // namespace jacobi3d

#endif  // JACOBI3D_MPI_SUPPORT_HPP
