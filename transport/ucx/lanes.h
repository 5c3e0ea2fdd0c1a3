// SPDX-License-Identifier: BSD-3-Clause
//
// By which transports of UCX a peer is reached. UCX 1.13 tells that in an endpoint's printed description only
// (ucp_ep_print_info), in a line for each lane:
//     #   lane[0]:  0:tcp/eth0.0 md[0] -> md[0]/tcp/sysdev[255] am am_bw#0
#ifndef MPIX_TRANSPORT_UCX_LANES_H
#define MPIX_TRANSPORT_UCX_LANES_H

#include <string_view>

namespace mpix::transport::ucx {

// Whether there is a lane, and all go over TCP.
bool lanes_are_tcp(std::string_view description);

}  // namespace mpix::transport::ucx

#endif  // MPIX_TRANSPORT_UCX_LANES_H
