// SPDX-License-Identifier: BSD-3-Clause
//
// A receive's route: it is matched, its landing made, installed on a GPU, and undone.
#include "host/transfer/receive.h"

#include <mpix/device.cuh>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "host/config.h"
#include "host/datatype/host_copy.h"
#include "host/datatype/plan_wire.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/protocol/inline_threshold.h"
#include "host/protocol/rget.h"
#include "host/protocol/select.h"
#include "host/request/explain.h"
#include "host/request/upcalls.h"

namespace mpix {
namespace {

void release(transport::region &r) {
    if (!r) return;
    if (r.device == transport::on_host)
        give_back(r);
    else
        transport::devices()->release(r);
    r = {};
}

// How the network in use reaches GPU memory; null: it does not.
transport::gpu_puts *gpu_wire() {
    transport::outcome none;
    transport::network *const wire = transport::network_in_use();
    return wire == nullptr ? nullptr : wire->gpu_memory(none);
}

// Releases a landing that a GPU has had a view of. Closing it may wait for kernels, so that is left to close_view. Or
// GPU memory that a network was given (by_puts).
void release(transport::region &landing, std::unique_ptr<staged_delivery> &delivery, bool by_puts) {
    const bool viewed = delivery != nullptr, ended = !viewed || delivery->end();
    delivery = nullptr;
    if (!ended) {
        // Copies still write to it, or read it, so it stays.
    } else if (by_puts) {
        if (transport::gpu_puts *const gpus = gpu_wire(); gpus != nullptr) gpus->forget(landing);
    } else if (!viewed) {
        release(landing);
    } else if (landing) {
        close_view(landing);
    }
    landing = {};
}

}  // namespace

receive_request::~receive_request() {
    // This comes first: a kernel may be working with the rest, and keeps it if it does not end.
    if (inline_drain_ != nullptr && !inline_drain_->end()) {
        arrival_ = words_region = {};
        for (auto &taker : takers_) taker.release();
        device.release();
    }
    drop_landing();
    for (undone_match &old : undone_) {
        release(old.arrival);
        const bool by_puts = old.delivery != nullptr && old.landing.device != transport::on_host;
        release(old.landing, old.delivery, by_puts);
        release(old.layout);
    }
}

// ---- setup: setup_mutex is held ---------------------------------------------------------------

void receive_request::bind(const offer &sender) {
    const std::lock_guard lock(engine);
    peer_number = sender.number;
    accept_body answer{.partitions = op.partitions, .bytes = total_bytes()};
    const auto reply = [&] { send_control(peer_world(), {.from = number, .to = peer_number, .body = answer}); };
    if (told_) {  // that there is no path to that process
        answer.refusal = refused_unreachable;
        answer.reason = reason_for_peer(failure_);
        return reply();
    }
    if (sender.bytes != total_bytes()) {
        refusal_ = refused_size;
        failure_ = attempt([&] {
            return format("the matching send of rank {} (world rank {}), tag {}, has {} bytes, the receive {}", op.peer,
                          peer_world(), op.tag, sender.bytes, total_bytes());
        });
    } else {
        failure_ = attempt([&] {
            const auto since = wait_clock::now();
            transport::outcome bad = make_landing(sender);
            if (bad.empty()) bad = describe_landing(answer);
            explain_time(*this, "make and describe what the sender maps", since);
            return bad;
        });
        if (failure_.empty()) {
            path_ = choice_->taken()->name;
            if (wire_ != nullptr && active()) progress_attend(shared_from_this());
        } else {
            refusal_ = refused_path;
            drop_landing();
        }
    }
    if (refusal_ != refused_not) {
        path_ = "none";
        awaits_sender_ = attempt([&] { return attach_words(sender); }).empty();  // needed for our clear-to-send
        answer.refusal = awaits_sender_ ? refusal_ : refused_unreachable;
        answer.reason = reason_for_peer(failure_);
        if (!awaits_sender_) give_up();
        explain_receive(*this, std::exchange(choice_, nullptr), kind_of_landing(), failure_.c_str());
    } else {
        open_gate();
    }
    reply();
}

transport::outcome receive_request::attach_words(const offer &sender) {
    if (sender.words.bytes < sizeof(mpix_words)) return "the sender's control block is too small";
    if (transport::by_network(sender.words.transport)) {
        transport::outcome bad;
        wire_ = transport::between_nodes(bad);
        if (wire_ != nullptr) bad = introduce_to(peer_world(), *wire_);
        if (!bad.empty()) return bad;
    } else if (!transport::may_share_memory()) {
        return sender.no_network.empty() ? "MPIX_TRANSPORTS leaves shm out" : sender.no_network.c_str();
    } else if (sender.words.transport != transport::id_shm) {
        return "unsupported transport for the sender's control block";
    }
    auto bad = attach_peers(sender.words, transport::on_host, peer_words_);
    if (!bad.empty() && !sender.no_network.empty()) bad = format("{}; {}", bad, sender.no_network.c_str());
    return bad;
}

transport::outcome receive_request::make_landing(const offer &sender) {
    transport::ends pair;
    pair.unreached = attach_words(sender);
    pair.by_network = wire_ != nullptr;
    pair.receiver_on_gpu = place.owner != nullptr;
    pair.sender_has_devices = sender.has_devices;
    choice_ = std::make_unique<transport::choice>(transport::choose(pair));
    if (choice_->taken() == nullptr) return choice_->why_not;
    landing_owner_ = &choice_->landing();

    peer_partitions_ = static_cast<std::uint64_t>(sender.partitions);
    if (wire_ != nullptr) why_staged_ = adopt_by_network(sender);
    const bool by_puts = kind_of_landing().by_puts;
    const std::uint64_t flag_bytes = (chunks().all() + 1) * sizeof(std::uint64_t);
    transport::outcome bad;
    // Reasons on the sender's side are known to the sender.
    const single_copy seen_here{false, false, total_bytes() / peer_partitions_, 1, {}, !gapless};
    in_place_ = sender.in_place && choice_->taken()->id == transport::id_shm && config().single_copy_bytes != 0 &&
                why_no_single_copy(seen_here).empty() && transport::others_may_write(op.buffer, total_bytes());
    if (in_place_) {
        slots_ = 1;
        bad = landing_owner_->allocate(flag_bytes, transport::on_host, arrival_);
    } else if ((landing_owner_->capabilities() & transport::adopt_buffer) != 0) {
        slots_ = 1;
        bad = adopt_buffer();
        inline_buffer_ = {};
        // A receive that waits for several of the sender's partitions is faster with fences: it looks at their flags
        // side by side.
        const bool few = peer_partitions_ <= static_cast<std::uint64_t>(op.partitions);
        // What the user's kernels leave there, a kernel of the library takes out. With gaps it goes by pieces, which
        // must divide the sender's partitions, too.
        const std::uint64_t each = total_bytes() / peer_partitions_;
        if (MPIX_HAVE_NVCC && few && (gapless ? sender.inline_packed : sender.inline_to_gaps) && inline_capable() &&
            (device == nullptr || device->inline_capable()) &&
            (gapless || each % static_cast<std::uint64_t>(offsets().piece()) == 0) &&
            gpu::load_on(place.device).empty())
            inline_buffer_ = inline_buffer_for(peer_partitions_, each, largest_inline(!gapless));
        why_not_pulled_ = inline_buffer_ ? "it goes inline" : attach_send_buffer(sender);
        const std::uint64_t all_bytes = inline_buffer_ ? inline_buffer_.all
                                        : peer_buffer_ ? bytes_with_rts(peer_partitions_)
                                                       : flag_bytes;
        if (bad.empty()) bad = landing_owner_->allocate(all_bytes, place.device, arrival_);
    } else {
        slots_ = by_puts ? 1 : slots_for(total_bytes(), config().eager_bytes);
        // Host memory that the sender stores to. After a match was undone there are no more than two slots: its landing
        // may be kept, and a thread that has its address may read the number of slots of this one.
        if (slots_ == 2 && wire_ == nullptr && place.owner == nullptr && undone_.empty())
            slots_ = room_.take(total_bytes(), config().landing_bytes);
        if (place.owner == nullptr) {
            // At least as many as this side has partitions: see arrived_here.
            const std::uint64_t entries = std::max(peer_partitions_, static_cast<std::uint64_t>(op.partitions));
            taken_.reset(static_cast<std::uint64_t *>(std::calloc(entries, sizeof(std::uint64_t))));
            if (taken_ == nullptr) return no_memory;
        }
        if (!by_puts) bad = landing_owner_->allocate(slots_ * total_bytes(), transport::on_host, landing_);
        if (bad.empty()) bad = landing_owner_->allocate(flag_bytes, transport::on_host, arrival_);
        if (bad.empty() && place.owner != nullptr) {
            delivery_ = std::make_unique<staged_delivery>(
                gpu_buffer{place.owner, place.device, op.buffer, gapless ? nullptr : op.type}, chunks(), slots_);
            bad = delivery_->allocate(landing_, arrival_);
        }
    }
    return bad;
}

// Before the match, only the size is known. (An export after the match is not made for the inline buffer of a later
// match: see make_landing.)
bool receive_request::inline_capable() const {
    return arrival_ ? bool(inline_buffer_) : fits_inline(largest_inline(!gapless));
}

// A partition comes as one piece into host memory, or where the network puts it into GPU memory.
chunking receive_request::chunks() const {
    const bool in_chunks = wire_ != nullptr && place.owner != nullptr && !kind_of_landing().by_puts;
    return chunks_of(peer_partitions_, total_bytes() / peer_partitions_, in_chunks);
}

landing_kind receive_request::kind_of_landing() const {
    return {in_place_, wire_ != nullptr && landing_ && landing_.device != transport::on_host, why_staged_, slots_,
            why_not_pulled_};
}

// Registers the user's own buffer in GPU memory, so that the network can put there. Returns why not, or an empty
// string.
std::string receive_request::adopt_by_network(const offer &sender) {
    transport::gpu_puts *gpus = nullptr;
    const gpu_end end = end_for(*wire_, gpus);
    if (std::string why = why_staged(end, sender.gpu_put); !why.empty() || !end.on_gpu) return why;
    if (auto bad = place.owner->admit_network(place.device); !bad.empty()) return bad;
    return gpus->adopt(op.buffer, total_bytes(), place.device, landing_);
}

transport::outcome receive_request::describe_landing(accept_body &answer) const {
    const bool by_puts = kind_of_landing().by_puts;
    answer.slots = static_cast<std::uint32_t>(std::min<std::uint64_t>(slots_, 2));
    answer.flags.set(accept_flag::in_chunks, delivery_ != nullptr && !by_puts);
    answer.flags.set(accept_flag::inline_buffer, bool(inline_buffer_));
    answer.flags.set(accept_flag::in_place, in_place_);
    answer.flags.set(accept_flag::pull, bool(peer_buffer_));
    if (wire_ != nullptr) {
        if (auto bad = by_puts ? gpu_wire()->describe(landing_, answer.landing, answer.landing_supplement)
                               : wire_->describe(landing_, answer.landing);
            !bad.empty())
            return bad;
        if (auto bad = wire_->describe(arrival_, answer.arrival); !bad.empty()) return bad;
        return wire_->describe(words_region, answer.words);
    }
    if (in_place_)
        transport::describe_buffer(op.buffer, total_bytes(), answer.landing);
    else if (auto bad = landing_owner_->describe(landing_, answer.landing); !bad.empty())
        return bad;
    transport::transport &arrivals = flags_on_device() ? *landing_owner_ : transport::node_memory();
    if (auto bad = arrivals.describe(arrival_, answer.arrival); !bad.empty()) return bad;
    if (layout_)
        if (auto bad = transport::node_memory().describe(layout_, answer.landing_supplement); !bad.empty()) return bad;
    return transport::node_memory().describe(words_region, answer.words);
}

// Stores the route first, then the word that says it is there (store_release; pairs with load_acquire_pair in
// read_host).
void receive_request::open_gate() {
    detail::store_relaxed(&home->peer_partitions, peer_partitions_);
    detail::store_relaxed(&home->slots, slots_);
    if (!flags_on_device() && delivery_ == nullptr) {
        detail::store_pointer(&home->taken, taken_.get());
        detail::store_pointer(&home->landing, static_cast<char *>(landing_.address));
        detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(arrival_.address));
    }
    if (device != nullptr)
        if (auto bad = attempt([this] { return install_on_device(); }); !bad.empty()) engine_failure_ = bad;
    detail::store_release(&words->gate, 1);  // pairs: C3
}

