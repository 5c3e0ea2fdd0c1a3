// SPDX-License-Identifier: BSD-3-Clause
//
// What a send offers to the receive that it will be matched with, as its OFFER says it, and why it offers no more.
#ifndef MPIX_HOST_ROUTE_SEND_OFFER_H
#define MPIX_HOST_ROUTE_SEND_OFFER_H

#include <cstdint>
#include <memory>
#include <string>

#include "host/protocol/inline_threshold.h"
#include "host/request/request.h"
#include "host/route/peer_link.h"

namespace mpix {

// Whether kernels of the receiver may read the send buffer (rget.h), as far as is known here.
struct rget_terms {
    std::uint64_t least = 0;  // see rget_threshold
    reason why_not;           // empty: they may
};
rget_terms rget_terms_of(const request &send);

// Of one send; does not change once make_offer has filled it in.
struct send_offer {
    send_offer(const transport::placement &buffer, const rget_terms &p) : place(buffer), rget(p) {}
    ~send_offer();
    send_offer(const send_offer &) = delete;
    send_offer &operator=(const send_offer &) = delete;

    bool gpu_put() const { return gpu_wire != nullptr && why_staged.empty(); }
    bool goes_inline() const { return to_packed || to_gaps; }

    const transport::placement place;             // of the send buffer
    peer_link link;                               // by no network, before it is filled in
    const transport::peer_memory *far = nullptr;  // how the peer's own memory is reached
    reason why_no_single_copy;                    // as far as is known here
    transport::gpu_puts *gpu_wire = nullptr;      // how the network reaches GPU memory; null: not at all
    std::string why_staged;                       // why the network does not read the send buffer in GPU memory
    inline_threshold threshold;                   // if the receive has no gaps
    bool to_packed = false, to_gaps = false;  // the partitions are small enough for an inline buffer of such a receive
    rget_terms rget;
    transport::region kernel_words;  // in our GPU's memory; see sender_memory.h
};

// Fills it in, and returns the OFFER itself; setup_mutex is held.
offer_body make_offer(const request &send, send_offer &o);

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_SEND_OFFER_H
