// SPDX-License-Identifier: BSD-3-Clause
//
// A send's route: it is matched, attached, installed on a GPU, and undone.
#include "host/transfer/send.h"

#include <mpix/device.cuh>

#include <cstddef>
#include <cstring>
#include <utility>

#include "host/config.h"
#include "host/datatype/plan_wire.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/protocol/rget.h"
#include "host/protocol/slot_budget.h"
#include "host/request/explain.h"
#include "host/request/upcalls.h"
#include "host/staging/bounce_buffers.h"

namespace mpix {
namespace {

// The gate of a send whose data is discarded as soon as it is ready.
constexpr std::uint64_t gate_discard = ~std::uint64_t{0};

}  // namespace

// ---- setup: setup_mutex is held ---------------------------------------------------------------

void send_request::take_withdraw(std::uint64_t from) {
    if (from == peer_number) undo_match();
    send_control(peer_world(), {.from = number, .to = from, .body = detach_body{}});
}

void send_request::take_detach(std::uint64_t from) {
    if (from != 0 && from != peer_number) return;  // from a receive that is no longer our match
    peer_gone = true;
    // A receiver that refused us gives no more clear-to-send.
    if (refusal_ != refused_not) detail::store_release(&words->gate, gate_discard);  // pairs: C2
}

void send_request::take_accept(std::uint64_t from, const accept_body &m) {
    if (freed || peer_number != 0) return;
    const std::lock_guard lock(engine);
    peer_number = from;
    connect_body answer;
    const auto reply = [&] { send_control(peer_world(), {.from = number, .to = peer_number, .body = answer}); };
    if (connected) {  // there is no path to that process, and the receiver knows
        answer.refusal = refused_unreachable;
        return reply();
    }
    refusal_ = m.refusal;
    if (m.refusal == refused_not) {
        transport::choice choice;
        transport::outcome bad = attempt([&] {
            choice = choose_path(m);
            const auto since = wait_clock::now();
            transport::outcome failed = attach(m, choice);
            explain_time(*this, "map the receiver's memory (the first request to a process also times the link)",
                         since);
            if (failed.empty() && device != nullptr && !route_spent_) failed = install_on_device();
            if (failed.empty() && exported_to_host) export_to_host(true);
            return failed;
        });
        if (!bad.empty()) {
            drop_route(false);
            refusal_ = refused_path;
            answer.refusal = refused_path;
            answer.reason = reason_for_peer(bad);
        }
        explain_send(*this, choice, movement_, slots_, bad);
        failure_ = std::move(bad);
    } else {
        if (m.refusal != refused_size)
            failure_ =
                attempt([&m] { return transport::outcome(m.reason.c_str()); });  // the error is the receiver's alone
        explain_refusal(*this, m.reason.c_str());
    }
    if (refusal_ != refused_not) path_ = "none";
    if (refusal_ == refused_unreachable) detail::store_release(&words->gate, gate_discard);  // pairs: C2
    connected = true;
    reply();
    progress_wake();
}

// The receiver has chosen the transport. It follows the same rules as this side, except that it does not know where the
// send buffer is.
transport::choice send_request::choose_path(const accept_body &m) const {
    transport::ends pair;
    pair.by_network = transport::by_network(m.landing.transport);
    pair.receiver_on_gpu = m.landing.device != transport::on_host;
    pair.sender_on_gpu = place.owner != nullptr;
    pair.sender_has_devices = transport::devices() != nullptr;
    return transport::choose(pair);
}

transport::outcome send_request::attach(const accept_body &m, const transport::choice &choice) {
    if (m.arrival.transport != m.landing.transport)
        return "the receiver's landing and its flags are of different transports";
    if (choice.taken() == nullptr) return choice.why_not;
    if (choice.taken()->id != m.landing.transport) return "the receiver's landing has an impossible transport";
    slots_ = m.slots;
    if (slots_ == 2 && !transport::by_network(m.landing.transport))
        slots_ = slots_within(m.landing.bytes, total_bytes());
    chunks_ =
        chunks_of(static_cast<std::uint64_t>(op.partitions), partition_bytes, m.flags.has(accept_flag::in_chunks));
    inline_buffer_ = {};
    if (m.flags.has(accept_flag::inline_buffer))
        inline_buffer_ = inline_buffer_for(static_cast<std::uint64_t>(op.partitions), partition_bytes, partition_bytes);
    pulls_ = m.flags.has(accept_flag::pull);
    if (pulls_ && (!why_not_pulled_.empty() || transport::by_network(m.landing.transport) ||
                   m.landing.device == transport::on_host || m.landing_supplement.bytes != 0))
        return "the receiver wants to read the send buffer, which was not offered";
    const std::uint64_t flags_bytes = inline_buffer_ ? inline_buffer_.all
                                      : pulls_       ? bytes_with_rts(static_cast<std::uint64_t>(op.partitions))
                                                     : (chunks_.all() + 1) * sizeof(std::uint64_t);
    std::uint64_t landing_bytes = slots_ * total_bytes();
    memory_span span{0, 0};
    const bool remote = transport::by_network(m.landing.transport), to_gpu = m.landing.device != transport::on_host;
    if (remote && to_gpu && (!offered_gpu_put_ || slots_ != 1 || chunks_.per_partition != 1))
        return "the receiver asks for puts into its GPU memory, which were not offered";
    if (m.landing_supplement.bytes != 0 && to_gpu && !remote) {
        if (auto bad = read_layout(m.landing_supplement); !bad.empty()) return bad;
        if (total_bytes() == 0 || total_bytes() % static_cast<std::uint64_t>(landing_type_->size) != 0 || slots_ != 1)
            return "the receiver's datatype does not fit the message";
        span = span_of(*landing_type_, static_cast<std::int64_t>(total_bytes()) / landing_type_->size);
        landing_bytes = static_cast<std::uint64_t>(span.high - span.low);
    }
    if (m.landing.bytes < landing_bytes || m.arrival.bytes < flags_bytes || m.words.bytes < sizeof(mpix_words) ||
        m.words.transport != (remote ? m.landing.transport : transport::id_shm) ||
        (chunks_.per_partition > 1 && !remote))
        return "the receiver's landing is too small";
    if (remote && place.owner != nullptr && !why_staged_.empty())
        if (auto bad = bounce_buffers_of(place.device).allocate(transport::node_memory(), *place.owner, place.device);
            !bad.empty())
            return bad;
    // The device that will do the stores or the copies: the buffer's; for a host buffer any will do.
    const int user = place.owner != nullptr ? place.device : 0;
    if (auto bad = attach_landing(m, user); !bad.empty()) return bad;
    if (auto bad = attach_peers(m.arrival, user, arrival_); !bad.empty()) return bad;
    if (auto bad = attach_peers(m.words, user, peer_words_); !bad.empty()) return bad;
    landing_at_ = static_cast<char *>(landing_.address) - span.low;
    path_ = choice.taken()->name;
    const std::string two_copies =
        why_no_single_copy_.empty() ? "the receive buffer has gaps, or others cannot write there" : why_no_single_copy_;
    const std::string not_pulled = !why_not_pulled_.empty() ? why_not_pulled_
                                   : pulls_                 ? ""
                                                            : "the receiver does not read it, and says why";
    movement_ = choose_movement({.from_gpu = place.owner != nullptr,
                                 .gaps = !gapless,
                                 .to_gpu = landing_.device != transport::on_host,
                                 .landing_gaps = landing_type_ != nullptr,
                                 .remote = landing_.remote,
                                 .spent = route_spent_,
                                 .in_chunks = chunks_.per_partition > 1,
                                 .bytes = total_bytes(),
                                 .partition_bytes = partition_bytes,
                                 .in_place = in_place_,
                                 .two_copies = two_copies,
                                 .staged = why_staged_,
                                 .inline_buffer = inline_buffer_ && inline_capable(),
                                 .not_pulled = not_pulled,
                                 .pull_bytes = least_pulled_});
    if (movement_.by_kernels && total_bytes() != 0) {
        const bool gaps = !gapless || landing_type_ != nullptr;
        movement_.to_engine = choose_copy_engine_threshold(arrival_, place.device, peer_world(),
                                                           static_cast<std::uint64_t>(op.partitions), gaps);
        movement_.sent_inline = gaps ? choose_inline_threshold(place.device, peer_world(), true) : inline_threshold_;
        measure_inline(arrival_, place.device, peer_world());
    }
    // Callers that remember an earlier landing, which may have had fewer slots, are given no other: see
    // protocol/select.h.
    if (!route_spent_) detail::store_relaxed(&home->slots, slots_);
    if (landing_.remote) return {};  // nobody can store there: all is left to the engine
    detail::store_pointer(&home->peer_complete, &static_cast<mpix_words *>(peer_words_.address)->complete);
    if (arrival_.device == transport::on_host)
        detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(arrival_.address));
    if (!route_spent_)
        detail::store_pointer(&home->far, in_place_ ? static_cast<const mpix_far_memory *>(far_) : nullptr);
    // The host stores by itself from host memory to host memory, and leaves everything else to the engine; then the
    // landing is null. Written last: home's fields are read without locks once the gate is open, which the receiver
    // does after our CONNECT.
    if (movement_.by_caller) detail::store_pointer(&home->landing, static_cast<char *>(landing_.address));
    return {};
}