// Nothing will arrive any more: whoever asks for a partition must not wait for it.
void receive_request::give_up() {
    if (arrival_) {
        // Executors that have seen clear-to-send open look at the word again once the whole message seems to be there.
        const std::uint64_t whole = MPIX_GATE_NEVER;
        std::uint64_t *const flag = static_cast<std::uint64_t *>(arrival_.address) + peer_partitions_;
        if (delivery_ != nullptr) {
            if (auto bad = delivery_->tell_never(); !bad.empty()) say(bad);
        } else if (!flags_on_device())
            detail::store_relaxed(flag, whole);
        else if (auto bad = landing_owner_->write(flag, &whole, sizeof whole, place.device); !bad.empty())
            say(bad);
    }
    detail::store_release(&words->gate, MPIX_GATE_NEVER);  // pairs with load_acquire_pair in read_host; pairs: C3
}

// From here on Start gives clear-to-send itself. An epoch that is running already, or has failed already, gets it now.
// `engine` is held.
void receive_request::give_gate() {
    if (gives_gate_ || !open_ || !connected || !peer_words_) return;
    gives_gate_ = true;
    if (epoch_ != 0) tell_gate();
}

// Pairs with load_acquire_pair in read_host.
void receive_request::tell_gate() {
    // From the first epoch with our kernels on. Stored before the gate: see read_host.
    if (inline_drain_ != nullptr && device != nullptr && !takes_inline_) {
        takes_inline_ = true;
        if (auto bad = tell(peer_words_, offsetof(mpix_words, inline_buffer), 1); !bad.empty()) engine_failure_ = bad;
    }
    if (auto bad = tell(peer_words_, offsetof(mpix_words, gate), epoch_); !bad.empty()) engine_failure_ = bad;
}

