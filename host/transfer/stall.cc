// SPDX-License-Identifier: BSD-3-Clause
//
// Stall reports: how this process and its peer describe a request that waits. report.cc makes the line.
#include <mpix/device.cuh>

#include <algorithm>

#include "host/format.h"
#include "host/request/upcalls.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"

namespace mpix {

std::string request::standing() {
    const std::lock_guard lock(engine);
    follow_kernels_locked();
    if (epoch_ == 0) return "not called MPI_Start";
    if (!active()) return format("completed epoch {}, but not called MPI_Start since", epoch_);
    return format("called MPI_Start {}{}", times(epoch_), done_so_far());
}

// By the host's Pready, and by pready of host threads.
std::vector<int> send_request::not_ready() const {
    std::vector<int> partitions;
    const std::uint64_t *const state = detail::partition_states(home);
    for (int p = 0; p < op.partitions; ++p)
        if (detail::load_relaxed(&state[p]) != epoch_) partitions.push_back(p);
    return partitions;
}

std::string send_request::done_so_far() {
    if (device != nullptr) return "; kernels mark its partitions ready";
    const std::vector<int> missing = not_ready();
    if (missing.empty()) return format("; all partitions of epoch {} are ready", epoch_);
    return format("; {} of {} partitions not ready: {}", missing.size(), op.partitions, ranges(missing, 6));
}

bool send_request::lacks_partitions() {
    if (detail::load_acquire(&words->all_ready) >= epoch_) return false;  // pairs: D2
    if (device == nullptr) return !not_ready().empty();
    const auto n = static_cast<std::uint64_t>(op.partitions);
    const auto by_host = static_cast<std::uint64_t>(std::count(host_readied_.begin(), host_readied_.end(), true));
    std::uint64_t by_kernels = 0;
    return !device->ready_count(by_kernels).ok() || by_kernels + by_host < epoch_ * n;
}

stall send_request::describe_stall() {
    const std::scoped_lock lock(setup_mutex(), engine);
    follow_kernels_locked();
    stall s = stall_so_far("send", "not ready");
    if (device == nullptr) {
        s.missing = not_ready();
    } else {
        std::uint64_t readied = 0;
        if (device->ready_count(readied).ok())
            s.remark =
                format("{} of {} partitions are ready",
                       readied + host_share_ - (epoch_ - 1) * static_cast<std::uint64_t>(op.partitions), op.partitions);
    }
    if (!s.remark.empty()) s.remark += "; ";
    const std::uint64_t clear = detail::load_relaxed(&words->clear_to_send);
    if (!connected)
        s.remark += "no matching receive has been found";
    else if (peer_gone)
        s.remark += format("rank {} has freed its receive", op.peer);
    else if (clear >= epoch_)
        s.remark += "the receiver has called MPI_Start";
    else if (clear == 0)
        s.remark += "the receiver has not called MPI_Start";
    else
        s.remark += format("the receiver has called MPI_Start {}, but not for this epoch", times(clear));
    if (const auto rts = std::count_if(moving_.begin(), moving_.end(), [](const move &m) { return m.rts; }); rts != 0)
        s.remark += format("; {} were offered to the receiver's kernels, which have not read them", rts);
    if (route_ != nullptr && route_->in_place()) {
        const std::uint64_t *const taken = route_->taken();
        const auto read = std::count_if(taken, taken + op.partitions, [this](const std::uint64_t &state) {
            return detail::load_relaxed(&state) == 2 * epoch_ - 1;
        });
        if (read != 0) s.remark += format("; {} partitions are being copied", read);
    }
    if (!connected && !setup_in_background())
        s.remark += " (the MPI library gave no MPI_THREAD_MULTIPLE: setup progresses only in MPI calls)";
    if (!connected) s.peer = peer_says(*this);
    return s;
}

stall receive_request::describe_stall() {
    const std::scoped_lock lock(setup_mutex(), engine);
    follow_kernels_locked();
    stall s = stall_so_far("receive", "not arrived");
    s.peer = peer_says(*this);
    if (peer_number == 0) {
        s.remark = freed_by_sender_
                       ? format("rank {} has freed its send, and no other matching send has been found", op.peer)
                       : "no matching send has been found";
        if (!setup_in_background())
            s.remark += " (the MPI library gave no MPI_THREAD_MULTIPLE: setup progresses only in MPI calls)";
        return s;
    }
    if (peer_gone) {
        s.remark = format("rank {} has freed its send", op.peer);
        s.peer.clear();  // what else it has
    } else if (!connected) {
        s.remark = "the sender has not answered yet";
    }
    if (refusal_ != refused_not || route_ == nullptr) {
        s.remark = failure_.message();
        return s;
    }
    const std::uint64_t senders = route_->peer_partitions;
    if (delivery() != nullptr) {
        seen_flags_.resize(senders);
        for (std::uint64_t i = 0; i < senders; ++i) seen_flags_[i] = delivery()->delivered(i, epoch_) ? epoch_ : 0;
    } else if (flags_on_device()) {
        if (!snapshot().ok()) return s;
    } else {
        seen_flags_.resize(senders);
        for (std::uint64_t i = 0; i < senders; ++i) seen_flags_[i] = detail::load_relaxed(&home->flags[i]);
        if (route_->in_place()) {
            const auto copied = [&](std::uint64_t i) { return detail::load_relaxed(&route_->taken[i]) >= 2 * epoch_; };
            if (std::all_of(seen_flags_.begin(), seen_flags_.end(), [&](std::uint64_t f) { return f >= epoch_; }))
                s.remark += "all partitions are ready, and the system has not copied these";
            for (std::uint64_t i = 0; i < senders; ++i)
                if (!copied(i)) seen_flags_[i] = 0;
        }
    }
    for (int j = 0; j < op.user_partitions(); ++j) {
        const detail::overlap range = detail::sender_partitions(home, j, senders);
        for (std::uint64_t i = range.first; i <= range.last; ++i)
            if (seen_flags_[i] < epoch_) {
                s.missing.push_back(j);
                break;
            }
    }
    return s;
}

}  // namespace mpix
