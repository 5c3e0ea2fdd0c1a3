// SPDX-License-Identifier: BSD-3-Clause
//
// The waits of MPI_Finalize for all processes.
#ifndef MPIX_HOST_WIREUP_WAIT_FOR_ALL_H
#define MPIX_HOST_WIREUP_WAIT_FOR_ALL_H

#include <mpix/device.cuh>

#include "host/config.h"
#include "host/control/peers.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/request/request.h"
#include "host/wireup/peer_watch.h"

namespace mpix {

// Wait until `done`. A long wait prints a stall report that names what is `lacking`. It then gives up, unless
// `how_long` is endless. False: the wait was given up, or a process has ended, so `done` may never become true.
enum class patience { endless, as_configured };
template <class Done>
bool wait_for_all(process_table &processes, patience how_long, const char *lacking, const Done &done) {
    const auto since = wait_clock::now();
    bool reported = false;
    int suspect = -1;
    for (double next_look = 1e-3 * watch_period_ms;;) {
        if (done()) return true;
        const double waited = seconds_since(since);
        detail::pause_waiting(waited * 1e9 > static_cast<double>(detail::long_wait_ns));
        if (waited < next_look) continue;
        next_look = waited + 1e-3 * watch_period_ms;
        const std::lock_guard lock(setup_mutex());
        // A process may end right after its last barrier, before we have seen all that it sent. But then that is here
        // already, and we see it before the next check.
        if (suspect >= 0) {
            say(format("MPI_Finalize does not wait for all: the process of world rank {} has ended without calling it",
                       suspect));
            return false;
        }
        suspect = processes.any_ended();
        if (!reported && config().stall_seconds > 0 && waited > config().stall_seconds) {
            const bool goes_on = how_long == patience::endless;
            say(format("STALL in MPI_Finalize: after {:.1f} s not all processes have {}; {}", waited, lacking,
                       goes_on ? "still waiting" : "it does not wait for them any longer"));
            if (!goes_on) return false;
            reported = true;
        }
    }
}

}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_WAIT_FOR_ALL_H