void receive_request::open() {
    const std::lock_guard lock(engine);
    open_ = true;
    give_gate();
}

void receive_request::meet_for_good() {
    open();
    const std::lock_guard lock(engine);
    final_ = true;
    if (std::exchange(awaits_sender_, false)) give_up();
}

// The sender may be about to map the landing, so it stays until the sender has answered.
void receive_request::part() {
    const std::uint64_t sender = peer_number;
    if (unbind(true)) undone_.back().parted_from = sender;
}

bool receive_request::parting() const {
    return std::any_of(undone_.begin(), undone_.end(), [](const undone_match &u) { return u.parted_from != 0; });
}

transport::outcome receive_request::install_on_device() {
    device_route route;
    route.flags = delivery_ != nullptr ? delivery_->flags() : static_cast<std::uint64_t *>(arrival_.address);
    route.slots = slots_;
    route.peer_partitions = peer_partitions_;
    if (inline_buffer_) {
        if (inline_drain_ == nullptr) {
            auto made = std::make_unique<inline_drain>(device->gpus(), device->device(), peer_partitions_);
            if (auto bad = made->allocate(); !bad.empty()) return bad;
            inline_drain_ = std::move(made);
        }
        char *const arrival = static_cast<char *>(arrival_.address);
        route.taken = reinterpret_cast<std::uint64_t *>(arrival + inline_buffer_.taken);
        route.inline_buffer = arrival + inline_buffer_.packets;
        route.told = inline_drain_->told_by_kernels();
    }
    drop_view();
    if (void *view = nullptr; peer_buffer_) {
        // Without it no kernel asks for anything, so nothing is offered.
        if (auto bad = device->gpus().acquire_view(peer_words_, device->device(), view); !bad.empty()) {
            why_not_pulled_ = bad;
        } else {
            peer_view_ = peer_words_;
            route.wanted = static_cast<std::uint64_t *>(wanted_.address);
            route.peer_buffer = static_cast<const char *>(peer_buffer_.address);
            route.answers =
                reinterpret_cast<std::uint64_t *>(static_cast<char *>(view) + answers_in_words(peer_partitions_));
        }
    }
    return device->install(route);
}

