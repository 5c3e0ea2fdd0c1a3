// SPDX-License-Identifier: BSD-3-Clause
#include "transport/select.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "transport/backends.h"

namespace mpix::transport {

namespace {

struct permission {
    bool shm = true, cuda_ipc = true, ucx = true, verbs = true;
    device_spec rdma_device;
    ucx_options by_ucx;
    transport *fake_gpus = nullptr;
    std::atomic<network *> in_use{nullptr};  // one for all peers, once it was asked for
};

permission &allowed() {
    static permission *const one = new permission;
    return *one;
}

}  // namespace

status use_only(const std::string &names) {
    permission &c = allowed();
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
            return failure("it takes a list of shm, cuda_ipc, ucx and verbs, and \"" + name + "\" is none of them");
    }
    return {};
}

status use_rdma_device(const std::string &spec) { return parse_device_spec(spec, allowed().rdma_device); }

status use_ucx(bool for_gpu_memory, std::optional<std::uint64_t> eager_bytes) {
    allowed().by_ucx.gpu_memory = for_gpu_memory;
    if (eager_bytes.value_or(0) > ucx_options::most_eager_bytes)
        return failure("it takes auto, or a whole number from 0 to " + std::to_string(ucx_options::most_eager_bytes));
    allowed().by_ucx.eager_bytes = eager_bytes;
    return {};
}

void play_gpus(transport &gpus) {
    allowed().fake_gpus = &gpus;
    allowed().by_ucx.fake_gpus = true;
}

bool may_share_memory() { return allowed().shm; }

namespace {

// In the order in which they are tried. UCX first: it knows more networks, and says when a peer that we only wait for
// is gone.
struct known_network {
    transport_id id;
    const char *name;
    bool permitted;
    network *backend;  // null: not built in

    status why_not() const {
        if (!permitted) return failure(std::string("MPIX_TRANSPORTS leaves ") + name + " out");
        if (backend == nullptr) return failure(std::string("mpix was built without ") + name);
        status why;
        backend->usable(why);
        return why;
    }
};

std::array<known_network, 2> networks() {
    network *ucx = nullptr, *verbs = nullptr;
#if MPIX_HAVE_UCX
    ucx = &ucx_transport(allowed().by_ucx);
#endif
#if MPIX_HAVE_VERBS
    verbs = &verbs_transport(allowed().rdma_device);
#endif
    return {{{id_ucx, "ucx", allowed().ucx, ucx}, {id_verbs, "verbs", allowed().verbs, verbs}}};
}

}  // namespace

network *between_nodes(status &why_not) {
    std::atomic<network *> &in_use = allowed().in_use;
    // pairs: H10
    if (network *const known = in_use.load(std::memory_order_acquire); known != nullptr && known->usable(why_not))
        return known;
    std::string all;
    for (const known_network &n : networks()) {
        const status why = n.why_not();
        if (why.ok()) {
            why_not = {};
            in_use.store(n.backend, std::memory_order_release);  // pairs: H10
            return n.backend;
        }
        all += (all.empty() ? "" : "; ") + why.message();
    }
    why_not = failure(all);
    return nullptr;
}

network *network_in_use() { return allowed().in_use.load(std::memory_order_acquire); }  // pairs: H10

status make_queue_to(network &wire, int peer, transport &host_memory, transport *gpus, int device,
                     std::unique_ptr<send_queue> &out, std::string &executed_by) {
    const status why_software = wire.hardware_queue(peer, host_memory, gpus, device, out);
    if (!why_software.ok())
        if (status bad = make_network_queue(wire, host_memory, gpus, device, out); !bad.ok()) return bad;
    executed_by = out->executed_by() + (why_software.ok() ? "" : ": " + why_software.message());
    return {};
}

status queue_to(int peer, int device, chosen_queue &out) {
    struct entry {
        std::unique_ptr<send_queue> queue;
        std::string executed_by;
    };
    static std::mutex *const mutex = new std::mutex;
    static auto *const queues = new std::map<std::pair<int, int>, entry>;
    network *const wire = network_in_use();
    if (wire == nullptr) return failure("no network is in use");
    const std::lock_guard lock(*mutex);
    entry &made = (*queues)[{peer, device}];
    if (made.queue == nullptr)
        if (status bad = make_queue_to(*wire, peer, node_memory(), device == on_host ? nullptr : devices(), device,
                                       made.queue, made.executed_by);
            !bad.ok())
            return bad;
    out = {made.queue.get(), made.executed_by};
    return {};
}

