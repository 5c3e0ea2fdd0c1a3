// SPDX-License-Identifier: BSD-3-Clause
//
// How control messages travel: within a node through shared memory (fifo.h), else on a communicator of our own, and
// behind what we have put into the peer's memory by a network. And by which address a network reaches a process: told, and
// learnt, in pieces.
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

// The caller serialises all but holds_any().
class control_channel {
public:
    // Nothing is sent to those that have ended.
    explicit control_channel(process_table &processes) : processes_(processes) {}

    // Collective over MPI_COMM_WORLD.
    void open();
    // A barrier of its processes.
    void begin_barrier(MPI_Request &out);
    // What is not sent yet will not be.
    void forget();
    // Behind a barrier that all have come to: takes what is on its way to us and throws it away. True once all that
    // anybody had to send has left. Asked again and again, by all processes.
    bool emptied();
    // When it is empty.
    void close();

    // What says that we touch the peer's memory no more leaves after all that we have put there has arrived, and whatever
    // comes later stays behind it.
    void send(int world_rank, const control_message &message);
    // The next one that has come; false: there is none. Without memory for what an answer needs it throws, and the message stays.
    bool receive(int &source, control_message &out);
    // Get on with sending.
    void advance();
    // Whether any message waits: for what was put before, for room at its receiver, or for a thread that may call MPI. Any thread
    // may ask.
    bool holds_any() const { return holding_.load(std::memory_order_acquire) != 0; }  // pairs: H6

    // Whether the MPI library takes that datatype for communication. Any thread may ask.
    bool takes(MPI_Datatype datatype) const;

    // Let that process know how the network reaches us; once.
    transport::outcome introduce_to(int world_rank, transport::network &network);
    void take_introduction(int source, const control_message &piece);

private:
    void clear_sent();
    void fill_outboxes();
    void post(int world_rank, const control_message &message);
    void post_by_mpi(int world_rank, const control_message &message);
    void post_left();
    bool take_next(int &source, control_message &out);
    bool receive_by_mpi(int &source, control_message &out);
    void post_receive();
    void release_held();
    bool meet_introduced();

    process_table &processes_;
    MPI_Comm comm_ = MPI_COMM_NULL;  // ours alone: no tag or wildcard of the user's ever sees it
    control_message incoming_{};
    MPI_Request receiving_ = MPI_REQUEST_NULL;
    bool came_ = false;  // a message that has not been given to the caller yet:
    int came_from_ = 0;
    control_message message_that_came_{};
    struct outgoing {
        control_message message;
        MPI_Request request;
    };
    std::list<outgoing, transport::reserve_allocator<outgoing>> sending_;
    struct addressed {
        int world_rank;
        control_message message;
    };
    transport::safe_deque<addressed> left_to_callers_;  // by the progress thread, which may not call MPI
    bool all_sent_ = false;                             // and what says whether the others' has been sent as well:
    MPI_Request emptied_ = MPI_REQUEST_NULL;

    // Of processes on other nodes.
    struct held {
        std::unique_ptr<transport::transfer> flush;  // which the first message waits for; null: it could not be begun
        transport::safe_deque<control_message> messages;
    };
    transport::safe_map<int, held> held_;
    transport::safe_map<int, transport::safe_deque<control_message>> overflow_;  // of full outboxes
    std::atomic<std::size_t> holding_{0};  // the size of the two and of left_to_callers_
    transport::safe_set<int> introduced_to_;
    struct introduction {
        transport::safe_vector<std::uint8_t> address;
        std::uint64_t bytes = 0;  // once it is whole
        std::int32_t network = 0;
    };
    transport::safe_map<int, introduction> introductions_;  // not whole, or not known to the network yet
};

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_CHANNEL_H
