// SPDX-License-Identifier: BSD-3-Clause
#include "host/wireup/wireup.h"

#include <utility>
#include <variant>

#include "host/config.h"
#include "host/progress.h"
#include "host/protocol/inline_threshold.h"
#include "host/request/explain.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"
#include "host/wireup/peer_watch.h"
#include "host/wireup/state.h"
#include "host/wireup/wait_for_all.h"

namespace mpix {
namespace {

// How long a pair of two started requests waits for an earlier, undecided place (see matcher.h).
constexpr std::int64_t doubt_ms = 1000;

receive_request &receive_of(std::uint64_t number) { return static_cast<receive_request &>(*setup().live.at(number)); }

// Undo the match of this receive. Its send may be matched with another.
void part(std::uint64_t number) {
    receive_request &r = receive_of(number);
    const std::uint64_t send = std::exchange(r.bound_to, 0);
    r.part();
    send_control(r.peer_world(), {.from = number, .to = send, .body = withdraw_body{.by = pair_side::receive}});
    setup().offers.at({r.peer_world(), send}).receiver = 0;
}

void bind(offer &o, std::uint64_t send, receive_request &r) {
    r.bound_to = send;
    o.receiver = r.number;
    r.bind(send, o.body.get<offer_body>());
}

// Apply the matcher's result: first undo the matches that no longer hold, then make the new ones.
void rearrange(const match_key &key, const matcher::change &change) {
    setup_state &s = setup();
    const auto each_place = [&change](const auto &act) {
        for (const matcher::pair &p : change.final) act(p);
        for (const matcher::pair &p : change.places) act(p);
    };
    const auto offer_of = [&](std::uint64_t send) -> offer & { return s.offers.at({key.source, send}); };
    each_place([&](const matcher::pair &p) {
        if (p.receive != 0)
            if (const std::uint64_t bound = receive_of(p.receive).bound_to; bound != 0 && bound != p.send)
                part(p.receive);
        if (p.send == 0) return;
        const std::uint64_t other = offer_of(p.send).receiver;
        if (other != 0 && other != p.receive) part(other);
    });
    each_place([&](const matcher::pair &p) {
        if (p.send == 0 || p.receive == 0) return;
        if (offer &o = offer_of(p.send); o.receiver == 0) bind(o, p.send, receive_of(p.receive));
    });
    for (const matcher::pair &p : change.final) {
        receive_of(p.receive).make_final();
        offer_of(p.send).body = {};
    }
    // The first pair of a line stays a pair, even before both are known to have started.
    if (const auto [send, receive] = s.order.first(key); send != 0 && receive != 0) receive_of(receive).open();
    each_place([](const matcher::pair &p) {
        if (p.receive != 0) update_waiting(receive_of(p.receive));
    });
    if (s.order.in_doubt(key))
        s.in_doubt_since.try_emplace(key, coarse_ms());
    else
        s.in_doubt_since.erase(key);
}

void end_doubts() {
    setup_state &s = setup();
    if (s.in_doubt_since.empty()) return;
    const std::int64_t now = coarse_ms();
    transport::safe_vector<match_key> over;
    for (const auto &[key, since] : s.in_doubt_since)
        if (now - since >= doubt_ms) over.push_back(key);
    for (const match_key &key : over) {
        s.in_doubt_since.erase(key);
        rearrange(key, s.order.end_doubt(key));
    }
}

void handle_offer(int source, std::uint64_t from, const offer_body &m) {
    setup_state &s = setup();
    const match_key key{m.communicator, source, m.tag};
    const bool is_new = s.offers.try_emplace({source, from}, offer{.key = key, .body = body_at_rest(m)}).second;
    if (!is_new) return;  // sent twice: not from a correct peer
    rearrange(key, s.order.add(key, matcher::send, from));
}

void handle_started_send(int source, std::uint64_t from) {
    setup_state &s = setup();
    const auto known = s.offers.find({source, from});
    if (known == s.offers.end()) return;
    const match_key key = known->second.key;
    rearrange(key, s.order.start(key, matcher::send, from));
}

// The sender freed its request before starting it, or its process has ended.
void handle_withdrawn_send(int source, std::uint64_t from) {
    setup_state &s = setup();
    const auto known = s.offers.find({source, from});
    if (known == s.offers.end()) return;
    const match_key key = known->second.key;
    const std::uint64_t receiver = known->second.receiver;
    s.offers.erase(known);
    send_control(source, {.to = from, .body = detach_body{}});
    if (const auto partner = s.live.find(receiver); partner != s.live.end()) {
        auto &r = static_cast<receive_request &>(*partner->second);
        r.bound_to = 0;
        if (r.freed) {
            forget_request(receiver);
        } else {
            if (!r.unbind()) {
                r.peer_gone = true;
                rearrange(key, s.order.remove(key, {from, receiver}));
            }
            update_waiting(r);
        }
    }
    rearrange(key, s.order.free(key, matcher::send, from));
}

// The request that a message is for. Its peer must be the process that sent the message.
request *addressee(int source, std::uint64_t to) {
    const auto it = setup().live.find(to);
    if (it == setup().live.end()) return nullptr;
    request &r = *it->second;
    return !r.null_peer() && r.peer_world() == source ? &r : nullptr;
}

// A message to a request of ours, which `take` gives to it. False: there is no such request.
template <class Take>
bool hand_to_request(int source, std::uint64_t to, const Take &take) {
    request *const r = addressee(source, to);
    if (r == nullptr) return false;
    const std::uint64_t number = r->number;
    take(*r);
    update_waiting(*r);
    if (r->freed && r->peer_gone && !r->parting()) forget_request(number);
    return true;
}

// One function for each kind of message.
struct message_handler {
    int source;
    std::uint64_t from, to;

