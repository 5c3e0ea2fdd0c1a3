// SPDX-License-Identifier: BSD-3-Clause
//
// How this process reaches memory of a request's peer: mapped, or by a network.
#ifndef MPIX_HOST_ROUTE_PEER_LINK_H
#define MPIX_HOST_ROUTE_PEER_LINK_H

#include <cstdint>
#include <memory>

#include "transport/select.h"

namespace mpix {

struct peer_link {
    transport::network *wire = nullptr;  // null: the processes share memory
    int world_rank = -1;

    // A region of the peer's, by what its description says. `user`: the device that will use it.
    status attach(const transport::wire_region &described, int user, transport::region &out) const;
    void detach(transport::region &r) const;
    // Stores `value` into `how_many` consecutive words there, after all that was put there before (store_release; pairs
    // with load_acquire on the other side).
    status tell(const transport::region &r, std::uint64_t offset, std::uint64_t value,
                std::uint64_t how_many = 1) const;
    // The same for one word; over a network it may be delayed (network::put_word_delayed).
    status tell_delayed(const transport::region &r, std::uint64_t offset, std::uint64_t value,
                        std::uint64_t most_replaced) const;
};

// Host memory as kernels on one GPU reach it, as long as this lives.
class gpu_view {
public:
    static status acquire(transport::transport &gpus, const transport::region &host, int device,
                          std::unique_ptr<gpu_view> &out);
    ~gpu_view();
    gpu_view(const gpu_view &) = delete;
    gpu_view &operator=(const gpu_view &) = delete;

    void *address() const { return address_; }

private:
    gpu_view(transport::transport &gpus, const transport::region &host) : gpus_(gpus), host_(host) {}

    transport::transport &gpus_;
    const transport::region host_;
    void *address_ = nullptr;  // null: it was not acquired
};

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_PEER_LINK_H
