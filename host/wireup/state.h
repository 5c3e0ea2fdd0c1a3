// SPDX-License-Identifier: BSD-3-Clause
//
// The tables of the wire-up, private to this room: requests, offers, processes, and who is matched with whom.
#ifndef MPIX_HOST_WIREUP_STATE_H
#define MPIX_HOST_WIREUP_STATE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "host/control/channel.h"
#include "host/control/match_key.h"
#include "host/control/message.h"
#include "host/control/peers.h"
#include "host/request/request.h"
#include "host/request/upcalls.h"
#include "host/wireup/matcher.h"
#include "transport/reserve.h"

namespace mpix {

// The sender's world rank, and its own number of the send.
using send_name = std::pair<int, std::uint64_t>;

// A send of another process, as its OFFER told of it: kept until it is withdrawn or both sides have freed the pair.
struct offer {
    match_key key;
    body_at_rest body;           // of the OFFER; none once the pair is final
    std::uint64_t receiver = 0;  // the receive that it is bound to (receive_request::bound_to)
};

// All guarded by setup_mutex, except the atomics. A step changes several of these together; their memory comes from the
// reserve, so that no step fails half-way.
struct setup_state {
    std::atomic<bool> running{false};
    bool thread_safe = false, one_thread = false;

    matcher order;
    transport::safe_map<match_key, std::int64_t> in_doubt_since;
    transport::safe_map<std::uint64_t, std::shared_ptr<request>> live;  // by number; freed ones until forget_request()
    transport::safe_map<send_name, offer> offers;
    std::uint64_t joined = 0;
    std::atomic<std::size_t> waiting_requests{0};  // requests that wait for a control message

    // Ends of processes, noticed by threads that hold locks under which they may not call us.
    std::mutex ends_mutex;
    transport::safe_vector<int> reported_ends;  // guarded by ends_mutex
    std::atomic<bool> end_reported{false};

    process_table processes;
    control_channel channel{processes};
    std::int64_t next_watch_ms = 0;
    std::uint64_t longest_unmatched = 0;        // of the active requests, by number
    std::atomic<std::int64_t> unmatched_ms{0};  // for how long; a hint to look
};

setup_state &setup();

// setup_mutex is held from here on.

// Count the requests that may need a control message; the progress thread sleeps while there are none. Until the first
// epoch is over, the peer may still withdraw, and another request take its place; this holds for a refused pair as
// well. Freed requests are not counted.
void update_waiting(request &r);

// Takes a request that the user has freed out of the tables, and with it the last reference that they hold.
void forget_request(std::uint64_t number);

// A clock with a resolution of a few milliseconds, which is cheap to read.
std::int64_t coarse_ms();

}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_STATE_H
