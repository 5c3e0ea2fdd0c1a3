// SPDX-License-Identifier: BSD-3-Clause
//
// A receive that kernels ask for partitions: what they are given of its route. setup_mutex and engine are held.
#include <cstdint>
#include <utility>

#include "host/export/device_request.h"
#include "host/protocol/rget.h"
#include "host/transfer/receive.h"

namespace mpix {

status receive_request::install_on_device() {
    device_route given;
    given.flags = delivery() != nullptr ? delivery()->flags() : route_->flags;
    given.slots = route_->slots;
    given.peer_partitions = route_->peer_partitions;
    if (route_->inline_buffer) {
        if (inline_drain_ == nullptr) {
            auto made = std::make_unique<inline_drain>(device->gpus(), device->device(), route_->peer_partitions);
            if (auto bad = made->allocate(); !bad.ok()) return bad;
            inline_drain_ = std::move(made);
        }
        char *const arrival = static_cast<char *>(route_->arrival->region.address);
        given.taken = reinterpret_cast<std::uint64_t *>(arrival + route_->inline_buffer.taken);
        given.inline_buffer = arrival + route_->inline_buffer.packets;
        given.told = inline_drain_->told_by_kernels();
    }
    words_view_ = nullptr;
    if (sender_gpu_ != nullptr) given.kernel_clear_to_send = sender_gpu_->clear_to_send();
    // Only page-locked memory that may stay so: see sender_memory.cc. Where the engine delivers, it also gives
    // clear-to-send.
    if (words_->link.wire == nullptr && words_->region.lasting && delivery() == nullptr) {
        const status bad = gpu_view::acquire(device->gpus(), words_->region, device->device(), words_view_);
        if (route_->by_rget) why_no_view_ = bad.message();
        if (words_view_ != nullptr) {
            char *const view = static_cast<char *>(words_view_->address());
            given.peer_clear_to_send = &reinterpret_cast<mpix_words *>(view)->clear_to_send;
            // Without a view no kernel asks for anything, so nothing is offered.
            if (route_->by_rget) {
                given.wanted = sender_gpu_->wanted();
                given.peer_buffer = static_cast<const char *>(sender_gpu_->buffer.address);
                given.answers = reinterpret_cast<std::uint64_t *>(view + answers_in_words(route_->peer_partitions));
            }
        }
    }
    return device->install(given);
}

status receive_request::export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors) {
    if (status bad = made->make(source(), epoch_, contributors); !bad.ok()) return bad;
    device = std::move(made);
    if (flags_on_device() || delivery() != nullptr)
        if (auto bad = install_on_device(); !bad.ok()) {
            words_view_ = nullptr;
            made = std::move(device);
            return bad.of_class(MPI_ERR_OTHER);
        }
    return {};
}

std::unique_ptr<device_copy> receive_request::end_export() {
    words_view_ = nullptr;
    // The sender's kernels continue to use the inline buffer.
    if (takes_inline_ && (takers_.empty() || inline_drain_->busy())) {
        device->end();
        takers_.push_back(std::move(device));
        return nullptr;
    }
    return std::move(device);
}

}  // namespace mpix
