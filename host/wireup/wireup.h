// SPDX-License-Identifier: BSD-3-Clause
//
// The setup of pairs: what becomes of the control messages that come, matching, and the burial of freed requests whose
// memory a peer may still touch.
#ifndef MPIX_HOST_WIREUP_WIREUP_H
#define MPIX_HOST_WIREUP_WIREUP_H

#include <map>
#include <memory>
#include <string>

#include "host/request/request.h"
#include "host/request/upcalls.h"
#include "transport/reserve.h"

namespace mpix {

// Between MPI_Init and MPI_Finalize. `thread_safe`: the MPI library may be called from any thread; `one_thread`: the
// user has one only.
void start_setup(bool thread_safe, bool one_thread);
// Collective; answers peers until all have come here, or one is found to have ended.
void stop_setup();

// Whether MPI_Type_commit was called for it, as far as the MPI library tells; before setup it does not.
bool is_committed(MPI_Datatype datatype);
inline problem not_committed() { return {MPI_ERR_TYPE, "datatype is not committed; call MPI_Type_commit first"}; }

// A new request joins: a send is offered to its receiver, a receive waits for an offer.
void join(const std::shared_ptr<request> &r);
// The user has freed it. It lives on until the peer can no longer touch its memory.
void leave(const std::shared_ptr<request> &r);

// Receive and answer control messages, if no other thread is at it.
void poll_setup();
// Whether any request waits for a control message.
bool setup_pending();

// For inquiry.cc; setup_mutex is held.
const transport::safe_map<std::uint64_t, std::shared_ptr<request>> &live_requests();
const transport::safe_map<std::uint64_t, offer> &offers_here();

}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_WIREUP_H