bool receive_request::unbind(bool parted) {
    const std::lock_guard lock(engine);
    open_ = gives_gate_ = final_ = takes_inline_ = false;
    if (told_) return false;
    awaits_sender_ = false;
    if (device != nullptr)
        if (auto bad = device->install({}); !bad.empty()) engine_failure_ = bad;
    inline_drain_ = nullptr;
    detail::store_release(&words->gate, 0);  // pairs: C3
    detail::store_pointer(&home->flags, static_cast<std::uint64_t *>(nullptr));
    detail::store_pointer(&home->landing, static_cast<char *>(nullptr));
    undone_.push_back({std::exchange(arrival_, {}), {}, {}, {nullptr, std::free}, std::move(delivery_), 0, active()});
    if (parted || active() || undone_.back().delivery != nullptr) {
        undone_.back().landing = std::exchange(landing_, {});
        undone_.back().layout = std::exchange(layout_, {});
        undone_.back().taken = std::move(taken_);
    }
    drop_landing();
    choice_ = nullptr;
    refusal_ = refused_not;
    failure_.clear();
    path_ = "unmatched";
    connected = peer_gone = false;
    peer_number = 0;
    return true;
}

// The network no longer has access to the user's buffer in GPU memory: the user may free it from now on, and a peer
// that cannot be reached must not write there. `engine` is held.
void receive_request::take_back_buffer() {
    transport::gpu_puts *const gpus = gpu_wire();
    if (gpus == nullptr) return;
    if (kind_of_landing().by_puts) gpus->forget(landing_);
    for (undone_match &old : undone_)
        if (old.delivery != nullptr && old.landing && old.landing.device != transport::on_host)
            gpus->forget(old.landing);
}