// A region that is mapped here, or that a network puts to; or the receive buffer, if we have offered to write there.
transport::outcome send_request::attach_landing(const accept_body &m, int user) {
    if (transport::by_network(m.landing.transport) && m.landing.device != transport::on_host)
        return wire_->id() == m.landing.transport
                   ? gpu_wire_->attach(m.landing, m.landing_supplement, peer_world(), landing_)
                   : "the peer is reached by a network that is not in use here";
    in_place_ = m.flags.has(accept_flag::in_place);
    if (!in_place_) return attach_peers(m.landing, user, landing_);
    if (!why_no_single_copy_.empty() || far_ == nullptr || slots_ != 1)
        return "the receiver asks for a single copy, which was not offered";
    return transport::attach_buffer(m.landing, landing_);
}

transport::outcome send_request::read_layout(const transport::wire_region &from) {
    if (from.transport != transport::id_shm) return "the receiver's datatype is where we cannot read it";
    transport::region bytes;
    if (auto bad = transport::node_memory().attach(from, transport::on_host, bytes); !bad.empty()) return bad;
    // A copy, so that nobody can change it while it is checked.
    const std::vector<char> copy(static_cast<const char *>(bytes.address),
                                 static_cast<const char *>(bytes.address) + bytes.bytes);
    transport::node_memory().detach(bytes);
    transport::outcome bad;
    landing_type_ = plan_from_bytes(copy.data(), copy.size(), bad);
    return bad;
}

