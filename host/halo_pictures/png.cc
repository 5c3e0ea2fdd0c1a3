// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include "host/halo_pictures/slice.h"

#if MPIX_HAVE_PNG

#include <png.h>

#include "host/format.h"

namespace mpix::halo {

status to_png(const std::vector<unsigned char> &pixels, std::int64_t columns, std::int64_t rows,
              std::vector<std::byte> &made) {
    if (pixels.empty()) return {};
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(columns);
    image.height = static_cast<png_uint_32>(rows);
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    made.resize(bytes);
    if (png_image_write_to_memory(&image, made.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0)
        return failure(MPI_ERR_IO, format("libpng: {}", image.message));
    made.resize(bytes);
    return {};
}

}  // namespace mpix::halo

#else

namespace mpix::halo {

status to_png(const std::vector<unsigned char> &, std::int64_t, std::int64_t, std::vector<std::byte> &) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "mpix was built without libpng; install it, and build mpix again");
}

}  // namespace mpix::halo

#endif
