// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_HOST_REQUEST_LAYOUT_CHECK_H
#define MPIX_HOST_REQUEST_LAYOUT_CHECK_H

#include "host/request/request.h"

namespace mpix {

// With MPIX_CHECK: say so if the request's partitions overlap in memory, or leave the memory that the buffer lies in, as far as
// that can be known: of a GPU the allocation, of the host what is mapped.
void check_layout(const request &r, const char *call);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_LAYOUT_CHECK_H
