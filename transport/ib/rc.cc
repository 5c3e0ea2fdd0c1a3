// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/rc.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

namespace mpix::transport::rdma {

namespace {

constexpr std::uint8_t ack_timeout = 18;  // 4.096 us * 2^18, about a second,
constexpr std::uint8_t retries = 7;       // so often, before a peer is taken for lost
constexpr std::uint32_t qp_address_version = 1;

// RoCE: the wished one (not below 0); else version 2, of an IPv4 address if there is one, before whatever comes first.
bool choose_gid(const port_calls &verbs, ibv_context *device, int wished, port &p) {
    constexpr std::uint8_t ipv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    int best = 0;
    for (int i = 0; i < p.attributes.gid_tbl_len && i < 256; ++i) {
        if (wished >= 0 && i != wished) continue;
        ibv_gid_entry entry{};
        if (verbs.query_gid(device, p.number, static_cast<std::uint32_t>(i), &entry, 0, sizeof entry) != 0) continue;
        const int rank =
            1 + 2 * (entry.gid_type == IBV_GID_TYPE_ROCE_V2) + (std::memcmp(entry.gid.raw, ipv4, sizeof ipv4) == 0);
        if (rank <= best) continue;
        best = rank;
        p.gid = entry.gid;
        p.gid_index = static_cast<std::uint8_t>(i);
    }
    return best != 0;
}

status change(modify_call modify, ibv_qp *queue, ibv_qp_attr &a, int mask) {
    const int e = modify(queue, &a, mask);
    return e == 0 ? status{} : failed_call("ibv_modify_qp", e);
}

}  // namespace

status failed_call(const char *name, int number) {
    return failure(std::string("libibverbs: ") + name + ": " + std::strerror(number));
}

status find_port(const port_calls &verbs, ibv_context *device, const device_spec &spec, port &out) {
    ibv_device_attr can{};
    if (const int e = verbs.query_device(device, &can); e != 0) return failed_call("ibv_query_device", e);
    const auto lacks = [device](const std::string &what) {
        return std::string(device->device->name) + " has no " + what + " (MPIX_VERBS_DEVICE)";
    };
    if (spec.port > can.phys_port_cnt) return failure(lacks("port " + std::to_string(spec.port)));
    status none =
        failure(spec.port != 0 ? lacks("link on port " + std::to_string(spec.port))
                               : "no port of the RDMA device " + std::string(device->device->name) + " is active");
    for (std::uint8_t number = 1; number <= can.phys_port_cnt; ++number) {
        if (spec.port != 0 && spec.port != number) continue;
        port p;
        p.number = number;
        if (verbs.query_port(device, number, &p.attributes) != 0 || p.attributes.state != IBV_PORT_ACTIVE ||
            p.attributes.max_msg_sz == 0)
            continue;
        p.by_gid = p.attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
        if (p.by_gid && !choose_gid(verbs, device, spec.gid, p)) {
            if (spec.gid >= 0)
                none = failure(lacks("GID " + std::to_string(spec.gid) + " on port " + std::to_string(number)));
            continue;
        }
        out = p;
        return {};
    }
    return none;
}

std::string name_of(const ibv_context *device, const port &at) {
    return std::string(device->device->name) + ", port " + std::to_string(at.number) +
           (at.by_gid ? ", GID " + std::to_string(at.gid_index) : "");
}

qp_address qp_address_of(const port &at, std::uint32_t qpn, std::uint32_t psn) {
    qp_address address{};
    address.version = qp_address_version;
    address.qpn = qpn;
    address.psn = psn;
    address.lid = at.attributes.lid;
    address.mtu = static_cast<std::uint8_t>(at.attributes.active_mtu);
    address.by_gid = at.by_gid;
    std::memcpy(address.gid, at.gid.raw, sizeof address.gid);
    return address;
}

std::uint32_t any_psn() { return std::random_device{}() & 0xffffff; }

bool well_formed(const qp_address &peers) {
    return peers.version == qp_address_version && peers.mtu >= IBV_MTU_256 && peers.mtu <= IBV_MTU_4096 &&
           peers.qpn <= 0xffffff && peers.psn <= 0xffffff && peers.by_gid <= 1;
}

status initialize(modify_call modify, ibv_qp *queue, const port &at) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = at.number;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    return change(modify, queue, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

status connect(modify_call modify, ibv_qp *queue, const port &at, std::uint32_t psn, const qp_address &peers) {
    if (peers.by_gid != static_cast<std::uint8_t>(at.by_gid))
        return failure("one of the two ports is InfiniBand's, the other one Ethernet's");
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = static_cast<ibv_mtu>(std::min<int>(peers.mtu, at.attributes.active_mtu));
    a.dest_qp_num = peers.qpn;
    a.rq_psn = peers.psn;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 12;
    a.ah_attr.port_num = at.number;
    a.ah_attr.dlid = peers.lid;
    if (at.by_gid) {
        a.ah_attr.is_global = 1;
        std::memcpy(a.ah_attr.grh.dgid.raw, peers.gid, sizeof peers.gid);
        a.ah_attr.grh.sgid_index = at.gid_index;
        a.ah_attr.grh.hop_limit = 64;
    }
    if (status bad = change(modify, queue, a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        !bad.ok())
        return bad;
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = ack_timeout;
    a.retry_cnt = retries;
    a.rnr_retry = retries;
    a.sq_psn = psn;
    a.max_rd_atomic = 1;
    return change(
        modify, queue, a,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace mpix::transport::rdma
