// SPDX-License-Identifier: BSD-3-Clause
#include "host/wireup/state.h"

#include <time.h>

namespace mpix {

setup_state &setup() {
    static setup_state *const s = new setup_state;
    return *s;
}

void update_waiting(request &r) {
    const bool waits =
        !r.freed && !(r.connected && r.acquainted) && !setup().processes.known_to_have_ended(r.peer_world());
    if (r.waiting.load(std::memory_order_relaxed) == waits) return;
    r.waiting.store(waits, std::memory_order_relaxed);  // relaxed: it orders no other memory
    if (waits)
        setup().waiting_requests.fetch_add(1, std::memory_order_acq_rel);  // pairs: H7
    else
        setup().waiting_requests.fetch_sub(1, std::memory_order_acq_rel);  // pairs: H7
}

void forget_request(std::uint64_t number) {
    setup_state &s = setup();
    // A peer that may still write here must not hit memory that has been reused, so it is kept to the end. Nor is it
    // freed while a kernel of the library works with it (busy). We must not wait for that kernel: it may be waiting for
    // room on the GPU.
    const auto it = s.live.find(number);
    if (it == s.live.end()) return;
    const request &r = *it->second;
    if (s.processes.may_still_write(r.peer_world()) || it->second->busy()) return;
    if (r.bound_to != 0) s.offers.erase({r.peer_world(), r.bound_to});
    s.live.erase(it);
}

std::int64_t coarse_ms() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

}  // namespace mpix
