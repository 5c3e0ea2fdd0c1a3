// SPDX-License-Identifier: BSD-3-Clause
//
// What of an exchange goes by node messages: what this rank sends, what it receives as a carrier for the ranks of its
// node, and what it takes out of what carriers have received.
//
// A rank waits only for starts of other ranks, for what carriers have received, and for what ranks of its node have
// taken out two exchanges before. finish() carries first, and takes afterwards; so with all ranks finishing their
// exchanges in one order, none waits for another in a circle.
#ifndef MPIX_HOST_HALO_EXCHANGE_NODE_EXCHANGE_H
#define MPIX_HOST_HALO_EXCHANGE_NODE_EXCHANGE_H

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "host/halo_exchange/message.h"
#include "host/halo_exchange/node_memory.h"
#include "host/halo_exchange/node_plan.h"
#include "host/progress.h"
#include "transport/status.h"

namespace mpix::halo {

class node_exchange {
public:
    // A message of this rank within a node message.
    struct part {
        message cells;
        int carrier = 0;
        MPI_Request request = MPI_REQUEST_NULL;  // the one that is used first, if this rank has it
        double arrival_seconds = 0;              // of all exchanges together, if they are timed
    };

    node_exchange() = default;
    node_exchange(const node_exchange &) = delete;
    node_exchange &operator=(const node_exchange &) = delete;
    ~node_exchange();

    // Collective over the ranks of this node: memory for the plan. As node_memory::make().
    status make_memory(MPI_Comm here, const node_plan &plan) { return memory_.make(here, plan.memory_bytes); }
    void all_have_memory() { memory_.all_have_it(); }
    // Takes the messages that go with others out of these lists, and makes requests for the node messages.
    void take_over(MPI_Comm comm, const node_map &nodes, const node_plan &plan, const std::vector<node_message> &sent,
                   std::vector<message> &receives, std::vector<message> &sends);

    // The steps of an exchange. They throw as those of exchange do.
    void begin();
    void pack(int field) const;
    void send();  // when all fields are packed
    void carry();
    // found(part): it has been taken out.
    void take(const std::function<void(part &)> &found);
    void complete_sends();

    void swap(int field);
    // As exchange_state::free_requests().
    bool free_requests();

    int messages_sent() const { return static_cast<int>(out_.size()); }
    std::vector<const part *> parts_sent() const;
    std::vector<part> &parts_received() { return parts_; }
    const std::vector<part> &parts_received() const { return parts_; }

private:
    struct outgoing {
        std::unique_ptr<std::byte[]> packed;
        std::vector<part> parts;
        std::vector<std::int64_t> at;  // of each part
    };
    struct carried {
        int sender = 0;
        std::vector<int> readers;  // places in the node
        std::uint64_t *flag = nullptr;
        bool started = false;  // in this exchange
    };
    // Where a part arrives.
    struct source {
        int sender = 0;
        const std::uint64_t *flag = nullptr;
        std::array<const std::byte *, 2> room{};
        bool taken = false;  // in this exchange
    };

    std::size_t turn() const { return static_cast<std::size_t>(epoch_ % 2); }
    std::uint64_t *taken_flag(int place) const;
    // Whether all who read this half have taken out what was in it.
    bool may_start(const carried &c) const;
    void start(std::size_t i);
    void await(const std::uint64_t *flag, std::uint64_t epoch, wait_clock::time_point since,
               const std::function<std::string()> &what) const;

    node_memory memory_;
    int place_ = 0;                // of this rank in its node
    std::vector<int> neighbours_;  // the node's ranks, by place
    std::vector<outgoing> out_;
    std::vector<carried> carried_;
    std::vector<part> parts_;
    std::vector<source> sources_;  // of these
    // By turns, so that a carrier may receive while others still read what came before.
    std::array<std::vector<MPI_Request>, 2> receiving_, sending_;
    std::uint64_t epoch_ = 0;  // exchanges begun
};

// Collective over the grid's ranks, before the messages' requests are made; those that go with others are taken out of
// the lists. Null on all ranks if none has a node message, or, with node_messages::automatic, if some node has no
// memory to share.
std::unique_ptr<node_exchange> make_node_exchange(MPI_Comm comm, const node_map &nodes, node_messages how,
                                                  std::vector<message> &receives, std::vector<message> &sends);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_NODE_EXCHANGE_H
