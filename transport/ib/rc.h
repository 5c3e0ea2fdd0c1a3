// SPDX-License-Identifier: BSD-3-Clause
//
// What the backends on libibverbs have in common: by which port of a device its peers are reached, what an end of a
// reliable connection tells the other one, and the way of a queue pair from its making to where it sends.
#ifndef MPIX_TRANSPORT_IB_RC_H
#define MPIX_TRANSPORT_IB_RC_H

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "transport/device_spec.h"
#include "transport/transport.h"

namespace mpix::transport::rdma {

status failed_call(const char *name, int number);

/** Of libibverbs, which the backends load. */
struct port_calls {
    decltype(&::ibv_query_device) query_device = nullptr;
    int (*query_port)(ibv_context *, std::uint8_t, ibv_port_attr *) = nullptr;
    decltype(&::_ibv_query_gid_ex) query_gid = nullptr;
};
using modify_call = decltype(&::ibv_modify_qp);

/** A port, and the address by which peers send to it. */
struct port {
    std::uint8_t number = 0;
    ibv_port_attr attributes{};
    bool by_gid = false;  // Ethernet: by `gid`, else by the port's LID
    ibv_gid gid{};
    std::uint8_t gid_index = 0;
};

/** The one that `spec` names, or the first active one. */
status find_port(const port_calls &verbs, ibv_context *device, const device_spec &spec, port &out);
/** For the user. */
std::string name_of(const ibv_context *device, const port &at);

/** What connect() of the peer needs of our end. */
struct qp_address {
    std::uint32_t version;
    std::uint32_t qpn, psn;
    std::uint16_t lid;
    std::uint8_t mtu;
    std::uint8_t by_gid;
    std::uint8_t gid[16];
};
static_assert(sizeof(qp_address) == 32);

/** `psn`: the first packet's number, any_psn() when the queue pair was made. */
qp_address qp_address_of(const port &at, std::uint32_t qpn, std::uint32_t psn);
std::uint32_t any_psn();
/** Nothing in a peer's address is trusted. */
bool well_formed(const qp_address &peers);

/** A new queue pair: peers may write by way of it once it is connected. */
status initialize(modify_call modify, ibv_qp *queue, const port &at);
/** With the peer's well-formed address. The peer's end may not be ready yet: then what we send is sent again. */
status connect(modify_call modify, ibv_qp *queue, const port &at, std::uint32_t psn, const qp_address &peers);

// ---- a peer's region: whose it is, and the key of its memory ----

inline std::uint64_t handle_of(int peer, std::uint32_t key) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 | key;
}
inline int peer_of(const region &r) { return static_cast<int>(r.handle >> 32); }
inline std::uint32_t key_of(const region &r) { return static_cast<std::uint32_t>(r.handle); }

}  // namespace mpix::transport::rdma

#endif  // MPIX_TRANSPORT_IB_RC_H
