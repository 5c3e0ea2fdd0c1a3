// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: fields in files of VTK, for ParaView and the like.
#ifndef MPIX_HALO_VTI_HPP
#define MPIX_HALO_VTI_HPP

#include <array>
#include <string>
#include <vector>

#include <mpix/halo/grid.hpp>
#include <mpix/halo/named_field.hpp>

namespace mpix::halo {

struct vti_options {
    /** Where the lower corner of the cell (0, 0, 0) lies, and how long a cell is along each axis (above 0), in the
        program's units of length. */
    std::array<double, 3> origin{0, 0, 0}, spacing{1, 1, 1};
};

/**
 * Write fields for ParaView, VisIt and other programs on VTK, as cell data of a regular grid: one file of raw numbers for
 * each box that has cells, written by its rank alone, and one that lists these. Collective over the grid's ranks.
 *
 * path     of the latter, which ends in ".pvti". That of box b is `path` with "_b.vti" in place of ".pvti"
 * fields   of distinct names, as of write_checkpoint, of arithmetic types other than long double, and not staggered
 * options  all ranks give the same
 *
 * The files are written beside these names, with ".partial" behind them, and renamed when all ranks have written theirs:
 * if that fails, the files that were there before are still there. Files of boxes that there are no longer remain, and
 * are not listed. A program that is killed while they are renamed leaves pieces of two times. No two calls may write the same path at once. Not while an exchange of the fields is active.
 *
 * Errors: MPI_ERR_ARG (path, options, a name, or ranks that disagree), MPI_ERR_TYPE (a field's type is not one of VTK's);
 * and as of write_checkpoint.
 */
MPIX_HALO_API void write_vti(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                             const vti_options &options = {});

}  // namespace mpix::halo

#endif  // MPIX_HALO_VTI_HPP
