// SPDX-License-Identifier: BSD-3-Clause
//
// The route of a matched receive: where its bytes land, and how it learns of them.
#ifndef MPIX_HOST_ROUTE_RECEIVE_ROUTE_H
#define MPIX_HOST_ROUTE_RECEIVE_ROUTE_H

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "host/export/inline_drain.h"
#include "host/protocol/select.h"
#include "host/protocol/slot_budget.h"
#include "host/request/request.h"
#include "host/route/sender_memory.h"
#include "host/staging/staged_delivery.h"

namespace mpix {

// Memory of this process that a peer may be given access to, until nobody holds it.
struct own_region {
    own_region() = default;
    ~own_region();
    own_region(const own_region &) = delete;
    own_region &operator=(const own_region &) = delete;

    // It stays, though nobody holds it any more: a kernel has not ended that may use it.
    void abandon() { region = {}; }

    transport::region region;
};

// The user's own buffer in GPU memory, as long as a network may put there.
struct registered_buffer {
    registered_buffer() = default;
    ~registered_buffer() { take_back(); }
    registered_buffer(const registered_buffer &) = delete;
    registered_buffer &operator=(const registered_buffer &) = delete;

    // The user may free it from now on, and a peer that cannot be reached must not write there.
    void take_back();

    transport::region region;
};

// Made complete, or not at all, and never changed. It is held as long as somebody may look at it: after its match has
// been undone, another thread's Parrived, a kernel, or the sender, which has not answered yet.
struct receive_route {
    receive_route(const peer_link &from, const transport::choice &chosen, std::uint64_t message_bytes,
                  std::uint64_t senders)
        : link(from), choice(chosen), bytes(message_bytes), peer_partitions(senders) {}
    ~receive_route();
    receive_route(const receive_route &) = delete;
    receive_route &operator=(const receive_route &) = delete;

    const char *path() const { return choice.name; }
    bool by_puts() const { return registered != nullptr; }
    // A single copy: the sender is told the receive buffer as its landing, and this process may read the send buffer.
    bool in_place() const { return far != nullptr; }
    // Where partitions are copied from, for all slots.
    const char *source() const { return in_place() ? send_buffer : static_cast<const char *>(landing.address); }
    landing_kind kind() const { return {in_place(), by_puts(), why_staged, slots, why_no_rget, why_forwarded}; }

    const peer_link link;
    const transport::choice choice;
    const std::uint64_t bytes;  // of a message
    const std::uint64_t peer_partitions;
    transport::transport *owner = nullptr;  // of the landing, and of flags in GPU memory
    std::shared_ptr<own_region> arrival = std::make_shared<own_region>();
    std::uint64_t *flags = nullptr;  // the sender's, with which `arrival` begins
    bool flags_on_device = false;    // they are in GPU memory
    transport::region landing;
    own_region layout;                              // the plan of a landing with gaps, for the sender
    std::unique_ptr<registered_buffer> registered;  // then it is the landing
    std::unique_ptr<staged_delivery>
        delivery;  // for GPU memory that the sender does not map: copies chunks there, or only sets flags
    inline_buffer_layout inline_buffer;
    std::uint64_t slots = 0;
    landing_room room;
    bool by_rget = false;                         // our kernels may read the send buffer
    std::string why_staged;                       // why the network does not put into the user's buffer, in GPU memory
    std::string why_forwarded;                    // why a sender of this node does not map that buffer
    std::string why_no_rget;                      // why our kernels do not read the send buffer
    const transport::peer_memory *far = nullptr;  // how the sender's own memory is read
    const char *send_buffer = nullptr;            // an address there
    // By sender's partition: which are copied (mpix_prequest.taken). Behind the arrival flags, or in own_taken.
    std::uint64_t *taken = nullptr;
    // Allocated without being touched: an empty message may have very many.
    std::unique_ptr<std::uint64_t[], void (*)(void *)> own_taken{nullptr, std::free};
};

// What a route is made from; setup_mutex and engine are held.
struct receive_match {
    const request &receive;
    const offer_body &sender;
    peer_link link;
    std::optional<transport::choice> choice;  // none before the link is known
    const sender_words *words;                // null: they cannot be reached, and so nothing was taken
    bool first;                               // no match has been undone before
};
// `sender_gpu`: set if our kernels may read the send buffer.
status make_receive_route(const receive_match &match, std::shared_ptr<const receive_route> &out,
                          std::unique_ptr<const sender_gpu_memory> &sender_gpu);
// Whether a sender on this node could map the receive buffer, or a landing, in GPU memory.
status check_sharing(const request &receive);
// For the ACCEPT.
status describe(const receive_route &route, const request &receive, accept_body &answer);

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_RECEIVE_ROUTE_H