std::string queues_executed_by() {
    status why;
    network *const wire = between_nodes(why);
    if (wire == nullptr) return "nobody: " + why.message();
    why = wire->no_hardware_queues();
    return why.ok() ? "the NIC" : "the software HCA: " + why.message();
}

transport &node_memory() { return shm_transport(); }

transport *devices() {
    if (allowed().fake_gpus != nullptr) return allowed().fake_gpus;
#if MPIX_HAVE_CUDA
    if (allowed().cuda_ipc && cuda_ipc_transport().usable()) return &cuda_ipc_transport();
#endif
    return nullptr;
}

status no_devices() {
    if (devices() != nullptr) return {};
    // Asked for each pair of requests.
    static const status not_built_in = failure("mpix was built without CUDA"),
                        none = failure("this process can use no GPU"),
                        left_out = failure("MPIX_TRANSPORTS leaves cuda_ipc out");
    if (!MPIX_HAVE_CUDA) return not_built_in;
    return allowed().cuda_ipc ? none : left_out;
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

means means_here() {
    const network *const chosen = network_in_use();
    return {allowed().shm, no_devices(), chosen == nullptr ? id_none : chosen->id()};
}

namespace {

candidate direct(const ends &pair, const means &here) {
    const auto no = [](reason why) { return candidate{id_cuda_ipc, "cuda_ipc", false, std::move(why)}; };
    if (!here.no_devices.ok()) return no(here.no_devices);
    if (!pair.receiver_on_gpu) return no("the receive buffer is host memory");
    if (!pair.unreached.ok()) return no(pair.unreached);
    if (pair.by_network) return no("the processes share no memory");
    if (!pair.sender_has_devices) return no("the receive buffer is GPU memory, and the sending process can use no GPU");
    return {id_cuda_ipc, "cuda_ipc", true,
            "the receive buffer is GPU memory, and the sender's process maps GPU memory of the receiver's"};
}

candidate shared(const ends &pair, const means &here) {
    const auto no = [](reason why) { return candidate{id_shm, "shm", false, std::move(why)}; };
    if (!here.shm) return no("MPIX_TRANSPORTS leaves shm out");
    if (!pair.unreached.ok()) return no(pair.unreached);
    if (pair.by_network) return no("the processes cannot map each other's memory, or one of them is not to");
    if (pair.receiver_on_gpu) return no("the receive buffer is GPU memory, where nothing is copied to by the receiver");
    return {id_shm, "shm", true, "both processes map the same memory"};
}

candidate networked(const known_network &n, const ends &pair, const means &here) {
    const auto no = [&n](reason why) { return candidate{n.id, n.name, false, std::move(why)}; };
    if (!pair.unreached.ok()) return no(pair.unreached);
    if (!pair.by_network) return no("the processes share memory");
    if (here.network != n.id) {
        // No library is loaded, and no device opened, only to say that it is not needed; mpix_info tries them all.
        const bool known = !n.permitted || n.backend == nullptr;
        const status why = known ? n.why_not() : status{};
        return why.ok() ? no("one network carries all pairs of a process, and it is another") : no(why);
    }
    const std::string device = n.backend == nullptr ? "" : n.backend->device();
    return {n.id, n.name, true, "the processes share no memory" + (device.empty() ? "" : "; by " + device)};
}

}  // namespace

std::array<candidate, 4> choice::candidates() const {
    const auto [first, second] = networks();
    return {direct(pair, here), shared(pair, here), networked(first, pair, here), networked(second, pair, here)};
}

choice choose(const ends &pair, const means &here) {
    choice c{pair, here, id_none, "", {}};
    const auto all = c.candidates();
    if (const auto it = std::find_if(all.begin(), all.end(), [](const candidate &one) { return one.works; });
        it != all.end()) {
        c.taken = it->id;
        c.name = it->name;
        return c;
    }
    const std::size_t by_network = here.network == id_verbs ? 3 : 2;
    c.why_not = failure(all[pair.by_network || !pair.unreached.ok() ? by_network
                            : pair.receiver_on_gpu                  ? 0
                                                                    : 1]
                            .why.text());
    return c;
}

transport &choice::landing() const { return taken == id_cuda_ipc ? *devices() : node_memory(); }

std::vector<availability> available() {
    std::vector<availability> all{{"shm", allowed().shm ? status{} : failure("MPIX_TRANSPORTS leaves shm out"), {}},
                                  {"cuda_ipc", no_devices(), {}}};
    for (const known_network &n : networks()) {
        const status why_not = n.why_not();
        all.push_back({n.name, why_not, why_not.ok() ? n.backend->device() : ""});
    }
    return all;
}

}  // namespace mpix::transport
