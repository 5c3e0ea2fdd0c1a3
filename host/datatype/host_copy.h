// SPDX-License-Identifier: BSD-3-Clause
//
// The CPU's executor of plans.
#ifndef MPIX_HOST_DATATYPE_HOST_COPY_H
#define MPIX_HOST_DATATYPE_HOST_COPY_H

#include "host/datatype/plan.h"

namespace mpix {

// Copy `bytes` bytes, from packed byte `begin` on, of a sequence of elements at `buffer`: to `packed`
// (pack), or from it (unpack). Any interval, also in the middle of a run.
void pack_range(const plan &type, const char *buffer, std::int64_t begin, std::int64_t bytes, char *packed);
void unpack_range(const plan &type, char *buffer, std::int64_t begin, std::int64_t bytes, const char *packed);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_HOST_COPY_H
