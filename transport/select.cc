// SPDX-License-Identifier: BSD-3-Clause
#include "transport/select.h"

#include <algorithm>
#include <atomic>

#include "transport/backends.h"

namespace mpix::transport {

namespace {

struct choice {
    bool shm = true, cuda_ipc = true, ucx = true;
    std::atomic<bool> network_used{false};
};

choice &allowed() {
    static choice *const one = new choice;
    return *one;
}

}  // namespace

outcome use_only(const std::string &names) {
    choice &c = allowed();
    c.shm = c.cuda_ipc = c.ucx = names.empty();
    for (std::size_t at = 0; !names.empty() && at <= names.size();) {
        const std::size_t end = std::min(names.find(',', at), names.size());
        const std::string name = names.substr(at, end - at);
        at = end + 1;
        if (name == "shm")
            c.shm = true;
        else if (name == "cuda_ipc")
            c.cuda_ipc = true;
        else if (name == "ucx")
            c.ucx = true;
        else
            return "\"" + name + "\" is no transport (there are shm, cuda_ipc and ucx)";
    }
    return {};
}

bool may_share_memory() { return allowed().shm; }

network *between_nodes(outcome &why_not) {
#if MPIX_HAVE_UCX
    if (!allowed().ucx)
        why_not = "MPIX_TRANSPORTS leaves ucx out";
    else if (ucx_transport().usable(why_not)) {
        allowed().network_used.store(true, std::memory_order_release);
        return &ucx_transport();
    }
#else
    why_not = "no network transport is built in";
#endif
    return nullptr;
}

network *network_in_use() {
#if MPIX_HAVE_UCX
    if (allowed().network_used.load(std::memory_order_acquire)) return &ucx_transport();
#endif
    return nullptr;
}

transport &node_memory() { return shm_transport(); }

transport *devices() {
#if MPIX_HAVE_CUDA
    if (allowed().cuda_ipc && cuda_ipc_transport().usable()) return &cuda_ipc_transport();
#endif
    return nullptr;
}

transport *by_id(std::uint32_t id) {
    if (id == id_shm) return &node_memory();
    if (id == id_cuda_ipc) return devices();
    return nullptr;
}

placement locate(const void *buffer) {
    placement place;
    if (transport *gpus = devices(); gpus != nullptr && gpus->owns(buffer, place.device)) place.owner = gpus;
    return place;
}

transport *choose_landing(const ends &pair, outcome &why_not) {
    if (!pair.same_node && pair.receiver.owner != nullptr) {
        why_not = "the receive buffer is GPU memory, and the sender is on another node: that is not built yet";
        return nullptr;
    }
    if (pair.receiver.owner == nullptr) return &node_memory();
    if (!pair.sender_has_devices) {
        why_not = "the receive buffer is GPU memory, and the sending process can use no GPU";
        return nullptr;
    }
    return pair.receiver.owner;
}

}  // namespace mpix::transport
