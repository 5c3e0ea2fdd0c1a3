// SPDX-License-Identifier: BSD-3-Clause
#include "host/transfer/send.h"

#include <mpix/device.cuh>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "host/config.h"
#include "host/datatype/host_copy.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/protocol/copying_side.h"
#include "host/protocol/rget.h"
#include "host/protocol/slot_budget.h"
#include "host/request/explain.h"
#include "host/request/upcalls.h"
#include "host/transfer/send_transfer.h"

namespace mpix {
namespace {

// The largest message between nodes that the last Pready of an epoch sends itself.
constexpr std::uint64_t most_gone_now = 64 * 1024;

// How the host moves a partition of any datatype into host memory.
template <bool Alone>
struct plan_mover {
    static constexpr bool alone = Alone, waited = false;
    static constexpr mpix_device_call call = MPIX_CALL_NONE;
    const request &r;
    const bool left_to_receiver = false;  // in a single copy
    template <class Group>
    [[gnu::always_inline]] void operator()(const Group &, const mpix_prequest *, const detail::outgoing &, int p,
                                           char *landing) const {
        const auto bytes = static_cast<std::int64_t>(r.partition_bytes), at = p * bytes;
        if (!r.gapless)
            pack_range(*r.op.type, r.op.buffer, at, bytes, landing + at);
        else if (bytes == sizeof(double))  // a store, not a call
            std::memcpy(landing + at, r.op.buffer + at, sizeof(double));
        else if (bytes != 0)  // the buffer of an empty message may be null
            std::memcpy(landing + at, r.op.buffer + at, r.partition_bytes);
    }
};

}  // namespace

status send_request::prepare() {
    if (status bad = prepare_gpu(); !bad.ok()) return bad;
    const auto n = static_cast<std::uint64_t>(op.partitions);
    if (!null_peer()) offer_ = std::make_unique<send_offer>(place, rget_terms_of(*this));
    const bool rget = offer_ != nullptr && offer_->rget.why_not.empty();
    const std::uint64_t words_bytes = rget ? words_with_answers(n) : answers_in_words(n);
    if (status bad = allocate_words(words_bytes - sizeof(mpix_words)); !bad.ok()) return bad;
    home->ring = reinterpret_cast<mpix_ring_entry *>(words + 1);
    return {};
}

offer_body send_request::make_offer() { return mpix::make_offer(*this, *offer_); }

const char *send_request::path_now() const {
    if (route_ != nullptr) return route_->path;
    return refused() ? "none" : "unmatched";
}

// ---- an epoch ----------------------------------------------------------------------------------

void send_request::on_kernel_start() {
    ring_at_start_ = ring_taken_;
    engine_moves_ = 0;
    host_share_ = 0;
    copied_ = 0;
    idle_since_ = 0;
    if (device != nullptr) host_readied_.assign(static_cast<std::size_t>(op.partitions), false);
}

void send_request::on_start() {
    on_kernel_start();
    fast_path_.close();
    choose_copying_side();
    started_by_ = detail::this_thread_number();
    if (device != nullptr || exported_to_host)
        progress_attend(shared_from_this());
    else
        open_fast_path();
}

template <bool Alone>
int send_request::ready_here(int partition, bool left_to_receiver) {
    return detail::ready(this_thread(), partition, home, plan_mover<Alone>{*this, left_to_receiver});
}

// Whether it was opened: clear-to-send is there. Like admit, without a lock.
bool send_request::open_fast_path() {
    if (!gapless || fast_path_.is_open()) return false;
    const std::uint64_t clear = detail::load_acquire(&words->clear_to_send);  // pairs: C2, N1
    const std::uint64_t slots = detail::load_relaxed(&home->slots);
    char *const landing = detail::load_pointer(&home->landing);
    std::uint64_t *const flags = detail::load_pointer(&home->flags);
    if (landing == nullptr || flags == nullptr || detail::load_pointer(&home->far) != nullptr ||
        clear < detail::clear_to_send_needed(epoch_, slots) || !fast_path_.may_open())
        return false;
    char *const slot = landing + detail::slot_of(epoch_, slots) * total_bytes();
    fast_path_.open(home, epoch_, {op.buffer, slot, flags, detail::partition_states(home), partition_bytes}, alone_);
    return true;
}

int send_request::ready_in_full(int partition) {
    if (partition < 0 || partition >= op.partitions) return MPI_ERR_ARG;
    if (!active()) return MPI_ERR_REQUEST;
    if (device != nullptr) return ready_with_kernels(partition);
    // Before the partition is marked: once all are, the epoch may end, and the next one begin.
    if (!exported_to_host && open_fast_path() && fast_path_.ready(partition)) return MPI_SUCCESS;
    const std::uint64_t epoch = exported_to_host ? follow_kernels() : epoch_;
    const std::uint64_t begun = alone_ ? 0 : fast_path_.begin_in_full();
    // Other threads than Start's write: several copy side by side, while the receiver may have one thread that waits.
    // Where host threads play kernels all write: their `wait` does not look at `taken`, and then the send buffer is the
    // user's.
    const int code = exported_to_host ? ready_here<false>(partition, false)
                     : alone_         ? ready_here<true>(partition, receiver_copies_.load(std::memory_order_relaxed))
                                      : ready_here<false>(partition, receiver_copies_.load(std::memory_order_relaxed) &&
                                                                 started_by_ == detail::this_thread_number());
    if (!alone_ && code != MPI_SUCCESS) fast_path_.refused_in_full(begun);
    if (detail::load_relaxed(&home->defer_epoch) == epoch) {
        if (goes_now(epoch)) try_advance();
        attend();
    }
    return code;
}

// `engine` is held.
void send_request::tell_if_all_moved() {
    if (detail::load_acquire(&words->all_ready) >= epoch_ || !fast_path_.all_moved()) return;  // pairs: D2
    detail::store_relaxed(&home->ready_count, epoch_ * static_cast<std::uint64_t>(op.partitions));
    detail::say_all_ready(home, epoch_);
}

// After the last partition of an epoch: whether what was left to the network goes without waiting for the progress
// thread. Not if it takes long, since Pready should not.
bool send_request::goes_now(std::uint64_t epoch) const {
    return network() != nullptr && !exported_to_host && place.owner == nullptr && gapless &&
           total_bytes() <= most_gone_now && detail::load_acquire(&words->all_ready) >= epoch;  // pairs: D2
}

// Kernels own the states and counters on the GPU; the engine updates them.
int send_request::ready_with_kernels(int partition) {
    const std::lock_guard lock(engine);
    follow_kernels_locked();
    if (host_readied_[static_cast<std::size_t>(partition)]) return MPI_ERR_ARG;
    host_readied_[static_cast<std::size_t>(partition)] = true;
    host_ready_.push_back(partition);
    return MPI_SUCCESS;
}

void send_request::attend() {
    // Within host memory of a node a partition is left to the engine only until the pair is set up. And a short message
    // between nodes usually has gone, or does in the last Pready or in Wait.
    const bool soon =
        (network() == nullptr || total_bytes() <= most_gone_now) && place.owner == nullptr && !exported_to_host;
    progress_attend(shared_from_this(), soon ? thread_looks::soon : thread_looks::at_once);
}

int send_request::ready_range(int low, int high, int &refused) {
    if (exported_to_host && device == nullptr && active()) {
        const std::uint64_t epoch = follow_kernels();
        const detail::range_end end = detail::ready_range(this_thread(), low, high, home, plan_mover<false>{*this});
        if (detail::load_relaxed(&home->defer_epoch) == epoch) attend();
        refused = end.partition;
        return end.code;
    }
    int code = MPI_SUCCESS;
    for (int p = low; code == MPI_SUCCESS && p <= high; ++p) code = ready(refused = p);
    return code;
}

status send_request::not_readied(int partition, int error_class) const {
    if (partition < 0 || partition >= op.user_partitions()) return no_such_partition(op, partition);
    if (error_class == MPI_ERR_REQUEST)
        return failure(error_class, format("the send to rank {}, tag {}, has not been started", op.peer, op.tag));
    return failure(error_class, format("partition {} is ready already in this epoch of the send to rank {}, tag {}",
                                       partition, op.peer, op.tag));
}

bool send_request::clear_to_send() const {
    if (null_peer() || (refusal_ == refused_not && route_ == nullptr)) return false;
    const std::uint64_t slots = refusal_ != refused_not ? 1 : route_->slots;
    const std::uint64_t needed =
        network() != nullptr ? clear_to_send_between_nodes(epoch_, slots) : detail::clear_to_send_needed(epoch_, slots);
    return detail::load_acquire(&words->clear_to_send) >= needed;  // pairs: C2, N1
}

void send_request::fail(const status &why) {
    if (engine_failure_.ok()) engine_failure_ = why;
}

void send_request::fail(const char *why) {
    if (engine_failure_.ok()) engine_failure_ = attempt([why] { return failure(why); });
}

// Whether that has worked.
bool send_request::write_into_peer(int partition) {
    const int error = write_in_place(*this, *route_, partition);
    if (error == 0) return true;
    if (error == ESRCH) {
        peer_ended_ = true;
        report_end_of(peer_world());  // there may be no other sign of its end: later epochs fail by this
    }
    const char *const from = op.buffer + static_cast<std::uint64_t>(partition) * partition_bytes;
    if (error == EFAULT && !transport::can_be_read(from, partition_bytes))
        fail(failure(format("partition {} cannot be read from the send buffer: {}", partition, std::strerror(error))));
    else
        fail(failure(format("partition {} cannot be written into the receive buffer of rank {}: {}", partition, op.peer,
                            std::strerror(error))));
    return false;
}

// In a single copy: whether nobody copies a partition any more, nor will. `writes`: this side writes what the receiver
// has not begun to read for a while. `engine` is held, and all partitions are ready.
bool send_request::all_copied(bool writes) {
    if (route_ == nullptr || !route_->in_place() || null_peer() || refusal_ != refused_not) return true;
    constexpr std::uint64_t patience_ns = 20000;  // a receiver that is in Wait claims a partition sooner
    for (; copied_ < static_cast<std::uint64_t>(op.partitions); ++copied_) {
        std::uint64_t *const taken = &route_->taken()[copied_];
        const std::uint64_t state = detail::load_acquire_gpu(taken);  // pairs: F1
        if (state >= 2 * epoch_) {
            idle_since_ = 0;
            continue;
        }
        if (state == 2 * epoch_ - 1) return false;  // the time goes on: a receiver that may not read gives it back
        if (state < 2 * epoch_ - 2) continue;       // a write of an earlier epoch has failed
        if (engine_failure_.ok()) {
            if (!writes) return false;
            const std::uint64_t now = detail::now_ns();
            if (idle_since_ == 0) idle_since_ = now;
            if (now - idle_since_ < patience_ns) return false;
        }
        if (!detail::cas_acq_rel_gpu(taken, 2 * epoch_ - 2, 2 * epoch_ - 1)) return false;  // pairs: F2
        // If it fails the claim stays: when Wait has returned, the receiver must not begin to read.
        if (write_into_peer(static_cast<int>(copied_))) detail::store_release_gpu(taken, 2 * epoch_);  // pairs: F1
    }
    return true;
}

// Who copies what is marked ready in this epoch, by what copies have taken.
void send_request::choose_copying_side() {
    const auto *const far = static_cast<const transport::peer_memory *>(detail::load_pointer(&home->far));
    if (far == nullptr) return;
    receiver_copies_.store(
        receiver_copies(detail::fetch_add_relaxed_gpu(&far->epochs) + 1, detail::load_relaxed(&words->read_cost),
                        detail::load_relaxed(&far->write_cost)),
        std::memory_order_relaxed);
}

// Makes room for one more move, so that a later step needs no memory.
void send_request::make_room() {
    if (moving_.size() == moving_.capacity()) moving_.reserve(2 * moving_.size() + 4);
}

// How many neighbouring partitions are copied at once; less than 2: each alone. A copy costs the engine some
// microseconds, and so does setting flags. In about that time most_bytes are copied: with more, the first partitions
// would wait for the last, since the flags are set after the whole copy.
int send_request::most_in_one_move() const {
    constexpr std::uint64_t most_bytes = 256 * 1024;
    const bool copied = refusal_ == refused_not && !null_peer() && route_ != nullptr &&
                        route_->how.engine == mover::copy_engine && !route_->how.packed_first;
    return copied && partition_bytes != 0 ? static_cast<int>(most_bytes / partition_bytes) : 0;
}

// Hands the partitions in `ready` to the engine, in that order if each goes alone, and removes them. If it throws,
// those that are left have not been started; call it again.
void send_request::start_moves(std::vector<int> &ready, bool for_host) {
    struct started_ones {
        std::vector<int> &all;
        std::size_t number = 0;
        ~started_ones() { all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(number)); }
    } started{ready};
    const auto most = static_cast<std::size_t>(most_in_one_move());
    if (most > 1) std::sort(ready.begin(), ready.end());
    while (started.number < ready.size()) {
        make_room();
        const auto next = ready.begin() + static_cast<std::ptrdiff_t>(started.number);
        const std::size_t left = ready.size() - started.number;
        int together = 1;
        while (static_cast<std::size_t>(together) < std::min(most, left) && next[together] == *next + together)
            ++together;
        carry_out({*next, together, for_host, nullptr});
        started.number += static_cast<std::size_t>(together);
        engine_moves_ += static_cast<std::uint64_t>(together);
        deferred_ += static_cast<std::uint64_t>(together);
    }
}

