// SPDX-License-Identifier: BSD-3-Clause
//
// The route of a matched send: where its bytes go, and how.
#ifndef MPIX_HOST_ROUTE_SEND_ROUTE_H
#define MPIX_HOST_ROUTE_SEND_ROUTE_H

#include <cstdint>
#include <memory>

#include "host/export/inline_drain.h"
#include "host/protocol/select.h"
#include "host/staging/chunks.h"
#include "host/route/send_offer.h"

namespace mpix {

// Made complete, or not at all, and never changed. It is held as long as somebody may store by it: a caller of Pready
// or a work queue may remember it after its match has been undone. The last holder's end gives back what is mapped.
struct send_route {
    send_route(const peer_link &to, std::uint64_t message_bytes) : link(to), bytes(message_bytes) {}
    ~send_route();
    send_route(const send_route &) = delete;
    send_route &operator=(const send_route &) = delete;

    // The landing is the receive buffer, in the receiver's own memory.
    bool in_place() const { return far != nullptr; }
    // Then: which partitions have been copied (mpix_prequest.taken), behind the arrival flags.
    std::uint64_t *taken() const { return static_cast<std::uint64_t *>(arrival.address) + chunks.all() + 1; }
    // Kernels of the receiver may be offered partitions.
    bool by_rget() const { return how.no_rget.empty(); }
    bool to_gpu() const { return landing.device != transport::on_host; }
    // Where an epoch's packed message goes, or element 0 of a landing with gaps.
    char *landing_of(std::uint64_t epoch) const;
    // Sets `how_many` flags, from flags[index] on, to the epoch, after the bytes that they stand for. Pairs with
    // reached_acquire() in look.
    status set_flags(std::uint64_t index, std::uint64_t how_many, std::uint64_t epoch) const {
        return link.tell(arrival, index * sizeof(std::uint64_t), epoch, how_many);
    }

    const peer_link link;
    const std::uint64_t bytes;  // of a message
    const char *path = "";
    transport::region landing, arrival, peer_words;
    std::shared_ptr<const plan> landing_type;     // of a landing with gaps
    char *landing_at = nullptr;                   // of packed byte 0, or with gaps of element 0
    const transport::peer_memory *far = nullptr;  // how the receiver's own memory is reached
    transport::gpu_puts *reads_gpu = nullptr;     // how the network reads the send buffer in GPU memory
    std::uint64_t slots = 0;
    chunking chunks;  // also decides how many arrival flags there are
    inline_buffer_layout inline_buffer;
    movement how;
};

// By the receiver's ACCEPT; setup_mutex and engine are held. The receiver has chosen the transport. It follows the same
// rules as this side, except that it does not know where the send buffer is.
transport::choice choose_transport(const request &send, const accept_body &accepted);
// `rematched`: callers of Pready may remember an earlier route, so they are given no other.
status make_send_route(const request &send, const send_offer &offered, const accept_body &accepted,
                       const transport::choice &choice, bool rematched, std::shared_ptr<const send_route> &out);

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_SEND_ROUTE_H