transport::outcome send_request::install_on_device() {
    device_route route;
    route.slots = slots_;
    route.peer_partitions = static_cast<std::uint64_t>(op.partitions);
    if (landing_.device != transport::on_host && arrival_.device != transport::on_host) {
        void *view = nullptr;
        if (auto bad = device->gpus().acquire_view(peer_words_, device->device(), view); !bad.empty()) return bad;
        peer_view_ = peer_words_;
        route.peer_complete = &static_cast<mpix_words *>(view)->complete;
        route.flags = static_cast<std::uint64_t *>(arrival_.address);
        route.landing = landing_at_;
        route.copy_engine_bytes = static_cast<std::uint32_t>(movement_.to_engine.bytes);
        route.pull_bytes = static_cast<std::uint32_t>(movement_.pull_bytes);
        route.left_bytes =
            route.pull_bytes == 0 || (route.copy_engine_bytes != 0 && route.copy_engine_bytes < route.pull_bytes)
                ? route.copy_engine_bytes
                : route.pull_bytes;
        if (route.pull_bytes != 0) route.wanted = static_cast<std::uint64_t *>(wanted_.address);
        if (movement_.by_inline) route.inline_buffer = static_cast<char *>(arrival_.address) + inline_buffer_.packets;
        if (!gapless || landing_type_ != nullptr) {
            if (auto bad = device->place_layouts(gapless ? nullptr : op.type, landing_type_, &route.layouts);
                !bad.empty())
                return bad;
            route.flags = reinterpret_cast<std::uint64_t *>(reinterpret_cast<std::uintptr_t>(route.flags) |
                                                            MPIX_FLAGS_WITH_LAYOUTS);
        }
    }
    if (landing_.remote) {
        try_step([this] { install_queue(device->device()); });
        if (posted_ != nullptr) {
            route.postings = posted_->postings();
            if (!gapless)
                if (auto bad = device->place_layouts(op.type, nullptr, &route.layouts); !bad.empty()) return bad;
        }
    }
    return device->install(route);
}

