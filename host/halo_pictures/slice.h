// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures of a field.
#ifndef MPIX_HOST_HALO_PICTURES_SLICE_H
#define MPIX_HOST_HALO_PICTURES_SLICE_H

#include <cstddef>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

// write_png(). `given`: what was wrong on this rank before; then all ranks throw.
void write_png_checked(const grid &g, const std::string &path, const field &from, const slice &shown,
                       const status &given);

// In host/halo_pictures/png.cc: three bytes for each pixel, row by row from the top, as a file's bytes. A failure if mpix
// was built without libpng; of no pixels nothing else is done.
status to_png(const std::vector<unsigned char> &pixels, std::int64_t columns, std::int64_t rows,
              std::vector<std::byte> &made);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_PICTURES_SLICE_H
