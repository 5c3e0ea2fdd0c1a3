// SPDX-License-Identifier: BSD-3-Clause
#include "transport/select.h"

#include "transport/backends.h"

namespace mpix::transport {

transport &node_memory() { return shm_transport(); }

transport *devices() {
#if MPIX_HAVE_CUDA
    if (cuda_ipc_transport().usable()) return &cuda_ipc_transport();
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
    if (!pair.same_node) {
        why_not =
            "the processes cannot map each other's memory (different nodes?) and no network transport is built in";
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
