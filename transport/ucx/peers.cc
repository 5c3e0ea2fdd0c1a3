// SPDX-License-Identifier: BSD-3-Clause
//
// The peers: their addresses, endpoints and ends, and the unpacked keys of their memory.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "transport/ucx/lanes.h"
#include "transport/ucx/ucx_network.h"

namespace mpix::transport::ucx {

status ucx_network::introduce(int peer, std::vector<std::uint8_t> &address) {
    const std::lock_guard lock(mutex_);
    ucp_address_t *own = nullptr;
    std::size_t bytes = 0;
    if (const ucs_status_t s = ucp_.ucp_worker_get_address(worker_, &own, &bytes); s != UCS_OK)
        return error("ucp_worker_get_address", s);
    const auto free_it = [this](ucp_address_t *a) { ucp_.ucp_worker_release_address(worker_, a); };
    const std::unique_ptr<ucp_address_t, decltype(free_it)> held(own, free_it);
    const auto number = static_cast<std::uint64_t>(peer);
    address.resize(sizeof number + bytes);
    std::memcpy(address.data(), &number, sizeof number);
    std::memcpy(address.data() + sizeof number, own, bytes);
    peers_.try_emplace(peer);  // its messages may come before its address
    return {};
}

status ucx_network::meet(int peer, std::vector<std::uint8_t> address) {
    const std::lock_guard lock(mutex_);
    std::uint64_t number = 0;
    if (address.size() <= sizeof number) return failure("an empty UCX address");
    peer_process &p = peers_[peer];
    if (!p.address.empty()) return {};
    std::memcpy(&number, address.data(), sizeof number);
    address.erase(address.begin(), address.begin() + sizeof number);
    address.resize(address.size() + padding);  // UCX is not told where it ends
    p.calls_us = number;
    p.address = std::move(address);
    return {};
}

status ucx_network::connect(int number, peer_process *&out) {
    const auto it = peers_.find(number);
    if (it == peers_.end() || it->second.address.empty()) return failure("the peer has not said how UCX reaches it");
    out = &it->second;
    return connect(it->second);
}

status ucx_network::connect(peer_process &p) {
    if (!p.lost.ok()) return p.lost;
    if (p.endpoint != nullptr) return {};
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t *>(p.address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.arg = &p;
    // Called in calls of ours, so with the mutex held.
    params.err_handler.cb = [](void *arg, ucp_ep_h, ucs_status_t s) {
        instance().lose(*static_cast<peer_process *>(arg), s);
    };
    if (const ucs_status_t s = ucp_.ucp_ep_create(worker_, &params, &p.endpoint); s != UCS_OK) {
        p.endpoint = nullptr;
        return error("ucp_ep_create", s);
    }
    p.over_tcp = lanes_are_tcp(printed_info(p.endpoint));
    if (p.over_tcp) p.outbox.set_message_bytes(eager_outbox::message_bytes_over_tcp);
    return {};
}

std::string ucx_network::printed_info(ucp_ep_h endpoint) const {
    char *text = nullptr;
    std::size_t length = 0;
    std::FILE *const stream = open_memstream(&text, &length);
    if (stream == nullptr) return {};
    ucp_.ucp_ep_print_info(endpoint, stream);
    std::fclose(stream);
    const std::unique_ptr<char, decltype(&std::free)> freed(text, std::free);
    return {text, length};
}

void ucx_network::close(peer_process &p) {
    drop_delayed(p);
    if (p.endpoint == nullptr) return;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;  // all is said, and the peer may be gone
    const ucs_status_ptr_t status = ucp_.ucp_ep_close_nbx(p.endpoint, &param);
    p.endpoint = nullptr;
    if (!UCS_PTR_IS_PTR(status)) return;
    // Forced, so it needs no peer; the limit is against a UCX that hangs.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (ucp_.ucp_request_check_status(status) == UCS_INPROGRESS && std::chrono::steady_clock::now() < limit)
        ucp_.ucp_worker_progress(worker_);
    ucp_.ucp_request_free(status);
}

status ucx_network::error(const char *what, ucs_status_t s) const {
    return failure(std::string("UCX: ") + what + ": " + ucp_.ucs_status_string(s));
}

const status &ucx_network::lose(peer_process &p, const status &why) {
    p.waiting.clear();
    drop_delayed(p);
    p.outbox.clear();
    p.body_use = nullptr;
    if (p.lost.ok()) p.lost = why;
    return p.lost;
}

const status &ucx_network::lose(peer_process &p, ucs_status_t s) {
    try {
        return lose(p, failure(std::string("UCX has lost the connection: ") + ucp_.ucs_status_string(s)));
    } catch (const std::bad_alloc &) {
        return lose(p, no_memory());
    }
}

status ucx_network::lost(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    return it == peers_.end() ? status{} : it->second.lost;
}

std::uint64_t ucx_network::eager_limit(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    return it == peers_.end() ? 0 : most_eager(it->second);
}

void ucx_network::give_up(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    if (it == peers_.end() || worker_ == nullptr) return;
    lose(it->second, UCS_ERR_CANCELED);
    it->second.deaf = true;
    close(it->second);
}

// ---- keys ----

status ucx_network::attach(const wire_region &wire, int peer, region &out) { return attach(wire, nullptr, peer, out); }

status ucx_network::attach(const wire_region &wire, const wire_region *rest, int peer, region &out) {
    remote_memory memory;
    if (status bad = read_description(wire, rest, memory); !bad.ok()) return bad;
    const std::lock_guard lock(mutex_);
    peer_process *p = nullptr;
    if (status bad = connect(peer, p); !bad.ok()) return bad;
    std::vector<std::uint8_t> padded = memory.key;  // UCX is not told where it ends
    padded.resize(padded.size() + padding);
    const key_name name{peer, std::move(memory.key)};
    unpacked_key &k = keys_[name];
    if (k.key == nullptr) {
        if (const ucs_status_t s = ucp_.ucp_ep_rkey_unpack(p->endpoint, padded.data(), &k.key); s != UCS_OK) {
            keys_.erase(name);
            return error("ucp_ep_rkey_unpack", s);
        }
        k.peer = peer;
    }
    ++k.users;
    out = {};
    out.address = reinterpret_cast<void *>(memory.address);
    out.bytes = wire.bytes;
    out.device = wire.device;
    out.remote = true;
    out.handle = reinterpret_cast<std::uint64_t>(&k);  // maps do not move what they hold
    return {};
}

void ucx_network::detach(region &peers) {
    const std::lock_guard lock(mutex_);
    for (auto it = keys_.begin(); it != keys_.end(); ++it) {
        if (reinterpret_cast<std::uint64_t>(&it->second) != peers.handle) continue;
        if (--it->second.users == 0) {
            retire(peers_.at(it->second.peer), it->second.key);
            keys_.erase(it);
        }
        break;
    }
    peers = {};
}

void ucx_network::retire(peer_process &p, ucp_rkey_h key) {
    if (p.endpoint == nullptr) {
        ucp_.ucp_rkey_destroy(key);
        return;
    }
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data = key;
    param.cb.send = [](void *handle, ucs_status_t, void *data) {
        instance().ucp_.ucp_rkey_destroy(static_cast<ucp_rkey_h>(data));
        instance().ucp_.ucp_request_free(handle);
    };
    if (!UCS_PTR_IS_PTR(ucp_.ucp_ep_flush_nbx(p.endpoint, &param))) ucp_.ucp_rkey_destroy(key);
}

}  // namespace mpix::transport::ucx
