// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/send.h"

#include <mpix/device.cuh>
#include <mpix/device/gpu_pack.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "host/datatype/host_copy.h"
#include "host/datatype/plan_wire.h"
#include "host/datatype/typemap.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/request/explain.h"
#include "host/request/exported.h"
#include "host/request/setup.h"

namespace mpix {
namespace {

// The gate of a send whose data is discarded as soon as it is ready.
constexpr std::uint64_t gate_discard = ~std::uint64_t{0};

// How the host moves a partition of any datatype into host memory.
template <bool Alone>
struct plan_mover {
    static constexpr bool alone = Alone, keeps_errors = false;
    const request &r;
    template <class Group>
    void operator()(const Group &, const mpix_prequest *, const detail::outgoing &, int p, char *landing) const {
        const auto bytes = static_cast<std::int64_t>(r.partition_bytes), at = p * bytes;
        if (!r.gapless)
            pack_range(*r.op.type, r.op.buffer, at, bytes, landing + at);
        else if (bytes == sizeof(double))  // a store, not a call
            std::memcpy(landing + at, r.op.buffer + at, sizeof(double));
        else if (bytes != 0)  // the buffer of an empty message may be null
            std::memcpy(landing + at, r.op.buffer + at, r.partition_bytes);
    }
};

// A partition on its way, by the copy engine or by a kernel, and what has to live until it is there.
struct packing final : transport::transfer {
    std::vector<char> packed;
    std::unique_ptr<transport::transfer> copy;
    std::unique_ptr<gpu::pending> kernel;
    bool finished(transport::outcome &problem) override {
        return copy != nullptr ? copy->finished(problem) : kernel == nullptr || kernel->finished(problem);
    }
};

}  // namespace

send_request::~send_request() {
    detach_regions(false);
    for (transport::region &r : retired_) transport::node_memory().detach(r);
}

problem send_request::prepare() {
    if (problem bad = prepare_gpu(); bad) return bad;
    const auto n = static_cast<std::uint64_t>(op.partitions);
    if (problem bad = allocate_words(n * sizeof(mpix_ring_entry)); bad) return bad;
    home->ring = reinterpret_cast<mpix_ring_entry *>(words + 1);
    return {};
}

control_message send_request::make_offer() {
    control_message m = make_control(control::offer, number, 0);
    m.communicator = op.members->name;
    m.tag = op.tag;
    m.partitions = op.partitions;
    m.bytes = total_bytes();
    if (transport::devices() != nullptr) m.flags |= offer_has_devices;
    transport::outcome bad;
    wire_ = network_to(peer_world(), bad);
    if (wire_ != nullptr) bad = introduce_to(peer_world(), *wire_);
    if (wire_ != nullptr && bad.empty()) bad = wire_->describe(words_region, m.words);
    // Without a network the receiver finds out whether it can map our words after all, and tells us if not.
    if (wire_ == nullptr || !bad.empty()) transport::node_memory().describe(words_region, m.words);
    std::strncpy(m.reason, bad.c_str(), sizeof m.reason - 1);
    return m;
}

// ---- setup: setup_mutex is held ---------------------------------------------------------------

void send_request::peer_message(const control_message &m) {
    switch (static_cast<control>(m.kind)) {
        case control::accept:
            if (!freed && peer_number == 0) accept(m);
            break;
        case control::withdraw:
            if (m.from == peer_number) undo_match();
            send_control(peer_world(), make_control(control::detach, number, m.from));
            break;
        case control::detach:
            // Not of a receive that we have met no more since.
            if (m.from != 0 && m.from != peer_number) break;
            peer_gone = true;
            // A receiver that refused us gives no more clear-to-send.
            if (refusal_ != refused_not) detail::publish(&words->gate, gate_discard);
            break;
        case control::offer:
        case control::started:
        case control::introduce:
        case control::connect:
            break;  // not for senders
    }
}

void send_request::accept(const control_message &m) {
    const std::lock_guard lock(engine);
    peer_number = m.from;
    control_message answer = make_control(control::connect, number, peer_number);
    if (connected) {  // it is known, and told, that there is no path to that process
        answer.refusal = refused_unreachable;
        send_control(peer_world(), answer);
        return;
    }
    refusal_ = m.refusal;
    if (m.refusal == refused_not) {
        const transport::choice choice = choose_path(m);
        transport::outcome bad = attach(m, choice);
        if (bad.empty() && device != nullptr && !route_spent_) bad = install_on_device();
        if (!bad.empty()) {
            drop_route(false);
            refusal_ = refused_path;
            failure_ = bad;
            answer.refusal = refused_path;
            std::strncpy(answer.reason, bad.c_str(), sizeof answer.reason - 1);
        }
        explain_send(*this, choice, movement_, slots_, bad);
    } else {
        if (m.refusal != refused_size) failure_ = m.reason;  // that is the receiver's error alone
        explain_refusal(*this, m.reason);
    }
    if (refusal_ != refused_not) path_ = "none";
    if (refusal_ == refused_unreachable) detail::publish(&words->gate, gate_discard);
    connected = true;
    send_control(peer_world(), answer);
    progress_wake();
}

// The receiver has chosen; by the same rules as here, but that it does not know where the send buffer is.
transport::choice send_request::choose_path(const control_message &m) const {
    transport::ends pair;
    pair.by_network = transport::by_network(m.landing.transport);
    pair.receiver_on_gpu = m.landing.device != transport::on_host;
    pair.sender_on_gpu = place.owner != nullptr;
    pair.sender_has_devices = transport::devices() != nullptr;
    return transport::choose(pair);
}

transport::outcome send_request::attach(const control_message &m, const transport::choice &choice) {
    if (m.arrival.transport != m.landing.transport)
        return "the receiver's landing and its flags are of different transports";
    if (choice.taken() == nullptr) return choice.why_not;
    if (choice.taken()->id != m.landing.transport)
        return "the receiver's landing is of a transport that it cannot be of";
    slots_ = m.flags;
    const std::uint64_t flags_bytes = (static_cast<std::uint64_t>(op.partitions) + 1) * sizeof(std::uint64_t);
    std::uint64_t landing_bytes = slots_ * total_bytes();
    memory_span span{0, 0};
    if (m.layout.bytes != 0 && m.landing.device != transport::on_host) {
        if (auto bad = read_layout(m.layout); !bad.empty()) return bad;
        if (total_bytes() == 0 || total_bytes() % static_cast<std::uint64_t>(landing_type_->size) != 0 || slots_ != 1)
            return "the receiver's datatype does not fit the message";
        span = span_of(*landing_type_, static_cast<std::int64_t>(total_bytes()) / landing_type_->size);
        landing_bytes = static_cast<std::uint64_t>(span.high - span.low);
    }
    if (m.landing.bytes < landing_bytes || m.arrival.bytes < flags_bytes || m.words.bytes < sizeof(mpix_words) ||
        m.words.transport != (transport::by_network(m.landing.transport) ? m.landing.transport : transport::id_shm))
        return "the receiver's landing is too small";
    // The device that will do the stores or the copies: the buffer's; for a host buffer any will do.
    const int user = place.owner != nullptr ? place.device : 0;
    if (auto bad = attach_peers(m.landing, user, landing_); !bad.empty()) return bad;
    if (auto bad = attach_peers(m.arrival, user, arrival_); !bad.empty()) return bad;
    if (auto bad = attach_peers(m.words, user, peer_words_); !bad.empty()) return bad;
    landing_at_ = static_cast<char *>(landing_.address) - span.low;
    path_ = choice.taken()->name;
    movement_ = choose_movement({place.owner != nullptr, !gapless, landing_.device != transport::on_host,
                                 landing_type_ != nullptr, landing_.remote, route_spent_});
    detail::poke(&home->slots, slots_);
    if (landing_.remote) return {};  // nothing there can be stored to: all is left to the engine
    detail::poke_pointer(&home->peer_complete, &static_cast<mpix_words *>(peer_words_.address)->complete);
    if (arrival_.device == transport::on_host)
        detail::poke_pointer(&home->flags, static_cast<std::uint64_t *>(arrival_.address));
    // The host stores for itself from host memory to host memory; anything else it leaves to the engine. A
    // missing landing says so. Written last: home's fields are read without locks once the gate is open,
    // which the receiver does after our CONNECT.
    if (movement_.by_caller) detail::poke_pointer(&home->landing, static_cast<char *>(landing_.address));
    return {};
}

transport::outcome send_request::read_layout(const transport::wire_region &from) {
    if (from.transport != transport::id_shm) return "the receiver's datatype is where we cannot read it";
    transport::region bytes;
    if (auto bad = transport::node_memory().attach(from, transport::on_host, bytes); !bad.empty()) return bad;
    // A copy, which nobody can change while it is checked.
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
        if (!gapless || landing_type_ != nullptr) {
            if (auto bad = device->place_layouts(gapless ? nullptr : op.type, landing_type_, &route.layouts);
                !bad.empty())
                return bad;
            route.flags = reinterpret_cast<std::uint64_t *>(reinterpret_cast<std::uintptr_t>(route.flags) |
                                                            MPIX_FLAGS_WITH_LAYOUTS);
        }
    }
    return device->install(route);
}