// Executors post to the peer themselves: kernels of a GPU or (on_host) host threads. If that is impossible, for lack of
// memory or because the queue has failed, the engine moves everything.
void send_request::install_queue(int executor) {
    posted_ = nullptr;
    if (!config().work_queue || !movement_.not_posted.empty()) return;
    const bool staged = executor != transport::on_host || !gapless;
    std::unique_ptr<transport::queued_message> made;
    transport::chosen_queue chosen;
    transport::outcome bad = transport::queue_to(peer_world(), executor, chosen);
    queue_ = chosen.queue;
    if (bad.empty()) bad = queue_->failed(~std::uint64_t{0});
    transport::queue_message m;
    if (bad.empty() && staged) bad = make_staging(executor, m);
    if (bad.empty()) {
        m.partitions = static_cast<std::uint32_t>(op.partitions);
        m.partition_bytes = partition_bytes;
        m.gaps = !gapless;
        if (!staged) m.payload = op.buffer;
        m.landing = landing_;
        m.flags = arrival_;
        m.words = peer_words_;
        m.complete = offsetof(mpix_words, complete);
        m.slots = slots_;
        bad = queue_->enter(m, made);
    }
    if (!bad.empty()) {
        if (config().explain) say(format("no work queue to rank {}: {}", op.peer, bad));
        return;
    }
    explain_queue(*this, chosen.executed_by);
    postings_.push_back(std::move(made));
    posted_ = postings_.back().get();
}

// Room for one message is enough: an epoch's bytes have left before those of the next come.
transport::outcome send_request::make_staging(int executor, transport::queue_message &m) {
    if (!staging_)
        if (auto bad = transport::node_memory().allocate(total_bytes(), transport::on_host, staging_); !bad.empty())
            return bad;
    m.payload = m.staging = static_cast<char *>(staging_.address);
    if (executor == transport::on_host) return {};
    if (staging_view_ == nullptr) {
        void *view = nullptr;
        if (auto bad = place.owner->acquire_view(staging_, executor, view); !bad.empty()) return bad;
        staging_view_ = static_cast<char *>(view);
    }
    m.staging = staging_view_;
    return {};
}

// Host threads play kernels from now on (true), or no longer do (false).
void send_request::export_to_host(bool exported) {
    if (!exported) {
        detail::store_pointer(&home->postings, static_cast<const mpix_posting *>(nullptr));
        posted_ = nullptr;
        postings_.clear();
        return;
    }
    if (!connected || refusal_ != refused_not || !landing_.remote) return;
    try_step([this] { install_queue(transport::on_host); });
    if (posted_ != nullptr) detail::store_pointer(&home->postings, posted_->postings());
}

