// SPDX-License-Identifier: BSD-3-Clause
#ifndef MPIX_HOST_TRANSFER_LAYOUT_CHECK_H
#define MPIX_HOST_TRANSFER_LAYOUT_CHECK_H

#include "host/request/request.h"

namespace mpix {

// With MPIX_CHECK: warn if the request's partitions overlap, if a receive has a byte twice within one, or if they
// extend beyond the buffer's memory: its allocation on a GPU, mapped memory on the host.
void check_layout(const request &r, const char *call);

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_LAYOUT_CHECK_H
