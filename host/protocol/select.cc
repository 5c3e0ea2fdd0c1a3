// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/select.h"

#include <mpix/impl/work_queue/post.cuh>

#include <algorithm>

#include "host/format.h"
#include "host/protocol/rget.h"
#include "host/staging/chunks.h"

namespace mpix {
namespace {

reason why_not_posted(const outgoing_route &route) {
    if (!route.remote) return "it is for peers on other nodes";
    if (route.rematched) return "callers may remember an earlier route";
    if (route.bytes == 0) return "the message is empty";
    if (route.to_gpu) return "the network puts it into GPU memory";
    if (route.in_chunks) return {"the receiver's GPU is given the message in chunks of {} KiB", chunk_bytes / 1024};
    if (route.from_gpu && least_posting_threads(route.partition_bytes) > most_block_threads)
        return format("a partition has more than {} bytes for each of {} threads", detail::most_staged_per_thread,
                      most_block_threads);
    if ((route.from_gpu || route.gaps) && route.bytes > most_staged)
        return {"the message has more than the {} MiB that are put into page-locked memory for it",
                most_staged / (1024 * 1024)};
    return {};
}

}  // namespace

std::uint64_t least_posting_threads(std::uint64_t partition_bytes) {
    constexpr std::uint64_t each = detail::most_staged_per_thread;
    return std::max<std::uint64_t>(partition_bytes / each + (partition_bytes % each != 0), 1);
}

reason why_no_single_copy(const single_copy &pair) {
    if (pair.sender_on_gpu) return "the send buffer is GPU memory";
    if (pair.least == 0) return "MPIX_SINGLE_COPY_BYTES is 0";
    if (pair.partition_bytes < pair.least)
        return {"a partition has less than {} bytes (MPIX_SINGLE_COPY_BYTES)", pair.least};
    if (pair.sender_gaps) return "the send buffer has gaps";
    if (pair.receiver_gaps) return "the receive buffer has gaps";
    return pair.unreached;
}

std::string why_staged(const gpu_end &end) {
    if (!end.on_gpu) return {};
    if (!end.network_cannot.ok()) return end.network_cannot.message();
    if (end.gaps) return "the buffer has gaps";
    return end.empty ? "the message is empty" : "";
}

std::string why_staged(const gpu_end &receiver, bool sender_can) {
    const std::string here = why_staged(receiver);
    if (!here.empty() || !receiver.on_gpu || sender_can) return here;
    return "the sender's network cannot put into GPU memory, or its buffer has gaps there";
}

movement choose_movement(const outgoing_route &route) {
    movement m;
    if (route.remote)
        m.engine = mover::network;
    else if (!route.from_gpu && !route.to_gpu)
        m.engine = route.in_place ? mover::system : mover::cpu;
    else if (route.landing_gaps || (route.from_gpu && route.gaps))
        m.engine = mover::kernel;
    else
        m.engine = mover::copy_engine;
    // A CPU packs while it stores; the other movers cannot, and need packed bytes.
    m.packed_first = route.gaps && !route.from_gpu && m.engine != mover::cpu;
    m.by_caller = (m.engine == mover::cpu || m.engine == mover::system) && !route.rematched;
    m.forwarded = route.forwarded;
    m.by_kernels = route.from_gpu && route.to_gpu && !route.remote && !route.rematched && !route.flags_far;
    m.too_many = route.from_gpu && route.flags_far;
    m.typed_only = m.by_kernels && (route.gaps || route.landing_gaps);
    m.by_inline = m.by_kernels && route.inline_buffer;
    m.no_rget = route.no_rget;
    if (m.by_kernels && m.no_rget.empty()) m.rget_bytes = route.rget_bytes;
    if (route.remote && route.from_gpu) m.staged = route.staged;
    if (m.engine == mover::cpu) m.two_copies = route.two_copies;
    m.not_posted = why_not_posted(route);
    return m;
}

std::array<slot_range, 2> slot_ranges(std::uint64_t eager_bytes) {
    constexpr std::uint64_t no_limit = ~std::uint64_t{0};
    return {{{0, eager_bytes, 2}, {eager_bytes == no_limit ? no_limit : eager_bytes + 1, no_limit, 1}}};
}

std::uint64_t slots_for(std::uint64_t bytes, std::uint64_t eager_bytes) {
    for (const slot_range &range : slot_ranges(eager_bytes))
        if (bytes <= range.most) return range.slots;
    return 1;
}

}  // namespace mpix
