// SPDX-License-Identifier: BSD-3-Clause
//
// How control messages travel: within a node through shared memory (fifo.h), between nodes on a communicator of our
// own. A message that gives up access to the peer's memory waits until our puts to that peer have arrived.
// Introductions, which carry the address by which a network reaches a process, also travel here, in pieces.
#ifndef MPIX_HOST_CONTROL_CHANNEL_H
#define MPIX_HOST_CONTROL_CHANNEL_H

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>

#include "host/control/message.h"
#include "host/control/peers.h"
#include "transport/reserve.h"
#include "transport/select.h"

namespace mpix {

// The caller serialises all calls but holds_any().
class control_channel {
public:
    // Processes that have ended are sent nothing.
    explicit control_channel(process_table &processes) : processes_(processes) {}

    // Collective over MPI_COMM_WORLD.
    void open();
    // A barrier of the processes of this communicator.
    void begin_barrier(MPI_Request &out);
    // Drops everything that has not been sent yet.
    void forget();
    // All processes call this repeatedly after a barrier. It receives what is on its way to this process, and discards
    // it. True once everything that any process had to send has left.
    bool emptied();
    // Only after emptied() has returned true.
    void close();

    // A DETACH or WITHDRAW leaves only after all our puts to that peer have arrived. Later messages to the peer wait
    // behind it.
    void send(int world_rank, const control_message &message);
    // The next message that has arrived, until the next call; null: there is none. Throws where there is no memory for
    // what an answer needs; the message then stays.
    const control_message *receive(int &source);
    // Continues sending.
    void advance();
    // Whether any message waits: for a flush, for room at its receiver, or for a thread that may call MPI. Any thread
    // may ask.
    bool holds_any() const { return holding_.load(std::memory_order_acquire) != 0; }  // pairs: H6

    // Whether the MPI library accepts the datatype for communication. Any thread may ask.
    bool takes(MPI_Datatype datatype) const;

    // Tells that process, once, how the network reaches this one.
    status introduce_to(int world_rank, transport::network &network);
    void take_introduction(int source, const introduce_body &part);

private:
    void clear_sent();
    void fill_outboxes();
    void post(int world_rank, const control_message &message);
    void post_packet(int world_rank, const control_packet &packet);
    void post_by_mpi(int world_rank, const control_packet &packet);
    void post_left();
    const control_message *take_next(int &source);
    bool receive_by_mpi(int &source, control_message &out);
    void post_receive();
    void release_held();
    bool meet_introduced();

    process_table &processes_;
    MPI_Comm comm_ = MPI_COMM_NULL;  // ours alone: no tag or wildcard of the user's ever sees it
    control_packet incoming_{};
    MPI_Request receiving_ = MPI_REQUEST_NULL;
    bool came_ = false;  // a message that has not been given to the caller yet:
    int came_from_ = 0;
    const control_message *message_that_came_ = nullptr;
    control_message decoded_{};
    // Of this process to itself: they are not encoded. The first one may be with the caller of receive().
    std::list<control_message, transport::reserve_allocator<control_message>> to_itself_;
    bool first_was_taken_ = false;
    struct outgoing {
        control_packet packet;
        MPI_Request request;
    };
    std::list<outgoing, transport::reserve_allocator<outgoing>> sending_;
    struct addressed {
        int world_rank;
        control_packet packet;
    };
    transport::safe_deque<addressed> left_to_callers_;  // left by the progress thread, which may not call MPI
    bool all_sent_ = false;                             // by this process; `emptied_`: by all
    MPI_Request emptied_ = MPI_REQUEST_NULL;

    // For processes on other nodes.
    struct held {
        std::unique_ptr<transport::transfer> flush;  // the first message waits for it; null: no memory to begin it
        transport::safe_deque<control_message> messages;
    };
    transport::safe_map<int, held> held_;
    transport::safe_map<int, transport::safe_deque<control_packet>> overflow_;  // outbox is full
    std::atomic<std::size_t> holding_{0};  // held_, overflow_ and left_to_callers_ together
    transport::safe_set<int> introduced_to_;
    struct introduction {
        transport::safe_vector<std::uint8_t> address;
        std::uint64_t bytes = 0;  // 0 until the address is complete
        transport::transport_id network = transport::id_none;
    };
    transport::safe_map<int, introduction> introductions_;  // incomplete, or the network has yet to be told
};

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_CHANNEL_H
