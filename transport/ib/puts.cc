// SPDX-License-Identifier: BSD-3-Clause
//
// Puts: they wait in a list while the queue pair is full, and their completions come in order.
#include <algorithm>

#include "transport/ib/verbs_network.h"

namespace mpix::transport::verbs {
// Finished when so many puts to the peer are known to have arrived.
struct verbs_network::arrival final : transfer {
    verbs_network &owner;
    int peer;
    std::uint64_t number;
    arrival(verbs_network &o, int p, std::uint64_t n) : owner(o), peer(p), number(n) {}
    bool finished(status &bad) override {
        const std::lock_guard lock(owner.mutex_);
        const auto it = owner.peers_.find(peer);
        if (it == owner.peers_.end()) {
            bad = owner.broken_;
            return true;
        }
        if (it->second.done >= number) return true;
        bad = it->second.lost;
        return !bad.ok();
    }
};

status verbs_network::put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                          std::unique_ptr<transfer> &out) {
    out = nullptr;
    if (offset > to.bytes || bytes > to.bytes - offset) return failure("a put beyond the end of the peer's region");
    if (bytes == 0) return {};
    const std::lock_guard lock(mutex_);
    const int peer = rdma::peer_of(to);
    auto made = std::make_unique<arrival>(*this, peer, 0);  // before there is something to wait for
    if (status bad = begin_put(peer, to, offset, static_cast<const char *>(from), 0, bytes); !bad.ok()) return bad;
    made->number = peers_.at(peer).puts;
    out = std::move(made);
    return {};
}

status verbs_network::put_word(const region &to, std::uint64_t offset, std::uint64_t value) {
    if (offset > to.bytes || sizeof value > to.bytes - offset)
        return failure("a put beyond the end of the peer's region");
    const std::lock_guard lock(mutex_);
    // Bytes before words, by the order of the queue pair, see above.
    return begin_put(rdma::peer_of(to), to, offset, nullptr, value, sizeof value);
}

std::unique_ptr<transfer> verbs_network::flush(int peer) {
    const std::lock_guard lock(mutex_);
    const auto it = peers_.find(peer);
    if (it == peers_.end() || it->second.done == it->second.puts || !it->second.lost.ok()) return nullptr;
    return std::make_unique<arrival>(*this, peer, it->second.puts);
}

status verbs_network::begin_put(int peer, const region &to, std::uint64_t offset, const char *from, std::uint64_t word,
                                std::uint64_t bytes) {
    const auto it = peers_.find(peer);
    if (it == peers_.end()) return broken_;
    peer_process &p = it->second;
    if (!p.lost.ok()) return p.lost;
    if (!p.connected) return failure("the queue pair of the peer is not connected");
    ++p.puts;
    p.waiting.push_back({reinterpret_cast<std::uint64_t>(to.address) + offset, rdma::key_of(to), from, word, bytes});
    post_waiting(peer, p);
    return p.lost;
}

void verbs_network::post_waiting(int number, peer_process &p) {
    while (!p.waiting.empty() && p.posted.size() < depth_ && under_way_ < room_) {
        put_operation &o = p.waiting.front();
        const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(o.left, port_.attributes.max_msg_sz));
        const bool is_inline = o.source == nullptr && o.left <= p.most_inline;
        if (!is_inline && o.source == nullptr) {
            // Whatever the user sends from, for as long as it takes: what a kept registration says of memory that
            // was given back and taken anew would be wrong.
            o.source = ibv_.reg_mr(domain_, const_cast<char *>(o.from), o.left, 0);
            if (o.source == nullptr) {
                if (errno == ENOMEM && !p.posted.empty()) return;  // what is under way gives memory back
                lose(p, not_registered());
                return;
            }
        }
        ibv_sge piece{};
        piece.addr = reinterpret_cast<std::uint64_t>(o.from != nullptr ? o.from : reinterpret_cast<char *>(&o.word));
        piece.length = bytes;
        piece.lkey = is_inline ? 0 : o.source->lkey;
        ibv_send_wr wr{}, *refused = nullptr;
        wr.wr_id = static_cast<std::uint32_t>(number);
        wr.sg_list = &piece;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = is_inline ? IBV_SEND_INLINE : 0;
        wr.wr.rdma.remote_addr = o.to;
        wr.wr.rdma.rkey = o.key;
        if (const int e = ibv_post_send(p.queue, &wr, &refused); e != 0) {
            lose(p, rdma::failed_call("ibv_post_send", e));
            return;
        }
        ++under_way_;
        o.left -= bytes;
        o.to += bytes;
        if (o.from != nullptr) o.from += bytes;
        p.posted.push_back({o.left == 0, o.source});
        if (o.left == 0) p.waiting.pop_front();
    }
}

void verbs_network::complete(const ibv_wc &entry) {
    const auto it = peers_.find(static_cast<int>(entry.wr_id));
    if (it == peers_.end() || !it->second.lost.ok()) return;  // of a queue pair that is gone
    peer_process &p = it->second;
    if (entry.status != IBV_WC_SUCCESS) {
        lose(p, failure(ibv_.ibv_wc_status_str(entry.status)));
        return;
    }
    if (p.posted.empty()) return;
    const posted_write w = p.posted.front();
    p.posted.pop_front();
    --under_way_;
    if (!w.last) return;
    if (w.source != nullptr) ibv_.ibv_dereg_mr(w.source);
    ++p.done;
}

}  // namespace mpix::transport::verbs
