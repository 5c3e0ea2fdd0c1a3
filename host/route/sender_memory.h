// SPDX-License-Identifier: BSD-3-Clause
//
// What a receive reaches of its sender's memory, until the match is undone.
#ifndef MPIX_HOST_ROUTE_SENDER_MEMORY_H
#define MPIX_HOST_ROUTE_SENDER_MEMORY_H

#include <memory>

#include "host/request/request.h"
#include "host/route/peer_link.h"

namespace mpix {

// Its words. They are needed for clear-to-send, also of a pair that cannot work.
struct sender_words {
    explicit sender_words(const peer_link &from) : link(from) {}
    ~sender_words() { link.detach(region); }
    sender_words(const sender_words &) = delete;
    sender_words &operator=(const sender_words &) = delete;

    const peer_link link;
    transport::region region;
};
// `link`: by what the sender is reached, even if the words are not.
status reach_words(const request &receive, const offer_body &sender, peer_link &link,
                   std::shared_ptr<const sender_words> &out);

// Its buffer in GPU memory, from which our kernels read (rget.h).
struct sender_buffer {
    explicit sender_buffer(const peer_link &from) : link(from) {}
    ~sender_buffer();
    sender_buffer(const sender_buffer &) = delete;
    sender_buffer &operator=(const sender_buffer &) = delete;

    const peer_link link;
    transport::region buffer;
    transport::region wanted;  // where kernels tell what they wait for
};
// `owner`: of the landing. Returns why they cannot, or an empty string.
std::string reach_buffer(const request &receive, const offer_body &sender, const sender_words &words,
                         const transport::transport &owner, std::unique_ptr<const sender_buffer> &out);

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_SENDER_MEMORY_H
