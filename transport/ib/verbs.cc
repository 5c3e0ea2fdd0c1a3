// SPDX-License-Identifier: BSD-3-Clause
//
// The RDMA device, and the memory that is registered with it.
#include <algorithm>
#include <cstring>

#include "transport/ib/verbs_network.h"

namespace mpix::transport::verbs {
namespace {

constexpr std::uint32_t most_posted = 128;    // writes under way of one queue pair
constexpr std::uint32_t most_entries = 4096;  // of the completion queue

struct wire_address {
    std::uint64_t address;
    std::uint32_t key;
    std::uint8_t reserved[164];
};
static_assert(sizeof(wire_address) == sizeof(wire_region::address));

}  // namespace

bool verbs_network::usable(status &why_not) {
    const std::lock_guard lock(mutex_);
    if (!tried_) {
        try {
            broken_ = begin();
        } catch (...) {  // the next call tries again
            end();
            throw;
        }
        tried_ = true;
        if (!broken_.ok()) end();
    }
    why_not = broken_;
    return broken_.ok();
}

std::string verbs_network::device() {
    const std::lock_guard lock(mutex_);
    return context_ == nullptr ? std::string() : rdma::name_of(context_, port_);
}

status verbs_network::begin() {
    if (status bad = ibv_.load(); !bad.ok()) return bad;
    int n = 0;
    ibv_device **const devices = ibv_.ibv_get_device_list(&n);
    status bad = failure("there is no RDMA device");
    std::string others;
    for (int i = 0; i < n && context_ == nullptr; ++i) {
        if (devices[i]->transport_type != IBV_TRANSPORT_IB) continue;  // RoCE is that as well
        if (!spec_.name.empty() && spec_.name != devices[i]->name) {
            others += (others.empty() ? "" : ", ") + std::string(devices[i]->name);
            bad = failure("there is no RDMA device \"" + spec_.name + "\" (MPIX_VERBS_DEVICE), but " + others);
            continue;
        }
        context_ = ibv_.ibv_open_device(devices[i]);
        bad = context_ == nullptr ? rdma::failed_call("ibv_open_device", errno)
                                  : rdma::find_port(ibv_.port(), context_, spec_, port_);
        if (context_ != nullptr && !bad.ok()) {
            ibv_.ibv_close_device(context_);
            context_ = nullptr;
        }
    }
    if (devices != nullptr) ibv_.ibv_free_device_list(devices);
    if (context_ == nullptr) return bad;
    ibv_device_attr can{};
    if (const int e = ibv_.ibv_query_device(context_, &can); e != 0) return rdma::failed_call("ibv_query_device", e);
    depth_ = std::min(most_posted, static_cast<std::uint32_t>(can.max_qp_wr));
    entries_ = std::min(most_entries, static_cast<std::uint32_t>(can.max_cqe));
    domain_ = ibv_.ibv_alloc_pd(context_);
    if (domain_ == nullptr) return rdma::failed_call("ibv_alloc_pd", errno);
    // Entries of queue pairs that are gone may still be there, see drop.
    room_ = entries_ - std::min(entries_ / 2, 8 * depth_);
    completions_ = ibv_.ibv_create_cq(context_, static_cast<int>(entries_), nullptr, nullptr, 0);
    if (completions_ == nullptr) return rdma::failed_call("ibv_create_cq", errno);
#if MPIX_HAVE_MLX5
    std::unique_ptr<hardware_queues> hardware;
    no_hardware_ = make_mlx5_queues(context_, domain_, port_, hardware);
    hardware_ = std::move(hardware);
#endif
    return {};
}

void verbs_network::end() {
    hardware_ = nullptr;
    for (auto &[number, p] : peers_) drop(p);
    peers_.clear();
    for (auto &[backing, memory] : registrations_) ibv_.ibv_dereg_mr(memory);
    registrations_.clear();
    if (completions_ != nullptr) ibv_.ibv_destroy_cq(completions_);
    if (domain_ != nullptr) ibv_.ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ibv_.ibv_close_device(context_);
    completions_ = nullptr;
    domain_ = nullptr;
    context_ = nullptr;
}

bool verbs_network::progress() {
    const std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread is at it
    if (!lock || completions_ == nullptr) return false;
    ibv_wc entries[16];
    const int n = ibv_poll_cq(completions_, 16, entries);
    for (int i = 0; i < n; ++i) complete(entries[i]);
    for (auto &[number, p] : peers_) post_waiting(number, p);
    return n > 0;
}

void verbs_network::stop() {
    const std::lock_guard lock(mutex_);
    end();
    broken_ = failure("MPI_Finalize has been called");
}

// ---- memory ----

status verbs_network::describe(const region &own, wire_region &out) {
    const std::lock_guard lock(mutex_);
    if (!broken_.ok()) return broken_;
    ibv_mr *&memory = registrations_[own.backing];
    if (memory == nullptr)
        memory = ibv_.reg_mr(domain_, own.backing, own.backing_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (memory == nullptr) {
        registrations_.erase(own.backing);
        return not_registered();
    }
    wire_address address{};
    address.address = reinterpret_cast<std::uint64_t>(own.address);
    address.key = memory->rkey;
    out = {};
    out.transport = id_verbs;
    out.device = on_host;
    out.bytes = own.bytes;
    std::memcpy(out.address, &address, sizeof address);
    return {};
}

void verbs_network::forget(const region &own) {
    if (own.lasting) return;  // the mapping is others' as well, and stays
    const std::lock_guard lock(mutex_);
    const auto it = registrations_.find(own.backing);
    if (it == registrations_.end()) return;
    ibv_.ibv_dereg_mr(it->second);
    registrations_.erase(it);
}

status verbs_network::attach(const wire_region &wire, int peer, region &out) {
    wire_address address;
    std::memcpy(&address, wire.address, sizeof address);
    if (wire.transport != id_verbs || address.address == 0 || wire.bytes > ~address.address)
        return failure("malformed description of a remote region");
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    if (it == peers_.end() || !it->second.met) return failure("the peer has not said how its queue pair is reached");
    if (!it->second.lost.ok()) return it->second.lost;
    out = {};
    out.address = reinterpret_cast<void *>(address.address);
    out.bytes = wire.bytes;
    out.remote = true;
    out.handle = rdma::handle_of(peer, address.key);
    return {};
}

}  // namespace mpix::transport::verbs

namespace mpix::transport {

network &verbs_transport(const device_spec &device) {
    // Never destroyed, as the other transports.
    static auto *const one = new verbs::verbs_network(device);
    return *one;
}

}  // namespace mpix::transport
