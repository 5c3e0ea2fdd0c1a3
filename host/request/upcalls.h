// SPDX-License-Identifier: BSD-3-Clause
//
// What requests call of the layer above them, the wireup of pairs, which does it (host/wireup/wireup.cc).
#ifndef MPIX_HOST_REQUEST_UPCALLS_H
#define MPIX_HOST_REQUEST_UPCALLS_H

#include <cstdint>

#include "host/control/message.h"
#include "transport/select.h"

namespace mpix {

class request;

bool setup_running();
// Whether the MPI library was given to us with MPI_THREAD_MULTIPLE.
bool setup_thread_safe();
// Whether the progress thread can do all of it: with MPI_THREAD_MULTIPLE, or where no control message goes by MPI,
// since all processes share memory.
bool setup_in_background();
// Whether the user asked for MPI_THREAD_SINGLE: no two of his threads are ever in a call of ours.
bool one_thread_calls();

// It has been started for the first time.
void first_start(request &r);
// Both sides have started it: neither will withdraw.
void first_epoch_over(request &r);

// For requests, with any locks: that process is found to have ended. Its requests learn of it in the next poll_setup.
void report_end_of(int world_rank);

// As far as is known here; asks the system. Takes setup_mutex.
bool process_has_ended(int world_rank);

// For requests; setup_mutex is held. As channel.h says.
void send_control(int world_rank, const control_message &message);
// By which network that process is reached; null if it shares memory with us, or, with a failure in `why_not`, if there
// is none.
transport::network *network_to(int world_rank, status &why_not);
// How to write to that process's own memory; null, with a failure, if that cannot be done.
const transport::peer_memory *memory_of(int world_rank, status &why_not);
// Before it is told of any memory of ours.
status introduce_to(int world_rank, transport::network &network);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_UPCALLS_H
