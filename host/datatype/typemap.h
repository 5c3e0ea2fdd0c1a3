// SPDX-License-Identifier: BSD-3-Clause
//
// From plans to the tables that kernels use.
#ifndef MPIX_HOST_DATATYPE_TYPEMAP_H
#define MPIX_HOST_DATATYPE_TYPEMAP_H

#include <mpix/detail/typemap.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "host/datatype/plan.h"

namespace mpix {

// Immutable. The pointers in `map` lead to the other members.
struct typemap {
    mpix_typemap map{};
    std::vector<std::int64_t> packed, offset;
    std::vector<std::uint32_t> bucket;
    std::vector<mpix_grid> boxes;

    typemap() = default;
    typemap(const typemap &) = delete;
    typemap &operator=(const typemap &) = delete;
    ~typemap();  // GPUs' copies of it go as well, after the kernels that use them
};

// Plans with loose runs, or with no more runs than this in several boxes, become a table of runs.
constexpr std::int64_t most_table_runs = 4096;

// Made once for each plan, and kept with it. The plan's size is not 0.
std::shared_ptr<const typemap> typemap_of(const plan &type);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_TYPEMAP_H
