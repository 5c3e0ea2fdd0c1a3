// SPDX-License-Identifier: BSD-3-Clause
//
// How the progress engine moves partitions along a route, where that takes a while, or a system call.
#ifndef MPIX_HOST_TRANSFER_SEND_TRANSFER_H
#define MPIX_HOST_TRANSFER_SEND_TRANSFER_H

#include <cstdint>
#include <memory>

#include "host/route/send_route.h"

namespace mpix {

// Over the network; the flags, too.
std::unique_ptr<transport::transfer> start_put(const request &send, const send_route &route, int partition,
                                               std::uint64_t epoch);
// From or to GPU memory, `partitions` neighbours. Gaps of a host buffer are packed here, before the copy of one partition; those
// of GPU buffers by a kernel.
status start_copy(const request &send, const send_route &route, int partition, int partitions, std::uint64_t epoch,
                  std::unique_ptr<transport::transfer> &out);
// Straight into the receive buffer; returns 0 or an errno.
int write_in_place(const request &send, const send_route &route, int partition);

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_SEND_TRANSFER_H
