// SPDX-License-Identifier: BSD-3-Clause
#include "transport/select.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "transport/backends.h"

namespace mpix::transport {

namespace {

struct permission {
    bool shm = true, cuda_ipc = true, ucx = true;
    std::atomic<bool> network_used{false};
};

permission &allowed() {
    static permission *const one = new permission;
    return *one;
}

}  // namespace

outcome use_only(const std::string &names) {
    permission &c = allowed();
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

outcome no_devices() {
    if (devices() != nullptr) return {};
    if (!MPIX_HAVE_CUDA) return "mpix was built without CUDA";
    return allowed().cuda_ipc ? "this process can use no GPU" : "MPIX_TRANSPORTS leaves cuda_ipc out";
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

means means_here() { return {allowed().shm, no_devices()}; }

namespace {

candidate direct(const ends &pair, const means &here) {
    const auto no = [](std::string why) { return candidate{id_cuda_ipc, "cuda_ipc", false, std::move(why)}; };
    if (!here.no_devices.empty()) return no(here.no_devices);
    if (!pair.receiver_on_gpu) return no("the receive buffer is host memory");
    if (!pair.unreached.empty()) return no(pair.unreached);
    if (pair.by_network)
        return no("the receive buffer is GPU memory, and the sender is on another node: that is not built yet");
    if (!pair.sender_has_devices) return no("the receive buffer is GPU memory, and the sending process can use no GPU");
    return {id_cuda_ipc, "cuda_ipc", true, "the sender's process maps the receive buffer, which is GPU memory"};
}

candidate shared(const ends &pair, const means &here) {
    const auto no = [](std::string why) { return candidate{id_shm, "shm", false, std::move(why)}; };
    if (!here.shm) return no("MPIX_TRANSPORTS leaves shm out");
    if (!pair.unreached.empty()) return no(pair.unreached);
    if (pair.by_network) return no("the processes cannot map each other's memory, or one of them is not to");
    if (pair.receiver_on_gpu) return no("the receive buffer is GPU memory, where nothing is copied to by the receiver");
    return {id_shm, "shm", true, "both processes map the same memory"};
}

candidate networked(const ends &pair) {
    const auto no = [](std::string why) { return candidate{id_ucx, "ucx", false, std::move(why)}; };
    if (!pair.unreached.empty()) return no(pair.unreached);
    if (!pair.by_network) return no("the processes share memory");
    if (pair.receiver_on_gpu) return no("the receive buffer is GPU memory: that is not built yet");
    if (pair.sender_on_gpu)
        return no("the send buffer is GPU memory, and the receiver is on another node: that is not built yet");
    return {id_ucx, "ucx", true, "the processes share no memory"};
}

}  // namespace

choice choose(const ends &pair, const means &here) {
    choice c{pair, here, {direct(pair, here), shared(pair, here), networked(pair)}, {}};
    if (c.taken() == nullptr)
        c.why_not = c.candidates[pair.receiver_on_gpu ? 0 : pair.by_network || !pair.unreached.empty() ? 2 : 1].why;
    return c;
}

const candidate *choice::taken() const {
    const auto it = std::find_if(candidates.begin(), candidates.end(), [](const candidate &c) { return c.works; });
    return it == candidates.end() ? nullptr : &*it;
}

transport &choice::landing() const { return taken()->id == id_cuda_ipc ? *devices() : node_memory(); }

std::vector<availability> available() {
    outcome no_network;
    between_nodes(no_network);
    return {{"shm", allowed().shm ? outcome{} : "MPIX_TRANSPORTS leaves shm out"},
            {"cuda_ipc", no_devices()},
            {"ucx", no_network}};
}

}  // namespace mpix::transport
