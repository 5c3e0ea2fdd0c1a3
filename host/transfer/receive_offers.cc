// SPDX-License-Identifier: BSD-3-Clause
//
// Pull, the receiver's side: access to the send buffer, from which kernels of the receiver read partitions (rget.h).
#include "host/transfer/receive.h"

#include "host/protocol/rget.h"

namespace mpix {

// Gives our kernels access. Returns why that is impossible, or an empty string.
std::string receive_request::attach_send_buffer(const offer &sender) {
    if (!sender.pull) return "the sender does not offer its buffer, and says why";
    const std::uint64_t each = total_bytes() / peer_partitions_;
    if (std::string why = why_no_pull({place.owner != nullptr, !gapless, op.buffer, each, 0}); !why.empty()) return why;
    if (sender.words.bytes < words_with_answers(peer_partitions_)) return "the sender has no room for answers";
    // Page-locked memory is needed that may stay page-locked while the process lives: giving it back does not wait for
    // kernels.
    if (!peer_words_.lasting) return "the sender has too many partitions";
    if (sender.buffer.transport != landing_owner_->id() || sender.wanted.transport != landing_owner_->id() ||
        sender.buffer.bytes < total_bytes() || sender.wanted.bytes < peer_partitions_ * sizeof(std::uint64_t))
        return "the sender's buffer is too small, or where it cannot be read";
    transport::region buffer, wanted;
    if (auto bad = attach_peers(sender.buffer, place.device, buffer); !bad.empty()) return bad;
    auto bad = attach_peers(sender.wanted, place.device, wanted);
    if (bad.empty() && (reinterpret_cast<std::uintptr_t>(buffer.address) & 7) != 0)
        bad = "the send buffer is not aligned to words of 8 bytes";
    if (bad.empty()) {
        peer_buffer_ = buffer;
        wanted_ = wanted;
    } else {
        detach_peers(buffer);
        detach_peers(wanted);
    }
    return bad;
}

// A lasting mapping, so this does not wait.
void receive_request::drop_view() {
    if (peer_view_) transport::devices()->release_view(peer_view_);
    peer_view_ = {};
}

// The sender's mapping may now be closed. (Only in a call of the user's own: see close_unused_mappings.)
void receive_request::drop_send_buffer() {
    drop_view();
    detach_peers(peer_buffer_);
    detach_peers(wanted_);
}

}  // namespace mpix