    void operator()(const offer_body &body) const { handle_offer(source, from, body); }
    void operator()(const started_body &) const { handle_started_send(source, from); }
    void operator()(const introduce_body &body) const { setup().channel.take_introduction(source, body); }
    void operator()(const inquire_body &body) const { answer_inquiry(source, from, to, body); }
    void operator()(const answer_body &body) const {
        if (request *const r = addressee(source, to); r != nullptr) take_answer(*r, body);
    }
    void operator()(const accept_body &body) const {
        hand_to_request(source, to, [&](request &r) { r.take_accept(from, body); });
    }
    void operator()(const connect_body &body) const {
        hand_to_request(source, to, [&](request &r) { r.take_connect(from, body); });
    }
    void operator()(const detach_body &) const {
        hand_to_request(source, to, [&](request &r) { r.take_detach(from); });
    }
    void operator()(const withdraw_body &body) const {
        if (body.by == pair_side::send) return handle_withdrawn_send(source, from);
        // A receive withdraws from a send that we may have freed; it waits for our DETACH.
        if (!hand_to_request(source, to, [&](request &r) { r.take_withdraw(from); }))
            send_control(source, {.from = to, .to = from, .body = detach_body{}});
    }
};

void handle(int source, const control_message &m) {
    if (setup().processes.known_to_have_ended(source)) return;  // its requests have failed, for good
    std::visit(message_handler{.source = source, .from = m.from, .to = m.to}, m.body);
}

// The user frees the request: tell the peer.
void part_from_peer(request &r) {
    setup_state &s = setup();
    r.freed = true;
    if (config().check) r.home->head = 0;  // makes calls with the handle fail
    const bool is_send = r.kind == MPIX_KIND_SEND;
    const match_key key = r.key();
    const std::uint64_t send = r.bound_to;                  // before it is forgotten below
    if (s.processes.known_to_have_ended(r.peer_world())) {  // nobody is left to touch its memory
        forget_request(r.number);
    } else if (!is_send && r.peer_number == 0) {
        r.peer_gone = true;  // no peer knows it, or only one whose answer to WITHDRAW is due
        if (!r.parting()) s.live.erase(r.number);
    } else if (r.epoch() == 0) {
        // Undo the match.
        send_control(r.peer_world(), {.from = r.number,
                                      .to = r.peer_number,
                                      .body = withdraw_body{.by = is_send ? pair_side::send : pair_side::receive}});
        if (r.bound_to != 0) s.offers.at({r.peer_world(), std::exchange(r.bound_to, 0)}).receiver = 0;
    } else {
        if (r.peer_number != 0)
            send_control(r.peer_world(), {.from = r.number, .to = r.peer_number, .body = detach_body{}});
        if (r.peer_gone && !r.parting()) forget_request(r.number);
    }
    update_waiting(r);
    if (is_send) return;
    rearrange(key,
              r.epoch() == 0 ? s.order.free(key, matcher::receive, r.number) : s.order.remove(key, {send, r.number}));
}

// Every process answers messages until all are here; only an unfinished non-blocking barrier tells that.
bool all_come_here() {
    MPI_Request barrier;
    setup().channel.begin_barrier(barrier);
    return wait_for_all(setup().processes, patience::endless, "called it", [&barrier] {
        progress_poll();
        int all_here = 0;
        PMPI_Test(&barrier, &all_here, MPI_STATUS_IGNORE);
        return all_here != 0;
    });
}

}  // namespace

void send_control(int world_rank, const control_message &message) { setup().channel.send(world_rank, message); }

transport::network *network_to(int world_rank, status &why_not) {
    return setup().processes.shares_memory(world_rank) ? nullptr : transport::between_nodes(why_not);
}

const transport::peer_memory *memory_of(int world_rank, status &why_not) {
    return setup().processes.memory_of(world_rank, why_not);
}

status introduce_to(int world_rank, transport::network &network) {
    return setup().channel.introduce_to(world_rank, network);
}

void start_setup(const init_facts &found) {
    const std::lock_guard lock(setup_mutex());
    setup_state &s = setup();
    static_cast<void>(this_world_rank());  // asks, for the progress thread
    s.thread_safe = found.thread_safe;
    s.one_thread = found.one_thread;
    s.processes.exchange(found.told_one_node);
    s.channel.open();
    s.running.store(true, std::memory_order_release);  // pairs: H9
}

void stop_setup() {
    setup_state &s = setup();
    if (!s.running.load(std::memory_order_acquire)) return;  // pairs: H9
    end_measuring_inline();
    const bool complete = all_come_here();
    {
        const std::lock_guard lock(setup_mutex());
        s.running.store(false, std::memory_order_release);  // pairs: H9
        forget_handles();
        s.live.clear();
        s.offers.clear();
        s.order = {};
        s.in_doubt_since.clear();
        s.unmatched_ms.store(0, std::memory_order_relaxed);
        s.channel.forget();
        s.waiting_requests.store(0, std::memory_order_release);  // pairs: H7
        if (transport::network *const network = transport::network_in_use(); network != nullptr) network->stop();
    }
    // No other thread uses the channel now. If some process does not get here, the communicator, and what is under way
    // on it, are left to the MPI library.
    if (complete && wait_for_all(s.processes, patience::as_configured, "taken what was sent to them",
                                 [&s] { return s.channel.emptied(); }))
        s.channel.close();
}

bool setup_running() { return setup().running.load(std::memory_order_acquire); }  // pairs: H9
bool one_thread_calls() { return setup().one_thread; }

bool is_committed(MPI_Datatype datatype) { return !setup_running() || setup().channel.takes(datatype); }
bool setup_thread_safe() { return setup().thread_safe; }
bool setup_in_background() { return setup().thread_safe || setup().processes.all_share_memory(); }
bool setup_pending() {
    return setup().waiting_requests.load(std::memory_order_acquire) != 0 || setup().channel.holds_any();  // pairs: H7
}

void join(const std::shared_ptr<request> &r) {
    if (r->null_peer()) return explain_null(*r);
    const std::lock_guard lock(setup_mutex());
    transport::require_reserve();
    setup_state &s = setup();
    r->number = ++s.joined;
    if (r->kind == MPIX_KIND_SEND) {
        const offer_body offered = static_cast<send_request &>(*r).make_offer();
        s.live[r->number] = r;
        send_control(r->peer_world(), {.from = r->number, .body = offered});
    } else {
        s.live[r->number] = r;
        const match_key key = r->key();
        if (!s.processes.known_to_have_ended(r->peer_world()))
            rearrange(key, s.order.add(key, matcher::receive, r->number));
    }
    update_waiting(*r);
}

namespace {

// MPI_Start takes what has come, but does not look whether requests have waited long: the user may be about to start
// another, and of two that were started together the receive is named (watch_peers).
enum class polls { all, news };
void poll_for(polls what) {
    setup_state &s = setup();
    std::unique_lock lock(setup_mutex(), std::try_to_lock);
    if (!lock || !s.running.load(std::memory_order_acquire)) return;  // pairs: H9
    // If memory runs out, the remaining messages wait for the next call.
    try_step([&s, what] {
        transport::require_reserve();
        int source = 0;
        while (const control_message *const m = s.channel.receive(source)) {
            handle(source, *m);
            transport::require_reserve();
        }
        s.channel.advance();
        end_doubts();
        take_reported_ends();
        if (what == polls::all) watch_peers();
    });
}

}  // namespace

void first_start(request &r) {
    {
        const std::lock_guard lock(setup_mutex());
        const match_key key = r.key();
        if (r.kind == MPIX_KIND_SEND)
            send_control(r.peer_world(), {.from = r.number, .body = started_body{}});
        else
            rearrange(key, setup().order.start(key, matcher::receive, r.number));
    }
    // What has come is taken now, so that fewer partitions are ready before their pair is. (Where there are GPUs it is
    // left to the progress engine: mapping a peer's memory may wait for kernels.)
    if (transport::devices() == nullptr) poll_for(polls::news);
}

void leave(const std::shared_ptr<request> &r) {
    if (r->null_peer()) return;
    {
        const std::lock_guard lock(setup_mutex());
        r->on_leave();
        part_from_peer(*r);
    }
    close_unused_mappings();
}

void first_epoch_over(request &r) {
    const std::lock_guard lock(setup_mutex());
    r.acquainted = !r.refused();
    update_waiting(r);
}

void poll_setup() { poll_for(polls::all); }

}  // namespace mpix
