// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels have stored of a call that has failed.
#ifndef MPIX_HOST_HALO_KERNELS_KERNEL_ERROR_H
#define MPIX_HOST_HALO_KERNELS_KERNEL_ERROR_H

#include <string>

#include "host/halo_kernels/kernel_exchange_state.h"

namespace mpix::halo {

// Throws the reason, if a kernel's call has returned an error. Its requests may never complete. No kernel is running.
void demand_no_kernel_error(kernel_exchange_state &x, const std::string &caller);
// Throws the reason, if an active request cannot get what the neighbour was to send, or send to it. To kernels that
// counts as arrived.
void demand_no_lost_message(const kernel_exchange_state &x, const std::string &caller);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_KERNEL_ERROR_H