void send_request::carry_out(move m) {
    const int partition = m.partition;  // start_copy alone moves others with it
    if (refusal_ == refused_not && !null_peer()) {
        const mover by = route_->how.engine;
        if (by == mover::cpu) {
            plan_mover<false>{*this}(this_thread(), nullptr, {}, partition, route_->landing_of(epoch_));
        } else if (by == mover::system) {
            // What is left to the receiver is only flagged. Otherwise as in store_by_host.
            if ((exported_to_host || !receiver_copies_.load(std::memory_order_relaxed)) && write_into_peer(partition))
                detail::store_release_gpu(&route_->taken()[partition], 2 * epoch_);  // pairs: F1
        } else if (by == mover::network)
            m.transfer = start_put(*this, *route_, partition, epoch_);
        else if (auto bad = start_copy(*this, *route_, partition, m.partitions, epoch_, m.transfer); !bad.ok())
            fail(bad);
    }
    if (m.transfer == nullptr)
        finish_move(m);
    else
        moving_.push_back(std::move(m));
}

void send_request::set_flags(std::uint64_t index, std::uint64_t how_many) {
    if (route_ == nullptr) return fail(memory_taken_back);
    if (auto bad = route_->set_flags(index, how_many, epoch_); !bad.ok()) fail(bad);
}

