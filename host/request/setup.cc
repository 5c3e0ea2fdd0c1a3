// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/setup.h"

#include <mpix/device.cuh>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <set>

#include "host/config.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/request/explain.h"
#include "host/request/exported.h"
#include "host/request/processes.h"
#include "host/request/receive.h"
#include "host/request/send.h"

namespace mpix {
namespace {

// How long a request must have been in the same epoch for its peer's process to be looked at, and how often.
constexpr std::int64_t watch_period_ms = 400;

// How long a pair of two started requests waits for what becomes of one made before, whose partner was freed unstarted.
constexpr std::int64_t doubt_ms = 1000;

// All guarded by setup_mutex, but for the atomics.
struct setup_state {
    MPI_Comm channel = MPI_COMM_NULL;  // ours alone: no tag or wildcard of the user's ever sees it
    std::atomic<bool> running{false};
    bool thread_safe = false, one_thread = false;
    int me = 0;

    control_message incoming{};
    MPI_Request receiving = MPI_REQUEST_NULL;
    struct outgoing {
        control_message message;
        MPI_Request request;
    };
    std::list<outgoing> sending;

    matcher order;
    std::map<match_key, std::int64_t> in_doubt_since;
    std::map<std::uint64_t, std::shared_ptr<request>> live;           // by number; freed ones until buried
    std::map<std::uint64_t, offer> offers;                            // by order of arrival
    std::map<std::pair<int, std::uint64_t>, std::uint64_t> offer_of;  // (source, their number) to arrival
    std::map<std::uint64_t, std::uint64_t> bound_offer;               // receive's number to arrival
    std::uint64_t arrivals = 0, joined = 0;
    std::atomic<std::size_t> unsettled{0};  // requests that wait for a control message

    process_table processes;
    std::int64_t next_watch_ms = 0;

