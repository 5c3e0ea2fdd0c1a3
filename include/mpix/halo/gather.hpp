// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: a whole field on one rank.
#ifndef MPIX_HALO_GATHER_HPP
#define MPIX_HALO_GATHER_HPP

#include <mpix/halo/field.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

/**
 * Copy the cells of all boxes, without ghost cells, into one array on one rank. Collective over the grid's ranks.
 *
 * from    as of an exchange; all ranks give the same value size, components and interleaving. Its radius matters only
 *         for where the cells lie. In host memory, or in memory of a GPU, which is copied to the host first: kernels that
 *         write it have ended
 * global  on rank `root`: memory for all values of the domain, host memory of the caller's, which overlaps no field.
 *         Not used on other ranks
 *
 * The array has no gaps, and x is the fastest. In a domain of nx * ny * nz cells, value c of the cell (x, y, z) is
 * number
 *
 *     ((z * ny + y) * nx + x) * components + c          // interleaved
 *     ((c * nz + z) * ny + y) * nx + x                  // not interleaved
 *
 * Needs memory for the largest box twice: on its own rank, and on `root`. Not while an exchange of the field is active.
 *
 * Errors: MPI_ERR_ROOT; MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE as of an exchange; and what the MPI
 * calls give.
 */
MPIX_HALO_API void gather(const grid &g, const field &from, void *global, int root = 0);

}  // namespace mpix::halo

#endif  // MPIX_HALO_GATHER_HPP