void send_request::finish_move(const move &m) {
    const bool unflagged = route_ == nullptr || route_->how.engine != mover::network;
    if (refusal_ == refused_not && engine_failure_.ok() && !null_peer() && unflagged)
        set_flags(static_cast<std::uint64_t>(m.partition), static_cast<std::uint64_t>(m.partitions));
    if (m.for_host) host_share_ += static_cast<std::uint64_t>(m.partitions);
}

// In an epoch that kernels and the host's Pready share, only the engine sees all that is ready.
void send_request::count_shares() {
    if (host_share_ == 0 || counted_ == epoch_ || waiting_to_move() || !moving_.empty()) return;
    const auto n = static_cast<std::uint64_t>(op.partitions);
    device_copy::kernels_counts kernels{};
    status bad = device->counts(kernels);
    if (bad.ok() && kernels.readied + host_share_ < epoch_ * n) return;
    // A kernel defers a partition before it counts it, but the ring entry may reach us after the count.
    if (bad.ok() && kernels.deferred != ring_taken_) return;
    std::vector<std::uint64_t> states(n);
    if (bad.ok()) bad = device->states(states);
    if (bad.ok()) {
        std::uint64_t by_kernels = 0;
        for (std::uint64_t p = 0; p < n; ++p) {
            const bool by_kernel = states[p] >= epoch_;
            if (!by_kernel && !host_readied_[p]) return;
            by_kernels += by_kernel;
        }
        if (kernels.readied != (epoch_ - 1) * n + by_kernels)
            return;  // a kernel has marked one, and not counted it yet
        // Before the next epoch, in which kernels use it.
        bad = device->set_ready_count(epoch_ * n);
    }
    if (!bad.ok()) fail(bad);
    counted_ = epoch_;
    detail::store_relaxed(&words->posted, kernels.posted);              // the engine tells the epoch's end
    detail::store_release(&words->all_ready, epoch_);                   // pairs: D2
    if (null_peer()) detail::store_release(&words->concluded, epoch_);  // pairs: K3
}

