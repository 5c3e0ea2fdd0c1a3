// SPDX-License-Identifier: BSD-3-Clause
//
// Which transports are there, and which one carries a pair.
#ifndef MPIX_TRANSPORT_SELECT_H
#define MPIX_TRANSPORT_SELECT_H

#include "transport/network.h"
#include "transport/transport.h"

namespace mpix::transport {

// Memory shared by the processes of one node: where the words, rings and host landings live.
transport &node_memory();

// The transport of GPUs, or null where none is built in or no GPU is usable.
transport *devices();

// Use these alone between processes: names with commas between them; empty: all that there are. A sentence if one is
// not known. Before anything else is called.
outcome use_only(const std::string &names);

// Whether processes of one node may share memory with each other.
bool may_share_memory();

// The transport to processes whose memory cannot be mapped; null, with a sentence in `why_not`, if there is none.
network *between_nodes(outcome &why_not);
// The same, if it has been in use.
network *network_in_use();

// The transport with that id, or null.
transport *by_id(std::uint32_t id);

// Where a buffer lives.
struct placement {
    transport *owner = nullptr;  // null: ordinary host memory
    int device = on_host;
};
placement locate(const void *buffer);

// The transport whose regions a message lands in, by what the two ends are: a receive buffer in device
// memory is adopted where the sender can reach it, everything else lands in node memory and is copied out
// by the receiver. Null, with a sentence in `why_not`, if there is no way.
struct ends {
    bool same_node = false;  // otherwise by network
    placement receiver;
    bool sender_has_devices = false;
};
transport *choose_landing(const ends &pair, outcome &why_not);

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_SELECT_H
