// SPDX-License-Identifier: BSD-3-Clause
//
// The setup of pairs: what becomes of the control messages that come, matching, and the burial of freed requests whose
// memory a peer may still touch.
#ifndef MPIX_HOST_REQUEST_SETUP_H
#define MPIX_HOST_REQUEST_SETUP_H

#include <map>
#include <memory>
#include <string>

#include "host/request/control.h"
#include "host/request/request.h"
#include "transport/reserve.h"

namespace mpix {

// Between MPI_Init and MPI_Finalize. `thread_safe`: the MPI library may be called from any thread; `one_thread`: the
// user has one only.
void start_setup(bool thread_safe, bool one_thread);
// Collective; answers peers until all have come here, or one is found to have ended.
void stop_setup();
bool setup_running();
// Whether the MPI library was given to us with MPI_THREAD_MULTIPLE.
bool setup_thread_safe();
// Whether the progress thread can do all of it: with MPI_THREAD_MULTIPLE, or where no control message goes by MPI, since all
// processes share memory.
bool setup_in_background();
// Whether the user asked for MPI_THREAD_SINGLE: no two of his threads are ever in a call of ours.
bool one_thread_calls();

// Whether MPI_Type_commit was called for it, as far as the MPI library tells; before setup it does not.
bool is_committed(MPI_Datatype datatype);
inline problem not_committed() { return {MPI_ERR_TYPE, "datatype is not committed; call MPI_Type_commit first"}; }

// A new request joins: a send is offered to its receiver, a receive waits for an offer.
void join(const std::shared_ptr<request> &r);
// The user has freed it. It lives on until the peer can no longer touch its memory.
void leave(const std::shared_ptr<request> &r);
// It has been started for the first time.
void first_start(request &r);
// Both sides have started it: neither will withdraw.
void first_epoch_over(request &r);

// Receive and answer control messages, if no other thread is at it.
void poll_setup();
// Whether any request waits for a control message.
bool setup_pending();

// For requests, with any locks: that process is found to have ended. Its requests learn of it in the next poll_setup.
void met_end_of(int world_rank);

// For requests; setup_mutex is held. As control_channel.h says.
void send_control(int world_rank, control_message message);
// By which network that process is reached; null if it shares memory with us, or, with a sentence in `why_not`, if there
// is none.
transport::network *network_to(int world_rank, transport::outcome &why_not);
// How to write to that process's own memory; null, with a sentence, if that cannot be done.
const transport::peer_memory *memory_of(int world_rank, transport::outcome &why_not);
// Before it is told of any memory of ours.
transport::outcome introduce_to(int world_rank, transport::network &network);

// A send of another process, as its OFFER told of it: kept until it is withdrawn or both sides have freed the pair.
struct offer {
    match_key key;
    std::uint64_t number;  // the sender's own
    int partitions;
    std::uint64_t bytes;
    bool has_devices, in_place, gpu_put, inline_packed, inline_to_gaps, pull;
    transport::wire_region words;
    transport::wire_region buffer, wanted;  // with `pull`
    transport::safe_string no_network;      // why it is not by network, if that is what we would need
    std::uint64_t receiver = 0;             // the receive that it is bound to
};

// For inquiry.cc; setup_mutex is held.
const transport::safe_map<std::uint64_t, std::shared_ptr<request>> &live_requests();
const transport::safe_map<std::uint64_t, offer> &offers_here();

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_SETUP_H
