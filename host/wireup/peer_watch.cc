// SPDX-License-Identifier: BSD-3-Clause
#include "host/wireup/peer_watch.h"

#include <mutex>

#include "host/request/upcalls.h"
#include "host/wireup/state.h"

namespace mpix {
namespace {

void fail_requests_with(int world_rank) {
    // What the process sent may have arrived without having been taken from the network yet.
    transport::network *const network = transport::network_in_use();
    try_step([network] {
        for (int round = 0; network != nullptr && round < 1000 && network->progress();) ++round;
    });
    transport::safe_vector<std::uint64_t> unneeded;
    for (const auto &[number, r] : setup().live) {
        if (r->peer_world() != world_rank) continue;
        if (r->freed) unneeded.push_back(number);
        r->peer_ended();
        update_waiting(*r);
    }
    if (network != nullptr) network->give_up(world_rank);
    for (const std::uint64_t number : unneeded) forget_request(number);
    setup().order.remove_source(world_rank);
    std::erase_if(setup().in_doubt_since, [world_rank](const auto &entry) { return entry.first.source == world_rank; });
}

}  // namespace

// Check the processes of peers whose epoch has been running for a while. While epochs complete, the system is not
// asked.
void watch_peers() {
    setup_state &s = setup();
    const std::int64_t now = coarse_ms();
    if (now < s.next_watch_ms) return;
    s.next_watch_ms = now + watch_period_ms;
    transport::safe_set<int> suspects;
    std::int64_t longest_ms = 0;
    for (const auto &[number, r] : s.live) {
        if (r->in_same_epoch_still()) suspects.insert(r->peer_world());
        // Of two the receive, for which kernels wait.
        const std::int64_t ms = r->unmatched_ms(now);
        if (ms > longest_ms || (ms != 0 && ms == longest_ms && r->kind == MPIX_KIND_RECV)) {
            longest_ms = ms;
            s.longest_unmatched = number;
        }
    }
    s.unmatched_ms.store(longest_ms, std::memory_order_relaxed);
    transport::network *const network = transport::network_in_use();
    for (const int world_rank : suspects) {
        const bool lost = network != nullptr && !network->lost(world_rank).ok();
        if (lost) s.processes.give_up(world_rank);
        if (lost || s.processes.ended(world_rank)) fail_requests_with(world_rank);
    }
}

void take_reported_ends() {
    setup_state &s = setup();
    if (!s.end_reported.load(std::memory_order_acquire)) return;  // pairs: H8
    transport::safe_vector<int> ended;
    {
        const std::lock_guard lock(s.ends_mutex);
        ended.swap(s.reported_ends);
        s.end_reported.store(false, std::memory_order_release);  // pairs: H8
    }
    for (const int world_rank : ended) {
        s.processes.note_end(world_rank);
        fail_requests_with(world_rank);
    }
}

void report_end_of(int world_rank) {
    setup_state &s = setup();
    const std::lock_guard lock(s.ends_mutex);
    s.reported_ends.push_back(world_rank);
    s.end_reported.store(true, std::memory_order_release);  // pairs: H8
}

bool process_has_ended(int world_rank) {
    const std::lock_guard lock(setup_mutex());
    return setup().processes.ended(world_rank);
}

std::shared_ptr<request> longest_unmatched(double least, double &waited) {
    setup_state &s = setup();
    const auto least_ms = static_cast<std::int64_t>(1e3 * least);
    if (s.unmatched_ms.load(std::memory_order_relaxed) <= least_ms) return nullptr;
    const std::lock_guard lock(setup_mutex());
    const auto it = s.live.find(s.longest_unmatched);
    if (it == s.live.end()) return nullptr;
    const std::int64_t ms = it->second->unmatched_ms(coarse_ms());  // it may have been matched since
    waited = 1e-3 * static_cast<double>(ms);
    return ms > least_ms ? it->second : nullptr;
}

}  // namespace mpix