// The receiver freed its request before starting it, or matched it with another send. No byte has moved, since the gate
// was never open. After a process that cannot reach us no later match would be better.
void send_request::undo_match() {
    const std::lock_guard lock(engine);
    peer_number = 0;
    peer_gone = false;
    if (refusal_ == refused_unreachable && epoch_ != 0) return;
    if (epoch_ != 0) route_spent_ = true;
    if (detail::load_relaxed(&words->gate) != 0 && active()) {
        fail("the peer has taken its memory back in the middle of an epoch");
        moving_.clear();  // these moves would put there
    }
    // Before the CONNECT to the next receiver, and so before its clear-to-send.
    if (device != nullptr)
        if (auto bad = device->install({}); !bad.empty()) fail(bad);
    drop_route(epoch_ != 0);
    refusal_ = refused_not;
    failure_.clear();
    path_ = "unmatched";
    detail::store_release(&words->gate, 0);  // pairs: C2
    connected = false;
}

void send_request::drop_route(bool in_use) {
    detail::store_pointer(&home->landing, static_cast<char *>(nullptr));
    detail::store_pointer(&home->postings, static_cast<const mpix_posting *>(nullptr));
    posted_ = nullptr;
    detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(nullptr));
    detail::store_pointer(&home->peer_complete, static_cast<std::uint64_t *>(nullptr));
    detail::store_relaxed(&home->slots, 0);
    detach_regions(in_use);
}

// Regions that callers of Pready may be storing to are only put aside. Only a faulty peer withdraws then, but that must
// not crash this process. (Mappings of GPU memory stay anyway, as long as kernels may store to them.)
void send_request::detach_regions(bool in_use) {
    if (peer_view_) device->gpus().release_view(peer_view_);  // a lasting mapping: does not wait
    peer_view_ = {};
    const auto drop = [this, in_use](transport::region &r) {
        if (r && in_use && (r.remote || r.device == transport::on_host))
            retired_.push_back(std::exchange(r, {}));
        else
            detach_peers(r);
    };
    landing_type_ = nullptr;
    landing_at_ = nullptr;
    if (std::exchange(in_place_, false)) landing_ = {};
    pulls_ = false;
    drop(landing_);
    drop(arrival_);
    drop(peer_words_);
}

void send_request::on_leave() {
    const std::lock_guard lock(engine);
    detach_regions(false);
}

// Nothing moves any more, but the user's calls of Pready still count.
void send_request::peer_ended() {
    const std::lock_guard lock(engine);
    if (!active() || complete()) return;
    peer_ended_ = true;
    refusal_ = refused_path;
    detail::store_release(&words->gate, gate_discard);  // pairs: C2
    progress_wake();
}

// ---- export: setup_mutex and engine are held -------------------------------------------------

problem send_request::export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors) {
    host_readied_.reserve(static_cast<std::size_t>(op.partitions));  // so that Start needs no memory
    if (problem bad = made->make(source(), epoch_, contributors); bad) return bad;
    device = std::move(made);
    if (connected && refusal_ == refused_not)
        if (auto bad = install_on_device(); !bad.empty()) {
            made = end_export();
            return {MPI_ERR_OTHER, bad};
        }
    return {};
}

std::unique_ptr<device_copy> send_request::end_export() {
    if (peer_view_) device->gpus().release_view(peer_view_);
    peer_view_ = {};
    posted_ = nullptr;
    postings_.clear();
    std::unique_ptr<device_copy> ended = std::move(device);
    // The host's instance continues where the copy was.
    std::uint64_t *state = detail::partition_states(home);
    for (int p = 0; p < op.partitions; ++p) state[p] = epoch_;
    home->ready_count = epoch_ * static_cast<std::uint64_t>(op.partitions);
    home->defer_count = ring_taken_;
    return ended;
}

}  // namespace mpix