// A partition marked ready by the host and by a kernel is an error. Neither can know of the other; once the epoch is
// over, the engine does.
status send_request::look_for_both() {
    const auto n = static_cast<std::uint64_t>(op.partitions);
    std::vector<std::uint64_t> states(n);
    if (auto bad = device->states(states); !bad.ok()) return bad;
    for (std::uint64_t p = 0; p < n; ++p) {
        if (states[p] < epoch_ || !host_readied_[p]) continue;
        // pairs: E1
        detail::store_release(&words->error, detail::error_word(detail::with_cause(MPIX_CALL_PREADY, MPIX_CAUSE_READY),
                                                                2 * epoch_ + 1, static_cast<int>(p)));
        // A partition that was counted and deferred twice must not count in the next epoch.
        moving_.clear();
        kernel_ready_.clear();
        host_ready_.clear();
        device_copy::kernels_counts kernels{};
        if (auto bad = device->counts(kernels); !bad.ok()) return bad;
        ring_taken_ = kernels.deferred;
        return device->set_ready_count(epoch_ * n);
    }
    return {};
}

void send_request::drain() {
    const auto n = static_cast<std::uint64_t>(op.partitions);
    while (ring_taken_ - ring_at_start_ < n) {
        // Acquires the partition's bytes, which the deferring caller released before this entry.
        const mpix_ring_entry entry = detail::load_acquire(&home->ring[ring_taken_ % n]);  // pairs: G1
        if (entry >> 32 != (epoch_ & 0xffffffffu)) break;
        const bool rts = (entry & MPIX_RING_RTS) != 0;
        const std::uint64_t partition = entry & (MPIX_RING_RTS - 1);
        if (partition < n && rts && by_rget() && device != nullptr) {
            make_room();
            ++engine_moves_;
            moving_.push_back({static_cast<int>(partition), 1, false, nullptr, true});
        } else if (partition < n && !rts)
            kernel_ready_.push_back(static_cast<int>(partition));
        else  // the ring lies in memory that others can write
            fail("the list of deferred partitions has been overwritten");
        ++ring_taken_;
    }
    start_moves(kernel_ready_, false);
    start_moves(host_ready_, true);
}

