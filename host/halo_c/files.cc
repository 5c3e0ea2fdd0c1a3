// SPDX-License-Identifier: BSD-3-Clause
//
// Files and pictures of fields in C.
#include <algorithm>
#include <string>
#include <vector>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/halo_c/exchange.h"
#include "host/halo_c/handles.h"
#include "host/halo_files/checkpoint.h"
#include "host/halo_files/vti.h"
#include "host/halo_pictures/slice.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;
using namespace mpix::halo;

namespace {

// What C++ cannot be given is a failure, which the collective function tells all ranks.
status convert(const char *path, int count, const MPIX_Halo_named_field *fields, std::string &name,
               std::vector<named_field> &made) {
    if (path == nullptr) return failure(MPI_ERR_ARG, "path is null");
    name = path;
    if (count < 0) return failure(MPI_ERR_COUNT, format("count is {}; it is at least 0", count));
    if (count > 0 && fields == nullptr) return failure(MPI_ERR_ARG, "fields is null");
    for (int f = 0; f < count; ++f) {
        if (fields[f].name == nullptr) return failure(MPI_ERR_ARG, format("fields[{}].name is null", f));
        made.push_back({fields[f].name, field(nullptr, 1, radius{})});
        if (status s = halo::convert(fields[f].field, made.back().field); !s.ok())
            return s.in_context(format("fields[{}].field.", f));
    }
    return {};
}

}  // namespace

MPIX_SYMBOL int MPIX_Halo_write_checkpoint(MPIX_Halo_grid grid, const char *path, int count,
                                           const MPIX_Halo_named_field fields[], int64_t step) try {
    MPIX_CHECK_THREAD("MPIX_Halo_write_checkpoint", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_write_checkpoint", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        std::string name;
        std::vector<named_field> converted;
        const status bad = ::convert(path, count, fields, name, converted);
        write_checkpoint_checked(g, name, converted, step, bad);
    });
}
MPIX_BOUNDARY("MPIX_Halo_write_checkpoint", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_read_checkpoint(MPIX_Halo_grid grid, const char *path, int count,
                                          const MPIX_Halo_named_field fields[], int64_t *step) try {
    MPIX_CHECK_THREAD("MPIX_Halo_read_checkpoint", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_read_checkpoint", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        std::string name;
        std::vector<named_field> converted;
        const status bad = ::convert(path, count, fields, name, converted);
        const std::int64_t found = read_checkpoint_checked(g, name, converted, bad);
        if (step != nullptr) *step = found;
    });
}
MPIX_BOUNDARY("MPIX_Halo_read_checkpoint", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_write_vti(MPIX_Halo_grid grid, const char *path, int count,
                                    const MPIX_Halo_named_field fields[], const MPIX_Halo_vti_options *options) try {
    MPIX_CHECK_THREAD("MPIX_Halo_write_vti", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_write_vti", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        std::string name;
        std::vector<named_field> converted;
        const status bad = ::convert(path, count, fields, name, converted);
        vti_options place;
        if (options != nullptr) std::copy_n(options->origin, 3, place.origin.begin());
        for (int a = 0; options != nullptr && a < 3; ++a)
            if (options->spacing[a] != 0) place.spacing[a] = options->spacing[a];
        write_vti_checked(g, name, converted, place, bad);
    });
}
MPIX_BOUNDARY("MPIX_Halo_write_vti", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_write_png(MPIX_Halo_grid grid, const char *path, const MPIX_Halo_field *from,
                                    const MPIX_Halo_slice *shown) try {
    MPIX_CHECK_THREAD("MPIX_Halo_write_png", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_write_png", errors_of(grid), [&] {
        const halo::grid &g = demand_handle(grid, "grid").grid;
        field converted(nullptr, 1, radius{});
        status bad;
        if (path == nullptr)
            bad = failure(MPI_ERR_ARG, "path is null");
        else if (from == nullptr)
            bad = failure(MPI_ERR_ARG, "from is null");
        else
            bad = halo::convert(*from, converted).in_context("from.");
        slice which;
        if (shown != nullptr)
            which = {shown->axis, shown->at,   shown->component,
                     shown->low,  shown->high, static_cast<color_map>(shown->colors)};
        write_png_checked(g, path == nullptr ? "" : path, converted, which, bad);
    });
}
MPIX_BOUNDARY("MPIX_Halo_write_png", of_comm(errors_of(grid)))