void receive_request::on_leave() {
    const std::lock_guard lock(engine);
    take_back_buffer();
    drop_send_buffer();
}

void receive_request::drop_landing() {
    release(arrival_);
    release(landing_, delivery_, kind_of_landing().by_puts);
    release(layout_);
    drop_send_buffer();
    detach_peers(peer_words_);
    wire_ = nullptr;
}

void receive_request::take_connect(std::uint64_t from, const connect_body &m) {
    // The user may have freed a request whose pair was refused. Then we have sent DETACH, and must not touch the
    // sender's words: they may belong to another request by now. Before the sender has answered our WITHDRAW, this
    // CONNECT belongs to an earlier match.
    if (from != peer_number || connected || freed || parting()) return;
    const std::lock_guard lock(engine);
    connected = true;
    if (refusal_ == refused_not)
        explain_receive(*this, std::exchange(choice_, nullptr), kind_of_landing(),
                        m.refusal != refused_not ? m.reason.c_str() : "");
    if (m.refusal != refused_not && refusal_ == refused_not) {
        refusal_ = refused_path;
        failure_ = attempt([&m] { return transport::outcome(m.reason.c_str()); });
        path_ = "none";
        awaits_sender_ = !final_;
        if (final_) give_up();
    }
    give_gate();
}

void receive_request::take_detach(std::uint64_t from) {
    if (const auto answered = std::find_if(undone_.begin(), undone_.end(),
                                           [&](const undone_match &u) { return from != 0 && u.parted_from == from; });
        answered != undone_.end()) {
        answered->parted_from = 0;
        // If the request was active, a thread may still be looking there.
        if (!answered->was_active && answered->delivery == nullptr) release(answered->landing);
    } else if (from == 0 || from == peer_number) {
        peer_gone = true;
    }
}

void receive_request::peer_ended() {
    const std::lock_guard lock(engine);
    take_back_buffer();
    // All of the peer's writes that will arrive are here now, and a message that is whole is complete.
    const bool refused = std::exchange(awaits_sender_, false);
    by_progress_ = true;
    // What is still in the inline buffer, the host takes out at its next look.
    const bool sent_inline = takes_inline_ && detail::load_acquire(&words->complete) >= epoch_;  // pairs: D3, N1
    // pairs: D3, N1
    const bool over = !active() || sent_inline ||
                      (!refused && (delivery_ == nullptr ? look_at_flags()
                                                         : detail::load_acquire(&words->complete) >= epoch_ ||
                                                               delivery_->arrived(epoch_)));
    by_progress_ = false;
    if (over) return;
    peer_ended_ = true;
    give_up();
}

// ---- export --------------------------------------------------------------------------------------

problem receive_request::export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors) {
    if (problem bad = made->make(source(), epoch_, contributors); bad) return bad;
    device = std::move(made);
    if ((flags_on_device() || delivery_ != nullptr) && arrival_)
        if (auto bad = install_on_device(); !bad.empty()) {
            drop_view();
            made = std::move(device);
            return {MPI_ERR_OTHER, bad};
        }
    return {};
}

std::unique_ptr<device_copy> receive_request::end_export() {
    drop_view();
    // The sender's kernels continue to use the inline buffer.
    if (takes_inline_ && (takers_.empty() || inline_drain_->busy())) {
        device->end();
        takers_.push_back(std::move(device));
        return nullptr;
    }
    return std::move(device);
}

}  // namespace mpix