    // Of processes on other nodes.
    std::set<int> introduced_to;
    std::map<int, std::vector<std::uint8_t>> introductions;  // not whole yet
    struct held {
        std::unique_ptr<transport::transfer> flush;  // which the first message waits for
        std::deque<control_message> messages;
    };
    std::map<int, held> held;
};

setup_state &state() {
    static setup_state *const s = new setup_state;
    return *s;
}

// Forget what has been sent, up to the first that has not, which goes behind the others: asking in vain is what takes time.
void clear_sent() {
    auto &sending = state().sending;
    while (!sending.empty()) {
        int sent = 0;
        PMPI_Test(&sending.front().request, &sent, MPI_STATUS_IGNORE);
        if (!sent) {
            sending.splice(sending.end(), sending, sending.begin());
            return;
        }
        sending.pop_front();
    }
}

void post(int world_rank, const control_message &message) {
    setup_state &s = state();
    s.sending.push_back({message, MPI_REQUEST_NULL});
    auto &out = s.sending.back();
    PMPI_Isend(&out.message, static_cast<int>(sizeof out.message), MPI_BYTE, world_rank, 0, s.channel, &out.request);
}

// Whether it says that we touch that process's memory no more, and something of ours is still on its way there.
bool overtakes(int world_rank, const control_message &message, std::unique_ptr<transport::transfer> &flush) {
    const auto kind = static_cast<control>(message.kind);
    transport::network *const network = transport::network_in_use();
    if (network == nullptr || (kind != control::detach && kind != control::withdraw)) return false;
    flush = network->flush(world_rank);
    return flush != nullptr;
}

void release_held() {
    setup_state &s = state();
    for (auto it = s.held.begin(); it != s.held.end();) {
        auto &[flush, messages] = it->second;
        transport::outcome lost;  // then nothing is on its way any more
        if (!flush->finished(lost)) {
            ++it;
            continue;
        }
        flush = nullptr;
        if (s.processes.known_to_have_ended(it->first)) messages.clear();
        while (!messages.empty() && !overtakes(it->first, messages.front(), flush)) {
            post(it->first, messages.front());
            messages.pop_front();
        }
        if (!messages.empty()) {
            ++it;
            continue;
        }
        it = s.held.erase(it);
        s.unsettled.fetch_sub(1, std::memory_order_acq_rel);
    }
}

void post_receive() {
    setup_state &s = state();
    PMPI_Irecv(&s.incoming, static_cast<int>(sizeof s.incoming), MPI_BYTE, MPI_ANY_SOURCE, 0, s.channel, &s.receiving);
}

// Keep count of the requests that may need a control message to get on; the progress thread sleeps while there
// are none. Until an epoch is over the peer may still withdraw, and another take its place; of a refused pair that does
// not say that the peer has started. Freed ones are in no hurry.
void settle(request &r) {
    const bool waits =
        !r.freed && !(r.connected && r.acquainted) && !state().processes.known_to_have_ended(r.peer_world());
    if (r.waiting == waits) return;
    r.waiting = waits;
    if (waits)
        state().unsettled.fetch_add(1, std::memory_order_acq_rel);
    else
        state().unsettled.fetch_sub(1, std::memory_order_acq_rel);
}

// A clock of a few milliseconds' grain, which costs next to nothing to read.
std::int64_t coarse_ms() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

receive_request &receive_of(std::uint64_t number) { return static_cast<receive_request &>(*state().live.at(number)); }

// The receive leaves its send, which may meet another.
void part(std::uint64_t number) {
    setup_state &s = state();
    const auto bound = s.bound_offer.find(number);
    offer &o = s.offers.at(bound->second);
    receive_of(number).part();
    control_message m = make_control(control::withdraw, number, o.number);
    m.flags = 1;
    send_control(o.key.source, m);
    o.receiver = 0;
    s.bound_offer.erase(bound);
}

void bind(std::uint64_t arrival, std::uint64_t number) {
    setup_state &s = state();
    offer &o = s.offers.at(arrival);
    s.bound_offer[number] = arrival;
    o.receiver = number;
    receive_of(number).bind(o);
}

// Make the pairs what the lines say: first those part that are none any more, then the new ones meet.
void rearrange(const match_key &key, const matcher::change &change) {
    setup_state &s = state();
    const auto each_place = [&change](const auto &act) {
        for (const matcher::pair &p : change.final) act(p);
        for (const matcher::pair &p : change.places) act(p);
    };
    each_place([&](const matcher::pair &p) {
        const auto bound = s.bound_offer.find(p.receive);
        if (bound != s.bound_offer.end() && bound->second != p.send) part(p.receive);
        if (p.send == 0) return;
        const std::uint64_t other = s.offers.at(p.send).receiver;
        if (other != 0 && other != p.receive) part(other);
    });
    each_place([&](const matcher::pair &p) {
        if (p.send != 0 && p.receive != 0 && s.offers.at(p.send).receiver == 0) bind(p.send, p.receive);
    });
    for (const matcher::pair &p : change.final) receive_of(p.receive).meet_for_good();
    // Its partner is this one already, before it is known to have started.
    if (const auto [send, receive] = s.order.first(key); send != 0 && receive != 0) receive_of(receive).open();
    each_place([](const matcher::pair &p) {
        if (p.receive != 0) settle(receive_of(p.receive));
    });
    if (s.order.in_doubt(key))
        s.in_doubt_since.try_emplace(key, coarse_ms());
    else
        s.in_doubt_since.erase(key);
}

void end_doubts() {
    setup_state &s = state();
    if (s.in_doubt_since.empty()) return;
    const std::int64_t now = coarse_ms();
    std::vector<match_key> over;
    for (const auto &[key, since] : s.in_doubt_since)
        if (now - since >= doubt_ms) over.push_back(key);
    for (const match_key &key : over) {
        s.in_doubt_since.erase(key);
        rearrange(key, s.order.end_doubt(key));
    }
}

void forget_offer(std::uint64_t arrival) {
    setup_state &s = state();
    const auto it = s.offers.find(arrival);
    if (it == s.offers.end()) return;
    s.offer_of.erase({it->second.key.source, it->second.number});
    s.offers.erase(it);
}

void handle_offer(int source, const control_message &m) {
    setup_state &s = state();
    const std::uint64_t arrival = ++s.arrivals;
    if (!s.offer_of.emplace(std::pair{source, m.from}, arrival).second) return;  // told twice: foreign
    const match_key key{m.communicator, source, m.tag};
    s.offers[arrival] = {key, m.from, m.partitions, m.bytes, (m.flags & offer_has_devices) != 0, m.words, m.reason};
    rearrange(key, s.order.add(key, matcher::send, arrival));
}

void handle_started_send(int source, const control_message &m) {
    setup_state &s = state();
    const auto known = s.offer_of.find({source, m.from});
    if (known == s.offer_of.end()) return;
    const match_key key = s.offers.at(known->second).key;
    rearrange(key, s.order.start(key, matcher::send, known->second));
}

void bury(std::uint64_t number) {
    setup_state &s = state();
    // Its memory stays ours alone until the end, for nobody else's bytes to be hit.
    if (const auto it = s.live.find(number);
        it != s.live.end() && s.processes.may_still_write(it->second->peer_world()))
        return;
    const auto offer_it = s.bound_offer.find(number);
    if (offer_it != s.bound_offer.end()) {
        forget_offer(offer_it->second);
        s.bound_offer.erase(offer_it);
    }
    s.live.erase(number);
}

// The sender freed its request before starting it, or has failed for good.
void handle_withdrawn_send(int source, const control_message &m) {
    setup_state &s = state();
    const auto known = s.offer_of.find({source, m.from});
    if (known == s.offer_of.end()) return;
    const std::uint64_t arrival = known->second;
    const match_key key = s.offers.at(arrival).key;
    const std::uint64_t receiver = s.offers.at(arrival).receiver;
    s.bound_offer.erase(receiver);
    forget_offer(arrival);
    send_control(source, make_control(control::detach, 0, m.from));
    if (const auto partner = s.live.find(receiver); partner != s.live.end()) {
        auto &r = static_cast<receive_request &>(*partner->second);
        if (r.freed) {
            bury(receiver);
        } else {
            if (!r.unbind()) {
                r.peer_gone = true;
                rearrange(key, s.order.remove(key, {arrival, receiver}));
            }
            settle(r);
        }
    }
    rearrange(key, s.order.free(key, matcher::send, arrival));
}

// Where a message to a request of ours goes. The peer must be the one that the request names.
request *addressee(int source, const control_message &m) {
    const auto it = state().live.find(m.to);
    if (it == state().live.end()) return nullptr;
    request &r = *it->second;
    return !r.null_peer() && r.peer_world() == source ? &r : nullptr;
}

void handle_introduction(int source, const control_message &m) {
    setup_state &s = state();
    std::vector<std::uint8_t> &address = s.introductions[source];
    if (address.size() != m.flags) {  // its pieces come in order
        s.introductions.erase(source);
        return;
    }
    const auto *const piece = reinterpret_cast<const std::uint8_t *>(&m) + offsetof(control_message, words);
    address.insert(address.end(), piece, piece + std::min<std::uint64_t>(introduction_piece, m.bytes - m.flags));
    if (address.size() != m.bytes) return;
    transport::outcome bad;
    transport::network *const network = transport::between_nodes(bad);
    if (network != nullptr && m.tag != static_cast<std::int32_t>(network->id()))
        bad = format("it does not use {}, as we do (MPIX_TRANSPORTS, or a library or device that it has not)",
                     network->name());
    else if (network != nullptr)
        bad = network->meet(source, std::move(address));
    s.introductions.erase(source);
    if (!bad.empty()) say(format("world rank {} cannot be reached: {}", source, bad));
}

void handle(int source, const control_message &m) {
    if (state().processes.known_to_have_ended(source)) return;  // its requests have failed, for good
    const auto kind = static_cast<control>(m.kind);
    if (kind == control::introduce) return handle_introduction(source, m);
    if (kind == control::offer) return handle_offer(source, m);
    if (kind == control::started) return handle_started_send(source, m);
    if (kind == control::withdraw && m.flags == 0) return handle_withdrawn_send(source, m);
    request *r = addressee(source, m);
    if (r == nullptr) {
        // A receive that is withdrawn from a send we have freed: it still waits for our word.
        if (kind == control::withdraw) send_control(source, make_control(control::detach, m.to, m.from));
        return;
    }
    const std::uint64_t number = r->number;
    r->peer_message(m);
    settle(*r);
    if (r->freed && r->peer_gone && !r->parting()) bury(number);
}

// The user frees it: tell whoever knows of it.
void part_from_peer(request &r) {
    setup_state &s = state();
    r.freed = true;
    const bool is_send = r.kind == MPIX_KIND_SEND;
    const match_key key = r.key();
    const auto met = s.bound_offer.find(r.number);  // before it is forgotten below
    const std::uint64_t send = met == s.bound_offer.end() ? 0 : met->second;
    if (s.processes.known_to_have_ended(r.peer_world())) {  // nobody is left to touch its memory
        bury(r.number);
    } else if (!is_send && r.peer_number == 0) {
        r.peer_gone = true;  // nobody knows of it, or only who has yet to answer that it is parted from
        if (!r.parting()) s.live.erase(r.number);
    } else if (r.epoch() == 0) {
        // As if they had never met.
        control_message m = make_control(control::withdraw, r.number, r.peer_number);
        m.flags = is_send ? 0 : 1;
        send_control(r.peer_world(), m);
        if (const auto bound = s.bound_offer.find(r.number); bound != s.bound_offer.end()) {
            s.offers.at(bound->second).receiver = 0;
            s.bound_offer.erase(bound);
        }
    } else {
        if (r.peer_number != 0) send_control(r.peer_world(), make_control(control::detach, r.number, r.peer_number));
        if (r.peer_gone && !r.parting()) bury(r.number);
    }
    settle(r);
    if (is_send) return;
    rearrange(key,
              r.epoch() == 0 ? s.order.free(key, matcher::receive, r.number) : s.order.remove(key, {send, r.number}));
}

void fail_requests_with(int world_rank) {
    std::vector<std::uint64_t> unneeded;
    for (const auto &[number, r] : state().live) {
        if (r->peer_world() != world_rank) continue;
        if (r->freed) unneeded.push_back(number);
        r->peer_ended();
        settle(*r);
    }
    if (transport::network *const network = transport::network_in_use(); network != nullptr)
        network->give_up(world_rank);
    for (const std::uint64_t number : unneeded) bury(number);
    state().order.remove_source(world_rank);
    std::erase_if(state().in_doubt_since, [world_rank](const auto &entry) { return entry.first.source == world_rank; });
}

// Requests whose epoch has been running for a while: does their peer live at all? As long as epochs come and go the
// system is not asked.
void watch_peers() {
    setup_state &s = state();
    const std::int64_t now = coarse_ms();
    if (now < s.next_watch_ms) return;
    s.next_watch_ms = now + watch_period_ms;
    std::set<int> suspects;
    for (const auto &[number, r] : s.live)
        if (r->in_same_epoch_still()) suspects.insert(r->peer_world());
    transport::network *const network = transport::network_in_use();
    for (const int world_rank : suspects) {
        const bool lost = network != nullptr && !network->lost(world_rank).empty();
        if (lost) s.processes.give_up(world_rank);
        if (lost || s.processes.ended(world_rank)) fail_requests_with(world_rank);
    }
}

// Everybody answers everybody's messages until all are here; an unfinished non-blocking barrier is the only thing
// that says so. False: a process has ended, so some never will be.
bool all_come_here() {
    setup_state &s = state();
    MPI_Request barrier;
    PMPI_Ibarrier(s.channel, &barrier);
    const auto since = wait_clock::now();
    bool reported = false;
    int suspect = -1;
    for (double next_look = 1e-3 * watch_period_ms;;) {
        progress_poll();
        int all_here = 0;
        PMPI_Test(&barrier, &all_here, MPI_STATUS_IGNORE);
        if (all_here) return true;
        const double waited = seconds_since(since);
        detail::pause_waiting(waited * 1e9 > static_cast<double>(detail::long_wait_ns));
        if (waited < next_look) continue;
        next_look = waited + 1e-3 * watch_period_ms;
        const std::lock_guard lock(setup_mutex());
        // Who has gone through the barrier may end before we have seen all of it. But then all that it sent is here,
        // so we see it before the next look.
        if (suspect >= 0) {
            say(format("MPI_Finalize does not wait for all: the process of world rank {} has ended without", suspect));
            return false;
        }
        suspect = s.processes.any_ended();
        if (!reported && config().stall_seconds > 0 && waited > config().stall_seconds) {
            say(format("STALL in MPI_Finalize: after {:.1f} s not all processes have called it; still waiting",
                       waited));
            reported = true;
        }
    }
}

}  // namespace

control_message make_control(control kind, std::uint64_t from, std::uint64_t to) {
    control_message m{};
    m.magic = control_magic;
    m.kind = static_cast<std::uint32_t>(kind);
    m.from = from;
    m.to = to;
    return m;
}

void send_control(int world_rank, control_message message) {
    setup_state &s = state();
    if (s.processes.known_to_have_ended(world_rank)) return;
    if (const auto before = s.held.find(world_rank); before != s.held.end()) {
        before->second.messages.push_back(message);
        return;
    }
    std::unique_ptr<transport::transfer> flush;
    if (!overtakes(world_rank, message, flush)) return post(world_rank, message);
    auto &held = s.held[world_rank];
    held.flush = std::move(flush);
    held.messages.push_back(message);
    s.unsettled.fetch_add(1, std::memory_order_acq_rel);
    progress_wake();
}

transport::network *network_to(int world_rank, transport::outcome &why_not) {
    return state().processes.shares_memory(world_rank) ? nullptr : transport::between_nodes(why_not);
}

transport::outcome introduce_to(int world_rank, transport::network &network) {
    if (state().introduced_to.count(world_rank) != 0) return {};
    std::vector<std::uint8_t> address;
    if (auto bad = network.introduce(world_rank, address); !bad.empty()) return bad;
    if (address.size() > introduction_limit) return "our address in the network is too long";
    state().introduced_to.insert(world_rank);
    for (std::size_t at = 0; at < address.size(); at += introduction_piece) {
        control_message m = make_control(control::introduce, 0, 0);
        m.tag = static_cast<std::int32_t>(network.id());
        m.bytes = address.size();
        m.flags = static_cast<std::uint32_t>(at);
        std::memcpy(reinterpret_cast<char *>(&m) + offsetof(control_message, words), address.data() + at,
                    std::min(introduction_piece, address.size() - at));
        send_control(world_rank, m);
    }
    return {};
}

void start_setup(bool thread_safe, bool one_thread) {
    const std::lock_guard lock(setup_mutex());
    setup_state &s = state();
    PMPI_Comm_dup(MPI_COMM_WORLD, &s.channel);
    PMPI_Comm_set_errhandler(s.channel, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(MPI_COMM_WORLD, &s.me);
    s.thread_safe = thread_safe;
    s.one_thread = one_thread;
    s.processes.exchange();
    post_receive();
    s.running.store(true, std::memory_order_release);
}

void stop_setup() {
    setup_state &s = state();
    if (!s.running.load(std::memory_order_acquire)) return;
    const bool complete = all_come_here();
    const std::lock_guard lock(setup_mutex());
    s.running.store(false, std::memory_order_release);
    s.live.clear();
    s.offers.clear();
    s.offer_of.clear();
    s.bound_offer.clear();
    s.order = {};
    s.in_doubt_since.clear();
    s.held.clear();
    s.introduced_to.clear();
    s.introductions.clear();
    s.unsettled.store(0, std::memory_order_release);
    if (transport::network *const network = transport::network_in_use(); network != nullptr) network->stop();
    if (!complete) return;  // the channel and what is under way on it are left to the MPI library
    // What was sent before the barrier may still be on its way to us: take it, so that its sender finishes.
    for (bool quiet = false; !quiet;) {
        quiet = true;
        int arrived = 0;
        PMPI_Test(&s.receiving, &arrived, MPI_STATUS_IGNORE);
        if (arrived) {
            post_receive();
            quiet = false;
        }
        clear_sent();
        quiet = quiet && s.sending.empty();
    }
    PMPI_Cancel(&s.receiving);
    PMPI_Wait(&s.receiving, MPI_STATUS_IGNORE);
    PMPI_Comm_free(&s.channel);
}

bool setup_running() { return state().running.load(std::memory_order_acquire); }
bool one_thread_calls() { return state().one_thread; }

bool setup_thread_safe() { return state().thread_safe; }
bool setup_pending() { return state().unsettled.load(std::memory_order_acquire) != 0; }

void join(const std::shared_ptr<request> &r) {
    if (r->null_peer()) return explain_null(*r);
    const std::lock_guard lock(setup_mutex());
    setup_state &s = state();
    r->number = ++s.joined;
    s.live[r->number] = r;
    if (r->kind == MPIX_KIND_SEND) {
        send_control(r->peer_world(), static_cast<send_request &>(*r).make_offer());
    } else {
        const match_key key = r->key();
        if (!s.processes.known_to_have_ended(r->peer_world()))
            rearrange(key, s.order.add(key, matcher::receive, r->number));
    }
    settle(*r);
}

void first_start(request &r) {
    const std::lock_guard lock(setup_mutex());
    const match_key key = r.key();
    if (r.kind == MPIX_KIND_SEND)
        send_control(r.peer_world(), make_control(control::started, r.number, 0));
    else
        rearrange(key, state().order.start(key, matcher::receive, r.number));
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
    settle(r);
}

void poll_setup() {
    setup_state &s = state();
    std::unique_lock lock(setup_mutex(), std::try_to_lock);
    if (!lock || !s.running.load(std::memory_order_acquire)) return;
    for (;;) {
        int arrived = 0;
        MPI_Status status;
        if (PMPI_Test(&s.receiving, &arrived, &status) != MPI_SUCCESS) {
            if (s.receiving == MPI_REQUEST_NULL) post_receive();
            break;
        }
        if (!arrived) break;
        int bytes = 0;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        control_message m;
        const std::string bad = check_control(&s.incoming, static_cast<std::size_t>(bytes < 0 ? 0 : bytes), m);
        post_receive();
        if (bad.empty())
            handle(status.MPI_SOURCE, m);
        else
            say(format("ignored {} from world rank {}", bad, status.MPI_SOURCE));
    }
    clear_sent();
    release_held();
    end_doubts();
    watch_peers();
}

}  // namespace mpix