// The receiver freed its request before starting it, or that is another send's: as if we had never met. No byte has
// moved, since the gate was never open. But from a process that cannot reach us nothing better will come.
void send_request::undo_match() {
    const std::lock_guard lock(engine);
    peer_number = 0;
    peer_gone = false;
    if (refusal_ == refused_unreachable && epoch_ != 0) return;
    if (epoch_ != 0) route_spent_ = true;
    // Before the CONNECT to the next receiver, and so before its clear-to-send.
    if (device != nullptr)
        if (auto bad = device->install({}); !bad.empty()) fail(bad);
    drop_route(epoch_ != 0);
    refusal_ = refused_not;
    failure_.clear();
    path_ = "unmatched";
    detail::publish(&words->gate, 0);
    connected = false;
}

void send_request::drop_route(bool in_use) {
    detail::poke_pointer(&home->landing, static_cast<char *>(nullptr));
    detail::poke_pointer(&home->flags, static_cast<std::uint64_t *>(nullptr));
    detail::poke_pointer(&home->peer_complete, static_cast<std::uint64_t *>(nullptr));
    detail::poke(&home->slots, 0);
    detach_regions(in_use);
}

// What callers of Pready may be storing to is only put aside: nobody but a peer that breaks the rules withdraws then, but a
// crash is no answer. (Mappings of GPU memory last as long as there may be kernels that store to them anyway.)
void send_request::detach_regions(bool in_use) {
    if (peer_view_) device->gpus().release_view(peer_view_);  // of a lasting mapping: does not wait
    peer_view_ = {};
    const auto drop = [this, in_use](transport::region &r) {
        if (r && in_use && !r.remote && r.device == transport::on_host)
            retired_.push_back(std::exchange(r, {}));
        else
            detach_peers(r);
    };
    landing_type_ = nullptr;
    landing_at_ = nullptr;
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
    detail::publish(&words->gate, gate_discard);
    progress_wake();
}