bool send_request::advance() {
    const std::unique_lock lock(engine, std::try_to_lock);
    if (!lock) return true;  // another thread is doing this
    if (status lost; departing_ != nullptr && departing_->finished(lost)) departing_ = nullptr;
    if (!active()) return departing_ != nullptr;
    follow_kernels_locked();
    if (null_peer()) {
        drain();  // partitions of an exported request that the host readied: they count
        count_shares();
        return device != nullptr || exported_to_host;
    }
    const transport::held_puts together(network());
    if (posted_ != nullptr && posted_->queue->step()) progress_busy();
    if (clear_to_send()) drain();
    if (!moving_.empty()) progress_busy();
    if (by_rget()) look_for_answers();
    std::erase_if(moving_, [this](const move &m) {
        status bad;
        bool finished = false;  // if memory runs out, it is asked again
        if (m.rts || !try_step([&] { finished = m.transfer->finished(bad); }) || !finished) return false;
        if (!bad.ok()) fail(bad);
        finish_move(m);
        return true;
    });
    count_shares();
    conclude();
    if (device != nullptr || exported_to_host) return true;  // kernels may defer at any time
    const bool deferred = detail::load_relaxed(&home->defer_epoch) == epoch_;
    return (deferred && concluded_ != epoch_) || departing_ != nullptr;
}

}  // namespace mpix
