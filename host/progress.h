// SPDX-License-Identifier: BSD-3-Clause
//
// Progress: in every MPI call of ours, and by a thread that sleeps while there is nothing to do.
#ifndef MPIX_HOST_PROGRESS_H
#define MPIX_HOST_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "host/report.h"

namespace mpix {

class request;

// When the thread looks: at once, if it is not busy; or soon, within some 200 us, which takes the caller less time.
enum class thread_looks { at_once, soon };
// This request needs the engine until its advance() says otherwise.
void progress_attend(const std::shared_ptr<request> &r, thread_looks when = thread_looks::at_once);
// Something has changed that the sleeping thread should look at, soon.
void progress_wake();
// Something is under way that ends soon: no naps meanwhile.
void progress_busy();
// One round: control messages, and some of the attended requests, in turn.
void progress_poll();
// The same, by a call that has found nothing complete. Programs repeat such calls, so now and then this yields the core.
// If a round took more than 20 us and did nothing, this thread's further calls return at once for as long, at most 10 ms.
void progress_after_miss();

// The thread's, where it looks for what kernels leave to it, unless MPIX_PROGRESS is always.
constexpr unsigned longest_pause_us = 500;

void start_progress();
void stop_progress();

using wait_clock = std::chrono::steady_clock;
double seconds_since(wait_clock::time_point start);

// Make progress until `done`, but no longer than the configured deadline after `since`, when the call began; then the
// state of `waits_for` is reported. Before that, a long wait prints one notice, and asks the request's peer for its
// state. Success once `done`.
status progress_until(const char *call, wait_clock::time_point since, const std::function<bool()> &done,
                      const std::function<request &()> &waits_for);

// Calls of this process that have had to wait in it, those that still do included; and for how long, as far as
// time_waits() was asked for.
struct waits_so_far {
    std::uint64_t calls, nanoseconds;
};
waits_so_far count_waits();
// The time of waits that begin from now on is measured, as long as anybody wants that: +1 to begin with, -1 to end.
void time_waits(int more);

// Wait for what ends by itself, a copy of the engine or a kernel of ours, but no longer than the configured deadline;
// then it is said that `what` has not ended, and the answer is false: what it works with must not be given back.
bool outlast(const char *what, const std::function<bool()> &ended);

// Whether the calling thread may call the MPI library: the progress thread, only with MPI_THREAD_MULTIPLE.
bool may_call_mpi();

// Whether a blocking call of the MPI library would keep our own work waiting (no thread does it).
bool progress_needs_caller();
// The same, but regardless of whether there is work now.
bool progress_is_callers();

}  // namespace mpix

#endif  // MPIX_HOST_PROGRESS_H
