// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: fields in a file, for a restart on any number of ranks.
#ifndef MPIX_HALO_CHECKPOINT_HPP
#define MPIX_HALO_CHECKPOINT_HPP

#include <cstdint>
#include <string>
#include <vector>

#include <mpix/halo/grid.hpp>
#include <mpix/halo/named_field.hpp>

namespace mpix::halo {

/**
 * Write fields to one file, by MPI-IO. Collective over the grid's ranks. The file does not depend on the decomposition;
 * docs/halo.md has its format.
 *
 * path    of the file, as rename() and MPI_File_open() take it; on a file system that all ranks share
 * fields  of distinct names; none is allowed. All ranks give the same path, names, value sizes, types, components and
 *         step. Values of a cell take 1 GiB at most. In host memory, or in memory of a GPU, which is copied to the host
 *         first: kernels that write it have ended
 * step    any number of the program's
 *
 * The file is complete or not there: it is written as `path` + ".partial", forced to the storage device, and then
 * renamed. If the call fails, or the program ends in the middle, the file that was there before is still there. A call
 * that fails removes the .partial file; the next call removes that of a program that has ended. So no two calls may
 * write the same path at once. If `path` is a symbolic link, the file takes the link's place.
 *
 * Each rank needs memory for three pieces of the file of 16 MiB, and for its fields in GPU memory. Not while an exchange of the fields is active.
 *
 * Errors: MPI_ERR_ARG (a name, or ranks that disagree); MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE of a
 * field, as of an exchange; MPI_ERR_NO_SUCH_FILE, MPI_ERR_ACCESS, MPI_ERR_NO_SPACE, MPI_ERR_QUOTA, MPI_ERR_READ_ONLY,
 * MPI_ERR_BAD_FILE, MPI_ERR_IO (the file cannot be made, written, or renamed; the sentence says why); and what the MPI
 * calls give.
 */
MPIX_HALO_API void write_checkpoint(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                                    std::int64_t step = 0);

/**
 * Read fields from such a file into the boxes of the ranks, and return its step. Collective over the grid's ranks, of
 * which there may be any number, with any boxes. Ghost cells are not changed: an exchange fills them.
 *
 * fields  found by their names, in any order; the file may have others. As of write_checkpoint. Fields of which the
 *         file, or the program, knows the size of values only have any type of that size
 *
 * The file is checked before a field is changed. If reading fails after that, cells of the fields in host memory are
 * undefined. Fields in GPU memory are copied to the host and back, with all bytes between the cells: no kernel uses them
 * meanwhile.
 *
 * Errors: as of write_checkpoint; MPI_ERR_ARG (the file's domain has another extent, or the file lacks a field, or has
 * it with other values or components), MPI_ERR_IO (it is no such file, or damaged, or cut short; the sentence names what
 * is wrong in it).
 */
MPIX_HALO_API std::int64_t read_checkpoint(const grid &g, const std::string &path,
                                           const std::vector<named_field> &fields);

}  // namespace mpix::halo

#endif  // MPIX_HALO_CHECKPOINT_HPP
