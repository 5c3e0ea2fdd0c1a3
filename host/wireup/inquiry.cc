// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/inquiry.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "host/format.h"
#include "host/progress.h"
#include "host/wireup/state.h"
#include "transport/reserve.h"

namespace mpix {
namespace {

struct unmatched {
    int tag;
    bool same_communicator;
};

// The end of a sentence that begins with "rank n has".
std::string listed(const char *kind, const std::vector<unmatched> &all) {
    constexpr std::size_t most = 4;
    const auto one = [](const unmatched &u) {
        return format("tag {}{}", u.tag, u.same_communicator ? "" : " on another communicator");
    };
    if (all.empty()) return format("no unmatched {} for this process", kind);
    if (all.size() == 1) return format("an unmatched {} with {}", kind, one(all[0]));
    std::string text = format("{} unmatched {}s: ", all.size(), kind);
    for (std::size_t i = 0; i < std::min(all.size(), most); ++i) text += (i == 0 ? "" : ", ") + one(all[i]);
    return all.size() > most ? text + ", ..." : text;
}

// This process's requests of that kind to the given process that are not matched yet.
std::string unmatched_with(int world_rank, mpix_kind kind, std::uint64_t communicator) {
    std::vector<unmatched> all;
    for (const auto &[number, r] : setup().live)
        if (r->kind == kind && !r->freed && r->peer_number == 0 && r->peer_world() == world_rank)
            all.push_back({r->op.tag, r->op.members->name == communicator});
    return listed(kind == MPIX_KIND_SEND ? "send" : "receive", all);
}

// The other process's unmatched sends, from the OFFERs that have arrived here; empty if there are none.
std::string unmatched_offers(int world_rank, std::uint64_t communicator) {
    std::vector<unmatched> all;
    for (const auto &[name, o] : setup().offers)
        if (o.key.source == world_rank && o.receiver == 0)
            all.push_back({o.key.tag, o.key.communicator == communicator});
    return all.empty() ? "" : listed("send", all);
}

}  // namespace

std::string times(std::uint64_t n) { return n == 1 ? "once" : n == 2 ? "twice" : format("{} times", n); }

void inquire(request &r) {
    if (r.null_peer()) return;
    transport::require_reserve();
    const std::lock_guard lock(setup_mutex());
    if (r.question == nullptr || r.question->epoch != r.epoch())
        r.question = std::make_unique<inquiry>(inquiry{r.epoch(), false, {}, {}});
    inquiry &q = *r.question;
    // The sender of a pair knows the receiver's epoch from its clear-to-send.
    if (q.pending || !setup_running() || (r.kind == MPIX_KIND_SEND && r.connected)) return;
    const inquire_body question{.communicator = r.op.members->name,
                                .by = r.kind == MPIX_KIND_SEND ? pair_side::send : pair_side::receive};
    // May fail for want of memory.
    send_control(r.peer_world(), {.from = r.number, .to = r.peer_number, .body = question});
    q.pending = true;
}

void answer_inquiry(int source, std::uint64_t from, std::uint64_t to, const inquire_body &question) {
    answer_body answer;
    const auto partner = setup().live.find(to);
    try {
        std::string text;
        if (partner != setup().live.end() && !partner->second->freed && partner->second->peer_world() == source)
            text = partner->second->standing();
        else
            text = unmatched_with(source, question.by == pair_side::send ? MPIX_KIND_RECV : MPIX_KIND_SEND,
                                  question.communicator);
        answer.state.assign(text);
    } catch (const std::bad_alloc &) {  // the peer asks no more until it is answered
        answer.state.assign("no memory to describe its requests");
    }
    send_control(source, {.to = from, .body = answer});
}

void take_answer(request &r, const answer_body &answer) {
    if (r.question == nullptr || !std::exchange(r.question->pending, false)) return;
    r.question->answer = answer.state.c_str();
    r.question->answered = wait_clock::now();
}

std::string peer_says(const request &r) {
    if (r.question == nullptr || r.question->epoch == 0 || r.question->epoch != r.epoch()) return {};
    const inquiry &q = *r.question;
    // INQUIRE is repeated, so one may be pending although the last answer is recent.
    if (!q.answer.empty() && (!q.pending || seconds_since(q.answered) < notice_seconds()))
        return format("rank {} has {}", r.op.peer, q.answer);
    if (r.kind == MPIX_KIND_RECV && r.peer_number == 0)
        if (const std::string offers = unmatched_offers(r.peer_world(), r.op.members->name); !offers.empty())
            return format("rank {} has {}", r.op.peer, offers);
    if (q.answer.empty())
        return format(
            "rank {} does not answer: it has made no partitioned request yet, or mpix makes no progress there",
            r.op.peer);
    return format("{:.1f} s ago rank {} had {}; it has not answered since", seconds_since(q.answered), r.op.peer,
                  q.answer);
}

}  // namespace mpix
