// SPDX-License-Identifier: BSD-3-Clause
//
// The beginning, progress and end of UCX, and what it does with GPU memory.
#include <chrono>
#include <cstdlib>
#include <new>

#include "transport/ucx/gpu_memory.h"
#include "transport/ucx/ucx_network.h"

namespace mpix::transport::ucx {

ucx_network &ucx_network::instance(const ucx_options &options) {
    // Never destroyed, as the other transports.
    static auto *const one = new ucx_network(options);
    return *one;
}

bool ucx_network::usable(status &why_not) {
    const std::lock_guard lock(mutex_);
    if (!tried_) {
        try {
            broken_ = begin();
        } catch (...) {  // the next call tries again
            abandon();
            throw;
        }
        tried_ = true;
    }
    why_not = broken_;
    return broken_.ok();
}

status ucx_network::begin() {
    if (status bad = ucp_.load(); !bad.ok()) return bad;
    unsigned major = 0, minor = 0, release = 0;
    ucp_.ucp_get_version(&major, &minor, &release);
    ucp_config_t *config = nullptr;
    if (const ucs_status_t s = ucp_.ucp_config_read(nullptr, nullptr, &config); s != UCS_OK)
        return error("ucp_config_read", s);
    // Its copies by CUDA IPC do not end while kernels of both processes wait for them (seen with 1.22). Who names
    // transports himself may know better.
    if (options_.gpu_memory && std::getenv("UCX_TLS") == nullptr)
        if (const ucs_status_t s = ucp_.ucp_config_modify(config, "TLS", "^cuda_ipc"); s != UCS_OK) {
            ucp_.ucp_config_release(config);
            return error("ucp_config_modify", s);
        }
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
    params.name = "mpix";
    const ucs_status_t made = ucp_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
    ucp_.ucp_config_release(config);
    if (made != UCS_OK) return error("ucp_init", made);
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const ucs_status_t s = ucp_.ucp_worker_create(context_, &worker, &worker_); s != UCS_OK) {
        worker_ = nullptr;
        abandon();
        return error("ucp_worker_create", s);
    }
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    handler.id = eager_id;
    handler.cb = take_message;
    if (const ucs_status_t s = ucp_.ucp_worker_set_am_recv_handler(worker_, &handler); s != UCS_OK) {
        abandon();
        return error("ucp_worker_set_am_recv_handler", s);
    }
    memory_.open(context_, gpu_type());
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    const bool known = ucp_.ucp_context_query(context_, &attributes) == UCS_OK;
    no_gpu_memory_ = why_no_gpu_memory(
        options_, {major, minor, known && (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0});
    return {};
}

void ucx_network::abandon() {
    if (worker_ != nullptr) ucp_.ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_.ucp_cleanup(context_);
    worker_ = nullptr;
    context_ = nullptr;
}

bool ucx_network::progress() {
    const std::unique_lock lock(mutex_, std::try_to_lock);  // else another thread is at it
    if (!lock || worker_ == nullptr) return false;
    int events = 0;
    const std::uint64_t before = received_;  // a caller may be waiting for what a message brings
    while (events < 16 && received_ == before && ucp_.ucp_worker_progress(worker_) != 0) ++events;
    for (peer_process *const p : std::exchange(to_progress_, {})) {
        p->in_progress_list = false;
        try {
            progress_peer(*p);
        } catch (const std::bad_alloc &) {  // in the next round, then
            needs_progress(*p);
        }
    }
    return events != 0;
}

void ucx_network::needs_progress(peer_process &p) {
    if (!std::exchange(p.in_progress_list, true)) to_progress_.push_back(&p);
}

void ucx_network::progress_peer(peer_process &p) {
    if (p.deaf) return close(p);
    const bool asked = p.inbox.asks();
    answer(p);
    begin_words(p);
    if (!asked && p.outbox.empty() && !p.delayed.empty() && std::chrono::steady_clock::now() < p.delayed_until)
        return needs_progress(p);
    send(p);
    if (!p.waiting.empty() || p.inbox.asks()) needs_progress(p);
}

void ucx_network::stop() {
    const std::lock_guard lock(mutex_);
    if (worker_ == nullptr) return;
    for (auto &[number, p] : peers_) close(p);
    for (auto &[name, k] : keys_) ucp_.ucp_rkey_destroy(k.key);
    keys_.clear();
    ucp_.ucp_worker_destroy(worker_);  // which may still call us back about a flush
    worker_ = nullptr;
    held_back_.clear();
    to_progress_.clear();
    peers_.clear();
    memory_.close();
    ucp_.ucp_cleanup(context_);
    context_ = nullptr;
    broken_ = failure("MPI_Finalize has been called");
}

status ucx_network::describe(const region &own, wire_region &out) {
    const std::lock_guard lock(mutex_);
    return memory_.describe(own, out);
}

void ucx_network::forget(const region &own) {
    const std::lock_guard lock(mutex_);
    memory_.forget(own);
}

gpu_puts *ucx_network::gpu_memory(status &why_not) {
    const std::lock_guard lock(mutex_);
    why_not = no_gpu_memory_;
    return why_not.ok() ? &gpus_ : nullptr;
}

status ucx_network::gpu_side::adopt(void *buffer, std::uint64_t bytes, int device, region &out) {
    const std::lock_guard lock(owner.mutex_);
    return owner.worker_ == nullptr ? owner.broken_ : owner.memory_.adopt(buffer, bytes, device, out);
}
status ucx_network::gpu_side::describe(const region &own, wire_region &out, wire_region &rest) {
    const std::lock_guard lock(owner.mutex_);
    return owner.memory_.describe(own, out, rest);
}
void ucx_network::gpu_side::forget(region &own) {
    const std::lock_guard lock(owner.mutex_);
    owner.memory_.forget_adopted(own);
    own = {};
}
status ucx_network::gpu_side::attach(const wire_region &wire, const wire_region &rest, int peer, region &out) {
    return owner.attach(wire, &rest, peer, out);
}
status ucx_network::gpu_side::put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                                  std::unique_ptr<transfer> &out) {
    return owner.begin_put(to, offset, from, bytes, owner.gpu_type(), out);
}

}  // namespace mpix::transport::ucx

namespace mpix::transport {

network &ucx_transport(const ucx_options &options) { return ucx::ucx_network::instance(options); }

}  // namespace mpix::transport