// ---- export: setup_mutex and engine are held -------------------------------------------------

problem send_request::export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors) {
    if (problem bad = made->make(*this, epoch_, contributors); bad) return bad;
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
    std::unique_ptr<device_copy> ended = std::move(device);
    // The host's instance takes over where the copy was.
    std::uint64_t *state = detail::partition_states(home);
    for (int p = 0; p < op.partitions; ++p) state[p] = epoch_;
    home->ready_count = epoch_ * static_cast<std::uint64_t>(op.partitions);
    home->defer_count = ring_taken_;
    return ended;
}

// ---- an epoch ----------------------------------------------------------------------------------

void send_request::on_start() {
    ring_at_start_ = ring_taken_;
    engine_moves_ = 0;
    host_share_ = 0;
    if (device != nullptr) host_readied_.assign(static_cast<std::size_t>(op.partitions), false);
    if (device != nullptr || exported_to_host) progress_attend(shared_from_this());
}

template <bool Alone>
int send_request::ready_here(int partition) {
    return detail::ready(this_thread(), partition, home, plan_mover<Alone>{*this});
}

int send_request::ready(int partition) {
    if (partition < 0 || partition >= op.partitions) return MPI_ERR_ARG;
    if (!active()) return MPI_ERR_REQUEST;
    if (device != nullptr) {
        // Kernels own the states and counters on the GPU; the engine brings them up to date.
        const std::lock_guard lock(engine);
        if (host_readied_[static_cast<std::size_t>(partition)]) return MPI_ERR_ARG;
        host_readied_[static_cast<std::size_t>(partition)] = true;
        host_ready_.push_back(partition);
        return MPI_SUCCESS;
    }
    const int code = alone_ && !exported_to_host ? ready_here<true>(partition) : ready_here<false>(partition);
    if (detail::peek(&home->defer_epoch) == epoch_) progress_attend(shared_from_this());
    return code;
}

