// SPDX-License-Identifier: BSD-3-Clause
//
// What a receive reaches of its sender's memory, until the match is undone.
#ifndef MPIX_HOST_ROUTE_SENDER_MEMORY_H
#define MPIX_HOST_ROUTE_SENDER_MEMORY_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/request/request.h"
#include "host/route/peer_link.h"

namespace mpix {

// Its words. They are needed for clear-to-send, also of a pair that cannot work.
struct sender_words {
    sender_words(const peer_link &from, const transport::region &attached) : link(from), region(attached) {}
    ~sender_words() { link.detach(region); }
    sender_words(const sender_words &) = delete;
    sender_words &operator=(const sender_words &) = delete;

    const peer_link link;
    transport::region region;
};
// `link`: by what the sender is reached, even if the words are not.
status reach_words(const request &receive, const offer_body &sender, peer_link &link, std::optional<sender_words> &out);

// Its GPU's memory, as our kernels reach it.
struct sender_gpu_memory {
    explicit sender_gpu_memory(const peer_link &from) : link(from) {}
    ~sender_gpu_memory();
    sender_gpu_memory(const sender_gpu_memory &) = delete;
    sender_gpu_memory &operator=(const sender_gpu_memory &) = delete;

    std::uint64_t *clear_to_send() const { return static_cast<std::uint64_t *>(words.address); }
    std::uint64_t *wanted() const;  // only with `buffer`

    const peer_link link;
    transport::region words;   // which our kernels write
    transport::region buffer;  // the send buffer, from which they read (rget.h); empty: they do not
};
// Bytes of those words: clear-to-send (mpix_prequest.kernel_clear_to_send); a cache line behind it one word for each
// partition, in which kernels tell what they wait for (rget.h).
constexpr std::uint64_t wanted_in_kernel_words = 64;
constexpr std::uint64_t kernel_words_bytes(std::uint64_t wanted) {
    return wanted_in_kernel_words + wanted * sizeof(std::uint64_t);
}
// `owner`: of the landing. Null: kernels reach nothing there. `why_no_rget` says why they do not read the buffer.
std::unique_ptr<const sender_gpu_memory> reach_gpu_memory(const request &receive, const offer_body &sender,
                                                          const sender_words &words, const transport::transport &owner,
                                                          std::string &why_no_rget);

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_SENDER_MEMORY_H
