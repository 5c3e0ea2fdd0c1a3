// SPDX-License-Identifier: BSD-3-Clause
//
// A send that kernels, or host threads that play them, mark ready: what they are given of its route. setup_mutex and
// engine are held.
#include <mpix/device.cuh>

#include <cstdint>
#include <utility>

#include "host/config.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/request/explain.h"
#include "host/route/sender_memory.h"
#include "host/transfer/send.h"

namespace mpix {

status send_request::install_on_device() {
    device_route given;
    given.slots = route_->slots;
    given.peer_partitions = static_cast<std::uint64_t>(op.partitions);
    const std::shared_ptr<const plan> from = gapless ? nullptr : op.type;
    if (const movement &how = route_->how; how.by_kernels) {
        if (auto bad = gpu_view::acquire(device->gpus(), route_->peer_words, device->device(), words_view_); !bad.ok())
            return bad;
        given.peer_complete = &static_cast<mpix_words *>(words_view_->address())->complete;
        given.flags = static_cast<std::uint64_t *>(route_->arrival.address);
        if (how.forwarded) {
            if (auto bad = gpu_view::acquire(device->gpus(), route_->arrival, device->device(), flags_view_); !bad.ok())
                return bad;
            given.flags = static_cast<std::uint64_t *>(flags_view_->address());
        }
        given.landing = route_->landing_at;
        given.copy_engine_bytes = static_cast<std::uint32_t>(how.to_engine.bytes);
        given.rget_bytes = static_cast<std::uint32_t>(how.rget_bytes);
        given.offload_bytes =
            given.rget_bytes == 0 || (given.copy_engine_bytes != 0 && given.copy_engine_bytes < given.rget_bytes)
                ? given.copy_engine_bytes
                : given.rget_bytes;
        // Where the receiver's engine forwards, it also gives clear-to-send, to our host.
        if (offer_->kernel_words && !how.forwarded) {
            char *const kernel_words = static_cast<char *>(offer_->kernel_words.address);
            given.kernel_clear_to_send = reinterpret_cast<std::uint64_t *>(kernel_words);
            if (given.rget_bytes != 0)
                given.wanted = reinterpret_cast<std::uint64_t *>(kernel_words + wanted_in_kernel_words);
        }
        if (how.by_inline)
            given.inline_buffer = static_cast<char *>(route_->arrival.address) + route_->inline_buffer.packets;
        if (from != nullptr || route_->landing_type != nullptr) {
            if (auto bad = device->place_layouts(from, route_->landing_type, &given.layouts); !bad.ok()) return bad;
            given.flags = reinterpret_cast<std::uint64_t *>(reinterpret_cast<std::uintptr_t>(given.flags) |
                                                            MPIX_FLAGS_WITH_LAYOUTS);
        }
    }
    if (route_->landing.remote) {
        given.postings = enter_queue(device->device());
        if (given.postings != nullptr && from != nullptr)
            if (auto bad = device->place_layouts(from, nullptr, &given.layouts); !bad.ok()) return bad;
    }
    return device->install(given);
}

// If executors cannot post, for lack of memory or because the queue has failed, the engine moves everything.
const mpix_posting *send_request::enter_queue(int executor) {
    leave_queue();
    try_step([&] {
        if (staging_ == nullptr) staging_ = std::make_unique<send_staging>();
        const status bad = make_posting(*this, route_, executor, *staging_, posted_);
        if (!bad.ok() && config().explain) say(format("no work queue to rank {}: {}", op.peer, bad));
        if (posted_ != nullptr) explain_queue(*this, posted_->executed_by);
    });
    return posted_ == nullptr ? nullptr : posted_->message->postings();
}

void send_request::leave_queue() {
    detail::store_pointer(&home->postings, static_cast<const mpix_posting *>(nullptr));
    if (posted_ != nullptr) former_postings_.push_back(std::exchange(posted_, nullptr));
}

// Nobody posts any more. Needs no memory.
void send_request::drop_queue() {
    detail::store_pointer(&home->postings, static_cast<const mpix_posting *>(nullptr));
    posted_ = nullptr;
    former_postings_.clear();
}

// Host threads play kernels from now on (true), or no longer do (false).
void send_request::export_to_host(bool exported) {
    if (!exported) {
        drop_queue();
    } else if (connected && refusal_ == refused_not && route_ != nullptr && route_->landing.remote) {
        if (const mpix_posting *const postings = enter_queue(transport::on_host); postings != nullptr)
            detail::store_pointer(&home->postings, postings);
    }
}

status send_request::export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors) {
    host_readied_.reserve(static_cast<std::size_t>(op.partitions));  // so that Start needs no memory
    if (status bad = made->make(source(), epoch_, contributors); !bad.ok()) return bad;
    device = std::move(made);
    if (connected && refusal_ == refused_not && route_ != nullptr)
        if (auto bad = install_on_device(); !bad.ok()) {
            made = end_export();
            return bad.of_class(MPI_ERR_OTHER);
        }
    return {};
}

std::unique_ptr<device_copy> send_request::end_export() {
    words_view_ = nullptr;
    flags_view_ = nullptr;
    drop_queue();
    std::unique_ptr<device_copy> ended = std::move(device);
    // The host's instance continues where the copy was.
    std::uint64_t *state = detail::partition_states(home);
    for (int p = 0; p < op.partitions; ++p) state[p] = epoch_;
    home->ready_count = epoch_ * static_cast<std::uint64_t>(op.partitions);
    home->defer_count = ring_taken_;
    return ended;
}

}  // namespace mpix