problem send_request::not_readied(int partition, int error_class) const {
    if (partition < 0 || partition >= op.partitions)
        return {error_class, format("partition {} is not within 0 to {}", partition, op.partitions - 1)};
    if (error_class == MPI_ERR_REQUEST) return {error_class, "the request has not been started"};
    return {error_class, format("partition {} is ready already in this epoch", partition)};
}

bool send_request::gate_open() const {
    if (null_peer() || (refusal_ == refused_not && !landing_)) return false;
    return detail::observe(&words->gate) >= detail::gate_needed(epoch_, refusal_ != refused_not ? 1 : slots_);
}

void send_request::fail(const transport::outcome &why) {
    if (engine_failure_.empty()) engine_failure_ = why;
}

// Where this epoch's packed message goes, or element 0 of a landing with gaps.
char *send_request::landing_now() const { return landing_at_ + (slots_ == 2 && (epoch_ & 1) ? total_bytes() : 0); }

// From or to GPU memory. Gaps of a host buffer are left out here, before the copy; those of GPU buffers by a kernel.
transport::outcome send_request::start_transfer(int partition, std::unique_ptr<transport::transfer> &out) {
    const std::uint64_t offset = static_cast<std::uint64_t>(partition) * partition_bytes;
    const bool from_gpu = place.owner != nullptr;
    const int on = from_gpu ? place.device : landing_.device;
    auto made = std::make_unique<packing>();
    const char *from = op.buffer + offset;
    if (movement_.packed_first) {
        made->packed.resize(partition_bytes);
        pack_range(*op.type, op.buffer, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(partition_bytes),
                   made->packed.data());
        from = made->packed.data();
    }
    if (partition_bytes == 0 || movement_.engine != mover::kernel) {
        char *const to = landing_now() + offset;
        auto bad =
            landing_.remote
                ? wire_->put(landing_, static_cast<std::uint64_t>(to - static_cast<char *>(landing_.address)), from,
                             partition_bytes, made->copy)
                : (from_gpu ? place.owner : transport::devices())->start(to, from, partition_bytes, on, made->copy);
        out = std::move(made);
        return bad;
    }
#if MPIX_HAVE_CUDA
    gpu::passage way{nullptr,
                     const_cast<char *>(from) - offset,
                     nullptr,
                     landing_now(),
                     static_cast<std::int64_t>(offset),
                     static_cast<std::int64_t>(partition_bytes),
                     on};
    if (!gapless && from_gpu) {
        way.from_type = &typemap_of(*op.type)->map;
        way.from = op.buffer;
    }
    if (landing_type_ != nullptr) way.to_type = &typemap_of(*landing_type_)->map;
    auto bad = gpu::start(way, made->kernel);
    out = std::move(made);
    return bad;
#else
    return "mpix was built without CUDA";
#endif
}

// One partition, in the engine's hands.
void send_request::start_move(int partition, bool for_host) {
    ++engine_moves_;
    move m{partition, for_host, nullptr};
    if (refusal_ == refused_not && !null_peer()) {
        if (movement_.engine == mover::cpu)
            plan_mover<false>{*this}(this_thread(), nullptr, {}, partition, landing_now());
        else if (auto bad = start_transfer(partition, m.transfer); !bad.empty())
            fail(bad);
    }
    if (m.transfer == nullptr)
        finish_move(m);
    else
        moving_.push_back(std::move(m));
}

