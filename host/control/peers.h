// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of the job that run on this node, and whether they still live. Nothing here is asked while all
// is well: who waits asks, once a wait has lasted a while.
#ifndef MPIX_HOST_CONTROL_PEERS_H
#define MPIX_HOST_CONTROL_PEERS_H

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "host/control/fifo.h"
#include "transport/reserve.h"
#include "transport/select.h"

namespace mpix {

// A process, told from every other one that has had or will have its number.
struct process {
    std::uint64_t scope;  // the running system and the namespaces in which the numbers count; 0: not known
    std::int64_t pid;
    std::uint64_t started;  // as the system says, in its clock's ticks
};

process this_process();
// False also where it cannot be known: of another node, or of another container's process.
bool has_ended(const process &p);

// Those of the job on this node, by world rank. The caller serialises.
class process_table {
public:
    // What the processes of a node tell each other.
    struct neighbour {
        process who;
        transport::wire_region inbox;  // for control messages of this node's processes
        transport::memory_probe own;   // a little memory that is not shared
        std::int64_t world_rank;
    };
    // Collective over MPI_COMM_WORLD.
    void exchange();
    // Asks the system; an answer of true lasts.
    bool ended(int world_rank);
    // Whether we can map its memory: whatever its host is called. Asks once.
    bool shares_memory(int world_rank);
    // Where to put control messages to it; null if we cannot map its memory.
    control_outbox *outbox_to(int world_rank);
    // The next control message that a process of this node has put into our inbox; false: there is none.
    bool receive(int &world_rank, control_message &out);
    // Whether the whole job shares memory, as far as is known. Any thread may ask.
    bool all_share_memory() const { return all_share_memory_.load(std::memory_order_relaxed); }
    void note_one_without_memory() { all_share_memory_.store(false, std::memory_order_relaxed); }
    // How to write to its own memory; null, with a sentence, if that cannot be done. Tries once.
    const transport::peer_memory *memory_of(int world_rank, transport::outcome &why_not);
    // It is beyond reach. That is as good as ended, but that it may still write where we have let it.
    void give_up(int world_rank) {
        ended_.insert(world_rank);
        beyond_reach_.insert(world_rank);
    }
    // It has been found out elsewhere that it has ended.
    void note_end(int world_rank) { ended_.insert(world_rank); }
    bool may_still_write(int world_rank) const { return beyond_reach_.count(world_rank) != 0; }
    // What is known without asking.
    bool known_to_have_ended(int world_rank) const { return ended_.count(world_rank) != 0; }
    // One that has ended, or -1. Asks for all of them.
    int any_ended();

private:
    struct reached {
        transport::peer_memory memory;
        transport::outcome why_not;
    };
    struct mapped {
        transport::region inbox;  // attached until the process ends; none if that cannot be done
        control_outbox outbox;
    };
    mapped *map(int world_rank);

    std::map<int, neighbour> neighbours_;
    std::vector<int> world_ranks_;  // of the processes of this node; their places there are their numbers as senders
    std::size_t our_place_ = 0;
    transport::region own_inbox_;  // given back by nobody: others may still write there
    control_inbox inbox_;
    transport::safe_map<int, mapped> mapped_;
    std::atomic<bool> all_share_memory_{false};  // a hint: it guards no other memory
    transport::safe_map<int, reached> reached_;  // callers of Pready hold on to its members
    transport::safe_set<int> ended_, beyond_reach_;
    int me_ = 0;
};

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_PEERS_H
