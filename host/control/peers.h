// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of the job that run on this node, and whether they still live. The operating system is asked only when
// a wait has lasted a while.
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

// A process, distinguished from earlier and later ones with the same process id.
struct process {
    std::uint64_t scope;  // hash of the boot and the namespaces that process ids belong to; 0: not known
    std::int64_t pid;
    std::uint64_t started;  // in the system's clock ticks
};

process this_process();
// Also false if it cannot be known: the process is on another node, or in another container.
bool has_ended(const process &p);

// The processes of the job on this node, by world rank. The caller serialises.
class process_table {
public:
    // What the processes of a node tell each other.
    struct neighbour {
        process who;
        transport::wire_region inbox;  // for control messages of this node's processes
        transport::memory_probe own;   // a little memory that is not shared
        std::int64_t world_rank;
    };
    // Collective over MPI_COMM_WORLD. `told_one_node`: the launcher has told this process that the whole job runs on its
    // node.
    void exchange(bool told_one_node);
    int this_rank() const { return me_; }
    // Asks the system. Once it is true, it stays true.
    bool ended(int world_rank);
    // Whether this process can map that one's memory, whatever the host names are. Tries once.
    bool shares_memory(int world_rank);
    // Where to put control messages to that process; null if its memory cannot be mapped.
    control_outbox *outbox_to(int world_rank);
    // The next control message that a process of this node has put into our inbox; false: there is none.
    bool receive(int &world_rank, control_packet &out);
    // Whether the whole job shares memory, as far as is known. Any thread may ask.
    bool all_share_memory() const { return all_share_memory_.load(std::memory_order_relaxed); }
    void note_one_without_memory() { all_share_memory_.store(false, std::memory_order_relaxed); }
    // How to write to that process's own memory; null, with a failure, if that is impossible. Tries once.
    const transport::peer_memory *memory_of(int world_rank, status &why_not);
    // The process cannot be reached any more. It counts as ended, except that it may still write to memory that we have
    // given it access to.
    void give_up(int world_rank) {
        ended_.insert(world_rank);
        beyond_reach_.insert(world_rank);
    }
    // The end of the process has been noticed elsewhere.
    void note_end(int world_rank) { ended_.insert(world_rank); }
    bool may_still_write(int world_rank) const { return beyond_reach_.count(world_rank) != 0; }
    // Without asking the system.
    bool known_to_have_ended(int world_rank) const { return ended_.count(world_rank) != 0; }
    // The world rank of a process that has ended, or -1. Asks the system about all of them.
    int any_ended();

private:
    struct reached {
        transport::peer_memory memory;
        status why_not;
    };
    struct mapped {
        transport::region inbox;  // attached until the process ends; none if that cannot be done
        control_outbox outbox;
    };
    mapped *map(int world_rank);

    std::map<int, neighbour> neighbours_;
    std::vector<int> world_ranks_;  // of this node's processes; the index is the sender's number
    std::size_t our_place_ = 0;
    transport::region own_inbox_;  // never given back: others may still write there
    control_inbox inbox_;
    transport::safe_map<int, mapped> mapped_;
    std::atomic<bool> all_share_memory_{false};  // a hint: it guards no other memory
    transport::safe_map<int, reached> reached_;  // callers of Pready keep pointers to its elements
    transport::safe_set<int> ended_, beyond_reach_;
    int me_ = 0;
};

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_PEERS_H
