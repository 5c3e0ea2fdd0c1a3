// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: pictures of a field.
#ifndef MPIX_HALO_SLICE_HPP
#define MPIX_HALO_SLICE_HPP

#include <cstdint>
#include <string>

#include <mpix/halo/field.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

enum class color_map : int {
    grey,      ///< black to white
    blue_red,  ///< blue to white to red
};

/** Which cells of a domain a picture shows, and how. */
struct slice {
    int axis = 2;         ///< the plane lies across it: 0, 1 or 2 for x, y, z
    std::int64_t at = 0;  ///< its cell along that axis
    int component = 0;    ///< of the field
    /** The values that get the first and the last colour, as those beyond them do. Both 0: the least and the greatest
        value of the plane. */
    double low = 0, high = 0;
    color_map colors = color_map::grey;
};

/**
 * Write a plane of a field as a picture, PNG with 8 bits for each of red, green and blue: one pixel for each cell, the
 * first of the remaining axes to the right, the second one upwards. Values that are no numbers (NaN) are magenta.
 * Collective over the grid's ranks; rank 0 writes, and needs memory for 11 bytes per pixel.
 *
 * path   written beside it, with ".partial" behind it, and renamed
 * from   as of gather(), of an arithmetic type
 * shown  all ranks give the same
 *
 * Errors: MPI_ERR_UNSUPPORTED_OPERATION (mpix was built without libpng), MPI_ERR_ARG, MPI_ERR_COUNT (more than 2^28
 * pixels), MPI_ERR_TYPE (no arithmetic type); and as of write_checkpoint.
 */
MPIX_HALO_API void write_png(const grid &g, const std::string &path, const field &from, const slice &shown = {});

}  // namespace mpix::halo

#endif  // MPIX_HALO_SLICE_HPP
