// SPDX-License-Identifier: BSD-3-Clause
#include "host/export/inline_drain.h"

#include <mpix/device.cuh>

#include <utility>

#include "device/kernels/drain.h"
#include "host/export/device_request.h"
#include "host/gpu_pending.h"
#include "host/progress.h"
#include "host/protocol/rget.h"
#include "transport/select.h"

namespace mpix {
namespace {

// How much GPU memory the inline buffer of one request may take.
constexpr std::uint64_t most_memory = 64 * 1024 * 1024;
constexpr std::chrono::microseconds time_enough{20};

}  // namespace

inline_buffer_layout inline_buffer_for(std::uint64_t partitions, std::uint64_t partition_bytes,
                                       std::uint64_t most_bytes, bool rget) {
    if (partition_bytes == 0 || partition_bytes > most_bytes) return {};
    const std::uint64_t each = detail::packets_of(partition_bytes) * detail::packet_bytes;
    if (each > most_memory / partitions) return {};
    inline_buffer_layout m;
    m.taken = (partitions + 1) * sizeof(std::uint64_t);  // behind the flags
    const std::uint64_t words = rget ? bytes_with_rts(partitions) : m.taken + partitions * sizeof(std::uint64_t);
    m.packets = (words + 127) / 128 * 128;
    m.all = m.packets + partitions * each;
    return m;
}

bool inline_drain::end() {
    // The kernel reads the inline buffer, and stores to the user's buffer.
    if (!outlast("a kernel that takes partitions out of an inline buffer", [this] { return !busy(); })) {
        draining_.release();
        view_ = nullptr;
        told_ = {};
        return false;
    }
    draining_ = nullptr;
    if (std::exchange(view_, nullptr) != nullptr)
        close_view(told_);
    else if (told_)
        transport::node_memory().release(told_);
    told_ = {};
    return true;
}

status inline_drain::allocate() {
    if (view_ != nullptr) return {};
    if (!told_)
        if (auto bad = transport::node_memory().allocate(senders_ * sizeof(std::uint64_t), transport::on_host, told_);
            !bad.ok())
            return bad;
    void *view = nullptr;
    auto bad = gpus_.acquire_view(told_, device_, view);
    view_ = static_cast<std::uint64_t *>(view);
    return bad;
}

bool inline_drain::told_all(std::uint64_t epoch) {
    if (cursor_epoch_ != epoch) {
        cursor_epoch_ = epoch;
        cursor_ = 0;
    }
    // Pairs with tell_taken.
    const auto *const told = static_cast<const std::uint64_t *>(told_.address);
    while (cursor_ < senders_ && detail::load_acquire(&told[cursor_]) >= epoch) ++cursor_;  // pairs: A4
    return cursor_ == senders_;
}

bool inline_drain::overdue(std::uint64_t epoch) {
    const auto now = std::chrono::steady_clock::now();
    if (seen_epoch_ != epoch) {
        seen_epoch_ = epoch;
        seen_ = next_look_ = now;
    }
    return now - seen_ >= time_enough;
}

bool inline_drain::look_due(std::uint64_t epoch) {
    if (!overdue(epoch)) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return false;
    next_look_ = now + (now - seen_);
    return true;
}

bool inline_drain::busy() {
    status ignored;
    return draining_ != nullptr && !is_finished(*draining_, ignored);
}

status inline_drain::take_rest(mpix_prequest *receive) {
    status bad;
    if (draining_ != nullptr && !is_finished(*draining_, bad)) return {};
    draining_ = nullptr;
    if (!bad.ok()) return bad;
#if MPIX_HAVE_NVCC
    return from_sentence(gpu::start_inline_drain(receive, device_, draining_));
#else
    static_cast<void>(receive);
    return failure("mpix was built without CUDA kernels");
#endif
}

}  // namespace mpix
