// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the CPU can read or write the memory at an address of the user's; never faults.
#ifndef MPIX_HOST_REQUEST_USER_MEMORY_H
#define MPIX_HOST_REQUEST_USER_MEMORY_H

namespace mpix {

bool can_read(const void *address);
// Does not change the memory, even if other threads write there.
bool can_write(void *address);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_USER_MEMORY_H
