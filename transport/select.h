// SPDX-License-Identifier: BSD-3-Clause
//
// Which transports are there, and which one carries a pair.
#ifndef MPIX_TRANSPORT_SELECT_H
#define MPIX_TRANSPORT_SELECT_H

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "transport/cma.h"
#include "transport/network.h"
#include "transport/send_queue.h"
#include "transport/transport.h"

namespace mpix::transport {

// Memory shared by the processes of one node: where the words, rings and host landings live.
transport &node_memory();

// The transport of GPUs, or null where none is built in or no GPU is usable.
transport *devices();
// Why it is null.
status no_devices();

// Use these alone between processes: names with commas between them; empty: all that there are. Fails if one is
// not known. Before anything else is called.
status use_only(const std::string &names);

// The RDMA device for verbs, as device_spec.h has it; empty: any. Fails if it is malformed. Before anything else, too.
status use_rdma_device(const std::string &spec);

// Whether UCX may be asked to reach the memory of GPUs itself, and which puts go as messages. Fails if those are too
// large. Before anything else, too.
status use_ucx(bool for_gpu_memory, std::optional<std::uint64_t> eager_bytes);

// Tests: these are the GPUs, and their memory is host memory, to UCX as well. Before anything else, too.
void play_gpus(transport &gpus);

// Whether processes of one node may share memory with each other.
bool may_share_memory();

// The transport to processes whose memory cannot be mapped; null, with a failure in `why_not`, if there is none.
network *between_nodes(status &why_not);
// The same, if it has been in use.
network *network_in_use();

// A work queue to that peer, of the network in use, for the kernels of `device`, or for host threads (on_host). It
// stays.
struct chosen_queue {
    send_queue *queue = nullptr;
    std::string executed_by;  // and why by no NIC
};
status queue_to(int peer, int device, chosen_queue &out);

// Who executes such queues of this process, and why no NIC; asks the network.
std::string queues_executed_by();

// The transport with that id, or null.
transport *by_id(std::uint32_t id);

// Where a buffer lives.
struct placement {
    transport *owner = nullptr;  // null: ordinary host memory
    int device = on_host;
};
placement locate(const void *buffer);

// A pair, as far as one end of it knows.
struct ends {
    bool by_network = false;       // the processes share no memory
    status unreached;              // nor is there a network: why
    bool receiver_on_gpu = false;  // the receive buffer; by a network the sender does not know, and says no
    bool sender_on_gpu = false;    // the send buffer; the receiver does not know, and says no
    bool sender_has_devices = false;
};

// What this process may use, and why not what it may not.
struct means {
    bool shm = true;
    status no_devices;
    transport_id network = id_ucx;  // the one in use, if any is
};
means means_here();

// One way for the bytes of a pair, and why it can carry them or cannot.
struct candidate {
    transport_id id;
    const char *name;
    bool works;
    reason why;
};

// What carries a pair: the first of the candidates that works.
struct choice {
    ends pair;
    means here;
    transport_id taken = id_none;  // none: none works
    const char *name = "";         // of the one that is taken
    status why_not;                // if there is none: that of the one that such buffers need
    std::array<candidate, 4> candidates() const;
    // Whose regions the message lands in: a receive buffer in device memory that the sender maps is adopted, everything
    // else lands in node memory and is copied out by the receiver. Something must have been taken.
    transport &landing() const;
};
choice choose(const ends &pair, const means &here = means_here());

// All that there are, and why one cannot be used in this process; asks the network.
struct availability {
    const char *name;
    status why_not;
    std::string device;  // that a network goes by, where that can be said
};
std::vector<availability> available();

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_SELECT_H
