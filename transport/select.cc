// SPDX-License-Identifier: BSD-3-Clause
#include "transport/select.h"

#include <algorithm>
#include <atomic>

#include "transport/backends.h"

namespace mpix::transport {

namespace {

struct choice {
    bool shm = true, cuda_ipc = true, ucx = true, verbs = true;
    std::atomic<network *> in_use{nullptr};  // one for all peers, once it was asked for
};

choice &allowed() {
    static choice *const one = new choice;
    return *one;
}

}  // namespace

outcome use_only(const std::string &names) {
    choice &c = allowed();
    c.shm = c.cuda_ipc = c.ucx = c.verbs = names.empty();
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
        else if (name == "verbs")
            c.verbs = true;
        else
            return "\"" + name + "\" is no transport (there are shm, cuda_ipc, ucx and verbs)";
    }
    return {};
}

bool may_share_memory() { return allowed().shm; }

// UCX first: it knows more networks, and says when a peer that we only wait for is gone.
network *between_nodes(outcome &why_not) {
    choice &c = allowed();
    if (network *const known = c.in_use.load(std::memory_order_acquire); known != nullptr && known->usable(why_not))
        return known;
    const auto refuse = [&](const char *name, const outcome &why) {
        why_not += (why_not.empty() ? "" : "; ") + std::string(name) + ": " + why;
    };
    why_not.clear();
    const auto choose = [&](bool wanted, const char *name, network *candidate) -> network * {
        outcome why;
        if (candidate == nullptr)
            refuse(name, "not built in");
        else if (!wanted)
            refuse(name, "MPIX_TRANSPORTS leaves it out");
        else if (!candidate->usable(why))
            refuse(name, why);
        else
            return candidate;
        return nullptr;
    };
#if MPIX_HAVE_UCX
    network *const ucx = &ucx_transport();
#else
    network *const ucx = nullptr;
#endif
#if MPIX_HAVE_VERBS
    network *const verbs = &verbs_transport();
#else
    network *const verbs = nullptr;
#endif
    network *chosen = choose(c.ucx, "ucx", ucx);
    if (chosen == nullptr) chosen = choose(c.verbs, "verbs", verbs);
    if (chosen != nullptr) {
        why_not.clear();
        c.in_use.store(chosen, std::memory_order_release);
    }
    return chosen;
}

network *network_in_use() { return allowed().in_use.load(std::memory_order_acquire); }

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