// flags[index] = epoch, after the bytes it speaks of. Pairs with observe() in look.
void send_request::set_flag(std::uint64_t index) {
    if (auto bad = tell(arrival_, index * sizeof(std::uint64_t), epoch_); !bad.empty()) fail(bad);
}

void send_request::finish_move(const move &m) {
    if (refusal_ == refused_not && engine_failure_.empty() && !null_peer())
        set_flag(static_cast<std::uint64_t>(m.partition));
    if (m.for_host) ++host_share_;
}

// In an epoch that kernels and the host's Pready share, nobody but the engine sees all that is ready.
void send_request::count_shares() {
    if (host_share_ == 0 || counted_ == epoch_ || !host_ready_.empty() || !moving_.empty()) return;
    const auto n = static_cast<std::uint64_t>(op.partitions);
    std::uint64_t readied = 0, deferred = 0;
    transport::outcome bad = device->counts(readied, deferred);
    if (bad.empty() && readied + host_share_ < epoch_ * n) return;
    // A kernel defers before it counts, but in the ring, whose entry may be on its way to us still.
    if (bad.empty() && deferred != ring_taken_) return;
    std::vector<std::uint64_t> states(n);
    if (bad.empty()) bad = device->states(states);
    if (bad.empty()) {
        std::uint64_t by_kernels = 0;
        int twice = -1;
        for (std::uint64_t p = 0; p < n; ++p) {
            const bool by_kernel = states[p] >= epoch_, by_host = host_readied_[p];
            if (!by_kernel && !by_host) return;
            by_kernels += by_kernel;
            if (by_kernel && by_host) twice = static_cast<int>(p);
        }
        if (readied != (epoch_ - 1) * n + by_kernels) return;  // a kernel has marked one, and not counted it yet
        // The host's Pready could not know of the kernel's: Wait says so.
        if (twice >= 0)
            detail::publish(&words->error,
                            static_cast<std::uint64_t>(MPI_ERR_ARG) << 32 | static_cast<std::uint32_t>(twice + 1));
        // Before the next epoch, in which kernels go by it.
        bad = device->set_ready_count(epoch_ * n);
    }
    if (!bad.empty()) fail(bad);
    counted_ = epoch_;
    detail::publish(&words->all_ready, epoch_);
}

void send_request::drain() {
    const auto n = static_cast<std::uint64_t>(op.partitions);
    while (ring_taken_ - ring_at_start_ < n) {
        // Acquires the partition's bytes, which the deferring caller released before this entry.
        const mpix_ring_entry entry = detail::observe(&home->ring[ring_taken_ % n]);
        if (entry >> 32 != (epoch_ & 0xffffffffu)) break;
        ++ring_taken_;
        const std::uint64_t partition = entry & 0xffffffffu;
        if (partition < n)
            start_move(static_cast<int>(partition), false);
        else  // the ring lies in memory that others can write
            fail("the list of deferred partitions has been overwritten");
    }
    for (const int partition : host_ready_) start_move(partition, true);
    host_ready_.clear();
}

// If every partition was readied, and the engine had a share in moving them, tell the receiver.
void send_request::conclude() {
    if (engine_moves_ == 0 || concluded_ == epoch_ || !moving_.empty()) return;
    if (detail::observe(&words->all_ready) < epoch_) return;
    // All partitions' ring entries are visible since all_ready is; one that came after drain() looked
    // is found in the next round.
    const auto n = static_cast<std::uint64_t>(op.partitions);
    if (ring_taken_ - ring_at_start_ < n &&
        detail::observe(&home->ring[ring_taken_ % n]) >> 32 == (epoch_ & 0xffffffffu))
        return;
    const bool good = refusal_ == refused_not && engine_failure_.empty();
    if (good) set_flag(n);
    // The receiver's host counts on the flags once it is told that all is complete; and after a failure none may be on
    // its way when their memory is given back.
    if (arrival_ && !arrival_.remote && arrival_.device != transport::on_host)
        if (auto bad = transport::devices()->settle(arrival_.device); !bad.empty()) fail(bad);
    if (good && engine_failure_.empty()) {
        if (auto bad = tell(peer_words_, offsetof(mpix_words, complete), epoch_); !bad.empty()) fail(bad);
        // The network may have taken them, and not be able to send them before it is called again.
        if (wire_ != nullptr) departing_ = wire_->flush(peer_world());
    }
    concluded_ = epoch_;
}

