// SPDX-License-Identifier: BSD-3-Clause
#include "host/staging/staged_delivery.h"

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>
#include <mpix/impl/epoch/slot_ring.cuh>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "host/progress.h"
#include "transport/reserve.h"

namespace mpix {
namespace {

// Neighbours that have arrived go in one copy, but not so long a one that the first of them wait for the last.
constexpr std::uint64_t most_copy_bytes = 8 * chunk_bytes;

}  // namespace

staged_delivery::staged_delivery(const gpu_buffer &to, const chunking &chunks, std::uint64_t slots)
    : to_(to), chunks_(chunks), slots_(slots) {}

bool staged_delivery::end() {
    const bool ended = outlast("a copy into a receive buffer", [this] { return idle(); });
    if (!ended) {  // then they stay the engine's
        static std::mutex mutex;
        static auto *const left = new transport::safe_deque<copy>;
        const std::lock_guard lock(mutex);
        std::move(copies_.begin(), copies_.end(), std::back_inserter(*left));
        copies_.clear();
    }
    if (flags_ && ended) to_.gpus->release(flags_);
    flags_ = {};
    return ended;
}

status staged_delivery::allocate(const transport::region &landing, const transport::region &arrival) {
    if (auto bad = to_.gpus->allocate((chunks_.partitions + 1) * sizeof(std::uint64_t), to_.device, flags_); !bad.ok())
        return bad;
    in_place_ = landing.address == to_.memory;
    void *view = landing.address;
    if (landing.device == transport::on_host)
        if (auto bad = to_.gpus->acquire_view(landing, to_.device, view); !bad.ok()) return bad;
    landing_ = {static_cast<char *>(landing.address), static_cast<char *>(view), landing.device != transport::on_host};
    arrived_ = static_cast<const std::uint64_t *>(arrival.address);
    return {};
}

void staged_delivery::begin(std::uint64_t epoch) {
    epoch_ = epoch;
    begun_.assign(chunks_.all(), false);
    left_.assign(chunks_.partitions, chunks_.per_partition);
    partitions_left_ = chunks_.partitions;
    first_open_ = 0;
}

bool staged_delivery::delivered(std::uint64_t partition, std::uint64_t epoch) const {
    return epoch_ == epoch && left_[partition] == 0;
}

bool staged_delivery::arrived(std::uint64_t epoch) const {
    for (std::uint64_t c = 0; c < chunks_.all(); ++c)
        if (detail::load_acquire(&arrived_[c]) < epoch) return false;  // pairs: A1, N2
    return true;
}

bool staged_delivery::idle() {
    std::erase_if(copies_, [](const copy &c) {
        status ignored;
        return c.transfer->finished(ignored);
    });
    return copies_.empty();
}

status staged_delivery::start_copies() {
    const std::uint64_t all = chunks_.all();
    // The chunk's bytes are in the landing. Pairs with the network's order of bytes and words; within a node with the
    // stores of the sender's kernels, or its engine's.
    // pairs: A1, N2
    const auto fresh = [&](std::uint64_t c) { return !begun_[c] && detail::load_acquire(&arrived_[c]) >= epoch_; };
    for (std::uint64_t c = first_open_; c < all;) {
        if (!fresh(c)) {
            if (begun_[c] && c == first_open_) ++first_open_;
            ++c;
            continue;
        }
        copy made{c, c + 1, nullptr};
        begun_[c] = true;
        const std::uint64_t begin = chunks_.begin(c);
        while (made.end < all && fresh(made.end) && chunks_.end(made.end) - begin <= most_copy_bytes)
            begun_[made.end++] = true;
        c = made.end;
        if (auto bad = start_copy(std::move(made)); !bad.ok()) return bad;
    }
    return {};
}

status staged_delivery::start_copy(copy made) {
    const std::uint64_t begin = chunks_.begin(made.first), bytes = chunks_.end(made.end - 1) - begin;
    if (bytes == 0) return finish(made);
    if (in_place_) {
        if (auto bad = to_.gpus->admit_network(to_.device); !bad.ok()) return bad;
        return finish(made);
    }
    const std::uint64_t message = chunks_.partitions * chunks_.partition_bytes;
    const std::uint64_t slot = detail::slot_of(epoch_, slots_) * message;
    const locked_memory from{landing_.host + slot + begin, landing_.view + slot + begin, landing_.on_gpu};
    if (auto bad = start_writing(to_, begin, bytes, from, to_kernels_, made.transfer); !bad.ok()) return bad;
    copies_.push_back(std::move(made));
    return {};
}

status staged_delivery::finish(const copy &c) {
    for (std::uint64_t chunk = c.first; chunk < c.end; ++chunk) {
        const std::uint64_t partition = chunks_.partition_of(chunk);
        if (--left_[partition] != 0) continue;
        --partitions_left_;
        // For kernels: the copy of the partition's bytes has ended. Pairs with reached_acquire() in look.
        if (auto bad = to_.gpus->post_words(flags() + partition, epoch_, 1, to_.device); !bad.ok()) return bad;
    }
    return {};
}

status staged_delivery::step(std::uint64_t epoch, bool to_kernels) {
    to_kernels_ = to_kernels;
    if (epoch != epoch_) begin(epoch);
    if (whole_ == epoch) return {};
    if (auto bad = start_copies(); !bad.ok()) return bad;
    status first;
    std::erase_if(copies_, [&](copy &c) {
        status bad;
        if (!c.transfer->finished(bad)) return false;
        if (bad.ok()) bad = finish(c);
        if (first.ok()) first = bad;
        return true;
    });
    if (!first.ok() || partitions_left_ != 0) return first;
    // Kernels that remember this epoch as the running one must find it over before the host can start another (look).
    if (auto bad = to_.gpus->post_words(flags() + chunks_.partitions, epoch_, 1, to_.device); !bad.ok()) return bad;
    if (auto bad = to_.gpus->flush_words(to_.device); !bad.ok()) return bad;
    whole_ = epoch;
    return {};
}

status staged_delivery::tell_never() {
    const std::uint64_t never = MPIX_NEVER;
    return to_.gpus->write(flags() + chunks_.partitions, &never, sizeof never, to_.device);
}

}  // namespace mpix
