// SPDX-License-Identifier: BSD-3-Clause
//
// Wire-up, the setup of pairs: control messages are handled, requests matched, and freed requests kept until their peer
// can no longer touch their memory.
#ifndef MPIX_HOST_WIREUP_WIREUP_H
#define MPIX_HOST_WIREUP_WIREUP_H

#include <memory>

#include "host/request/request.h"
#include "host/request/upcalls.h"

namespace mpix {

// What MPI_Init has found out.
struct init_facts {
    bool thread_safe = false;    // the MPI library may be called from any thread
    bool one_thread = false;     // the user has only one
    bool told_one_node = false;  // the launcher has told this process that the whole job runs on its node
};
// Called in MPI_Init. Collective.
void start_setup(const init_facts &found);
// Called in MPI_Finalize. Collective: answers peers until all have called it, or one is found to have ended.
void stop_setup();

// Whether MPI_Type_commit was called for the datatype, as far as the MPI library tells; always true before setup.
bool is_committed(MPI_Datatype datatype);
inline status not_committed() { return failure(MPI_ERR_TYPE, "datatype is not committed; call MPI_Type_commit first"); }

// A new request takes part: a send is offered to its receiver, a receive waits for an offer.
void join(const std::shared_ptr<request> &r);
// The user has freed it. The request lives on until the peer can no longer touch its memory.
void leave(const std::shared_ptr<request> &r);

// Receive and answer control messages, unless another thread is doing so.
void poll_setup();
// Whether any request waits for a control message.
bool setup_pending();
}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_WIREUP_H
