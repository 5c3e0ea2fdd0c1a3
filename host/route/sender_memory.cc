// SPDX-License-Identifier: BSD-3-Clause
#include "host/route/sender_memory.h"

#include <utility>

#include "host/format.h"
#include "host/protocol/rget.h"
#include "host/request/upcalls.h"

namespace mpix {

status reach_words(const request &receive, const offer_body &sender, peer_link &link,
                   std::optional<sender_words> &out) {
    link = {nullptr, receive.peer_world()};
    if (sender.words.bytes < sizeof(mpix_words)) return failure("the sender's control block is too small");
    if (transport::by_network(sender.words.transport)) {
        status bad;
        link.wire = transport::between_nodes(bad);
        if (link.wire != nullptr) bad = introduce_to(link.world_rank, *link.wire);
        if (!bad.ok()) return bad;
    } else if (!transport::may_share_memory()) {
        return failure(sender.no_network.empty() ? "MPIX_TRANSPORTS leaves shm out" : sender.no_network.c_str());
    } else if (sender.words.transport != transport::id_shm) {
        return failure("unsupported transport for the sender's control block");
    }
    transport::region words;
    auto bad = link.attach(sender.words, transport::on_host, words);
    if (bad.ok())
        out.emplace(link, words);
    else if (!sender.no_network.empty())
        bad = failure(format("{}; {}", bad.message(), sender.no_network.c_str()));
    return bad;
}

sender_gpu_memory::~sender_gpu_memory() {
    link.detach(words);
    link.detach(buffer);
}

std::uint64_t *sender_gpu_memory::wanted() const {
    return clear_to_send() + wanted_in_kernel_words / sizeof(std::uint64_t);
}

namespace {

// Maps the send buffer. Returns why kernels cannot read it, or an empty string.
std::string reach_buffer(const request &receive, const offer_body &sender, const sender_words &words,
                         const transport::transport &owner, sender_gpu_memory &out) {
    if (!sender.flags.has(offer_flag::rget)) return "the sender does not offer its buffer, and says why";
    const auto partitions = static_cast<std::uint64_t>(sender.partitions);
    const std::uint64_t total = receive.total_bytes(), each = total / partitions;
    if (const reason why = why_no_rget({receive.place.owner != nullptr, !receive.gapless, receive.op.buffer, each, 0});
        !why.empty())
        return why.text();
    if (sender.words.bytes < words_with_answers(partitions)) return "the sender has no room for answers";
    // Page-locked memory is needed that may stay page-locked while the process lives: giving it back does not wait for
    // kernels.
    if (!words.region.lasting) return "the sender has too many partitions";
    if (sender.send_buffer.transport != owner.id() || sender.send_buffer.bytes < total ||
        out.words.bytes < kernel_words_bytes(partitions))
        return "the sender's buffer is too small, or where it cannot be read";
    transport::region buffer;
    if (auto bad = words.link.attach(sender.send_buffer, receive.place.device, buffer); !bad.ok()) return bad.message();
    if ((reinterpret_cast<std::uintptr_t>(buffer.address) & 7) != 0) {
        words.link.detach(buffer);
        return "the send buffer is not aligned to words of 8 bytes";
    }
    out.buffer = buffer;
    return {};
}

}  // namespace

std::unique_ptr<const sender_gpu_memory> reach_gpu_memory(const request &receive, const offer_body &sender,
                                                          const sender_words &words, const transport::transport &owner,
                                                          std::string &why_no_rget) {
    auto made = std::make_unique<sender_gpu_memory>(words.link);
    status bad;
    if (sender.kernel_words.transport != owner.id() || sender.kernel_words.bytes < kernel_words_bytes(0))
        bad = failure("the sender has no words for kernels");
    else
        bad = words.link.attach(sender.kernel_words, receive.place.device, made->words);
    why_no_rget = bad.ok() ? reach_buffer(receive, sender, words, owner, *made) : bad.message();
    if (!bad.ok()) return nullptr;
    return made;
}

}  // namespace mpix