bool send_request::advance() {
    const std::unique_lock lock(engine, std::try_to_lock);
    if (!lock) return true;  // another thread is at it
    if (transport::outcome lost; departing_ != nullptr && departing_->finished(lost)) departing_ = nullptr;
    if (!active()) return departing_ != nullptr;
    if (null_peer()) {
        drain();  // what the host readied of an exported request: it counts
        count_shares();
        return device != nullptr || exported_to_host;
    }
    if (gate_open()) drain();
    std::erase_if(moving_, [this](const move &m) {
        transport::outcome bad;
        if (!m.transfer->finished(bad)) return false;
        if (!bad.empty()) fail(bad);
        finish_move(m);
        return true;
    });
    count_shares();
    conclude();
    if (device != nullptr || exported_to_host) return true;  // kernels may defer at any time
    const bool deferred = detail::peek(&home->defer_epoch) == epoch_;
    return (deferred && concluded_ != epoch_) || departing_ != nullptr;
}

bool send_request::done() {
    // Nothing for the engine to do, and no lock: the host's Preadys have moved everything. The last of them said so
    // after all that they deferred was known.
    if (device == nullptr && !exported_to_host && !null_peer()) {
        const bool all = detail::observe(&words->all_ready) >= epoch_;
        if (detail::peek(&home->defer_epoch) != epoch_) return all;
    }
    advance();
    if (detail::observe(&words->all_ready) < epoch_) return false;
    if (null_peer()) return true;  // ready, and nowhere to go
    const std::lock_guard lock(engine);
    return complete();
}

// `engine` is held.
bool send_request::complete() const {
    if (detail::observe(&words->all_ready) < epoch_) return false;
    if (concluded_ == epoch_) return true;
    // Complete without the engine only if nothing was deferred: all ring entries are visible by now.
    const auto n = static_cast<std::uint64_t>(op.partitions);
    return engine_moves_ == 0 && host_ready_.empty() &&
           detail::observe(&home->ring[ring_taken_ % n]) >> 32 != (epoch_ & 0xffffffffu);
}

bool send_request::prepared() {
    if (null_peer()) return true;
    // This epoch's clear-to-send itself, whatever room the landing has.
    return detail::observe(&words->gate) >= epoch_;
}

problem send_request::outcome() {
    const std::lock_guard lock(engine);
    if (peer_ended_) return ended_peer();
    if (!engine_failure_.empty() && wire_ != nullptr && !wire_->lost(peer_world()).empty()) return ended_peer();
    if (!failure_.empty()) return {MPI_ERR_OTHER, format("no path to rank {}: {}", op.peer, failure_)};
    if (!engine_failure_.empty()) return {MPI_ERR_OTHER, engine_failure_};
    return {};
}

stall send_request::describe_stall() {
    const std::scoped_lock lock(setup_mutex(), engine);
    stall s{"send", op.peer, null_peer() ? -1 : peer_world(), op.tag, op.partitions, epoch_, path_, "not ready",
            {},     {}};
    if (device == nullptr) {
        const std::uint64_t *state = detail::partition_states(home);
        for (int p = 0; p < op.partitions; ++p)
            if (detail::peek(&state[p]) != epoch_) s.missing.push_back(p);
    } else {
        std::uint64_t readied = 0;
        if (device->ready_count(readied).empty())
            s.remark =
                format("{} of {} partitions are ready",
                       readied + host_share_ - (epoch_ - 1) * static_cast<std::uint64_t>(op.partitions), op.partitions);
    }
    if (!s.remark.empty()) s.remark += "; ";
    s.remark += !connected    ? "no matching receive has been found"
                : gate_open() ? "the receiver has started"
                              : format("the receiver has started epoch {} only", detail::peek(&words->gate));
    if (!connected && !setup_thread_safe())
        s.remark += " (the MPI library gave no MPI_THREAD_MULTIPLE: setup gets on in MPI calls only)";
    return s;
}

}  // namespace mpix
