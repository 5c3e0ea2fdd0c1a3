// SPDX-License-Identifier: BSD-3-Clause
//
// Which RDMA device is to be used, as a user says it: name[:port[:GID index]].
#ifndef MPIX_TRANSPORT_DEVICE_SPEC_H
#define MPIX_TRANSPORT_DEVICE_SPEC_H

#include <string>

#include "transport/transport.h"

namespace mpix::transport {

struct device_spec {
    std::string name;  // empty: the first one with an active port
    int port = 0;      // 0: the first active one
    int gid = -1;      // index; -1: RoCE version 2 of an IPv4 address before others
};

// Fails where `text` is none.
status parse_device_spec(const std::string &text, device_spec &out);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_DEVICE_SPEC_H
